//! Logs: JSON lines in daily files under the home folder, warnings and errors for people on stderr.
//!
//! What was said, heard or prompted never goes into a log unless `log.content` is on. Code that has
//! such text wraps it in [`content`], which shows only its length otherwise.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use jiff::civil::Date;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_appender::non_blocking::WorkerGuard;
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::config::Home;
use crate::config::settings::Log;

/// Log files are `alice.<date>.log`.
const PREFIX: &str = "alice";
const SUFFIX: &str = "log";

static SHOW_CONTENT: AtomicBool = AtomicBool::new(false);

/// Writes what still waits when it is dropped; hold it until the programme ends.
#[derive(Debug, Default)]
pub struct Guard {
    _writer: Option<WorkerGuard>,
}

/// The target of notices in the log.
pub const NOTICE: &str = "alice::notice";

/// Begins to log, for the whole process. `notices`: they are for people on stderr, too. Where the files can't be written there are only warnings on
/// stderr, one of which says so. Call it once.
pub fn start(home: &Home, settings: &Log, notices: bool) -> Guard {
    SHOW_CONTENT.store(settings.content, Ordering::Relaxed);
    let (file, problem) = match open(home, settings.keep_days) {
        Ok(file) => (Some(file), None),
        Err(error) => (None, Some(error)),
    };
    let (writer, guard) = file.map(tracing_appender::non_blocking).unzip();
    let filter = EnvFilter::try_new(&settings.level).unwrap_or_else(|_| EnvFilter::new("info"));
    let json = writer
        .map(|writer| tracing_subscriber::fmt::layer().json().with_writer(writer))
        .map(|layer| layer.with_filter(filter));
    // Only our own warnings: those of libraries are in the file.
    let notices = if notices { LevelFilter::WARN } else { LevelFilter::OFF };
    let ours = Targets::new()
        .with_target("alice", Level::WARN)
        .with_target(NOTICE, notices)
        .with_default(Level::ERROR);
    let people = tracing_subscriber::fmt::layer()
        .event_format(ForPeople)
        .with_writer(std::io::stderr)
        .with_filter(ours);
    // An error means that a subscriber is set already, as in a test.
    let _ = tracing_subscriber::registry().with(json).with(people).try_init();
    if let Some(error) = problem {
        tracing::warn!("no log is written: {error:#}");
    }
    Guard { _writer: guard }
}

fn open(home: &Home, keep_days: u32) -> anyhow::Result<RollingFileAppender> {
    let folder = home.logs();
    home.create()
        .and_then(|()| std::fs::create_dir_all(&folder))
        .with_context(|| format!("the folder {} can't be made", folder.display()))?;
    // The appender drops files by their number while it runs; this drops those that grew old while
    // nothing ran.
    prune(&folder, keep_days, jiff::tz::TimeZone::UTC.to_datetime(jiff::Timestamp::now()).date());
    RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix(PREFIX)
        .filename_suffix(SUFFIX)
        .max_log_files(usize::try_from(keep_days).unwrap_or(usize::MAX))
        .build(&folder)
        .with_context(|| format!("a file in {} can't be opened", folder.display()))
}

/// Deletes log files of days before the last `keep_days`, today being one of them. Other files are
/// left alone.
fn prune(folder: &Path, keep_days: u32, today: Date) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let day = path.file_name().and_then(|name| name.to_str()).and_then(day_of);
        let old = day
            .is_some_and(|day| (today - day).get_days().unsigned_abs() >= keep_days && day < today);
        if old {
            // A file that can't be deleted is tried again at the next start.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn day_of(name: &str) -> Option<Date> {
    name.strip_prefix(PREFIX)?
        .strip_prefix('.')?
        .strip_suffix(SUFFIX)?
        .strip_suffix('.')?
        .parse()
        .ok()
}

/// Text of a conversation, for a log: its length, or the text itself when `log.content` is on.
pub fn content(text: &str) -> impl fmt::Display + '_ {
    Content { text, show: SHOW_CONTENT.load(Ordering::Relaxed) }
}

struct Content<'a> {
    text: &'a str,
    show: bool,
}

impl fmt::Display for Content<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.show {
            f.write_str(self.text)
        } else {
            write!(f, "<{} chars>", self.text.chars().count())
        }
    }
}

/// `warning: what happened (field=value)`.
struct ForPeople;

impl<S, N> FormatEvent<S, N> for ForPeople
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Line::default();
        event.record(&mut line);
        let kind = if *event.metadata().level() == Level::ERROR { "error" } else { "warning" };
        write!(writer, "{kind}: {}", line.message)?;
        if !line.fields.is_empty() {
            write!(writer, " ({})", line.fields.join(", "))?;
        }
        writeln!(writer)
    }
}

#[derive(Default)]
struct Line {
    message: String,
    fields: Vec<String>,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else if field.name() != "code" {
            // The code of a notice is for programmes.
            self.fields.push(format!("{}={value:?}", field.name()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speech_shows_only_its_length_unless_it_is_wanted() {
        assert_eq!(content("a secret plan").to_string(), "<13 chars>");
        assert_eq!(content("你好").to_string(), "<2 chars>");
        assert_eq!(Content { text: "hello", show: true }.to_string(), "hello");
    }

    #[test]
    fn old_logs_go_and_other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            ("alice.2026-03-01.log", true),
            ("alice.2026-02-27.log", true),
            ("alice.2026-02-26.log", false),
            ("alice.2025-03-01.log", false),
            ("alice.2026-03-02.log", true),
            ("alice.notes.log", true),
            ("mine.2020-01-01.log", true),
        ];
        for (name, _) in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        prune(folder.path(), 3, "2026-03-01".parse().unwrap());
        for (name, stays) in names {
            assert_eq!(folder.path().join(name).exists(), stays, "{name}");
        }
    }

    #[test]
    fn a_line_goes_to_the_file_and_a_warning_to_people() {
        // The subscriber is global: nextest runs each test in a process of its own.
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        let guard = start(&home, &Log { level: "alice=debug".into(), ..Log::default() }, true);
        tracing::debug!(said = %content("good morning"), "heard");
        tracing::info!(target: "noisy", "not wanted");
        drop(guard);
        let files: Vec<_> = std::fs::read_dir(home.logs()).unwrap().flatten().collect();
        let [file] = files.as_slice() else { panic!("{files:?}") };
        let text = std::fs::read_to_string(file.path()).unwrap();
        let [line] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["fields"]["said"], "<12 chars>");
        assert_eq!(line["level"], "DEBUG");
        assert!(day_of(file.file_name().to_str().unwrap()).is_some());
    }
}
