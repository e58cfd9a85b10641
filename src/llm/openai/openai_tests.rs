use std::time::Instant;

use serde_json::json;

use super::*;
use crate::bench::fake_llm::{Act, FakeLlm, Pace};
use crate::kernel::ports::{Role, StopReason};

const TEXT: &str = "Hello there, how are you?";

fn request() -> ChatRequest {
    let message = ChatMessage { role: Role::User, content: "Hi".into() };
    ChatRequest { messages: vec![message], max_tokens: 50, temperature: 0.5 }
}

fn model(base_url: String, timeout: Duration) -> OpenAi {
    let provider = Provider {
        name: "zoo".into(),
        base_url,
        model: "m".into(),
        key: Some("secret-1".into()),
        key_env: "ZOO_KEY".into(),
        quirks: Quirks::default(),
    };
    OpenAi::new(provider, timeout).unwrap()
}

async fn drain(mut stream: ChatStream) -> (String, Result<StopReason, ChatError>) {
    let mut text = String::new();
    while let Some(delta) = stream.recv().await {
        match delta {
            Ok(ChatDelta::Text(more)) => text += &more,
            Ok(ChatDelta::Thinking(_)) => {}
            Ok(ChatDelta::Done(stop)) => {
                assert_eq!(stream.recv().await, None, "something came after the end");
                return (text, Ok(stop));
            }
            Err(error) => {
                assert_eq!(stream.recv().await, None, "something came after the error");
                return (text, Err(error));
            }
        }
    }
    panic!("the stream ended without a word: {text:?}");
}

async fn ask(model: &OpenAi) -> (String, Result<StopReason, ChatError>) {
    drain(model.chat(request(), CancellationToken::new())).await
}

/// What the model says to a server that does these acts, and what the server saw.
async fn talk(acts: Vec<Act>) -> (String, Result<StopReason, ChatError>, FakeLlm) {
    let server = FakeLlm::start(Pace::INSTANT, acts).await.unwrap();
    let (text, result) = ask(&model(server.base_url(), Duration::from_millis(300))).await;
    (text, result, server)
}

fn status(status: u16, headers: Vec<(&'static str, &str)>, code: &str) -> Act {
    let headers = headers.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
    let body = json!({ "error": { "message": "because", "code": code, "param": code } });
    Act::Status(status, headers, body.to_string())
}

#[tokio::test]
async fn a_reply_streams_and_the_key_is_shown_to_the_server_alone() {
    let (text, result, server) = talk(vec![Act::Think("hm hm".into(), TEXT.into())]).await;
    assert_eq!((text.as_str(), result), (TEXT, Ok(StopReason::End)));
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].authorization.as_deref(), Some("Bearer secret-1"));
    assert_eq!(seen[0].body["messages"][0]["content"], "Hi");
}

#[tokio::test]
async fn temporary_faults_are_tried_once_more() {
    for fault in [
        status(429, vec![("retry-after-ms", "20")], "rate_limit_exceeded"),
        status(500, vec![("retry-after", "0.02")], "server_error"),
    ] {
        let (text, result, server) = talk(vec![fault, Act::Reply(TEXT.into())]).await;
        assert_eq!((text.as_str(), result), (TEXT, Ok(StopReason::End)));
        assert_eq!(server.seen().len(), 2);
    }
}

#[tokio::test]
async fn what_does_not_get_better_is_not_tried_again() {
    let limited = |error: &ChatError| matches!(error, ChatError::Limited { .. });
    let unavailable = |error: &ChatError| matches!(error, ChatError::Unavailable(_));
    let refused = |error: &ChatError| matches!(error, ChatError::Refused(_));
    let garbled = |error: &ChatError| matches!(error, ChatError::Garbled(_));
    type Class = fn(&ChatError) -> bool;
    let page = b"<html>Sign in to the hotel's network</html>".to_vec();
    for (name, act, tries, said, class) in [
        ("key", status(401, vec![], "invalid_api_key"), 1, "", refused as Class),
        ("model", status(404, vec![], "model_not_found"), 1, "", refused),
        ("quota", status(429, vec![], "insufficient_quota"), 1, "", limited),
        ("long wait", status(429, vec![("retry-after", "60")], "rate"), 1, "", limited),
        ("rate", status(429, vec![("retry-after-ms", "5")], "rate"), 2, "", limited),
        ("fault", status(503, vec![("retry-after-ms", "5")], "busy"), 2, "", unavailable),
        ("hang", Act::Hang, 1, "", unavailable),
        ("cut", Act::Cut(TEXT.into(), 2), 1, "Hello there, ", unavailable),
        ("cut at once", Act::Cut(TEXT.into(), 0), 1, "", unavailable),
        ("stall", Act::Stall(TEXT.into(), 1), 1, "Hello ", unavailable),
        ("page", Act::Raw("text/html", vec![page]), 1, "", garbled),
        (
            "garbage",
            Act::Raw("text/event-stream", vec![b"data: \x00\xff\n\n".to_vec()]),
            1,
            "",
            garbled,
        ),
        ("nothing", Act::Raw("text/event-stream", vec![]), 1, "", unavailable),
    ] {
        let (text, result, server) = talk(vec![act]).await;
        let error = result.unwrap_err();
        assert!(class(&error), "{name}: {error:?}");
        assert!(!error.to_string().contains("secret"), "{name}: {error}");
        assert_eq!(text, said, "{name}");
        assert_eq!(server.seen().len(), tries, "{name}");
    }
}

