//! Composition root: builds the rooms in dependency order, joins them, stops them in reverse.
//!
//! [`Alice::start`] is the one place where a talk is put together; a [`Plan`] says which devices and
//! engines it gets. `alice run`, `chat`, `converse` and `bench` differ in their plan only.

pub mod devices;
pub mod engines;
pub mod timeline;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;

use crate::config::{Home, Settings};
use crate::ears::Source;
use crate::ears::echo::{LocalSource, echo_canceller};
use crate::ears::mic::Mic;
use crate::ears::runtime::{Ears, EarsParts};
use crate::face::Face;
use crate::kernel::bus::Bus;
use crate::kernel::clock::{Clock, SystemClock};
use crate::kernel::contracts::{
    EarsStats, Engines, Event, GetEarsStats, InterruptCause, Notice, NoticeLevel, TurnCommand,
    TurnSource,
};
use crate::kernel::host::Host;
use crate::kernel::ids::{SessionId, TurnId, TurnIds};
use crate::kernel::load::CoreLoad;
use crate::kernel::ports::{ChatModel, JournalEntry, RemoteDevices, Speaker};
use crate::llm;
use crate::logging::NOTICE;
use crate::mind::{Mind, MindParts};
use crate::persona::{Feelings, Persona};
use crate::server::{Address, Server, ServerParts};
use crate::store::transcript::{self, Transcript};
use crate::voice::Tts;
use crate::voice::media::MediaShelf;
use crate::voice::player::LocalSpeaker;
use crate::voice::segment::{Segmenter, SegmenterOptions};
use crate::voice::speaking::{Speaking, VoiceParts};
use crate::voice::switch::{SpeakerPort, SpeakerSwitch};

use devices::{Devices, PlayedSound};
use engines::{Hearing, Tell};

/// Sound of recent segments that pages can fetch, bytes.
const MEDIA_BYTES: usize = 64 << 20;

/// How long a reply that is being spoken may take to end when Alice stops.
const FAREWELL: Duration = Duration::from_millis(300);

/// Where Alice hears.
pub enum Input {
    /// Nowhere, unless a remote device connects.
    None,
    /// The microphone of the settings.
    Microphone,
    /// This source.
    Source(Box<dyn Source>),
}

/// Makes a speaker that reports to the port.
pub type MakeSpeaker = Box<dyn FnOnce(SpeakerPort, Arc<dyn Clock>) -> Arc<dyn Speaker> + Send>;

/// Where Alice is heard.
pub enum Output {
    /// Nowhere, unless a remote device connects.
    None,
    /// The output device of the settings.
    Local,
    /// This speaker.
    Speaker(MakeSpeaker),
}

/// Which talk to put together.
pub struct Plan {
    /// Where she hears.
    pub input: Input,
    /// Where she is heard.
    pub output: Output,
    /// Serve the page and the API.
    pub server: bool,
    /// Load the engines for hearing and speaking at all, for `input`, `output` or remote devices.
    pub sound: bool,
    /// Go on with this session.
    pub resume: Option<SessionId>,
    /// The clock to use.
    pub clock: Option<Arc<dyn Clock>>,
    /// This language model instead of the one of the settings.
    pub model: Option<Arc<dyn ChatModel>>,
    /// This synthesis engine.
    pub tts: Option<Arc<dyn Tts>>,
    /// These engines for hearing.
    pub hearing: Option<Hearing>,
    /// Gets every event from the first on, before anything happens.
    pub watch: Option<Watch>,
}

/// Looks at events as they are published, in order.
pub type Watch = Box<dyn Fn(&crate::kernel::contracts::Envelope) + Send + Sync>;

impl Plan {
    /// Text only: no device, no engine for sound, no server.
    pub fn text() -> Self {
        Self {
            input: Input::None,
            output: Output::None,
            server: false,
            sound: false,
            resume: None,
            clock: None,
            model: None,
            tts: None,
            hearing: None,
            watch: None,
        }
    }

    /// Everything: microphone, speaker, page.
    pub fn full() -> Self {
        Self {
            input: Input::Microphone,
            output: Output::Local,
            server: true,
            sound: true,
            ..Self::text()
        }
    }
}

