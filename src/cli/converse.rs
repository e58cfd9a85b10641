//! `alice converse`: the whole loop on files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::app::timeline::Timeline;
use crate::app::{Alice, Input, Output, Plan};
use crate::ears::wav::{Pace, WavSource};
use crate::ears::{EchoPath, Source, SourceEvent};
use crate::kernel::clock::{Clock, SystemClock};
use crate::kernel::contracts::{Event, ListenState};
use crate::kernel::ports::{Pcm, Speaker};
use crate::voice::file::FileSpeaker;

use super::Context;

/// Rate of the written answer, Hz.
const OUT_RATE: u32 = 24_000;

/// Silence behind the question: longer than any silence that ends a turn.
const SILENCE: Duration = Duration::from_millis(4_000);

/// With the recording over and nothing going on for so long, the talk is over.
const QUIET: Duration = Duration::from_millis(800);

/// Arguments of `alice converse`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What the user says: a WAV file
    #[arg(long = "in", value_name = "WAV")]
    input: PathBuf,
    /// Where Alice's answer goes: a WAV file
    #[arg(long, value_name = "WAV")]
    out: Option<PathBuf>,
    /// Where the timeline goes: a JSON file, or `-` for standard output
    #[arg(long, value_name = "JSON")]
    timeline: Option<PathBuf>,
    /// As fast as it can instead of at real time
    #[arg(long)]
    fast: bool,
    /// Give up after so many seconds
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    timeout: u64,
}

/// Runs the subcommand.
///
/// # Errors
/// A file that can't be read or written, missing engines, no answer.
pub async fn run(args: Args, context: Context) -> anyhow::Result<ExitCode> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let pace = if args.fast { Pace::Fast } else { Pace::RealTime };
    let source = WavSource::open(&args.input, pace, Arc::clone(&clock))?.with_silence(SILENCE);
    for file in [&args.out, &args.timeline].into_iter().flatten() {
        writable(file)?;
    }
    let talk: Arc<Mutex<Talk>> = Arc::default();
    let speaker: Arc<Mutex<Option<Arc<FileSpeaker>>>> = Arc::default();
    let mut plan = Plan::text();
    plan.sound = true;
    plan.clock = Some(Arc::clone(&clock));
    plan.input = Input::Source(Box::new(Watched { source, talk: Arc::clone(&talk) }));
    let into = Arc::clone(&speaker);
    plan.output = Output::Speaker(Box::new(move |port, clock| {
        let made = if args.fast {
            FileSpeaker::fast(port, OUT_RATE)
        } else {
            FileSpeaker::paced(port, clock, OUT_RATE)
        };
        *into.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&made));
        made as Arc<dyn Speaker>
    }));
    let watched = Arc::clone(&talk);
    plan.watch = Some(Box::new(move |envelope| lock(&watched).timeline.push(envelope)));
    let alice = Alice::start(context.home, context.settings, plan).await?;
    anyhow::ensure!(alice.engines().stt.is_some(), "{}", said_why(&lock(&talk).timeline, "deaf"));

    let over = until_over(&talk, Duration::from_secs(args.timeout)).await;
    let recording = speaker
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .as_ref()
        .map(|speaker| speaker.recording());
    alice.stop().await;
    let timeline = std::mem::take(&mut lock(&talk).timeline);
    if let (Some(out), Some(recording)) = (&args.out, recording) {
        write_wav(out, &without_lead(recording))?;
    }
    report(&timeline, args.timeline.as_deref())?;
    anyhow::ensure!(over, "the talk was not over after {} s", args.timeout);
    if timeline.turns.iter().all(|turn| turn.error.is_some()) {
        let error = timeline.turns.iter().find_map(|turn| turn.error.clone());
        anyhow::bail!(error.unwrap_or_else(|| format!(
            "nothing was understood in `{}`, so there is no answer",
            args.input.display()
        )));
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Default)]
struct Talk {
    timeline: Timeline,
    /// The recording was given to its end.
    heard_all: bool,
}

fn lock(talk: &Mutex<Talk>) -> MutexGuard<'_, Talk> {
    talk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says when the recording is over.
struct Watched {
    source: WavSource,
    talk: Arc<Mutex<Talk>>,
}

impl Source for Watched {
    fn next(&mut self, wait: Duration) -> SourceEvent {
        let event = self.source.next(wait);
        if event == SourceEvent::End {
            lock(&self.talk).heard_all = true;
        }
        event
    }

    fn echo_path(&self) -> EchoPath {
        self.source.echo_path()
    }
}

