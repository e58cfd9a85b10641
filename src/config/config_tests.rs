use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::config::settings::ListenMode;

fn file(text: &str) -> Sources {
    Sources { file: Some((PathBuf::from("config.toml"), text.into())), ..Sources::default() }
}

fn env(name: &str, value: &str) -> Sources {
    Sources { env: vec![(name.into(), value.into())], ..Sources::default() }
}

fn flag(set: &str) -> Sources {
    Sources { sets: vec![set.into()], ..Sources::default() }
}

fn refusal(sources: &Sources) -> String {
    resolve(sources).expect_err("must be refused").to_string()
}

#[test]
fn nothing_set_is_the_defaults() {
    let loaded = resolve(&Sources::default()).unwrap();
    assert_eq!(loaded, Loaded::default());
    assert_eq!(resolve(&file("")).unwrap(), loaded);
}

#[test]
fn a_value_in_a_file_has_its_line_and_column() {
    let loaded = resolve(&file("# mine\n[voice]\n  engine = \"kokoro\"\n")).unwrap();
    assert_eq!(loaded.settings.voice.engine, "kokoro");
    assert_eq!(loaded.origin("voice.engine").to_string(), "config.toml:3:12");
    assert_eq!(loaded.origin("voice.speed"), Origin::Default);
}

#[test]
fn text_values_are_read_as_what_the_setting_is() {
    let text = |sources: &Sources| resolve(sources).unwrap().settings;
    assert_eq!(text(&env("ALICE_VOICE__ENGINE", "kokoro")).voice.engine, "kokoro");
    assert_eq!(text(&env("ALICE_VOICE__ENGINE", "\"kokoro\"")).voice.engine, "kokoro");
    assert_eq!(text(&env("ALICE_EARS__MODE", "push-to-talk")).ears.mode, ListenMode::PushToTalk);
    assert_eq!(text(&flag("voice.volume=0")).voice.volume, 0.0);
    assert_eq!(text(&flag("persona.user_name=12")).persona.user_name, "12");
    assert_eq!(text(&flag("llm.fallback=groq, embedded")).llm.fallback, ["groq", "embedded"]);
    assert_eq!(text(&flag("llm.fallback=[\"groq\"]")).llm.fallback, ["groq"]);
    assert_eq!(text(&flag("persona.user_name=a=b")).persona.user_name, "a=b");
    let own = text(&flag("llm.providers.\"my.box\".base_url=http://10.0.0.2/v1"));
    assert_eq!(own.llm.providers["my.box"].base_url, "http://10.0.0.2/v1");
    let group = text(&flag("llm.providers.box={ base_url = \"http://box/v1\", model = \"m\" }"));
    assert_eq!(group.llm.providers["box"].model, "m");
    let known = text(&file("[llm.providers.ollama]\n[llm]\nmodel = \"ollama\""));
    assert!(known.llm.providers.contains_key("ollama"));
}

#[test]
fn variables_that_name_no_setting_are_left_alone() {
    let loaded = resolve(&env("ALICE_HOME", "/somewhere")).unwrap();
    assert_eq!(loaded, Loaded::default());
}

#[test]
fn an_unknown_key_is_a_warning_with_its_place_and_the_nearest_name() {
    let cases = [
        (
            file("[voice]\n\nengin = \"kokoro\""),
            "config.toml:3:9: unknown setting `voice.engin` is ignored; did you mean `voice.engine`?",
        ),
        (
            file("[vioce]\nengine = \"kokoro\"\nspeed = 1"),
            "unknown setting `vioce` is ignored; did you mean `voice`?",
        ),
        (file("kokoro_voice = 1"), "did you mean `voice.kokoro_voice`?"),
        (
            file("[llm.providers.groq]\napi_kye = \"secret\""),
            "did you mean `llm.providers.groq.api_key`?",
        ),
        (
            env("ALICE_EARS__SMARTTURN", "true"),
            "ALICE_EARS__SMARTTURN: unknown setting `ears.smartturn` is ignored; did you mean \
             `ears.smart_turn`?",
        ),
        (flag("nothing.like.it=1"), "--set: unknown setting `nothing` is ignored"),
    ];
    for (sources, expected) in cases {
        let loaded = resolve(&sources).unwrap();
        assert_eq!(loaded.settings, Settings::default());
        let [warning] = loaded.warnings.as_slice() else { panic!("{:?}", loaded.warnings) };
        assert!(warning.contains(expected), "{warning:?} lacks {expected:?}");
        assert!(!warning.contains("secret"), "{warning}");
    }
}

