use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::kernel::contracts::Heard;

/// Cuts at `|`. A piece that begins with `!` has nothing to speak.
#[derive(Default)]
struct Bars(String);

impl Cutter for Bars {
    fn push(&mut self, delta: &str) -> Vec<Piece> {
        self.0.push_str(delta);
        let Some((whole, rest)) = self.0.rsplit_once('|') else { return Vec::new() };
        let pieces = whole.split('|').map(piece).collect();
        self.0 = rest.to_owned();
        pieces
    }

    fn finish(&mut self) -> Vec<Piece> {
        let rest = std::mem::take(&mut self.0);
        if rest.is_empty() { Vec::new() } else { vec![piece(&rest)] }
    }
}

fn piece(text: &str) -> Piece {
    let spoken = if text.starts_with('!') { "" } else { text };
    Piece { display: text.to_owned(), spoken: spoken.to_owned(), tag: None }
}

fn made(ms: usize) -> Made {
    let pcm = Arc::new(Pcm { rate: 1000, samples: vec![0.1; ms] });
    Made { pcm, visemes: Vec::new(), words: Vec::new() }
}

fn machine(rules: Rules) -> Pipeline {
    Pipeline::new(rules, Box::new(|| Box::<Bars>::default()), true)
}

fn turn(id: u64) -> TurnId {
    TurnId(id)
}

fn segment(turn: u64, index: u32) -> SegmentId {
    SegmentId { turn: TurnId(turn), index }
}

/// A pipeline and what it said, as short lines.
struct Rig {
    pipeline: Pipeline,
    now: f64,
    /// What the speaker answers when it is stopped.
    heard: Option<(SegmentId, Duration)>,
}

impl Rig {
    fn new(rules: Rules) -> Self {
        Self { pipeline: machine(rules), now: 0.0, heard: None }
    }

    fn give(&mut self, input: Input) -> Vec<String> {
        let mut lines = Vec::new();
        for output in self.pipeline.handle(input, self.now) {
            lines.push(line(&output));
            if let Output::Stop(turn) = output {
                let heard = self.heard.take();
                lines.extend(self.give(Input::Stopped(turn, heard)));
            }
        }
        lines
    }

    fn begin(&mut self, id: u64, draft: bool) -> Vec<String> {
        self.give(Input::Started { turn: turn(id), user_text: "hi".into(), draft })
    }

    fn token(&mut self, id: u64, text: &str) -> Vec<String> {
        self.give(Input::Token(turn(id), text.into()))
    }

    fn make(&mut self, id: u64, index: u32) -> Vec<String> {
        self.give(Input::Synthesised(segment(id, index), Ok(made(1000))))
    }

    fn fail(&mut self, id: u64, index: u32) -> Vec<String> {
        self.give(Input::Synthesised(segment(id, index), Err("no".into())))
    }

    fn started(&mut self, id: u64, index: u32) -> Vec<String> {
        self.give(Input::Speaker(SpeakerEvent::Started(segment(id, index))))
    }

    fn finished(&mut self, id: u64, index: u32) -> Vec<String> {
        self.give(Input::Speaker(SpeakerEvent::Finished(segment(id, index))))
    }
}

fn line(output: &Output) -> String {
    match output {
        Output::Synthesise(id, text) => format!("synthesise {id} {text}"),
        Output::Abandon(id) => format!("abandon {id}"),
        Output::Ready(ready) => {
            let kind = if ready.made.is_some() { "ready" } else { "text" };
            format!("{kind} {} {}", ready.id, ready.piece.display)
        }
        Output::Play(id, _) => format!("play {id}"),
        Output::Stop(turn) => format!("stop {turn}"),
        Output::Silence => "silence".into(),
        Output::Duck(on) => format!("duck {on}"),
        Output::Publish(event) => match event {
            Event::SegmentStarted { segment } => format!("started {segment}"),
            Event::SegmentProgress { segment, played_ms } => format!("at {segment} {played_ms}"),
            Event::SegmentWaiting { segment } => format!("waiting {segment}"),
            Event::SegmentFinished { segment } => format!("finished {segment}"),
            Event::SegmentSkipped { segment, display, reason } => {
                format!("skipped {segment} {display}: {reason}")
            }
            Event::SpeakingStarted { turn } => format!("speaking {turn}"),
            Event::SpeakingEnded { turn, heard: Heard { text, complete } } => {
                format!("ended {turn} {complete} [{text}]")
            }
            Event::Stage { turn, stage, at_ms } => format!("stage {turn} {stage:?} {at_ms}"),
            Event::Notice(notice) => format!("notice {}", notice.code),
            Event::Ducked { on } => format!("ducked {on}"),
            Event::Interrupted { turn, .. } => format!("interrupted {turn:?}"),
            other => format!("{other:?}"),
        },
    }
}

