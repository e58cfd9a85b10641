use std::cell::RefCell;
use std::io::Cursor;
use std::rc::Rc;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::writer::Appendable;
use super::*;
use crate::kernel::clock::FakeClock;
use crate::kernel::contracts::TurnSource;
use crate::kernel::ids::TurnId;
use crate::kernel::ports::EntryKind;

fn entry(turn: u64, kind: EntryKind, text: &str) -> JournalEntry {
    let source = (kind == EntryKind::User).then_some(TurnSource::Voice);
    JournalEntry { turn: TurnId(turn), kind, text: text.into(), source, interrupted: false }
}

fn bus() -> Bus {
    Bus::new(FakeClock::shared(), SessionId::fresh())
}

fn texts(read: &Read) -> Vec<&str> {
    read.lines.iter().map(|line| line.entry.text.as_str()).collect()
}

#[tokio::test]
async fn what_is_appended_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let session = SessionId::fresh();
    let file = path(folder.path(), &session);
    let transcript = Transcript::open(folder.path(), &session, bus()).unwrap();
    assert!(!file.exists(), "a session in which nothing was said leaves no file");
    let said = entry(1, EntryKind::User, "two\nlines, \u{2028} and 你好");
    let mut heard = entry(1, EntryKind::Assistant, "hi");
    heard.interrupted = true;
    transcript.append(said.clone());
    transcript.append(heard.clone());
    transcript.flush().await;
    let read = read(&file).unwrap();
    assert!(read.skipped.is_empty());
    let entries: Vec<_> = read.lines.iter().map(|line| line.entry.clone()).collect();
    assert_eq!(entries, [said, heard]);
    assert_eq!(read.lines[0].v, VERSION);
    let raw = std::fs::read_to_string(&file).unwrap();
    assert_eq!(raw.lines().count(), 2, "{raw}");
    assert!(
        raw.contains(r#""turn":1,"kind":"user""#) && raw.contains(r#""source":"voice""#),
        "{raw}"
    );
}

#[tokio::test]
async fn a_torn_tail_does_not_swallow_the_next_line() {
    let folder = tempfile::tempdir().unwrap();
    let session = SessionId::fresh();
    let file = path(folder.path(), &session);
    let whole = r#"{"v":1,"at":"2026-01-01T00:00:00Z","turn":1,"kind":"user","text":"whole"}"#;
    std::fs::write(&file, format!("{whole}\n{{\"v\":1,\"at\":\"20")).unwrap();
    let transcript = Transcript::open(folder.path(), &session, bus()).unwrap();
    transcript.append(entry(2, EntryKind::User, "after"));
    transcript.flush().await;
    let read = read(&file).unwrap();
    assert_eq!(texts(&read), ["whole", "after"]);
    assert_eq!(read.skipped, [2]);
}

#[tokio::test]
async fn a_second_writer_of_a_session_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let session = SessionId::fresh();
    let first = Transcript::open(folder.path(), &session, bus()).unwrap();
    first.append(entry(1, EntryKind::User, "mine"));
    first.flush().await;
    let second = Transcript::open(folder.path(), &session, bus());
    assert!(matches!(second, Err(OpenError::InUse(id)) if id == session));
    drop(first);
    assert!(Transcript::open(folder.path(), &session, bus()).is_ok());
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_said_and_nothing_is_lost() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("sessions");
    std::fs::write(&folder, "a file where the folder should be").unwrap();
    let session = SessionId::fresh();
    let bus = bus();
    bus.start();
    let mut notices = bus.subscribe("test", |event| matches!(event, Event::Notice(_)));
    let transcript = Transcript::open(&folder, &session, bus.clone()).unwrap();
    transcript.append(entry(1, EntryKind::User, "kept"));
    transcript.flush().await;
    let code = |event: Arc<crate::kernel::contracts::Envelope>| match &event.event {
        Event::Notice(notice) => notice.code,
        other => panic!("{other:?}"),
    };
    assert_eq!(code(notices.next().await.unwrap()), "transcript_unwritable");
    transcript.append(entry(1, EntryKind::Assistant, "also kept"));
    transcript.flush().await;
    assert!(notices.try_next().is_none(), "said once");
    std::fs::remove_file(&folder).unwrap();
    transcript.flush().await;
    assert_eq!(code(notices.next().await.unwrap()), "transcript_written");
    assert_eq!(texts(&read(&path(&folder, &session)).unwrap()), ["kept", "also kept"]);
}

