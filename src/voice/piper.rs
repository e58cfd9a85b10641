//! Piper: quick speech by a VITS model, with the phonemes of espeak-ng.
//!
//! The export gives only the sound; the length of each phoneme is inside it and is made an output, so
//! words and mouth shapes are timed by what was really spoken.

use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::{Context, bail};
use ndarray::{Array1, Array2};
use ort::value::TensorRef;
use tokio_util::sync::CancellationToken;

use super::espeak::Espeak;
use super::infer::{SpeechModel, timed};
use super::phonemes::{Phone, with_espeak, word_times};
use super::{Tts, Utterance, audio, numbers, script, visemes};
use crate::config::Home;
use crate::kernel::load::CoreLoad;
use crate::kernel::ports::Pcm;
use crate::{models, onnx};

/// Name in the manifest.
const MODEL: &str = "piper-joe";
const VOICE: &str = "en_US-joe-medium";

/// The value inside VITS exports that holds the frames of each input symbol.
const DURATIONS: &str = "/Ceil_output_0";

/// Samples of a frame.
const HOP: f64 = 256.0;

/// Brings the voice to about −20 dBFS while it speaks (measured).
const GAIN: f32 = 0.9;

/// Silence between two sentences, ms.
const SENTENCE_MS: f64 = 180.0;

/// Silence after which the memory of the last answers is given back.
const REST: Duration = Duration::from_secs(10);

/// What is read of the voice's `.onnx.json`.
#[derive(serde::Deserialize)]
struct Config {
    audio: Audio,
    phoneme_id_map: HashMap<char, Vec<i64>>,
    inference: Inference,
}

#[derive(serde::Deserialize)]
struct Audio {
    sample_rate: u32,
}

#[derive(serde::Deserialize)]
struct Inference {
    noise_scale: f32,
    length_scale: f32,
    noise_w: f32,
}

/// The English Piper voice.
pub struct Piper {
    model: Arc<SpeechModel>,
    /// Told of each run; dropped with the voice, which ends the thread that tidies up.
    used: mpsc::Sender<()>,
    config: Config,
    espeak: Espeak,
    speed: f32,
    load: CoreLoad,
}

impl Piper {
    /// Opens the voice and speaks a word, so that the first reply does not wait. `threads` 0: one
    /// for each core; `speed` 1 is the voice's own.
    ///
    /// # Errors
    /// One line: weights or espeak-ng missing, or the engine fails.
    pub fn open(home: &Home, threads: usize, speed: f32, load: CoreLoad) -> anyhow::Result<Self> {
        let model = models::locate(home, MODEL, &format!("{VOICE}.onnx"))?;
        let config = read_config(&models::locate(home, MODEL, &format!("{VOICE}.onnx.json"))?)?;
        let espeak = Espeak::start("en-us")?;
        let model = SpeechModel::new(onnx::open_with_outputs(home, &model, threads, &[DURATIONS])?);
        let model = Arc::new(model);
        let (used, uses) = mpsc::channel();
        let resting = Arc::downgrade(&model);
        std::thread::Builder::new().name("tts-rest".into()).spawn(move || tidy(&uses, &resting))?;
        let piper = Self { model, used, config, espeak, speed: speed.clamp(0.5, 2.0), load };
        piper.synthesize("Hello there, how are you?", &CancellationToken::new())?;
        Ok(piper)
    }

    /// Ids of a sentence, and which phoneme is where in them.
    fn ids(&self, sentence: &[Phone]) -> (Vec<i64>, Vec<(Phone, usize)>) {
        let id = |c: char| self.config.phoneme_id_map.get(&c).map(Vec::as_slice);
        let pad = id('_').unwrap_or(&[0]);
        let mut ids: Vec<i64> = id('^').unwrap_or(&[1]).to_vec();
        ids.extend_from_slice(pad);
        let mut places = Vec::with_capacity(sentence.len());
        for phone in sentence {
            if let Some(symbol) = id(phone.symbol) {
                places.push((*phone, ids.len()));
                ids.extend_from_slice(symbol);
                ids.extend_from_slice(pad);
            }
        }
        ids.extend_from_slice(id('$').unwrap_or(&[2]));
        (ids, places)
    }
}

