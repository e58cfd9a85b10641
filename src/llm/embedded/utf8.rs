//! Whole characters out of tokens, which may hold a part of one.

/// Collects bytes and gives the characters that are complete.
#[derive(Debug, Default)]
pub struct Utf8(Vec<u8>);

impl Utf8 {
    /// Takes bytes; gives the text that is certain. What can never become a character is replaced.
    pub fn feed(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.0);
        let mut text = String::new();
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            // Only at the very end may it be a character that is still arriving.
            if bytes.ends_with(invalid) && is_beginning(invalid) {
                self.0 = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }

    /// The text is over: what is left of a character.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.0)).into_owned()
    }
}

/// Whether more bytes could make these a character.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_never_cut() {
        let text = "a é 你好 👋🏽 end";
        for size in 1..6 {
            let mut utf8 = Utf8::default();
            let mut joined = String::new();
            for bytes in text.as_bytes().chunks(size) {
                let piece = utf8.feed(bytes);
                assert!(!piece.contains(char::REPLACEMENT_CHARACTER), "{piece:?}");
                joined += &piece;
            }
            assert_eq!(joined + &utf8.finish(), text, "in pieces of {size}");
        }
    }

    #[test]
    fn what_is_no_text_is_replaced_and_holds_nothing_up() {
        let mut utf8 = Utf8::default();
        assert_eq!(utf8.feed(b"a\xff"), "a\u{fffd}");
        assert_eq!(utf8.feed(b"\xe4\xbd"), "");
        assert_eq!(utf8.feed(b"b"), "\u{fffd}b");
        assert_eq!(utf8.feed(b"\xe4"), "");
        assert_eq!(utf8.finish(), "\u{fffd}");
        assert_eq!(utf8.feed(b"c"), "c");
    }
}
