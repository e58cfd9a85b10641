//! Cleans a streamed reply for the eye and the ear at once.
//!
//! Sans-IO: characters go in, [`Atom`]s come out, one character of display each, and it does not
//! matter how the text was cut on its way. What cannot be judged yet (an unfinished tag, an opening
//! asterisk) is held back for at most [`HOLD`] characters and given out at the end.

use super::tags::{self, Match, Place};
use crate::kernel::contracts::Feeling;

/// Most characters that are held back while a bracket, a tag or an asterisk is open.
const HOLD: usize = 64;

/// Most characters that are held back for an open parenthesis: stage directions in them are short,
/// and asides are common.
const HOLD_PAREN: usize = 24;

/// A cleaned character, or what stands between two.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Atom {
    /// Shown and spoken.
    Char(char),
    /// Shown and spoken, but no mark in it ends a sentence (inline code, the number of a list).
    Plain(char),
    /// Shown, not spoken.
    Shown(char),
    /// Shown, and spoken as something else.
    Says(char, &'static str),
    /// What came before is done: a block follows or ends.
    Block,
    /// A feeling begins; nothing is shown.
    Tag(Feeling),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Text,
    /// Within so many nested thoughts.
    Think(usize),
    /// Within a block of code.
    Fence,
    /// Within an address.
    Url,
    /// Within the address of a markdown link, in so many nested parentheses.
    LinkUrl(usize),
}

/// The streaming cleaner.
#[derive(Debug)]
pub(super) struct Cleaner {
    mode: Mode,
    held: Vec<char>,
    /// Within `` `code` ``.
    code: bool,
    /// Nothing but white space since the line began.
    line_start: bool,
    /// Nothing but white space and closing marks since a sentence ended or a line began.
    boundary: bool,
    /// The last character that was read.
    last: Option<char>,
    /// The last character that was shown.
    last_shown: Option<char>,
    /// A tag or thought was removed: white space after it goes too, when there is some before it.
    swallow: bool,
    out: Vec<Atom>,
}

impl Default for Cleaner {
    fn default() -> Self {
        Self {
            mode: Mode::Text,
            held: Vec::new(),
            code: false,
            line_start: true,
            boundary: true,
            last: None,
            last_shown: None,
            swallow: false,
            out: Vec::new(),
        }
    }
}

impl Cleaner {
    /// Reads one character and gives what is certain now.
    pub(super) fn push(&mut self, c: char) -> Vec<Atom> {
        if c != '\r' && c != '\0' {
            self.held.push(c);
            while !self.held.is_empty() && self.step(false) {}
        }
        std::mem::take(&mut self.out)
    }

    /// Gives out what was held back; nothing follows.
    pub(super) fn finish(&mut self) -> Vec<Atom> {
        while !self.held.is_empty() {
            if !self.step(true) {
                // Not reached: at the end every step decides. Kept so that a text is never lost.
                self.take(1, Self::shown);
            }
        }
        std::mem::take(&mut self.out)
    }

    fn at(&self, index: usize) -> Option<char> {
        self.held.get(index).copied()
    }

    /// Whether what is held begins with `text`; `None` when it is too short to tell.
    fn begins(&self, text: &str, ended: bool) -> Option<bool> {
        for (index, want) in text.chars().enumerate() {
            match self.at(index) {
                Some(c) if c.to_ascii_lowercase() == want => {}
                None if !ended => return None,
                _ => return Some(false),
            }
        }
        Some(true)
    }

    /// How many of what is held, from the first, are `c`.
    fn run(&self, c: char) -> usize {
        self.held.iter().take_while(|held| **held == c).count()
    }

    /// Takes `count` characters out of what is held and gives each to `each`.
    fn take(&mut self, count: usize, each: fn(&mut Self, char)) {
        for c in self.held.drain(..count.min(self.held.len())).collect::<Vec<_>>() {
            each(self, c);
            self.last = Some(c);
        }
    }

    /// Forgets `count` characters of what is held: nothing of them is shown.
    fn remove(&mut self, count: usize) {
        self.held.drain(..count.min(self.held.len()));
        self.swallow = true;
    }

    fn emit(&mut self, c: char, atom: Atom) {
        if self.swallow {
            let after_space = self.last_shown.is_none_or(char::is_whitespace);
            if c.is_whitespace() && after_space && (c != '\n' || self.last_shown.is_none()) {
                return;
            }
            self.swallow = c.is_whitespace() && after_space;
        }
        self.last_shown = Some(c);
        if c == '\n' {
            self.line_start = true;
            self.boundary = true;
            self.code = false;
        } else if !c.is_whitespace() {
            self.line_start = false;
            if c.is_alphanumeric() {
                self.boundary = false;
            } else if ends_sentence(c) {
                self.boundary = true;
            }
        }
        self.out.push(atom);
    }