/// Gives the model's memory back each time that it has rested for a while.
fn tidy(uses: &Receiver<()>, model: &Weak<SpeechModel>) {
    while uses.recv().is_ok() {
        while uses.recv_timeout(REST).is_ok() {}
        let Some(model) = model.upgrade() else { return };
        if let Err(error) = whisper(&model) {
            tracing::debug!(%error, "the voice's memory is not given back");
        }
    }
}

/// The shortest run there is: the marks of begin and end that every Piper voice has.
fn whisper(model: &SpeechModel) -> anyhow::Result<()> {
    let ids = Array2::from_shape_vec((1, 5), vec![1_i64, 0, 3, 0, 2])?;
    let (length, scales) = (Array1::from(vec![5_i64]), Array1::from(vec![0.0_f32, 1.0, 0.0]));
    model.give_back_memory(ort::inputs! {
        "input" => TensorRef::from_array_view(&ids)?,
        "input_lengths" => TensorRef::from_array_view(&length)?,
        "scales" => TensorRef::from_array_view(&scales)?,
    })
}

fn read_config(path: &Path) -> anyhow::Result<Config> {
    let say = || format!("voice settings {} can't be read", path.display());
    serde_json::from_slice(&std::fs::read(path).with_context(say)?).with_context(say)
}

impl Tts for Piper {
    fn name(&self) -> String {
        format!("piper: {VOICE}")
    }

    fn synthesize(&self, spoken: &str, cancel: &CancellationToken) -> anyhow::Result<Utterance> {
        let written = script::language(spoken);
        if written != script::Language::English {
            bail!(written.refusal());
        }
        let _running = self.load.enter();
        let sentences = with_espeak(&self.espeak, &numbers::say(spoken))?;
        if sentences.is_empty() {
            bail!("there is nothing to speak in this text");
        }
        let rate = self.config.audio.sample_rate;
        let ms = |samples: usize| samples as f64 * 1000.0 / f64::from(rate);
        let scales = Array1::from(vec![
            self.config.inference.noise_scale,
            self.config.inference.length_scale / self.speed,
            self.config.inference.noise_w,
        ]);
        // The thread lives as long as the voice.
        let _ = self.used.send(());
        let mut samples: Vec<f32> = Vec::new();
        let mut phones = Vec::new();
        for sentence in &sentences {
            let (ids, places) = self.ids(sentence);
            let length = Array1::from(vec![i64::try_from(ids.len())?]);
            let ids = Array2::from_shape_vec((1, ids.len()), ids)?;
            let made = self.model.run(
                ort::inputs! {
                    "input" => TensorRef::from_array_view(&ids)?,
                    "input_lengths" => TensorRef::from_array_view(&length)?,
                    "scales" => TensorRef::from_array_view(&scales)?,
                },
                cancel,
            )?;
            if !samples.is_empty() {
                let gap = (SENTENCE_MS * f64::from(rate) / 1000.0) as usize;
                samples.extend(std::iter::repeat_n(0.0, gap));
            }
            let frame_ms = HOP * 1000.0 / f64::from(rate);
            phones.extend(timed(&places, &made.frames, frame_ms, ms(samples.len())));
            samples.extend(made.samples);
        }
        let cut = ms(audio::finish(&mut samples, rate, GAIN, audio::tail_ms(spoken)));
        for timed in &mut phones {
            timed.start_ms = (timed.start_ms - cut).max(0.0);
            timed.end_ms = (timed.end_ms - cut).max(0.0);
        }
        let pcm = Pcm { rate, samples };
        Ok(Utterance { visemes: visemes::track(&phones, &pcm), words: word_times(&phones), pcm })
    }
}

#[cfg(test)]
#[path = "piper_tests.rs"]
mod tests;