/// A running Alice.
pub struct Alice {
    bus: Bus,
    host: Host,
    turn_ids: Arc<TurnIds>,
    address: Option<Address>,
    engines: Arc<Mutex<Engines>>,
    model_line: String,
    devices: Arc<Devices>,
}

impl Alice {
    /// Puts a talk together and starts it.
    ///
    /// # Errors
    /// What keeps her from starting at all: a session that another Alice writes, a taken port. A
    /// missing engine or device is a notice, not an error.
    pub async fn start(home: Home, settings: Settings, plan: Plan) -> anyhow::Result<Self> {
        home.create().with_context(|| format!("can't make {}", home.root().display()))?;
        let clock = plan.clock.unwrap_or_else(|| Arc::new(SystemClock::default()));
        let session = plan.resume.clone().unwrap_or_else(SessionId::fresh);
        let bus = Bus::new(Arc::clone(&clock), session.clone());
        if let Some(watch) = plan.watch {
            drop(bus.on(
                "watch",
                |_| true,
                move |event| {
                    watch(&event);
                    async {}
                },
            ));
        }
        let engines: Arc<Mutex<Engines>> = Arc::default();
        let tell: Tell = {
            let (bus, engines) = (bus.clone(), Arc::clone(&engines));
            Arc::new(move |event| bus.publish(completed(event, &engines)))
        };
        drop(bus.on(
            "log",
            |event| matches!(event, Event::Notice(_)),
            |event| async move {
                if let Event::Notice(notice) = &event.event {
                    log(notice);
                }
            },
        ));
        let load = CoreLoad::default();
        let resumed = resumed(&home, plan.resume.as_ref(), &tell)?;
        let last = resumed.iter().map(|entry| entry.turn).max();
        let turn_ids = Arc::new(last.map_or_else(TurnIds::default, TurnIds::after));
        let journal = Arc::new(Transcript::open(&home.sessions(), &session, bus.clone())?);

        let senses = open_senses(
            &home,
            &settings,
            plan.sound,
            plan.hearing,
            plan.tts,
            load.clone(),
            Arc::clone(&tell),
        );
        let (senses, chosen) = tokio::join!(senses, async {
            match plan.model {
                Some(model) => llm::Chosen { line: model.name(), model, problems: Vec::new() },
                None => llm::choose(&settings, &home, load.clone(), Arc::clone(&tell)).await,
            }
        });
        let Senses { hearing, tts } = senses?;
        for problem in chosen.problems {
            tell(warning("llm_problem", problem, None));
        }
        *lock(&engines) = Engines {
            llm: Some(chosen.model.name()),
            stt: hearing.as_ref().map(|hearing| hearing.stt.name()),
            tts: tts.as_ref().map(|tts| tts.name()),
            end_of_turn: hearing.as_ref().map(|hearing| {
                if hearing.end_of_turn.is_some() { "smart-turn" } else { "timer" }.to_owned()
            }),
        };

        let mut host = Host::default();
        let switch = Arc::new(SpeakerSwitch::default());
        let media = Arc::new(MediaShelf::new(MEDIA_BYTES));
        let feels = {
            let model = Arc::clone(&chosen.model);
            Arc::new(Feelings::new(move || model.tags_feelings()))
        };
        host.add(Speaking::new(VoiceParts {
            settings: settings.voice.clone(),
            bus: bus.clone(),
            tts: tts.clone(),
            speaker: Arc::clone(&switch),
            feels,
            media: media.clone(),
            clock: Arc::clone(&clock),
            cutters: || Box::new(Segmenter::new(SegmenterOptions::default())),
        }));
        let persona = Arc::new(Persona::new(settings.persona.clone(), home.prompts()));
        host.add(Mind::new(MindParts {
            model: Arc::clone(&chosen.model),
            journal,
            prompt: persona,
            settings: settings.llm.clone(),
            resumed,
            voice_present: true,
        }));

        let echo = Arc::new(PlayedSound::default());
        let open_microphone = {
            let wanted = matches!(plan.input, Input::Microphone) && settings.ears.enabled;
            let (settings, clock) = (settings.ears.clone(), Arc::clone(&clock));
            let (echo, tell) = (Arc::clone(&echo), Arc::clone(&tell));
            move || {
                let opened = wanted.then(|| microphone(&settings, &clock, &echo))?;
                let deaf = |error| {
                    let text = format!("the microphone can't be opened: {error:#}");
                    tell(warning("mic_failed", text, Some("run `alice doctor`".into())));
                };
                opened.map_err(deaf).ok()
            }
        };
        let ears = hearing.map(|hearing| {
            Ears::new(EarsParts {
                settings: settings.ears.clone(),
                source: match plan.input {
                    Input::Source(source) => Some(source),
                    Input::None | Input::Microphone => open_microphone(),
                },
                vad: hearing.vad,
                end_of_turn: hearing.end_of_turn,
                stt: hearing.stt,
                stt_timeout: Duration::from_secs_f64(settings.stt.timeout_s),
                load: load.clone(),
                turn_ids: Arc::clone(&turn_ids),
            })
        });
        let port = switch.port();
        let speaker: Option<Arc<dyn Speaker>> = match plan.output {
            Output::None => None,
            Output::Local if tts.is_none() || settings.voice.device == "none" => None,
            Output::Local => {
                Some(LocalSpeaker::open(&settings.voice.device, Some(echo), port.clone())?)
            }
            Output::Speaker(make) => Some(make(port.clone(), Arc::clone(&clock))),
        };
        let devices = Devices::new(
            ears.as_ref().map(Ears::control),
            switch,
            Arc::clone(&clock),
            Box::new(open_microphone),
            speaker.map(|speaker| (port, speaker)),
            Arc::clone(&tell),
        );
        if let Some(ears) = ears {
            host.add(ears);
        }
        let mut address = None;
        if plan.server {
            let server = Server::new(ServerParts {
                settings: settings.clone(),
                home: home.clone(),
                turn_ids: Arc::clone(&turn_ids),
                media,
                remote: Arc::clone(&devices) as Arc<dyn RemoteDevices>,
                timeline: Box::new(Face::default()),
            });
            address = Some(server.address());
            host.add(server);
        }
        host.start(&bus).await?;
        bus.start();
        bus.publish(Event::Engines(lock(&engines).clone()));
        Ok(Self { bus, host, turn_ids, address, engines, model_line: chosen.line, devices })
    }