    fn shown(&mut self, c: char) {
        // A line break is heard as a pause wherever it stands.
        self.emit(c, if c == '\n' { Atom::Char(c) } else { Atom::Shown(c) });
    }

    fn hidden_code(&mut self, c: char) {
        self.emit(c, Atom::Shown(c));
    }

    fn text(&mut self, c: char) {
        self.emit(c, if is_speakable(c) { Atom::Char(c) } else { Atom::Shown(c) });
    }

    fn plain(&mut self, c: char) {
        self.emit(c, Atom::Plain(c));
    }

    /// Decides about the first of the held characters; `false` when more must be seen first.
    fn step(&mut self, ended: bool) -> bool {
        let Some(c) = self.at(0) else { return false };
        match self.mode {
            Mode::Text => self.step_text(c, ended),
            Mode::Think(depth) => self.step_think(c, depth, ended),
            Mode::Fence => self.step_fence(c, ended),
            Mode::Url => self.step_url(c, ended),
            Mode::LinkUrl(depth) => {
                self.mode = match c {
                    '(' => Mode::LinkUrl(depth + 1),
                    ')' if depth > 0 => Mode::LinkUrl(depth - 1),
                    ')' | '\n' => Mode::Text,
                    _ => self.mode,
                };
                self.take(1, Self::shown);
                true
            }
        }
    }

    fn step_think(&mut self, c: char, depth: usize, ended: bool) -> bool {
        if c == '<' && !ended {
            let close = self.held.iter().position(|c| *c == '>');
            let broken = self.held.iter().skip(1).any(|c| *c == '<' || *c == '\n');
            match close {
                None if !broken && self.held.len() <= 16 => return false,
                Some(end) => {
                    let inside = self.inside(1, end);
                    match (think_tag(&inside), inside.starts_with('/')) {
                        (true, true) if depth <= 1 => self.mode = Mode::Text,
                        (true, true) => self.mode = Mode::Think(depth - 1),
                        (true, false) => self.mode = Mode::Think(depth + 1),
                        (false, _) => {
                            self.remove(1);
                            return true;
                        }
                    }
                    self.remove(end + 1);
                    return true;
                }
                None => {}
            }
        }
        self.remove(1);
        true
    }

    fn step_fence(&mut self, c: char, ended: bool) -> bool {
        if c == '`' {
            if self.begins("```", ended).is_none() {
                return false;
            }
            let run = self.run('`');
            if run >= 3 {
                self.take(run, Self::hidden_code);
                self.mode = Mode::Text;
                self.out.push(Atom::Block);
                return true;
            }
        }
        self.take(1, Self::hidden_code);
        true
    }

    fn step_url(&mut self, c: char, ended: bool) -> bool {
        if c.is_whitespace() || "<>\"“”「」（）《》，。！？；：、".contains(c) || tags::is_cjk(c)
        {
            self.mode = Mode::Text;
            return true;
        }
        if ".,;:!?)]'*_".contains(c) {
            // Part of the address only when the address goes on behind it.
            let next = self.held.iter().copied().find(|next| !".,;:!?)]'*_".contains(*next));
            match next {
                None if !ended && self.held.len() < 8 => return false,
                Some(next) if !next.is_whitespace() && !tags::is_cjk(next) => {}
                _ => {
                    self.mode = Mode::Text;
                    return true;
                }
            }
        }
        self.take(1, Self::shown);
        true
    }

    fn inside(&self, from: usize, to: usize) -> String {
        self.held.iter().take(to).skip(from).collect()
    }

