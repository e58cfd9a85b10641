use super::*;

/// Drives a machine by frames and keeps what it did and when (ms of audio).
struct Talk {
    machine: TurnMachine,
    log: Vec<(f64, Action)>,
}

impl Talk {
    fn with(change: impl FnOnce(&mut TurnConfig)) -> Self {
        let mut config = TurnConfig::new(&settings::Ears::default(), true);
        change(&mut config);
        let machine = TurnMachine::new(config, Arc::default());
        let mut talk = Self { machine, log: Vec::new() };
        talk.tell(Input::Source(Some(EchoPath::Cancelled)));
        talk.silence(20);
        talk
    }

    fn new() -> Self {
        Self::with(|_| ())
    }

    fn tell(&mut self, input: Input) {
        let actions = self.machine.take(input);
        let now = self.machine.now_ms;
        self.log.extend(actions.into_iter().map(|action| (now, action)));
    }

    fn frames(&mut self, count: u32, speech: f32) {
        let rms_db = if speech > 0.2 { -20.0 } else { -50.0 };
        for _ in 0..count {
            self.tell(Input::Frame { speech, rms_db });
        }
    }

    fn speak(&mut self, frames: u32) {
        self.frames(frames, 0.95);
    }

    fn silence(&mut self, frames: u32) {
        self.frames(frames, 0.02);
    }

    fn last<T>(&self, pick: impl Fn(&Action) -> Option<T>) -> Option<T> {
        self.log.iter().rev().find_map(|(_, action)| pick(action))
    }

    fn job(&self) -> u64 {
        self.last(|a| match a {
            Action::Transcribe { job, .. } => Some(*job),
            _ => None,
        })
        .expect("a transcription was asked for")
    }

    fn words(&mut self, text: &str) {
        let job = self.job();
        let text = Some(text.to_owned());
        self.tell(Input::Words { job, text, own: false, backchannel: false });
    }

    fn answer(&mut self, complete: Option<f32>) {
        let ask = self.last(|a| match a {
            Action::AskEndOfTurn { ask, .. } => Some(*ask),
            _ => None,
        });
        self.tell(Input::EndOfTurn { ask: ask.expect("the model was asked"), complete });
    }

    fn when(&self, wanted: &Action) -> Option<f64> {
        self.log.iter().find(|(_, action)| action == wanted).map(|(at, _)| *at)
    }

    fn did(&self, wanted: &Action) -> bool {
        self.when(wanted).is_some()
    }

    fn count(&self, pick: impl Fn(&Action) -> bool) -> usize {
        self.log.iter().filter(|(_, action)| pick(action)).count()
    }

    fn states(&self) -> Vec<ListenState> {
        let state = |(_, action): &(f64, Action)| match action {
            Action::State(state) => Some(*state),
            _ => None,
        };
        self.log.iter().filter_map(state).collect()
    }

    /// Says something, is understood and answered: the turn and when it ended.
    fn whole_turn(&mut self, text: &str) -> TurnId {
        self.speak(20);
        self.silence(4);
        self.words(text);
        self.answer(Some(0.9));
        self.silence(2);
        self.last(|a| match a {
            Action::Final { turn, .. } => Some(*turn),
            _ => None,
        })
        .expect("the turn is whole")
    }

    fn answering(&mut self) -> TurnId {
        let turn = self.whole_turn("Tell me a story.");
        self.tell(Input::Sounding(turn));
        self.sounding(turn, 10);
        self.log.clear();
        turn
    }

    /// Quiet frames while the voice plays.
    fn sounding(&mut self, turn: TurnId, frames: u32) {
        for _ in 0..frames {
            self.tell(Input::Sounding(turn));
            self.silence(1);
        }
    }
}

fn is_duck(action: &Action) -> bool {
    matches!(action, Action::Duck(_))
}

const MISFIRE: fn(&Action) -> bool = |a| matches!(a, Action::SpeechEnded { misfire: true, .. });
const TURN: fn(&Action) -> bool = |a| matches!(a, Action::Final { .. });
const DRAFT: fn(&Action) -> bool = |a| matches!(a, Action::Begin { draft: true, .. });
const DISCARD: fn(&Action) -> bool = |a| matches!(a, Action::Discard(_));

