//! `alice chat`: talk by typing, in a terminal, a script or a pipe.

mod talk;

use std::io::{BufRead, IsTerminal, Read, Write};
use std::process::ExitCode;

use anyhow::Context as _;
use jiff::tz::TimeZone;
use tokio::sync::mpsc;

use super::{Context, say};
use crate::app::{Alice, Plan};
use crate::config::Home;
use crate::kernel::ids::SessionId;
use crate::store::sessions;

use talk::{Look, Talk, Typed};

/// Sessions that `--sessions` lists.
const LISTED: usize = 20;

/// Lines that may wait to be answered before the pipe has to.
const TYPED_AHEAD: usize = 1024;

/// Arguments of `alice chat`.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Answer this one text and exit; `-` takes all of standard input as one text
    #[arg(long, value_name = "TEXT")]
    once: Option<String>,

    /// Go on with a session: this one, or the last one when no id is given
    #[arg(long, value_name = "ID", num_args = 0..=1)]
    resume: Option<Option<String>>,

    /// Print each turn as one JSON object on a line, when it is over
    #[arg(long)]
    json: bool,

    /// List the sessions that can be resumed
    #[arg(long, conflicts_with_all = ["once", "resume"])]
    sessions: bool,
}

/// Runs the subcommand. The exit code is 1 when a turn got no reply, 130 when it was left by Ctrl-C.
///
/// # Errors
/// What it could not do, as one line for the person.
pub async fn run(args: Args, context: Context) -> anyhow::Result<ExitCode> {
    let Context { home, settings, .. } = context;
    if args.sessions {
        return list(&home, args.json);
    }
    let once = match args.once.as_deref() {
        Some("-") => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("standard input can't be read as text")?;
            Some(text)
        }
        text => text.map(str::to_owned),
    };
    if once.as_deref().is_some_and(|text| text.trim().is_empty()) {
        anyhow::bail!("there is nothing to answer: the text is empty");
    }
    let mut plan = Plan::text();
    plan.resume = args.resume.map(|id| find(&home, id.as_deref())).transpose()?;
    let terminal = once.is_none() && std::io::stdin().is_terminal();
    let look = Look {
        json: args.json,
        prompt: terminal && !args.json,
        colours: std::io::stdout().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    };

    let events = talk::watch(&mut plan);
    let alice = Alice::start(home, settings, plan).await?;
    if look.prompt {
        say(alice.model_line());
    }
    let typed = match once {
        Some(text) => {
            let (typing, typed) = mpsc::channel(2);
            typing.try_send(Typed::Line(text)).context("the text can't be taken")?;
            typing.try_send(Typed::End).context("the text can't be taken")?;
            listen_for_signals(typing);
            typed
        }
        None => read_lines(),
    };
    let talk = Talk::new(&alice, events, look, terminal);
    let end = talk.run(typed, &mut std::io::stdout(), &mut std::io::stderr()).await;
    alice.stop().await;
    // A closed output is how `head` says that it has enough.
    Ok(match end {
        Ok(end) => end.into(),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => return Err(error).context("the reply can't be written"),
    })
}

/// Reads standard input on a thread of its own, because reading cannot be cancelled.
fn read_lines() -> mpsc::Receiver<Typed> {
    let (typing, typed) = mpsc::channel(TYPED_AHEAD);
    listen_for_signals(typing.clone());
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().split(b'\n').map_while(Result::ok) {
            // One wrong byte in a pipe costs a character, not the rest of the talk.
            let line = String::from_utf8_lossy(&line).into_owned();
            if typing.blocking_send(Typed::Line(line)).is_err() {
                return;
            }
        }
        // Nobody reads any more when this fails.
        let _ = typing.blocking_send(Typed::End);
    });
    typed
}

fn listen_for_signals(typing: mpsc::Sender<Typed>) {
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            if typing.send(Typed::Interrupt).await.is_err() {
                return;
            }
        }
    });
}

/// The session that is meant: by its id, or the one that was written last.
///
/// # Errors
/// When there is none.
pub(super) fn find(home: &Home, id: Option<&str>) -> anyhow::Result<SessionId> {
    let known = sessions::ids(&home.sessions());
    match id {
        None => known
            .into_iter()
            .next()
            .context("there is no session to resume: leave `--resume` out to begin one"),
        Some(id) => known
            .into_iter()
            .find(|known| known.as_str() == id)
            .with_context(|| format!("there is no session `{id}`: see `alice chat --sessions`")),
    }
}

fn list(home: &Home, json: bool) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    for session in sessions::list(&home.sessions(), LISTED) {
        if json {
            writeln!(out, "{}", serde_json::to_string(&session)?)?;
        } else {
            let last =
                session.last.to_zoned_datetime(TimeZone::system()).strftime("%Y-%m-%d %H:%M");
            let (id, turns, words) = (session.id, session.turns, session.first_words);
            writeln!(out, "{id}  {last}  {turns:>4} turns  {words}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
