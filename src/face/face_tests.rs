use serde_json::json;

use super::*;
use crate::kernel::contracts::{Heard, InterruptCause, TurnSource};
use crate::kernel::ids::{MediaId, SessionId};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/vrm-web/tests/timeline.json");

/// Plays events into a face and keeps what a page would get and should show.
struct Talk {
    name: &'static str,
    face: Face,
    seq: u64,
    steps: Vec<String>,
}

impl Talk {
    fn new(name: &'static str) -> Self {
        Self { name, face: Face::default(), seq: 0, steps: Vec::new() }
    }

    fn at(&mut self, at_ms: f64, event: Event) {
        self.seq += 1;
        let session = SessionId::parse("table").unwrap();
        let envelope = Envelope { seq: self.seq, session, at_ms, event };
        self.face.apply(&envelope);
        self.steps.push(json!({ "event": envelope }).to_string());
    }

    fn look(&mut self, at_ms: f64) -> Scene {
        let scene = self.face.scene(at_ms);
        let look = json!({ "look": {
            "at_ms": at_ms,
            "state": scene.state,
            "queue": scene.segments.len(),
            "playing": scene.playing,
            "subtitle": scene.subtitle,
            "feeling": scene.feeling,
            "mouth": scene.mouth,
        }});
        self.steps.push(look.to_string());
        scene
    }

    fn begin(&mut self, at_ms: f64, turn: u64) {
        let (source, user_text) = (TurnSource::Page, "How are you?".to_owned());
        self.at(at_ms, Event::TurnStarted { turn: TurnId(turn), source, user_text, draft: false });
    }

    fn ready(&mut self, at_ms: f64, segment: Segment) {
        self.at(at_ms, Event::SegmentReady(Arc::new(segment)));
    }

    /// The case as JSON, one line a step.
    fn done(self) -> String {
        format!("{{\"name\": {:?}, \"steps\": [\n{}\n]}}", self.name, self.steps.join(",\n"))
    }
}

fn id(turn: u64, index: u32) -> SegmentId {
    SegmentId { turn: TurnId(turn), index }
}

/// One second of sound: open to 0.8 between 200 and 800 ms, words at 0, 250, 500 and 750 ms.
fn segment(turn: u64, index: u32, emotion: Emotion) -> Segment {
    let frame = |at_ms, aa| VisemeFrame { at_ms, aa, ..VisemeFrame::default() };
    Segment {
        id: id(turn, index),
        display: "I am **very** well!".into(),
        spoken: "I am very well!".into(),
        feeling: Feeling { emotion, intensity: 0.75 },
        visemes: vec![frame(0.0, 0.0), frame(200.0, 0.8), frame(800.0, 0.8), frame(1000.0, 0.0)],
        duration_ms: 1000.0,
        media: MediaId(format!("m{turn}-{index}")),
        words: vec![(0, 0.0), (2, 250.0), (5, 500.0), (10, 750.0)],
    }
}

