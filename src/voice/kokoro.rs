//! Kokoro-82M: a warmer voice, slower than Piper.
//!
//! English phonemes come from misaki, the front end that Kokoro was trained with; Chinese ones are
//! written as misaki writes them. The model is one for all languages: a Chinese text is spoken with
//! the style of a Chinese voice, which is read when the first one comes. The export gives only the
//! sound; the length of each phoneme is inside it and is made an output.

use std::collections::HashMap;
use std::sync::OnceLock;

use anyhow::{Context, bail};
use misaki_rs::Language;
use ndarray::{Array1, Array2};
use ort::value::TensorRef;
use tokio_util::sync::CancellationToken;

use super::infer::{SpeechModel, timed};
use super::misaki::English;
use super::phonemes::{Phone, TimedPhone, is_pause, word_times};
use super::script::{self, Language as Written};
use super::zh::Chinese;
use super::{Tts, Utterance, audio, visemes};
use crate::config::Home;
use crate::kernel::load::CoreLoad;
use crate::kernel::ports::Pcm;
use crate::{models, onnx};

/// Name in the manifest.
const MODEL: &str = "kokoro";
const WEIGHTS: &str = "kokoro-v1.0.int8.onnx";

/// The value inside the export that holds the frames of each input symbol.
const DURATIONS: &str = "/encoder/Clip_output_0";

const RATE: u32 = 24_000;

/// Samples of a frame.
const HOP: f64 = 600.0;

/// Phonemes that one run takes.
const MOST: usize = 510;

/// Columns of a voice's style table; its rows are for lengths of 0 to 509 phonemes.
const STYLE: usize = 256;

/// Brings the voices to about −20 dBFS while they speak (measured).
const GAIN: f32 = 1.5;

/// Who speaks Chinese beside an English voice: a woman's and a man's.
const CHINESE: [&str; 2] = ["zf_xiaoxiao", "zm_yunxi"];

/// A Kokoro voice.
pub struct Kokoro {
    model: SpeechModel,
    home: Home,
    voice: String,
    style: Vec<f32>,
    vocabulary: HashMap<char, i64>,
    english: English,
    chinese: OnceLock<Result<Mandarin, String>>,
    speed: f32,
    load: CoreLoad,
}

/// What Chinese takes: its front end, and the style of its voice when the chosen one is English.
struct Mandarin {
    front: Chinese,
    style: Option<Vec<f32>>,
}

/// What is read of the vocabulary.
#[derive(serde::Deserialize)]
struct Vocabulary {
    vocab: HashMap<char, i64>,
}

impl Kokoro {
    /// Opens the model with a voice such as `af_heart` and speaks a word, so that the first reply
    /// does not wait. `threads` 0: one for each core; `speed` 1 is the voice's own.
    ///
    /// # Errors
    /// One line: weights missing, a voice that does not exist or whose language is not spoken, or the
    /// engine fails.
    pub fn open(
        home: &Home,
        voice: &str,
        threads: usize,
        speed: f32,
        load: CoreLoad,
    ) -> anyhow::Result<Self> {
        let language = match voice.chars().next() {
            Some('a') => Language::EnglishUS,
            Some('b') => Language::EnglishGB,
            // For the English words in Chinese.
            Some('z') => Language::EnglishUS,
            _ => bail!(
                "voice `{voice}` speaks a language whose phonemes can't be made here: set \
                 `voice.kokoro_voice` to an English voice (`af_heart`, `bf_emma`) or a Chinese one \
                 (`zf_xiaoxiao`)"
            ),
        };
        if !voice.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            bail!("`{voice}` is no name of a voice: set `voice.kokoro_voice` to `af_heart`");
        }
        let weights = models::locate(home, MODEL, WEIGHTS)?;
        let vocabulary = models::locate(home, MODEL, "vocab.json")?;
        let say = "Kokoro's vocabulary can't be read";
        let vocabulary: Vocabulary =
            serde_json::from_slice(&std::fs::read(vocabulary).context(say)?).context(say)?;
        let style = style(home, voice)?;
        let kokoro = Self {
            model: SpeechModel::new(onnx::open_with_outputs(
                home,
                &weights,
                threads,
                &[DURATIONS],
            )?),
            home: home.clone(),
            voice: voice.to_owned(),
            style,
            vocabulary: vocabulary.vocab,
            english: English::new(language),
            chinese: OnceLock::new(),
            speed: speed.clamp(0.5, 2.0),
            load,
        };
        kokoro.synthesize("Hello.", &CancellationToken::new())?;
        Ok(kokoro)
    }

    /// What Chinese takes, loaded at the first need: the dictionaries are large.
    fn mandarin(&self) -> anyhow::Result<&Mandarin> {
        let load = || -> anyhow::Result<Mandarin> {
            let [woman, man] = CHINESE;
            let beside = match self.voice.as_bytes() {
                [b'z', ..] => None,
                [_, b'm', ..] => Some(man),
                _ => Some(woman),
            };
            let style = beside.map(|voice| style(&self.home, voice)).transpose()?;
            Ok(Mandarin { front: Chinese::new(), style })
        };
        self.chinese
            .get_or_init(|| load().map_err(|error| format!("{error:#}")))
            .as_ref()
            .map_err(|why| anyhow::anyhow!("Chinese can't be spoken: {why}"))
    }

    /// The phonemes of a text and the style to speak them with.
    fn read(&self, spoken: &str) -> anyhow::Result<(Vec<Phone>, &[f32])> {
        match script::language(spoken) {
            Written::English => Ok((self.english.phones(spoken)?, &self.style)),
            Written::Chinese => {
                let mandarin = self.mandarin()?;
                let phones = mandarin.front.phones(spoken, &self.english)?;
                Ok((phones, mandarin.style.as_ref().unwrap_or(&self.style)))
            }
            other @ (Written::Japanese | Written::Other) => bail!(other.refusal()),
        }
    }

    fn run(
        &self,
        style: &[f32],
        phones: &[(Phone, i64)],
        cancel: &CancellationToken,
    ) -> anyhow::Result<(Vec<f32>, Vec<TimedPhone>)> {
        let mut tokens = vec![0];
        let mut places = Vec::with_capacity(phones.len());
        for (phone, id) in phones {
            places.push((*phone, tokens.len()));
            tokens.push(*id);
        }
        tokens.push(0);
        let row = phones.len().min(MOST - 1);
        let style = style.get(row * STYLE..(row + 1) * STYLE).context("the voice is damaged")?;
        let tokens = Array2::from_shape_vec((1, tokens.len()), tokens)?;
        let style = Array2::from_shape_vec((1, STYLE), style.to_vec())?;
        let speed = Array1::from(vec![self.speed]);
        let made = self.model.run(
            ort::inputs! {
                "tokens" => TensorRef::from_array_view(&tokens)?,
                "style" => TensorRef::from_array_view(&style)?,
                "speed" => TensorRef::from_array_view(&speed)?,
            },
            cancel,
        )?;
        let frame_ms = HOP * 1000.0 / f64::from(RATE);
        Ok((made.samples, timed(&places, &made.frames, frame_ms, 0.0)))
    }
}