#[test]
fn three_speech_frames_begin_an_utterance_with_its_pre_roll() {
    let mut talk = Talk::new();
    let before = talk.machine.heard();
    talk.speak(2);
    assert!(!talk.did(&Action::SpeechStarted));
    talk.speak(1);
    assert!(talk.did(&Action::SpeechStarted));
    assert_eq!(talk.machine.needs_from(), before - samples(500.0));
}

#[test]
fn two_speech_frames_are_a_click() {
    let mut talk = Talk::new();
    for _ in 0..5 {
        talk.speak(2);
        talk.silence(1);
    }
    assert!(!talk.did(&Action::SpeechStarted));
}

#[test]
fn hysteresis_holds_speech_between_the_thresholds() {
    let mut talk = Talk::new();
    talk.frames(10, 0.45);
    assert!(!talk.did(&Action::SpeechStarted), "below the upper threshold nothing begins");
    talk.speak(1);
    talk.frames(2, 0.4);
    assert!(talk.did(&Action::SpeechStarted), "between the thresholds it goes on");
    talk.frames(30, 0.4);
    assert_eq!(talk.states().last(), Some(&ListenState::UserSpeaking));
}

#[test]
fn a_complete_sentence_ends_200_ms_after_its_last_frame() {
    let mut talk = Talk::new();
    talk.speak(20);
    let end = talk.machine.now_ms;
    talk.silence(4);
    talk.words("What time is it?");
    talk.answer(Some(0.9));
    assert!(!talk.did(&Action::Endpoint), "an early answer waits for the silence");
    talk.silence(4);
    let endpoint = talk.when(&Action::Endpoint).unwrap() - end;
    assert!((192.0..=224.0).contains(&endpoint), "{endpoint}");
    let turn = TurnId(1);
    assert!(talk.did(&Action::Confirm(turn)));
    assert_eq!(talk.count(|a| matches!(a, Action::Transcribe { .. })), 1);
    let last = samples(end);
    assert!(talk.did(&Action::SpeechEnded { end: last, misfire: false }));
    use ListenState::*;
    assert_eq!(talk.states(), [Listening, UserSpeaking, Deciding, Thinking]);
}

#[test]
fn the_clock_of_a_late_answer_runs_from_the_last_speech_frame() {
    let mut talk = Talk::new();
    talk.speak(20);
    talk.silence(9);
    assert!(!talk.did(&Action::Endpoint));
    talk.answer(Some(0.9));
    assert!(talk.did(&Action::Endpoint), "the answer itself ends the turn");
}

#[test]
fn an_incomplete_sentence_is_asked_about_again_and_ends_at_the_hard_end() {
    let mut talk = Talk::new();
    talk.speak(20);
    let end = talk.machine.now_ms;
    let mut asked = Vec::new();
    for _ in 0..90 {
        let before = talk.log.len();
        talk.silence(1);
        if talk.log[before..].iter().any(|(_, a)| matches!(a, Action::AskEndOfTurn { .. })) {
            asked.push(talk.machine.now_ms - end);
            talk.answer(Some(0.1));
        }
    }
    assert!(asked.len() >= 9, "{asked:?}");
    for pair in asked.windows(2) {
        assert!((200.0..=300.0).contains(&(pair[1] - pair[0])), "{asked:?}");
    }
    let endpoint = talk.when(&Action::Endpoint).unwrap() - end;
    assert!((2470.0..=2530.0).contains(&endpoint), "{endpoint}");
}

#[test]
fn the_model_is_shown_the_turn_so_far_until_alice_was_heard() {
    let asked_from = |talk: &Talk| {
        talk.last(|a| match a {
            Action::AskEndOfTurn { from, .. } => Some(*from),
            _ => None,
        })
        .unwrap()
    };
    let mut talk = Talk::new();
    let turn = talk.whole_turn("And so, my fellow Americans.");
    let first = asked_from(&talk);
    talk.silence(30);
    talk.speak(20);
    assert!(talk.machine.needs_from() <= first);
    talk.silence(5);
    assert_eq!(asked_from(&talk), first, "the pause is inside one turn");
    talk.silence(80);
    talk.tell(Input::Over(turn));

    let mut talk = Talk::new();
    let turn = talk.whole_turn("And so, my fellow Americans.");
    let first = asked_from(&talk);
    talk.tell(Input::Sounding(turn));
    talk.tell(Input::Over(turn));
    talk.silence(30);
    talk.speak(20);
    talk.silence(5);
    assert!(asked_from(&talk) > first, "a new turn");
}

