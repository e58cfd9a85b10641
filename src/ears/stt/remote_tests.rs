use std::sync::{Arc, Mutex};

use axum::extract::{Multipart, State};
use axum::http::HeaderMap;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::json;

use super::*;

const KEY: &str = "secret-1";

/// What a server of the tests does.
#[derive(Clone)]
enum Act {
    Json(u16, Value),
    Text(&'static str),
    Page,
    Hang,
}

/// What it was asked: the header with the key, and the form's fields.
type Seen = Vec<(Option<String>, Vec<(String, Vec<u8>)>)>;

#[derive(Clone)]
struct Fake {
    acts: Arc<Mutex<Vec<Act>>>,
    seen: Arc<Mutex<Seen>>,
}

async fn answer(State(fake): State<Fake>, headers: HeaderMap, mut form: Multipart) -> Response {
    let key = headers.get("authorization").map(|key| key.to_str().unwrap().to_owned());
    let mut fields = Vec::new();
    while let Some(field) = form.next_field().await.unwrap() {
        fields.push((field.name().unwrap().to_owned(), field.bytes().await.unwrap().to_vec()));
    }
    fake.seen.lock().unwrap().push((key, fields));
    let act = fake.acts.lock().unwrap().remove(0);
    match act {
        Act::Json(status, body) => {
            (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
        }
        Act::Text(text) => text.into_response(),
        Act::Page => Html("<!doctype html><p>Welcome").into_response(),
        Act::Hang => std::future::pending().await,
    }
}

async fn server(acts: Vec<Act>) -> (String, Fake) {
    let fake = Fake { acts: Arc::new(Mutex::new(acts)), seen: Arc::default() };
    let router = Router::new().route("/v1/audio/transcriptions", post(answer));
    let router = router.with_state(fake.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}/v1"), fake)
}

fn provider(base_url: &str) -> SttProvider {
    SttProvider {
        base_url: base_url.into(),
        model: "whisper".into(),
        api_key: KEY.into(),
        ..Default::default()
    }
}

fn remote(base_url: &str, timeout_ms: u64) -> Remote {
    Remote::new("zoo", &provider(base_url), "en", Duration::from_millis(timeout_ms)).unwrap()
}

async fn ask(remote: &Remote) -> anyhow::Result<Transcription> {
    remote.transcribe(vec![0.25; 3_200], CancellationToken::new()).await
}

#[tokio::test]
async fn sound_goes_up_as_a_wav_and_words_come_back() {
    let body = json!({
        "text": " Hello there. ",
        "segments": [{ "no_speech_prob": 0.5 }, { "no_speech_prob": 0.25 }],
    });
    let (url, fake) = server(vec![Act::Json(200, body)]).await;
    // A slash at the end of the address is common.
    let words = ask(&remote(&format!("{url}/"), 5_000)).await.unwrap();
    assert_eq!(words, Transcription { text: "Hello there.".into(), no_speech: Some(0.25) });
    let seen = fake.seen.lock().unwrap();
    let (key, fields) = &seen[0];
    assert_eq!(key.as_deref(), Some("Bearer secret-1"));
    let field = |name: &str| &fields.iter().find(|field| field.0 == name).unwrap().1;
    assert_eq!(field("model"), b"whisper");
    assert_eq!(field("language"), b"en");
    assert_eq!(field("response_format"), b"verbose_json");
    let mut wav = hound::WavReader::new(&field("file")[..]).unwrap();
    assert_eq!((wav.spec().sample_rate, wav.spec().channels, wav.len()), (RATE, 1, 3_200));
    assert!(wav.samples::<i16>().all(|sample| sample.unwrap() == 8_192));
}

#[tokio::test]
async fn a_server_without_the_long_answer_is_asked_for_the_short_one() {
    let refusals = [
        json!({ "error": { "message": "not compatible", "param": "response_format" } }),
        json!({ "detail": [{ "loc": ["body", "response_format"], "msg": "Input should be" }] }),
    ];
    for refusal in refusals {
        let short = || Act::Json(200, json!({ "text": "yes" }));
        let (url, fake) = server(vec![Act::Json(400, refusal), short(), short()]).await;
        let remote = remote(&url, 5_000);
        for _ in 0..2 {
            assert_eq!(ask(&remote).await.unwrap().text, "yes");
        }
        // Two requests for the first transcript, one for the second.
        assert_eq!(fake.seen.lock().unwrap().len(), 3);
    }
}

#[tokio::test]
async fn every_fault_is_one_line_that_says_what_to_do() {
    let error = |text: &str| json!({ "error": { "message": text, "code": "code" } });
    let echo = "Incorrect API key: secret-1";
    let cases = [
        (Act::Json(401, error(echo)), "refuses the key: name the variable"),
        (Act::Json(404, error("The model `whisper` does not exist")), "has no model `whisper`"),
        (Act::Json(404, json!({ "detail": "Not Found" })), "no transcription at its address (404)"),
        (Act::Json(429, error("slow down")), "no more requests for now (429): slow down"),
        (Act::Json(503, json!({ "error": "loading\nmodel" })), "has a fault (503): loading model"),
        (Act::Json(400, error(echo)), "does not take the request (400): Incorrect API key: …"),
        (Act::Json(302, json!({})), "sends this request elsewhere (302)"),
        (Act::Json(200, json!({ "error": "too long" })), "is no transcript: too long"),
        (Act::Json(200, json!(["text"])), "is no transcript"),
        (Act::Text("\u{1}{{{"), "is no transcript"),
        (Act::Text("\n <html>"), "web page"),
        (Act::Page, "web page, not with a transcript: check `stt.providers.zoo.base_url`"),
        (Act::Hang, "gave no transcript within 400ms"),
    ];
    for (act, expected) in cases {
        let (url, _) = server(vec![act]).await;
        let error = format!("{:#}", ask(&remote(&url, 400)).await.unwrap_err());
        assert!(error.contains(expected), "{error}");
        assert!(error.starts_with("`zoo` "), "{error}");
        assert!(!error.contains(KEY) && !error.contains('\n'), "{error}");
    }
}

#[tokio::test]
async fn a_dead_server_is_named_without_the_password_of_its_address() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let remote = remote(&format!("http://me:hidden@{address}/v1"), 5_000);
    let error = format!("{:#}", ask(&remote).await.unwrap_err());
    assert_eq!(error, format!("`zoo` can't be reached at http://{address}: is it running?"));
}

#[tokio::test]
async fn cancelling_does_not_wait_for_the_server() {
    let (url, fake) = server(vec![Act::Hang]).await;
    let remote = remote(&url, 3_600_000);
    let cancel = CancellationToken::new();
    let stop = async {
        while fake.seen.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(remote.transcribe(vec![0.0; 3_200], cancel.clone()), stop);
    assert_eq!(result.unwrap_err().to_string(), "cancelled");
}

#[tokio::test]
async fn too_little_sound_is_no_words_and_no_request() {
    let (url, fake) = server(Vec::new()).await;
    let words = remote(&url, 5_000).transcribe(vec![0.1; 800], CancellationToken::new()).await;
    assert_eq!(words.unwrap(), Transcription::default());
    assert!(fake.seen.lock().unwrap().is_empty());
}

#[test]
fn settings_that_cannot_work_are_refused_at_once() {
    let good = provider("http://127.0.0.1:1/v1");
    let cases = [
        (SttProvider { base_url: "zoo".into(), ..good.clone() }, "is not a web address"),
        (SttProvider { model: String::new(), ..good.clone() }, "set `stt.providers.zoo.model`"),
        (SttProvider { api_key: "a\nb".into(), ..good.clone() }, "characters that no key has"),
        (
            SttProvider {
                api_key: String::new(),
                api_key_env: "ALICE_TEST_NO_SUCH_KEY".into(),
                ..good
            },
            "set the variable `ALICE_TEST_NO_SUCH_KEY`",
        ),
    ];
    for (provider, expected) in cases {
        let error = Remote::new("zoo", &provider, "", Duration::from_secs(1)).err().unwrap();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
