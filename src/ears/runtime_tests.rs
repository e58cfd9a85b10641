use std::collections::VecDeque;

use super::*;
use crate::kernel::clock::{Clock, FakeClock};
use crate::kernel::contracts::{Heard, ListenState, Segment};
use crate::kernel::ids::{MediaId, SegmentId, SessionId, TurnId};

/// Gives what the test puts in. All frames are stamped 0, so the ears see a recording that comes
/// faster than real time and wait for their workers: the order of things is always the same.
struct Script {
    events: mpsc::Receiver<SourceEvent>,
    path: EchoPath,
}

impl Source for Script {
    fn next(&mut self, wait: Duration) -> SourceEvent {
        match self.events.recv_timeout(wait) {
            Ok(event) => event,
            Err(mpsc::RecvTimeoutError::Timeout) => SourceEvent::Idle,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                std::thread::sleep(wait);
                SourceEvent::Idle
            }
        }
    }

    fn echo_path(&self) -> EchoPath {
        self.path
    }
}

fn script(path: EchoPath) -> (mpsc::Sender<SourceEvent>, Box<dyn Source>) {
    let (sender, events) = mpsc::channel();
    (sender, Box::new(Script { events, path }))
}

/// The first sample of a frame says its probability; above 1 the engine fails, above 2 it crashes.
struct FirstSample;

impl Vad for FirstSample {
    fn speech(&mut self, frame: &[f32; FRAME]) -> anyhow::Result<f32> {
        assert!(frame[0] <= 2.0, "the model crashed");
        anyhow::ensure!(frame[0] <= 1.0, "the model broke");
        Ok(frame[0])
    }

    fn reset(&mut self) {}
}

type Answers<T> = Arc<Mutex<VecDeque<anyhow::Result<T>>>>;

struct Answering(Answers<f32>);

impl EndOfTurn for Answering {
    fn complete(&mut self, audio: &[f32]) -> anyhow::Result<f32> {
        let answer = self.0.lock().unwrap().pop_front().unwrap_or(Ok(0.9));
        assert!(!audio.is_empty() && answer.as_ref().is_ok_and(|p| *p <= 1.0) || answer.is_err());
        answer
    }
}

/// Answers with the next text; with none left it never answers.
struct Reciting(Answers<String>);

impl Stt for Reciting {
    fn name(&self) -> String {
        "reciting".into()
    }

    fn transcribe(
        &self,
        audio: Vec<f32>,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, anyhow::Result<Transcription>> {
        assert!(!audio.is_empty());
        let next = self.0.lock().unwrap().pop_front();
        Box::pin(async move {
            match next {
                Some(Ok(text)) if text == "panic" => panic!("as asked"),
                Some(Ok(text)) if text == "hang" => std::future::pending().await,
                Some(text) => Ok(Transcription { text: text?, no_speech: None }),
                None => {
                    cancel.cancelled().await;
                    anyhow::bail!("cancelled")
                }
            }
        })
    }
}

struct Room {
    bus: Bus,
    clock: Arc<FakeClock>,
    ears: Ears,
    events: Events,
    turns: tokio::sync::mpsc::Receiver<TurnCommand>,
    voice: tokio::sync::mpsc::Receiver<VoiceCommand>,
    sound: mpsc::Sender<SourceEvent>,
    texts: Answers<String>,
    complete: Answers<f32>,
}

impl Room {
    async fn new() -> Self {
        Self::with(EchoPath::Cancelled, |_| ()).await
    }

    async fn with(path: EchoPath, change: impl FnOnce(&mut settings::Ears)) -> Self {
        let clock = FakeClock::shared();
        let bus = Bus::new(Arc::clone(&clock) as Arc<dyn Clock>, SessionId::fresh());
        let (sound, source) = script(path);
        let (texts, complete): (Answers<String>, Answers<f32>) = Default::default();
        let mut settings = settings::Ears::default();
        change(&mut settings);
        let mut ears = Ears::new(EarsParts {
            settings,
            source: Some(source),
            vad: Box::new(FirstSample),
            end_of_turn: Some(Box::new(Answering(Arc::clone(&complete)))),
            stt: Arc::new(Reciting(Arc::clone(&texts))),
            stt_timeout: Duration::from_secs(10),
            load: CoreLoad::default(),
            turn_ids: Arc::default(),
        });
        let turns = bus.commands().unwrap();
        let voice = bus.commands().unwrap();
        let events = bus.subscribe("test", |event| !matches!(event, Event::Level { .. }));
        bus.start();
        ears.start(&bus).await.unwrap();
        let mut room = Self { bus, clock, ears, events, turns, voice, sound, texts, complete };
        room.frames(20, 0.01);
        room.state(ListenState::Listening).await;
        room
    }

