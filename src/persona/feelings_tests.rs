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

/// Share of sentences whose feeling is found, printed with every miss of the tuned table.
fn accuracy(name: &str, table: &'static str, show: bool) -> f64 {
    let rows = rows(table);
    let mut right = 0;
    for (expected, user, sentence) in &rows {
        let found = read(user, sentence);
        if found.emotion == *expected {
            right += 1;
        } else if show {
            println!(
                "{name}: {} taken for {} {:.2}: {user} | {sentence}",
                expected.name(),
                found.emotion.name(),
                found.intensity
            );
        }
    }
    let accuracy = f64::from(right) / rows.len() as f64;
    println!("{name}: {right} of {} = {:.1} %", rows.len(), accuracy * 100.0);
    accuracy
}

#[test]
fn labelled_sentences_are_read_right() {
    assert!(accuracy("tuned", include_str!("feelings_table.tsv"), true) >= 0.85);
}

#[test]
fn held_out_sentences_are_read_right_mostly() {
    assert!(accuracy("held out", include_str!("feelings_held_out.tsv"), false) >= 0.6);
}