#[test]
fn what_cannot_be_used_stops_with_its_place_and_what_was_expected() {
    let cases = [
        (file("[voice]\nengine = \"kok"), "config.toml:2:", "malformed TOML"),
        (file("[voice]\nengine \"kokoro\""), "config.toml:2:8", "expected"),
        (file("[voice]\nengine = \"piper\"\nengine = \"kokoro\""), "config.toml:3:1", "duplicate"),
        (file("[voice]\nspeed = \"fast\""), "config.toml:2:9", "must be a number, but is text"),
        (file("[ears]\nenabled = 1"), "config.toml:2:11", "must be `true` or `false`"),
        (file("[voice]\nlook_ahead = -1"), "config.toml:2:14", "expected usize"),
        (file("[ears]\nmode = \"opne\""), "config.toml:2:8", "expected one of `open`"),
        (file("[llm]\nfallback = [\"groq\", 3]"), "config.toml:2:12", "expected a string"),
        (file("voice = 3"), "config.toml:1:9", "group of settings"),
        (file("[voice.engine]\nx = 1"), "config.toml:2:5", "unknown setting"),
        (flag("voice"), "--set", "not KEY=VALUE"),
        (flag("a b=c"), "--set", "not a key"),
        (env("ALICE_LOG__KEEP_DAYS", "many"), "ALICE_LOG__KEEP_DAYS", "must be a whole number"),
    ];
    for (sources, place, reason) in cases {
        if reason == "unknown setting" {
            assert!(resolve(&sources).unwrap().warnings[0].contains(place));
            continue;
        }
        let text = refusal(&sources);
        assert!(text.starts_with(place) && text.contains(reason), "{text:?}: {place}, {reason}");
    }
}

#[test]
fn values_out_of_range_are_refused_with_their_place() {
    let cases = [
        ("ears.threshold=1.5", "must be between 0 and 1, but is 1.5"),
        ("ears.threshold=nan", "must be between 0 and 1"),
        ("ears.release=0.9", "must not be above `ears.threshold` (0.5)"),
        ("ears.max_silence_ms=100", "must not be below `ears.silence_ms` (200)"),
        ("voice.volume=-0.1", "must be between 0 and 1"),
        ("voice.look_ahead=0", "must be between 1 and 16, but is 0"),
        ("voice.engine=festival", "must be one of `kokoro`, `piper`, but is `festival`"),
        ("voice.kokoro_voice=../../etc", "must be the name of a voice"),
        ("persona.prompt=../secret", "must be the name of a file"),
        ("server.listen=localhost", "must be an IP address and a port"),
        ("server.listen=127.0.0.1:99999", "must be an IP address and a port"),
        ("server.origins=*", "must hold origins"),
        ("llm.model=gpt", "must be one of `auto`, `embedded`"),
        ("llm.fallback=auto", "must be one of `embedded`"),
        ("llm.providers.own.model=m", "`llm.providers.own.base_url` must be set"),
        ("llm.providers.groq.base_url=groq", "must be an address that begins with http"),
        ("stt.engines=", "must name at least one engine"),
        ("stt.engines=whisper", "must be one of `moonshine`"),
        ("stt.language=English", "must be a language code"),
        ("log.level=alice=loud", "must be `error`"),
    ];
    for (set, reason) in cases {
        let text = refusal(&flag(set));
        assert!(text.contains(reason), "{text:?} lacks {reason:?}");
        // A value that is missing stands nowhere; the others are blamed on the flag.
        assert!(text.starts_with("--set") || reason.contains("must be set"), "{text}");
    }
}

#[test]
fn two_values_that_do_not_fit_are_blamed_on_the_one_that_was_set() {
    let text = refusal(&flag("ears.threshold=0.2"));
    assert_eq!(text, "--set: `ears.release` (0.35) must not be above `ears.threshold` (0.2)");
}

