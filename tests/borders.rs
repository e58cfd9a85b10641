//! The borders between the rooms: which room may name which in its code.
//!
//! Rooms talk through the contracts of the kernel, or through traits that `app` injects. This test
//! reads the source, so that a border is not crossed by a `use` that nobody notices.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What each room may import beside itself. `app`, `bench`, `cli` and `main` put the house together and may
/// import everything.
const ALLOWED: [(&str, &[&str]); 14] = [
    ("kernel", &[]),
    ("config", &[]),
    ("logging", &["config"]),
    ("lock", &["config"]),
    ("models", &["config"]),
    ("onnx", &["config", "models"]),
    ("ears", &["kernel", "config", "logging", "models", "onnx"]),
    ("voice", &["kernel", "config", "logging", "models", "onnx"]),
    ("llm", &["kernel", "config", "logging", "models"]),
    ("mind", &["kernel", "config", "logging"]),
    ("persona", &["kernel", "config", "logging"]),
    ("face", &["kernel", "config", "logging"]),
    ("store", &["kernel", "config", "logging"]),
    ("server", &["kernel", "config", "logging"]),
];

const FREE: [&str; 5] = ["app", "bench", "cli", "main", "lib"];

/// Tests may use these too.
const FOR_TESTS: [&str; 2] = ["testing", "bench"];

#[test]
fn no_room_imports_another() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut crossed = Vec::new();
    let mut rooms = BTreeSet::new();
    for file in rust_files(&root) {
        let inside = file.strip_prefix(&root).unwrap();
        let Some(room) = room_of(inside) else { continue };
        rooms.insert(room.clone());
        if FREE.contains(&room.as_str()) || FOR_TESTS[0] == room {
            continue;
        }
        let allowed = ALLOWED
            .iter()
            .find(|(name, _)| *name == room)
            .unwrap_or_else(|| panic!("`{room}` is a new room: say what it may import"))
            .1;
        let text = std::fs::read_to_string(&file).unwrap();
        let (code, tests) = if inside.to_string_lossy().ends_with("_tests.rs") {
            (String::new(), text)
        } else {
            without_tests(&text)
        };
        let depth = inside.components().count();
        for (text, extra) in [(code, &[][..]), (tests, &FOR_TESTS[..])] {
            for (line, named) in imports(&text, depth) {
                let fine = named == room
                    || allowed.contains(&named.as_str())
                    || extra.contains(&named.as_str());
                if !fine {
                    crossed
                        .push(format!("{}: `{room}` imports `{named}`: {line}", inside.display()));
                }
            }
        }
    }
    assert!(crossed.is_empty(), "borders crossed:\n{}", crossed.join("\n"));
    for (room, _) in ALLOWED {
        assert!(rooms.contains(room), "`{room}` is no room any more");
    }
}

/// The check itself: it sees every way of naming a room.
#[test]
fn imports_are_seen() {
    let names = |text: &str, depth| -> Vec<String> {
        imports(text, depth).into_iter().map(|(_, named)| named).collect()
    };
    assert_eq!(names("use crate::ears::Vad;", 2), ["ears"]);
    assert_eq!(
        names("use crate::{ears::{Vad, Stt}, voice, llm as model};", 2),
        ["ears", "voice", "llm"]
    );
    assert_eq!(names("use crate::{\n    ears::Vad,\n    mind,\n};", 2), ["ears", "mind"]);
    assert_eq!(names("let x = crate::mind::Turn::new();", 2), ["mind"]);
    assert_eq!(names("pub(crate) fn f() {}", 2), [""; 0]);
    assert_eq!(names("// as crate::mind does\n/// [`crate::mind`]\n//! crate::mind", 2), [""; 0]);
    assert_eq!(names("use super::mind::Turn;", 1), ["mind"]);
    assert_eq!(names("use super::super::mind::Turn;", 2), ["mind"]);
    assert_eq!(names("use super::turn::Turn;", 2), [""; 0]);
    let (code, tests) = without_tests("use a;\n#[cfg(test)]\nmod tests {\n use crate::mind;\n}\n");
    assert_eq!((code.as_str(), names(&tests, 2)), ("use a;\n", vec!["mind".to_owned()]));
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(|entry| {
            let path = entry.path();
            if path.is_dir() {
                rust_files(&path)
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                vec![path]
            } else {
                Vec::new()
            }
        })
        .collect()
}

fn room_of(inside: &Path) -> Option<String> {
    let first = inside.components().next()?.as_os_str().to_str()?;
    Some(first.trim_end_matches(".rs").to_owned())
}

/// The code of a file and the tests at its end.
fn without_tests(text: &str) -> (String, String) {
    match text.find("#[cfg(test)]\nmod ") {
        Some(at) => (text[..at].to_owned(), text[at..].to_owned()),
        None => (text.to_owned(), String::new()),
    }
}

/// Every room that is named, with the line that begins there.
fn imports(text: &str, depth: usize) -> Vec<(String, String)> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n")
        .collect();
    // As many `super` as the file is deep are the crate.
    let code = code.replace(&"super::".repeat(depth), "crate::");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let line = code[at..].lines().next().unwrap_or_default().to_owned();
        // A name that is no room is an item that the crate re-exports, or a module in the same file.
        for name in first_names(rest).into_iter().filter(|name| is_room(name)) {
            found.push((line.clone(), name));
        }
    }
    found
}

fn is_room(name: &str) -> bool {
    ALLOWED.iter().any(|(room, _)| *room == name) || FREE.contains(&name) || name == "testing"
}

/// The first names of a path, or of each path of a group in braces.
fn first_names(rest: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(group) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let mut names = Vec::new();
    let mut deep = 0;
    let mut start = 0;
    for (at, c) in group.char_indices() {
        match c {
            '{' => deep += 1,
            '}' if deep > 0 => deep -= 1,
            ',' | '}' if deep == 0 => {
                names.push(name(&group[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names
}
