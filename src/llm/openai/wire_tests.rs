use serde_json::json;

use super::*;
use crate::kernel::ports::ChatMessage;
use crate::llm::openai::refusal::Who;

pub(crate) fn who() -> Who {
    Who {
        name: "zoo".into(),
        model: "m".into(),
        key_env: "ZOO_KEY".into(),
        key: Some("secret-1".into()),
    }
}

/// What a reply says: its words, its reasoning, and how it ended.
fn read(chunks: &[&[u8]]) -> (String, String, Result<StopReason, ChatError>) {
    let mut reader = Reader::new(who());
    let mut deltas = Vec::new();
    let result = chunks
        .iter()
        .try_for_each(|chunk| reader.feed(chunk, &mut deltas).map(|_| ()))
        .and_then(|()| reader.finish(&mut deltas));
    let (mut text, mut thought, mut stop) = (String::new(), String::new(), None);
    for delta in deltas {
        assert_eq!(stop, None, "something came after the end");
        match delta {
            ChatDelta::Text(more) => text += &more,
            ChatDelta::Thinking(more) => thought += &more,
            ChatDelta::Done(reason) => stop = Some(reason),
        }
    }
    (text, thought, result.map(|()| stop.expect("an end")))
}

fn delta(delta: Value) -> String {
    format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta }] }))
}

const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

#[test]
fn replies_of_every_kind_of_server() {
    let hi = delta(json!({ "role": "assistant", "content": "Hi" }));
    let role = delta(json!({ "role": "assistant", "content": null }));
    let end = |reason: &str| {
        format!("data: {}\n\n", json!({ "choices": [{ "delta": {}, "finish_reason": reason }] }))
    };
    let usage = "data: {\"choices\":[],\"usage\":{\"total_tokens\":3}}\n\n";
    let parts = delta(json!({ "content": [{ "type": "text", "text": "Hi" }] }));
    let refusal = delta(json!({ "refusal": "Hi" }));
    let whole = json!({ "choices": [{
        "message": { "role": "assistant", "content": "<think>h</think>Hi" },
        "finish_reason": "length",
    }] });
    for (name, text, thought, stop) in [
        ("openai", format!("{role}{hi}{STOP}{usage}{DONE}"), "", StopReason::End),
        ("no finish reason", format!("{hi}{DONE}"), "", StopReason::End),
        ("no terminator", format!("{hi}{STOP}"), "", StopReason::End),
        ("no blank line at the end", format!("{hi}data: [DONE]"), "", StopReason::End),
        ("cut at the limit", format!("{hi}{}{DONE}", end("length")), "", StopReason::Length),
        ("filtered", format!("{hi}{}{DONE}", end("content_filter")), "", StopReason::Filtered),
        ("the word null", format!("{hi}{}{STOP}{DONE}", end("null")), "", StopReason::End),
        ("parts", format!("{parts}{STOP}"), "", StopReason::End),
        ("refusal", format!("{refusal}{STOP}"), "", StopReason::End),
        ("comments", format!(": keep-alive\n\n{hi}:\n\n{STOP}{DONE}"), "", StopReason::End),
        ("blank lines first", format!("\n\n{hi}{STOP}"), "", StopReason::End),
        (
            "deepseek",
            format!("{}{hi}{STOP}", delta(json!({ "content": null, "reasoning_content": "h" }))),
            "h",
            StopReason::End,
        ),
        ("groq", format!("{}{hi}{STOP}", delta(json!({ "reasoning": "h" }))), "h", StopReason::End),
        (
            "think block",
            format!(
                "{}{}{hi}{STOP}",
                delta(json!({ "content": "<think>h</th" })),
                delta(json!({ "content": "ink>\n" }))
            ),
            "h",
            StopReason::End,
        ),
        ("after the end", format!("{hi}{DONE}data: junk\n\n"), "", StopReason::End),
        ("not streamed", format!(" {whole}\n"), "h", StopReason::Length),
        ("byte order mark", format!("\u{feff}{hi}{STOP}"), "", StopReason::End),
    ] {
        let expected = ("Hi".to_owned(), thought.to_owned(), Ok(stop));
        assert_eq!(read(&[text.as_bytes()]), expected, "{name}");
        assert_eq!(read(&[text.replace('\n', "\r\n").as_bytes()]), expected, "{name}, CRLF");
    }
}

