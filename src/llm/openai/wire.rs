//! What goes over the wire of chat completions: the body of a request, and the reply as it streams.

use serde_json::{Map, Value, json};

use super::refusal::{self, Who};
use crate::kernel::ports::{ChatDelta, ChatError, ChatRequest, Role, StopReason};
use crate::llm::providers::{Quirks, TokensField};
use crate::llm::sse::{SseDecoder, SseEvent, TooLong};
use crate::llm::think::{Piece, ThinkSplitter};

/// Longest reply that is taken when it comes as one JSON object, bytes.
const JSON_LIMIT: usize = 4 << 20;

/// White space that may come before a reply, bytes: DeepSeek sends blank lines while it is busy.
const UNDECIDED: usize = 4096;

/// The body of a request.
pub fn body(model: &str, request: &ChatRequest, quirks: &Quirks) -> Value {
    let messages: Vec<Value> = request
        .messages
        .iter()
        .map(|message| {
            let role = match message.role {
                Role::System => "system",
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            json!({ "role": role, "content": message.content })
        })
        .collect();
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    body.insert("messages".into(), messages.into());
    body.insert("stream".into(), true.into());
    let limit = match quirks.tokens {
        TokensField::MaxTokens => "max_tokens",
        TokensField::MaxCompletionTokens => "max_completion_tokens",
    };
    body.insert(limit.into(), request.max_tokens.into());
    // Two decimals: an f32 of 0.7 would be sent as 0.699999988.
    let temperature = (f64::from(request.temperature) * 100.0).round() / 100.0;
    body.insert("temperature".into(), temperature.into());
    for (field, value) in &quirks.extra {
        body.insert(field.clone(), value.clone());
    }
    for field in &quirks.fixed {
        body.remove(field);
    }
    Value::Object(body)
}

/// Reads a reply of status 200, whatever the server made of it: a stream of events, or one JSON
/// object from a server that does not stream, or a web page from one that is no such server.
pub struct Reader {
    who: Who,
    form: Form,
    think: ThinkSplitter,
    stop: Option<StopReason>,
    done: bool,
    spoke: bool,
}

enum Form {
    /// Nothing but white space so far.
    Unknown(Vec<u8>),
    Events(SseDecoder),
    Json(Vec<u8>),
}

impl Reader {
    /// A reader of a reply of `who`.
    pub fn new(who: Who) -> Self {
        Self {
            who,
            form: Form::Unknown(Vec::new()),
            think: ThinkSplitter::default(),
            stop: None,
            done: false,
            spoke: false,
        }
    }

    /// Whether the server said that the reply is whole; what follows is of no interest.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Takes bytes as they arrive and appends what they say. Returns whether there was a whole event
    /// among them, which a comment that keeps the connection alive is not.
    ///
    /// # Errors
    /// When the server reports an error or sends what cannot be understood.
    pub fn feed(&mut self, bytes: &[u8], deltas: &mut Vec<ChatDelta>) -> Result<bool, ChatError> {
        match &mut self.form {
            Form::Unknown(held) => {
                held.extend_from_slice(bytes);
                let text = String::from_utf8_lossy(held);
                let start = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
                // A byte order mark may be cut in the middle.
                let first = start.chars().next().filter(|first| *first != '\u{fffd}');
                let form = match first {
                    None if held.len() < UNDECIDED => return Ok(false),
                    Some('<') => return Err(self.who.web_page()),
                    Some('{' | '[') => Form::Json(Vec::new()),
                    _ => Form::Events(SseDecoder::default()),
                };
                let held = std::mem::take(held);
                self.form = form;
                self.feed(&held, deltas)
            }
            Form::Json(whole) => {
                whole.extend_from_slice(bytes);
                if whole.len() > JSON_LIMIT {
                    return Err(self.who.garbled("sent a reply without end"));
                }
                Ok(true)
            }
            Form::Events(decoder) => {
                let mut events = Vec::new();
                let fed = decoder.feed(bytes, &mut events);
                for event in &events {
                    self.event(event, deltas)?;
                }
                fed.map_err(|TooLong| self.who.garbled("sent a line without end"))?;
                Ok(!events.is_empty())
            }
        }
    }

    /// The connection is at its end: the rest, and the reply's own end.
    ///
    /// # Errors
    /// When the reply is not whole.
    pub fn finish(&mut self, deltas: &mut Vec<ChatDelta>) -> Result<(), ChatError> {
        match &mut self.form {
            Form::Events(decoder) => {
                if let Some(last) = decoder.finish() {
                    self.event(&last, deltas)?;
                }
            }
            Form::Json(whole) => {
                let whole = std::mem::take(whole);
                let value = serde_json::from_slice(&whole)
                    .map_err(|_| self.who.garbled("sent broken JSON"))?;
                self.chunk(&value, deltas)?;
                self.done = true;
            }
            Form::Unknown(_) => {}
        }
        if !self.done && self.stop.is_none() {
            return Err(if self.spoke {
                self.who.unavailable("broke the connection in the middle of the reply")
            } else {
                self.who.unavailable("closed the connection without a reply")
            });
        }
        if let Some(piece) = self.think.finish() {
            self.piece(piece, deltas);
        }
        deltas.push(ChatDelta::Done(self.stop.unwrap_or(StopReason::End)));
        Ok(())
    }

    fn event(&mut self, event: &SseEvent, deltas: &mut Vec<ChatDelta>) -> Result<(), ChatError> {
        let data = event.data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let value: Value = serde_json::from_str(data).map_err(|_| self.who.no_reply())?;
        if event.name == "error" {
            return Err(refusal::in_stream(&self.who, &value));
        }
        self.chunk(&value, deltas)
    }

    fn chunk(&mut self, value: &Value, deltas: &mut Vec<ChatDelta>) -> Result<(), ChatError> {
        if value.get("error").is_some_and(|error| !error.is_null()) {
            return Err(refusal::in_stream(&self.who, value));
        }
        let Some(choices) = value.get("choices") else {
            // DashScope reports errors of a stream without the `error` object.
            return if value.get("code").is_some() && value.get("message").is_some() {
                Err(refusal::in_stream(&self.who, value))
            } else if value.is_object() {
                Ok(())
            } else {
                Err(self.who.no_reply())
            };
        };
        // A chunk with usage has no choice.
        let Some(choice) = choices.get(0) else { return Ok(()) };
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
            let thought = ["reasoning_content", "reasoning"]
                .iter()
                .filter_map(|field| delta.get(field).and_then(Value::as_str))
                .find(|thought| !thought.is_empty());
            if let Some(thought) = thought {
                deltas.push(ChatDelta::Thinking(thought.to_owned()));
            }
            for field in ["content", "refusal"] {
                let text = delta.get(field).map(text_of).unwrap_or_default();
                for piece in self.think.feed(&text) {
                    self.piece(piece, deltas);
                }
            }
        }
        match choice.get("finish_reason").and_then(Value::as_str) {
            // DashScope writes the word `null`.
            None | Some("null" | "") => {}
            Some("length") => self.stop = Some(StopReason::Length),
            Some("content_filter") => self.stop = Some(StopReason::Filtered),
            Some(_) => self.stop = Some(StopReason::End),
        }
        Ok(())
    }

    fn piece(&mut self, piece: Piece, deltas: &mut Vec<ChatDelta>) {
        deltas.push(match piece {
            Piece::Text(text) => {
                self.spoke = true;
                ChatDelta::Text(text)
            }
            Piece::Thinking(text) => ChatDelta::Thinking(text),
        });
    }
}

/// The text of `content`: a string, or a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