#[test]
fn without_a_model_patience_and_words_decide() {
    let cases = [
        (500.0, None, 500.0),
        (700.0, None, 700.0),
        (1200.0, None, 1200.0),
        (700.0, Some("What time is it?"), 560.0),
        (700.0, Some("I would like to"), 1260.0),
    ];
    for (patience, text, wanted) in cases {
        let mut talk = Talk::with(|config| {
            config.model = false;
            config.patience_ms = patience;
        });
        talk.speak(20);
        let end = talk.machine.now_ms;
        talk.silence(4);
        if let Some(text) = text {
            talk.words(text);
        }
        talk.silence(50);
        let endpoint = talk.when(&Action::Endpoint).unwrap() - end;
        assert!((endpoint - wanted).abs() <= 32.0, "{text:?}: {endpoint}, not {wanted}");
        assert_eq!(talk.count(|a| matches!(a, Action::AskEndOfTurn { .. })), 0);
    }
}

#[test]
fn a_model_that_fails_or_hangs_leaves_the_timer() {
    for fails in [true, false] {
        let mut talk = Talk::new();
        talk.speak(20);
        let end = talk.machine.now_ms;
        talk.silence(5);
        if fails {
            talk.answer(None);
        }
        talk.silence(40);
        let endpoint = talk.when(&Action::Endpoint).unwrap() - end;
        assert!((endpoint - 700.0).abs() <= 32.0, "{endpoint}");
    }
}

#[test]
fn words_that_lead_on_outvote_the_model() {
    let mut talk = Talk::new();
    talk.speak(20);
    talk.silence(4);
    talk.words("I went to the shop and");
    talk.answer(Some(0.9));
    talk.silence(10);
    assert!(!talk.did(&Action::Endpoint));
    talk.speak(20);
    talk.silence(4);
    talk.words("I went to the shop and bought bread.");
    talk.answer(Some(0.9));
    talk.silence(3);
    assert!(talk.did(&Action::Endpoint));
    assert_eq!(talk.count(TURN), 1);
}

#[test]
fn more_speech_discards_the_draft_and_the_next_one_has_a_new_id() {
    let mut talk = Talk::new();
    talk.speak(20);
    talk.silence(5);
    talk.words("I think");
    assert!(talk.did(&Action::Begin { turn: TurnId(1), text: "I think".into(), draft: true }));
    talk.speak(20);
    assert!(talk.did(&Action::Discard(TurnId(1))));
    talk.silence(4);
    talk.words("I think so.");
    talk.answer(Some(0.9));
    talk.silence(3);
    assert!(talk.did(&Action::Confirm(TurnId(2))));
    assert!(!talk.did(&Action::Confirm(TurnId(1))));
}

#[test]
fn speech_before_the_words_of_a_draft_cancels_them() {
    let mut talk = Talk::new();
    talk.speak(20);
    talk.silence(4);
    let job = talk.job();
    talk.speak(5);
    assert!(talk.did(&Action::CancelTranscribe(job)));
    talk.tell(Input::Words { job, text: Some("late".into()), own: false, backchannel: false });
    assert_eq!(talk.count(DRAFT), 0);
}

#[test]
fn one_frame_in_a_silence_is_a_click_and_does_not_move_its_clock() {
    let mut talk = Talk::new();
    talk.speak(20);
    let end = talk.machine.now_ms;
    talk.silence(4);
    talk.words("Yes.");
    talk.answer(Some(0.9));
    talk.speak(1);
    talk.silence(2);
    let endpoint = talk.when(&Action::Endpoint).unwrap() - end;
    assert!(endpoint <= 224.0, "{endpoint}");
    assert_eq!(talk.count(DISCARD), 0);
}

#[test]
fn without_speculation_the_turn_begins_at_its_end() {
    let mut talk = Talk::with(|config| config.speculate = false);
    talk.whole_turn("Hello there.");
    assert_eq!(talk.count(DRAFT), 0);
    let begin = Action::Begin { turn: TurnId(1), text: "Hello there.".into(), draft: false };
    assert!(talk.did(&begin));
}

