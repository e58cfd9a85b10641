use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::kernel::clock::FakeClock;
use crate::kernel::contracts::{Emotion, Feeling, Heard, InterruptCause, TurnSource};
use crate::kernel::host::Host;
use crate::kernel::ids::{SessionId, TurnId};
use crate::kernel::ports::Pcm;
use crate::voice::media::MediaShelf;
use crate::voice::silent::SilentSpeaker;
use crate::voice::{Piece, Utterance};

/// Every `|` ends a piece.
#[derive(Default)]
struct Bars(String);

impl Cutter for Bars {
    fn push(&mut self, delta: &str) -> Vec<Piece> {
        self.0.push_str(delta);
        let mut pieces = Vec::new();
        while let Some((text, rest)) = self.0.split_once('|') {
            pieces.push(Piece { display: text.into(), spoken: text.into(), tag: None });
            self.0 = rest.to_owned();
        }
        pieces
    }

    fn finish(&mut self) -> Vec<Piece> {
        let text = std::mem::take(&mut self.0);
        (!text.is_empty())
            .then(|| Piece { display: text.clone(), spoken: text, tag: None })
            .into_iter()
            .collect()
    }
}

/// 100 ms of sound for each letter; `bad` fails, `panic` panics, `hang` waits for its cancellation.
#[derive(Default)]
struct Letters {
    asked: AtomicUsize,
    cancelled: AtomicUsize,
}

impl Tts for Letters {
    fn name(&self) -> String {
        "letters".into()
    }

    fn synthesize(&self, spoken: &str, cancel: &CancellationToken) -> anyhow::Result<Utterance> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match spoken {
            "bad" => anyhow::bail!("cannot say it"),
            "panic" => panic!("engine bug"),
            "hang" => {
                while !cancel.is_cancelled() {
                    std::thread::yield_now();
                }
                self.cancelled.fetch_add(1, Ordering::SeqCst);
                anyhow::bail!("cancelled")
            }
            _ => Ok(Utterance {
                pcm: Pcm { rate: 1000, samples: vec![0.5; spoken.len() * 100] },
                visemes: Vec::new(),
                words: Vec::new(),
            }),
        }
    }
}

struct Glad;

impl Feels for Glad {
    fn feel(&self, user_text: &str, _: &str, _: Option<Feeling>) -> Feeling {
        assert_eq!(user_text, "hello");
        Feeling { emotion: Emotion::Happy, intensity: 1.0 }
    }
}

struct Stage {
    clock: Arc<FakeClock>,
    bus: Bus,
    host: Host,
    tts: Arc<Letters>,
    media: Arc<MediaShelf>,
    speaker: Arc<SpeakerSwitch>,
    seen: Arc<Mutex<Vec<Event>>>,
}

impl Stage {
    async fn set() -> Self {
        let clock = FakeClock::shared();
        let bus = Bus::new(clock.clone(), SessionId::fresh());
        let (tts, media, speaker) = (Arc::<Letters>::default(), Arc::default(), Arc::default());
        let seen: Arc<Mutex<Vec<Event>>> = Arc::default();
        let into = seen.clone();
        bus.on(
            "test",
            |_| true,
            move |event| {
                into.lock().unwrap().push(event.event.clone());
                async {}
            },
        );
        let mut stage = Self { clock, bus, host: Host::default(), tts, media, speaker, seen };
        let port = stage.speaker.port();
        let silent = SilentSpeaker::new(port.clone(), stage.clock.clone());
        stage.speaker.use_speaker(&port, silent);
        stage.host.add(Speaking::new(VoiceParts {
            settings: settings::Voice::default(),
            bus: stage.bus.clone(),
            tts: Some(stage.tts.clone()),
            speaker: stage.speaker.clone(),
            feels: Arc::new(Glad),
            media: stage.media.clone(),
            clock: stage.clock.clone(),
            cutters: || Box::<Bars>::default(),
        }));
        stage.host.start(&stage.bus).await.unwrap();
        stage.bus.start();
        stage
    }

    fn begin(&self, turn: u64, draft: bool) {
        let turn = TurnId(turn);
        let source = TurnSource::Page;
        self.bus.publish(Event::TurnStarted { turn, source, user_text: "hello".into(), draft });
    }

    fn say(&self, turn: u64, text: &str) {
        self.bus.publish(Event::TokenEmitted { turn: TurnId(turn), delta: text.into() });
    }

    fn whole(&self, turn: u64) {
        self.bus.publish(Event::ReplyGenerated { turn: TurnId(turn) });
    }

    /// Lets time pass until an event fits: at most ten times as fast as it does, because the threads of
    /// the engine run in real time and must not seem to hang.
    async fn until(&self, step_ms: u64, fits: impl Fn(&Event) -> bool) -> Event {
        let (real, mut passed) = (std::time::Instant::now(), Duration::ZERO);
        while real.elapsed() < Duration::from_secs(20) {
            if let Some(event) = self.seen.lock().unwrap().iter().find(|e| fits(e)) {
                return event.clone();
            }
            tokio::task::yield_now().await;
            if real.elapsed() >= passed / 10 {
                passed += Duration::from_millis(step_ms);
                self.clock.advance(Duration::from_millis(step_ms));
            }
        }
        panic!("it never came; seen: {:#?}", self.seen.lock().unwrap());
    }