#[test]
fn a_reply_is_synthesised_ahead_played_in_order_and_ended_once() {
    let mut rig = Rig::new(Rules::default());
    assert!(rig.begin(1, false).is_empty());
    assert_eq!(
        rig.token(1, "a|b|c|d|e"),
        ["synthesise 1.0 a", "synthesise 1.1 b", "synthesise 1.2 c", "stage 1 FirstClause 0"]
    );
    // The second is ready first and waits for the first.
    rig.now = 10.0;
    assert_eq!(rig.make(1, 1), ["stage 1 FirstPcm 10"]);
    assert_eq!(rig.make(1, 0), ["ready 1.0 a", "play 1.0", "ready 1.1 b", "play 1.1"]);
    rig.now = 20.0;
    assert_eq!(rig.started(1, 0), ["speaking 1", "stage 1 FirstSample 20", "started 1.0"]);
    assert!(rig.give(Input::Generated(turn(1))).is_empty());
    assert_eq!(rig.finished(1, 0), ["at 1.0 1000", "finished 1.0", "synthesise 1.3 d"]);
    assert_eq!(rig.started(1, 1), ["started 1.1"]);
    assert_eq!(rig.make(1, 2), ["ready 1.2 c", "play 1.2"]);
    assert_eq!(rig.finished(1, 1), ["at 1.1 1000", "finished 1.1", "synthesise 1.4 e"]);
    rig.make(1, 4);
    rig.make(1, 3);
    // Reports that were missed are made up for.
    assert_eq!(
        rig.finished(1, 3),
        [
            "started 1.2",
            "at 1.2 1000",
            "finished 1.2",
            "started 1.3",
            "at 1.3 1000",
            "finished 1.3"
        ]
    );
    assert_eq!(
        rig.finished(1, 4),
        ["started 1.4", "at 1.4 1000", "finished 1.4", "ended 1 true [a b c d e]"]
    );
    assert!(rig.finished(1, 4).is_empty(), "late reports are dropped");
    assert!(rig.token(1, "x|").is_empty());
}

#[test]
fn a_draft_makes_its_beginning_and_says_nothing_until_it_is_confirmed() {
    let mut rig = Rig::new(Rules::default());
    rig.begin(1, true);
    rig.now = 5.0;
    assert_eq!(rig.token(1, "a|b|c|"), ["synthesise 1.0 a", "synthesise 1.1 b"]);
    rig.now = 9.0;
    assert!(rig.make(1, 0).is_empty());
    rig.now = 30.0;
    assert_eq!(
        rig.give(Input::Confirmed(turn(1))),
        [
            "stage 1 FirstClause 5",
            "stage 1 FirstPcm 9",
            "synthesise 1.2 c",
            "ready 1.0 a",
            "play 1.0"
        ]
    );
    assert!(rig.give(Input::Confirmed(turn(1))).is_empty(), "only the first one counts");
}

#[test]
fn a_discarded_draft_leaves_no_trace() {
    let mut rig = Rig::new(Rules::default());
    rig.begin(1, true);
    rig.token(1, "a|b|c|");
    rig.make(1, 0);
    assert_eq!(rig.give(Input::Discarded(turn(1))), ["abandon 1.1"]);
    assert!(rig.make(1, 1).is_empty());
    assert!(rig.token(1, "d|").is_empty());
    assert!(rig.give(Input::Generated(turn(1))).is_empty());
    assert!(rig.give(Input::Confirmed(turn(1))).is_empty());
}