fn spoken_reply() -> String {
    let mut talk = Talk::new("a reply is shown with its sound, not with its text");
    talk.at(0.0, Event::Listen { state: ListenState::Listening });
    assert_eq!(talk.look(1.0).state, FaceState::Listening);
    talk.begin(10.0, 1);
    assert_eq!(talk.look(11.0).state, FaceState::Thinking);
    talk.ready(100.0, segment(1, 0, Emotion::Happy));
    let waiting = talk.look(110.0);
    assert_eq!((waiting.state, waiting.feeling), (FaceState::Thinking, Feeling::default()));
    assert_eq!(waiting.subtitle, Subtitle::default());

    talk.at(200.0, Event::SpeakingStarted { turn: TurnId(1) });
    talk.at(200.0, Event::SegmentStarted { segment: id(1, 0) });
    let open = talk.look(300.0);
    assert_eq!(open.state, FaceState::Speaking);
    assert_eq!(open.playing, Some(Playing { segment: id(1, 0), played_ms: 100.0 }));
    assert_eq!(open.feeling, Feeling { emotion: Emotion::Happy, intensity: 0.75 });
    assert!((open.mouth.aa - 0.4).abs() < 1e-6);
    assert_eq!(open.subtitle.said, "I");
    talk.at(700.0, Event::SegmentProgress { segment: id(1, 0), played_ms: 510.0 });
    let later = talk.look(710.0);
    assert_eq!(later.subtitle.said, "I am **very**");
    assert!((later.mouth.aa - 0.8).abs() < 1e-6);

    talk.at(1190.0, Event::SegmentFinished { segment: id(1, 0) });
    let between = talk.look(1195.0);
    assert_eq!((between.state, between.mouth.aa), (FaceState::Speaking, 0.0));
    assert_eq!(between.turn.unwrap().said, "I am **very** well!");
    let heard = Heard { text: "I am **very** well!".into(), complete: true };
    talk.at(1200.0, Event::SpeakingEnded { turn: TurnId(1), heard });
    assert_eq!(talk.look(1210.0).state, FaceState::Listening);
    assert_eq!(talk.look(1980.0).feeling.intensity, 0.75, "held");
    assert!((talk.look(1190.0 + HOLD_MS + FADE_MS / 2.0).feeling.intensity - 0.375).abs() < 1e-6);
    assert_eq!(talk.look(3200.0).feeling, Feeling::default());
    assert_eq!(talk.look(3600.0).subtitle.text, "I am **very** well!");
    assert_eq!(talk.look(3700.0).subtitle, Subtitle::default());
    talk.done()
}

fn interrupted_reply() -> String {
    let mut talk = Talk::new("an interrupt closes the mouth at once and empties the queue");
    talk.at(0.0, Event::Listen { state: ListenState::Listening });
    talk.begin(0.0, 4);
    talk.ready(10.0, segment(4, 0, Emotion::Angry));
    talk.ready(20.0, segment(4, 1, Emotion::Happy));
    talk.at(30.0, Event::SegmentStarted { segment: id(4, 0) });
    assert_eq!(talk.look(40.0).segments.len(), 2);
    talk.at(330.0, Event::Interrupted { turn: None, cause: InterruptCause::Request });
    let silent = talk.look(330.0);
    assert_eq!((silent.segments.len(), silent.mouth.aa, silent.playing), (0, 0.0, None));
    assert_eq!(silent.state, FaceState::Listening);
    assert_eq!(silent.subtitle.said, "I am", "what was said stays to be read");
    // What was on its way is late, and late is never.
    talk.ready(340.0, segment(4, 2, Emotion::Happy));
    talk.at(350.0, Event::SegmentStarted { segment: id(4, 2) });
    talk.at(350.0, Event::SpeakingStarted { turn: TurnId(4) });
    let still = talk.look(360.0);
    assert_eq!((still.segments.len(), still.state), (0, FaceState::Listening));
    // The next turn is not touched by it.
    talk.begin(400.0, 5);
    talk.ready(410.0, segment(5, 0, Emotion::Sad));
    talk.at(420.0, Event::Interrupted { turn: Some(TurnId(4)), cause: InterruptCause::NewTurn });
    talk.at(430.0, Event::SegmentStarted { segment: id(5, 0) });
    assert_eq!(talk.look(440.0).feeling.emotion, Emotion::Sad);
    talk.done()
}

fn stalled_sound() -> String {
    let mut talk = Talk::new("sound that stands still has a closed mouth");
    talk.begin(0.0, 1);
    talk.ready(10.0, segment(1, 0, Emotion::Neutral));
    talk.at(100.0, Event::SegmentStarted { segment: id(1, 0) });
    assert!(talk.look(100.0 + STALL_MS).mouth.aa > 0.7);
    let stalled = talk.look(101.0 + STALL_MS);
    assert_eq!((stalled.mouth.aa, stalled.playing.unwrap().played_ms), (0.0, STALL_MS));
    talk.at(900.0, Event::SegmentProgress { segment: id(1, 0), played_ms: 520.0 });
    assert!(talk.look(910.0).mouth.aa > 0.7);
    // Never past its end, however late the last report.
    talk.at(1000.0, Event::SegmentProgress { segment: id(1, 0), played_ms: 990.0 });
    assert_eq!(talk.look(1100.0).mouth.aa, 0.0);
    talk.done()
}