/// Whether nothing is going on: every turn is over and nobody speaks or thinks.
fn is_quiet(timeline: &Timeline) -> bool {
    let mut open = std::collections::BTreeSet::new();
    let mut listen = ListenState::Idle;
    for envelope in &timeline.events {
        match &envelope.event {
            Event::TurnStarted { turn, .. } => drop(open.insert(*turn)),
            Event::TurnDiscarded { turn }
            | Event::TurnCompleted { turn, .. }
            | Event::TurnFailed { turn, .. } => drop(open.remove(turn)),
            Event::Listen { state } => listen = *state,
            _ => {}
        }
    }
    open.is_empty() && matches!(listen, ListenState::Idle | ListenState::Listening)
}

async fn until_over(talk: &Mutex<Talk>, most: Duration) -> bool {
    let begun = Instant::now();
    let mut quiet_since = None;
    while begun.elapsed() < most {
        let quiet = {
            let talk = lock(talk);
            talk.heard_all && is_quiet(&talk.timeline)
        };
        if !quiet {
            quiet_since = None;
        } else if quiet_since.get_or_insert_with(Instant::now).elapsed() >= QUIET {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

fn said_why(timeline: &Timeline, code: &str) -> String {
    let mut notices = timeline.events.iter().filter_map(|envelope| match &envelope.event {
        Event::Notice(notice) if notice.code == code => Some(notice.text.clone()),
        _ => None,
    });
    notices.next().unwrap_or_else(|| "Alice can't hear: run `alice doctor`".into())
}

/// The recording from its first sound on.
fn without_lead(mut recording: Pcm) -> Pcm {
    let lead = recording.samples.iter().position(|s| *s != 0.0).unwrap_or(recording.samples.len());
    recording.samples.drain(..lead);
    recording
}

fn writable(file: &Path) -> anyhow::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => {
            anyhow::bail!(
                "can't write `{}`: there is no folder `{}`",
                file.display(),
                folder.display()
            )
        }
        _ => Ok(()),
    }
}

fn write_wav(path: &Path, pcm: &Pcm) -> anyhow::Result<()> {
    std::fs::write(path, crate::kernel::wav::wav_bytes(pcm))
        .with_context(|| format!("can't write `{}`", path.display()))
}

fn report(timeline: &Timeline, to: Option<&Path>) -> anyhow::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match to {
        Some(path) if path == Path::new("-") => {
            serde_json::to_writer(&mut out, timeline)?;
            writeln!(out)?;
            return Ok(());
        }
        Some(path) => {
            let json = serde_json::to_vec(timeline)?;
            std::fs::write(path, json)
                .with_context(|| format!("can't write `{}`", path.display()))?;
        }
        None => {}
    }
    for turn in &timeline.turns {
        writeln!(out, "you:   {}", turn.user_text)?;
        let mark = if turn.interrupted { " …" } else { "" };
        writeln!(out, "alice: {}{mark}", turn.reply_text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::contracts::{Envelope, TurnSource};
    use crate::kernel::ids::{SessionId, TurnId};

    fn timeline(events: &[Event]) -> Timeline {
        let mut timeline = Timeline::default();
        for (seq, event) in (1..).zip(events) {
            let (session, event) = (SessionId::fresh(), event.clone());
            timeline.push(&Envelope { seq, session, at_ms: 0.0, event });
        }
        timeline
    }

    #[test]
    fn a_talk_is_over_when_every_turn_is_and_nobody_speaks() {
        let turn = TurnId(1);
        let begun = Event::TurnStarted {
            turn,
            source: TurnSource::Voice,
            user_text: String::new(),
            draft: false,
        };
        let done = Event::TurnCompleted { turn, content: String::new(), interrupted: false };
        let speaking = Event::Listen { state: ListenState::UserSpeaking };
        let listening = Event::Listen { state: ListenState::Listening };
        let cases: [(&[Event], bool); 5] = [
            (&[], true),
            (std::slice::from_ref(&begun), false),
            (&[begun.clone(), done.clone()], true),
            (&[begun.clone(), done, speaking.clone()], false),
            (&[speaking, listening], true),
        ];
        for (events, quiet) in cases {
            assert_eq!(is_quiet(&timeline(events)), quiet, "{events:?}");
        }
    }

    #[test]
    fn an_answer_file_begins_with_its_sound() {
        let pcm = Pcm { rate: 8000, samples: vec![0.0, 0.0, 0.5, 0.0] };
        assert_eq!(without_lead(pcm).samples, [0.5, 0.0]);
    }
}
