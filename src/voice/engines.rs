//! The voice in use: the chosen engine, and the other one where it fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use super::kokoro::Kokoro;
use super::piper::Piper;
use super::{Tts, Utterance};
use crate::config::Home;
use crate::config::settings::Voice;
use crate::kernel::load::CoreLoad;

/// The names of `voice.engine`.
const NAMES: [&str; 2] = ["piper", "kokoro"];

/// An opened voice.
pub struct Opened {
    /// The voice. It fails over to the other engine call by call.
    pub tts: Arc<dyn Tts>,
    /// Why it is not the chosen engine, in one line, when it is not.
    pub reason: Option<String>,
}

/// Opens the engine that the settings name; when that fails, the other one. Blocks for a second or
/// two: engines are warmed.
///
/// # Errors
/// One line, when neither can be opened.
pub fn open(settings: &Voice, home: &Home, load: &CoreLoad) -> anyhow::Result<Opened> {
    let chosen = settings.engine.trim().to_ascii_lowercase();
    let Some(other) = NAMES.iter().find(|name| **name != chosen) else {
        anyhow::bail!("there is no engine")
    };
    if !NAMES.contains(&chosen.as_str()) {
        anyhow::bail!("`voice.engine` is `{chosen}`: set it to `piper` or `kokoro`");
    }
    let make: Maker = {
        let (settings, home, load) = (settings.clone(), home.clone(), load.clone());
        Box::new(move |name| open_one(name, &settings, &home, &load))
    };
    with_stand_in(&chosen, other, make)
}

/// Opens an engine by name.
type Maker = Box<dyn Fn(&str) -> anyhow::Result<Arc<dyn Tts>> + Send + Sync>;

fn open_one(
    name: &str,
    settings: &Voice,
    home: &Home,
    load: &CoreLoad,
) -> anyhow::Result<Arc<dyn Tts>> {
    let (threads, speed) = (settings.threads, settings.speed);
    Ok(match name {
        "kokoro" => {
            Arc::new(Kokoro::open(home, &settings.kokoro_voice, threads, speed, load.clone())?)
        }
        _ => Arc::new(Piper::open(home, threads, speed, load.clone())?),
    })
}

fn with_stand_in(chosen: &str, other: &str, make: Maker) -> anyhow::Result<Opened> {
    match make(chosen) {
        Ok(first) => Ok(Opened {
            tts: Arc::new(FailOver {
                first,
                other: other.to_owned(),
                make,
                second: OnceLock::new(),
                standing_in: AtomicBool::new(false),
            }),
            reason: None,
        }),
        Err(why) => match make(other) {
            Ok(tts) => Ok(Opened {
                reason: Some(format!("{chosen} can't speak ({why:#}); {} speaks", tts.name())),
                tts,
            }),
            Err(also) => Err(anyhow::anyhow!("no voice: {chosen}: {why:#}; {other}: {also:#}")),
        },
    }
}

/// An engine, and another one that is opened when the first one fails.
struct FailOver {
    first: Arc<dyn Tts>,
    other: String,
    make: Maker,
    second: OnceLock<Option<Arc<dyn Tts>>>,
    standing_in: AtomicBool,
}

impl Tts for FailOver {
    fn name(&self) -> String {
        match self.second.get() {
            Some(Some(second)) if self.standing_in.load(Ordering::Relaxed) => second.name(),
            _ => self.first.name(),
        }
    }

    fn synthesize(&self, spoken: &str, cancel: &CancellationToken) -> anyhow::Result<Utterance> {
        let why = match self.first.synthesize(spoken, cancel) {
            Ok(made) => {
                self.standing_in.store(false, Ordering::Relaxed);
                return Ok(made);
            }
            Err(why) => why,
        };
        if cancel.is_cancelled() {
            return Err(why);
        }
        let second = self.second.get_or_init(|| match (self.make)(&self.other) {
            Ok(second) => Some(second),
            Err(error) => {
                tracing::warn!("the other voice can't be opened: {error:#}");
                None
            }
        });
        let Some(second) = second else { return Err(why) };
        match second.synthesize(spoken, cancel) {
            Ok(made) => {
                if !self.standing_in.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        "{} does not speak this ({why:#}); {} does",
                        self.first.name(),
                        second.name()
                    );
                }
                Ok(made)
            }
            // What the chosen voice said of the text is what matters to the person.
            Err(_) => Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ports::Pcm;

    struct Fake(&'static str, bool);
    impl Tts for Fake {
        fn name(&self) -> String {
            self.0.into()
        }
        fn synthesize(&self, _: &str, _: &CancellationToken) -> anyhow::Result<Utterance> {
            anyhow::ensure!(self.1, "{} is broken", self.0);
            let pcm = Pcm { rate: 16_000, samples: vec![0.1] };
            Ok(Utterance { pcm, visemes: Vec::new(), words: Vec::new() })
        }
    }

    /// What each engine does: `None` can't be opened, else whether it speaks.
    fn opened(piper: Option<bool>, kokoro: Option<bool>) -> anyhow::Result<Opened> {
        let make = move |name: &str| -> anyhow::Result<Arc<dyn Tts>> {
            let (name, speaks) =
                if name == "piper" { ("piper", piper) } else { ("kokoro", kokoro) };
            let speaks = speaks.ok_or_else(|| anyhow::anyhow!("no weights of {name}"))?;
            Ok(Arc::new(Fake(name, speaks)))
        };
        with_stand_in("piper", "kokoro", Box::new(make))
    }

    fn speak(tts: &dyn Tts) -> anyhow::Result<Utterance> {
        tts.synthesize("Hello.", &CancellationToken::new())
    }

    #[test]
    fn the_other_engine_stands_in() {
        let both = opened(Some(true), Some(true)).unwrap();
        assert!(both.reason.is_none() && speak(&*both.tts).is_ok());
        assert_eq!(both.tts.name(), "piper");

        let missing = opened(None, Some(true)).unwrap();
        assert_eq!(missing.tts.name(), "kokoro");
        let reason = missing.reason.unwrap();
        assert_eq!(reason, "piper can't speak (no weights of piper); kokoro speaks");

        let broken = opened(Some(false), Some(true)).unwrap();
        assert!(broken.reason.is_none() && speak(&*broken.tts).is_ok());
        assert_eq!(broken.tts.name(), "kokoro", "the one that speaks is named");

        let none = opened(Some(false), None).unwrap();
        assert_eq!(speak(&*none.tts).unwrap_err().to_string(), "piper is broken");
        assert!(opened(None, None).is_err());
    }

    #[test]
    fn an_unknown_engine_is_named() {
        let settings = Voice { engine: "festival".into(), ..Voice::default() };
        let error = open(&settings, &Home::at("/nonexistent"), &CoreLoad::default()).err().unwrap();
        assert!(error.to_string().contains("`festival`"));
    }
}