/// The style table of a voice.
fn style(home: &Home, voice: &str) -> anyhow::Result<Vec<f32>> {
    let table = models::locate(home, MODEL, &format!("voices/{voice}.bin"))
        .context(format!("there is no Kokoro voice `{voice}`"))?;
    let style: Vec<f32> = std::fs::read(&table)
        .with_context(|| format!("voice {} can't be read", table.display()))?
        .as_chunks::<4>()
        .0
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect();
    if style.len() != MOST * STYLE {
        bail!("voice {} is damaged: run `alice models pull kokoro`", table.display());
    }
    Ok(style)
}

/// Parts of at most [`MOST`] phonemes, cut at the last sentence, else the last pause that fits.
fn split(phones: &[(Phone, i64)]) -> Vec<&[(Phone, i64)]> {
    let mut out = Vec::new();
    let mut rest = phones;
    while rest.len() > MOST {
        let (fits, _) = rest.split_at_checked(MOST).unwrap_or((rest, &[]));
        let last = |test: fn(char) -> bool| {
            fits.iter().rposition(|(phone, _)| test(phone.symbol)).filter(|place| *place > 0)
        };
        let end = last(|c| matches!(c, '.' | '!' | '?'))
            .or_else(|| last(|c| is_pause(c) && c != ' '))
            .or_else(|| last(char::is_whitespace))
            .map_or(MOST, |place| place + 1);
        let (part, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        out.push(part);
        rest = after;
    }
    out.push(rest);
    out
}

impl Tts for Kokoro {
    fn name(&self) -> String {
        format!("kokoro: {}", self.voice)
    }

    fn synthesize(&self, spoken: &str, cancel: &CancellationToken) -> anyhow::Result<Utterance> {
        let _running = self.load.enter();
        let (phones, style) = self.read(spoken)?;
        let phones: Vec<(Phone, i64)> = phones
            .into_iter()
            .filter_map(|phone| Some((phone, *self.vocabulary.get(&phone.symbol)?)))
            .collect();
        if phones.iter().all(|(phone, _)| is_pause(phone.symbol)) {
            bail!("there is nothing to speak in this text");
        }
        let ms = |samples: usize| samples as f64 * 1000.0 / f64::from(RATE);
        let mut samples: Vec<f32> = Vec::new();
        let mut all = Vec::new();
        for part in split(&phones) {
            let (mut sound, mut part) = self.run(style, part, cancel)?;
            let cut = ms(audio::finish(&mut sound, RATE, GAIN, audio::tail_ms(spoken)));
            for timed in &mut part {
                timed.start_ms = (timed.start_ms - cut).max(0.0) + ms(samples.len());
                timed.end_ms = (timed.end_ms - cut).max(0.0) + ms(samples.len());
            }
            all.extend(part);
            samples.extend(sound);
        }
        let pcm = Pcm { rate: RATE, samples };
        Ok(Utterance { visemes: visemes::track(&all, &pcm), words: word_times(&all), pcm })
    }
}

#[cfg(test)]
#[path = "kokoro_tests.rs"]
mod tests;