#[test]
fn words_that_come_after_the_end_begin_the_turn_at_once() {
    let mut talk = Talk::new();
    talk.speak(20);
    talk.silence(4);
    talk.answer(Some(0.9));
    talk.silence(10);
    assert_eq!(talk.states().last(), Some(&ListenState::Deciding));
    talk.words("Hello.");
    assert!(talk.did(&Action::Begin { turn: TurnId(1), text: "Hello.".into(), draft: false }));
}

#[test]
fn speech_that_comes_back_before_the_words_do_goes_on_with_the_utterance() {
    let mut talk = Talk::new();
    talk.speak(20);
    talk.silence(4);
    talk.answer(Some(0.9));
    talk.silence(4);
    assert!(talk.did(&Action::Endpoint));
    talk.speak(10);
    assert_eq!(talk.states().last(), Some(&ListenState::UserSpeaking));
    talk.silence(4);
    talk.words("One sentence.");
    talk.answer(Some(0.9));
    talk.silence(3);
    assert_eq!(talk.count(TURN), 1);
    assert_eq!(talk.count(|a| *a == Action::SpeechStarted), 1);
}

#[test]
fn a_turn_without_words_is_a_misfire() {
    let mut talk = Talk::new();
    talk.speak(20);
    talk.silence(4);
    talk.words("");
    talk.answer(Some(0.9));
    talk.silence(4);
    assert_eq!(talk.count(MISFIRE), 1);
    assert_eq!(talk.count(TURN), 0);
    assert_eq!(talk.states().last(), Some(&ListenState::Listening));
}

#[test]
fn short_speech_is_a_misfire() {
    let mut talk = Talk::with(|config| config.min_speech_ms = 250.0);
    talk.speak(4);
    talk.silence(8);
    assert_eq!(talk.count(MISFIRE), 1);
    assert_eq!(talk.count(|a| matches!(a, Action::Transcribe { .. })), 0);
}

#[test]
fn a_failed_transcription_is_tried_once_more_at_the_end() {
    let mut talk = Talk::new();
    talk.speak(20);
    talk.silence(4);
    let job = talk.job();
    talk.tell(Input::Words { job, text: None, own: false, backchannel: false });
    talk.answer(Some(0.9));
    talk.silence(3);
    assert_ne!(talk.job(), job);
    let job = talk.job();
    talk.tell(Input::Words { job, text: None, own: false, backchannel: false });
    assert_eq!(talk.count(MISFIRE), 1);
    assert_eq!(talk.states().last(), Some(&ListenState::Listening));
}

#[test]
fn a_transcription_that_never_comes_is_given_up() {
    let mut talk = Talk::new();
    talk.speak(20);
    talk.silence(4);
    talk.answer(Some(0.9));
    talk.silence(3);
    talk.silence(90);
    assert_eq!(talk.count(MISFIRE), 1);
    assert_eq!(talk.states().last(), Some(&ListenState::Listening));
}

#[test]
fn words_are_waited_for_until_their_timeout_has_told_why() {
    let mut talk = Talk::with(|config| config.words_ms = 10_000.0);
    talk.speak(20);
    talk.silence(4);
    talk.answer(Some(0.9));
    talk.silence(3);
    // 9.9 s, then 10.6 s.
    talk.silence(310);
    assert_eq!(talk.count(MISFIRE), 0);
    talk.silence(22);
    assert_eq!(talk.count(MISFIRE), 1);
}

#[test]
fn a_turn_is_taken_back_when_the_user_goes_on_before_anything_was_heard() {
    let mut talk = Talk::new();
    let first = talk.whole_turn("I want a coffee.");
    talk.silence(10);
    talk.speak(10);
    assert!(talk.did(&Action::Reopen(first)));
    talk.silence(4);
    talk.words("With milk.");
    talk.answer(Some(0.9));
    talk.silence(3);
    let text = talk.last(|a| match a {
        Action::Final { text, .. } => Some(text.clone()),
        _ => None,
    });
    assert_eq!(text.as_deref(), Some("I want a coffee. With milk."));
}

#[test]
fn a_cough_after_a_turn_does_not_lose_it() {
    let mut talk = Talk::new();
    let first = talk.whole_turn("I want a coffee.");
    talk.speak(4);
    assert!(talk.did(&Action::Reopen(first)));
    talk.silence(4);
    talk.words("");
    talk.answer(Some(0.9));
    talk.silence(3);
    let again =
        Action::Begin { turn: TurnId(first.0 + 1), text: "I want a coffee.".into(), draft: false };
    assert!(talk.did(&again));
    assert_eq!(talk.states().last(), Some(&ListenState::Thinking));
}