#[test]
fn a_failed_segment_is_named_and_passed_over() {
    let mut rig = Rig::new(Rules::default());
    rig.begin(1, false);
    rig.token(1, "a|b|c|");
    rig.give(Input::Generated(turn(1)));
    rig.make(1, 2);
    rig.make(1, 0);
    assert_eq!(rig.fail(1, 1), ["skipped 1.1 b: no", "ready 1.2 c", "play 1.2"]);
    rig.finished(1, 0);
    assert_eq!(rig.finished(1, 2).last().unwrap(), "ended 1 true [a b c]");
}

#[test]
fn a_job_that_takes_too_long_is_given_up() {
    let mut rig = Rig::new(Rules { synthesis_ms: 100.0, ..Rules::default() });
    rig.begin(1, false);
    rig.token(1, "a|b|");
    rig.give(Input::Generated(turn(1)));
    rig.make(1, 1);
    assert_eq!(rig.pipeline.next_deadline(), Some(100.0));
    rig.now = 99.0;
    assert!(rig.give(Input::Tick).is_empty());
    rig.now = 100.0;
    assert_eq!(
        rig.give(Input::Tick),
        [
            "abandon 1.0",
            "skipped 1.0 a: the voice took longer than 0.1 s",
            "ready 1.1 b",
            "play 1.1"
        ]
    );
    assert!(rig.make(1, 0).is_empty(), "what comes too late is dropped");
}

#[test]
fn what_has_nothing_to_speak_is_shown_when_its_turn_comes() {
    let mut rig = Rig::new(Rules::default());
    rig.begin(1, false);
    rig.token(1, "a|!code|b|");
    rig.give(Input::Generated(turn(1)));
    rig.make(1, 1);
    assert_eq!(rig.make(1, 0), ["stage 1 FirstPcm 0", "ready 1.0 a", "play 1.0", "text 1.1 !code"]);
    rig.make(1, 2);
    rig.started(1, 0);
    assert_eq!(rig.finished(1, 0), ["at 1.0 1000", "finished 1.0", "started 1.1", "finished 1.1"]);
    assert_eq!(rig.finished(1, 2).last().unwrap(), "ended 1 true [a !code b]");

    rig.begin(2, false);
    assert_eq!(rig.token(2, "!x|"), ["text 2.0 !x", "started 2.0", "finished 2.0"]);
    assert_eq!(rig.give(Input::Generated(turn(2))), ["ended 2 true [!x]"]);
}

#[test]
fn an_interruption_ends_the_turn_with_what_was_heard() {
    // (segment and ms at which the speaker was stopped, heard)
    for (at, heard) in [
        (None, ""),
        (Some((0, 30)), ""),
        (Some((0, 600)), "one"),
        (Some((1, 0)), "one two"),
        (Some((1, 700)), "one two three"),
    ] {
        let mut rig = Rig::new(Rules::default());
        rig.begin(1, false);
        rig.token(1, "one two|three four|five|six|");
        rig.make(1, 0);
        rig.make(1, 1);
        if at.is_some() {
            rig.started(1, 0);
        }
        rig.heard = at.map(|(index, ms)| (segment(1, index), Duration::from_millis(ms)));
        let said = rig.give(Input::Interrupted(None));
        assert_eq!(said.last().unwrap(), &format!("ended 1 false [{heard}]"));
        assert_eq!(said.iter().filter(|line| line.starts_with("stop")).count(), 1);
        assert!(said.contains(&"abandon 1.2".into()));
        for late in [rig.make(1, 2), rig.finished(1, 1), rig.give(Input::Interrupted(None))] {
            assert!(late.is_empty());
        }
    }
}

