//! Everything that can be set, with its default. The TOML keys are the field names.
//!
//! Every struct takes missing keys from its default, so a settings file names only what differs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Language models.
    pub llm: Llm,
    /// Speech recognition.
    pub stt: Stt,
    /// Microphone, voice activity, turns and barge-in.
    pub ears: Ears,
    /// Speech synthesis and playback.
    pub voice: Voice,
    /// Who Alice is.
    pub persona: Persona,
    /// The local server.
    pub server: Server,
    /// Logs.
    pub log: Log,
}

/// Language models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Llm {
    /// `auto` (a configured key, then a local server that answers, then the embedded model),
    /// `embedded`, or the name of a table in `llm.providers`.
    pub model: String,
    /// Tried in this order when the chosen one has no quota or is down; names as in `model`. With
    /// `auto` the rest of its order is used when this is empty.
    pub fallback: Vec<String>,
    /// OpenAI-compatible servers, by a name of your own. `openai`, `deepseek`, `kimi`, `dashscope`,
    /// `groq`, `ollama`, `lmstudio` and `llamacpp` have their address built in.
    pub providers: BTreeMap<String, LlmProvider>,
    /// Most tokens of a reply.
    pub max_tokens: u32,
    /// 0 is deterministic, 1 is lively.
    pub temperature: f32,
    /// Seconds without a byte after which a model counts as hung.
    pub timeout_s: f64,
    /// Model of the manifest that runs embedded.
    pub embedded_model: String,
    /// Threads of the embedded model; 0: as many as there are cores, less what the voice uses.
    pub threads: usize,
    /// Tokens of context of the embedded model.
    pub context: u32,
}

impl Default for Llm {
    fn default() -> Self {
        Self {
            model: "auto".into(),
            fallback: Vec::new(),
            providers: BTreeMap::new(),
            max_tokens: 400,
            temperature: 0.7,
            timeout_s: 20.0,
            embedded_model: "qwen2.5-coder-0.5b".into(),
            threads: 0,
            context: 4096,
        }
    }
}

/// One OpenAI-compatible server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LlmProvider {
    /// Address up to and without `/chat/completions`, such as `http://127.0.0.1:11434/v1`.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// Environment variable that holds the key; preferred to `api_key`.
    pub api_key_env: String,
    /// The key itself.
    pub api_key: String,
}

/// Speech recognition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stt {
    /// `moonshine` (embedded, English) or the name of a table in `stt.providers`; the rest of the
    /// list is tried in order when one fails.
    pub engines: Vec<String>,
    /// OpenAI-compatible transcription servers, by a name of your own.
    pub providers: BTreeMap<String, SttProvider>,
    /// Language of the speech (ISO 639-1), or empty to let the engine find out.
    pub language: String,
    /// Seconds after which a transcription is given up.
    pub timeout_s: f64,
}

impl Default for Stt {
    fn default() -> Self {
        Self {
            engines: vec!["moonshine".into()],
            providers: BTreeMap::new(),
            language: "en".into(),
            timeout_s: 10.0,
        }
    }
}

/// One OpenAI-compatible transcription server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SttProvider {
    /// Address up to and without `/audio/transcriptions`.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// Environment variable that holds the key; preferred to `api_key`.
    pub api_key_env: String,
    /// The key itself.
    pub api_key: String,
}

/// How Alice knows that she is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListenMode {
    /// Always, also while she speaks: speaking over her interrupts her.
    #[default]
    Open,
    /// Always, but not while she speaks.
    HalfDuplex,
    /// Only while a key or button is pressed.
    PushToTalk,
}

/// How long a silence ends a turn where the end-of-turn model is not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Patience {
    /// 500 ms.
    Fast,
    /// 700 ms.
    #[default]
    Normal,
    /// 1200 ms.
    Patient,
}

/// Microphone, voice activity, turns and barge-in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ears {
    /// Use a microphone at all.
    pub enabled: bool,
    /// `default` or (part of) the name of a device.
    pub device: String,
    /// How Alice knows that she is spoken to.
    pub mode: ListenMode,
    /// Speech probability at which speech begins.
    pub threshold: f32,
    /// Speech probability below which it ends.
    pub release: f32,
    /// Audio kept from before the start, ms.
    pub pre_roll_ms: u32,
    /// Use the end-of-turn model.
    pub smart_turn: bool,
    /// Silence after which the end-of-turn model is asked, ms.
    pub silence_ms: u32,
    /// Silence that ends a turn whatever the model says, ms.
    pub max_silence_ms: u32,
    /// The silence wait without the model.
    pub patience: Patience,
    /// Longest turn, s.
    pub max_turn_s: u32,
    /// Speech shorter than this is not a turn, ms.
    pub min_speech_ms: u32,
    /// Begin the answer during the silence wait.
    pub speculate: bool,
    /// Cancel the echo of the local speaker.
    pub echo_cancel: bool,
    /// Let the user interrupt by speaking.
    pub barge_in: bool,
}

impl Default for Ears {
    fn default() -> Self {
        Self {
            enabled: true,
            device: "default".into(),
            mode: ListenMode::Open,
            threshold: 0.5,
            release: 0.35,
            pre_roll_ms: 500,
            smart_turn: true,
            silence_ms: 200,
            max_silence_ms: 2500,
            patience: Patience::Normal,
            max_turn_s: 60,
            min_speech_ms: 96,
            speculate: true,
            echo_cancel: true,
            barge_in: true,
        }
    }
}

/// Speech synthesis and playback.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Voice {
    /// Speak at all.
    pub enabled: bool,
    /// `kokoro` (warmer) or `piper` (quicker); the other one stands in when the first fails.
    pub engine: String,
    /// Kokoro voice, such as `af_heart`; its first letter is its language.
    pub kokoro_voice: String,
    /// 1 is the voice's own speed.
    pub speed: f32,
    /// Loudness, 0–1.
    pub volume: f32,
    /// `default` or (part of) the name of an output device; `none`: no local sound.
    pub device: String,
    /// Segments that are synthesised ahead of the playing one.
    pub look_ahead: usize,
    /// Threads of the synthesis engines; 0: all cores.
    pub threads: usize,
}

impl Default for Voice {
    fn default() -> Self {
        Self {
            enabled: true,
            engine: "piper".into(),
            kokoro_voice: "af_heart".into(),
            speed: 1.0,
            volume: 1.0,
            device: "default".into(),
            look_ahead: 2,
            threads: 0,
        }
    }
}

/// Who Alice is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Persona {
    /// Her name.
    pub name: String,
    /// What she calls the user; empty: nothing.
    pub user_name: String,
    /// Her prompt: a file of `prompts/` without its ending.
    pub prompt: String,
}

impl Default for Persona {
    fn default() -> Self {
        Self { name: "Alice".into(), user_name: String::new(), prompt: "alice".into() }
    }
}

/// The local server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Server {
    /// Address to listen on. Anything but loopback needs the token from every client.
    pub listen: String,
    /// Web origins (such as `https://alice.example`) that may use the server beside its own.
    pub origins: Vec<String>,
    /// Most viewers at once.
    pub max_viewers: usize,
}

impl Default for Server {
    fn default() -> Self {
        Self { listen: "127.0.0.1:7878".into(), origins: Vec::new(), max_viewers: 1_000 }
    }
}

/// Logs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Log {
    /// `error`, `warn`, `info`, `debug`, `trace`, or a filter such as `alice=debug,info`.
    pub level: String,
    /// Write what was said and prompted into the logs. Off unless you turn it on.
    pub content: bool,
    /// Days that log files are kept.
    pub keep_days: u32,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".into(), content: false, keep_days: 7 }
    }
}
