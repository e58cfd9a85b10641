//! Which values make sense.

use std::net::SocketAddr;

use super::settings::Settings;

/// Language servers whose address is built in.
const KNOWN_SERVERS: [&str; 8] =
    ["openai", "deepseek", "kimi", "dashscope", "groq", "ollama", "lmstudio", "llamacpp"];

/// A value that makes no sense.
pub(super) struct Finding {
    /// Its key.
    pub key: String,
    /// The key of another value that it does not fit, which may be the one that was set.
    pub other: Option<&'static str>,
    /// The rest of a sentence that begins with the key.
    pub text: String,
}

/// Every value that makes no sense.
pub(super) fn check(settings: &Settings) -> Vec<Finding> {
    let mut checks = Checks::default();
    llm(settings, &mut checks);
    stt(settings, &mut checks);
    ears(settings, &mut checks);
    voice(settings, &mut checks);
    others(settings, &mut checks);
    checks.0
}

#[derive(Default)]
struct Checks(Vec<Finding>);

impl Checks {
    fn say(&mut self, key: impl Into<String>, text: impl Into<String>) {
        self.0.push(Finding { key: key.into(), other: None, text: text.into() });
    }

    fn say_of_two(&mut self, key: &str, other: &'static str, text: String) {
        self.0.push(Finding { key: key.into(), other: Some(other), text });
    }

    fn within<T>(&mut self, key: &str, value: T, low: T, high: T)
    where
        T: PartialOrd + std::fmt::Display,
    {
        // Written so that NaN is refused.
        if !(value >= low && value <= high) {
            self.say(key, format!("must be between {low} and {high}, but is {value}"));
        }
    }

    fn url(&mut self, key: &str, url: &str) {
        let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        if !url.is_empty() && host.is_none_or(|host| host.is_empty() || host.starts_with('/')) {
            self.say(key, "must be an address that begins with http:// or https://");
        }
    }

    fn one_of<'a>(&mut self, key: &str, value: &str, names: impl Iterator<Item = &'a str>) {
        let names: Vec<_> = names.collect();
        if !names.contains(&value) {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            self.say(key, format!("must be one of {}, but is `{value}`", names.join(", ")));
        }
    }
}

fn llm(settings: &Settings, checks: &mut Checks) {
    let llm = &settings.llm;
    let names = || {
        let own = llm.providers.keys().map(String::as_str);
        let known = KNOWN_SERVERS.into_iter().filter(|name| !llm.providers.contains_key(*name));
        ["embedded"].into_iter().chain(own).chain(known)
    };
    checks.one_of("llm.model", &llm.model, ["auto"].into_iter().chain(names()));
    for name in &llm.fallback {
        checks.one_of("llm.fallback", name, names());
    }
    for (name, provider) in &llm.providers {
        let key = super::layers::key_text(&["llm".into(), "providers".into(), name.clone()]);
        if provider.base_url.is_empty() && !KNOWN_SERVERS.contains(&name.as_str()) {
            let text = "must be set: no address is built in for this name";
            checks.say(format!("{key}.base_url"), text);
        }
        checks.url(&format!("{key}.base_url"), &provider.base_url);
    }
    checks.within("llm.max_tokens", llm.max_tokens, 1, 100_000);
    checks.within("llm.temperature", llm.temperature, 0.0, 2.0);
    checks.within("llm.timeout_s", llm.timeout_s, 0.1, 3_600.0);
    checks.within("llm.threads", llm.threads, 0, 1_024);
    checks.within("llm.context", llm.context, 512, 1_048_576);
    if !is_name(&llm.embedded_model) && !llm.embedded_model.ends_with(".gguf") {
        let text = "must be a name that `alice models list` shows, or the path of a .gguf file";
        checks.say("llm.embedded_model", text);
    }
}

