//! A language model server that behaves as it is told: for tests and for `alice bench`.
//!
//! It speaks OpenAI's chat completions on a port of its own on this machine, at the pace of a real
//! model or with the faults of a bad day.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// What the server does with one request.
#[derive(Clone, Debug)]
pub enum Act {
    /// Streams this, a word at a time, at the server's pace.
    Reply(String),
    /// Reasons first, then replies.
    Think(String, String),
    /// Streams so many words of this and then drops the connection.
    Cut(String, usize),
    /// Streams so many words of this and then says nothing more.
    Stall(String, usize),
    /// Never answers.
    Hang,
    /// Answers with this status, these headers and this body.
    Status(u16, Vec<(&'static str, String)>, String),
    /// Answers 200 with this content type and these bytes, each piece sent by itself.
    Raw(&'static str, Vec<Vec<u8>>),
}

/// How fast the server writes.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// From the request to the first word.
    pub first_token: Duration,
    /// Words a second after it; 0: all at once.
    pub per_second: f64,
}

impl Pace {
    /// No waits.
    pub const INSTANT: Self = Self { first_token: Duration::ZERO, per_second: 0.0 };

    /// When the word of this index is due after the request.
    fn due(self, index: usize) -> Duration {
        let behind = if self.per_second > 0.0 { index as f64 / self.per_second } else { 0.0 };
        self.first_token + Duration::from_secs_f64(behind)
    }
}

/// A request that arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Its `Authorization` header.
    pub authorization: Option<String>,
    /// Its body.
    pub body: Value,
}

/// The running server; it ends when this is dropped.
#[derive(Debug)]
pub struct FakeLlm {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    pace: Pace,
    acts: Mutex<VecDeque<Act>>,
    seen: Mutex<Vec<Seen>>,
    open: Mutex<usize>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FakeLlm {
    /// Starts a server on a free port that does one act a request, and the last one again and again.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(pace: Pace, acts: impl IntoIterator<Item = Act>) -> std::io::Result<Self> {
        Self::start_on(0, pace, acts).await
    }

    /// The same on this port, so that a server which was away can come back; 0: a free one.
    ///
    /// # Errors
    /// When the port is taken.
    pub async fn start_on(
        port: u16,
        pace: Pace,
        acts: impl IntoIterator<Item = Act>,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            pace,
            acts: Mutex::new(acts.into_iter().collect()),
            seen: Mutex::default(),
            open: Mutex::default(),
        });
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        let address = listener.local_addr()?;
        let router = Router::new()
            .route("/v1/chat/completions", post(chat))
            .route("/v1/models", get(models))
            .with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "fake language model server stopped");
            }
        });
        Ok(Self { address, shared, task })
    }

    /// The address to put into `base_url`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Does this with every request from now on.
    pub fn behave(&self, act: Act) {
        *lock(&self.shared.acts) = VecDeque::from([act]);
    }

    /// What was asked so far.
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.shared.seen).clone()
    }

    /// How many replies are being streamed; a client that hangs up ends its own.
    pub fn open(&self) -> usize {
        *lock(&self.shared.open)
    }
}

impl Drop for FakeLlm {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn models() -> Json<Value> {
    Json(json!({ "object": "list", "data": [
        { "id": "nomic-embed-text", "object": "model" },
        { "id": "fake", "object": "model" },
    ] }))
}

async fn chat(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let authorization = headers.get(header::AUTHORIZATION);
    let authorization = authorization.and_then(|value| value.to_str().ok()).map(str::to_owned);
    lock(&shared.seen).push(Seen { authorization, body });
    let act = {
        let mut acts = lock(&shared.acts);
        if acts.len() > 1 { acts.pop_front() } else { acts.front().cloned() }
    };
    let pace = shared.pace;
    let open = Open::new(shared);
    match act.unwrap_or(Act::Hang) {
        Act::Reply(text) => events(open, words("content", &text, true), pace, Ending::Whole),
        Act::Think(thought, text) => {
            let mut all = words("reasoning_content", &thought, false);
            all.extend(words("content", &text, true));
            events(open, all, pace, Ending::Whole)
        }
        Act::Cut(text, after) => {
            let some = words("content", &text, false).into_iter().take(after).collect();
            events(open, some, pace, Ending::Broken)
        }
        Act::Stall(text, after) => {
            let some = words("content", &text, false).into_iter().take(after).collect();
            events(open, some, pace, Ending::Silent)
        }
        Act::Hang => {
            let _held = open;
            std::future::pending().await
        }
        Act::Status(status, headers, body) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let headers: HeaderMap = headers
                .into_iter()
                .filter_map(|(name, value)| {
                    Some((header::HeaderName::from_static(name), value.parse().ok()?))
                })
                .collect();
            (status, headers, body).into_response()
        }
        Act::Raw(kind, pieces) => {
            let pieces = stream::iter(pieces).then(|piece| async {
                // A pause of its own makes each piece a packet of its own.
                tokio::task::yield_now().await;
                Ok::<_, Infallible>(Bytes::from(piece))
            });
            ([(header::CONTENT_TYPE, kind)], Body::from_stream(pieces)).into_response()
        }
    }
}

/// Counts a reply as open while it lives.
struct Open(Arc<Shared>);

impl Open {
    fn new(shared: Arc<Shared>) -> Self {
        *lock(&shared.open) += 1;
        Self(shared)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        *lock(&self.0.open) -= 1;
    }
}

enum Ending {
    Whole,
    Broken,
    Silent,
}

/// The chunks of a text, one a word, and the one that ends the reply.
fn words(field: &str, text: &str, last: bool) -> Vec<Value> {
    let mut chunks: Vec<Value> =
        text.split_inclusive(' ').map(|word| chunk(json!({ field: word }), None)).collect();
    if last {
        chunks.push(chunk(json!({}), Some("stop")));
    }
    chunks
}

fn chunk(delta: Value, finish: Option<&str>) -> Value {
    json!({
        "id": "chatcmpl-fake", "object": "chat.completion.chunk", "model": "fake",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    })
}

fn events(open: Open, chunks: Vec<Value>, pace: Pace, ending: Ending) -> Response {
    let began = tokio::time::Instant::now();
    let data = chunks.into_iter().map(|chunk| format!("data: {chunk}\n\n"));
    let spoken = stream::iter(data.enumerate()).then(move |(index, data)| async move {
        let due = pace.due(index);
        if !due.is_zero() {
            tokio::time::sleep_until(began + due).await;
        }
        Ok(Bytes::from(data))
    });
    let end: std::pin::Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>> = match ending {
        Ending::Whole => stream::iter([Ok(Bytes::from_static(b"data: [DONE]\n\n"))]).boxed(),
        Ending::Broken => stream::once(async {
            // What was written has to leave before the connection is reset under it.
            tokio::time::sleep(Duration::from_millis(20)).await;
            Err(std::io::ErrorKind::ConnectionReset.into())
        })
        .boxed(),
        Ending::Silent => stream::pending().boxed(),
    };
    let body = spoken.chain(end).map(move |piece| {
        let _while_streaming = &open;
        piece
    });
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(body)).into_response()
}
