//! Cuts a streamed reply into pieces that can be spoken: the first as early as it makes sense, the
//! others sentence by sentence.
//!
//! Sans-IO and driven character by character, so that the pieces do not depend on how the text was
//! cut on its way. The sizes follow stream2sentence, RealtimeVoiceChat and livekit's agents.

use super::Piece;
use super::clean::{Atom, Cleaner, ends_sentence, tidy};
use super::tags::is_cjk;
use crate::kernel::contracts::Feeling;

/// Sizes at which text is cut. Words are counted in Latin and its like, characters in CJK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmenterOptions {
    /// Letters and digits that the first piece needs at any clause mark.
    pub first_letters: usize,
    /// CJK characters that do as well.
    pub first_cjk: usize,
    /// Letters and digits of an opener, such as "Well," or "Sure!": a shorter first piece, once, that
    /// sounds while the one behind it is made. One CJK character does as well.
    pub opener_letters: usize,
    /// Words after which the first piece is cut without a mark.
    pub first_words: usize,
    /// CJK characters after which the first piece is cut without a mark.
    pub first_cjk_most: usize,
    /// Characters that a later sentence needs; a shorter one goes with the next. A CJK character
    /// counts as 2.5, for it is a syllable.
    pub sentence: usize,
    /// Characters from which on a later piece is cut at a clause mark, so that no synthesis is long.
    pub clause: usize,
    /// Words after which a later piece is cut without a mark (twice as many CJK characters).
    pub words_most: usize,
}

impl Default for SegmenterOptions {
    fn default() -> Self {
        Self {
            first_letters: 10,
            first_cjk: 4,
            opener_letters: 2,
            first_words: 15,
            first_cjk_most: 40,
            sentence: 20,
            clause: 100,
            words_most: 40,
        }
    }
}

/// Characters after which a piece is cut whatever it is made of (text without any space).
const MOST_CHARS: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `, ; : —`
    Clause,
    /// `. ! ? …`
    Sentence,
    /// The end of a line.
    Line,
}

