//! Chat completions of any OpenAI-compatible server: OpenAI, Ollama, LM Studio, llama.cpp,
//! DashScope, Kimi, DeepSeek, Groq and others, streamed.

pub mod refusal;
pub mod wire;

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Client, Response};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::refusal::{Refusal, Who};
use self::wire::Reader;
use super::providers::{Provider, Quirks, TokensField};
use crate::kernel::clock::BoxFuture;
use crate::kernel::ports::{ChatDelta, ChatError, ChatMessage, ChatModel, ChatRequest, ChatStream};

/// Deltas that may wait for the reader before the server is held up.
const QUEUE: usize = 256;

/// Most of an error body that is read, bytes.
const ERROR_BODY: usize = 64 << 10;

/// Longest wait before the one second try; whoever says longer is left to the next model.
const PATIENCE: Duration = Duration::from_secs(3);

/// A server that sends nothing but comments counts as hung after so many time-outs.
const COMMENT_TIMEOUTS: u32 = 3;

/// One model of one server.
pub struct OpenAi {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    provider: Provider,
    who: Who,
    timeout: Duration,
    /// What the server was found to want, beyond the catalogue.
    quirks: Mutex<Quirks>,
}

impl OpenAi {
    /// A model; nothing is connected yet. `timeout` is how long the server may be silent.
    ///
    /// # Errors
    /// When the address is none, or the system's certificates are unusable.
    pub fn new(provider: Provider, timeout: Duration) -> anyhow::Result<Self> {
        let name = &provider.name;
        let address = reqwest::Url::parse(&provider.base_url).ok();
        if !address.is_some_and(|url| matches!(url.scheme(), "http" | "https")) {
            anyhow::bail!("`llm.providers.{name}.base_url` is not a web address");
        }
        if provider.model.is_empty() {
            anyhow::bail!("no model is set for `{name}`: set `llm.providers.{name}.model`");
        }
        let who = Who {
            name: name.clone(),
            model: provider.model.clone(),
            key_env: provider.key_env.clone(),
            key: provider.key.clone(),
        };
        let client = provider.client(timeout)?;
        let quirks = Mutex::new(provider.quirks.clone());
        Ok(Self { shared: Arc::new(Shared { client, provider, who, timeout, quirks }) })
    }
}

impl ChatModel for OpenAi {
    fn name(&self) -> String {
        format!("{}: {}", self.shared.provider.name, self.shared.provider.model)
    }

    fn chat(&self, request: ChatRequest, cancel: CancellationToken) -> ChatStream {
        let (out, stream) = mpsc::channel(QUEUE);
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let result = tokio::select! {
                biased;
                () = cancel.cancelled() => Err(ChatError::Cancelled),
                () = out.closed() => return,
                result = shared.talk(&request, &out) => result,
            };
            if let Err(error) = result {
                // Nobody listens any more when this fails.
                let _ = out.send(Err(error)).await;
            }
        });
        stream
    }

    fn warm(&self, _messages: Vec<ChatMessage>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // The handshake of a new connection costs as much as a short prompt does. What the
            // server answers does not matter.
            let request = self.shared.request(reqwest::Method::GET, "models");
            if let Ok(response) = request.timeout(Duration::from_secs(3)).send().await {
                let _ = read_some(response, ERROR_BODY).await;
            }
        })
    }
}

impl Shared {
    fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        let url = format!("{}/{path}", self.provider.base_url);
        let request = self.client.request(method, url);
        match &self.provider.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    fn quirks(&self) -> Quirks {
        self.quirks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn talk(
        &self,
        request: &ChatRequest,
        out: &mpsc::Sender<Result<ChatDelta, ChatError>>,
    ) -> Result<(), ChatError> {
        let response = self.connect(request).await?;
        self.stream(response, out).await
    }

    /// The answer with status 200, after at most one more try and what adaptation the server wants.
    async fn connect(&self, request: &ChatRequest) -> Result<Response, ChatError> {
        let mut tried_again = false;
        loop {
            let refusal = match self.attempt(request).await? {
                Ok(response) => return Ok(response),
                Err(refusal) => refusal,
            };
            if self.adapt(&refusal) {
                continue;
            }
            match refusal.again.filter(|wait| !tried_again && *wait <= PATIENCE) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(refusal.error),
            }
            tried_again = true;
        }
    }

