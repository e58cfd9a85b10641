//! Which models are used, and why.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::chain::{Chain, Notify};
use super::openai::OpenAi;
use super::providers::{self, Provider};
use crate::config::settings::Llm;
use crate::config::{Home, Settings};
use crate::kernel::clock::SystemClock;
use crate::kernel::load::CoreLoad;
use crate::kernel::ports::ChatModel;

/// How long a server on this machine is waited for when nobody named it.
const PROBE: Duration = Duration::from_millis(300);

/// How long a server that was named is waited for.
const ASKED: Duration = Duration::from_secs(3);

/// What was chosen.
pub struct Chosen {
    /// The model to talk to. Always there: when none works, its replies are errors that say why.
    pub model: Arc<dyn ChatModel>,
    /// Which it is and why, one line.
    pub line: String,
    /// What was asked for in the settings and can't be had, a line each.
    pub problems: Vec<String>,
}

/// Chooses by the settings. `load` says when the voice needs the cores; `notify` gets what happens
/// later (see [`Chain`]).
pub async fn choose(settings: &Settings, home: &Home, load: CoreLoad, notify: Notify) -> Chosen {
    let env = |name: &str| std::env::var(name).ok();
    let choice = Choice {
        settings: &settings.llm,
        home,
        load,
        providers: providers::all(&settings.llm, &env),
        timeout: Duration::from_secs_f64(settings.llm.timeout_s.clamp(0.1, 3600.0)),
    };
    choice.choose(notify).await
}

struct Choice<'a> {
    settings: &'a Llm,
    home: &'a Home,
    load: CoreLoad,
    providers: Vec<Provider>,
    timeout: Duration,
}

/// A model that can be used, and why.
struct Usable {
    model: Arc<dyn ChatModel>,
    why: String,
}

