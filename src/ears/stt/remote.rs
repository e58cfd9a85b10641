//! Transcription by any server with OpenAI's `POST /audio/transcriptions`: OpenAI, Groq, speaches,
//! whisper.cpp and others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::config::settings::SttProvider;
use crate::ears::{RATE, Stt, Transcription};
use crate::kernel::clock::BoxFuture;
use crate::kernel::http;
use crate::kernel::ports::Pcm;
use crate::kernel::wav::wav_bytes;

/// Most of an answer that is read, bytes; a minute of speech is some kilobytes.
const LONGEST_ANSWER: usize = 1 << 20;

/// Longest message of a server that is passed on, characters.
const LONGEST_QUOTE: usize = 160;

/// OpenAI refuses less sound than this: 100 ms.
const SHORTEST: usize = RATE as usize / 10;

/// One model of one transcription server.
pub struct Remote {
    name: String,
    client: Client,
    url: Url,
    model: String,
    /// Where the key comes from, for errors.
    key_env: String,
    key: Option<String>,
    language: String,
    timeout: Duration,
    /// The server does not give the long answer with the engine's doubt, so the short one is asked.
    plain: AtomicBool,
}

impl Remote {
    /// The server of the table `stt.providers.NAME`; nothing is connected yet. `language` is an ISO
    /// 639-1 code, or empty. `timeout` is for a whole transcription.
    ///
    /// # Errors
    /// One line, when the address, the model or the key can't be used.
    pub fn new(
        name: &str,
        provider: &SttProvider,
        language: &str,
        timeout: Duration,
    ) -> anyhow::Result<Self> {
        let setting = |field| format!("`stt.providers.{name}.{field}`");
        let base = provider.base_url.trim().trim_end_matches('/');
        let url = Url::parse(&format!("{base}/audio/transcriptions"))
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .with_context(|| format!("{} is not a web address", setting("base_url")))?;
        ensure!(
            !provider.model.is_empty(),
            "no model is set for `{name}`: set {}",
            setting("model")
        );
        let key = key(provider);
        if key.is_none() && !provider.api_key_env.is_empty() {
            bail!("no key for `{name}`: set the variable `{}`", provider.api_key_env);
        }
        if key.as_ref().is_some_and(|key| HeaderValue::from_str(key).is_err()) {
            bail!("the key for `{name}` holds characters that no key has: set it again");
        }
        Ok(Self {
            name: name.into(),
            client: http::client(Some(&url), timeout)?,
            url,
            model: provider.model.clone(),
            key_env: provider.api_key_env.clone(),
            key,
            language: language.into(),
            timeout,
            // OpenAI's own newer models refuse the long answer; that refusal is saved here.
            plain: AtomicBool::new(provider.model.contains("-transcribe")),
        })
    }

    async fn ask(&self, audio: Vec<f32>) -> anyhow::Result<Transcription> {
        let wav = wav_bytes(&Pcm { rate: RATE, samples: audio });
        let plain = self.plain.load(Ordering::Relaxed);
        match self.attempt(wav.clone(), plain).await? {
            Answer::Words(words) => Ok(words),
            Answer::Refused { said, .. } if !plain && said.is_about("response_format") => {
                tracing::info!(server = self.name, "no verbose_json: json from now on");
                self.plain.store(true, Ordering::Relaxed);
                match self.attempt(wav, true).await? {
                    Answer::Words(words) => Ok(words),
                    Answer::Refused { status, said } => bail!(self.refusal(status, &said)),
                }
            }
            Answer::Refused { status, said } => bail!(self.refusal(status, &said)),
        }
    }

    async fn attempt(&self, wav: Vec<u8>, plain: bool) -> anyhow::Result<Answer> {
        let file = Part::bytes(wav).file_name("speech.wav").mime_str("audio/wav")?;
        let mut form = Form::new()
            .part("file", file)
            .text("model", self.model.clone())
            .text("response_format", if plain { "json" } else { "verbose_json" });
        if !self.language.is_empty() {
            form = form.text("language", self.language.clone());
        }
        let mut request = self.client.post(self.url.clone()).multipart(form);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let response = request.send().await.map_err(|error| self.broken(&error))?;
        let status = response.status();
        let html = is_html(&response);
        let body = read(response).await.map_err(|error| self.broken(&error))?;
        if !status.is_success() {
            let said = serde_json::from_slice(&body).map(|body| Said::of(&body));
            return Ok(Answer::Refused { status, said: said.unwrap_or_default() });
        }
        if html || body.trim_ascii_start().starts_with(b"<") {
            bail!(
                "`{0}` answered with a web page, not with a transcript: check \
                 `stt.providers.{0}.base_url`",
                self.name
            );
        }
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let Some(text) = body.get("text").and_then(Value::as_str) else {
            let quote = self.quote(Said::of(&body).message.as_deref());
            bail!("`{}` answered with something that is no transcript{quote}", self.name);
        };
        Ok(Answer::Words(Transcription { text: text.trim().into(), no_speech: doubt(&body) }))
    }

