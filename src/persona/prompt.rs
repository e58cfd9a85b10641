//! The system prompt: files of `prompts/`, embedded in the programme, where a file of the same name in
//! the home folder wins and is read again when it changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::config::settings;
use crate::kernel::contracts::{Notice, NoticeLevel};
use crate::kernel::ports::SystemPrompt;

/// The prompts that come with the programme.
const EMBEDDED: [(&str, &str); 2] = [
    ("alice", include_str!("../../prompts/alice.md")),
    ("alice-small", include_str!("../../prompts/alice-small.md")),
];

/// Who Alice is by her settings and her prompt files.
///
/// The short prompt for small models is the file with `-small` behind the name; where there is none,
/// a prompt of the person's own stands for both.
#[derive(Debug)]
pub struct Persona {
    settings: settings::Persona,
    folder: PathBuf,
    /// One for the full and one for the small prompt.
    files: [Mutex<Option<Cached>>; 2],
}

/// A prompt file as it was last read.
#[derive(Debug)]
struct Cached {
    path: PathBuf,
    stamp: Stamp,
    text: String,
}

/// What tells that a file is another one than before.
type Stamp = (SystemTime, u64);

impl Persona {
    /// `folder` holds the prompt files that win over the embedded ones; it need not exist.
    pub fn new(settings: settings::Persona, folder: PathBuf) -> Self {
        Self { settings, folder, files: Default::default() }
    }

    /// What to tell the person when the prompt that is set is nowhere to be found.
    pub fn problem(&self) -> Option<Notice> {
        let name = &self.settings.prompt;
        let known = embedded(name).is_some() || self.file(name).is_file();
        (!known).then(|| Notice {
            level: NoticeLevel::Warning,
            code: "prompt_missing",
            text: format!("there is no prompt `{name}`, so `alice` is used"),
            hint: Some(format!("write `{}` or change `persona.prompt`", self.file(name).display())),
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        // A name with folders in it would leave the folder.
        let name = Path::new(name).file_name().unwrap_or_default();
        self.folder.join(name).with_extension("md")
    }

    fn template(&self, tags: bool) -> String {
        let name = &self.settings.prompt;
        let small = format!("{name}-small");
        let names: &[&str] = if tags { &[name, "alice"] } else { &[&small, name, "alice-small"] };
        let cache = if tags { &self.files[0] } else { &self.files[1] };
        names
            .iter()
            .find_map(|name| read(&self.file(name), cache).or_else(|| embedded(name)))
            .unwrap_or_default()
    }
}

impl SystemPrompt for Persona {
    fn system(&self, tags: bool) -> String {
        fill(&self.template(tags), &self.settings.name, self.settings.user_name.trim())
    }
}

fn embedded(name: &str) -> Option<String> {
    EMBEDDED.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
}

/// The file's text, from memory while the file has not changed. `None` when there is no such file or
/// it cannot be read as text.
fn read(path: &Path, cache: &Mutex<Option<Cached>>) -> Option<String> {
    let data = fs::metadata(path).ok()?;
    let stamp = (data.modified().ok()?, data.len());
    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cached) = cache.as_ref().filter(|c| c.path == path && c.stamp == stamp) {
        return Some(cached.text.clone());
    }
    match fs::read_to_string(path) {
        Ok(text) => {
            *cache = Some(Cached { path: path.to_owned(), stamp, text: text.clone() });
            Some(text)
        }
        Err(error) => {
            tracing::warn!("{}: {error}; the built-in prompt is used", path.display());
            None
        }
    }
}

/// Puts the names in. A line that mentions `{user_name}` is left out while the name is not known.
fn fill(template: &str, name: &str, user_name: &str) -> String {
    let lines =
        template.lines().filter(|line| !user_name.is_empty() || !line.contains("{user_name}"));
    let filled: Vec<_> =
        lines.map(|line| line.replace("{name}", name).replace("{user_name}", user_name)).collect();
    filled.join("\n").trim().to_owned()
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
