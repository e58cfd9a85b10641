use proptest::prelude::*;

use super::*;
use crate::kernel::contracts::Emotion;

fn pieces(text: &str) -> Vec<Piece> {
    let mut segmenter = Segmenter::new(SegmenterOptions::default());
    let mut out = segmenter.push(text);
    out.extend(segmenter.finish());
    out
}

fn spoken(text: &str) -> Vec<String> {
    pieces(text).into_iter().map(|piece| piece.spoken).filter(|text| !text.is_empty()).collect()
}

fn all_spoken(text: &str) -> String {
    spoken(text).join(" ")
}

fn display(text: &str) -> String {
    pieces(text).into_iter().map(|piece| piece.display).collect()
}

#[test]
fn cuts_where_a_person_would_breathe() {
    let mut wrong = Vec::new();
    for (text, want) in [
        // The first clause is early, then sentences.
        (
            "Sure, I can do that, of course. It takes two minutes. Then we are done.",
            vec![
                "Sure,",
                "I can do that,",
                "of course. It takes two minutes.",
                "Then we are done.",
            ],
        ),
        ("Hello there! How are you?", vec!["Hello there!", "How are you?"]),
        // Numbers, times, versions, addresses.
        (
            "It costs 3.50 dollars at 10:30 today, right?",
            vec!["It costs 3.50 dollars at 10:30 today,", "right?"],
        ),
        ("Use v1.2.0 or 2.0.1, please.", vec!["Use v1.2.0 or 2.0.1,", "please."]),
        ("There are 1,234,567 people here.", vec!["There are 1,234,567 people here."]),
        // Titles, initials, abbreviations.
        (
            "I met Dr. Smith and J. K. Rowling yesterday.",
            vec!["I met Dr. Smith and J. K. Rowling yesterday."],
        ),
        ("We met at 5 p.m. on a Tuesday evening.", vec!["We met at 5 p.m. on a Tuesday evening."]),
        ("We met at 5 p.m. She was late again.", vec!["We met at 5 p.m.", "She was late again."]),
        (
            "Take some fruit, e.g. apples or pears, etc. and go.",
            vec!["Take some fruit,", "e.g. apples or pears, etc. and go."],
        ),
        ("She and I. That is all there is.", vec!["She and I.", "That is all there is."]),
        // Quotes and brackets behind the stop.
        (
            "\"Are you sure?\" she asked me twice. \"Yes.\"",
            vec!["\"Are you sure?\"", "she asked me twice.", "\"Yes.\""],
        ),
        ("(It rained all day.) Then it stopped.", vec!["(It rained all day.)", "Then it stopped."]),
        ("Well... I don't know about that.", vec!["Well...", "I don't know about that."]),
        ("Really?! That is quite a surprise.", vec!["Really?!", "That is quite a surprise."]),
        // CJK: no space, no look-ahead.
        (
            "你好！我是爱丽丝，很高兴认识你。今天想聊点什么？",
            vec!["你好！", "我是爱丽丝，", "很高兴认识你。今天想聊点什么？"],
        ),
        ("她说：“你好。”然后走了很远很远的路。", vec!["她说：“你好。”", "然后走了很远很远的路。"]),
        ("现在是10：30，我们走吧，好吗？", vec!["现在是10：30，", "我们走吧，", "好吗？"]),
        ("我喜欢用Rust写程序，因为it is fast。", vec!["我喜欢用Rust写程序，", "因为it is fast。"]),
        // Lines.
        (
            "Three things to buy:\n- green apples\n- yellow pears\n\nThat is all.",
            vec!["Three things to buy:", "green apples", "yellow pears", "That is all."],
        ),
        ("1. Wash it\n2. Cut it up\n", vec!["1, Wash it, 2, Cut it up"]),
    ] {
        let want: Vec<String> = want
            .into_iter()
            .map(|text| text.strip_suffix(':').map_or(text.to_owned(), |text| format!("{text}.")))
            .collect();
        if spoken(text) != want {
            wrong.push((text, spoken(text), want));
        }
        assert_eq!(display(text).trim_end(), text.trim_end());
    }
    assert_eq!(wrong, []);
}

#[test]
fn a_text_without_marks_is_cut_all_the_same() {
    let words = "word ".repeat(100);
    let counts: Vec<usize> = spoken(&words).iter().map(|text| text.split(' ').count()).collect();
    assert_eq!(counts, [15, 40, 40, 5]);
    let counts: Vec<usize> =
        spoken(&"好".repeat(150)).iter().map(|text| text.chars().count()).collect();
    assert_eq!(counts, [40, 80, 30]);
    assert!(spoken(&"x".repeat(2_000)).iter().all(|text| text.len() <= 401));
    // A long sentence has its clauses spoken one by one.
    let clause = "and then they went on walking along the river for a very long time indeed, ";
    assert!(spoken(&clause.repeat(8)).iter().all(|text| text.len() < 180));
}

