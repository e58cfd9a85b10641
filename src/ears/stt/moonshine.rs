//! Moonshine tiny: the embedded English recogniser.
//!
//! An encoder turns the whole recording into one vector for each 41 ms; a decoder writes one token
//! after another, greedily, with its keys and values kept between the calls. The tensors stay ONNX
//! Runtime values from call to call: nothing of the cache is copied here. Model and token limit:
//! Jeffries et al., "Moonshine: Speech Recognition for Live Transcription and Voice Commands", 2024.

use std::borrow::Cow;
use std::sync::mpsc;
use std::time::Instant;

use anyhow::Context;
use ort::memory::Allocator;
use ort::session::{Session, SessionInputValue};
use ort::value::{DynValue, Tensor, TensorRef};
use tokenizers::Tokenizer;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::config::Home;
use crate::ears::{RATE, Stt, Transcription};
use crate::kernel::clock::BoxFuture;
use crate::kernel::load::CoreLoad;

/// Folder of the weights.
pub const MODEL: &str = "moonshine-tiny";

const ENCODER: &str = "encoder_model.onnx";
const DECODER: &str = "decoder_model_merged.onnx";
const TOKENIZER: &str = "tokenizer.json";

const START: i64 = 1;
const END: i64 = 2;
const LAYERS: usize = 6;
const HEADS: i64 = 8;
const HEAD_SIZE: i64 = 36;

/// More tokens than this for a second of speech are a loop, not speech (the paper's limit).
const TOKENS_PER_SECOND: f32 = 6.5;

/// Less sound than this is no speech.
const SHORTEST: usize = RATE as usize / 10;

/// A quiet lead of 0.8 s or more can make the model answer nothing (measured on four recordings),
/// so no more than this much of it is kept.
const LEAD_MS: usize = 250;

/// The lead that is kept when the first try came back empty.
const TIGHT_LEAD_MS: usize = 50;

/// Silence that is put behind the sound, ms. Words that are taken at the first silent frame end so
/// hard that the model hears them go on: of 200 such clips 34 ended in a comma or in no mark at all,
/// and none with this (measured; it costs 4 ms).
const TAIL_MS: usize = 500;

/// The recogniser on its own thread. Dropping it ends the thread after the running job.
pub struct Moonshine {
    jobs: mpsc::Sender<Job>,
}

struct Job {
    audio: Vec<f32>,
    cancel: CancellationToken,
    reply: oneshot::Sender<anyhow::Result<Transcription>>,
}

impl Moonshine {
    /// Opens the model on `threads` threads, runs it once so that the first answer is as quick as
    /// the others, and starts its thread. Blocks for about half a second.
    ///
    /// # Errors
    /// When weights are missing or can't be opened.
    pub fn open(home: &Home, threads: usize, load: CoreLoad) -> anyhow::Result<Self> {
        let mut engine = Engine::open(home, threads)?;
        engine.transcribe(&vec![0.0; RATE as usize], &CancellationToken::new())?;
        let (jobs, queue) = mpsc::channel::<Job>();
        std::thread::Builder::new().name("stt-moonshine".into()).spawn(move || {
            for job in queue {
                if job.cancel.is_cancelled() {
                    continue;
                }
                let computing = load.enter();
                let result = engine.transcribe(&job.audio, &job.cancel);
                drop(computing);
                // A caller that stopped waiting does not care.
                let _ = job.reply.send(result);
            }
        })?;
        Ok(Self { jobs })
    }
}

impl Stt for Moonshine {
    fn name(&self) -> String {
        MODEL.into()
    }

    fn transcribe(
        &self,
        audio: Vec<f32>,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, anyhow::Result<Transcription>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.jobs
                .send(Job { audio, cancel: cancel.clone(), reply })
                .context("the speech recogniser has stopped")?;
            tokio::select! {
                answer = answer => answer.context("the speech recogniser gave no answer")?,
                () = cancel.cancelled() => anyhow::bail!("cancelled"),
            }
        })
    }
}

struct Engine {
    encoder: Session,
    decoder: Session,
    tokenizer: Tokenizer,
    names: Vec<CacheNames>,
}

/// What the four tensors of one layer's cache are called, in the order decoder key, decoder value,
/// encoder key, encoder value.
struct CacheNames {
    past: [String; 4],
    present: [String; 4],
}

impl Engine {
    fn open(home: &Home, threads: usize) -> anyhow::Result<Self> {
        let file = |name| crate::models::locate(home, MODEL, name);
        let (encoder, decoder, tokenizer) = (file(ENCODER)?, file(DECODER)?, file(TOKENIZER)?);
        let tokenizer = Tokenizer::from_file(&tokenizer)
            .map_err(|error| anyhow::anyhow!("{}: {error}", tokenizer.display()))?;
        let parts = ["decoder.key", "decoder.value", "encoder.key", "encoder.value"];
        let names = (0..LAYERS)
            .map(|layer| CacheNames {
                past: parts.map(|part| format!("past_key_values.{layer}.{part}")),
                present: parts.map(|part| format!("present.{layer}.{part}")),
            })
            .collect();
        Ok(Self {
            encoder: crate::onnx::open(home, &encoder, threads)?,
            decoder: crate::onnx::open(home, &decoder, threads)?,
            tokenizer,
            names,
        })
    }

