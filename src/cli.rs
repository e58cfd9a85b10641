//! The command line: one file a subcommand.

pub mod bench;
pub mod chat;
pub mod config;
pub mod converse;
pub mod doctor;
pub mod listen;
pub mod models;
pub mod run;
pub mod say;

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{self as settings, Home, Loaded, Settings};
use crate::lock::LockError;

/// A voice-and-avatar companion in one process.
#[derive(Debug, Parser)]
#[command(version, about, propagate_version = true)]
pub struct Cli {
    /// Folder of settings, transcripts and logs [default: ~/.alice]
    #[arg(long, global = true, env = "ALICE_HOME")]
    pub home: Option<std::path::PathBuf>,

    /// Settings for this run, `KEY=VALUE`, in order.
    #[arg(skip)]
    pub set: Vec<String>,

    /// What to do; `run` when it is left out
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Cli {
    /// Reads the command line of this process; ends it where there is nothing to run.
    pub fn from_process() -> Self {
        Self::from_args(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    fn from_args(
        args: impl IntoIterator<Item = impl Into<std::ffi::OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let matches = with_set(Self::command()).try_get_matches_from(args)?;
        let mut cli = Self::from_arg_matches(&matches)?;
        collect_set(&matches, &mut cli.set);
        Ok(cli)
    }
}

const SET: &str = "setting";

/// Adds `--set` to a command and all below it. Not as a global argument: of those, clap forgets what
/// stands before a subcommand when it stands behind it as well.
fn with_set(command: clap::Command) -> clap::Command {
    let set =
        Arg::new(SET).long("set").value_name("KEY=VALUE").action(ArgAction::Append).help(
            "Set one setting for this run, such as `--set voice.engine=kokoro`; may be repeated",
        );
    command.arg(set).mut_subcommands(with_set)
}

/// What `--set` says, from the first command inwards.
fn collect_set(matches: &ArgMatches, found: &mut Vec<String>) {
    found.extend(matches.get_many::<String>(SET).into_iter().flatten().cloned());
    if let Some((_, inner)) = matches.subcommand() {
        collect_set(inner, found);
    }
}

/// What `alice` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start Alice: ears, mind, voice and the page
    Run(run::Args),
    /// Talk by typing, in a terminal or a pipe
    Chat(chat::Args),
    /// Transcribe a recording
    Listen(listen::Args),
    /// Speak a text
    Say(say::Args),
    /// Hold a whole conversation on files
    Converse(converse::Args),
    /// Fetch, check and list model weights
    Models(models::Args),
    /// Show settings and where they come from
    Config(config::Args),
    /// Measure how fast Alice is here
    Bench(bench::Args),
    /// Check devices, weights, keys and engines
    Doctor(doctor::Args),
}

impl Command {
    /// These run the rooms; the others only look or fetch, and leave no log.
    fn logs(&self) -> bool {
        !matches!(self, Self::Doctor(_) | Self::Config(_) | Self::Models(_))
    }

    /// These tell of notices themselves, where they fit between what is typed and answered.
    fn shows_notices(&self) -> bool {
        matches!(self, Self::Chat(_))
    }

    /// These help to repair settings that can't be used.
    fn runs_without_settings(&self) -> bool {
        match self {
            Self::Doctor(_) => true,
            Self::Config(args) => args.is_path(),
            _ => false,
        }
    }
}

/// Writes a line for the person beside the output. A closed stderr is no reason to stop.
fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// What every subcommand gets.
pub struct Context {
    /// The home folder.
    pub home: Home,
    /// The settings in force.
    pub settings: Settings,
    /// The same settings with where each comes from.
    pub loaded: Loaded,
    /// Why the settings can't be used; then the defaults are in force. Only `alice doctor` and
    /// `alice config path` run all the same.
    pub refused: Option<settings::ConfigError>,
}

/// The exit code of an error: 2 for settings that can't be used (as for a command line that can't
/// be read), 3 when another Alice runs on the home, 1 for everything else.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    match error {
        error if error.is::<settings::ConfigError>() => ExitCode::from(2),
        error if matches!(error.downcast_ref(), Some(LockError::Held { .. })) => ExitCode::from(3),
        _ => ExitCode::FAILURE,
    }
}

/// Reads the command line and does what it says.
///
/// # Errors
/// What the subcommand could not do, as one line for the person.
pub async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let home = cli.home.map(Home::at).unwrap_or_else(Home::from_env);
    let command = cli.command.unwrap_or(Command::Run(run::Args::default()));
    let (loaded, refused) = match settings::load(&home, settings::environment(), &cli.set) {
        Ok(loaded) => (loaded, None),
        Err(error) if command.runs_without_settings() => (Loaded::default(), Some(error)),
        Err(error) => return Err(error.into()),
    };
    for warning in &loaded.warnings {
        say(&format!("warning: {warning}"));
    }
    // Held to the end: what still waits is written when it is dropped.
    let _log = command
        .logs()
        .then(|| crate::logging::start(&home, &loaded.settings.log, !command.shows_notices()));
    let context = Context { home, settings: loaded.settings.clone(), loaded, refused };
    match command {
        Command::Run(args) => run::run(args, context).await,
        Command::Chat(args) => chat::run(args, context).await,
        Command::Listen(args) => listen::run(args, context).await,
        Command::Say(args) => say::run(args, context).await,
        Command::Converse(args) => converse::run(args, context).await,
        Command::Models(args) => models::run(args, context).await,
        Command::Config(args) => config::run(args, context).await,
        Command::Bench(args) => bench::run(args, context).await,
        Command::Doctor(args) => doctor::run(args, context).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_count_wherever_they_stand() {
        let set = |args: &str| Cli::from_args(args.split(' ')).unwrap().set;
        assert_eq!(set("alice --set a=1 run --set b=2 --set a=3"), ["a=1", "b=2", "a=3"]);
        assert_eq!(set("alice --set a=1 config --set b=2 show --set c=3"), ["a=1", "b=2", "c=3"]);
        assert_eq!(set("alice run"), [""; 0]);
        with_set(Cli::command()).debug_assert();
    }
}
