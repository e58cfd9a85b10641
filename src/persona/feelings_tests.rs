use super::*;

fn rows(table: &'static str) -> Vec<(Emotion, &'static str, &'static str)> {
    table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let mut fields = line.split('\t');
            let emotion = Emotion::from_name(fields.next().unwrap()).unwrap();
            (emotion, fields.next().unwrap(), fields.next().unwrap())
        })
        .collect()
}

fn is_chinese(sentence: &str) -> bool {
    sentence.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c))
}

/// Share of sentences whose feeling is found, printed for each language and with what is taken for
/// what. The sentences themselves are shown for the tuned table only: who reads those of the other
/// one tunes on it.
fn accuracy(name: &str, table: &'static str, show: bool) -> f64 {
    let rows = rows(table);
    let mut right = [0.0, 0.0];
    let mut all = [0.0, 0.0];
    let mut wrong = std::collections::BTreeMap::<_, u32>::new();
    for (expected, user, sentence) in &rows {
        let found = read(user, sentence);
        let language = usize::from(is_chinese(sentence));
        all[language] += 1.0;
        if found.emotion == *expected {
            right[language] += 1.0;
            continue;
        }
        *wrong.entry((expected.name(), found.emotion.name())).or_default() += 1;
        if show {
            println!(
                "{name}: {} taken for {} {:.2}: {user} | {sentence}",
                expected.name(),
                found.emotion.name(),
                found.intensity
            );
        }
    }
    for (language, at) in [("English", 0), ("Chinese", 1)] {
        let share = right[at] / all[at] * 100.0;
        println!("{name}, {language}: {} of {} = {share:.1} %", right[at], all[at]);
    }
    let mut wrong: Vec<_> = wrong.into_iter().collect();
    wrong.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    for ((expected, found), times) in wrong {
        println!("{name}: {times} × {expected} taken for {found}");
    }
    (right[0] + right[1]) / rows.len() as f64
}

#[test]
fn labelled_sentences_are_read_right() {
    assert!(accuracy("tuned", include_str!("feelings_table.tsv"), true) >= 0.85);
}

#[test]
fn held_out_sentences_are_read_right_mostly() {
    assert!(accuracy("held out", include_str!("feelings_held_out.tsv"), false) >= 0.6);
}