#[test]
fn an_interruption_between_segments_and_after_all_of_it() {
    let mut rig = Rig::new(Rules::default());
    rig.begin(1, false);
    rig.token(1, "a|b|");
    rig.make(1, 0);
    rig.finished(1, 0);
    // The next segment is not made yet: nothing is at the speaker.
    assert_eq!(rig.give(Input::Interrupted(Some(turn(1)))), ["abandon 1.1", "ended 1 false [a]"]);

    rig.begin(2, false);
    rig.token(2, "a|");
    rig.make(2, 0);
    rig.finished(2, 0);
    rig.give(Input::Generated(turn(2)));
    assert!(rig.give(Input::Interrupted(Some(turn(2)))).is_empty());
}

#[test]
fn an_interrupted_draft_ends_empty_if_it_is_confirmed_after_all() {
    let mut rig = Rig::new(Rules::default());
    rig.begin(1, true);
    rig.token(1, "a|");
    assert_eq!(rig.give(Input::Interrupted(None)), ["abandon 1.0"]);
    assert_eq!(rig.give(Input::Confirmed(turn(1))).last().unwrap(), "ended 1 false []");
}

#[test]
fn a_newer_turn_stops_the_older_one_before_it_sounds() {
    let mut rig = Rig::new(Rules::default());
    rig.begin(1, false);
    rig.token(1, "one two|");
    rig.make(1, 0);
    rig.started(1, 0);
    rig.begin(2, true);
    rig.token(2, "b|");
    rig.make(2, 0);
    rig.heard = Some((segment(1, 0), Duration::from_millis(600)));
    let said = rig.give(Input::Confirmed(turn(2)));
    let place = |what: &str| said.iter().position(|line| line == what).unwrap();
    assert!(place("stop 1") < place("ended 1 false [one]"));
    assert!(place("ended 1 false [one]") < place("play 2.0"));
}

#[test]
fn without_a_voice_everything_is_shown_at_once() {
    let mut rig = Rig::new(Rules { voice: false, ..Rules::default() });
    rig.begin(1, true);
    assert!(rig.token(1, "a|b").is_empty());
    assert_eq!(rig.give(Input::Confirmed(turn(1))), ["text 1.0 a", "started 1.0", "finished 1.0"]);
    assert_eq!(
        rig.give(Input::Generated(turn(1))),
        ["text 1.1 b", "started 1.1", "finished 1.1", "ended 1 true [a b]"]
    );
    rig.begin(2, false);
    assert_eq!(rig.give(Input::Generated(turn(2))), ["ended 2 true []"]);
    assert!(rig.give(Input::Speaker(SpeakerEvent::Lost("gone".into()))).is_empty());
}

#[test]
fn a_lost_speaker_turns_the_rest_into_text_and_is_told_once() {
    let lost = || Input::Speaker(SpeakerEvent::Lost("it was unplugged".into()));
    let mut rig = Rig::new(Rules::default());
    rig.begin(1, false);
    rig.token(1, "a|b|c|d|");
    rig.make(1, 0);
    rig.make(1, 1);
    rig.started(1, 0);
    assert_eq!(
        rig.give(lost()),
        [
            "notice speaker_lost",
            "finished 1.0",
            "abandon 1.2",
            "text 1.2 c",
            "text 1.3 d",
            "started 1.1",
            "finished 1.1",
            "started 1.2",
            "finished 1.2",
            "started 1.3",
            "finished 1.3"
        ]
    );
    assert_eq!(rig.give(Input::Generated(turn(1))), ["ended 1 true [a b c d]"]);
    assert!(rig.give(lost()).is_empty());
    let ready = Input::Speaker(SpeakerEvent::Ready("card".into()));
    assert_eq!(rig.give(ready), ["notice speaker_back"]);
    rig.begin(2, false);
    assert_eq!(rig.token(2, "a|").first().unwrap(), "synthesise 2.0 a");
}

#[test]
fn a_speaker_that_says_nothing_is_given_up_for_the_turn() {
    let mut rig = Rig::new(Rules { stall_ms: 500.0, ..Rules::default() });
    rig.begin(1, false);
    rig.token(1, "a|");
    rig.give(Input::Generated(turn(1)));
    rig.now = 100.0;
    rig.make(1, 0);
    // Its second of sound and the patience.
    assert_eq!(rig.pipeline.next_deadline(), Some(1600.0));
    rig.now = 1600.0;
    let said = rig.give(Input::Tick);
    assert_eq!(said[..2], ["silence", "notice speaker_stalled"]);
    assert_eq!(said.last().unwrap(), "ended 1 true [a]");
    rig.begin(2, false);
    assert_eq!(
        rig.token(2, "b|").first().unwrap(),
        "synthesise 2.0 b",
        "the next turn tries again"
    );
}

