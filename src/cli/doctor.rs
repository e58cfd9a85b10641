//! `alice doctor`: check the machine and say what to do.

mod engines;
mod machine;

use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

use super::Context;

/// Arguments of `alice doctor`.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// One JSON object: `{"good", "checks": [{"area", "what", "state", "text", "advice"}]}`
    #[arg(long)]
    json: bool,
    /// Leave the self-test of the engines out, which takes some seconds each
    #[arg(long)]
    quick: bool,
}

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// As it should be.
    Good,
    /// Alice can do without.
    Missing,
    /// Alice can't do what she is set to do.
    Broken,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Check {
    /// Group, such as `audio`.
    area: &'static str,
    /// The thing, such as `microphone`.
    what: String,
    state: State,
    /// What was found.
    text: String,
    /// What to do about it; empty when there is nothing to do.
    advice: String,
    /// Speed of an engine: seconds of work for a second of sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    real_time_factor: Option<f64>,
    /// Speed of a language model.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_per_s: Option<f64>,
}

impl Check {
    fn new(
        area: &'static str,
        what: impl Into<String>,
        state: State,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            area,
            what: what.into(),
            state,
            text: text.into(),
            advice: advice.into(),
            real_time_factor: None,
            tokens_per_s: None,
        }
    }

    fn good(area: &'static str, what: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(area, what, State::Good, text, "")
    }
}

/// Runs the subcommand. The exit code is 1 when something that is needed is broken.
///
/// # Errors
/// When the output can't be written.
pub async fn run(args: Args, context: Context) -> anyhow::Result<ExitCode> {
    let mut report = Report { json: args.json, ..Report::default() };
    report.all(machine::settings(&context))?;
    report.all(machine::audio(&context.settings))?;
    report.all(machine::libraries(&context.home))?;
    report.all(machine::weights(&context))?;
    report.all(machine::keys(&context.settings))?;
    report.all(machine::server(&context))?;
    report.all(machine::disk(&context.home))?;
    if !args.quick {
        engines::run(&context, |check| report.add(check)).await?;
    }
    report.finish()
}

#[derive(Default)]
struct Report {
    json: bool,
    checks: Vec<Check>,
}

impl Report {
    fn all(&mut self, checks: Vec<Check>) -> anyhow::Result<()> {
        checks.into_iter().try_for_each(|check| self.add(check))
    }

    /// Takes a check, and shows it at once: a self-test takes a while.
    fn add(&mut self, check: Check) -> anyhow::Result<()> {
        if !self.json {
            std::io::stdout().write_all(line(&check).as_bytes())?;
        }
        self.checks.push(check);
        Ok(())
    }

    fn finish(self) -> anyhow::Result<ExitCode> {
        let good = self.checks.iter().all(|check| check.state != State::Broken);
        let mut out = std::io::stdout();
        if self.json {
            let report = serde_json::json!({ "good": good, "checks": self.checks });
            writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
        } else if good {
            writeln!(out, "\nnothing that is needed is broken")?;
        } else {
            writeln!(out, "\nsomething that is needed is broken; see the lines with `broken`")?;
        }
        Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn line(check: &Check) -> String {
    let state = match check.state {
        State::Good => "good",
        State::Missing => "missing",
        State::Broken => "broken",
    };
    let mut line = format!("{state:8} {:9} {:22} {}\n", check.area, check.what, check.text);
    if !check.advice.is_empty() {
        line += &format!("{:41} → {}\n", "", check.advice);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_shown_with_what_to_do() {
        let check = Check::new("audio", "microphone", State::Missing, "none", "plug one in");
        let shown = line(&check);
        assert!(shown.starts_with("missing  audio"), "{shown}");
        assert!(shown.ends_with("→ plug one in\n"), "{shown}");
        let json = serde_json::to_value(&check).unwrap();
        assert_eq!(json["state"], "missing");
        assert!(json.get("tokens_per_s").is_none());
    }
}
