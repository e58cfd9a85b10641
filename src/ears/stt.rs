//! Speech recognition: engines, their order, and what keeps invented text out.

pub mod chain;
pub mod guard;
pub mod moonshine;
pub mod remote;
#[cfg(test)]
pub(crate) mod wer;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};

use self::chain::{Chain, Tell};
use self::moonshine::Moonshine;
use self::remote::Remote;
use super::Stt;
use crate::config::Home;
use crate::config::settings;
use crate::kernel::clock::SystemClock;
use crate::kernel::contracts::{Event, Notice, NoticeLevel};
use crate::kernel::load::CoreLoad;

/// Name of the embedded engine in the settings.
const EMBEDDED: &str = "moonshine";

/// More threads than this do not make the embedded engine faster: its matrices are small.
const MOST_THREADS: usize = 4;

/// Opens the engines of the settings, in their order, as one. An engine that can't be opened is told
/// and left out. Loads weights, so it blocks for about half a second.
///
/// # Errors
/// One line that says what to do, when no engine can be opened.
pub fn open(
    settings: &settings::Stt,
    home: &Home,
    load: CoreLoad,
    tell: Tell,
) -> anyhow::Result<Arc<dyn Stt>> {
    let warn = |code, text, hint| {
        (tell)(Event::Notice(Notice { level: NoticeLevel::Warning, code, text, hint }));
    };
    // The engines share the time, so that the next one still has some when one hangs.
    let shares = settings.engines.len().max(1) as f64;
    let timeout = Duration::try_from_secs_f64(settings.timeout_s / shares)
        .context("`stt.timeout_s` is not a time")?;
    let mut engines: Vec<Arc<dyn Stt>> = Vec::new();
    let mut reasons = Vec::new();
    for name in &settings.engines {
        let engine = if name == EMBEDDED {
            moonshine(home, load.clone())
        } else {
            remote(name, settings, timeout)
        };
        match engine {
            Ok(engine) => {
                if name == EMBEDDED && !matches!(settings.language.as_str(), "" | "en") {
                    let language = &settings.language;
                    warn(
                        "stt_language",
                        format!("`{EMBEDDED}` understands English only, not `{language}`"),
                        Some("name a transcription server first in `stt.engines`".into()),
                    );
                }
                engines.push(engine);
            }
            Err(error) => reasons.push(format!("{error:#}")),
        }
    }
    if engines.is_empty() {
        if reasons.is_empty() {
            bail!("there is no speech recogniser: name one in `stt.engines`");
        }
        bail!("there is no speech recogniser: {}", reasons.join("; "));
    }
    for reason in reasons {
        warn("stt_left_out", reason, None);
    }
    Ok(Arc::new(Chain::new(engines, Arc::new(SystemClock::default()), tell)))
}

fn moonshine(home: &Home, load: CoreLoad) -> anyhow::Result<Arc<dyn Stt>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Arc::new(Moonshine::open(home, cores.min(MOST_THREADS), load)?))
}

fn remote(name: &str, settings: &settings::Stt, timeout: Duration) -> anyhow::Result<Arc<dyn Stt>> {
    let provider = settings
        .providers
        .get(name)
        .with_context(|| format!("`stt.providers.{name}` is not set: set its `base_url`"))?;
    Ok(Arc::new(Remote::new(name, provider, &settings.language, timeout)?))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::config::settings::SttProvider;

    fn settings(engines: &[&str]) -> settings::Stt {
        let provider = SttProvider {
            base_url: "http://127.0.0.1:1/v1".into(),
            model: "whisper".into(),
            ..Default::default()
        };
        settings::Stt {
            engines: engines.iter().map(|&name| name.into()).collect(),
            providers: [
                ("zoo".to_owned(), provider.clone()),
                ("bare".to_owned(), SttProvider { model: String::new(), ..provider }),
            ]
            .into(),
            ..Default::default()
        }
    }

    /// The name of what was opened, or the error; and the codes of what was told.
    fn opened(settings: &settings::Stt) -> (Result<String, String>, Vec<&'static str>) {
        let told = Arc::<Mutex<Vec<&'static str>>>::default();
        let log = Arc::clone(&told);
        let tell: Tell = Arc::new(move |event| {
            if let Event::Notice(notice) = event {
                log.lock().unwrap().push(notice.code);
            }
        });
        let home = Home::at("no-such-home");
        let engine = open(settings, &home, CoreLoad::default(), tell);
        let name = engine.map(|engine| engine.name()).map_err(|error| format!("{error:#}"));
        let told = told.lock().unwrap().clone();
        (name, told)
    }

    #[test]
    fn what_cannot_be_opened_is_told_and_left_out() {
        assert_eq!(opened(&settings(&["zoo"])), (Ok("zoo: whisper".into()), vec![]));
        let (name, told) = opened(&settings(&["bare", "zoo"]));
        assert_eq!((name.unwrap().as_str(), told), ("zoo: whisper", vec!["stt_left_out"]));
    }

    #[test]
    fn without_any_engine_the_line_says_what_to_do() {
        let (name, told) = opened(&settings(&["bare"]));
        let line = "there is no speech recogniser: no model is set for `bare`: set \
                    `stt.providers.bare.model`";
        assert_eq!((name.unwrap_err().as_str(), told), (line, vec![]));
    }

    #[test]
    fn another_language_than_english_is_not_for_the_embedded_engine() {
        if crate::testing::weights(moonshine::MODEL, "encoder_model.onnx").is_none() {
            return;
        }
        let german = settings::Stt { language: "de".into(), ..settings(&["moonshine"]) };
        assert_eq!(opened(&german), (Ok(moonshine::MODEL.into()), vec!["stt_language"]));
        assert_eq!(opened(&settings(&["moonshine"])).1, Vec::<&str>::new());
    }
}