#[test]
fn after_the_window_new_words_stop_the_thinking_and_noise_does_not() {
    for (words, stops) in [("Never mind.", true), ("", false)] {
        let mut talk = Talk::new();
        let first = talk.whole_turn("I want a coffee.");
        talk.silence(30);
        talk.speak(10);
        talk.silence(4);
        talk.words(words);
        talk.answer(Some(0.9));
        talk.silence(3);
        assert!(!talk.did(&Action::Reopen(first)));
        assert_eq!(talk.did(&Action::Interrupt(first)), stops, "{words}");
        assert_eq!(talk.count(TURN), if stops { 2 } else { 1 });
        assert_eq!(talk.states().last(), Some(&ListenState::Thinking));
    }
}

#[test]
fn speech_over_the_voice_ducks_then_interrupts_and_becomes_the_next_turn() {
    let mut talk = Talk::new();
    let turn = talk.answering();
    let onset = talk.machine.now_ms;
    talk.speak(8);
    let ducked = talk.when(&Action::Duck(true)).unwrap() - onset;
    let stopped = talk.when(&Action::Interrupt(turn)).unwrap() - onset;
    assert!(ducked <= 64.0 && stopped <= 160.0, "ducked {ducked}, stopped {stopped}");
    assert!(talk.did(&Action::Duck(false)));
    let from = talk.machine.needs_from();
    assert!(from < samples(onset), "with its pre-roll");
    use ListenState::*;
    assert_eq!(talk.states(), [Interrupted, UserSpeaking]);
    talk.silence(4);
    talk.words("Stop.");
    talk.answer(Some(0.9));
    talk.silence(3);
    assert_eq!(talk.count(TURN), 1);
}

#[test]
fn a_cough_over_the_voice_only_ducks() {
    let mut talk = Talk::new();
    let turn = talk.answering();
    talk.frames(2, 0.6);
    let ducked = talk.when(&Action::Duck(true)).unwrap();
    talk.sounding(turn, 10);
    let back = talk.when(&Action::Duck(false)).unwrap();
    assert!(back - ducked <= 300.0, "{}", back - ducked);
    assert!(!talk.did(&Action::Interrupt(turn)));
    assert!(!talk.did(&Action::SpeechStarted));
}

#[test]
fn a_murmur_that_goes_on_ducks_once() {
    let mut talk = Talk::new();
    let turn = talk.answering();
    for _ in 0..60 {
        talk.tell(Input::Sounding(turn));
        talk.frames(1, 0.4);
    }
    assert_eq!(talk.count(is_duck), 2);
    assert!(!talk.did(&Action::Interrupt(turn)));
}

#[test]
fn a_back_channel_that_interrupted_is_no_turn() {
    let mut talk = Talk::new();
    talk.answering();
    talk.speak(8);
    talk.silence(4);
    let job = talk.job();
    talk.tell(Input::Words { job, text: Some("Mm-hm.".into()), own: false, backchannel: true });
    talk.answer(Some(0.9));
    talk.silence(4);
    assert_eq!(talk.count(TURN), 0);
    assert_eq!(talk.states().last(), Some(&ListenState::Listening));
}

#[test]
fn a_back_channel_in_quiet_is_an_answer() {
    let mut talk = Talk::new();
    talk.speak(8);
    talk.silence(4);
    let job = talk.job();
    talk.tell(Input::Words { job, text: Some("Mm-hm.".into()), own: false, backchannel: true });
    talk.answer(Some(0.9));
    talk.silence(4);
    assert_eq!(talk.count(TURN), 1);
}

#[test]
fn alices_own_words_are_no_turn() {
    let mut talk = Talk::new();
    talk.speak(20);
    talk.silence(4);
    let job = talk.job();
    talk.tell(Input::Words { job, text: Some("Once upon".into()), own: true, backchannel: false });
    talk.answer(Some(0.9));
    talk.silence(4);
    assert_eq!((talk.count(TURN), talk.count(MISFIRE)), (0, 1));
}