    fn step_text(&mut self, c: char, ended: bool) -> bool {
        if c == '`' {
            return self.step_backtick(ended);
        }
        if self.code && c != '\n' {
            if c == '_' || !(c.is_alphanumeric() || ".+=%$ ".contains(c)) {
                self.take(1, |this, c| this.emit(c, Atom::Says(c, " ")));
            } else {
                self.take(1, Self::plain);
            }
            return true;
        }
        if self.line_start
            && let Some(done) = self.step_line_start(c, ended)
        {
            return done;
        }
        let word_start = self.last.is_none_or(|last| !last.is_alphanumeric());
        if self.last.is_none_or(|last| last.is_whitespace() || (word_start && !last.is_ascii())) {
            match tags::emoticon(&self.held, ended) {
                Match::Maybe => return false,
                Match::Yes(count) => {
                    self.take(count, Self::shown);
                    return true;
                }
                Match::No => {}
            }
        }
        match c {
            '<' => self.step_angle(ended),
            '[' | '【' => self.step_bracket(c, ended),
            ']' => match self.at(1) {
                None if !ended => false,
                Some('(') => {
                    self.take(2, Self::shown);
                    self.mode = Mode::LinkUrl(0);
                    true
                }
                _ => {
                    self.take(1, Self::shown);
                    true
                }
            },
            '!' if self.last.is_none_or(char::is_whitespace) => match self.at(1) {
                None if !ended => false,
                Some('[') => {
                    self.take(1, Self::shown);
                    true
                }
                _ => {
                    self.take(1, Self::text);
                    true
                }
            },
            '*' => self.step_asterisk(ended),
            '_' => match self.at(1) {
                None if !ended => false,
                Some(next) if next.is_alphanumeric() && !word_start => {
                    self.take(1, |this, c| this.emit(c, Atom::Says(c, " ")));
                    true
                }
                _ => {
                    self.take(1, Self::shown);
                    true
                }
            },
            '~' => match self.at(1) {
                None if !ended => false,
                Some(next) if next.is_ascii_digit() && word_start => {
                    self.take(1, |this, c| this.emit(c, Atom::Says(c, "about ")));
                    true
                }
                _ => {
                    self.take(1, Self::shown);
                    true
                }
            },
            '#' => match self.at(1) {
                None if !ended => false,
                Some(next) if next.is_ascii_digit() && word_start => {
                    self.take(1, Self::text);
                    true
                }
                _ => {
                    self.take(1, Self::shown);
                    true
                }
            },
            '(' | '（' => self.step_paren(c, ended),
            'h' | 'H' | 'w' | 'W' if word_start => {
                let starts = ["http://", "https://", "www."].map(|start| self.begins(start, ended));
                if starts.contains(&Some(true)) {
                    self.mode = Mode::Url;
                    self.take(4, Self::shown);
                    return true;
                }
                if starts.contains(&None) {
                    return false;
                }
                self.take(1, Self::text);
                true
            }
            '|' => {
                self.take(1, |this, c| this.emit(c, Atom::Says(c, ",")));
                true
            }
            _ => {
                self.take(1, Self::text);
                true
            }
        }
    }

