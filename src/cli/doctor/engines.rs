//! A self-test of each engine: is it quick enough here?
//!
//! The voice speaks a sentence, which the recogniser then has to understand, so that both are tested
//! on speech without a recording. Each test takes five seconds at most, beside loading the engine.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::{Check, State};
use crate::cli::Context;
use crate::config::{Home, Settings};
use crate::ears::smart_turn::SmartTurn;
use crate::ears::stt::moonshine::Moonshine;
use crate::ears::vad::Silero;
use crate::ears::{EndOfTurn, FRAME, RATE, Stt, Vad};
use crate::kernel::load::CoreLoad;
use crate::kernel::ports::Pcm;
use crate::kernel::resample::Resampler;
use crate::voice::Tts;
use crate::voice::kokoro::Kokoro;
use crate::voice::piper::Piper;

const LIMIT: Duration = Duration::from_secs(5);
const SENTENCE: &str = "The quick brown fox jumps over the lazy dog.";

/// A voice that can be tested: its name in the settings, and how it is opened.
type Voice = (&'static str, fn(&Home, &Settings) -> anyhow::Result<Box<dyn Tts>>);

const VOICES: [Voice; 2] = [
    ("piper", |home, settings| {
        let voice = &settings.voice;
        Ok(Box::new(Piper::open(home, voice.threads, voice.speed, CoreLoad::default())?))
    }),
    ("kokoro", |home, settings| {
        let (voice, load) = (&settings.voice, CoreLoad::default());
        Ok(Box::new(Kokoro::open(home, &voice.kokoro_voice, voice.threads, voice.speed, load)?))
    }),
];

/// Runs the tests one after another, so that none slows another, and gives each result at once.
pub(super) async fn run(
    context: &Context,
    mut report: impl FnMut(Check) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let settings = &context.settings;
    let mut speech = None;
    for (name, open) in VOICES {
        let (home, set) = (context.home.clone(), settings.clone());
        let got = blocking(move || speak(open, &home, &set)).await;
        report(check(name, settings.voice.engine == name, &got, |(_, speed)| *speed))?;
        if let Ok((pcm, _)) = got {
            speech.get_or_insert(pcm);
        }
    }
    let home = context.home.clone();
    let got = blocking(move || voice_activity(&home)).await;
    report(check("voice activity", settings.ears.enabled, &got, |speed| *speed))?;
    let home = context.home.clone();
    let got = blocking(move || end_of_turn(&home)).await;
    report(check("end of turn", settings.ears.smart_turn, &got, |speed| *speed))?;
    let got = match speech {
        Some(pcm) => recognise(&context.home, pcm).await,
        None => Err(anyhow::anyhow!("not tested: there is no voice to listen to")),
    };
    let embedded = settings.stt.engines.iter().any(|engine| engine == "moonshine");
    report(check("speech recognition", embedded, &got, |speed| *speed))?;
    #[cfg(feature = "local-llm")]
    report(language::check(context).await)?;
    Ok(())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await?
}

fn check<T>(what: &str, needed: bool, got: &anyhow::Result<T>, speed: impl Fn(&T) -> f64) -> Check {
    let got = match got {
        Ok(got) => got,
        Err(error) => {
            let state = if needed { State::Broken } else { State::Missing };
            return Check::new("engine", what, state, format!("{error:#}"), "");
        }
    };
    let speed = speed(got);
    let text = format!("real-time factor {speed:.3}");
    // An engine that is slower than speech can't keep up; it works all the same.
    let mut check = if speed < 1.0 {
        Check::good("engine", what, text)
    } else {
        let advice = "slower than speech: close other programmes, or set a quicker engine";
        Check::new("engine", what, State::Missing, text, advice)
    };
    check.real_time_factor = Some(speed);
    check
}

/// Seconds of work for a second of sound: the median of as many runs as fit into the limit.
fn measure(sound: Duration, mut work: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut runs = Vec::new();
    while runs.len() < 5 && (runs.is_empty() || began.elapsed() < LIMIT / 2) {
        let start = Instant::now();
        work()?;
        runs.push(start.elapsed());
    }
    runs.sort();
    let median = runs.get(runs.len() / 2).copied().unwrap_or_default();
    Ok(median.as_secs_f64() / sound.as_secs_f64().max(f64::EPSILON))
}

fn speak(
    open: fn(&Home, &Settings) -> anyhow::Result<Box<dyn Tts>>,
    home: &Home,
    settings: &Settings,
) -> anyhow::Result<(Pcm, f64)> {
    let voice = open(home, settings)?;
    let cancel = CancellationToken::new();
    let pcm = voice.synthesize(SENTENCE, &cancel)?.pcm;
    let sound = Duration::from_secs_f64(pcm.duration_ms() / 1000.0);
    let speed = measure(sound, || voice.synthesize(SENTENCE, &cancel).map(drop))?;
    Ok((pcm, speed))
}

/// Sound that is not silence; what it is does not change how long an engine computes.
fn hum(seconds: usize) -> Vec<f32> {
    (0..seconds * RATE as usize).map(|n| (n as f32 * 0.08).sin() * 0.2).collect()
}

fn voice_activity(home: &Home) -> anyhow::Result<f64> {
    let mut vad = Silero::open(home)?;
    let sound = hum(2);
    measure(Duration::from_secs(2), || {
        sound.as_chunks::<FRAME>().0.iter().try_for_each(|frame| vad.speech(frame).map(drop))
    })
}

fn end_of_turn(home: &Home) -> anyhow::Result<f64> {
    let mut model = SmartTurn::open(home, 0)?;
    let sound = hum(8);
    measure(Duration::from_secs(8), || model.complete(&sound).map(drop))
}

async fn recognise(home: &Home, speech: Pcm) -> anyhow::Result<f64> {
    let sound = Duration::from_secs_f64(speech.duration_ms() / 1000.0);
    let audio = Resampler::whole(&speech.samples, speech.rate, RATE)?;
    let home = home.clone();
    let engine = blocking(move || Moonshine::open(&home, 0, CoreLoad::default())).await?;
    let start = Instant::now();
    let listening = engine.transcribe(audio, CancellationToken::new());
    let heard = tokio::time::timeout(LIMIT, listening).await??;
    let text = heard.text.to_lowercase();
    let understood = ["quick", "brown", "fox", "lazy", "dog"]
        .iter()
        .filter(|word| text.contains(**word))
        .count();
    anyhow::ensure!(understood >= 3, "did not understand the voice's test sentence");
    Ok(start.elapsed().as_secs_f64() / sound.as_secs_f64().max(f64::EPSILON))
}

#[cfg(feature = "local-llm")]
mod language {
    use super::*;
    use crate::kernel::ports::{ChatDelta, ChatMessage, ChatModel, ChatRequest, Role};
    use crate::llm::embedded::Embedded;

    /// Loading half a gigabyte from a slow disk takes a while.
    const LOAD_LIMIT: Duration = Duration::from_secs(60);

    pub(super) async fn check(context: &Context) -> Check {
        let what = "language model";
        let settings = &context.settings.llm;
        match speed(&context.home, settings).await {
            Ok(speed) => {
                let mut check =
                    Check::good("engine", what, format!("embedded, {speed:.1} tokens/s"));
                check.tokens_per_s = Some(speed);
                check
            }
            Err(error) => {
                let needed = settings.model == "embedded";
                let state = if needed { State::Broken } else { State::Missing };
                Check::new("engine", what, state, format!("embedded: {error:#}"), "")
            }
        }
    }

    async fn speed(home: &Home, settings: &crate::config::settings::Llm) -> anyhow::Result<f64> {
        let model =
            Embedded::open(home, settings, CoreLoad::default()).map_err(anyhow::Error::msg)?;
        let message = |role, content: &str| ChatMessage { role, content: content.to_owned() };
        let messages = vec![
            message(Role::System, "You answer in short sentences."),
            message(Role::User, "Count from one to thirty in words."),
        ];
        tokio::time::timeout(LOAD_LIMIT, model.warm(messages.clone())).await?;
        let cancel = CancellationToken::new();
        let request = ChatRequest { messages, max_tokens: 64, temperature: 0.0 };
        let mut reply = model.chat(request, cancel.clone());
        let end = tokio::time::Instant::now() + LIMIT;
        let mut first = None;
        let mut last = Instant::now();
        let before = model.work().replied;
        while let Ok(Some(delta)) = tokio::time::timeout_at(end, reply.recv()).await {
            if let ChatDelta::Text(_) = delta? {
                last = Instant::now();
                first.get_or_insert(last);
            }
        }
        cancel.cancel();
        let tokens = model.work().replied.saturating_sub(before);
        let took = first.map(|first| last.duration_since(first)).unwrap_or_default();
        anyhow::ensure!(tokens > 1 && !took.is_zero(), "no reply within {LIMIT:?}");
        // The first token's wait is not counted, so nor is the token.
        Ok((tokens - 1) as f64 / took.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_fails_is_broken_only_where_it_is_needed() {
        let failed = || anyhow::Result::<f64>::Err(anyhow::anyhow!("no weights"));
        assert_eq!(check("x", true, &failed(), |s| *s).state, State::Broken);
        assert_eq!(check("x", false, &failed(), |s| *s).state, State::Missing);
        let quick = check("x", true, &Ok(0.25), |s| *s);
        assert_eq!((quick.state, quick.real_time_factor), (State::Good, Some(0.25)));
        assert_eq!(check("x", true, &Ok(1.5), |s| *s).state, State::Missing);
    }

    #[tokio::test]
    async fn the_voice_is_understood() {
        let Some(home) = crate::testing::weights("piper-joe", "en_US-joe-medium.onnx") else {
            return;
        };
        let Some((name, open)) = VOICES.first().copied() else { panic!("no voice") };
        let settings = Settings::default();
        let spoken = {
            let home = home.clone();
            blocking(move || speak(open, &home, &settings)).await
        };
        let (pcm, speed) = spoken.unwrap();
        assert!(speed > 0.0 && pcm.duration_ms() > 1_000.0, "{name}: {speed}");
        assert!(recognise(&home, pcm).await.unwrap() > 0.0);
    }
}
