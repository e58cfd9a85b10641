use super::*;

fn cut(display: &str, spoken: &str, words: &[(usize, f64)], duration_ms: f64, at: f64) -> String {
    let mut ledger = Ledger::default();
    ledger.cut(Script { display, spoken, words, duration_ms }, at);
    ledger.heard(false).text
}

#[test]
fn timed_words_count_when_the_next_one_begins() {
    let words = [(0, 40.0), (6, 400.0), (10, 700.0), (14, 900.0)];
    let text = "Hello you two there.";
    for (at, heard) in [
        (0.0, ""),
        (39.0, ""),
        (50.0, ""),
        (399.0, ""),
        (400.0, "Hello"),
        (699.0, "Hello"),
        (700.0, "Hello you"),
        (950.0, "Hello you two"),
        (1199.0, "Hello you two"),
        (1200.0, "Hello you two there."),
        (5000.0, "Hello you two there."),
    ] {
        assert_eq!(cut(text, text, &words, 1200.0, at), heard, "{at} ms");
    }
}

#[test]
fn untimed_words_count_by_their_share_of_the_sound() {
    let text = "one two three four";
    for (at, heard) in [
        (0.0, ""),
        (49.0, ""),
        (150.0, ""),
        (170.0, "one"),
        (380.0, "one"),
        (390.0, "one two"),
        (999.0, "one two three"),
        (1000.0, "one two three four"),
    ] {
        assert_eq!(cut(text, text, &[], 1000.0, at), heard, "{at} ms");
    }
}

#[test]
fn chinese_and_japanese_are_cut_at_a_character() {
    let text = "你好，很高兴认识你。";
    assert_eq!(cut(text, text, &[], 1000.0, 99.0), "");
    assert_eq!(cut(text, text, &[], 1000.0, 150.0), "你");
    assert_eq!(cut(text, text, &[], 1000.0, 210.0), "你好，");
    assert_eq!(cut(text, text, &[], 1000.0, 560.0), "你好，很高");
    let text = "カメラを見る";
    assert_eq!(cut(text, text, &[], 600.0, 350.0), "カメラ");
    let timed = [(0, 0.0), (3, 100.0), (6, 200.0)];
    assert_eq!(cut("再见吧", "再见吧", &timed, 300.0, 250.0), "再见");
}

#[test]
fn the_cut_is_carried_from_the_spoken_to_the_shown_text() {
    for (display, spoken, at, heard) in [
        // Markdown is shown, not spoken.
        ("**Hello**, my *dear* friend", "Hello, my dear friend", 500.0, "**Hello**, my"),
        // A figure in words counts when a word after it was heard.
        (
            "It is 3.5 km away, at least",
            "It is three point five kilometres away, at least",
            300.0,
            "It is",
        ),
        (
            "It is 3.5 km away, at least",
            "It is three point five kilometres away, at least",
            850.0,
            "It is 3.5 km away,",
        ),
        // An address that is not spoken is passed over with the word behind it.
        (
            "See https://a.example for more of it",
            "See for more of it",
            500.0,
            "See https://a.example for",
        ),
        ("Yes 😀 of course", "Yes of course", 400.0, "Yes"),
        ("Yes 😀 of course", "Yes of course", 600.0, "Yes 😀 of"),
        // Brackets that open belong to what follows.
        ("Well (or not) fine", "Well or not fine", 300.0, "Well"),
        // Letters count, not their case.
        ("HELLO there you", "hello there you", 800.0, "HELLO there"),
    ] {
        assert_eq!(cut(display, spoken, &[], 1000.0, at), heard, "{display} at {at}");
    }
}

#[test]
fn whole_segments_are_joined_as_they_were_written() {
    let mut ledger = Ledger::default();
    ledger.whole("Hello.");
    ledger.whole("How are you?");
    assert_eq!(ledger.clone().heard(true).text, "Hello. How are you?");
    ledger.cut(
        Script { display: "I am fine", spoken: "I am fine", words: &[], duration_ms: 900.0 },
        500.0,
    );
    assert_eq!(ledger.heard(false).text, "Hello. How are you? I am");

    let mut ledger = Ledger::default();
    ledger.whole("你好。");
    ledger.whole("再见。");
    ledger.whole(" Bye. ");
    assert_eq!(ledger.heard(true), Heard { text: "你好。再见。 Bye.".into(), complete: true });
}

#[test]
fn nothing_heard_is_an_empty_text() {
    let mut ledger = Ledger::default();
    ledger.cut(Script { display: "Hello", spoken: "Hello", words: &[], duration_ms: 900.0 }, 30.0);
    assert_eq!(ledger.heard(false), Heard::default());
}

#[test]
fn odd_timings_do_not_cut_inside_a_character_or_fail() {
    // An offset inside a character, one behind the text, times out of order.
    for words in [vec![(0, 0.0), (1, 10.0)], vec![(0, 0.0), (99, 10.0)], vec![(3, 50.0), (0, 10.0)]]
    {
        for at in [0.0, 20.0, 60.0] {
            let heard = cut("你好吗", "你好吗", &words, 100.0, at);
            assert!("你好吗".starts_with(&heard), "{heard}");
        }
    }
    assert_eq!(cut("x", "x", &[], 0.0, 0.0), "x");
}
