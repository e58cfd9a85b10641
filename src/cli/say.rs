//! `alice say`: speak a text, or write it as a WAV file.

use std::io::{Read, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio_util::sync::CancellationToken;

use super::Context;
use crate::config::Home;
use crate::config::settings::Voice;
use crate::kernel::load::CoreLoad;
use crate::kernel::ports::Pcm;
use crate::kernel::resample::Resampler;
use crate::kernel::wav::wav_bytes;
use crate::voice::engines;
use crate::voice::segment::{Segmenter, SegmenterOptions};

/// Arguments of `alice say`.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// What to say; `-` reads it from the standard input
    pub text: String,

    /// Write a WAV file (16 bit, mono) instead of playing; `-` writes it to the standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// `piper` or `kokoro`, or a Kokoro voice such as `bf_emma` [default: the settings]
    #[arg(long)]
    pub voice: Option<String>,

    /// Print what was spoken and when, as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// What `--json` prints.
#[derive(serde::Serialize)]
struct Report {
    /// The engine and voice.
    engine: String,
    /// Length of all, ms.
    duration_ms: f64,
    /// The pieces in order.
    segments: Vec<Piece>,
}

/// One piece of the text.
#[derive(serde::Serialize)]
struct Piece {
    /// For the eye.
    display: String,
    /// For the ear; empty when it is not spoken.
    spoken: String,
    /// Its place in the sound, ms.
    start_ms: f64,
    /// Its length, ms.
    duration_ms: f64,
    /// How long the synthesis took, ms.
    synthesis_ms: f64,
    /// When each word of `spoken` begins: byte offset, ms from the beginning of the piece.
    words: Vec<(usize, f64)>,
    /// Why it was not spoken.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Runs the subcommand.
///
/// # Errors
/// What it could not do, as one line for the person.
pub async fn run(args: Args, context: Context) -> anyhow::Result<ExitCode> {
    let mut settings = context.settings.voice.clone();
    if let Some(voice) = &args.voice {
        choose(&mut settings, voice);
    }
    let home = context.home.clone();
    tokio::task::spawn_blocking(move || say(&args, &settings, &home))
        .await
        .context("the voice stopped working")?
}

/// An engine's name chooses the engine, another one a voice of Kokoro.
fn choose(settings: &mut Voice, voice: &str) {
    if matches!(voice, "piper" | "kokoro") {
        settings.engine = voice.into();
    } else {
        settings.engine = "kokoro".into();
        settings.kokoro_voice = voice.into();
    }
}

fn say(args: &Args, settings: &Voice, home: &Home) -> anyhow::Result<ExitCode> {
    let text = if args.text == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("the text can't be read")?;
        text
    } else {
        args.text.clone()
    };
    let opened = engines::open(settings, home, &CoreLoad::default())?;
    if let Some(reason) = &opened.reason {
        eprintln!("notice: {reason}");
    }
    let mut sink = match &args.out {
        Some(path) => Sink::File { path, pcm: Pcm { rate: 0, samples: Vec::new() } },
        None => Sink::device(settings)?,
    };
    let mut segmenter = Segmenter::new(SegmenterOptions::default());
    let mut pieces = segmenter.push(&text);
    pieces.extend(segmenter.finish());
    let cancel = CancellationToken::new();
    let mut report = Report {
        engine: String::new(),
        duration_ms: 0.0,
        segments: Vec::with_capacity(pieces.len()),
    };
    let mut spoke = false;
    for piece in pieces {
        let mut entry = Piece {
            display: piece.display,
            spoken: piece.spoken,
            start_ms: report.duration_ms,
            duration_ms: 0.0,
            synthesis_ms: 0.0,
            words: Vec::new(),
            error: None,
        };
        if !entry.spoken.is_empty() {
            let began = Instant::now();
            match opened.tts.synthesize(&entry.spoken, &cancel) {
                Ok(made) => {
                    entry.synthesis_ms = began.elapsed().as_secs_f64() * 1000.0;
                    entry.duration_ms = made.pcm.duration_ms();
                    entry.words = made.words;
                    report.duration_ms += entry.duration_ms;
                    sink.add(made.pcm)?;
                    spoke = true;
                }
                Err(error) => {
                    let error = format!("{error:#}");
                    eprintln!("not spoken: {error}");
                    entry.error = Some(error);
                }
            }
        }
        report.segments.push(entry);
    }
    report.engine = opened.tts.name();
    if !spoke && report.segments.iter().all(|piece| piece.error.is_none()) {
        bail!("there is nothing to speak in this text");
    }
    if spoke {
        sink.finish(Duration::from_secs_f64(report.duration_ms / 1000.0))?;
    }
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    }
    let whole = report.segments.iter().all(|piece| piece.error.is_none());
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where the sound goes.
enum Sink<'a> {
    File { path: &'a Path, pcm: Pcm },
    Device { player: rodio::Player, _stream: rodio::MixerDeviceSink },
}

impl Sink<'_> {
    fn device(settings: &Voice) -> anyhow::Result<Self> {
        let mut stream = rodio::DeviceSinkBuilder::open_default_sink().map_err(|error| {
            anyhow::anyhow!("there is no sound device ({error}): write a file with `--out FILE`")
        })?;
        stream.log_on_drop(false);
        let player = rodio::Player::connect_new(stream.mixer());
        player.set_volume(settings.volume);
        Ok(Self::Device { player, _stream: stream })
    }

    fn add(&mut self, made: Pcm) -> anyhow::Result<()> {
        match self {
            Self::File { pcm, .. } if pcm.rate == 0 || pcm.rate == made.rate => {
                pcm.rate = made.rate;
                pcm.samples.extend(made.samples);
            }
            Self::File { pcm, .. } => {
                // The other engine stood in for a piece.
                pcm.samples.extend(Resampler::whole(&made.samples, made.rate, pcm.rate)?);
            }
            Self::Device { player, .. } => {
                let rate = NonZero::new(made.rate).context("the voice gave no sound")?;
                player.append(rodio::buffer::SamplesBuffer::new(
                    NonZero::<u16>::MIN,
                    rate,
                    made.samples,
                ));
            }
        }
        Ok(())
    }

    /// Writes the file, or waits until all was played, but not for ever: a device can hang.
    fn finish(self, length: Duration) -> anyhow::Result<()> {
        match self {
            Self::File { path, pcm } if path == Path::new("-") => {
                std::io::stdout().write_all(&wav_bytes(&pcm)).context("the sound can't be written")
            }
            Self::File { path, pcm } => std::fs::write(path, wav_bytes(&pcm))
                .with_context(|| format!("{} can't be written", path.display())),
            Self::Device { player, _stream } => {
                let until = Instant::now() + length + Duration::from_secs(5);
                while !player.empty() {
                    if Instant::now() > until {
                        bail!("the sound device does not play");
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
                // What is in the device's own buffer.
                std::thread::sleep(Duration::from_millis(150));
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_voice_names_an_engine_or_a_voice_of_kokoro() {
        let mut settings = Voice::default();
        choose(&mut settings, "bf_emma");
        assert_eq!(
            (settings.engine.as_str(), settings.kokoro_voice.as_str()),
            ("kokoro", "bf_emma")
        );
        choose(&mut settings, "piper");
        assert_eq!(
            (settings.engine.as_str(), settings.kokoro_voice.as_str()),
            ("piper", "bf_emma")
        );
    }

    #[test]
    fn a_stand_in_with_another_rate_goes_into_the_same_file() {
        let path = Path::new("x.wav");
        let mut sink = Sink::File { path, pcm: Pcm { rate: 0, samples: Vec::new() } };
        sink.add(Pcm { rate: 22_050, samples: vec![0.0; 22_050] }).unwrap();
        sink.add(Pcm { rate: 24_000, samples: vec![0.0; 24_000] }).unwrap();
        let Sink::File { pcm, .. } = sink else { panic!("not a file") };
        assert_eq!(pcm.rate, 22_050);
        assert!((pcm.duration_ms() - 2_000.0).abs() < 20.0, "{}", pcm.duration_ms());
    }
}
