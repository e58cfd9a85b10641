use proptest::prelude::*;

use super::*;

fn said(text: &str) -> String {
    let mut out = String::new();
    for said in say(text) {
        match said {
            Said::Word { text, .. } => {
                if !out.is_empty() {
                    out.push(' ');
                }
                out.push_str(&text);
            }
            Said::Mark(c) => out.push(c),
        }
    }
    out
}

#[test]
fn english_is_said_as_people_say_it() {
    let wrong: Vec<_> = [
        ("I have 3 cats and 21 dogs.", "I have three cats and twenty one dogs."),
        ("Exactly 1,234,567 of 305", "Exactly one million two hundred thirty four thousand five hundred sixty seven of three hundred five"),
        ("Pi is 3.14 or so.", "Pi is three point one four or so."),
        ("It is -5 °C, or 23°F.", "It is minus five degrees Celsius, or twenty three degrees Fahrenheit."),
        ("It costs $4.99, not $1 or $0.50!", "It costs four dollars and ninety nine cents, not one dollar or fifty cents!"),
        ("That is €3.5 million, or £2bn.", "That is three point five million euros, or two billion pounds."),
        ("50% of it", "fifty percent of it"),
        ("At 10:30, 9:05 or 12:00.", "At ten thirty, nine oh five or twelve o'clock."),
        ("At 10:00 a.m. we left at 5pm.", "At ten AM we left at five PM."),
        ("On 2024-05-01 and 12/25/1999.", "On May first twenty twenty four and December twenty fifth nineteen ninety nine."),
        ("Since 1984, 2005 and 1900.", "Since nineteen eighty four, two thousand five and nineteen hundred."),
        ("On May 5, the 21st or 3rd.", "On May fifth, the twenty first or third."),
        ("In the 1990s and 80s", "In the nineteen nineties and eighties"),
        ("Add 1/2 cup, 3/4 or 2/3.", "Add one half cup, three quarters or two thirds."),
        ("From 10-20 to 5–6 km.", "From ten to twenty to five to six km."),
        ("Run 5 km, 1 kg, 16GB at 3.5GHz.", "Run five kilometers, one kilogram, sixteen gigabytes at three point five gigahertz."),
        ("Use v1.2.0 now.", "Use version one point two point zero now."),
        ("Call 555-1234 or 007.", "Call five five five one two three four or zero zero seven."),
        ("Dr. Smith vs. Mr. Jones, e.g. on Main St.", "doctor Smith versus mister Jones, for example on Main street."),
        ("St. Paul, etc.", "saint Paul, et cetera."),
        ("R & D: 2 + 2 = 4", "R and D: two plus two equals four"),
        ("Write to bob@example.com.", "Write to bob at example dot com."),
        ("GPT-4 and AT&T", "GPT four and AT and T"),
        ("It's the U.S. army", "It's the U S army"),
        ("We’re #1!", "We're number one!"),
        ("He said (quietly) no.", "He said, quietly, no."),
        ("\"Are you sure?\" she asked.", "Are you sure? she asked."),
        ("well-known thing", "well known thing"),
        ("wait—what", "wait, what"),
        ("Really?! No...", "Really? No."),
    ]
    .into_iter()
    .filter(|(text, want)| said(text) != *want)
    .map(|(text, want)| (said(text), want))
    .collect();
    assert_eq!(wrong, []);
}

#[test]
fn offsets_point_to_the_written_word() {
    let text = "It costs (about) $4.99 today";
    for said in say(text) {
        if let Said::Word { at, text: word } = said {
            let written = text.get(at..).unwrap();
            assert!(
                written.chars().next() == word.chars().next() || written.starts_with('$'),
                "{word} at {at}"
            );
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_said_without_figures(text in "[ a-zA-Z0-9$€%.,:/#@&+=°'’\"()–—?!\\-]{0,60}") {
        let mut last = 0;
        for said in say(&text) {
            if let Said::Word { at, text: word } = said {
                prop_assert!(text.is_char_boundary(at) && at >= last && at < text.len());
                prop_assert!(!word.chars().any(|c| c.is_ascii_digit()), "{word}");
                last = at;
            }
        }
    }

    #[test]
    fn any_characters_are_survived(text in any::<String>()) {
        let _ = say(&text);
    }
}
