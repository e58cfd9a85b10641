use tokio_util::sync::CancellationToken;

use super::*;
use crate::bench::fake_llm::{Act, FakeLlm, Pace};
use crate::config::settings::LlmProvider;
use crate::kernel::ports::{ChatDelta, ChatError, ChatRequest};

/// A home without weights, so that the embedded model is missing.
struct Place {
    _folder: tempfile::TempDir,
    home: Home,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    Place { _folder: folder, home }
}

fn settings(model: &str) -> Llm {
    // A name that no folder of weights has, wherever they are.
    Llm { model: model.into(), embedded_model: "no-such-weights".into(), ..Llm::default() }
}

fn with(mut settings: Llm, name: &str, base_url: &str, model: &str, key: &str) -> Llm {
    let provider = LlmProvider {
        base_url: base_url.into(),
        model: model.into(),
        api_key: key.into(),
        ..LlmProvider::default()
    };
    settings.providers.insert(name.into(), provider);
    settings
}

/// Chooses among the settings' own providers alone: the catalogue's may answer on this machine.
async fn chosen(settings: &Llm) -> Chosen {
    let place = place();
    let own = |provider: &Provider| settings.providers.contains_key(&provider.name);
    let choice = Choice {
        settings,
        home: &place.home,
        load: CoreLoad::default(),
        providers: providers::all(settings, &|_| None).into_iter().filter(own).collect(),
        timeout: Duration::from_secs(1),
    };
    choice.choose(Arc::new(|_| {})).await
}

async fn say(chosen: &Chosen) -> Result<String, ChatError> {
    let request = ChatRequest { messages: vec![], max_tokens: 9, temperature: 0.0 };
    let mut stream = chosen.model.chat(request, CancellationToken::new());
    let mut text = String::new();
    while let Some(delta) = stream.recv().await {
        if let ChatDelta::Text(more) = delta? {
            text += &more;
        }
    }
    Ok(text)
}

async fn server(text: &str) -> FakeLlm {
    FakeLlm::start(Pace::INSTANT, [Act::Reply(text.into())]).await.unwrap()
}

/// An address at which nothing listens.
async fn nowhere() -> String {
    server("").await.base_url()
}

const MISSING: &str = "weights of `no-such-weights` are missing (`*.gguf`): run `alice models pull \
                       no-such-weights`";

#[tokio::test]
async fn auto_takes_a_key_then_a_server_that_answers() {
    let (paid, local) = (server("paid").await, server("local").await);
    let dead = nowhere().await;
    let settings = with(settings("auto"), "a-local", &local.base_url(), "", "");
    let settings = with(settings, "b-dead", &dead, "", "");
    let chosen = self::chosen(&settings).await;
    assert_eq!(chosen.line, "a-local: fake (it answers on this machine and no key is set)");
    assert_eq!(chosen.model.name(), "a-local: fake");
    assert_eq!(say(&chosen).await, Ok("local".into()));
    assert_eq!(chosen.problems, [MISSING]);

    let settings = with(settings, "c-paid", &paid.base_url(), "big", "k");
    let chosen = self::chosen(&settings).await;
    assert_eq!(chosen.line, "c-paid: big (its key is set); then `a-local: fake`");
    assert_eq!(say(&chosen).await, Ok("paid".into()));
}

#[tokio::test]
async fn a_named_model_is_followed_by_the_named_fallbacks_alone() {
    let (first, second) = (server("first").await, server("second").await);
    let mut settings = with(settings("zoo"), "zoo", &first.base_url(), "m", "k");
    settings = with(settings, "other", &second.base_url(), "n", "");
    settings = with(settings, "unused", &second.base_url(), "o", "");
    let chosen = self::chosen(&settings).await;
    assert_eq!(chosen.line, "zoo: m (set in `llm`)");
    settings.fallback = vec!["embedded".into(), "other".into()];
    let chosen = self::chosen(&settings).await;
    assert_eq!(chosen.line, "zoo: m (set in `llm`); then `other: n`");
    assert_eq!(chosen.problems, [MISSING]);
    drop(first);
    assert_eq!(say(&chosen).await, Ok("second".into()));
    assert_eq!(chosen.model.name(), "other: n");
}

#[tokio::test]
async fn what_can_not_be_had_is_told_and_alice_starts_all_the_same() {
    let dead = nowhere().await;
    let unlisted = with(settings("zoo"), "zoo", &dead, "", "");
    let mut keyless = with(settings("zoo"), "zoo", &dead, "m", "");
    keyless.providers.get_mut("zoo").unwrap().api_key_env = "ZOO_KEY".into();
    let silent = format!("`zoo` does not answer at {dead}: is it running?");
    for (settings, problem) in [
        (settings("embedded"), MISSING),
        (settings("auto"), MISSING),
        (
            with(settings("zo"), "zoo", &dead, "m", ""),
            "no language model `zo` in `llm.providers` (did you mean `zoo`?)",
        ),
        (unlisted, silent.as_str()),
        (keyless, "`zoo` needs a key: set `ZOO_KEY`, or `llm.providers.zoo.api_key_env`"),
        (
            with(settings("zoo"), "zoo", "localhost", "m", ""),
            "`llm.providers.zoo.base_url` is not a web address",
        ),
    ] {
        let chosen = chosen(&settings).await;
        let line = format!("no language model: {problem}");
        assert_eq!(chosen.line, line);
        assert_eq!(chosen.problems, [problem]);
        assert_eq!(chosen.model.name(), "none");
        assert_eq!(say(&chosen).await, Err(ChatError::Unavailable(line)));
    }
}

#[test]
fn a_model_that_chats_is_picked() {
    let models = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let many = models(&["text-embedding-nomic", "Whisper-large", "qwen3:4b", "llama3"]);
    assert_eq!(pick(&many, "").as_deref(), Some("qwen3:4b"));
    assert_eq!(pick(&many, "llama3").as_deref(), Some("llama3"));
    assert_eq!(pick(&models(&["bge-m3"]), ""), None);
}
