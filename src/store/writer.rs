//! The one writer of a transcript: keeps what could not be written and never leaves half a line in
//! front of a whole one.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// A file that lines are appended to.
pub(super) trait Appendable {
    /// Appends these bytes, all of them or none.
    ///
    /// # Errors
    /// Nothing of `bytes` stays in the file, as far as the file can still be changed.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Puts what was appended onto the disk itself.
    ///
    /// # Errors
    /// When that is not certain.
    fn sync(&mut self) -> io::Result<()>;
}

/// What became different with a try to write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It no longer works, and why.
    Failing(String),
    /// It works again and everything is written.
    Working,
}

/// Lines on their way into a file.
#[derive(Debug)]
pub(super) struct Writer<F> {
    file: F,
    waiting: VecDeque<Vec<u8>>,
    failing: bool,
}

impl<F: Appendable> Writer<F> {
    pub(super) fn new(file: F) -> Self {
        Self { file, waiting: VecDeque::new(), failing: false }
    }

    /// Puts a line (without its end) behind those that wait.
    pub(super) fn push(&mut self, mut line: Vec<u8>) {
        line.push(b'\n');
        self.waiting.push_back(line);
    }

    /// How many lines are not written yet.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Writes what waits, in order, up to the first that fails. Tells only what is news.
    pub(super) fn write(&mut self) -> Option<Change> {
        while let Some(line) = self.waiting.front() {
            if let Err(error) = self.file.append(line) {
                let news = !std::mem::replace(&mut self.failing, true);
                return news.then(|| Change::Failing(error.to_string()));
            }
            self.waiting.pop_front();
        }
        std::mem::take(&mut self.failing).then_some(Change::Working)
    }

    pub(super) fn sync(&mut self) {
        if let Err(error) = self.file.sync() {
            tracing::warn!(%error, "the transcript may not be on the disk yet");
        }
    }
}

impl Writer<DiskFile> {
    /// Takes the file; `true` when another process holds it. Other trouble shows when it is written.
    pub(super) fn locked_by_another(&mut self) -> bool {
        self.file.open().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// A file on disk, opened (and its folder made) when it is first needed, locked against other
/// processes while it is open.
#[derive(Debug)]
pub(super) struct DiskFile {
    path: PathBuf,
    file: Option<File>,
    torn: bool,
}

impl DiskFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None, torn: false }
    }

    fn open(&mut self) -> io::Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                if let Some(folder) = self.path.parent() {
                    fs::create_dir_all(folder)?;
                }
                let mut options = OpenOptions::new();
                options.read(true).append(true).create(true);
                #[cfg(unix)]
                {
                    // What was said at home is nobody else's on this machine.
                    use std::os::unix::fs::OpenOptionsExt;
                    options.mode(0o600);
                }
                let mut file = options.open(&self.path)?;
                match file.try_lock() {
                    Ok(()) => {}
                    Err(TryLockError::WouldBlock) => {
                        let why = "another Alice has it open";
                        return Err(io::Error::new(io::ErrorKind::WouldBlock, why));
                    }
                    Err(TryLockError::Error(error)) => return Err(error),
                }
                self.torn = !ends_with_newline(&mut file)?;
                file
            }
        };
        Ok(self.file.insert(file))
    }
}

impl Appendable for DiskFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.open()?;
        let torn = self.torn;
        let file = self.open()?;
        let before = file.metadata()?.len();
        // A torn tail is closed in the same write, so that it cannot swallow the line behind it.
        let wrote =
            if torn { file.write_all(&[b"\n", bytes].concat()) } else { file.write_all(bytes) };
        if let Err(error) = wrote {
            // Half a line may be in the file. It is taken back, or else closed when it is opened anew.
            let _ = file.set_len(before);
            self.file = None;
            return Err(error);
        }
        self.torn = false;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }
}

/// An empty file ends well, too.
fn ends_with_newline(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
