//! The voice as a module: carries out what the [`Pipeline`] says, on the bus, on synthesis threads and
//! at the speaker.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Tts;
use super::pipeline::{Cutter, Input, Made, Output, Pipeline, Ready, Rules};
use super::segment::Segmenter;
use super::switch::{SpeakerSwitch, SwitchEvent, SwitchEvents};
use crate::config::settings;
use crate::kernel::bus::{Bus, Events};
use crate::kernel::clock::{BoxFuture, Clock};
use crate::kernel::contracts::{Event, Segment, VoiceCommand};
use crate::kernel::host::Module;
use crate::kernel::ids::{MediaId, SegmentId};
use crate::kernel::ports::{Feels, MediaStore, Speaker};

/// Jobs that run at the same time. An engine uses all its threads for one, so more would only delay
/// the first.
const WORKERS: usize = 2;

/// Jobs that were given up and still run; with so many the engine counts as hung.
const HUNG: usize = 6;

/// What the voice is made of.
pub struct VoiceParts {
    /// Look-ahead and volume.
    pub settings: settings::Voice,
    /// Where events come from and go to.
    pub bus: Bus,
    /// The engine; without one replies are text.
    pub tts: Option<Arc<dyn Tts>>,
    /// Where the sound goes; with no speaker in use replies are text.
    pub speaker: Arc<SpeakerSwitch>,
    /// Finds the feeling of each segment.
    pub feels: Arc<dyn Feels>,
    /// Keeps the sound for pages.
    pub media: Arc<dyn MediaStore>,
    /// Stamps and time-outs.
    pub clock: Arc<dyn Clock>,
    /// Makes a cutter for each reply: [`segmenter`].
    pub cutters: fn() -> Box<dyn Cutter>,
}

/// The cutter of the running voice.
pub fn segmenter() -> Box<dyn Cutter> {
    Box::<Segmenter>::default()
}

/// The module `voice`.
pub struct Speaking {
    parts: Option<VoiceParts>,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Speaking {
    /// A voice that is silent until the host starts it.
    pub fn new(parts: VoiceParts) -> Self {
        Self { parts: Some(parts), stop: CancellationToken::new(), task: None }
    }
}

impl Module for Speaking {
    fn name(&self) -> &'static str {
        "voice"
    }

    fn start<'a>(&'a mut self, bus: &'a Bus) -> BoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let parts = self.parts.take().context("the voice was started before")?;
            let speaker = parts.speaker.events().context("the speaker has another voice")?;
            let commands = bus.commands::<VoiceCommand>()?;
            let events = bus.subscribe("voice", wanted);
            parts.speaker.set_volume(parts.settings.volume);
            let runner = Runner::new(parts);
            self.task =
                Some(tokio::spawn(runner.run(events, commands, speaker, self.stop.clone())));
            Ok(())
        })
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.stop.cancel();
            if let Some(task) = self.task.take() {
                // A panic of the task was logged; there is nothing left to stop.
                let _ = task.await;
            }
        })
    }
}

fn wanted(event: &Event) -> bool {
    input(event).is_some()
}

/// What an event means to the pipeline.
fn input(event: &Event) -> Option<Input> {
    Some(match event {
        Event::TurnStarted { turn, user_text, draft, .. } => {
            Input::Started { turn: *turn, user_text: user_text.clone(), draft: *draft }
        }
        Event::TurnConfirmed { turn } => Input::Confirmed(*turn),
        Event::TurnDiscarded { turn } => Input::Discarded(*turn),
        Event::TokenEmitted { turn, delta } => Input::Token(*turn, delta.clone()),
        // A reply that broke off is spoken as far as it came.
        Event::ReplyGenerated { turn } | Event::TurnFailed { turn, .. } => Input::Generated(*turn),
        Event::Interrupted { turn, .. } => Input::Interrupted(*turn),
        _ => return None,
    })
}

struct Runner {
    bus: Bus,
    speaker: Arc<SpeakerSwitch>,
    feels: Arc<dyn Feels>,
    media: Arc<dyn MediaStore>,
    clock: Arc<dyn Clock>,
    pipeline: Pipeline,
    workers: Workers,
}

impl Runner {
    fn new(parts: VoiceParts) -> Self {
        let rules = Rules {
            voice: parts.tts.is_some() && parts.settings.enabled,
            look_ahead: parts.settings.look_ahead,
            ..Rules::default()
        };
        let cutters = parts.cutters;
        Self {
            bus: parts.bus,
            speaker: parts.speaker,
            feels: parts.feels,
            media: parts.media,
            clock: parts.clock,
            // The switch says at once what is in use.
            pipeline: Pipeline::new(rules, Box::new(cutters), false),
            workers: Workers::new(parts.tts),
        }
    }

