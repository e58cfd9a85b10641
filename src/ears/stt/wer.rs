//! Word error rate, for the tests of recognisers.

/// Words of a text as they are compared: lower case, without punctuation.
pub fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'')
        .map(|word| word.trim_matches('\'').to_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
}

/// Substitutions, insertions and deletions that turn `heard` into `said`, for each word of `said`.
pub fn word_error_rate(said: &str, heard: &str) -> f64 {
    let (said, heard) = (words(said), words(heard));
    let mut row: Vec<usize> = (0..=heard.len()).collect();
    for (i, word) in said.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, other) in heard.iter().enumerate() {
            let swap = row.get(j).copied().unwrap_or(0) + usize::from(word != other);
            let drop = row.get(j + 1).copied().unwrap_or(0) + 1;
            let add = next.last().copied().unwrap_or(0) + 1;
            next.push(swap.min(drop).min(add));
        }
        row = next;
    }
    let errors = row.last().copied().unwrap_or(0);
    if said.is_empty() { errors as f64 } else { errors as f64 / said.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_word() {
        let cases = [
            ("ask not what", "Ask, not what!", 0.0),
            ("a b c d", "a x c d", 0.25),
            ("a b c d", "a b c", 0.25),
            ("a b", "a b c", 0.5),
            ("a b", "", 1.0),
        ];
        for (said, heard, rate) in cases {
            assert_eq!(word_error_rate(said, heard), rate, "{said} / {heard}");
        }
    }
}