    fn broken(&self, error: &reqwest::Error) -> anyhow::Error {
        // reqwest's own text holds the whole address, and with it a password that stands there.
        if error.is_connect() || error.is_timeout() {
            let place = self.url.origin().ascii_serialization();
            anyhow::anyhow!("`{}` can't be reached at {place}: is it running?", self.name)
        } else {
            anyhow::anyhow!("`{}` broke the connection before it answered", self.name)
        }
    }

    fn refusal(&self, status: StatusCode, said: &Said) -> String {
        let name = &self.name;
        let setting = |field| format!("`stt.providers.{name}.{field}`");
        let set_key = || match self.key_env.as_str() {
            "" => format!("name the variable that holds it in {}", setting("api_key_env")),
            variable => format!("set `{variable}` to a valid one"),
        };
        let quote = || self.quote(said.message.as_deref());
        match status.as_u16() {
            // The server's words are left out: they may hold a part of the key.
            401 | 403 => format!("`{name}` refuses the key: {}", set_key()),
            404 if said.is_about("model") => {
                format!("`{name}` has no model `{}`: set {}", self.model, setting("model"))
            }
            404 | 405 => format!(
                "`{name}` has no transcription at its address ({}): check {}",
                status.as_u16(),
                setting("base_url")
            ),
            402 | 429 => {
                format!("`{name}` takes no more requests for now ({}){}", status.as_u16(), quote())
            }
            code @ 500.. => format!("`{name}` has a fault ({code}){}", quote()),
            code @ 300..=399 => {
                format!(
                    "`{name}` sends this request elsewhere ({code}): check {}",
                    setting("base_url")
                )
            }
            code => format!("`{name}` does not take the request ({code}){}", quote()),
        }
    }

    /// The server's own words on one short line, without the key.
    fn quote(&self, message: Option<&str>) -> String {
        let mut line = message.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(key) = &self.key {
            line = line.replace(key.as_str(), "…");
        }
        if line.chars().count() > LONGEST_QUOTE {
            line = line.chars().take(LONGEST_QUOTE).chain(['…']).collect();
        }
        if line.is_empty() { line } else { format!(": {line}") }
    }
}

impl Stt for Remote {
    fn name(&self) -> String {
        format!("{}: {}", self.name, self.model)
    }

    fn transcribe(
        &self,
        audio: Vec<f32>,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, anyhow::Result<Transcription>> {
        Box::pin(async move {
            if audio.len() < SHORTEST {
                return Ok(Transcription::default());
            }
            tokio::select! {
                biased;
                () = cancel.cancelled() => bail!("cancelled"),
                answer = tokio::time::timeout(self.timeout, self.ask(audio)) => {
                    answer.unwrap_or_else(|_| {
                        bail!("`{}` gave no transcript within {:?}", self.name, self.timeout)
                    })
                }
            }
        })
    }
}

enum Answer {
    Words(Transcription),
    Refused { status: StatusCode, said: Said },
}

/// What of an error answer means something.
#[derive(Default)]
struct Said {
    message: Option<String>,
    /// The message with `param` and `code`, where they are told.
    all: String,
}

impl Said {
    /// Reads OpenAI's error object, a bare text in `error` and FastAPI's `detail`.
    fn of(body: &Value) -> Self {
        let error = body.get("error").or_else(|| body.get("detail")).unwrap_or(body);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let field = |name: &str| error.get(name).and_then(text);
        let first = || error.get(0).and_then(|item| item.get("msg")).and_then(text);
        let message = text(error).or_else(|| field("message")).or_else(first);
        let mut all = message.clone().unwrap_or_default();
        for more in ["param", "code"].into_iter().filter_map(field) {
            all = format!("{all} {more}");
        }
        if let Some(place) = error.get(0).and_then(|item| item.get("loc")) {
            all = format!("{all} {place}");
        }
        Self { message, all: all.to_lowercase() }
    }

    fn is_about(&self, word: &str) -> bool {
        self.all.contains(word)
    }
}

/// The engine's doubt that there was speech at all: that of the segment it is surest of.
fn doubt(body: &Value) -> Option<f32> {
    let segments = body.get("segments")?.as_array()?.iter();
    let doubts = segments.filter_map(|segment| segment.get("no_speech_prob")?.as_f64());
    doubts.map(|doubt| doubt as f32).reduce(f32::min)
}

/// The key of a provider: the variable's, else the written one.
fn key(provider: &SttProvider) -> Option<String> {
    let variable = Some(provider.api_key_env.as_str()).filter(|name| !name.is_empty());
    let key = variable.and_then(|name| std::env::var(name).ok());
    [key, Some(provider.api_key.clone())]
        .into_iter()
        .flatten()
        .map(|key| key.trim().to_owned())
        .find(|key| !key.is_empty())
}

fn is_html(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/html"))
}

/// The beginning of a body, up to [`LONGEST_ANSWER`].
async fn read(mut response: Response) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    while body.len() < LONGEST_ANSWER
        && let Some(bytes) = response.chunk().await?
    {
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
