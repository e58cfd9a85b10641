//! `alice config`: show settings and where they come from.

use std::io::Write;
use std::process::ExitCode;

use serde_json::json;

use super::Context;
use crate::config::{Entry, Loaded};

/// Arguments of `alice config`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print the settings in force; secrets are never printed
    Show {
        /// Say where each value comes from
        #[arg(long)]
        origin: bool,
        /// One JSON object: key to `{"value", "origin"}`
        #[arg(long)]
        json: bool,
    },
    /// Print the path of the settings file
    Path,
}

impl Args {
    /// Whether only the path is asked, which needs no settings.
    pub fn is_path(&self) -> bool {
        matches!(self.action, Action::Path)
    }
}

/// Runs the subcommand.
///
/// # Errors
/// When the output can't be written.
pub async fn run(args: Args, context: Context) -> anyhow::Result<ExitCode> {
    let text = match args.action {
        Action::Path => format!("{}\n", context.home.config_file().display()),
        Action::Show { json: true, .. } => json_text(&context.loaded)?,
        Action::Show { origin, .. } => plain_text(&context.loaded, origin),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn plain_text(loaded: &Loaded, with_origin: bool) -> String {
    let lines: Vec<_> = loaded
        .entries()
        .into_iter()
        .map(|Entry { key, value, origin }| (format!("{key} = {value}"), origin))
        .collect();
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0).min(60);
    lines
        .into_iter()
        .map(
            |(line, origin)| {
                if with_origin {
                    format!("{line:width$}  # {origin}\n")
                } else {
                    format!("{line}\n")
                }
            },
        )
        .collect()
}

fn json_text(loaded: &Loaded) -> serde_json::Result<String> {
    let entries: serde_json::Map<_, _> = loaded
        .entries()
        .into_iter()
        .map(|Entry { key, value, origin }| (key, json!({ "value": value, "origin": origin })))
        .collect();
    serde_json::to_string_pretty(&entries).map(|text| text + "\n")
}