    async fn attempt(&self, request: &ChatRequest) -> Result<Result<Response, Refusal>, ChatError> {
        let body = wire::body(&self.provider.model, request, &self.quirks());
        let send = self
            .request(reqwest::Method::POST, "chat/completions")
            .header(reqwest::header::ACCEPT, "text/event-stream")
            .json(&body)
            .send();
        let response = tokio::time::timeout(self.timeout, send)
            .await
            .map_err(|_| self.hung())?
            .map_err(|error| self.broken(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(Ok(response));
        }
        let headers = response.headers().clone();
        let read = tokio::time::timeout(self.timeout, read_some(response, ERROR_BODY));
        let body = read.await.unwrap_or_default();
        Ok(Err(refusal::of_status(&self.who, status, &headers, &body, jiff::Timestamp::now())))
    }

    /// Leaves out, from now on, what the server did not take; `false` when there is nothing (more)
    /// to leave out, so this ends.
    fn adapt(&self, refusal: &Refusal) -> bool {
        let Some(field) = refusal.field.clone() else { return false };
        let mut quirks = self.quirks.lock().unwrap_or_else(PoisonError::into_inner);
        if quirks.fixed.contains(&field) {
            return false;
        }
        match (field.as_str(), quirks.tokens) {
            ("max_tokens", TokensField::MaxTokens) => {
                quirks.tokens = TokensField::MaxCompletionTokens;
            }
            ("max_completion_tokens", TokensField::MaxCompletionTokens) => {
                quirks.tokens = TokensField::MaxTokens;
            }
            _ => {}
        }
        tracing::info!(provider = self.provider.name, field, "left out of requests from now on");
        quirks.fixed.push(field);
        true
    }

    async fn stream(
        &self,
        mut response: Response,
        out: &mpsc::Sender<Result<ChatDelta, ChatError>>,
    ) -> Result<(), ChatError> {
        let mut reader = Reader::new(self.who.clone());
        let mut deltas = Vec::new();
        let mut silence = pin!(tokio::time::sleep(self.timeout * COMMENT_TIMEOUTS));
        loop {
            let chunk = tokio::select! {
                chunk = tokio::time::timeout(self.timeout, response.chunk()) => {
                    chunk.map_err(|_| self.hung())?
                }
                () = &mut silence => return Err(self.hung()),
            };
            let (end, read) = match chunk {
                Ok(Some(bytes)) => match reader.feed(&bytes, &mut deltas) {
                    Ok(event) => {
                        if event {
                            let now = tokio::time::Instant::now();
                            silence.as_mut().reset(now + self.timeout * COMMENT_TIMEOUTS);
                        }
                        (reader.is_done(), Ok(()))
                    }
                    Err(error) => (true, Err(error)),
                },
                Ok(None) => (true, Ok(())),
                // What the reader holds may be a whole reply all the same.
                Err(error) => {
                    tracing::debug!(provider = self.provider.name, %error, "stream broke");
                    (true, Ok(()))
                }
            };
            let read = if end { read.and_then(|()| reader.finish(&mut deltas)) } else { read };
            // Words that came before an error are said before it.
            for delta in deltas.drain(..) {
                if out.send(Ok(delta)).await.is_err() {
                    return Ok(());
                }
            }
            read?;
            if end {
                return Ok(());
            }
        }
    }

    fn hung(&self) -> ChatError {
        let seconds = self.timeout.as_secs_f64();
        self.who.unavailable(&format!("said nothing for {seconds:.0} s"))
    }

    fn broken(&self, error: &reqwest::Error) -> ChatError {
        let address = &self.provider.base_url;
        if error.is_connect() || error.is_timeout() {
            self.who.unavailable(&format!("can't be reached at {address}: is it running?"))
        } else {
            self.who.unavailable("broke the connection before it answered")
        }
    }
}

/// The beginning of a body, as much as arrives.
async fn read_some(mut response: Response, limit: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = response.chunk().await {
        body.extend_from_slice(&bytes);
        if body.len() >= limit {
            break;
        }
    }
    body
}

#[cfg(test)]
#[path = "openai/openai_tests.rs"]
mod tests;
