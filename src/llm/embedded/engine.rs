//! The thread that owns the embedded model: it takes jobs one by one and keeps the cache between
//! them.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

use super::context::{self, Context, Step};
use super::prompt::{End, Template, window};
use super::queue::{Chat, Job, Queue};
use super::threads::{Kind, Threads};
use super::utf8::Utf8;
use crate::kernel::ports::{ChatDelta, ChatError, ChatMessage, ChatRequest, Role, StopReason};
use crate::llm::think::{Piece, ThinkSplitter};

/// Tokens of the prompt that are decoded in one step. Larger steps are no faster on few cores, and
/// the number of threads can change only between steps.
const STEP: usize = 32;

/// Tokens that the repetition penalty looks back on, and its strength: small models repeat
/// themselves.
const PENALTY: (i32, f32) = (64, 1.1);

/// The most likely tokens that are considered, by number and by their share of the probability.
const TOP: (i32, f32) = (40, 0.9);

/// What the thread needs to know.
pub struct Config {
    /// The model's name, for errors.
    pub name: String,
    /// The GGUF file.
    pub file: PathBuf,
    /// Tokens of context.
    pub context: u32,
    /// The thread policy.
    pub threads: Threads,
}

/// Counts of all work so far, in tokens.
#[derive(Debug, Default)]
pub struct Counters {
    /// Prompt tokens that were decoded.
    pub decoded: AtomicU64,
    /// Prompt tokens that were found in the cache.
    pub reused: AtomicU64,
    /// Tokens of replies.
    pub replied: AtomicU64,
}

/// Works until the queue is closed. The model is loaded for the first job; when that fails, it is
/// tried again for the next one.
pub fn run(queue: &Queue, counters: &Counters, mut config: Config) {
    while let Some(job) = queue.pop() {
        let model = match load(&config) {
            Ok(model) => model,
            Err(line) => {
                refuse(job, &line);
                continue;
            }
        };
        let mut engine = match Engine::new(&model, queue, counters, &mut config) {
            Ok(engine) => engine,
            Err(line) => {
                refuse(job, &line);
                continue;
            }
        };
        engine.run(job);
    }
}

fn refuse(job: Job, line: &str) {
    match job {
        // Who asked may be gone.
        Job::Load(done) => drop(done.send(Err(line.to_owned()))),
        Job::Warm(..) => {}
        Job::Chat(chat) => chat.send(Err(ChatError::Unavailable(line.to_owned()))),
    }
}

fn load(config: &Config) -> Result<LlamaModel, String> {
    let began = Instant::now();
    // The file is mapped, so its pages are shared and can be dropped by the system.
    let params = LlamaModelParams::default().with_use_mmap(true);
    let model = LlamaModel::load_from_file(context::backend()?, &config.file, &params);
    let model = model.map_err(|_| {
        format!(
            "the language model `{}` can't be loaded: check it with `alice models verify`",
            config.name
        )
    })?;
    let ms = began.elapsed().as_millis();
    tracing::info!(model = config.name, ms, "language model loaded");
    Ok(model)
}

struct Engine<'m> {
    model: &'m LlamaModel,
    template: Template<'m>,
    context: Context<'m>,
    length: usize,
    queue: &'m Queue,
    counters: &'m Counters,
    threads: &'m mut Threads,
    /// Where the thread policy's clock began.
    began: Instant,
    /// What the cache holds.
    cached: Vec<LlamaToken>,
    /// The first message behind the system prompt that was kept last time, and where it stood.
    kept: Option<(usize, ChatMessage)>,
}

impl<'m> Engine<'m> {
    fn new(
        model: &'m LlamaModel,
        queue: &'m Queue,
        counters: &'m Counters,
        config: &'m mut Config,
    ) -> Result<Self, String> {
        let template = Template::of(model).map_err(|why| format!("`{}`: {why}", config.name))?;
        let length = config.context.clamp(256, model.n_ctx_train().max(256));
        let context = Context::new(model, length, u32::try_from(STEP).unwrap_or(1))?;
        Ok(Self {
            model,
            template,
            context,
            length: usize::try_from(length).unwrap_or_default(),
            queue,
            counters,
            threads: &mut config.threads,
            began: Instant::now(),
            cached: Vec::new(),
            kept: None,
        })
    }

