//! One Alice for each home folder.
//!
//! The lock is the operating system's lock on a file, so it ends with the process, however that
//! ends. The text of the file says who holds it; alone it means nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::Home;

/// Held while an Alice runs on a home; dropping it lets the next one in.
#[derive(Debug)]
pub struct Lock {
    file: File,
    holder: Holder,
}

/// Who holds a home.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// When it started, RFC 3339.
    pub since: String,
    /// Where its page is, once it listens.
    pub address: Option<String>,
}

/// Why a home could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another Alice runs on it.
    #[error("{}", held_text(.home, .holder.as_ref()))]
    Held {
        /// The home folder.
        home: PathBuf,
        /// Who, where its file can be read.
        holder: Option<Holder>,
    },
    /// Its folder or the file can't be made or written.
    #[error(
        "the home folder {} can't be used ({why}): make it writable, or start with another `--home`",
        .home.display()
    )]
    Unusable {
        /// The home folder.
        home: PathBuf,
        /// Why. Not a source: it is in the text already.
        why: std::io::Error,
    },
}

fn held_text(home: &std::path::Path, holder: Option<&Holder>) -> String {
    let who = holder.map_or_else(
        || "by a process that does not say its name".to_owned(),
        |holder| {
            let at = holder.address.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
            format!("as process {}{at} since {}", holder.pid, holder.since)
        },
    );
    format!(
        "Alice already runs on {} {who}: stop it first, or start with another `--home`",
        home.display()
    )
}

impl Lock {
    /// Takes the home for this process, making the folder where needed. Does not wait.
    ///
    /// # Errors
    /// [`LockError::Held`] names who has it.
    pub fn take(home: &Home) -> Result<Self, LockError> {
        let path = home.lock_file();
        let failed = |why| LockError::Unusable { home: home.root().to_owned(), why };
        home.create().map_err(failed)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held { home: home.root().to_owned(), holder: read(file) });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let holder = Holder {
            pid: std::process::id(),
            since: jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_default().to_string(),
            address: None,
        };
        let mut lock = Self { file, holder };
        lock.write().map_err(failed)?;
        Ok(lock)
    }

    /// Tells those who come later where this Alice listens.
    ///
    /// # Errors
    /// When the file can't be written; the lock holds all the same.
    pub fn set_address(&mut self, address: impl Into<String>) -> std::io::Result<()> {
        self.holder.address = Some(address.into());
        self.write()
    }

    fn write(&mut self) -> std::io::Result<()> {
        let text = serde_json::to_string(&self.holder)?;
        self.file.rewind()?;
        self.file.set_len(0)?;
        self.file.write_all(text.as_bytes())
    }

    /// Who holds a home right now, if anyone does. Takes nothing.
    pub fn holder(home: &Home) -> Option<Holder> {
        let file = File::open(home.lock_file()).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(read(file).unwrap_or_default()),
            _ => None,
        }
    }
}

/// Reads the text of a lock that another holds, which may be writing it just now.
fn read(mut file: File) -> Option<Holder> {
    for wait in [0, 10, 50] {
        std::thread::sleep(Duration::from_millis(wait));
        let mut text = String::new();
        file.rewind().ok()?;
        file.read_to_string(&mut text).ok()?;
        if let Ok(holder) = serde_json::from_str(&text) {
            return Some(holder);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;
    use std::process::{Command, Stdio};

    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        (folder, home)
    }

    #[test]
    fn the_second_start_is_told_who_runs() {
        let (_folder, home) = home();
        let mut lock = Lock::take(&home).unwrap();
        lock.set_address("http://127.0.0.1:7878").unwrap();
        let Err(LockError::Held { holder: Some(holder), .. }) = Lock::take(&home) else {
            panic!("was let in")
        };
        assert_eq!(holder, lock.holder);
        let text = Lock::take(&home).unwrap_err().to_string();
        for part in [&std::process::id().to_string(), "http://127.0.0.1:7878", "--home"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(Lock::holder(&home).as_ref(), Some(&lock.holder));
        drop(lock);
        assert_eq!(Lock::holder(&home), None);
        Lock::take(&home).unwrap();
    }

    #[test]
    fn a_file_without_a_holder_is_no_lock() {
        let (_folder, home) = home();
        home.create().unwrap();
        std::fs::write(home.lock_file(), r#"{"pid":1,"since":"then","address":"a long address"}"#)
            .unwrap();
        assert_eq!(Lock::holder(&home), None);
        let lock = Lock::take(&home).unwrap();
        let text = std::fs::read_to_string(home.lock_file()).unwrap();
        assert_eq!(serde_json::from_str::<Holder>(&text).unwrap(), lock.holder);
    }

    const HELD_HOME: &str = "ALICE_TEST_HELD_HOME";

    #[test]
    fn a_killed_process_leaves_no_lock() {
        if let Some(home) = std::env::var_os(HELD_HOME) {
            // The child of the test below: holds the lock until it is killed.
            let _lock = Lock::take(&Home::at(home)).unwrap();
            println!("\nheld");
            std::io::stdin().lines().for_each(drop);
            return;
        }
        let (_folder, home) = home();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "lock::tests::a_killed_process_leaves_no_lock", "--nocapture"])
            .env(HELD_HOME, home.root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "held"));
        let Err(LockError::Held { holder, .. }) = Lock::take(&home) else { panic!("was let in") };
        assert_eq!(holder.unwrap().pid, child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        Lock::take(&home).unwrap();
    }
}
