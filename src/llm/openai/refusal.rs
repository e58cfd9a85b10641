//! What an error answer means: its class, a line for the person, and whether to ask again.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::kernel::ports::ChatError;

/// Longest message of a server that is passed on, characters.
const MESSAGE: usize = 160;

/// Who answered, for the lines.
#[derive(Clone)]
pub struct Who {
    /// The provider's name.
    pub name: String,
    /// The model asked for.
    pub model: String,
    /// The variable of its key; empty when there is none.
    pub key_env: String,
    /// The key, so that it can be taken out of what the server says.
    pub key: Option<String>,
}

impl Who {
    /// An error of class [`ChatError::Unavailable`].
    pub fn unavailable(&self, what: &str) -> ChatError {
        ChatError::Unavailable(format!("`{}` {what}", self.name))
    }

    /// An error of class [`ChatError::Garbled`].
    pub fn garbled(&self, what: &str) -> ChatError {
        ChatError::Garbled(format!("`{}` {what}", self.name))
    }

    /// The address belongs to something else.
    pub fn web_page(&self) -> ChatError {
        self.garbled(&format!(
            "answered with a web page, not with a chat reply: check `llm.providers.{}.base_url`",
            self.name
        ))
    }

    /// What came is no chat reply.
    pub fn no_reply(&self) -> ChatError {
        self.garbled(&format!(
            "sent what is not a chat reply: check `llm.providers.{}.base_url`",
            self.name
        ))
    }

    fn set_key(&self) -> String {
        let setting = format!("`llm.providers.{}.api_key_env`", self.name);
        if self.key_env.is_empty() && self.key.is_some() {
            format!("set `llm.providers.{}.api_key` to a valid key", self.name)
        } else if self.key_env.is_empty() {
            format!("name the variable that holds the key in {setting}")
        } else {
            format!("set `{}` to a valid key, or {setting} to another variable", self.key_env)
        }
    }

    /// The server's own words on one short line, without the key.
    fn quote(&self, message: Option<&str>) -> String {
        let Some(message) = message else { return String::new() };
        let mut line = message.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(key) = self.key.as_deref().filter(|key| !key.is_empty()) {
            line = line.replace(key, "…");
        }
        if line.chars().count() > MESSAGE {
            line = line.chars().take(MESSAGE).chain(['…']).collect();
        }
        if line.is_empty() { line } else { format!(": {line}") }
    }
}

/// What to do about an error answer.
#[derive(Debug)]
pub struct Refusal {
    /// What to tell when nothing more is tried.
    pub error: ChatError,
    /// Asking the same again may help, after this wait.
    pub again: Option<Duration>,
    /// The request field that the server does not take.
    pub field: Option<String>,
}

/// The parts of an error body that mean something.
#[derive(Debug, Default)]
struct Said {
    message: Option<String>,
    /// `type` and `code`, in small letters.
    kind: String,
    param: Option<String>,
    status: Option<u16>,
}

/// Reads the forms of error body: OpenAI's object, a bare text, DashScope's flat object, FastAPI's
/// `detail`, and any of them as the one element of a list.
fn said(body: &Value) -> Said {
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
    if let Some(text) = error.as_str() {
        return Said { message: Some(text.to_owned()), ..Said::default() };
    }
    let text = |field: &str| error.get(field).and_then(Value::as_str);
    let detail = error.get("detail");
    let detail = detail.and_then(|detail| {
        detail.as_str().or_else(|| detail.get(0)?.get("msg").and_then(Value::as_str))
    });
    let kind = ["type", "code", "status"].iter().filter_map(|field| text(field));
    let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    Said {
        message: text("message").or_else(|| text("msg")).or(detail).map(str::to_owned),
        kind: kind.collect::<Vec<_>>().join(" ").to_lowercase(),
        param: text("param").map(str::to_owned),
        status: code.filter(|code| (400..600).contains(code)),
    }
}