    /// The bus, for events.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Which engines are in use.
    pub fn engines(&self) -> Engines {
        lock(&self.engines).clone()
    }

    /// Which language model was chosen and why, one line.
    pub fn model_line(&self) -> &str {
        &self.model_line
    }

    /// Where the server listens, when there is one.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address.as_ref()?.get()
    }

    /// What to type into a browser, when there is a server.
    pub fn url(&self) -> Option<String> {
        self.address.as_ref()?.url()
    }

    /// Begins a typed turn.
    ///
    /// # Errors
    /// When the mind does not take it.
    pub fn type_in(&self, text: &str, source: TurnSource) -> anyhow::Result<TurnId> {
        let turn = self.turn_ids.next();
        let text = text.to_owned();
        self.bus.send(TurnCommand::Begin { turn, text, source, draft: false })?;
        Ok(turn)
    }

    /// Stops what is being said and thought.
    pub fn interrupt(&self) {
        self.bus.publish(Event::Interrupted { turn: None, cause: InterruptCause::Request });
    }

    /// What the ears counted; zeros without ears.
    pub async fn speculation(&self) -> EarsStats {
        self.bus.request(GetEarsStats).await.unwrap_or_default()
    }

    /// Ends what is being said, writes what is to be kept, and stops the rooms.
    pub async fn stop(mut self) {
        self.devices.close();
        self.bus.publish(Event::Interrupted { turn: None, cause: InterruptCause::Shutdown });
        // Only a reply that sounds needs time: for its fade, and for the history to be written.
        if self.engines().tts.is_some() {
            self.bus.clock().sleep(FAREWELL).await;
        }
        self.host.stop().await;
    }
}

fn lock(engines: &Mutex<Engines>) -> MutexGuard<'_, Engines> {
    engines.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A room tells of its own engine only; those who watch get all of them.
fn completed(event: Event, engines: &Mutex<Engines>) -> Event {
    let Event::Engines(news) = event else { return event };
    let mut all = lock(engines);
    all.llm = news.llm.or(all.llm.take());
    all.stt = news.stt.or(all.stt.take());
    all.tts = news.tts.or(all.tts.take());
    all.end_of_turn = news.end_of_turn.or(all.end_of_turn.take());
    Event::Engines(all.clone())
}