    /// Markdown that stands at the beginning of a line; `None` when there is none.
    fn step_line_start(&mut self, c: char, ended: bool) -> Option<bool> {
        let next = self.at(1);
        match c {
            '#' => {
                let run = self.run('#');
                match self.at(run) {
                    None if !ended => return Some(false),
                    Some(' ') if run <= 6 => self.take(run, Self::shown),
                    _ => return None,
                }
                Some(true)
            }
            '-' | '+' | '•' | '>' => match next {
                None if !ended => Some(false),
                Some(' ') => {
                    self.take(1, |this, c| {
                        this.shown(c);
                        // A checkbox may follow.
                        this.line_start = true;
                    });
                    Some(true)
                }
                _ => None,
            },
            '*' if next == Some(' ') => {
                self.take(1, Self::shown);
                Some(true)
            }
            '*' if next.is_none() && !ended => Some(false),
            '[' if matches!(next, Some(' ' | 'x' | 'X')) => match self.at(2) {
                None if !ended => Some(false),
                Some(']') => {
                    self.take(3, Self::shown);
                    Some(true)
                }
                _ => None,
            },
            '0'..='9' => {
                let digits = self.held.iter().take_while(|c| c.is_ascii_digit()).count();
                if digits > 3 {
                    return None;
                }
                match (self.at(digits), self.at(digits + 1)) {
                    (None, _) | (Some('.' | ')'), None) if !ended => Some(false),
                    (Some('.' | ')'), Some(' ')) => {
                        self.take(digits, Self::plain);
                        self.take(1, |this, c| this.emit(c, Atom::Says(c, ",")));
                        self.boundary = true;
                        Some(true)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn step_backtick(&mut self, ended: bool) -> bool {
        let run = self.run('`');
        if run == self.held.len() && run < 3 && !ended {
            return false;
        }
        if run >= 3 && !self.code {
            self.out.push(Atom::Block);
            self.take(run, Self::hidden_code);
            self.mode = Mode::Fence;
        } else {
            self.take(run, Self::shown);
            self.code = !self.code;
        }
        true
    }

    fn step_angle(&mut self, ended: bool) -> bool {
        let tag_like = match self.at(1) {
            None if !ended => return false,
            Some(next) => next.is_ascii_alphabetic() || next == '/' || next == '|' || next == '!',
            None => false,
        };
        if !tag_like {
            self.take(1, Self::text);
            return true;
        }
        let close = self.held.iter().position(|c| *c == '>');
        let broken = self.held.iter().skip(1).any(|c| *c == '<' || *c == '\n');
        match close {
            None if !broken && !ended && self.held.len() <= HOLD => false,
            Some(end) if !broken => {
                let inside = self.inside(1, end);
                if think_tag(&inside) {
                    if !inside.starts_with('/') {
                        self.mode = Mode::Think(1);
                    }
                    self.remove(end + 1);
                } else if let Some(control) =
                    inside.strip_prefix('|').and_then(|inside| inside.strip_suffix('|'))
                {
                    if let Some(feeling) = tags::feeling(control) {
                        self.out.push(Atom::Tag(feeling));
                    }
                    self.remove(end + 1);
                } else {
                    self.take(end + 1, Self::shown);
                }
                true
            }
            _ => {
                self.take(1, Self::shown);
                true
            }
        }
    }

    fn step_bracket(&mut self, open: char, ended: bool) -> bool {
        let closer = if open == '[' { ']' } else { '】' };
        let close = self.held.iter().position(|c| *c == closer);
        let broken = self.held.iter().skip(1).any(|c| *c == open || *c == '\n');
        let end = match close {
            None if !broken && !ended && self.held.len() <= HOLD => return false,
            Some(end) if !broken => end,
            _ => {
                self.take(1, Self::shown);
                return true;
            }
        };
        if open == '[' {
            match self.at(end + 1) {
                None if !ended => return false,
                // A link: its text is spoken.
                Some('(') => {
                    self.take(1, Self::shown);
                    return true;
                }
                _ => {}
            }
        }
        let inside = self.inside(1, end);
        let attached = self.last.is_some_and(|last| last.is_ascii_alphanumeric() || last == '_');
        if let Some(feeling) = tags::feeling(&inside) {
            self.out.push(Atom::Tag(feeling));
            self.remove(end + 1);
        } else if open == '[' && tags::is_one_word_tag(&inside) && !attached {
            self.remove(end + 1);
        } else if inside.chars().all(|c| c.is_ascii_digit() || c == ',')
            || tags::is_stage_direction(&inside, self.place(), true)
        {
            // The number of a source, or an action.
            self.take(end + 1, Self::shown);
        } else if attached {
            self.take(1, |this, c| this.emit(c, Atom::Says(c, " ")));
        } else {
            self.take(1, Self::shown);
        }
        true
    }

    fn place(&self) -> Place {
        if self.boundary { Place::Boundary } else { Place::Inside }
    }

    fn step_asterisk(&mut self, ended: bool) -> bool {
        let run = self.run('*');
        if run == self.held.len() && run < 3 && !ended {
            return false;
        }
        if run > 1 {
            self.take(run, Self::shown);
            return true;
        }
        let next = self.at(1);
        let between_numbers = match self.last {
            Some(' ') => next == Some(' ') && !self.boundary,
            Some(last) => last.is_ascii_digit() && next.is_some_and(|c| c.is_ascii_digit()),
            None => false,
        };
        if between_numbers {
            self.take(1, Self::text);
            return true;
        }
        let after_word =
            self.last.is_some_and(|last| last.is_alphanumeric() && !tags::is_cjk(last));
        let opens = next.is_some_and(|next| !next.is_whitespace()) && !after_word;
        if !opens {
            self.take(1, Self::shown);
            return true;
        }
        let close = self.held.iter().skip(1).position(|c| *c == '*').map(|found| found + 1);
        let broken = self.held.contains(&'\n');
        match close {
            None if !broken && !ended && self.held.len() <= HOLD => false,
            Some(end) if !broken => {
                let inside = self.inside(1, end);
                if tags::is_stage_direction(&inside, self.place(), true) {
                    let boundary = self.boundary;
                    self.take(end + 1, Self::shown);
                    self.boundary = boundary;
                } else {
                    self.take(1, Self::shown);
                }
                true
            }
            _ => {
                self.take(1, Self::shown);
                true
            }
        }
    }

    fn step_paren(&mut self, open: char, ended: bool) -> bool {
        let attached = self.last.is_some_and(|last| last.is_ascii_alphanumeric());
        let closer = if open == '(' { ')' } else { '）' };
        let close = self.held.iter().position(|c| *c == closer);
        let broken = self.held.iter().skip(1).any(|c| *c == '\n');
        match close {
            _ if attached || broken => self.take(1, Self::text),
            None if !ended && self.held.len() <= HOLD_PAREN => return false,
            Some(end) => {
                let inside = self.inside(1, end);
                if tags::is_kaomoji(&inside)
                    || tags::is_stage_direction(&inside, self.place(), false)
                {
                    let boundary = self.boundary;
                    self.take(end + 1, Self::shown);
                    self.boundary = boundary;
                } else {
                    self.take(1, Self::text);
                }
            }
            None => self.take(1, Self::text),
        }
        true
    }
}

fn think_tag(inside: &str) -> bool {
    let name = inside.trim_start_matches('/').split_whitespace().next().unwrap_or_default();
    matches!(
        name.to_ascii_lowercase().as_str(),
        "think" | "thinking" | "thought" | "thoughts" | "reasoning" | "reflection"
    )
}

/// Marks that end a sentence in any script spoken here.
pub(super) fn ends_sentence(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？' | '｡' | '．')
}

/// Letters, digits, their combining marks, and the marks that are heard as a pause or a word.
/// Everything else (emoji, box drawing, arrows, control characters) is only shown.
fn is_speakable(c: char) -> bool {
    let picture = matches!(u32::from(c), 0x1F000..=0x1FBFF | 0x2460..=0x27BF | 0xE000..=0xF8FF);
    let mark = matches!(u32::from(c),
        0x0300..=0x036F | 0x0483..=0x0487 | 0x0591..=0x05C7 | 0x0610..=0x061A | 0x064B..=0x065F
        | 0x0900..=0x0DFF | 0x0E31..=0x0E4E | 0x0EB1..=0x0ECD | 0x0F71..=0x0FBC | 0x3099..=0x309A);
    !picture
        && (c.is_alphanumeric()
            || mark
            || c.is_whitespace()
            || ".,!?;:'\"()-–—−…%‰$€£¥₩₹&+@#/°=<>*×÷‘’“”".contains(c)
            || "。，、！？；：「」『』（）《》〈〉・％＆＋＄￥～".contains(c))
}

/// Turns the spoken characters of a piece into what an engine gets: one space between words, no
/// mark that stands alone, no mark before the first word; empty when nothing can be spoken.
///
/// Line breaks become a comma where the line ended without a mark.
pub(super) fn tidy(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for (number, line) in raw.lines().enumerate() {
        if number > 0 && line.chars().any(char::is_alphanumeric) {
            pause(&mut out);
        }
        for token in line.split_whitespace() {
            tidy_token(&mut out, token);
        }
    }
    while out.ends_with(|c: char| c.is_whitespace() || "([{（「『《“‘&+@#/=<*×÷$-–".contains(c))
    {
        out.pop();
    }
    if out.ends_with([':', '：', '—']) {
        out.pop();
        out.push('.');
    }
    if out.chars().any(char::is_alphanumeric) { out } else { String::new() }
}

/// Ends what stands there with a comma, unless it ends with a mark.
fn pause(out: &mut String) {
    if let Some(last) = out.chars().next_back()
        && (last.is_alphanumeric() || matches!(last, ')' | '"' | '”' | '%' | '’'))
    {
        out.push(if tags::is_cjk(last) { '，' } else { ',' });
    }
}

fn tidy_token(out: &mut String, token: &str) {
    let token = token.replace("()", "").replace("（）", "").replace("\"\"", "");
    if token.is_empty() {
        return;
    }
    if token.chars().any(char::is_alphanumeric) {
        let token = if out.is_empty() {
            token.trim_start_matches(|c: char| ".,!?;:-–—…。，、！？；：)]".contains(c))
        } else {
            // Options of a command line: the dashes are not said.
            token.strip_prefix("--").unwrap_or(&token)
        };
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(token);
        return;
    }
    match token.as_str() {
        "&" | "+" | "=" | "@" | "<" | ">" | "*" | "×" | "÷" | "/" | "-" | "−"
            if !out.is_empty() =>
        {
            out.push(' ');
            out.push_str(&token);
        }
        "–" | "—" | "--" | "---" => pause(out),
        _ => {
            let mark = token.chars().find(|c| ".,!?;:…。，、！？；：".contains(*c));
            if let (Some(mark), Some(last)) = (mark, out.chars().next_back())
                && (last.is_alphanumeric() || matches!(last, ')' | '"' | '”' | '’'))
            {
                out.push(mark);
            } else if let Some(closer) = token.chars().find(|c| ")”」』）》\"".contains(*c))
                && !out.is_empty()
            {
                out.push(closer);
            }
        }
    }
}