#[test]
fn what_is_not_for_the_ear_is_not_spoken() {
    let mut wrong = Vec::new();
    for (text, want) in [
        ("<think>Let me see.\nHm.</think>\n\nHello you!", "Hello you!"),
        ("<think>never closed and on and on", ""),
        ("A<thinking>x <think>y</think> z</thinking> day is long", "A day is long"),
        ("[happy] Nice to see you!", "Nice to see you!"),
        ("Nice [happy:0.7] to see you!", "Nice to see you!"),
        ("<|EMOTE_HAPPY|>Nice to see <|DELAY:1|>you!<|im_end|>", "Nice to see you!"),
        ("Nice [pause] to see you [unknown_tag].", "Nice to see you."),
        ("*smiles* Nice to see you! *waves her hand*", "Nice to see you!"),
        (
            "I *really* mean **all of it** and __this__ too.",
            "I really mean all of it and this too.",
        ),
        ("Good (laughs) to hear (which is rare).", "Good to hear (which is rare)."),
        ("（微笑）你好，很高兴见到你。", "你好， 很高兴见到你。"),
        ("# A title\nSome text here.", "A title, Some text here."),
        (
            "> A quote of someone.\n- [x] done with it\n* all of it",
            "A quote of someone. done with it all of it",
        ),
        ("See [the long manual](https://x.example/a_b(c)) now.", "See the long manual now."),
        ("Look: ![a red cat](cat.png) here", "Look: a red cat here"),
        ("Go to https://example.com/a?b=1,2. Then come back.", "Go to. Then come back."),
        ("Write www.example.org, please.", "Write, please."),
        ("Call `snake_case_name()` or `v1.2` twice.", "Call snake case name or v1.2 twice."),
        ("Like this:\n```rust\nfn main() {}\n```\nThat is it.", "Like this. That is it."),
        ("Great 🎉👩‍👩‍👧 news 👍🏽!", "Great news!"),
        ("Fine :) or not :-( or (◕‿◕) or ^_^ ok", "Fine or not or or ok"),
        ("I love it <3 and you xD", "I love it and you"),
        ("2 * 3 = 6 and 5 < 7 & a + b", "2 * 3 = 6 and 5 < 7 & a + b"),
        ("It costs ~5 euros #1 of #all", "It costs about 5 euros #1 of all"),
        ("...", ""),
        ("?! -- ***", ""),
        ("As they say [1], it is known [2,3].", "As they say, it is known."),
        ("Wait — what — no", "Wait, what, no"),
        ("use <b>bold</b><br/> text", "use bold text"),
        ("x[0] and a[idx] are read", "x and a idx are read"),
        ("| Name | Age |\n|------|-----|\n| Ann | 30 |", "Name, Age, Ann, 30,"),
    ] {
        if all_spoken(text) != want {
            wrong.push((text, all_spoken(text), want));
        }
    }
    assert_eq!(wrong, []);
}

#[test]
fn the_eye_keeps_all_but_tags_and_thoughts() {
    for (text, want) in [
        ("[happy] Nice *smiles* to see **you** 🎉!", "Nice *smiles* to see **you** 🎉!"),
        ("<think>x</think>\n\nHi `a` <b>", "Hi `a` <b>"),
        ("Nice [sad] day", "Nice day"),
        ("A [b] (c) ```\nx [happy]\n``` d", "A (c) ```\nx [happy]\n``` d"),
    ] {
        assert_eq!(display(text), want, "{text}");
    }
}

#[test]
fn a_block_of_code_is_a_piece_of_its_own() {
    let all = pieces("Try this one:\n```\nlet a = 1.5;\n```\nIt works well.");
    let parts: Vec<_> = all.iter().map(|p| (p.display.as_str(), p.spoken.as_str())).collect();
    assert_eq!(
        parts,
        [
            ("Try this one:", "Try this one."),
            ("\n```\nlet a = 1.5;\n```", ""),
            ("\nIt works well.", "It works well."),
        ]
    );
}

#[test]
fn a_tag_goes_with_its_sentence() {
    let tags = |text: &str| -> Vec<_> {
        pieces(text)
            .into_iter()
            .map(|piece| (piece.spoken, piece.tag.map(|tag| tag.emotion)))
            .collect()
    };
    assert_eq!(
        tags("[happy] Good. [sad] But he is gone for good. I miss him a lot."),
        [
            ("Good.".into(), Some(Emotion::Happy)),
            ("But he is gone for good.".into(), Some(Emotion::Sad)),
            ("I miss him a lot.".into(), None),
        ]
    );
    assert_eq!(
        tags("What a surprise [surprised] to see you."),
        [("What a surprise to see you.".into(), Some(Emotion::Surprised))]
    );
    assert_eq!(
        tags("So nice to see you. [happy]"),
        [("So nice to see you.".into(), None), (String::new(), Some(Emotion::Happy))]
    );
}

