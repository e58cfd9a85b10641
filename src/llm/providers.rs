//! The servers that are known by name (`providers.toml`), joined with the settings.

use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::settings::{Llm, LlmProvider};
use crate::kernel::http;

/// What a server wants to see in a request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Quirks {
    /// The field that limits the reply.
    #[serde(default)]
    pub tokens: TokensField,
    /// Fields that must not be sent.
    #[serde(default)]
    pub fixed: Vec<String>,
    /// Fields that are added.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

/// The name of the reply's limit: OpenAI renamed it, and most compatible servers know only the old
/// name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokensField {
    /// `max_tokens`.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

#[derive(Debug, Deserialize)]
struct Catalogue {
    provider: Vec<Known>,
}

/// One entry of the catalogue.
#[derive(Clone, Debug, Deserialize)]
struct Known {
    name: String,
    base_url: String,
    #[serde(default)]
    key_env: String,
    #[serde(default)]
    model: String,
    #[serde(flatten)]
    quirks: Quirks,
}

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    // The file is part of the programme and a test reads it, so an error is not reached; without
    // the catalogue only the settings' own providers are there.
    toml::from_str::<Catalogue>(include_str!("providers.toml"))
        .map(|catalogue| catalogue.provider)
        .unwrap_or_default()
});

/// A server that can be asked.
#[derive(Clone, PartialEq)]
pub struct Provider {
    /// Its name in the settings or the catalogue.
    pub name: String,
    /// Address without `/chat/completions` and without a slash at the end.
    pub base_url: String,
    /// The model's name there; empty: ask the server for its list.
    pub model: String,
    /// The key, where one is set.
    pub key: Option<String>,
    /// Where the key comes from, or would: the variable's name, or empty.
    pub key_env: String,
    /// What it wants to see.
    pub quirks: Quirks,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider")
            .field("name", &self.name)
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("key", &self.key.as_ref().map(|_| "set"))
            .finish_non_exhaustive()
    }
}

impl Provider {
    /// Whether it runs on this machine, so that asking it costs nothing.
    pub fn is_local(&self) -> bool {
        reqwest::Url::parse(&self.base_url).is_ok_and(|url| http::is_local(&url))
    }

    /// A client for requests to it.
    ///
    /// # Errors
    /// As [`http::client`].
    pub fn client(&self, timeout: Duration) -> reqwest::Result<reqwest::Client> {
        http::client(reqwest::Url::parse(&self.base_url).ok().as_ref(), timeout)
    }

    /// Whether it can be asked without more settings: it has a key, or needs none.
    pub fn is_configured(&self) -> bool {
        !self.base_url.is_empty() && (self.key.is_some() || self.key_env.is_empty())
    }
}

/// Every provider: those of the settings that the catalogue does not know, in the order of their
/// names, then the catalogue's. `env` reads a variable.
pub fn all(settings: &Llm, env: &dyn Fn(&str) -> Option<String>) -> Vec<Provider> {
    let own = settings
        .providers
        .iter()
        .filter(|(name, _)| !KNOWN.iter().any(|known| known.name == **name))
        .map(|(name, own)| join(name, None, Some(own), env));
    let known = KNOWN
        .iter()
        .map(|known| join(&known.name, Some(known), settings.providers.get(&known.name), env));
    own.chain(known).collect()
}

fn join(
    name: &str,
    known: Option<&Known>,
    own: Option<&LlmProvider>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Provider {
    let pick = |own: Option<&String>, known: Option<&String>| -> String {
        own.filter(|value| !value.is_empty()).or(known).cloned().unwrap_or_default()
    };
    let key_env = pick(own.map(|own| &own.api_key_env), known.map(|known| &known.key_env));
    let filled = |value: &String| !value.trim().is_empty();
    let key = (!key_env.is_empty())
        .then(|| env(&key_env))
        .flatten()
        .filter(filled)
        .or_else(|| own.map(|own| own.api_key.clone()).filter(filled))
        .map(|key| key.trim().to_owned());
    let base_url = pick(own.map(|own| &own.base_url), known.map(|known| &known.base_url));
    Provider {
        name: name.to_owned(),
        base_url: base_url.trim().trim_end_matches('/').to_owned(),
        model: pick(own.map(|own| &own.model), known.map(|known| &known.model)),
        key,
        key_env,
        quirks: known.map(|known| known.quirks.clone()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        (name == "GROQ_API_KEY" || name == "MINE").then(|| format!("key of {name}"))
    }

    fn named(name: &str, settings: &Llm) -> Provider {
        all(settings, &env).into_iter().find(|provider| provider.name == name).unwrap()
    }

    #[test]
    fn the_catalogue_is_whole() {
        let known = all(&Llm::default(), &|_| None);
        let names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
        let order =
            ["openai", "deepseek", "kimi", "dashscope", "groq", "ollama", "lmstudio", "llamacpp"];
        assert_eq!(names, order);
        for provider in &known {
            assert_eq!(provider.is_local(), provider.key_env.is_empty(), "{provider:?}");
            assert_eq!(provider.model.is_empty(), provider.is_local(), "{provider:?}");
            assert_eq!(provider.is_configured(), provider.is_local(), "{provider:?}");
        }
    }

    #[test]
    fn settings_win_over_the_catalogue_and_the_environment_over_a_written_key() {
        let mut settings = Llm::default();
        let groq = LlmProvider { model: "small".into(), api_key: "k".into(), ..Default::default() };
        settings.providers.insert("groq".into(), groq);
        let groq = named("groq", &settings);
        assert_eq!(groq.model, "small");
        assert_eq!(groq.base_url, "https://api.groq.com/openai/v1");
        assert_eq!(groq.key.as_deref(), Some("key of GROQ_API_KEY"));
        let kimi = LlmProvider { api_key: " k ".into(), ..Default::default() };
        settings.providers.insert("kimi".into(), kimi);
        assert_eq!(named("kimi", &settings).key.as_deref(), Some("k"));
    }

    #[test]
    fn a_server_of_ones_own_comes_first_and_needs_no_key() {
        let mut settings = Llm::default();
        let own = LlmProvider {
            base_url: "http://127.0.0.1:9000/v1/".into(),
            model: "m".into(),
            ..Default::default()
        };
        settings.providers.insert("zoo".into(), own.clone());
        assert_eq!(all(&settings, &env)[0].name, "zoo");
        let zoo = named("zoo", &settings);
        assert_eq!(zoo.base_url, "http://127.0.0.1:9000/v1");
        assert!(zoo.is_configured() && zoo.is_local());
        settings
            .providers
            .insert("zoo".into(), LlmProvider { api_key_env: "MISSING".into(), ..own });
        assert!(!named("zoo", &settings).is_configured());
    }

    #[test]
    fn a_key_is_not_printed() {
        let provider = named("groq", &Llm::default());
        assert!(!format!("{provider:?}").contains("key of"));
    }
}
