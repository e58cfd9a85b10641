//! Gets a file out of a package of a registry, with that registry's ordinary client.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::Command;

use super::manifest::Package;
use super::pull::{Failure, Part};

/// How often a running client is looked at.
const LOOK: Duration = Duration::from_millis(300);

/// Which registry, and the programme that fetches from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Registry {
    Pip,
    Npm,
}

/// The clients' programmes.
#[derive(Clone, Debug)]
pub struct Clients {
    /// Python with pip.
    pub python: PathBuf,
    /// npm.
    pub npm: PathBuf,
}

impl Default for Clients {
    fn default() -> Self {
        let name =
            |unix: &str, windows: &str| PathBuf::from(if cfg!(windows) { windows } else { unix });
        Self { python: name("python3", "python"), npm: name("npm", "npm.cmd") }
    }
}

/// Downloads the archive of a package into `folder`, which must be empty.
pub(super) async fn download(
    clients: &Clients,
    registry: Registry,
    package: &Package,
    folder: &Path,
    part: &Part<'_>,
    stall: Duration,
) -> Result<PathBuf, Failure> {
    // What the client writes on the way goes into our folder too: that is how its progress is seen.
    let scratch = folder.join("scratch");
    std::fs::create_dir_all(&scratch).map_err(Failure::disk)?;
    let log_path = folder.join("log");
    let log = File::create(&log_path).map_err(Failure::disk)?;
    let mut command = match registry {
        Registry::Pip => pip(&clients.python, package, folder),
        Registry::Npm => npm(&clients.npm, package, folder, &scratch),
    };
    command
        .env("TMPDIR", &scratch)
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(Failure::disk)?)
        .stderr(log)
        .kill_on_drop(true);
    let mut child =
        command.spawn().map_err(|error| Failure::Source(not_started(registry, &error)))?;
    let before = part.len();
    let mut seen = 0;
    let mut moved = Instant::now();
    let status = loop {
        tokio::select! {
            status = child.wait() => break status.map_err(Failure::disk)?,
            () = tokio::time::sleep(LOOK) => {}
        }
        let size = folder_size(folder);
        if size > seen {
            seen = size;
            moved = Instant::now();
            part.progress(before + size);
        } else if moved.elapsed() >= stall {
            // The child is killed as it is dropped.
            return Err(Failure::Source(format!("nothing came for {stall:?}")));
        }
    };
    if !status.success() {
        let log = std::fs::read_to_string(&log_path).unwrap_or_default();
        return Err(Failure::Source(reason(registry, &log)));
    }
    let _ = std::fs::remove_dir_all(&scratch);
    let ending = match registry {
        Registry::Pip => ".whl",
        Registry::Npm => ".tgz",
    };
    std::fs::read_dir(folder)
        .map_err(Failure::disk)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().ends_with(ending))
        .ok_or_else(|| Failure::Source(format!("its client left no {ending} file")))
}

fn pip(python: &Path, package: &Package, folder: &Path) -> Command {
    let mut command = Command::new(python);
    // A fixed Python version, so that every machine gets the same file whatever it runs.
    command.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]);
    command.args(["--no-cache-dir", "--disable-pip-version-check", "--python-version", "3.12"]);
    if let Some(platform) = &package.platform {
        command.args(["--platform", platform]);
    }
    command.arg("-d").arg(folder).arg(format!("{}=={}", package.package, package.version));
    command
}

fn npm(npm: &Path, package: &Package, folder: &Path, scratch: &Path) -> Command {
    let mut command = Command::new(npm);
    command.args(["pack", "--silent", "--loglevel=error", "--ignore-scripts", "--cache"]);
    command.arg(scratch).arg(format!("{}@{}", package.package, package.version));
    command.current_dir(folder);
    command
}

fn not_started(registry: Registry, error: &std::io::Error) -> String {
    let (name, packages) = match registry {
        Registry::Pip => ("Python", "python3 python3-pip"),
        Registry::Npm => ("npm", "nodejs npm"),
    };
    if error.kind() == std::io::ErrorKind::NotFound {
        format!("{name} is not installed (on Debian: apt-get install {packages})")
    } else {
        format!("{name} can't be started: {error}")
    }
}