#[test]
fn the_first_clause_does_not_wait_for_its_next_word() {
    let mut segmenter = Segmenter::new(SegmenterOptions::default());
    assert_eq!(segmenter.push("Of course I can").len(), 0);
    assert_eq!(segmenter.push(",").len(), 1);
    let mut segmenter = Segmenter::new(SegmenterOptions::default());
    assert_eq!(segmenter.push("我当然可以").len(), 0);
    assert_eq!(segmenter.push("。").len(), 1);
    // A dot could be a decimal point; a space settles it.
    let mut segmenter = Segmenter::new(SegmenterOptions::default());
    assert_eq!(segmenter.push("It is number 4.").len(), 0);
    assert_eq!(segmenter.push(" ").len(), 1);
}

#[test]
fn an_unclosed_tag_is_given_back() {
    assert_eq!(all_spoken("This is [not closed and goes on"), "This is not closed and goes on");
    let long = format!("Look <{} here", "a".repeat(100));
    assert_eq!(display(&long), long);
    assert_eq!(display("ends with *"), "ends with *");
    assert_eq!(display("ends with <thi"), "ends with <thi");
}

/// Text of the bits that decide something, and any other character.
fn soup() -> impl Strategy<Value = String> {
    let bit = prop_oneof![
        4 => "[a-zA-Z]{1,8}",
        3 => Just(" ".to_owned()),
        2 => "[.,!?;:…。！？，、\n]",
        2 => "[\\[\\]<>*_`()#~|/:\"'“”「」（）-]",
        1 => prop::sample::select(vec![
            "[happy]", "[sad:0.5]", "<think>", "</think>", "<|EMOTE_SAD|>", "```", "**", "*smiles*",
            "https://a.b/c", "](", "1.5", "v1.2.0", "Dr. ", "p.m. ", "你好", "世界。", "😀", ":)", "<3",
            "\n- ", "\n1. ", "\n# ", "(laughs)", "www.", "www.x.y ",
        ])
        .prop_map(str::to_owned),
        1 => any::<char>().prop_map(|c| c.to_string()),
    ];
    prop::collection::vec(bit, 0..40).prop_map(|bits| bits.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_pieces_do_not_depend_on_the_chunks(text in soup(), cuts in prop::collection::vec(1usize..7, 1..20)) {
        let mut segmenter = Segmenter::new(SegmenterOptions::default());
        let mut got = Vec::new();
        let mut sizes = cuts.iter().cycle();
        let mut chunk = String::new();
        let mut left = *sizes.next().unwrap();
        for c in text.chars() {
            chunk.push(c);
            left -= 1;
            if left == 0 {
                got.extend(segmenter.push(&chunk));
                chunk.clear();
                left = *sizes.next().unwrap();
            }
        }
        got.extend(segmenter.push(&chunk));
        got.extend(segmenter.finish());
        prop_assert_eq!(got, pieces(&text));
    }

    #[test]
    fn without_tags_nothing_is_lost(text in "[a-zA-Z0-9 .,!?;:…。！？，你好世界\n*_`()#~|/\"'“”「」-]{0,300}") {
        let shown = display(&text);
        prop_assert_eq!(shown.trim_end(), text.trim_end());
    }

    #[test]
    fn the_pieces_together_are_the_whole(text in soup()) {
        let mut cleaner = Cleaner::default();
        let mut whole = String::new();
        let mut atoms: Vec<Atom> = text.chars().flat_map(|c| cleaner.push(c)).collect();
        atoms.extend(cleaner.finish());
        for atom in atoms {
            match atom {
                Atom::Char(c) | Atom::Plain(c) | Atom::Shown(c) | Atom::Says(c, _) => whole.push(c),
                Atom::Block | Atom::Tag(_) => {}
            }
        }
        let shown = display(&text);
        prop_assert_eq!(shown.trim_end(), whole.trim_end());
    }

    #[test]
    fn spoken_text_holds_no_markup(text in soup()) {
        for piece in pieces(&text) {
            prop_assert!(!piece.spoken.contains(['[', ']', '`', '😀', '\n', '_', '|']), "{:?}", piece);
            prop_assert!(piece.spoken.is_empty() || piece.spoken.chars().any(char::is_alphanumeric));
        }
    }
}