/// Opens the microphone of this machine, with the echo of its speaker removed if that is wanted.
fn microphone(
    settings: &crate::config::settings::Ears,
    clock: &Arc<dyn Clock>,
    echo: &PlayedSound,
) -> anyhow::Result<Box<dyn Source>> {
    let microphone = Mic::open(&settings.device, Arc::clone(clock))?;
    if !settings.echo_cancel {
        echo.hear(None);
        return Ok(Box::new(microphone));
    }
    let (reference, canceller) = echo_canceller(Arc::clone(clock));
    echo.hear(Some(reference));
    Ok(Box::new(LocalSource::new(microphone, canceller)))
}

/// Engines for hearing and speaking, as far as they are there.
struct Senses {
    hearing: Option<Hearing>,
    tts: Option<Arc<dyn Tts>>,
}

/// Opens the engines on threads that may block. What can't be opened is told and done without.
async fn open_senses(
    home: &Home,
    settings: &Settings,
    sound: bool,
    hearing: Option<Hearing>,
    tts: Option<Arc<dyn Tts>>,
    load: CoreLoad,
    tell: Tell,
) -> anyhow::Result<Senses> {
    let (home, settings) = (home.clone(), settings.clone());
    let open = move || {
        let hearing = hearing.or_else(|| {
            let opened = sound.then(|| engines::hearing(&settings, &home, &load, &tell))?;
            opened
                .map_err(|error| {
                    tell(warning("deaf", format!("Alice can't hear: {error:#}"), None))
                })
                .ok()
        });
        let tts = tts.or_else(|| {
            let wanted = sound && settings.voice.enabled;
            let opened = wanted.then(|| engines::voice(&settings, &home, load.clone()))?;
            match opened {
                Ok(speech) => {
                    speech.notices.into_iter().for_each(|notice| tell(notice));
                    Some(speech.engine)
                }
                Err(error) => {
                    let text = format!("Alice can't speak, replies are text: {error:#}");
                    tell(warning("mute", text, None));
                    None
                }
            }
        });
        Senses { hearing, tts }
    };
    tokio::task::spawn_blocking(open).await.context("opening the engines failed")
}

/// The entries of a session that is resumed.
fn resumed(
    home: &Home,
    session: Option<&SessionId>,
    tell: &Tell,
) -> anyhow::Result<Vec<JournalEntry>> {
    let Some(session) = session else { return Ok(Vec::new()) };
    let path = transcript::path(&home.sessions(), session);
    let read = transcript::read(&path)
        .with_context(|| format!("session `{session}` can't be read ({})", path.display()))?;
    if !read.skipped.is_empty() {
        let lines: Vec<_> = read.skipped.iter().map(usize::to_string).collect();
        let text = format!(
            "the transcript `{}` is damaged: line {} can't be read and is skipped; the rest is there",
            path.display(),
            lines.join(", ")
        );
        tell(warning("transcript_damaged", text, None));
    }
    Ok(read.lines.into_iter().map(|line| line.entry).collect())
}

fn warning(code: &'static str, text: String, hint: Option<String>) -> Event {
    Event::Notice(Notice { level: NoticeLevel::Warning, code, text, hint })
}

fn log(notice: &Notice) {
    let hint = notice.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    match notice.level {
        NoticeLevel::Info => {
            tracing::info!(target: NOTICE, code = notice.code, "{}{hint}", notice.text);
        }
        NoticeLevel::Warning => {
            tracing::warn!(target: NOTICE, code = notice.code, "{}{hint}", notice.text);
        }
        NoticeLevel::Error => {
            tracing::error!(target: NOTICE, code = notice.code, "{}{hint}", notice.text);
        }
    }
}

/// Lets this process open as many files as it may: each viewer is one.
pub fn raise_file_limit() {
    if let Ok((soft, hard)) = rlimit::Resource::NOFILE.get()
        && soft < hard
        && let Err(error) = rlimit::Resource::NOFILE.set(hard, hard)
    {
        tracing::warn!(%error, soft, "the limit of open files can't be raised");
    }
}
