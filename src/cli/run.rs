//! `alice run`: starts Alice.

use std::process::ExitCode;

use super::Context;

/// Arguments of `alice run`.
#[derive(Debug, Default, clap::Args)]
pub struct Args {}

/// Runs the subcommand.
///
/// # Errors
/// What it could not do, as one line for the person.
pub async fn run(_args: Args, _context: Context) -> anyhow::Result<ExitCode> {
    anyhow::bail!("`alice run` is not in this build yet")
}