/// The line of a client's output that says what went wrong.
fn reason(registry: Registry, log: &str) -> String {
    if log.contains("No module named pip") {
        return "pip is not installed (on Debian: apt-get install python3-pip)".into();
    }
    let marked = |line: &&str| {
        let line = line.to_ascii_lowercase();
        line.contains("error") && !line.contains("complete log")
    };
    let mut lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = match registry {
        Registry::Pip => lines.clone().rfind(marked),
        Registry::Npm => lines.find(marked),
    };
    line.or_else(|| log.lines().last()).map_or_else(
        || "its client failed and did not say why".into(),
        |line| line.chars().take(200).collect(),
    )
}

fn folder_size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .filter_map(|entry| {
            let meta = entry.metadata().ok()?;
            Some(if meta.is_dir() { folder_size(&entry.path()) } else { meta.len() })
        })
        .sum()
}

/// Writes a member of an archive to `output`; at most `limit` bytes. Returns how many.
pub(super) fn extract(
    registry: Registry,
    archive: &Path,
    member: &str,
    limit: u64,
    output: &mut File,
) -> Result<u64, Failure> {
    match registry {
        Registry::Pip => extract_zip(archive, member, limit, output),
        Registry::Npm => extract_tar(archive, member, limit, output),
    }
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::Source(format!("the archive is broken: {error}"))
}

fn absent(member: &str) -> Failure {
    Failure::Source(format!("the archive has no `{member}`"))
}

fn extract_zip(
    archive: &Path,
    member: &str,
    limit: u64,
    output: &mut File,
) -> Result<u64, Failure> {
    let file = File::open(archive).map_err(Failure::disk)?;
    let mut archive = zip::ZipArchive::new(std::io::BufReader::new(file)).map_err(broken)?;
    let mut input = archive.by_name(member).map_err(|error| match error {
        zip::result::ZipError::FileNotFound => absent(member),
        other => broken(other),
    })?;
    copy(&mut input, limit, output)
}

fn extract_tar(
    archive: &Path,
    member: &str,
    limit: u64,
    output: &mut File,
) -> Result<u64, Failure> {
    let file = File::open(archive).map_err(Failure::disk)?;
    let unzipped = flate2::read::GzDecoder::new(std::io::BufReader::new(file));
    let mut archive = tar::Archive::new(unzipped);
    // npm puts everything into a folder `package`.
    let wanted = Path::new("package").join(member);
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        if entry.path().is_ok_and(|path| path == wanted) {
            return copy(&mut entry, limit, output);
        }
    }
    Err(absent(member))
}

/// Copies with the two sides' errors kept apart: a broken archive is the source's fault, a full disk
/// is not.
fn copy(input: &mut impl Read, limit: u64, output: &mut File) -> Result<u64, Failure> {
    let mut buffer = vec![0; 1 << 18];
    let mut copied = 0;
    loop {
        let read = input.read(&mut buffer).map_err(broken)?;
        let Some(chunk) = buffer.get(..read).filter(|chunk| !chunk.is_empty()) else {
            return Ok(copied);
        };
        copied += chunk.len() as u64;
        if copied > limit {
            return Err(Failure::Wrong("gives more bytes than the file has".into()));
        }
        output.write_all(chunk).map_err(Failure::disk)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_line_that_says_it() {
        let pip = "WARNING: retrying\nERROR: Could not find a version that satisfies x\n\
                   ERROR: No matching distribution found for x==1\n";
        assert_eq!(reason(Registry::Pip, pip), "ERROR: No matching distribution found for x==1");
        let npm =
            "npm error code E404\nnpm error 404 Not Found\nnpm error A complete log of this\n";
        assert_eq!(reason(Registry::Npm, npm), "npm error code E404");
        assert!(reason(Registry::Pip, "/usr/bin/python3: No module named pip").contains("apt-get"));
        assert!(reason(Registry::Pip, "").contains("did not say why"));
    }
}
