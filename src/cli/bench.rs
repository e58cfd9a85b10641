//! `alice bench`: how fast she is here, against the bars of the design.

use std::io::Write;
use std::process::ExitCode;

use crate::bench::report::Report;
use crate::bench::scenarios::{self, NAMES, Options};

use super::Context;

/// Arguments of `alice bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which: overhead, paced-piper, paced-piper-plain, paced-kokoro, paced-kokoro-plain, embedded,
    /// barge-in, idle, viewers, endurance [default: all]
    names: Vec<String>,
    /// Turns to measure in each
    #[arg(long, default_value_t = 20)]
    turns: usize,
    /// Seconds of listening in `idle`
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Print JSON lines only
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// An unknown benchmark, missing weights, or a talk that went wrong.
pub async fn run(args: Args, context: Context) -> anyhow::Result<ExitCode> {
    let options = Options { turns: args.turns.max(1), seconds: args.seconds.max(1) };
    if let [name] = args.names.as_slice() {
        let report = scenarios::run(name, &context.home, options).await?;
        print(&report, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let all = NAMES.map(str::to_owned);
    let names = if args.names.is_empty() { &all[..] } else { &args.names };
    for name in names {
        let report = scenarios::run_apart(name, options)?;
        print(&report, args.json)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(report: &Report, json: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if !json {
        write!(out, "{}", report.table())?;
    }
    writeln!(out, "{}", serde_json::to_string(report)?)?;
    Ok(())
}