    fn transcribe(
        &mut self,
        audio: &[f32],
        cancel: &CancellationToken,
    ) -> anyhow::Result<Transcription> {
        if audio.len() < SHORTEST {
            return Ok(Transcription { text: String::new(), no_speech: None });
        }
        let mut audio = audio.to_vec();
        audio.resize(audio.len() + TAIL_MS * RATE as usize / 1000, 0.0);
        let voiced = without_lead(&audio, LEAD_MS);
        let mut text = self.decode(voiced, cancel)?;
        if text.is_empty() {
            let tight = without_lead(&audio, TIGHT_LEAD_MS);
            if tight.len() < voiced.len() {
                text = self.decode(tight, cancel)?;
            }
        }
        Ok(Transcription { text, no_speech: None })
    }

    fn decode(&mut self, audio: &[f32], cancel: &CancellationToken) -> anyhow::Result<String> {
        let started = Instant::now();
        let seconds = audio.len() as f32 / RATE as f32;
        let limit = (seconds * TOKENS_PER_SECOND).ceil() as usize + 1;
        let input = TensorRef::from_array_view(([1, audio.len()], audio))?;
        let mut encoded = self.encoder.run(ort::inputs!["input_values" => input])?;
        let hidden = encoded.remove("last_hidden_state").context("the encoder gave nothing")?;
        drop(encoded);
        let encoder_ms = started.elapsed().as_millis();

        let mut cache: Vec<[DynValue; 4]> =
            (0..LAYERS).map(|_| empty_cache()).collect::<Result<_, _>>()?;
        let mut token = START;
        let mut tokens = Vec::with_capacity(limit);
        while tokens.len() < limit {
            anyhow::ensure!(!cancel.is_cancelled(), "cancelled");
            let first = tokens.is_empty();
            let mut inputs: Vec<(Cow<'_, str>, SessionInputValue<'_>)> =
                Vec::with_capacity(3 + 4 * LAYERS);
            inputs.push(("input_ids".into(), Tensor::from_array(([1, 1], vec![token]))?.into()));
            inputs.push(("encoder_hidden_states".into(), (&hidden).into()));
            inputs
                .push(("use_cache_branch".into(), Tensor::from_array(([1], vec![!first]))?.into()));
            for (names, values) in self.names.iter().zip(&cache) {
                for (name, value) in names.past.iter().zip(values) {
                    inputs.push((name.as_str().into(), value.into()));
                }
            }
            let mut outputs = self.decoder.run(inputs)?;
            let logits = outputs.get("logits").context("the decoder gave no logits")?;
            token = best(logits.try_extract_tensor::<f32>()?.1);
            if token == END {
                break;
            }
            tokens.push(u32::try_from(token).unwrap_or(0));
            for (names, values) in self.names.iter().zip(&mut cache) {
                for (place, (name, value)) in names.present.iter().zip(values).enumerate() {
                    // The encoder's half is made by the first call; later calls give dummies.
                    if first || place < 2 {
                        *value = outputs.remove(name).context("the decoder kept no cache")?;
                    }
                }
            }
        }
        let text = self
            .tokenizer
            .decode(&tokens, true)
            .map_err(|error| anyhow::anyhow!("tokens can't be written out: {error}"))?;
        tracing::trace!(
            seconds,
            encoder_ms,
            decoder_ms = started.elapsed().as_millis() - encoder_ms,
            tokens = tokens.len(),
            "moonshine"
        );
        Ok(text.trim().to_owned())
    }
}

fn empty_cache() -> Result<[DynValue; 4], ort::Error> {
    let allocator = Allocator::default();
    let make = || Tensor::<f32>::new(&allocator, [1, HEADS, 0, HEAD_SIZE]).map(Tensor::into_dyn);
    Ok([make()?, make()?, make()?, make()?])
}

/// Index of the highest score.
fn best(logits: &[f32]) -> i64 {
    let mut top = (0, f32::MIN);
    for (index, &score) in logits.iter().enumerate() {
        if score > top.1 {
            top = (index, score);
        }
    }
    i64::try_from(top.0).unwrap_or(END)
}

/// The sound from `keep_ms` before the first block that is within 30 dB of the loudest one.
fn without_lead(audio: &[f32], keep_ms: usize) -> &[f32] {
    const BLOCK: usize = RATE as usize / 50;
    let energy = |block: &[f32]| block.iter().map(|s| s * s).sum::<f32>();
    let loudest = audio.chunks(BLOCK).map(energy).fold(0.0, f32::max);
    let first = audio.chunks(BLOCK).position(|block| energy(block) > loudest * 1e-3).unwrap_or(0);
    let start = (first * BLOCK).saturating_sub(keep_ms * RATE as usize / 1000);
    audio.get(start..).unwrap_or(audio)
}

#[cfg(test)]
#[path = "moonshine_tests.rs"]
mod tests;