    async fn ended(&self, turn: u64) -> Heard {
        let fits =
            |event: &Event| matches!(event, Event::SpeakingEnded { turn: t, .. } if t.0 == turn);
        match self.until(1, fits).await {
            Event::SpeakingEnded { heard, .. } => heard,
            _ => unreachable!(),
        }
    }
}

#[tokio::test]
async fn a_reply_goes_from_tokens_to_what_was_heard() {
    let mut stage = Stage::set().await;
    stage.begin(1, false);
    for delta in ["Hi th", "ere.|How", " are|bad|pan", "ic|you?"] {
        stage.say(1, delta);
    }
    stage.whole(1);
    let heard = stage.ended(1).await;
    assert_eq!(heard, Heard { text: "Hi there. How are bad panic you?".into(), complete: true });
    stage.host.stop().await;

    let seen = stage.seen.lock().unwrap();
    let ready: Vec<_> = seen
        .iter()
        .filter_map(|event| match event {
            Event::SegmentReady(segment) => Some(segment.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ready.iter().map(|s| s.id.index).collect::<Vec<_>>(), [0, 1, 4]);
    assert_eq!(ready[0].duration_ms, 900.0);
    assert_eq!(ready[0].feeling.emotion, Emotion::Happy);
    assert_eq!(stage.media.get(&ready[0].media).unwrap().samples.len(), 900);
    let skipped: Vec<_> = seen
        .iter()
        .filter_map(|event| match event {
            Event::SegmentSkipped { segment, display, reason } => {
                Some((segment.index, display.as_str(), reason.as_str()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(skipped, [(2, "bad", "cannot say it"), (3, "panic", "the voice engine failed")]);
    let ends = seen.iter().filter(|e| matches!(e, Event::SpeakingEnded { .. })).count();
    assert_eq!(ends, 1);
}

#[tokio::test]
async fn an_interruption_cancels_the_engine_and_keeps_what_was_heard() {
    let mut stage = Stage::set().await;
    stage.begin(1, false);
    stage.say(1, "one two three four|hang|");
    let at = |event: &Event| matches!(event, Event::SegmentProgress { played_ms, .. } if *played_ms >= 700.0);
    stage.until(1, at).await;
    stage.bus.publish(Event::Interrupted { turn: None, cause: InterruptCause::BargeIn });
    let heard = stage.ended(1).await;
    assert_eq!(heard, Heard { text: "one two".into(), complete: false });
    let cancelled = stage.tts.clone();
    while cancelled.cancelled.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    // The next turn is spoken as if nothing had been.
    stage.begin(2, false);
    stage.say(2, "fine");
    stage.whole(2);
    assert!(stage.ended(2).await.complete);
    stage.host.stop().await;
}

#[tokio::test]
async fn a_discarded_draft_leaves_nothing_on_the_bus_and_the_shelf() {
    let mut stage = Stage::set().await;
    stage.begin(1, true);
    stage.say(1, "secret|");
    while stage.tts.asked.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    stage.bus.publish(Event::TurnDiscarded { turn: TurnId(1) });
    stage.begin(2, true);
    stage.say(2, "kept");
    stage.whole(2);
    stage.bus.publish(Event::TurnConfirmed { turn: TurnId(2) });
    assert_eq!(stage.ended(2).await.text, "kept");
    stage.host.stop().await;
    let seen = stage.seen.lock().unwrap();
    let traces: Vec<_> = seen
        .iter()
        .filter(|event| event.turn() == Some(TurnId(1)))
        .filter(|event| input(event).is_none())
        .collect();
    assert!(traces.is_empty(), "{traces:?}");
}

#[tokio::test]
async fn a_job_that_hangs_is_skipped_and_the_rest_is_spoken() {
    let mut stage = Stage::set().await;
    stage.begin(1, false);
    stage.say(1, "a|hang|b|");
    stage.whole(1);
    let heard = stage.ended(1).await;
    assert_eq!(heard, Heard { text: "a hang b".into(), complete: true });
    let named =
        |e: &Event| matches!(e, Event::SegmentSkipped { segment, .. } if segment.index == 1);
    stage.until(1, named).await;
    stage.host.stop().await;
}

#[tokio::test]
async fn stopping_ends_the_turn_that_is_going_on() {
    let mut stage = Stage::set().await;
    stage.begin(1, false);
    stage.say(1, "a|b|c");
    let begun = |event: &Event| matches!(event, Event::SpeakingStarted { .. });
    stage.until(1, begun).await;
    stage.host.stop().await;
    tokio::task::yield_now().await;
    let heard = stage.ended(1).await;
    assert!(!heard.complete);
}

#[tokio::test]
async fn ducking_and_volume_are_commands() {
    let mut stage = Stage::set().await;
    stage.bus.send(VoiceCommand::Volume(0.5)).unwrap();
    stage.bus.send(VoiceCommand::Duck(true)).unwrap();
    stage.until(1, |event| *event == Event::Ducked { on: true }).await;
    stage.bus.send(VoiceCommand::Duck(false)).unwrap();
    stage.until(1, |event| *event == Event::Ducked { on: false }).await;
    stage.host.stop().await;
}