#[test]
fn a_speaker_that_waits_for_a_tap_is_waited_for_but_not_for_ever() {
    let mut rig = Rig::new(Rules { stall_ms: 500.0, wait_ms: 2_000.0, ..Rules::default() });
    rig.begin(1, false);
    rig.token(1, "a|");
    rig.give(Input::Generated(turn(1)));
    rig.make(1, 0);
    let waits = || Input::Speaker(SpeakerEvent::Waiting(segment(1, 0)));
    for at in [1_000.0, 2_000.0, 3_000.0] {
        rig.now = at;
        assert_eq!(rig.give(waits()), ["waiting 1.0"], "{at}");
        assert_eq!(rig.pipeline.next_deadline(), Some(at + 1_500.0));
    }
    // A tap, and later another wait: it is counted anew.
    rig.now = 3_100.0;
    assert!(rig.started(1, 0).contains(&"started 1.0".to_owned()));
    rig.now = 4_000.0;
    assert_eq!(rig.give(waits()), ["waiting 1.0"]);
    rig.now = 6_001.0;
    assert!(rig.give(waits()).is_empty(), "too long");
    let said = rig.give(Input::Tick);
    assert_eq!(said[..2], ["silence", "notice speaker_stalled"]);
    assert!(rig.give(waits()).is_empty(), "a turn that is over");
}

#[test]
fn another_speaker_ends_what_was_heard_and_takes_over_what_was_not() {
    let changed = |heard| Input::SpeakerChanged { usable: true, heard };
    let mut rig = Rig::new(Rules::default());
    rig.begin(1, false);
    rig.token(1, "one two|");
    rig.make(1, 0);
    rig.started(1, 0);
    let said = rig.give(changed(Some((segment(1, 0), Duration::from_millis(600)))));
    assert_eq!(said.last().unwrap(), "ended 1 false [one]");
    assert!(said.contains(&"interrupted Some(TurnId(1))".into()));

    rig.begin(2, false);
    rig.token(2, "a|b|");
    rig.make(2, 0);
    assert_eq!(rig.give(changed(None)), ["play 2.0"]);
    let said = rig.give(Input::SpeakerChanged { usable: false, heard: None });
    assert!(said.contains(&"started 2.0".into()) && said.contains(&"text 2.1 b".into()));
}

#[test]
fn a_lowered_voice_comes_back_with_the_interruption() {
    let mut rig = Rig::new(Rules::default());
    assert_eq!(rig.give(Input::Duck(true)), ["duck true", "ducked true"]);
    assert!(rig.give(Input::Duck(true)).is_empty());
    rig.begin(1, false);
    rig.token(1, "a|");
    let said = rig.give(Input::Interrupted(None));
    assert!(said.contains(&"duck false".into()) && said.contains(&"ducked false".into()));
    assert!(rig.give(Input::Duck(false)).is_empty());
}

/// One step of a random talk.
#[derive(Clone, Debug)]
enum Step {
    Begin {
        draft: bool,
    },
    Token(u8),
    Generated,
    Confirm,
    Discard,
    Interrupt(bool),
    /// The job at this place of those that run ends, well or not.
    Job(usize, bool),
    /// The speaker plays on.
    Play(bool),
    Wait(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => any::<bool>().prop_map(|draft| Step::Begin { draft }),
        6 => (0..4_u8).prop_map(Step::Token),
        2 => Just(Step::Generated),
        2 => Just(Step::Confirm),
        1 => Just(Step::Discard),
        1 => any::<bool>().prop_map(Step::Interrupt),
        6 => (0..4_usize, prop::bool::weighted(0.7)).prop_map(|(at, ok)| Step::Job(at, ok)),
        6 => any::<bool>().prop_map(Step::Play),
        1 => (0..12_000_u16).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..80)
}