/// An error that came inside a stream that had begun well.
pub fn in_stream(who: &Who, value: &Value) -> ChatError {
    let said = said(value);
    let status = said.status.and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.unwrap_or_else(|| {
        let is = |words: &[&str]| words.iter().any(|word| said.kind.contains(word));
        if is(&["quota", "rate_limit", "throttling", "resource_exhausted"]) {
            StatusCode::TOO_MANY_REQUESTS
        } else if is(&["authentication", "api_key", "apikey", "permission"]) {
            StatusCode::UNAUTHORIZED
        } else if is(&["invalid_request", "content_filter", "datainspection"]) {
            StatusCode::BAD_REQUEST
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    });
    classify(who, status, None, &said, None).error
}

/// An answer whose status is not 200. `now` is the time of day, for a `Retry-After` that is a date.
pub fn of_status(
    who: &Who,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    now: jiff::Timestamp,
) -> Refusal {
    let said = serde_json::from_slice(body).map(|value| said(&value)).unwrap_or_default();
    let told = header(headers, "x-should-retry").map(|value| value == "true");
    classify(who, status, retry_after(headers, now), &said, told)
}

fn classify(
    who: &Who,
    status: StatusCode,
    retry_after: Option<Duration>,
    said: &Said,
    told: Option<bool>,
) -> Refusal {
    let code = status.as_u16();
    let name = &who.name;
    let quote = || who.quote(said.message.as_deref());
    let mut again = None;
    let mut field = None;
    let error = match code {
        // The server's words are left out: they may hold a part of the key.
        401 => ChatError::Refused(format!("`{name}` refuses the key: {}", who.set_key())),
        403 => ChatError::Refused(format!(
            "`{name}` forbids this with the key or from this place: {}",
            who.set_key()
        )),
        402 => no_credit(who),
        404 if said.message.is_some() || !said.kind.is_empty() => ChatError::Refused(format!(
            "`{name}` has no model `{}`: set `llm.providers.{name}.model`",
            who.model
        )),
        404 => ChatError::Refused(format!(
            "`{name}` has no chat at its address (404): check `llm.providers.{name}.base_url`"
        )),
        429 if is_quota(said) => no_credit(who),
        429 => {
            again = Some(retry_after.unwrap_or(Duration::from_secs(1)));
            ChatError::Limited {
                text: format!("`{name}` takes no more requests for now (429){}", quote()),
                retry_after,
            }
        }
        408 | 409 | 500..=599 => {
            again = Some(retry_after.unwrap_or(Duration::from_millis(400)));
            ChatError::Unavailable(format!("`{name}` has a fault ({code}){}", quote()))
        }
        300..=399 => ChatError::Refused(format!(
            "`{name}` sends this request elsewhere ({code}): check `llm.providers.{name}.base_url`"
        )),
        _ => {
            field = field_of(said);
            ChatError::Refused(format!("`{name}` does not take the request ({code}){}", quote()))
        }
    };
    if told == Some(false) {
        again = None;
    }
    Refusal { error, again, field }
}

fn no_credit(who: &Who) -> ChatError {
    ChatError::Limited {
        text: format!("the account at `{}` has no credit or quota left", who.name),
        retry_after: None,
    }
}

/// A 429 that more waiting does not cure.
fn is_quota(said: &Said) -> bool {
    ["insufficient_quota", "exceeded_current_quota", "billing", "arrearage", "insufficient_balance"]
        .iter()
        .any(|word| said.kind.contains(word))
}

/// The optional request field that a 400 is about: named in `param`, or quoted in the message.
fn field_of(said: &Said) -> Option<String> {
    let needed = ["model", "messages", "stream"];
    let quoted = said.message.iter().flat_map(|message| {
        message.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map(str::to_owned)
    });
    let known = |word: &String| {
        [
            "temperature",
            "max_tokens",
            "max_completion_tokens",
            "reasoning_effort",
            "thinking",
            "enable_thinking",
            "chat_template_kwargs",
        ]
        .contains(&word.as_str())
    };
    said.param
        .iter()
        .map(|param| param.split(['.', '[']).next().unwrap_or(param).to_owned())
        .chain(quoted.filter(known))
        .find(|field| !needed.contains(&field.as_str()))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// `retry-after-ms`, or `retry-after` in seconds (with a fraction at some servers) or as a date.
fn retry_after(headers: &HeaderMap, now: jiff::Timestamp) -> Option<Duration> {
    let seconds = |value: &str| value.parse::<f64>().ok();
    let wait = match header(headers, "retry-after-ms").and_then(seconds) {
        Some(ms) => ms / 1000.0,
        None => {
            let value = header(headers, "retry-after")?;
            match seconds(value) {
                Some(seconds) => seconds,
                None => {
                    let date = jiff::fmt::rfc2822::parse(value).ok()?;
                    date.timestamp().duration_since(now).as_secs_f64()
                }
            }
        }
    };
    // A server that asks for more than a day is mistaken or out of quota; the breaker has its own
    // limit.
    (0.0..=86_400.0).contains(&wait).then(|| Duration::from_secs_f64(wait))
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
