//! Takes `<think>` blocks, in which local servers leave a model's reasoning, out of its words.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Words of the reply.
    Text(String),
    /// Reasoning.
    Thinking(String),
}

/// Splits a stream of text; a tag may be cut anywhere.
///
/// Only a block at the very beginning counts, as models write it: later on `<think>` may be what
/// the reply is about. A block that never closes is reasoning to its end.
#[derive(Debug, Default)]
pub struct ThinkSplitter {
    state: State,
    held: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing but white space so far.
    #[default]
    Start,
    Inside,
    /// A block was closed; white space behind it is not part of the reply.
    Closed,
    Reply,
}

impl ThinkSplitter {
    /// Takes text as it arrives and gives what of it is certain.
    pub fn feed(&mut self, text: &str) -> Vec<Piece> {
        self.held.push_str(text);
        let mut pieces = Vec::new();
        loop {
            let before = (self.state, self.held.len());
            self.step(&mut pieces);
            if (self.state, self.held.len()) == before {
                break;
            }
        }
        pieces
    }

    /// The reply is over: what was held back.
    pub fn finish(&mut self) -> Option<Piece> {
        let rest = std::mem::take(&mut self.held);
        match self.state {
            State::Inside => Some(Piece::Thinking(rest)),
            State::Closed => None,
            State::Start | State::Reply => Some(Piece::Text(rest)),
        }
        .filter(
            |piece| !matches!(piece, Piece::Text(text) | Piece::Thinking(text) if text.is_empty()),
        )
    }

    fn step(&mut self, pieces: &mut Vec<Piece>) {
        match self.state {
            State::Start => {
                let trimmed = self.held.trim_start();
                if let Some(rest) = trimmed.strip_prefix(OPEN) {
                    self.held = rest.to_owned();
                    self.state = State::Inside;
                } else if !OPEN.starts_with(trimmed) {
                    self.state = State::Reply;
                }
            }
            State::Inside => match self.held.split_once(CLOSE) {
                Some((thought, rest)) => {
                    if !thought.is_empty() {
                        pieces.push(Piece::Thinking(thought.to_owned()));
                    }
                    self.held = rest.to_owned();
                    self.state = State::Closed;
                }
                None => {
                    let keep = partial_tag(&self.held);
                    let rest = self.held.split_off(self.held.len() - keep);
                    let thought = std::mem::replace(&mut self.held, rest);
                    if !thought.is_empty() {
                        pieces.push(Piece::Thinking(thought));
                    }
                }
            },
            State::Closed => {
                self.held = self.held.trim_start().to_owned();
                if !self.held.is_empty() {
                    self.state = State::Reply;
                }
            }
            State::Reply => {
                let text = std::mem::take(&mut self.held);
                if !text.is_empty() {
                    pieces.push(Piece::Text(text));
                }
            }
        }
    }
}

/// How many bytes at the end of `text` may be the beginning of the closing tag.
fn partial_tag(text: &str) -> usize {
    (1..CLOSE.len())
        .rev()
        .find(|&length| CLOSE.get(..length).is_some_and(|start| text.ends_with(start)))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&str]) -> (String, String) {
        let mut splitter = ThinkSplitter::default();
        let mut pieces: Vec<Piece> = chunks.iter().flat_map(|chunk| splitter.feed(chunk)).collect();
        pieces.extend(splitter.finish());
        let mut split = (String::new(), String::new());
        for piece in pieces {
            match piece {
                Piece::Text(text) => split.0.push_str(&text),
                Piece::Thinking(text) => split.1.push_str(&text),
            }
        }
        split
    }

    #[test]
    fn reasoning_is_taken_out_wherever_it_is_cut() {
        for (text, reply, thought) in [
            ("Hello.", "Hello.", ""),
            ("<think>a < b</think>\n\nHello.", "Hello.", "a < b"),
            ("\n<think></think>Hello.", "Hello.", ""),
            ("<think>never closed </thin", "", "never closed </thin"),
            ("<thinner> is a word", "<thinner> is a word", ""),
            ("Say <think>.", "Say <think>.", ""),
            ("<think>想</think> 你好", "你好", "想"),
            ("<thi", "<thi", ""),
            ("  Hello.", "  Hello.", ""),
        ] {
            assert_eq!(split(&[text]), (reply.into(), thought.into()), "{text:?}");
            for cut in (0..=text.len()).filter(|&cut| text.is_char_boundary(cut)) {
                let halves = split(&[&text[..cut], &text[cut..]]);
                assert_eq!(halves, (reply.into(), thought.into()), "{text:?} cut at {cut}");
            }
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            assert_eq!(split(&letters), (reply.into(), thought.into()), "{text:?} by letter");
        }
    }

    #[test]
    fn words_without_a_tag_are_not_held_back() {
        let mut splitter = ThinkSplitter::default();
        assert_eq!(splitter.feed("Hi"), [Piece::Text("Hi".into())]);
        assert_eq!(splitter.feed(" <"), [Piece::Text(" <".into())]);
    }
}