    fn frames(&self, count: usize, speech: f32) {
        for _ in 0..count {
            let mut samples = Box::new([if speech > 0.2 { 0.1 } else { 0.003 }; FRAME]);
            samples[0] = speech;
            // The receiver is gone when another source was taken.
            let _ = self.sound.send(SourceEvent::Frame { samples, at_ms: 0.0 });
        }
    }

    fn text(&self, text: &str) {
        self.texts.lock().unwrap().push_back(Ok(text.into()));
    }

    /// The next event that `pick` takes; those before it are passed over.
    async fn event<T>(&mut self, pick: impl Fn(&Event) -> Option<T>) -> T {
        let seen = async {
            loop {
                let event = self.events.next().await.expect("the bus lives");
                if let Some(found) = pick(&event.event) {
                    return found;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), seen).await.expect("the event comes")
    }

    async fn state(&mut self, wanted: ListenState) {
        self.event(|e| matches!(e, Event::Listen { state } if *state == wanted).then_some(()))
            .await;
    }

    async fn notice(&mut self, code: &str) -> Notice {
        self.event(|e| match e {
            Event::Notice(notice) if notice.code == code => Some(notice.clone()),
            _ => None,
        })
        .await
    }

    async fn command(&mut self) -> TurnCommand {
        tokio::time::timeout(Duration::from_secs(20), self.turns.recv()).await.unwrap().unwrap()
    }

    /// A turn from speech to its final words.
    async fn turn(&mut self, text: &str) -> TurnId {
        self.text(text);
        self.frames(20, 0.95);
        self.frames(8, 0.01);
        self.event(|e| match e {
            Event::Transcript { turn: Some(turn), is_final: true, .. } => Some(*turn),
            _ => None,
        })
        .await
    }

    async fn speaking(&mut self, turn: TurnId, spoken: &str) {
        let id = SegmentId { turn, index: 0 };
        self.bus.publish(Event::SegmentReady(Arc::new(Segment {
            id,
            display: spoken.into(),
            spoken: spoken.into(),
            feeling: Default::default(),
            visemes: Vec::new(),
            duration_ms: 1_000.0,
            media: MediaId("m".into()),
            words: Vec::new(),
        })));
        self.bus.publish(Event::SpeakingStarted { turn });
        self.bus.publish(Event::SegmentStarted { segment: id });
        self.state(ListenState::Speaking).await;
    }

    async fn stats(&self) -> EarsStats {
        self.bus.request(GetEarsStats).await.unwrap()
    }

    async fn stop(mut self) {
        tokio::time::timeout(Duration::from_secs(5), self.ears.stop()).await.expect("ears stop");
    }
}

fn begin(turn: u64, text: &str, draft: bool) -> TurnCommand {
    let (turn, source) = (TurnId(turn), TurnSource::Voice);
    TurnCommand::Begin { turn, text: text.into(), source, draft }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spoken_question_becomes_a_draft_and_then_a_turn() {
    let mut room = Room::new().await;
    let turn = room.turn("What time is it?").await;
    assert_eq!(room.command().await, begin(1, "What time is it?", true));
    assert_eq!(room.command().await, TurnCommand::Confirm(turn));
    let mut stages = Vec::new();
    for _ in 0..3 {
        stages.push(
            room.event(|e| match e {
                Event::Stage { stage, turn: TurnId(1), at_ms } => Some((*stage, *at_ms)),
                _ => None,
            })
            .await,
        );
    }
    let names: Vec<Stage> = stages.iter().map(|(stage, _)| *stage).collect();
    assert_eq!(names, [Stage::SpeechEnd, Stage::Endpoint, Stage::Transcript]);
    // The newest frame is stamped 0 and six frames of silence lie after the speech.
    assert_eq!(stages[0].1, -6.0 * FRAME_MS);
    room.state(ListenState::Thinking).await;
    let counted = EarsStats { turns: 1, drafts: 1, draft_hits: 1, ..EarsStats::default() };
    assert_eq!(room.stats().await, counted);
    room.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draft_is_thrown_away_when_the_user_goes_on() {
    let mut room = Room::new().await;
    room.complete.lock().unwrap().push_back(Ok(0.1));
    room.text("I think");
    room.frames(20, 0.95);
    room.frames(10, 0.01);
    assert_eq!(room.command().await, begin(1, "I think", true));
    room.turn("I think so.").await;
    assert_eq!(room.command().await, TurnCommand::Discard(TurnId(1)));
    assert_eq!(room.command().await, begin(2, "I think so.", true));
    assert_eq!(room.command().await, TurnCommand::Confirm(TurnId(2)));
    let stats = room.stats().await;
    assert_eq!((stats.drafts, stats.draft_hits, stats.draft_misses), (2, 1, 1));
    room.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn speaking_over_the_voice_ducks_and_interrupts_it() {
    let mut room = Room::new().await;
    let turn = room.turn("Tell me a story.").await;
    room.speaking(turn, "Once upon a time there was a fox.").await;
    room.text("Wait, stop.");
    room.frames(10, 0.95);
    assert_eq!(room.voice.recv().await, Some(VoiceCommand::Duck(true)));
    let cause = InterruptCause::BargeIn;
    let interrupted = Event::Interrupted { turn: Some(turn), cause };
    room.event(|e| (*e == interrupted).then_some(())).await;
    assert_eq!(room.voice.recv().await, Some(VoiceCommand::Duck(false)));
    room.frames(10, 0.01);
    room.event(|e| matches!(e, Event::Transcript { is_final: true, .. }).then_some(())).await;
    room.bus.publish(Event::SpeakingEnded { turn, heard: Heard::default() });
    assert_eq!(room.stats().await.interruptions, 1);
    room.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn her_own_words_start_no_turn() {
    let mut room = Room::new().await;
    let turn = room.turn("Tell me a story.").await;
    room.speaking(turn, "Once upon a time there was a fox.").await;
    room.bus.publish(Event::SpeakingEnded { turn, heard: Heard::default() });
    room.state(ListenState::Listening).await;
    room.text("upon a time there was a fox");
    room.frames(20, 0.95);
    room.frames(10, 0.01);
    room.event(|e| matches!(e, Event::SpeechEnded { misfire: true, .. }).then_some(())).await;
    assert_eq!(room.stats().await.turns, 1);
    room.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_is_taken_back_when_the_user_goes_on_at_once() {
    let mut room = Room::new().await;
    let first = room.turn("I want a coffee.").await;
    room.turn("With milk.").await;
    assert_eq!(room.command().await, begin(1, "I want a coffee.", true));
    assert_eq!(room.command().await, TurnCommand::Confirm(first));
    assert_eq!(room.command().await, TurnCommand::Discard(first));
    assert_eq!(room.command().await, begin(2, "I want a coffee. With milk.", true));
    assert_eq!(room.stats().await.reopened, 1);
    room.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_microphone_is_said_and_so_is_its_return() {
    let mut room = Room::new().await;
    let status = |state, reason: Option<&str>| {
        let (device, reason) = (Some("Headset".into()), reason.map(str::to_owned));
        SourceEvent::Status(MicStatus { state, device, reason })
    };
    room.sound.send(status(MicState::Lost, Some("unplugged"))).unwrap();
    assert_eq!(room.notice("mic_lost").await.text, "Headset is lost: unplugged");
    room.state(ListenState::Idle).await;
    room.sound.send(status(MicState::Live, None)).unwrap();
    room.frames(1, 0.01);
    assert_eq!(room.notice("mic_back").await.text, "Headset is back");
    room.state(ListenState::Listening).await;
    room.turn("Hello.").await;
    room.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recogniser_that_fails_or_crashes_is_named_and_the_ears_go_on() {
    for fault in ["error", "panic"] {
        let mut room = Room::new().await;
        for _ in 0..2 {
            room.texts.lock().unwrap().push_back(match fault {
                "error" => Err(anyhow::anyhow!("out of order")),
                _ => Ok("panic".into()),
            });
        }
        room.frames(20, 0.95);
        room.frames(12, 0.01);
        let notice = room.notice("stt_failed").await;
        assert!(notice.text.starts_with("speech recognition failed"), "{}", notice.text);
        room.state(ListenState::Listening).await;
        room.text("Hello.");
        room.frames(20, 0.95);
        room.frames(12, 0.01);
        room.notice("stt_back").await;
        room.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recogniser_that_hangs_is_told_and_asked_once_more() {
    let mut room = Room::new().await;
    room.text("hang");
    room.text("Hello.");
    room.frames(20, 0.95);
    room.frames(12, 0.01);
    let clock = Arc::clone(&room.clock);
    let advance = async {
        loop {
            clock.advance(Duration::from_millis(200));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let heard = async {
        let text = room.notice("stt_failed").await.text;
        assert_eq!(text, "speech recognition failed: no transcript within 10 s");
        room.event(|e| match e {
            Event::Transcript { is_final: true, text, .. } => Some(text.clone()),
            _ => None,
        })
        .await
    };
    tokio::select! {
        () = advance => {}
        text = heard => assert_eq!(text, "Hello."),
    }
    room.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_that_fail_leave_the_timer_and_the_next_frame() {
    let mut room = Room::new().await;
    room.frames(1, 2.0);
    let text = room.notice("vad_failed").await.text;
    assert_eq!(text, "speech detection failed: the model broke");
    room.frames(1, 0.01);
    room.notice("vad_back").await;
    room.complete.lock().unwrap().push_back(Err(anyhow::anyhow!("no model")));
    room.text("Hello there");
    room.frames(20, 0.95);
    room.frames(30, 0.01);
    room.notice("end_of_turn_failed").await;
    room.event(|e| matches!(e, Event::Transcript { is_final: true, .. }).then_some(())).await;
    room.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_on_the_ears_thread_or_its_worker_is_told_and_survived() {
    let mut room = Room::new().await;
    // What was being said when it crashed is not understood.
    room.text("");
    room.frames(10, 0.95);
    room.frames(3, 3.0);
    room.frames(20, 0.01);
    room.notice("ears_crashed").await;
    room.state(ListenState::Listening).await;
    room.complete.lock().unwrap().push_back(Ok(9.0));
    room.text("Hello there");
    room.frames(20, 0.95);
    room.frames(30, 0.01);
    assert!(room.notice("end_of_turn_failed").await.text.ends_with("the model crashed"));
    room.event(|e| matches!(e, Event::Transcript { is_final: true, .. }).then_some(())).await;
    room.frames(30, 0.01);
    room.turn("And again.").await;
    room.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mute_and_push_to_talk_come_as_commands() {
    let mut room = Room::new().await;
    room.bus.send(EarsCommand::Mute(true)).unwrap();
    room.state(ListenState::Idle).await;
    let muted =
        |e: &Event| matches!(e, Event::Mic(mic) if mic.state == MicState::Muted).then_some(());
    room.event(muted).await;
    room.bus.send(EarsCommand::Mute(false)).unwrap();
    room.state(ListenState::Listening).await;
    room.stop().await;

    let mut room = Room::with(EchoPath::None, |ears| ears.pre_roll_ms = 200).await;
    room.bus.send(EarsCommand::PushToTalk(true)).unwrap();
    room.turn("In open mode the key changes nothing.").await;
    room.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_source_takes_over_and_the_recording_ends() {
    let mut room = Room::new().await;
    let (sound, source) = script(EchoPath::None);
    room.ears.control().use_source(source);
    room.sound = sound;
    room.state(ListenState::Idle).await;
    room.frames(20, 0.01);
    room.state(ListenState::Listening).await;
    room.text("The last words");
    room.frames(20, 0.95);
    room.sound.send(SourceEvent::End).unwrap();
    room.event(|e| matches!(e, Event::Transcript { is_final: true, .. }).then_some(())).await;
    room.ears.control().no_source();
    room.stop().await;
}