fn skipped_and_missed() -> String {
    let mut talk = Talk::new("a skipped segment leaves the queue; a missed start is caught up");
    talk.begin(0.0, 1);
    for index in 0..3 {
        talk.ready(10.0, segment(1, index, Emotion::Relaxed));
    }
    let (display, reason) = ("I am **very** well!".to_owned(), "no phonemes".to_owned());
    talk.at(20.0, Event::SegmentSkipped { segment: id(1, 0), display, reason });
    assert_eq!(talk.look(21.0).segments.len(), 2);
    talk.at(130.0, Event::SegmentProgress { segment: id(1, 1), played_ms: 100.0 });
    assert_eq!(talk.look(230.0).playing.unwrap().played_ms, 200.0);
    talk.at(300.0, Event::SegmentStarted { segment: id(1, 2) });
    assert_eq!(talk.look(310.0).segments.len(), 1, "what lies before the playing one is over");
    talk.done()
}

fn feelings() -> String {
    let mut talk = Talk::new("feelings: bound to a segment, or for a moment");
    let feeling = Feeling { emotion: Emotion::Surprised, intensity: 1.0 };
    talk.at(0.0, Event::Feeling { segment: None, feeling });
    assert_eq!(talk.look(MOMENT_MS).feeling, feeling);
    assert!((talk.look(MOMENT_MS + FADE_MS / 4.0).feeling.intensity - 0.75).abs() < 1e-6);
    talk.begin(6000.0, 1);
    talk.ready(6010.0, segment(1, 0, Emotion::Happy));
    let shy = Feeling { emotion: Emotion::Shy, intensity: 0.5 };
    talk.at(6020.0, Event::Feeling { segment: Some(id(1, 0)), feeling: shy });
    assert_eq!(talk.look(6030.0).feeling, Feeling::default());
    talk.at(6040.0, Event::SegmentStarted { segment: id(1, 0) });
    assert_eq!(talk.look(6050.0).feeling, shy);
    talk.done()
}

fn unspoken_turns() -> String {
    let mut talk = Talk::new("turns without sound end too");
    talk.begin(0.0, 1);
    talk.at(5.0, Event::TurnFailed { turn: TurnId(1), error: "no model answered".into() });
    assert_eq!(talk.look(6.0).state, FaceState::Idle);
    talk.begin(10.0, 2);
    talk.at(15.0, Event::Listen { state: ListenState::UserSpeaking });
    assert_eq!(talk.look(16.0).state, FaceState::Listening);
    talk.at(20.0, Event::TurnDiscarded { turn: TurnId(2) });
    talk.at(30.0, Event::Listen { state: ListenState::Idle });
    assert_eq!(talk.look(31.0).state, FaceState::Idle);
    talk.done()
}

#[test]
fn scenes_follow_the_playback_clock_and_the_page_has_the_same_table() {
    let table = [
        spoken_reply(),
        interrupted_reply(),
        stalled_sound(),
        skipped_and_missed(),
        feelings(),
        unspoken_turns(),
    ];
    let text = format!("[\n{}\n]\n", table.join(",\n"));
    if std::env::var_os("ALICE_WRITE_TABLES").is_some() {
        std::fs::write(TABLE, &text).unwrap();
    }
    let kept = std::fs::read_to_string(TABLE).unwrap();
    assert!(kept == text, "`{TABLE}` differs: run this test with ALICE_WRITE_TABLES=1");
}

#[test]
fn a_line_without_word_times_or_without_spaces_is_revealed_by_its_share() {
    let mut piece = segment(1, 0, Emotion::Neutral);
    piece.words.clear();
    piece.display = "\u{4f60}\u{597d}\u{4e16}\u{754c}".into();
    assert_eq!(line::subtitle(&piece, 500.0).said.chars().count(), 2);
    assert_eq!(line::subtitle(&piece, 0.0).said, "");
    assert_eq!(line::subtitle(&piece, 1000.0).said, piece.display);
}
