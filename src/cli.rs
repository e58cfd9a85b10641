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

use clap::{Parser, Subcommand};

use crate::config::{self as settings, Home, Loaded, Settings};

/// A voice-and-avatar companion in one process.
#[derive(Debug, Parser)]
#[command(version, about, propagate_version = true)]
pub struct Cli {
    /// Folder of settings, transcripts and logs [default: ~/.alice]
    #[arg(long, global = true, env = "ALICE_HOME")]
    pub home: Option<std::path::PathBuf>,

    /// Set one setting for this run, such as `--set voice.engine=kokoro`; may be repeated
    #[arg(long = "set", global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// What to do; `run` when it is left out
    #[command(subcommand)]
    pub command: Option<Command>,
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
    let _log = command.logs().then(|| crate::logging::start(&home, &loaded.settings.log));
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