#[test]
fn errors_of_every_kind_of_server() {
    let hi = delta(json!({ "content": "Hi" }));
    let limited = |text: &str| ChatError::Limited { text: text.into(), retry_after: None };
    let rate = json!({ "error": { "message": "slow down", "type": "rate_limit_exceeded" } });
    let quota = json!({ "error": { "message": "x", "code": "insufficient_quota" } });
    let flat = json!({ "code": "InternalError", "message": "busy", "request_id": "r" });
    for (name, text, words, error) in [
        ("garbage", "data: {\"choices\":[{\"del\n\n".to_owned(), "", who().no_reply()),
        ("another service", "data: 7\n\n".into(), "", who().no_reply()),
        ("web page", "<!doctype html><p>Hello".into(), "", who().web_page()),
        ("broken JSON", "{\"choices\":".into(), "", who().garbled("sent broken JSON")),
        ("empty", String::new(), "", who().unavailable("closed the connection without a reply")),
        (
            "only comments",
            ":\n\n:\n\n".into(),
            "",
            who().unavailable("closed the connection without a reply"),
        ),
        (
            "cut",
            hi.clone(),
            "Hi",
            who().unavailable("broke the connection in the middle of the reply"),
        ),
        (
            "rate limit in the stream",
            format!("{hi}data: {rate}\n\n"),
            "Hi",
            limited("`zoo` takes no more requests for now (429): slow down"),
        ),
        (
            "quota in a reply of status 200",
            quota.to_string(),
            "",
            limited("the account at `zoo` has no credit or quota left"),
        ),
        (
            "ollama",
            format!("{hi}data: {{\"error\":\"out  of\\nmemory\"}}\n\n"),
            "Hi",
            who().unavailable("has a fault (500): out of memory"),
        ),
        (
            "error event",
            format!("event: error\ndata: {flat}\n\n"),
            "",
            who().unavailable("has a fault (500): busy"),
        ),
        (
            "flat error",
            format!("data: {flat}\n\n"),
            "",
            who().unavailable("has a fault (500): busy"),
        ),
    ] {
        let expected = (words.to_owned(), String::new(), Err(error));
        assert_eq!(read(&[text.as_bytes()]), expected, "{name}");
    }
}

#[test]
fn it_does_not_matter_where_the_network_cuts() {
    let words = delta(json!({ "content": "<think>想</think>\n你好，" }));
    let more = delta(json!({ "content": "世界 👋" }));
    let error = json!({ "error": { "message": "no", "type": "server_error" } });
    for text in [
        format!("\u{feff}: hello\r\n\r\n{words}{more}{STOP}{DONE}"),
        format!("{words}{more}data: {error}\n\n{DONE}"),
        format!("{words}{more}data: junk\n\n"),
        format!("{words}{more}"),
        json!({ "choices": [{ "message": { "content": "你好" }, "finish_reason": "stop" }] })
            .to_string(),
        "<html>Bad Gateway</html>".to_owned(),
    ] {
        let bytes = text.as_bytes();
        let whole = read(&[bytes]);
        for cut in 0..=bytes.len() {
            assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]), whole, "cut at {cut}: {text:?}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), whole, "byte by byte: {text:?}");
    }
}

#[test]
fn a_request_follows_the_servers_quirks() {
    let request = ChatRequest {
        messages: vec![
            ChatMessage { role: Role::System, content: "Be brief.".into() },
            ChatMessage { role: Role::User, content: "Hi".into() },
            ChatMessage { role: Role::Assistant, content: "Hello.".into() },
        ],
        max_tokens: 40,
        temperature: 0.7,
    };
    let messages = json!([
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "Hi" },
        { "role": "assistant", "content": "Hello." },
    ]);
    let plain = json!({
        "model": "m", "messages": messages, "stream": true, "max_tokens": 40, "temperature": 0.7,
    });
    assert_eq!(body("m", &request, &Quirks::default()), plain);
    let quirks = Quirks {
        tokens: TokensField::MaxCompletionTokens,
        fixed: vec!["temperature".into()],
        extra: Map::from_iter([("enable_thinking".into(), false.into())]),
    };
    let strange = json!({
        "model": "m", "messages": messages, "stream": true, "max_completion_tokens": 40,
        "enable_thinking": false,
    });
    assert_eq!(body("m", &request, &quirks), strange);
}
