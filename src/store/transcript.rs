//! The transcript of a session: append-only JSONL, one line an entry.
//!
//! ```text
//! {"v":1,"at":"2026-03-01T12:00:00.123Z","turn":7,"kind":"user","text":"hello","source":"voice"}
//! {"v":1,"at":"2026-03-01T12:00:03.456Z","turn":7,"kind":"assistant","text":"Hi!","interrupted":true}
//! ```
//!
//! A line that cannot be read is skipped with a warning and nothing is ever rewritten, so whatever
//! happened to the file, every whole line in it still counts.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::kernel::bus::Bus;
use crate::kernel::clock::BoxFuture;
use crate::kernel::contracts::{Event, Notice};
use crate::kernel::ids::SessionId;
use crate::kernel::ports::{Journal, JournalEntry};

use super::writer::{Change, DiskFile, Writer};

/// Version of the line format that is written.
pub const VERSION: u32 = 1;

/// How long a line that could not be written waits for the next try.
const RETRY: Duration = Duration::from_secs(1);

/// One line of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Version of its format.
    pub v: u32,
    /// When it was written.
    pub at: Timestamp,
    /// What it says.
    #[serde(flatten)]
    pub entry: JournalEntry,
}

/// What a transcript file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Every whole line, in the order of the file.
    pub lines: Vec<Line>,
    /// Numbers, from 1, of the lines that could not be read.
    pub skipped: Vec<usize>,
}

/// Where the transcript of a session lies.
pub fn path(folder: &Path, session: &SessionId) -> PathBuf {
    folder.join(format!("{session}.jsonl"))
}

/// Reads a transcript; warns of each line that cannot be read, by file and line.
///
/// # Errors
/// When the file cannot be opened, or reading stops half-way.
pub fn read(path: &Path) -> io::Result<Read> {
    let read = read_from(BufReader::new(File::open(path)?))?;
    for line in &read.skipped {
        tracing::warn!("{}:{line}: not a transcript line, skipped", path.display());
    }
    Ok(read)
}

/// [`read`] from anywhere. Lines end at the byte 0x0A and nowhere else; a last line without it counts
/// when it is whole.
pub fn read_from(mut file: impl BufRead) -> io::Result<Read> {
    let mut read = Read::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if file.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Line>(&line) {
            Ok(line) => read.lines.push(line),
            Err(_) => read.skipped.push(number),
        }
    }
    Ok(read)
}

/// Why a transcript cannot be written to.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process writes it.
    #[error("session `{0}` is open in another Alice: stop that one, or start a new session")]
    InUse(SessionId),
    /// The writer's thread could not be made.
    #[error("can't start the transcript's writer: {0}")]
    Thread(io::Error),
}

/// The open transcript of a session: the journal of the mind.
///
/// Writing happens on a thread of its own. When the disk refuses, lines wait in memory and are tried
/// again every second; a notice says so once, and again when all is written.
#[derive(Debug)]
pub struct Transcript {
    // Both are taken when the transcript is dropped, so that the thread ends and is waited for.
    orders: Option<mpsc::Sender<Order>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Order {
    Append(Box<JournalEntry>),
    Flush(oneshot::Sender<()>),
}

impl Transcript {
    /// Opens the transcript of `session` in `folder`. The file is made with the first line, so a
    /// session in which nothing was said leaves none. Trouble is published on `bus`.
    ///
    /// # Errors
    /// [`OpenError::InUse`] when another process has it open. A folder that cannot be written to is
    /// no error here: lines are kept and tried again.
    pub fn open(folder: &Path, session: &SessionId, bus: Bus) -> Result<Self, OpenError> {
        let path = path(folder, session);
        let mut writer = Writer::new(DiskFile::new(path.clone()));
        if path.exists() && writer.locked_by_another() {
            return Err(OpenError::InUse(session.clone()));
        }
        let (orders, queue) = mpsc::channel();
        let say = move |change| bus.publish(Event::Notice(notice(change, &path)));
        let thread = std::thread::Builder::new()
            .name("transcript".into())
            .spawn(move || run(&mut writer, &queue, say))
            .map_err(OpenError::Thread)?;
        Ok(Self { orders: Some(orders), thread: Mutex::new(Some(thread)) })
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders
            && orders.send(order).is_err()
        {
            tracing::error!("the transcript's writer is gone, a line is lost");
        }
    }
}

impl Journal for Transcript {
    fn append(&self, entry: JournalEntry) {
        self.order(Order::Append(Box::new(entry)));
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        let (done, flushed) = oneshot::channel();
        self.order(Order::Flush(done));
        Box::pin(async move {
            // The writer answers or is gone; either way there is nothing left to wait for.
            let _ = flushed.await;
        })
    }
}

impl Drop for Transcript {
    fn drop(&mut self) {
        drop(self.orders.take());
        let thread = self.thread.get_mut().map(Option::take).unwrap_or_default();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the transcript's writer panicked");
        }
    }
}

/// The life of the writer's thread: until the transcript is dropped, then one last try.
fn run(writer: &mut Writer<DiskFile>, orders: &mpsc::Receiver<Order>, say: impl Fn(Change)) {
    loop {
        let next = if writer.waiting() > 0 {
            orders.recv_timeout(RETRY)
        } else {
            orders.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected)
        };
        let mut flushed = None;
        match next {
            Ok(Order::Append(entry)) => {
                let line = Line { v: VERSION, at: now(), entry: *entry };
                match serde_json::to_vec(&line) {
                    Ok(line) => writer.push(line),
                    Err(error) => tracing::error!(%error, "a transcript line can't be written"),
                }
            }
            Ok(Order::Flush(done)) => flushed = Some(done),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
        if let Some(change) = writer.write() {
            say(change);
        }
        if let Some(done) = flushed {
            writer.sync();
            // An asker that is gone no longer cares.
            let _ = done.send(());
        }
    }
    if let Some(change) = writer.write() {
        say(change);
    }
    if writer.waiting() > 0 {
        tracing::error!(lines = writer.waiting(), "transcript lines could not be written");
    }
}

/// Now, to the millisecond: more digits would say nothing to a reader.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

fn notice(change: Change, path: &Path) -> Notice {
    use crate::kernel::contracts::NoticeLevel::{Error, Info};
    let file = path.display();
    match change {
        Change::Failing(why) => Notice {
            level: Error,
            code: "transcript_unwritable",
            text: format!(
                "the transcript can't be written (`{file}`: {why}); it is kept in memory"
            ),
            hint: Some(
                "free disk space or make the folder writable; it is tried again by itself".into(),
            ),
        },
        Change::Working => Notice {
            level: Info,
            code: "transcript_written",
            text: "the transcript is written again, nothing was lost".into(),
            hint: None,
        },
    }
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