fn stt(settings: &Settings, checks: &mut Checks) {
    let stt = &settings.stt;
    if stt.engines.is_empty() {
        checks.say("stt.engines", "must name at least one engine, such as `moonshine`");
    }
    for name in &stt.engines {
        let names = ["moonshine"].into_iter().chain(stt.providers.keys().map(String::as_str));
        checks.one_of("stt.engines", name, names);
    }
    for (name, provider) in &stt.providers {
        let key = super::layers::key_text(&["stt".into(), "providers".into(), name.clone()]);
        if provider.base_url.is_empty() {
            checks.say(format!("{key}.base_url"), "must be set");
        }
        checks.url(&format!("{key}.base_url"), &provider.base_url);
    }
    let letters = stt.language.bytes().all(|b| b.is_ascii_lowercase());
    if !letters || stt.language.len() > 3 || stt.language.len() == 1 {
        checks.say("stt.language", "must be a language code such as `en`, or empty");
    }
    checks.within("stt.timeout_s", stt.timeout_s, 0.1, 3_600.0);
}

fn ears(settings: &Settings, checks: &mut Checks) {
    let ears = &settings.ears;
    checks.within("ears.threshold", ears.threshold, 0.0, 1.0);
    checks.within("ears.release", ears.release, 0.0, 1.0);
    if ears.release > ears.threshold {
        let text =
            format!("({}) must not be above `ears.threshold` ({})", ears.release, ears.threshold);
        checks.say_of_two("ears.release", "ears.threshold", text);
    }
    checks.within("ears.pre_roll_ms", ears.pre_roll_ms, 0, 5_000);
    checks.within("ears.silence_ms", ears.silence_ms, 32, 10_000);
    checks.within("ears.max_silence_ms", ears.max_silence_ms, 32, 60_000);
    if ears.max_silence_ms < ears.silence_ms {
        let text = format!(
            "({}) must not be below `ears.silence_ms` ({})",
            ears.max_silence_ms, ears.silence_ms
        );
        checks.say_of_two("ears.max_silence_ms", "ears.silence_ms", text);
    }
    checks.within("ears.max_turn_s", ears.max_turn_s, 1, 600);
    checks.within("ears.min_speech_ms", ears.min_speech_ms, 0, 5_000);
}

fn voice(settings: &Settings, checks: &mut Checks) {
    let voice = &settings.voice;
    checks.one_of("voice.engine", &voice.engine, ["kokoro", "piper"].into_iter());
    if !is_kokoro_voice(&voice.kokoro_voice) {
        checks.say("voice.kokoro_voice", "must be the name of a voice such as `af_heart`");
    }
    checks.within("voice.speed", voice.speed, 0.5, 2.0);
    checks.within("voice.volume", voice.volume, 0.0, 1.0);
    checks.within("voice.look_ahead", voice.look_ahead, 1, 16);
    checks.within("voice.threads", voice.threads, 0, 1_024);
}

fn others(settings: &Settings, checks: &mut Checks) {
    if settings.persona.name.trim().is_empty() {
        checks.say("persona.name", "must not be empty");
    }
    if !is_name(&settings.persona.prompt) {
        checks.say("persona.prompt", "must be the name of a file in prompts/ without its ending");
    }
    let server = &settings.server;
    if server.listen.parse::<SocketAddr>().is_err() {
        checks.say(
            "server.listen",
            format!(
                "must be an IP address and a port such as `127.0.0.1:7878`, but is `{}`",
                server.listen
            ),
        );
    }
    for origin in &server.origins {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if host.is_none_or(|host| host.is_empty() || host.contains(['/', '?', '#', '*', ' '])) {
            let text = format!("must hold origins such as `https://alice.example`, not `{origin}`");
            checks.say("server.origins", text);
        }
    }
    checks.within("server.max_viewers", server.max_viewers, 1, 100_000);
    if tracing_subscriber::EnvFilter::try_new(&settings.log.level).is_err() {
        checks.say(
            "log.level",
            "must be `error`, `warn`, `info`, `debug`, `trace`, or a filter such as \
             `alice=debug,info`",
        );
    }
    checks.within("log.keep_days", settings.log.keep_days, 1, 3_650);
}

/// A name that is safe as part of a path.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('.')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// A language letter, `f` or `m`, `_` and a name.
fn is_kokoro_voice(text: &str) -> bool {
    let Some((kind, name)) = text.split_once('_') else { return false };
    let mut kind = kind.chars();
    kind.next().is_some_and(|language| "abzjefhip".contains(language))
        && kind.next().is_some_and(|gender| "fm".contains(gender))
        && kind.next().is_none()
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_lowercase())
}
