//! Opens the engines that the settings name, and says what is used instead where one is missing.

use std::sync::Arc;

use crate::config::{Home, Settings};
use crate::ears::smart_turn::SmartTurn;
use crate::ears::vad::Silero;
use crate::ears::{EndOfTurn, Stt, Vad, stt};
use crate::kernel::contracts::{Event, Notice, NoticeLevel};
use crate::kernel::load::CoreLoad;
use crate::voice::{self, Tts};

/// Engines for hearing.
pub struct Hearing {
    /// Tells speech from other sound.
    pub vad: Box<dyn Vad>,
    /// Tells whether a speaker is done; without it a timer does.
    pub end_of_turn: Option<Box<dyn EndOfTurn>>,
    /// Turns speech into words.
    pub stt: Arc<dyn Stt>,
}

/// Tells the person something.
pub type Tell = Arc<dyn Fn(Event) + Send + Sync>;

/// A notice about an engine that is not as good as it could be.
fn notice(level: NoticeLevel, code: &'static str, text: String, hint: &str) -> Event {
    let hint = (!hint.is_empty()).then(|| hint.to_owned());
    Event::Notice(Notice { level, code, text, hint })
}

/// Opens what is needed to hear. `tell` gets what is missing but can be done without, and later what
/// happens to the recognisers.
///
/// # Errors
/// What can't be done without, one line.
pub fn hearing(
    settings: &Settings,
    home: &Home,
    load: &CoreLoad,
    tell: &Tell,
) -> anyhow::Result<Hearing> {
    let vad = Box::new(Silero::open_live(home)?);
    let stt = stt::open(&settings.stt, home, load.clone(), Arc::clone(tell))?;
    let end_of_turn: Option<Box<dyn EndOfTurn>> = if settings.ears.smart_turn {
        match SmartTurn::open(home, 1) {
            Ok(model) => Some(Box::new(model)),
            Err(error) => {
                tell(notice(
                    NoticeLevel::Warning,
                    "end_of_turn_timer",
                    format!("the end of a turn is found by a timer: {error:#}"),
                    "run `alice models pull smart-turn`",
                ));
                None
            }
        }
    } else {
        None
    };
    Ok(Hearing { vad, end_of_turn, stt })
}

/// An engine for speaking.
pub struct Speech {
    /// The engine.
    pub engine: Arc<dyn Tts>,
    /// What the person should know about it.
    pub notices: Vec<Event>,
}

/// Opens the voice of the settings, or the other one.
///
/// # Errors
/// When neither works, one line for each.
pub fn voice(settings: &Settings, home: &Home, load: CoreLoad) -> anyhow::Result<Speech> {
    let opened = voice::engines::open(&settings.voice, home, &load)?;
    let notices = opened
        .reason
        .into_iter()
        .map(|reason| notice(NoticeLevel::Warning, "voice_fallback", reason, ""))
        .collect();
    Ok(Speech { engine: opened.tts, notices })
}
