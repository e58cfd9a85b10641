//! Messages to tokens: the model's own chat template, and which messages fit.

use llama_cpp_2::model::{LlamaChatMessage, LlamaChatTemplate, LlamaModel};
use llama_cpp_2::token::LlamaToken;

use crate::kernel::ports::{ChatMessage, Role};

/// Tokens that the template puts around a message, at most (ChatML: 5).
const MARKUP: usize = 16;

/// Characters of Unicode's private area that stand for a message's words in the template.
const MARKS: (char, char) = ('\u{e000}', '\u{e001}');

/// Where a prompt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The model is to reply.
    Reply,
    /// The user's words are still to come: behind the last words of a user's last message, or where
    /// the first words of the next one will be.
    Open,
}

/// What a rendered template is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Markup(String),
    /// The words of the message of this index.
    Words(usize),
}

/// The chat template of a model.
pub struct Template<'m> {
    model: &'m LlamaModel,
    template: LlamaChatTemplate,
}

impl<'m> Template<'m> {
    /// The template in the model's file, or ChatML where there is none.
    ///
    /// # Errors
    /// When llama.cpp does not know the template.
    pub fn of(model: &'m LlamaModel) -> Result<Self, String> {
        let template = match model.chat_template(None) {
            Ok(template) => template,
            Err(_) => LlamaChatTemplate::new("chatml").map_err(|error| error.to_string())?,
        };
        let template = Self { model, template };
        template.render(&[Role::System, Role::User], End::Reply)?;
        Ok(template)
    }

    /// The tokens of a conversation.
    ///
    /// The words of the messages are never read as markup, so nothing that somebody says can end
    /// their message and begin another one. They are made into tokens message by message, so the
    /// tokens of a message do not change when others follow.
    ///
    /// # Errors
    /// When the template can't be applied to these roles.
    pub fn tokens(&self, messages: &[ChatMessage], end: End) -> Result<Vec<LlamaToken>, String> {
        let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
        let vocab = self.model.vocab();
        let mut tokens = Vec::new();
        if vocab.should_add_bos() {
            tokens.push(vocab.bos());
        }
        for piece in self.render(&roles, end)? {
            match piece {
                Piece::Markup(text) => {
                    vocab.tokenize_into(text.as_bytes(), &mut tokens, false, true);
                }
                Piece::Words(index) => {
                    let words = messages.get(index).map_or("", |message| message.content.trim());
                    vocab.tokenize_into(words.as_bytes(), &mut tokens, false, false);
                }
            }
        }
        Ok(tokens)
    }

    /// About how many tokens a message takes, never less than it does.
    pub fn length(&self, message: &ChatMessage) -> usize {
        let vocab = self.model.vocab();
        vocab.tokenize(message.content.trim().as_bytes(), false, false).len() + MARKUP
    }

    /// Applies the template to marks in place of the words. llama.cpp's templates look at the roles
    /// only and put the words in as they are, trimmed at most.
    fn render(&self, roles: &[Role], end: End) -> Result<Vec<Piece>, String> {
        let open_new = end == End::Open && roles.last() != Some(&Role::User);
        let extra = open_new.then_some(Role::User);
        let messages: Result<Vec<LlamaChatMessage>, _> = roles
            .iter()
            .copied()
            .chain(extra)
            .enumerate()
            .map(|(index, role)| {
                let role = match role {
                    Role::System => "system",
                    Role::User => "user",
                    Role::Assistant => "assistant",
                };
                LlamaChatMessage::new(role.into(), format!("{}{index}{}", MARKS.0, MARKS.1))
            })
            .collect();
        let messages = messages.map_err(|error| error.to_string())?;
        let text = self
            .model
            .apply_chat_template(&self.template, &messages, end == End::Reply)
            .map_err(|_| "its chat template is not known to llama.cpp: choose another model")?;
        let mut pieces = split(&text);
        if end == End::Open {
            let last = messages.len().saturating_sub(1);
            let at = pieces.iter().position(|piece| *piece == Piece::Words(last));
            // The words of the message that was only added to open it are not there.
            pieces.truncate(at.map_or(0, |at| if open_new { at } else { at + 1 }));
        }
        Ok(pieces)
    }
}

/// Cuts a rendered template at the marks.
fn split(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((markup, behind)) = rest.split_once(MARKS.0) {
        if !markup.is_empty() {
            pieces.push(Piece::Markup(markup.to_owned()));
        }
        let (index, behind) = behind.split_once(MARKS.1).unwrap_or((behind, ""));
        if let Ok(index) = index.parse() {
            pieces.push(Piece::Words(index));
        }
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Markup(rest.to_owned()));
    }
    pieces
}

/// Which messages of a conversation fit: the index of the first one that is kept behind the
/// `fixed` ones (the system prompt). `lengths` are those of all messages, `room` is for all of them
/// together, and `kept` is where the conversation began last time.
///
/// When it does not fit, so much is dropped that half of the room is free again: then the beginning
/// stays the same for many turns, and the cache with it. `None`: not even the last message fits.
pub fn window(lengths: &[usize], fixed: usize, room: usize, kept: usize) -> Option<usize> {
    let sum = |from: usize| -> usize { lengths.iter().skip(from).sum() };
    let fixed = fixed.min(lengths.len());
    let room = room.checked_sub(lengths.iter().take(fixed).sum())?;
    let kept = kept.clamp(fixed, lengths.len().saturating_sub(1).max(fixed));
    if sum(kept) <= room {
        return Some(kept);
    }
    let last = lengths.len().checked_sub(1)?;
    (kept..=last)
        .find(|&from| sum(from) <= room / 2)
        .or_else(|| (sum(last) <= room).then_some(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_cut_at_its_marks() {
        let text = "<s>\u{e000}0\u{e001}</s>\u{e000}1\u{e001}\u{e000}12\u{e001} end";
        let markup = |text: &str| Piece::Markup(text.into());
        let expected = [
            markup("<s>"),
            Piece::Words(0),
            markup("</s>"),
            Piece::Words(1),
            Piece::Words(12),
            markup(" end"),
        ];
        assert_eq!(split(text), expected);
        assert_eq!(split("plain"), [markup("plain")]);
    }

    #[test]
    fn the_oldest_messages_go_and_the_beginning_stays_for_a_while() {
        // A system prompt of 20 in a room of 100, then messages of 10.
        let talk = |count: usize| [vec![20], vec![10; count]].concat();
        assert_eq!(window(&talk(8), 1, 100, 0), Some(1));
        let first = window(&talk(9), 1, 100, 1).unwrap();
        assert_eq!(first, 6, "four messages are half of the room");
        for count in 10..=13 {
            assert_eq!(window(&talk(count), 1, 100, first), Some(first));
        }
        assert_eq!(window(&talk(14), 1, 100, first), Some(11));
    }

    #[test]
    fn what_can_never_fit_is_told() {
        assert_eq!(window(&[20, 10, 81], 1, 100, 0), None);
        assert_eq!(window(&[20, 10, 80], 1, 100, 0), Some(2));
        assert_eq!(window(&[101, 1], 1, 100, 0), None);
        assert_eq!(window(&[20], 1, 100, 0), Some(1));
        assert_eq!(window(&[], 0, 100, 0), Some(0));
    }
}