#[test]
fn an_open_echo_path_needs_other_words_than_alices() {
    let cases = [
        ("once upon a time", true, false),
        ("stop", false, false),
        ("please stop now", false, true),
    ];
    for (text, own, stops) in cases {
        let mut talk = Talk::new();
        talk.tell(Input::Source(Some(EchoPath::Open)));
        let turn = talk.answering();
        talk.frames(30, 0.65);
        assert_eq!(talk.count(|a| matches!(a, Action::Transcribe { .. })), 0, "too unsure");
        talk.speak(12);
        assert_eq!(talk.count(is_duck), 0);
        let job = talk.job();
        talk.tell(Input::Words { job, text: Some(text.into()), own, backchannel: false });
        assert_eq!(talk.did(&Action::Interrupt(turn)), stops, "{text}");
        let looks = talk.count(|a| matches!(a, Action::Transcribe { .. }));
        talk.speak(20);
        if !stops {
            let more = talk.count(|a| matches!(a, Action::Transcribe { .. })) - looks;
            assert_eq!(more, 0, "not again within a second");
        }
    }
}

#[test]
fn half_duplex_is_deaf_while_the_voice_sounds_and_a_little_longer() {
    let cases: [fn(&mut TurnConfig); 2] =
        [|config| config.mode = ListenMode::HalfDuplex, |config| config.barge_in = false];
    for change in cases {
        let mut talk = Talk::with(change);
        let turn = talk.answering();
        talk.speak(30);
        talk.tell(Input::Over(turn));
        talk.speak(11);
        assert!(!talk.did(&Action::SpeechStarted), "hold-off");
        assert_eq!(talk.count(is_duck), 0);
        talk.silence(5);
        talk.speak(4);
        assert!(talk.did(&Action::SpeechStarted));
        assert!(talk.machine.needs_from() > samples(30.0 * FRAME_MS), "nothing of the voice in it");
    }
}

#[test]
fn a_device_that_is_half_duplex_is_treated_so_in_open_mode() {
    let mut talk = Talk::new();
    talk.tell(Input::Source(Some(EchoPath::HalfDuplex)));
    let turn = talk.answering();
    talk.speak(30);
    assert!(!talk.did(&Action::Interrupt(turn)) && !talk.did(&Action::SpeechStarted));
}

#[test]
fn a_voice_that_never_says_it_is_done_does_not_keep_the_ears_closed() {
    let mut talk = Talk::with(|config| config.mode = ListenMode::HalfDuplex);
    talk.answering();
    talk.silence(100);
    assert_eq!(talk.states().last(), Some(&ListenState::Thinking));
    talk.speak(5);
    assert!(talk.did(&Action::SpeechStarted));
    talk.silence(4);
    talk.words("");
    talk.silence(2000);
    assert_eq!(talk.states().last(), Some(&ListenState::Listening));
}

#[test]
fn a_voice_that_begins_while_the_user_speaks_is_stopped() {
    let mut talk = Talk::new();
    talk.speak(10);
    talk.tell(Input::Thinking(TurnId(50)));
    talk.tell(Input::Sounding(TurnId(50)));
    assert!(talk.did(&Action::Interrupt(TurnId(50))));
}

#[test]
fn late_signs_of_a_stopped_reply_do_not_bring_it_back() {
    let mut talk = Talk::new();
    let turn = talk.answering();
    talk.speak(8);
    assert!(talk.did(&Action::Interrupt(turn)));
    talk.log.clear();
    talk.tell(Input::Sounding(turn));
    talk.tell(Input::Alive(turn));
    talk.tell(Input::Over(turn));
    assert!(talk.log.is_empty(), "{:?}", talk.log);
}

#[test]
fn an_interruption_from_elsewhere_opens_the_ears() {
    for which in [true, false] {
        let mut talk = Talk::new();
        let turn = talk.answering();
        talk.frames(2, 0.6);
        talk.tell(Input::Interrupted(which.then_some(turn)));
        assert!(talk.did(&Action::Duck(false)));
        assert_eq!(talk.states().last(), Some(&ListenState::Listening));
    }
}

#[test]
fn mute_forgets_what_is_being_said() {
    let mut talk = Talk::new();
    talk.speak(20);
    talk.silence(4);
    talk.words("A secret");
    talk.tell(Input::Mute(true));
    assert_eq!((talk.count(DISCARD), talk.count(MISFIRE)), (1, 1));
    assert_eq!(talk.states().last(), Some(&ListenState::Idle));
    talk.speak(50);
    let muted_until = talk.machine.heard();
    talk.tell(Input::Mute(false));
    assert_eq!(talk.states().last(), Some(&ListenState::Listening));
    talk.speak(3);
    assert_eq!(talk.machine.needs_from(), muted_until, "no pre-roll from the muted time");
}