/// The world around a pipeline: jobs, a speaker that plays in order, and what must always hold.
struct World {
    pipeline: Pipeline,
    look_ahead: usize,
    now: f64,
    jobs: Vec<SegmentId>,
    queue: Vec<SegmentId>,
    sounding: bool,
    confirmed: BTreeSet<TurnId>,
    forgotten: BTreeSet<TurnId>,
    ended: BTreeMap<TurnId, Heard>,
    next_play: BTreeMap<TurnId, u32>,
    next_ready: BTreeMap<TurnId, u32>,
    busy: BTreeSet<SegmentId>,
    text: BTreeMap<TurnId, String>,
    pieces: u32,
}

impl World {
    fn new(look_ahead: usize) -> Self {
        Self {
            pipeline: machine(Rules { look_ahead, stall_ms: 1e9, ..Rules::default() }),
            look_ahead,
            now: 0.0,
            jobs: Vec::new(),
            queue: Vec::new(),
            sounding: false,
            confirmed: BTreeSet::new(),
            forgotten: BTreeSet::new(),
            ended: BTreeMap::new(),
            next_play: BTreeMap::new(),
            next_ready: BTreeMap::new(),
            busy: BTreeSet::new(),
            text: BTreeMap::new(),
            pieces: 0,
        }
    }

    fn give(&mut self, input: Input) {
        for output in self.pipeline.handle(input, self.now) {
            self.check(&output);
            match output {
                Output::Synthesise(id, _) => {
                    self.jobs.push(id);
                    self.busy.insert(id);
                    let live = self.busy.iter().filter(|s| s.turn == id.turn).count();
                    assert!(live <= self.look_ahead + 1, "{live} segments at once");
                }
                Output::Abandon(id) => {
                    self.jobs.retain(|job| *job != id);
                    self.busy.remove(&id);
                }
                Output::Play(id, _) => self.queue.push(id),
                Output::Stop(turn) => {
                    let playing = self.queue.first().copied().filter(|_| self.sounding);
                    self.queue.clear();
                    self.sounding = false;
                    let heard = playing.map(|id| (id, Duration::from_millis(400)));
                    self.give(Input::Stopped(turn, heard));
                }
                _ => {}
            }
        }
    }

    fn check(&mut self, output: &Output) {
        let turn = match output {
            Output::Ready(ready) => Some(ready.id.turn),
            Output::Play(id, _) => Some(id.turn),
            Output::Publish(event) => event.turn(),
            Output::Synthesise(id, _) => {
                assert!(!self.forgotten.contains(&id.turn), "a job for a discarded draft");
                None
            }
            _ => None,
        };
        if let Some(turn) = turn {
            assert!(self.confirmed.contains(&turn), "{output:?} of a turn that is not confirmed");
            assert!(!self.ended.contains_key(&turn), "{output:?} after the end");
        }
        match output {
            Output::Play(id, _) => {
                let next = self.next_play.entry(id.turn).or_default();
                assert!(id.index >= *next, "out of order");
                *next = id.index + 1;
            }
            Output::Ready(ready) => {
                let next = self.next_ready.entry(ready.id.turn).or_default();
                assert_eq!(ready.id.index, *next, "announced out of order");
                *next += 1;
            }
            Output::Publish(Event::SegmentSkipped { segment, .. }) => {
                let next = self.next_ready.entry(segment.turn).or_default();
                assert_eq!(segment.index, *next, "announced out of order");
                *next += 1;
            }
            Output::Publish(Event::SegmentFinished { segment }) => {
                self.busy.remove(segment);
            }
            Output::Publish(Event::SpeakingEnded { turn, heard }) => {
                self.ended.insert(*turn, heard.clone());
                self.busy.retain(|id| id.turn != *turn);
            }
            _ => {}
        }
    }

    fn job(&mut self, at: usize, ok: bool) {
        if self.jobs.is_empty() {
            return;
        }
        let id = self.jobs.remove(at % self.jobs.len());
        let result = if ok { Ok(made(1000)) } else { Err("no".to_owned()) };
        if !ok {
            self.busy.remove(&id);
        }
        self.give(Input::Synthesised(id, result));
    }