/// A disk that refuses the first `refusals` writes.
struct Flaky {
    refusals: usize,
    wrote: Rc<RefCell<Vec<u8>>>,
}

impl Appendable for Flaky {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.refusals > 0 {
            self.refusals -= 1;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.wrote.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_said_once_and_everything_is_written_later() {
    let wrote = Rc::new(RefCell::new(Vec::new()));
    let mut writer = Writer::new(Flaky { refusals: 3, wrote: Rc::clone(&wrote) });
    writer.push(b"one".to_vec());
    assert!(matches!(writer.write(), Some(Change::Failing(_))));
    writer.push(b"two".to_vec());
    assert_eq!(writer.write(), None);
    assert_eq!(writer.write(), None);
    assert_eq!(writer.waiting(), 2);
    assert_eq!(writer.write(), Some(Change::Working));
    assert_eq!(writer.write(), None);
    assert_eq!(wrote.borrow().as_slice(), b"one\ntwo\n");
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_really_full_refuses_and_leaves_the_line_waiting() {
    let mut writer = Writer::new(DiskFile::new("/dev/full".into()));
    writer.push(b"line".to_vec());
    assert!(matches!(writer.write(), Some(Change::Failing(_))));
    assert_eq!(writer.waiting(), 1);
}

fn good_line() -> impl Strategy<Value = (Vec<u8>, Line)> {
    (any::<u64>(), "\\PC{0,20}", any::<bool>()).prop_map(|(turn, text, user)| {
        let kind = if user { EntryKind::User } else { EntryKind::Assistant };
        let line = Line {
            v: VERSION,
            at: Timestamp::from_millisecond(1_700_000_000_000).unwrap(),
            entry: entry(turn, kind, &text),
        };
        let mut bytes = serde_json::to_vec(&line).unwrap();
        bytes.push(b'\n');
        (bytes, line)
    })
}

/// Bytes that are no line of a transcript, ended by a newline.
fn rubbish() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..40).prop_map(|mut bytes| {
        bytes.insert(0, b'~');
        bytes.push(b'\n');
        bytes
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read_from(Cursor::new(bytes)).unwrap();
    }

    #[test]
    fn any_prefix_gives_its_whole_lines(
        lines in proptest::collection::vec(good_line(), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let file: Vec<u8> = lines.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let cut = cut.index(file.len() + 1);
        let mut end = 0;
        // A line counts when only its newline is missing.
        let whole: Vec<_> = lines
            .iter()
            .take_while(|(bytes, _)| { end += bytes.len(); end <= cut + 1 })
            .map(|(_, line)| line.clone())
            .collect();
        prop_assert_eq!(read_from(Cursor::new(&file[..cut])).unwrap().lines, whole);
    }

    #[test]
    fn rubbish_between_lines_hides_none_of_them(
        lines in proptest::collection::vec((rubbish(), good_line()), 0..6),
    ) {
        let file: Vec<u8> =
            lines.iter().flat_map(|(bad, (good, _))| [bad.clone(), good.clone()].concat()).collect();
        let read = read_from(Cursor::new(file)).unwrap();
        let expected: Vec<_> = lines.iter().map(|(_, (_, line))| line.clone()).collect();
        prop_assert_eq!(read.lines, expected);
        prop_assert!(read.skipped.len() >= lines.len());
    }
}
