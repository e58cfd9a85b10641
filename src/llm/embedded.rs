//! The embedded model: a GGUF file run by llama.cpp on a thread of its own.
//!
//! It keeps the conversation's key-value cache between turns, so a new turn decodes only what is new
//! (and less after [`ChatModel::warm`]); it gives its cores to the voice when that needs them; and
//! it stops within some milliseconds when a reply is cancelled.
//!
//! Memory: the weights are mapped from the file (so the system may drop and re-read them), the cache
//! of a 0.5B model takes 12 KB a token (48 MB for 4096), and the work space some 20 MB.

pub mod context;
mod engine;
pub mod prompt;
pub mod queue;
pub mod threads;
pub mod utf8;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::engine::{Config, Counters};
use self::queue::{Chat, Job, Queue};
use self::threads::Threads;
use crate::config::Home;
use crate::config::settings::Llm;
use crate::kernel::clock::BoxFuture;
use crate::kernel::load::CoreLoad;
use crate::kernel::ports::{ChatMessage, ChatModel, ChatRequest, ChatStream};
use crate::models::{self, BadWeights};

/// Files below this size are of models too small to tell feelings apart (about 3 thousand million
/// parameters at four bits). The 0.5B model was seen to write tags in the right form and of the
/// wrong feeling.
const TAGS_FROM: u64 = 1_800_000_000;

/// Deltas beside one a token: what was held back at the end, and the end.
const SPARE: usize = 8;

/// The most deltas that are ever queued for one reply.
const LONGEST: usize = 1 << 16;

/// The embedded model. Dropping it ends its thread and frees the memory.
pub struct Embedded {
    name: String,
    tags_feelings: bool,
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    thread: Option<JoinHandle<()>>,
}

/// How much the embedded model has done, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Prompt tokens that were decoded.
    pub decoded: u64,
    /// Prompt tokens that were in the cache already.
    pub reused: u64,
    /// Tokens of replies.
    pub replied: u64,
}

impl Embedded {
    /// The model that the settings name (one of the manifest, or the path of a `.gguf` file). It is
    /// loaded when it is first needed, or by [`Embedded::load`].
    ///
    /// # Errors
    /// One line when the weights are missing or damaged.
    pub fn open(home: &Home, settings: &Llm, load: CoreLoad) -> Result<Self, String> {
        let (name, file) =
            find(home, &settings.embedded_model).map_err(|missing| missing.to_string())?;
        let size = std::fs::metadata(&file).map(|meta| meta.len()).unwrap_or_default();
        let queue = Arc::new(Queue::default());
        let counters = Arc::new(Counters::default());
        let config = Config {
            name: name.clone(),
            file,
            context: settings.context,
            threads: Threads::new(load, settings.threads),
        };
        let thread = engine::start(Arc::clone(&queue), Arc::clone(&counters), config)
            .map_err(|error| format!("no thread for the language model: {error}"))?;
        let tags_feelings = size >= TAGS_FROM;
        Ok(Self { name, tags_feelings, queue, counters, thread: Some(thread) })
    }

    /// Loads the model now.
    ///
    /// # Errors
    /// One line that says what is wrong with it.
    pub async fn load(&self) -> Result<(), String> {
        let (done, loaded) = oneshot::channel();
        self.queue.push(Job::Load(done));
        loaded.await.unwrap_or_else(|_| Err("the language model's thread ended".into()))
    }

    /// What it has done so far.
    pub fn work(&self) -> Work {
        Work {
            decoded: self.counters.decoded.load(Ordering::Relaxed),
            reused: self.counters.reused.load(Ordering::Relaxed),
            replied: self.counters.replied.load(Ordering::Relaxed),
        }
    }
}

/// The name and the file of a model.
fn find(home: &Home, model: &str) -> Result<(String, PathBuf), BadWeights> {
    let path = Path::new(model);
    let is_gguf = |path: &Path| path.extension().is_some_and(|ending| ending == "gguf");
    if is_gguf(path) && path.is_file() {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        return Ok((name.unwrap_or_default(), path.to_owned()));
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir(home.models().join(model))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| is_gguf(path))
        .collect();
    files.sort();
    let file = files.first().and_then(|file| file.file_name()?.to_str()).unwrap_or("*.gguf");
    Ok((model.to_owned(), models::locate(home, model, file)?))
}

impl ChatModel for Embedded {
    fn name(&self) -> String {
        format!("embedded: {}", self.name)
    }

    fn tags_feelings(&self) -> bool {
        self.tags_feelings
    }

    fn chat(&self, request: ChatRequest, cancel: CancellationToken) -> ChatStream {
        // One delta a token at most, so that the model's thread never waits for a reader.
        let tokens = usize::try_from(request.max_tokens).unwrap_or(LONGEST).min(LONGEST);
        let (out, stream) = mpsc::channel(2 * tokens + SPARE);
        self.queue.push(Job::Chat(Chat { request, cancel, out }));
        stream
    }

    fn warm(&self, messages: Vec<ChatMessage>) -> BoxFuture<'_, ()> {
        let (done, warmed) = oneshot::channel();
        self.queue.push(Job::Warm(messages, done));
        Box::pin(async move {
            // An error says that it is done.
            let _ = warmed.await;
        })
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // It ends within a step that is stopped; a panic of its was logged.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
#[path = "embedded/embedded_tests.rs"]
mod tests;