    fn play(&mut self, skips_reports: bool) {
        let Some(id) = self.queue.first().copied() else { return };
        if self.sounding || skips_reports {
            self.queue.remove(0);
            self.sounding = false;
            self.give(Input::Speaker(SpeakerEvent::Finished(id)));
        } else {
            self.sounding = true;
            self.give(Input::Speaker(SpeakerEvent::Started(id)));
        }
    }

    fn step(&mut self, step: Step, newest: &mut u64) {
        let id = turn(*newest);
        match step {
            Step::Begin { draft } => {
                *newest += 1;
                if !draft {
                    self.confirmed.insert(turn(*newest));
                }
                let user_text = String::new();
                self.give(Input::Started { turn: turn(*newest), user_text, draft });
            }
            Step::Token(kind) => {
                let mark = if kind == 0 { "!" } else { "" };
                let text = format!("{mark}w{}", self.pieces);
                self.pieces += 1;
                self.text.entry(id).or_default().push_str(&format!("{text} "));
                self.give(Input::Token(id, format!("{text}|")));
            }
            Step::Generated => self.give(Input::Generated(id)),
            Step::Confirm => {
                if *newest > 0 && !self.forgotten.contains(&id) {
                    self.confirmed.insert(id);
                }
                self.give(Input::Confirmed(id));
            }
            Step::Discard => {
                if !self.confirmed.contains(&id) {
                    self.forgotten.insert(id);
                    self.busy.retain(|segment| segment.turn != id);
                }
                self.give(Input::Discarded(id));
            }
            Step::Interrupt(all) => self.give(Input::Interrupted((!all).then_some(id))),
            Step::Job(at, ok) => self.job(at, ok),
            Step::Play(skips) => self.play(skips),
            Step::Wait(ms) => {
                self.now += f64::from(ms);
                // A failed job makes room; the world learns of it with the segment's name.
                let late: Vec<SegmentId> = self.jobs.clone();
                self.give(Input::Tick);
                for id in late.iter().filter(|id| !self.jobs.contains(id)) {
                    self.busy.remove(id);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn order_ends_and_look_ahead_hold_in_every_talk(steps in steps(), look_ahead in 0..4_usize) {
        let mut world = World::new(look_ahead);
        let mut newest = 0;
        for step in steps {
            world.step(step, &mut newest);
        }
        // Whatever the talk was, every turn comes to its end when everyone does their work.
        let last = turn(newest);
        for id in 1..=newest {
            world.give(Input::Generated(turn(id)));
        }
        for round in 0..400 {
            world.job(0, round % 3 != 0);
            world.play(false);
        }
        for confirmed in &world.confirmed {
            prop_assert!(world.ended.contains_key(confirmed), "{confirmed} never ended");
        }
        if let Some(heard) = world.ended.get(&last)
            && heard.complete
        {
            let said = world.text.remove(&last).unwrap_or_default();
            prop_assert!(said.starts_with(&heard.text), "{said} / {}", heard.text);
        }
    }

    #[test]
    fn any_set_of_failures_still_shows_the_whole_reply(
        pieces in prop::collection::vec(any::<bool>(), 0..20),
        fails in prop::collection::vec(any::<bool>(), 20),
        look_ahead in 0..4_usize,
    ) {
        let mut world = World::new(look_ahead);
        let mut newest = 0;
        world.step(Step::Begin { draft: false }, &mut newest);
        for speaks in &pieces {
            world.step(Step::Token(u8::from(*speaks)), &mut newest);
        }
        world.step(Step::Generated, &mut newest);
        for fails in fails.iter().cycle().take(60) {
            world.job(1, !fails);
            world.play(false);
        }
        let heard = world.ended.get(&turn(1)).cloned();
        let said = world.text.remove(&turn(1)).unwrap_or_default();
        prop_assert_eq!(heard, Some(Heard { text: said.trim().into(), complete: true }));
    }
}