#[test]
fn push_to_talk_ends_the_turn_with_the_key() {
    let mut talk = Talk::with(|config| config.mode = ListenMode::PushToTalk);
    assert_eq!(talk.states().last(), None, "idle from the start");
    talk.speak(30);
    assert!(!talk.did(&Action::SpeechStarted));
    talk.tell(Input::PushToTalk(true));
    talk.speak(20);
    talk.silence(100);
    assert!(!talk.did(&Action::Endpoint), "a pause does not end it");
    talk.speak(5);
    talk.tell(Input::PushToTalk(false));
    assert!(talk.did(&Action::Endpoint));
    talk.words("Hello.");
    assert_eq!(talk.count(TURN), 1);
    let turn = TurnId(1);
    talk.tell(Input::Sounding(turn));
    talk.tell(Input::PushToTalk(true));
    assert!(talk.did(&Action::Interrupt(turn)), "the key interrupts");
}

#[test]
fn a_lost_source_ends_the_turn_with_what_was_said() {
    let lost = [Input::Source(None), Input::End, Input::Idle(1000.0)];
    for input in lost {
        let mut talk = Talk::new();
        talk.speak(20);
        talk.tell(input.clone());
        assert!(talk.did(&Action::Endpoint), "{input:?}");
        talk.words("Half a sentence");
        assert_eq!(talk.count(TURN), 1);
        talk.tell(Input::Over(TurnId(1)));
        talk.tell(Input::Source(Some(EchoPath::None)));
        assert_eq!(talk.states().last(), Some(&ListenState::Listening));
    }
}

#[test]
fn the_longest_capture_is_cut_where_speech_is_least_likely() {
    let mut talk = Talk::with(|config| config.max_turn = samples(5_000.0));
    let mut cuts = Vec::new();
    for frame in 0..400u32 {
        let before = talk.log.len();
        talk.frames(1, if frame % 40 == 20 { 0.36 } else { 0.95 });
        let asked = match talk.log.get(before) {
            Some((_, Action::Transcribe { from, to, .. })) => Some((*from, *to)),
            _ => None,
        };
        if let Some((from, to)) = asked {
            assert!(to - from <= samples(5_000.0));
            cuts.push((from, to));
            talk.words(&format!("piece {}", cuts.len()));
        }
    }
    assert!(cuts.len() >= 2, "{cuts:?}");
    for pair in cuts.windows(2) {
        assert_eq!(pair[0].1, pair[1].0, "nothing is lost between the pieces");
    }
    talk.silence(4);
    talk.words("the end.");
    talk.answer(Some(0.9));
    talk.silence(3);
    let text = talk.last(|a| match a {
        Action::Final { text, .. } => Some(text.clone()),
        _ => None,
    });
    let pieces: String = (1..=cuts.len()).map(|piece| format!("piece {piece} ")).collect();
    assert_eq!(text, Some(format!("{pieces}the end.")));
}

#[test]
fn a_turn_discarded_elsewhere_begins_again_at_its_end() {
    let mut talk = Talk::new();
    talk.speak(20);
    talk.silence(4);
    talk.words("Hello.");
    talk.tell(Input::Over(TurnId(1)));
    talk.answer(Some(0.9));
    talk.silence(3);
    assert!(!talk.did(&Action::Confirm(TurnId(1))));
    assert!(talk.did(&Action::Begin { turn: TurnId(2), text: "Hello.".into(), draft: false }));
}

#[test]
fn the_room_noise_after_a_voice_does_not_count_as_speech() {
    let mut talk = Talk::new();
    talk.speak(20);
    let end = talk.machine.now_ms;
    for _ in 0..3 {
        // The model still believes in speech, but only the noise of the room is left.
        talk.tell(Input::Frame { speech: 0.8, rms_db: -50.0 });
    }
    talk.silence(1);
    talk.words("Hello.");
    talk.answer(Some(0.9));
    talk.silence(3);
    let endpoint = talk.when(&Action::Endpoint).unwrap() - end;
    assert!(endpoint <= 224.0, "{endpoint}");
}