/// A mark that may end a piece, when what follows agrees.
#[derive(Clone, Copy, Debug)]
struct Stop {
    kind: Kind,
    /// The last mark of the run was a dot, which has other uses.
    dot: bool,
    /// Length of the display and the spoken text up to it.
    display: usize,
    spoken: usize,
    /// An abbreviation stands before the dot and a space behind it: the next letter tells.
    abbreviation: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Size {
    letters: usize,
    cjk: usize,
    words: usize,
    chars: usize,
}

fn measure(text: &str) -> Size {
    let mut size = Size::default();
    for c in text.chars() {
        size.chars += 1;
        size.letters += usize::from(c.is_alphanumeric());
        size.cjk += usize::from(is_cjk(c));
    }
    size.words =
        text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count();
    size
}

/// The streaming segmenter of one reply. Make a new one for each reply: nothing of an interrupted
/// one may be spoken in the next.
#[derive(Debug, Default)]
pub struct Segmenter {
    options: SegmenterOptions,
    cleaner: Cleaner,
    display: String,
    /// Spoken characters, untidied.
    spoken: String,
    tag: Option<Feeling>,
    /// A tag that came in the middle of a piece that has one.
    next_tag: Option<Feeling>,
    stop: Option<Stop>,
    /// Open CJK and typographic quotes and brackets: their closer belongs to the sentence.
    depth: usize,
    /// Something to speak has been given out.
    opened: bool,
    /// And it was more than an opener.
    begun: bool,
    out: Vec<Piece>,
}

impl Segmenter {
    /// A segmenter for one reply.
    pub fn new(options: SegmenterOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Reads the next piece of the reply, of any size, and gives the pieces that are whole now.
    pub fn push(&mut self, delta: &str) -> Vec<Piece> {
        for c in delta.chars() {
            for atom in self.cleaner.push(c) {
                self.read(atom);
            }
        }
        std::mem::take(&mut self.out)
    }

    /// Gives the rest: the reply is over.
    pub fn finish(&mut self) -> Vec<Piece> {
        for atom in self.cleaner.finish() {
            self.read(atom);
        }
        self.stop = None;
        self.cut(self.display.len(), self.spoken.len());
        if let Some(feeling) = self.next_tag.take().or(self.tag.take()) {
            // A tag behind the last word still changes the face.
            self.out.push(Piece { tag: Some(feeling), ..Piece::default() });
        }
        std::mem::take(&mut self.out)
    }

    fn read(&mut self, atom: Atom) {
        match atom {
            Atom::Char(c) => self.read_char(c),
            Atom::Plain(c) => {
                self.settle(c);
                self.put(c, Some(c));
                self.force(c);
            }
            Atom::Says(c, words) => {
                self.settle(c);
                self.display.push(c);
                self.spoken.push_str(words);
            }
            Atom::Shown(c) => {
                // Marks of emphasis and emoji behind a stop belong to its sentence.
                let touching = self.stop.is_some_and(|stop| stop.display == self.display.len());
                self.display.push(c);
                if let Some(stop) = self.stop.as_mut().filter(|_| touching && !c.is_whitespace()) {
                    stop.display = self.display.len();
                }
            }
            Atom::Block => {
                self.stop = None;
                self.cut(self.display.len(), self.spoken.len());
            }
            Atom::Tag(feeling) => self.read_tag(feeling),
        }
    }

    fn read_tag(&mut self, feeling: Feeling) {
        let text = self.spoken.trim_end();
        let has_words = text.chars().any(char::is_alphanumeric);
        if !has_words {
            self.tag = Some(feeling);
        } else if text.ends_with(|c: char| ends_sentence(c) || is_clause_mark(c) || is_closer(c))
            || self.spoken.ends_with('\n')
        {
            // Between two sentences: what follows is felt otherwise.
            self.stop = None;
            self.cut(self.display.len(), self.spoken.len());
            self.tag = Some(feeling);
        } else if self.tag.is_none() {
            self.tag = Some(feeling);
        } else {
            self.next_tag = Some(feeling);
        }
    }

    fn put(&mut self, c: char, spoken: Option<char>) {
        self.display.push(c);
        self.spoken.extend(spoken);
    }

    fn read_char(&mut self, c: char) {
        self.settle(c);
        self.put(c, Some(c));
        match c {
            '“' | '「' | '『' | '《' | '（' => self.depth += 1,
            '”' | '」' | '』' | '》' | '）' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if c == '\n' {
            self.depth = 0;
            self.stop = None;
            self.cut_if_enough(Kind::Line, self.display.len(), self.spoken.len());
            return;
        }
        let kind = if ends_sentence(c) {
            Kind::Sentence
        } else if is_clause_mark(c) {
            Kind::Clause
        } else {
            self.force(c);
            return;
        };
        let after_digit = self.spoken.chars().rev().nth(1).is_some_and(|c| c.is_ascii_digit());
        let certain = match c {
            '。' | '！' | '？' | '…' | '｡' => self.depth == 0,
            // `1,000` and `10：30` are numbers.
            '，' | '、' | '；' | '：' => self.depth == 0 && !after_digit,
            ',' | ';' => !after_digit,
            _ => false,
        };
        if certain && self.cut_if_enough(kind, self.display.len(), self.spoken.len()) {
            return;
        }
        let run = self.stop.filter(|stop| stop.spoken + c.len_utf8() == self.spoken.len());
        self.stop = Some(Stop {
            kind: run.map_or(kind, |run| if run.kind == Kind::Clause { kind } else { run.kind }),
            dot: c == '.' && run.is_none(),
            display: self.display.len(),
            spoken: self.spoken.len(),
            abbreviation: false,
        });
    }

    /// Decides about a waiting stop now that `next` follows it.
    fn settle(&mut self, next: char) {
        let Some(stop) = self.stop else { return };
        if stop.abbreviation {
            if next.is_whitespace() || is_closer(next) {
                return;
            }
            self.stop = None;
            if next.is_uppercase() || is_cjk(next) || "\"“‘「(".contains(next) {
                self.cut_if_enough(stop.kind, stop.display, stop.spoken);
            }
            return;
        }
        if is_closer(next) {
            // Closing quotes go with the sentence.
            self.stop = Some(Stop {
                display: self.display.len() + next.len_utf8(),
                spoken: self.spoken.len() + next.len_utf8(),
                ..stop
            });
            return;
        }
        if ends_sentence(next) || is_clause_mark(next) {
            return;
        }
        self.stop = None;
        if next.is_whitespace() {
            // The space stays with the piece that it ends.
            let (display, spoken) = (self.display.len(), self.spoken.len());
            if stop.dot {
                match dot_ends(self.spoken.get(..stop.spoken).unwrap_or_default()) {
                    Dot::Ends => {}
                    Dot::Abbreviates => return,
                    Dot::Perhaps => {
                        self.stop = Some(Stop { abbreviation: true, display, spoken, ..stop });
                        return;
                    }
                }
            }
            self.cut_if_enough(stop.kind, display, spoken);
        } else if is_cjk(next) || "「『《（“".contains(next) {
            self.cut_if_enough(stop.kind, stop.display, stop.spoken);
        } else if stop.kind == Kind::Sentence
            && !stop.dot
            && self.spoken.chars().next_back().is_some_and(|last| !last.is_ascii())
        {
            // A CJK stop within quotes, or full width before Latin: `。Hello`.
            self.cut_if_enough(stop.kind, stop.display, stop.spoken);
        }
    }

    /// Cuts a text that goes on without a mark.
    fn force(&mut self, c: char) {
        let o = self.options;
        if c.is_whitespace() {
            let most = if self.begun { o.words_most } else { o.first_words };
            if measure(&self.spoken).words >= most {
                self.stop = None;
                self.cut(self.display.len(), self.spoken.len());
            }
        } else if is_cjk(c) || self.spoken.len() > MOST_CHARS {
            let size = measure(&self.spoken);
            let most = if self.begun { o.words_most * 2 } else { o.first_cjk_most };
            if size.cjk >= most || size.chars >= MOST_CHARS {
                self.stop = None;
                self.cut(self.display.len(), self.spoken.len());
            }
        }
    }

    /// Cuts at a place when what stands before it is big enough for its kind.
    fn cut_if_enough(&mut self, kind: Kind, display: usize, spoken: usize) -> bool {
        let o = self.options;
        let size = measure(self.spoken.get(..spoken).unwrap_or_default());
        let opening = self.is_opening(size);
        // "She said:" leads on to what can't wait.
        let leads_on =
            self.spoken.get(..spoken).unwrap_or_default().trim_end().ends_with([':', '：']);
        let word = size.letters >= o.opener_letters || size.cjk > 0;
        let opener = !self.opened && word && !leads_on;
        let weight = size.chars + size.cjk * 3 / 2;
        let enough = match kind {
            Kind::Line => opening,
            _ if !self.begun => opening || opener,
            Kind::Sentence => weight >= o.sentence,
            Kind::Clause => weight >= o.clause,
        };
        if enough {
            self.cut(display, spoken);
        }
        enough
    }

    /// Enough for a first piece that is more than an opener.
    fn is_opening(&self, size: Size) -> bool {
        size.letters >= self.options.first_letters || size.cjk >= self.options.first_cjk
    }

    /// Gives out everything up to a place.
    fn cut(&mut self, display: usize, spoken: usize) {
        let rest_display = self.display.split_off(display.min(self.display.len()));
        let rest_spoken = self.spoken.split_off(spoken.min(self.spoken.len()));
        let display = std::mem::replace(&mut self.display, rest_display);
        let spoken = tidy(&std::mem::replace(&mut self.spoken, rest_spoken));
        if display.trim().is_empty() && spoken.is_empty() {
            // White space alone goes with what follows; at the very end it is nothing.
            self.display.insert_str(0, &display);
            return;
        }
        self.opened |= !spoken.is_empty();
        self.begun |= self.is_opening(measure(&spoken));
        let tag = std::mem::replace(&mut self.tag, self.next_tag.take());
        self.out.push(Piece { display, spoken, tag });
    }
}

fn is_clause_mark(c: char) -> bool {
    matches!(c, ',' | ';' | ':' | '—' | '–' | '，' | '、' | '；' | '：')
}

fn is_closer(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | ']' | '”' | '’' | '」' | '』' | '》' | '）' | '】')
}

enum Dot {
    Ends,
    Abbreviates,
    Perhaps,
}

/// Never the end of a sentence.
const NEVER_END: &[&str] = &[
    "dr", "mr", "mrs", "ms", "mx", "prof", "st", "gen", "rev", "hon", "capt", "lt", "col", "sgt",
    "mt", "ft", "gov", "sen", "rep", "pres", "e.g", "i.e", "eg", "ie", "vs", "cf", "approx", "fig",
    "vol", "pp", "ed", "al", "ca", "viz", "resp", "incl", "est", "jan", "feb", "mar", "apr", "jun",
    "jul", "aug", "sep", "sept", "oct", "nov", "dec", "mon", "tue", "wed", "thu", "fri",
];

/// Abbreviations that may end one; the next letter tells.
const MAY_END: &[&str] = &[
    "etc", "p.m", "a.m", "u.s", "u.k", "u.s.a", "u.n", "e.u", "inc", "ltd", "co", "corp", "jr",
    "sr", "ph.d", "b.c", "a.d", "d.c", "no", "nos", "dept", "ave", "blvd", "rd", "hr", "hrs",
    "min", "sec", "lb", "lbs", "oz",
];

/// What a dot with a space behind it means after `text`, which ends with it.
fn dot_ends(text: &str) -> Dot {
    let text = text.trim_end_matches(|c: char| is_closer(c));
    let word = text
        .trim_end_matches('.')
        .rsplit(|c: char| c.is_whitespace() || "(\"“'‘[-—/,".contains(c))
        .next()
        .unwrap_or_default();
    let lower = word.to_lowercase();
    // "No. 5" is a number, "No." an answer, "may" a month only with a capital and a day.
    if NEVER_END.contains(&lower.as_str()) {
        // "Sun." or "Mar." must not swallow "the sun." and "to mar.": only capitalised or dotted.
        let capital = word.chars().next().is_some_and(char::is_uppercase);
        let latin = [
            "e.g", "i.e", "eg", "ie", "vs", "cf", "approx", "pp", "al", "ca", "viz", "resp",
            "incl", "est",
        ];
        return if capital || latin.contains(&lower.as_str()) {
            Dot::Abbreviates
        } else {
            Dot::Ends
        };
    }
    if MAY_END.contains(&lower.as_str()) {
        return Dot::Perhaps;
    }
    let mut letters = word.chars();
    match (letters.next(), letters.next()) {
        // An initial ("J. Doe"); "I." ends a sentence.
        (Some(only), None) if only.is_uppercase() && only != 'I' => Dot::Abbreviates,
        _ => Dot::Ends,
    }
}

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
