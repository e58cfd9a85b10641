//! `alice models`: fetch, check and list weights.

mod bars;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use indicatif::HumanBytes;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Context;
use crate::models::{Manifest, Model, Options, Puller, State, state, verify};

/// Arguments of `alice models`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show every model and whether it is here
    List {
        /// One JSON array
        #[arg(long)]
        json: bool,
    },
    /// Fetch models; what a talk needs when none is named
    Pull {
        /// Which
        names: Vec<String>,
        /// What the tests need too
        #[arg(long, conflicts_with = "names")]
        tests: bool,
        /// Every model there is
        #[arg(long, conflicts_with_all = ["names", "tests"])]
        all: bool,
    },
    /// Hash the files that are here and compare
    Verify {
        /// Which; all that are here when none is named
        names: Vec<String>,
    },
    /// Print the folder of a model
    Path {
        /// Which
        name: String,
    },
}

/// Runs the subcommand.
///
/// # Errors
/// What it could not do, as one line for the person.
pub async fn run(args: Args, context: Context) -> anyhow::Result<ExitCode> {
    let manifest = Manifest::embedded()?;
    match args.action {
        Action::List { json } => list(manifest, &context, json),
        Action::Pull { names, tests, all } => {
            let models = if all {
                manifest.models.iter().collect()
            } else if names.is_empty() {
                manifest.set(if tests { "test" } else { "default" })
            } else {
                chosen(manifest, &names)?
            };
            pull(&models, &context).await
        }
        Action::Verify { names } => verify_all(manifest, &names, &context),
        Action::Path { name } => {
            let model = manifest.model(&name)?;
            for file in model.files_here() {
                crate::models::locate(&context.home, &name, &file.path)?;
            }
            print(&format!("{}\n", context.home.models().join(&model.name).display()))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn chosen<'a>(manifest: &'a Manifest, names: &[String]) -> anyhow::Result<Vec<&'a Model>> {
    names.iter().map(|name| manifest.model(name)).collect()
}

fn print(text: &str) -> std::io::Result<()> {
    std::io::stdout().write_all(text.as_bytes())
}

/// The state of a model is that of its worst file.
fn worst(states: impl Iterator<Item = State>) -> State {
    let rank = |state: &State| match state {
        State::Ready => 0,
        State::Unchecked => 1,
        State::Partial => 2,
        State::Missing => 3,
        State::Wrong => 4,
    };
    states.max_by_key(rank).unwrap_or(State::Missing)
}

fn list(manifest: &Manifest, context: &Context, as_json: bool) -> anyhow::Result<ExitCode> {
    let root = context.home.models();
    let mut rows = Vec::new();
    let mut text = String::new();
    for model in &manifest.models {
        let folder = root.join(&model.name);
        let files: Vec<_> = model.files_here().map(|file| (file, state(&folder, file))).collect();
        let whole = worst(files.iter().map(|(_, state)| *state));
        let word = match whole {
            _ if model.unsupported().is_some() => "not for this system",
            State::Ready => "ready",
            State::Unchecked => "here, not checked",
            State::Partial => "partly here",
            State::Wrong => "damaged",
            State::Missing => "not here",
        };
        text += &format!(
            "{:20} {:>10}  {word:18} {}; {}\n",
            model.name,
            HumanBytes(model.bytes()).to_string(),
            model.role,
            model.licence
        );
        let files: Vec<_> = files
            .into_iter()
            .map(|(file, state)| {
                json!({
                    "path": file.path, "bytes": file.bytes, "sha256": file.sha256, "state": state,
                })
            })
            .collect();
        rows.push(json!({
            "name": model.name,
            "role": model.role,
            "licence": model.licence,
            "project": model.project,
            "sets": model.sets,
            "bytes": model.bytes(),
            "state": whole,
            "supported": model.unsupported().is_none(),
            "folder": folder,
            "files": files,
        }));
    }
    print(&if as_json { serde_json::to_string_pretty(&rows)? + "\n" } else { text })?;
    Ok(ExitCode::SUCCESS)
}

async fn pull(models: &[&Model], context: &Context) -> anyhow::Result<ExitCode> {
    let cancel = CancellationToken::new();
    let bars = bars::bars();
    let root = context.home.models();
    let puller = Puller::new(root, Options::default(), Arc::clone(&bars), cancel.clone())?;
    let stop = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            cancel.cancel();
        }
    });
    let report = puller.pull(models).await;
    stop.abort();
    let report = report?;
    if !report.failed.is_empty() {
        anyhow::bail!("{}", report.failed.join("\n"));
    }
    let line = match report.fetched {
        0 => format!("models: all {} are here", models.len()),
        1 => format!("models: fetched 1 file, {}", HumanBytes(report.bytes)),
        files => format!("models: fetched {files} files, {}", HumanBytes(report.bytes)),
    };
    bars.say(&line);
    Ok(ExitCode::SUCCESS)
}

fn verify_all(
    manifest: &Manifest,
    names: &[String],
    context: &Context,
) -> anyhow::Result<ExitCode> {
    let models =
        if names.is_empty() { manifest.models.iter().collect() } else { chosen(manifest, names)? };
    let mut good = true;
    for model in models {
        let folder = context.home.models().join(&model.name);
        if names.is_empty() && !folder.is_dir() {
            continue;
        }
        for file in model.files_here() {
            let name = format!("{}/{}", model.name, file.path);
            match verify(&folder, file) {
                Ok(()) => print(&format!("{name}: right\n"))?,
                Err(why) => {
                    good = false;
                    print(&format!("{name} {why}: run `alice models pull {}`\n", model.name))?;
                }
            }
        }
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