#[test]
fn all_problems_are_told_at_once() {
    let text = refusal(&file("[voice]\nspeed = true\nvolume = \"\"\n"));
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn secrets_are_never_shown() {
    let sources = file("[llm.providers.groq]\napi_key = \"tell-nobody\"\n[llm.providers.kimi]");
    let loaded = resolve(&sources).unwrap();
    let shown = format!("{:?}", loaded.entries());
    assert!(!shown.contains("tell-nobody"));
    let of = |key: &str| {
        loaded.entries().into_iter().find(|entry| entry.key == key).unwrap().value.to_string()
    };
    assert_eq!(of("llm.providers.groq.api_key"), "\"(set)\"");
    assert_eq!(of("llm.providers.kimi.api_key"), "\"\"");
    let refused = refusal(&file("[llm.providers.groq]\napi_key = [\"tell-nobody\"]"));
    assert!(!refused.contains("tell-nobody"), "{refused}");
}

#[test]
fn every_setting_is_shown_and_can_be_set_to_what_is_shown() {
    let defaults = Loaded::default();
    for Entry { key, value, .. } in defaults.entries() {
        let loaded = resolve(&flag(&format!("{key}={value}"))).unwrap();
        assert_eq!(loaded.settings, Settings::default(), "{key}");
        assert_eq!(loaded.origin(&key), Origin::Flag);
    }
    let single = defaults.entries().into_iter().find(|entry| entry.key == "ears.release").unwrap();
    assert_eq!(single.value.to_string(), "0.35");
}

/// The page for people has a row for each setting, with its default, and none for what is no setting.
#[test]
fn the_docs_name_every_setting_and_its_default() {
    let docs = include_str!("../../docs/configuration.md");
    let rows: Vec<_> = docs.lines().filter(|line| line.starts_with("| `")).collect();
    let mut wanted: Vec<_> = Loaded::default()
        .entries()
        .into_iter()
        .map(|Entry { key, value, .. }| format!("| `{key}` | `{value}` |"))
        .collect();
    for group in ["llm", "stt"] {
        let loaded = resolve(&flag(&format!("{group}.providers.x.base_url=http://x"))).unwrap();
        let own = loaded.entries().into_iter().filter(|entry| entry.key.contains(".providers.x."));
        wanted.extend(
            own.map(|entry| format!("| `{}` | `\"\"` |", entry.key.replace(".x.", ".<name>."))),
        );
    }
    for start in &wanted {
        assert!(rows.iter().any(|row| row.starts_with(start)), "no row begins with {start}");
    }
    assert_eq!(rows.len(), wanted.len(), "a row is about no setting");
}

#[test]
fn the_file_of_the_home_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    assert_eq!(load(&home, [], &[]).unwrap(), Loaded::default());
    std::fs::write(home.config_file(), "[log]\nlevel = \"debug\"\n").unwrap();
    let loaded = load(&home, [], &[]).unwrap();
    assert_eq!(loaded.settings.log.level, "debug");
    assert_eq!(
        loaded.origin("log.level").to_string(),
        format!("{}:2:9", home.config_file().display())
    );
    std::fs::write(home.config_file(), b"\xff").unwrap();
    assert!(load(&home, [], &[]).unwrap_err().to_string().contains("can't be read"));
}

proptest! {
    /// Whatever levels set a value, the highest of them wins, and says that it did.
    #[test]
    fn the_highest_level_wins(
        in_file in proptest::option::of(1u32..1000),
        in_env in proptest::option::of(1u32..1000),
        in_flag in proptest::option::of(1u32..1000),
    ) {
        let sources = Sources {
            file: in_file.map(|n| ("c".into(), format!("[llm]\nmax_tokens = {n}"))),
            env: in_env.map(|n| ("ALICE_LLM__MAX_TOKENS".into(), n.to_string())).into_iter().collect(),
            sets: in_flag.map(|n| format!("llm.max_tokens={n}")).into_iter().collect(),
        };
        let loaded = resolve(&sources).unwrap();
        let wanted = in_flag.or(in_env).or(in_file).unwrap_or(Settings::default().llm.max_tokens);
        prop_assert_eq!(loaded.settings.llm.max_tokens, wanted);
        let from = match loaded.origin("llm.max_tokens") {
            Origin::Flag => 3, Origin::Env { .. } => 2, Origin::File { .. } => 1, Origin::Default => 0,
        };
        let levels = [Some(0), in_file, in_env, in_flag];
        prop_assert_eq!(Some(from), levels.iter().rposition(Option::is_some));
        prop_assert_eq!(loaded.warnings, Vec::<String>::new());
    }

    /// No text, however broken, makes anything but settings or a line that says where.
    #[test]
    fn any_text_is_read_or_refused_with_its_place(text in "\\PC{0,60}(\n\\PC{0,20})?") {
        match resolve(&file(&text)) {
            Ok(_) => {}
            Err(error) => prop_assert!(error.to_string().starts_with("config.toml:"), "{}", error),
        }
    }
}