impl Choice<'_> {
    async fn choose(&self, notify: Notify) -> Chosen {
        let mut usable = Vec::new();
        let mut problems = Vec::new();
        let mut take = |found: Result<Usable, String>| match found {
            Ok(model) => usable.push(model),
            Err(problem) => problems.push(problem),
        };
        let auto = self.settings.model == "auto";
        if auto {
            let only_first = !self.settings.fallback.is_empty();
            for found in self.auto(only_first).await {
                take(found);
            }
        } else {
            take(self.named(&self.settings.model).await);
        }
        for name in &self.settings.fallback {
            take(self.named(name).await);
        }
        let line = match usable.split_first() {
            Some((first, rest)) => {
                let then: Vec<String> =
                    rest.iter().map(|next| format!("`{}`", next.model.name())).collect();
                let then = match then.as_slice() {
                    [] => String::new(),
                    names => format!("; then {}", names.join(", ")),
                };
                format!("{} ({}){then}", first.model.name(), first.why)
            }
            None => format!("no language model: {}", problems.join("; ")),
        };
        let models: Vec<Arc<dyn ChatModel>> =
            usable.into_iter().map(|usable| usable.model).collect();
        let model: Arc<dyn ChatModel> = if models.is_empty() {
            Arc::new(super::none::NoModel::new(line.clone()))
        } else {
            Arc::new(Chain::new(models, Arc::new(SystemClock::default()), notify))
        };
        Chosen { model, line, problems }
    }

    /// The order of `auto`: keys, then servers on this machine that answer, then the embedded model.
    async fn auto(&self, only_first: bool) -> Vec<Result<Usable, String>> {
        let mut found = Vec::new();
        let enough =
            |found: &[Result<Usable, String>]| only_first && found.iter().any(Result::is_ok);
        for provider in self.providers.iter().filter(|provider| provider.key.is_some()) {
            if enough(&found) {
                return found;
            }
            found.push(self.server(provider, "its key is set", ASKED).await);
        }
        // All at once: each silent port costs the whole wait.
        let local = self
            .providers
            .iter()
            .filter(|provider| provider.key.is_none() && provider.is_configured());
        let probes = local.map(|provider| self.probe(provider));
        for server in futures_util::future::join_all(probes).await.into_iter().flatten() {
            if !enough(&found) {
                found.push(Ok(server));
            }
        }
        if !enough(&found) {
            let first = found.iter().all(Result::is_err);
            let embedded = self.embedded(first).await;
            found.push(embedded.map(|model| Usable {
                model,
                why: "no key is set and no server on this machine answers".into(),
            }));
        }
        found
    }

    async fn probe(&self, provider: &Provider) -> Option<Usable> {
        // A silent port is no problem: nobody asked for this server.
        let models = list(provider, PROBE).await.ok()?;
        let mut provider = provider.clone();
        provider.model = pick(&models, &provider.model)?;
        let model = Arc::new(OpenAi::new(provider, self.timeout).ok()?);
        Some(Usable { model, why: "it answers on this machine and no key is set".into() })
    }

    async fn named(&self, name: &str) -> Result<Usable, String> {
        let why = "set in `llm`";
        if name == "embedded" {
            let first = self.settings.model == name;
            let model = self.embedded(first).await?;
            return Ok(Usable { model, why: why.into() });
        }
        let provider = self.providers.iter().find(|provider| provider.name == name);
        let Some(provider) = provider else {
            let known = self.providers.iter().map(|provider| provider.name.as_str());
            let nearest = known
                .chain(["embedded", "auto"])
                .max_by(|a, b| strsim::jaro(a, name).total_cmp(&strsim::jaro(b, name)))
                .unwrap_or("auto");
            return Err(format!(
                "no language model `{name}` in `llm.providers` (did you mean `{nearest}`?)"
            ));
        };
        if !provider.is_configured() {
            return Err(format!(
                "`{name}` needs a key: set `{}`, or `llm.providers.{name}.api_key_env`",
                provider.key_env
            ));
        }
        self.server(provider, why, ASKED).await
    }

    async fn server(
        &self,
        provider: &Provider,
        why: &str,
        wait: Duration,
    ) -> Result<Usable, String> {
        let mut provider = provider.clone();
        if provider.model.is_empty() {
            let models = list(&provider, wait).await?;
            provider.model = pick(&models, "")
                .ok_or_else(|| format!("`{}` has no chat model", provider.name))?;
        }
        let model = OpenAi::new(provider, self.timeout).map_err(|error| format!("{error:#}"))?;
        Ok(Usable { model: Arc::new(model), why: why.into() })
    }

    /// The embedded model. As the first choice it is loaded here, so that its faults are told at the
    /// start; as a fallback it takes no memory before it is needed.
    #[cfg(feature = "local-llm")]
    async fn embedded(&self, first: bool) -> Result<Arc<dyn ChatModel>, String> {
        let (home, settings, load) = (self.home.clone(), self.settings.clone(), self.load.clone());
        // Weights that are new are hashed: half a second of work.
        let open = move || super::embedded::Embedded::open(&home, &settings, load);
        let opened = tokio::task::spawn_blocking(open).await;
        let embedded = opened.map_err(|_| "opening the embedded model crashed".to_owned())??;
        if first {
            embedded.load().await?;
        }
        Ok(Arc::new(embedded))
    }

    #[cfg(not(feature = "local-llm"))]
    async fn embedded(&self, _first: bool) -> Result<Arc<dyn ChatModel>, String> {
        let _ = (self.home, &self.load);
        Err("this Alice was built without the embedded model (feature `local-llm`)".into())
    }
}

/// The models that a server has.
async fn list(provider: &Provider, wait: Duration) -> Result<Vec<String>, String> {
    let name = &provider.name;
    let silent = || format!("`{name}` does not answer at {}: is it running?", provider.base_url);
    let client = provider.client(wait).map_err(|error| error.to_string())?;
    let mut request = client.get(format!("{}/models", provider.base_url)).timeout(wait);
    if let Some(key) = &provider.key {
        request = request.bearer_auth(key);
    }
    let response = request.send().await.map_err(|_| silent())?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!("`{name}` does not list its models ({})", status.as_u16()));
    }
    let body: Value = response.json().await.map_err(|_| silent())?;
    let data = body.get("data").and_then(Value::as_array).ok_or_else(silent)?;
    let id = |model: &Value| model.get("id").and_then(Value::as_str).map(str::to_owned);
    Ok(data.iter().filter_map(id).collect())
}

/// The model to use of those that a server has: the wanted one, else the first that chats.
fn pick(models: &[String], wanted: &str) -> Option<String> {
    if !wanted.is_empty() {
        // The server may have it under a longer name (`qwen3` as `qwen3:latest`), and it knows best
        // what it does not have.
        return Some(wanted.to_owned());
    }
    let other = ["embed", "bge", "minilm", "rerank", "whisper", "tts", "clip", "ocr"];
    models
        .iter()
        .find(|model| {
            let name = model.to_lowercase();
            !other.iter().any(|kind| name.contains(kind))
        })
        .cloned()
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