#[tokio::test]
async fn a_closed_port_is_told_at_once() {
    let gone = FakeLlm::start(Pace::INSTANT, []).await.unwrap().base_url();
    let (_, result) = ask(&model(gone.clone(), Duration::from_secs(20))).await;
    let line = format!("`zoo` can't be reached at {gone}: is it running?");
    assert_eq!(result, Err(ChatError::Unavailable(line)));
}

#[tokio::test]
async fn a_wrong_content_type_does_not_matter_and_comments_keep_alive() {
    let chunk = json!({ "choices": [{ "delta": { "content": "Hi" }, "finish_reason": "stop" }] });
    let pieces = vec![b": wait\n\n".to_vec(), format!("data: {chunk}\n\n").into_bytes()];
    let (text, result, _) = talk(vec![Act::Raw("application/octet-stream", pieces)]).await;
    assert_eq!((text.as_str(), result), ("Hi", Ok(StopReason::End)));
    let whole = json!({ "choices": [{ "message": { "content": "Hi" } }] }).to_string();
    let (text, result, _) = talk(vec![Act::Raw("text/plain", vec![whole.into_bytes()])]).await;
    assert_eq!((text.as_str(), result), ("Hi", Ok(StopReason::End)));
}

#[tokio::test]
async fn a_field_that_the_server_does_not_take_is_left_out_from_then_on() {
    let acts = vec![
        status(400, vec![], "max_tokens"),
        status(400, vec![], "temperature"),
        Act::Reply(TEXT.into()),
    ];
    let server = FakeLlm::start(Pace::INSTANT, acts).await.unwrap();
    let model = model(server.base_url(), Duration::from_secs(5));
    for _ in 0..2 {
        assert_eq!(ask(&model).await, (TEXT.into(), Ok(StopReason::End)));
    }
    let seen = server.seen();
    assert_eq!(seen.len(), 4);
    assert_eq!(seen[0].body["max_tokens"], 50);
    for later in &seen[2..] {
        assert_eq!(later.body["max_completion_tokens"], 50);
        assert_eq!(later.body.get("max_tokens"), None);
        assert_eq!(later.body.get("temperature"), None);
    }
}

#[tokio::test]
async fn a_server_that_refuses_a_field_again_and_again_is_given_up() {
    let (_, result, server) = talk(vec![status(400, vec![], "temperature")]).await;
    assert!(matches!(result, Err(ChatError::Refused(_))));
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn cancelling_and_hanging_up_end_the_request_at_the_server() {
    let pace = Pace { first_token: Duration::ZERO, per_second: 20.0 };
    let text = "word ".repeat(1000);
    let server = FakeLlm::start(pace, [Act::Reply(text)]).await.unwrap();
    let model = model(server.base_url(), Duration::from_secs(5));
    for hang_up in [false, true] {
        let cancel = CancellationToken::new();
        let mut stream = model.chat(request(), cancel.clone());
        assert_eq!(stream.recv().await, Some(Ok(ChatDelta::Text("word ".into()))));
        assert_eq!(server.open(), 1);
        if hang_up {
            drop(stream);
        } else {
            let began = Instant::now();
            cancel.cancel();
            assert_eq!(drain(stream).await.1, Err(ChatError::Cancelled));
            assert!(began.elapsed() < Duration::from_millis(500));
        }
        let gone = async {
            while server.open() > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(5), gone).await.expect("hung up at the server");
    }
}

#[tokio::test]
async fn a_cancelled_request_is_not_sent() {
    let server = FakeLlm::start(Pace::INSTANT, [Act::Reply(TEXT.into())]).await.unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let model = model(server.base_url(), Duration::from_secs(5));
    let stream = model.chat(request(), cancel);
    assert_eq!(drain(stream).await.1, Err(ChatError::Cancelled));
    assert_eq!(server.seen(), []);
}
