//! Which sessions there are.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use jiff::Timestamp;
use serde::Serialize;

use crate::kernel::ids::SessionId;
use crate::kernel::ports::EntryKind;

use super::transcript;

/// Characters of a session's first words that are kept.
const FIRST_WORDS: usize = 60;

/// A session as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// When something was last written.
    pub last: Timestamp,
    /// How its first turn begins; empty when the user said nothing.
    pub first_words: String,
    /// How many times the user said something.
    pub turns: usize,
}

/// The ids of the sessions in `folder`, the most recently written first. A folder that is not there
/// holds none.
pub fn ids(folder: &Path) -> Vec<SessionId> {
    dated(folder).into_iter().map(|(id, _)| id).collect()
}

/// At most `limit` sessions of `folder`, the most recently written first. Those that cannot be read
/// are left out with a warning.
pub fn list(folder: &Path, limit: usize) -> Vec<Session> {
    let mut sessions = Vec::new();
    for (id, written) in dated(folder).into_iter().take(limit) {
        let path = transcript::path(folder, &id);
        match transcript::read(&path) {
            Ok(read) => sessions.push(describe(id, written, &read)),
            Err(error) => tracing::warn!("{}: {error}", path.display()),
        }
    }
    sessions
}

fn describe(id: SessionId, written: SystemTime, read: &transcript::Read) -> Session {
    let mut said =
        read.lines.iter().map(|line| &line.entry).filter(|entry| entry.kind == EntryKind::User);
    let first = said.next();
    Session {
        id,
        last: Timestamp::try_from(written).unwrap_or_default(),
        first_words: first.map(|e| e.text.chars().take(FIRST_WORDS).collect()).unwrap_or_default(),
        turns: usize::from(first.is_some()) + said.count(),
    }
}

fn dated(folder: &Path) -> Vec<(SessionId, SystemTime)> {
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    let mut dated: Vec<_> = files
        .filter_map(|file| {
            let file = file.ok()?;
            let name = file.file_name();
            let id = SessionId::parse(name.to_str()?.strip_suffix(".jsonl")?)?;
            Some((id, file.metadata().ok()?.modified().ok()?))
        })
        .collect();
    // Ids grow with time, so they settle what the file system's clock leaves open.
    dated.sort_by(|(id_a, a), (id_b, b)| b.cmp(a).then_with(|| id_b.cmp(id_a)));
    dated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_listed_newest_first_with_their_first_words() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str, age: u64| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            let when = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 - age);
            fs::File::options().append(true).open(path).unwrap().set_modified(when).unwrap();
        };
        let line = |turn: u32, kind: &str, text: &str| {
            format!(
                "{{\"v\":1,\"at\":\"2026-01-01T00:00:00Z\",\"turn\":{turn},\"kind\":\"{kind}\",\"text\":\"{text}\"}}\n"
            )
        };
        write("old.jsonl", &(line(1, "user", "hello") + &line(1, "assistant", "hi")), 10);
        write("new.jsonl", &(line(1, "user", "one") + "torn\n" + &line(2, "user", "two")), 5);
        write("notes.txt", "not a session", 1);
        write("bad name.jsonl", "", 1);

        let list = list(folder.path(), 10);
        let seen: Vec<_> =
            list.iter().map(|s| (s.id.as_str(), s.first_words.as_str(), s.turns)).collect();
        assert_eq!(seen, [("new", "one", 2), ("old", "hello", 1)]);
        assert_eq!(ids(folder.path()).len(), 2);
        assert_eq!(ids(&folder.path().join("absent")), []);
    }
}