    async fn run(
        mut self,
        mut events: Events,
        mut commands: mpsc::Receiver<VoiceCommand>,
        mut speaker: SwitchEvents,
        stop: CancellationToken,
    ) {
        let (done, mut results) = mpsc::unbounded_channel();
        self.workers.done = Some(done);
        loop {
            let wait = self.pipeline.next_deadline().map(|at| {
                let wait = Duration::from_secs_f64((at - self.clock.now_ms()).max(0.0) / 1000.0);
                self.clock.sleep(wait)
            });
            let tick = async {
                match wait {
                    Some(wait) => wait.await,
                    None => std::future::pending().await,
                }
            };
            // The speaker first: an interruption must find what was played up to it.
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                event = speaker.next() => match event {
                    Some(event) => self.heard(event),
                    None => break,
                },
                command = commands.recv() => match command {
                    Some(VoiceCommand::Duck(on)) => self.give(Input::Duck(on)),
                    Some(VoiceCommand::Volume(volume)) => self.speaker.set_volume(volume),
                    None => break,
                },
                event = events.next() => match event.as_deref() {
                    Some(envelope) => if let Some(input) = input(&envelope.event) {
                        self.give(input);
                    },
                    None => break,
                },
                Some((segment, result)) = results.recv() => {
                    self.workers.ended(segment);
                    self.give(Input::Synthesised(segment, result));
                }
                () = tick => self.give(Input::Tick),
            }
        }
        while let Some(event) = speaker.try_next() {
            self.heard(event);
        }
        self.give(Input::Interrupted(None));
        let _ = self.speaker.stop();
    }

    fn heard(&mut self, event: SwitchEvent) {
        self.give(match event {
            SwitchEvent::Speaker(event) => Input::Speaker(event),
            SwitchEvent::Changed { usable, heard } => Input::SpeakerChanged { usable, heard },
        });
    }

    fn give(&mut self, input: Input) {
        for output in self.pipeline.handle(input, self.clock.now_ms()) {
            match output {
                Output::Synthesise(segment, spoken) => self.workers.ask(segment, spoken),
                Output::Abandon(segment) => self.workers.abandon(segment),
                Output::Ready(ready) => self.announce(*ready),
                Output::Play(segment, pcm) => self.speaker.play(segment, pcm),
                Output::Stop(turn) => {
                    let heard = self.speaker.stop();
                    self.give(Input::Stopped(turn, heard));
                }
                Output::Silence => {
                    let _ = self.speaker.stop();
                }
                Output::Duck(on) => self.speaker.duck(on),
                Output::Publish(event) => self.bus.publish(event),
            }
        }
    }

    fn announce(&self, ready: Ready) {
        let Ready { id, piece, user_text, made } = ready;
        let feeling = self.feels.feel(&user_text, &piece.display, piece.tag);
        let segment = match made {
            Some(made) => Segment {
                id,
                feeling,
                duration_ms: made.pcm.duration_ms(),
                media: self.media.put(made.pcm),
                visemes: made.visemes,
                words: made.words,
                display: piece.display,
                spoken: piece.spoken,
            },
            None => Segment {
                id,
                feeling,
                duration_ms: 0.0,
                media: MediaId(String::new()),
                visemes: Vec::new(),
                words: Vec::new(),
                display: piece.display,
                spoken: piece.spoken,
            },
        };
        self.bus.publish(Event::SegmentReady(Arc::new(segment)));
    }
}

type Done = (SegmentId, Result<Made, String>);

/// Runs jobs on threads of their own, the first asked first. An engine that hangs in one job does not
/// hold up the next.
struct Workers {
    tts: Option<Arc<dyn Tts>>,
    done: Option<mpsc::UnboundedSender<Done>>,
    waiting: VecDeque<(SegmentId, String)>,
    running: HashMap<SegmentId, CancellationToken>,
    abandoned: usize,
}

impl Workers {
    fn new(tts: Option<Arc<dyn Tts>>) -> Self {
        Self { tts, done: None, waiting: VecDeque::new(), running: HashMap::new(), abandoned: 0 }
    }

    fn ask(&mut self, segment: SegmentId, spoken: String) {
        self.waiting.push_back((segment, spoken));
        self.fill();
    }

    fn abandon(&mut self, segment: SegmentId) {
        self.waiting.retain(|(waiting, _)| *waiting != segment);
        if let Some(cancel) = self.running.remove(&segment) {
            cancel.cancel();
            self.abandoned += 1;
        }
        self.fill();
    }

    fn ended(&mut self, segment: SegmentId) {
        if self.running.remove(&segment).is_none() {
            self.abandoned = self.abandoned.saturating_sub(1);
        }
        self.fill();
    }

    fn fill(&mut self) {
        while self.running.len() < WORKERS
            && let Some((segment, spoken)) = self.waiting.pop_front()
        {
            let (Some(tts), Some(done)) = (self.tts.clone(), self.done.clone()) else { return };
            let cancel = CancellationToken::new();
            self.running.insert(segment, cancel.clone());
            let failed = done.clone();
            let job = move || {
                let result = speak(tts.as_ref(), &spoken, &cancel);
                // The voice has stopped when nobody takes it.
                let _ = done.send((segment, result));
            };
            let spawned = if self.abandoned < HUNG {
                std::thread::Builder::new().name("synthesis".into()).spawn(job).err()
            } else {
                Some(std::io::Error::other("the voice engine hangs"))
            };
            if let Some(error) = spawned {
                let _ = failed.send((segment, Err(error.to_string())));
            }
        }
    }
}

fn speak(tts: &dyn Tts, spoken: &str, cancel: &CancellationToken) -> Result<Made, String> {
    match catch_unwind(AssertUnwindSafe(|| tts.synthesize(spoken, cancel))) {
        Ok(Ok(utterance)) => Ok(Made {
            pcm: Arc::new(utterance.pcm),
            visemes: utterance.visemes,
            words: utterance.words,
        }),
        Ok(Err(error)) => Err(format!("{error:#}")),
        Err(_) => Err("the voice engine failed".into()),
    }
}

#[cfg(test)]
#[path = "speaking_tests.rs"]
mod tests;
