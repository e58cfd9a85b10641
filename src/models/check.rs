//! What of a model is there, and whether it is what it should be.
//!
//! Hashing hundreds of megabytes at every start would be slow, so a hash that was right is noted with
//! the size and time of the file (`.verified` in the model's folder) and believed while these stay.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::manifest::ModelFile;

/// What is known of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is there, and its hash was right when it was last looked at.
    Ready,
    /// It is there with the right size; its hash was not looked at since it changed.
    Unchecked,
    /// A part of it was fetched; `pull` goes on from there.
    Partial,
    /// It is there with a wrong size.
    Wrong,
    /// It is not there.
    Missing,
}

/// Notes of one model's folder: what each file was when its hash was right.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Stamps(BTreeMap<String, Stamp>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    sha256: String,
    bytes: u64,
    modified_ns: u64,
}

/// Where the first bytes of a file lie while the rest is missing.
pub(super) fn part_path(folder: &Path, file: &ModelFile) -> PathBuf {
    folder.join(format!("{}.part", file.path))
}

fn stamps_path(folder: &Path) -> PathBuf {
    folder.join(".verified")
}

fn read_stamps(folder: &Path) -> Stamps {
    // No notes, or broken ones: the files are hashed again.
    std::fs::read(stamps_path(folder))
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

fn stamp_of(path: &Path, sha256: &str) -> Option<Stamp> {
    let meta = std::fs::metadata(path).ok()?;
    let modified = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let modified_ns = u64::try_from(modified.as_nanos()).ok()?;
    Some(Stamp { sha256: sha256.to_owned(), bytes: meta.len(), modified_ns })
}

/// The state of a file of the model in `folder`.
pub fn state(folder: &Path, file: &ModelFile) -> State {
    let path = folder.join(&file.path);
    match std::fs::metadata(&path) {
        Ok(meta) if meta.len() != file.bytes => State::Wrong,
        Ok(_) => {
            let noted = read_stamps(folder).0.remove(&file.path);
            if noted.is_some() && noted == stamp_of(&path, &file.sha256) {
                State::Ready
            } else {
                State::Unchecked
            }
        }
        Err(_) if part_path(folder, file).exists() => State::Partial,
        Err(_) => State::Missing,
    }
}

/// Whether a file that is there is what the manifest says. Reads it only when it changed since its
/// hash was last right.
///
/// # Errors
/// One line that says what is wrong with it.
pub(super) fn intact(folder: &Path, file: &ModelFile) -> Result<(), String> {
    match state(folder, file) {
        State::Ready => Ok(()),
        _ => verify(folder, file),
    }
}

/// Reads a whole file and compares its hash. Notes a right one.
///
/// # Errors
/// One line: it can't be read, or it is not what the manifest says.
pub fn verify(folder: &Path, file: &ModelFile) -> Result<(), String> {
    compare(&folder.join(&file.path), file)?;
    note(folder, file);
    Ok(())
}

/// Notes that the hash of a file was right just now.
pub(super) fn note(folder: &Path, file: &ModelFile) {
    let Some(stamp) = stamp_of(&folder.join(&file.path), &file.sha256) else { return };
    let mut stamps = read_stamps(folder);
    stamps.0.insert(file.path.clone(), stamp);
    // Where the folder can't be written the file is hashed again the next time.
    if let Ok(text) = serde_json::to_string_pretty(&stamps) {
        let temporary = folder.join(".verified.new");
        let _ = std::fs::write(&temporary, text)
            .and_then(|()| std::fs::rename(&temporary, stamps_path(folder)));
    }
}

/// Compares a file with the manifest.
pub(super) fn compare(path: &Path, file: &ModelFile) -> Result<(), String> {
    let unreadable = |error: std::io::Error| format!("can't be read: {error}");
    let mut input = std::fs::File::open(path).map_err(unreadable)?;
    let length = input.metadata().map_err(unreadable)?.len();
    if length != file.bytes {
        return Err(format!("has {length} bytes instead of {}", file.bytes));
    }
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0_u64;
    loop {
        let read = input.read(&mut buffer).map_err(unreadable)?;
        let Some(chunk) = buffer.get(..read).filter(|chunk| !chunk.is_empty()) else { break };
        hasher.update(chunk);
        bytes += chunk.len() as u64;
    }
    if bytes != file.bytes {
        return Err(format!("has {bytes} bytes instead of {}", file.bytes));
    }
    let hash = format!("{:x}", hasher.finalize());
    if hash != file.sha256 {
        let short = |hash: &str| hash.chars().take(12).collect::<String>();
        return Err(format!(
            "has the wrong content (SHA-256 {}… instead of {}…)",
            short(&hash),
            short(&file.sha256)
        ));
    }
    Ok(())
}