    fn run(&mut self, first: Job) {
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                // Who asked may be gone.
                Job::Load(done) => drop(done.send(Ok(()))),
                Job::Warm(messages, done) => {
                    self.guarded(|engine| engine.warm(&messages));
                    drop(done);
                }
                Job::Chat(chat) => {
                    let result = self
                        .guarded(|engine| engine.chat(&chat))
                        .unwrap_or_else(|| Err(failed("it panicked")));
                    chat.send(result.map(ChatDelta::Done));
                }
            }
            next = self.queue.pop();
        }
    }

    /// Runs a job; one that panics leaves an empty cache and a thread that goes on.
    fn guarded<T>(&mut self, job: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| job(self)));
        if result.is_err() {
            tracing::error!("the embedded language model panicked");
            self.cached.clear();
            self.context.truncate(0);
        }
        result.ok()
    }

    /// Brings the beginning of the next request into the cache. A reply that somebody waits for
    /// comes first; what was decoded until then is of use to it.
    fn warm(&mut self, messages: &[ChatMessage]) {
        let Ok(tokens) = self.prompt(messages, End::Open, 0) else { return };
        let queue = self.queue;
        let stop = || queue.is_closed();
        let given_way = || queue.has_chat();
        if let Err(error) = self.fill(&tokens, &stop, &given_way) {
            tracing::debug!(%error, "prompt was not warmed");
        }
    }

    fn chat(&mut self, chat: &Chat) -> Result<StopReason, ChatError> {
        let queue = self.queue;
        let stop = || {
            queue.sweep();
            chat.is_unwanted() || queue.is_closed()
        };
        let request = &chat.request;
        let reply = usize::try_from(request.max_tokens).unwrap_or(usize::MAX);
        // The stream has room for two deltas a token, so that this thread never waits.
        let reply = reply.min(chat.out.max_capacity() / 2);
        let tokens = self.prompt(&request.messages, End::Reply, reply.min(self.length / 2))?;
        if stop() || self.fill(&tokens, &stop, &|| false)? == Step::Stopped {
            return Err(ChatError::Cancelled);
        }
        let vocab = self.model.vocab();
        let mut sampler = self.sampler(request);
        let mut utf8 = Utf8::default();
        let mut think = ThinkSplitter::default();
        let mut bytes = Vec::new();
        let mut count = 0;
        let reason = loop {
            if count >= reply || self.cached.len() >= self.length {
                break StopReason::Length;
            }
            let token = self.sample(&mut sampler).ok_or_else(|| failed("it gave no logits"))?;
            if vocab.is_eog(token) {
                break StopReason::End;
            }
            count += 1;
            self.counters.replied.fetch_add(1, Ordering::Relaxed);
            bytes.clear();
            vocab.token_to_piece_into(token, &mut bytes, false, None);
            say(chat, think.feed(&utf8.feed(&bytes)));
            if self.step(&[token], &stop)? == Step::Stopped {
                return Err(ChatError::Cancelled);
            }
        };
        say(chat, think.feed(&utf8.finish()));
        say(chat, think.finish().into_iter().collect());
        Ok(reason)
    }

    /// The tokens of the messages that fit beside a reply of `reply` tokens: the system prompt, and
    /// the newest ones.
    fn prompt(
        &mut self,
        messages: &[ChatMessage],
        end: End,
        reply: usize,
    ) -> Result<Vec<LlamaToken>, ChatError> {
        let refused = |why: String| ChatError::Refused(format!("the embedded model: {why}"));
        let fixed = messages.iter().take_while(|message| message.role == Role::System).count();
        let kept = self.kept.take().and_then(|(index, first)| {
            let still = messages.get(index).is_some_and(|message| *message == first);
            if still { Some(index) } else { messages.iter().position(|message| *message == first) }
        });
        let lengths: Vec<usize> =
            messages.iter().map(|message| self.template.length(message)).collect();
        let room = self.length.saturating_sub(reply);
        let from = window(&lengths, fixed, room, kept.unwrap_or(fixed)).ok_or_else(|| {
            refused(format!(
                "the message and the system prompt are longer than its context of {} tokens",
                self.length
            ))
        })?;
        self.kept = messages.get(from).map(|first| (from, first.clone()));
        if from > fixed {
            tracing::debug!(dropped = from - fixed, "old messages do not fit into the context");
        }
        let fitting: Vec<ChatMessage> =
            messages.iter().take(fixed).chain(messages.iter().skip(from)).cloned().collect();
        self.template.tokens(&fitting, end).map_err(refused)
    }

    /// Makes the cache hold these tokens, keeping what it has in common with them.
    fn fill(
        &mut self,
        tokens: &[LlamaToken],
        stop: &dyn Fn() -> bool,
        give_way: &dyn Fn() -> bool,
    ) -> Result<Step, ChatError> {
        let common = self.cached.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        // The last token is decoded in any case: its logits are the beginning of the reply.
        let common = common.min(tokens.len().saturating_sub(1));
        self.forget(common);
        let common = self.cached.len();
        self.counters.reused.fetch_add(common as u64, Ordering::Relaxed);
        let began = Instant::now();
        let new = tokens.get(common..).unwrap_or_default();
        for step in new.chunks(STEP) {
            if give_way() || self.step(step, stop)? == Step::Stopped {
                return Ok(Step::Stopped);
            }
            self.counters.decoded.fetch_add(step.len() as u64, Ordering::Relaxed);
        }
        let ms = began.elapsed().as_millis();
        tracing::debug!(reused = common, decoded = new.len(), ms, "prompt is in the cache");
        Ok(Step::Done)
    }

    /// Decodes a few tokens on as many threads as are free now.
    fn step(&mut self, tokens: &[LlamaToken], stop: &dyn Fn() -> bool) -> Result<Step, ChatError> {
        let kind = if tokens.len() == 1 { Kind::Reply } else { Kind::Prompt };
        loop {
            let (threads, limit) = self.threads.next(kind, tokens.len(), self.began.elapsed());
            self.context.set_threads(threads);
            let began = Instant::now();
            let hopeless = || limit.is_some_and(|limit| began.elapsed() > limit);
            let result = self.context.decode(tokens, &|| stop() || hopeless());
            let (took, now) = (began.elapsed(), self.began.elapsed());
            match result {
                Ok(Step::Done) => {
                    self.threads.took(kind, threads, tokens.len(), true, took, now);
                    self.cached.extend_from_slice(tokens);
                    return Ok(Step::Done);
                }
                Ok(Step::Stopped) => {
                    let length = self.cached.len();
                    self.forget(length);
                    if stop() {
                        return Ok(Step::Stopped);
                    }
                    self.threads.took(kind, threads, tokens.len(), false, took, now);
                    if self.cached.len() < length {
                        return Err(failed("it can't take back a step"));
                    }
                }
                Err(code) => {
                    self.forget(0);
                    return Err(failed(&format!("llama.cpp's code {code}")));
                }
            }
        }
    }

    /// Keeps this many tokens of the cache.
    fn forget(&mut self, length: usize) {
        self.cached.truncate(length);
        if !self.context.truncate(length) {
            self.cached.clear();
        }
    }

    fn sampler(&self, request: &ChatRequest) -> LlamaSampler {
        let penalties =
            LlamaSampler::penalties(self.model.n_vocab(), PENALTY.0, PENALTY.1, 0.0, 0.0);
        if request.temperature <= 0.0 {
            return LlamaSampler::chain([penalties, LlamaSampler::greedy()], true);
        }
        LlamaSampler::chain(
            [
                penalties,
                LlamaSampler::top_k(TOP.0),
                LlamaSampler::top_p(TOP.1, 1),
                LlamaSampler::temp(request.temperature),
                LlamaSampler::dist(rand::random()),
            ],
            true,
        )
    }

    fn sample(&self, sampler: &mut LlamaSampler) -> Option<LlamaToken> {
        let logits = self.context.logits();
        let candidates =
            (0..).zip(logits).map(|(id, logit)| LlamaTokenData::new(LlamaToken(id), *logit, 0.0));
        let mut candidates = LlamaTokenDataArray::from_iter(candidates, false);
        sampler.apply(&mut candidates);
        let token = candidates.selected_token()?;
        sampler.accept(token);
        Some(token)
    }
}

fn failed(why: &str) -> ChatError {
    ChatError::Unavailable(format!("the embedded model failed ({why})"))
}

fn say(chat: &Chat, pieces: Vec<Piece>) {
    for piece in pieces {
        chat.send(Ok(match piece {
            Piece::Text(text) => ChatDelta::Text(text),
            Piece::Thinking(text) => ChatDelta::Thinking(text),
        }));
    }
}

/// Starts the thread.
///
/// # Errors
/// When the system gives no thread.
pub fn start(
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    config: Config,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new()
        .name("language-model".into())
        .spawn(move || run(&queue, &counters, config))
}
