//! `alice listen`: transcribe a recording.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::Context;
use crate::ears::stt::{self, guard};
use crate::ears::timestamps::{SpeechSpan, speech_spans};
use crate::ears::vad::Silero;
use crate::ears::wav::{Pace, WavSource};
use crate::ears::{FRAME, RATE, Stt, pieces};
use crate::kernel::clock::SystemClock;
use crate::kernel::contracts::Event;
use crate::kernel::load::CoreLoad;

/// Arguments of `alice listen`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A WAV file; `-` reads one from standard input
    file: PathBuf,
    /// One JSON object: the text, the speech segments and the speech probability of every frame
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// What it could not do, as one line for the person.
pub async fn run(args: Args, context: Context) -> anyhow::Result<ExitCode> {
    let Args { file, json } = args;
    let open = move || -> anyhow::Result<_> {
        let audio = read(&file)?;
        let probabilities = pieces::probabilities(&mut Silero::open(&context.home)?, &audio)?;
        let tell = Arc::new(|event| {
            if let Event::Notice(notice) = event {
                super::say(&format!("warning: {}", notice.text));
            }
        });
        let stt = stt::open(&context.settings.stt, &context.home, CoreLoad::default(), tell)?;
        Ok((Recording::new(audio, probabilities), stt))
    };
    let (recording, stt) = tokio::task::spawn_blocking(open).await??;
    let mut listener = Listener { recording: &recording, stt: &*stt, known: HashMap::new() };
    let text = if json {
        serde_json::to_string(&listener.heard().await?)? + "\n"
    } else {
        if recording.spans.is_empty() {
            super::say("no speech was found");
        }
        let lines = listener.sentences().await?;
        lines.iter().map(|(span, text)| format!("{}  {text}\n", times(*span))).collect()
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// All samples of a recording, mono at the rate of the ears.
fn read(file: &Path) -> anyhow::Result<Vec<f32>> {
    let clock = Arc::new(SystemClock::default());
    let source = if file.as_os_str() == "-" {
        let input = std::io::stdin();
        if input.is_terminal() {
            bail!("standard input is a terminal: name a WAV file, or pipe one in");
        }
        WavSource::from_reader(input, "standard input", Pace::Fast, clock)?
    } else {
        WavSource::open(file, Pace::Fast, clock)?
    };
    source.read_whole()
}

/// Such as `00:01.25–00:03.50`.
fn times(span: SpeechSpan) -> String {
    let time = |samples| {
        let ms = millis(samples);
        format!("{:02}:{:02}.{:02}", ms / 60_000, ms / 1000 % 60, ms % 1000 / 10)
    };
    format!("{}–{}", time(span.start), time(span.end))
}

fn millis(samples: usize) -> usize {
    samples / (RATE as usize / 1000)
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Heard {
    text: String,
    segments: Vec<Segment>,
    frames: Vec<Frame>,
}

#[derive(Debug, Serialize)]
struct Segment {
    start_ms: usize,
    end_ms: usize,
    text: String,
}

#[derive(Debug, Serialize)]
struct Frame {
    ms: usize,
    p: f32,
}

/// A recording and where speech lies in it.
struct Recording {
    audio: Vec<f32>,
    probabilities: Vec<f32>,
    spans: Vec<SpeechSpan>,
}

impl Recording {
    fn new(audio: Vec<f32>, probabilities: Vec<f32>) -> Self {
        let spans = speech_spans(&probabilities, audio.len());
        Self { audio, probabilities, spans }
    }

    /// The spans, the long ones in parts.
    fn parts(&self) -> Vec<SpeechSpan> {
        self.spans.iter().flat_map(|span| pieces::cut(*span, &self.probabilities)).collect()
    }
}

/// Transcribes parts of a recording, each once.
struct Listener<'a> {
    recording: &'a Recording,
    stt: &'a dyn Stt,
    known: HashMap<SpeechSpan, String>,
}

impl Listener<'_> {
    /// The words of each span.
    async fn words(&mut self, spans: &[SpeechSpan]) -> anyhow::Result<Vec<String>> {
        let audio = &self.recording.audio;
        let mut all = Vec::with_capacity(spans.len());
        for span in pieces::with_context(spans, audio.len()) {
            if let Some(text) = self.known.get(&span) {
                all.push(text.clone());
                continue;
            }
            let sound = audio.get(span.start..span.end).unwrap_or_default().to_vec();
            let heard = self.stt.transcribe(sound, CancellationToken::new()).await?;
            let text = if guard::phantom(&heard).is_some() { String::new() } else { heard.text };
            self.known.insert(span, text.clone());
            all.push(text);
        }
        Ok(all)
    }

    /// The recording in pieces of some length, which are understood best, with their words. Pieces
    /// without words are left out.
    async fn sentences(&mut self) -> anyhow::Result<Vec<(SpeechSpan, String)>> {
        let spans = pieces::join(&self.recording.parts());
        let words = self.words(&spans).await?;
        let spoken = spans.into_iter().zip(words).filter(|(_, text)| !text.is_empty());
        Ok(spoken.collect())
    }

    async fn heard(&mut self) -> anyhow::Result<Heard> {
        let sentences = self.sentences().await?;
        let text = sentences.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ");
        let parts = self.recording.parts();
        let words = self.words(&parts).await?;
        let segment = |span: &SpeechSpan| {
            let own = parts.iter().zip(&words).filter(|(part, text)| {
                span.start <= part.start && part.end <= span.end && !text.is_empty()
            });
            Segment {
                start_ms: millis(span.start),
                end_ms: millis(span.end),
                text: own.map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" "),
            }
        };
        let segments = self.recording.spans.iter().map(segment).collect();
        let frames = self.recording.probabilities.iter().enumerate();
        let frames = frames.map(|(frame, p)| Frame { ms: millis(frame * FRAME), p: *p }).collect();
        Ok(Heard { text, segments, frames })
    }
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;
