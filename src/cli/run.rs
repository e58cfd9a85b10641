//! `alice run`: starts Alice and keeps her running.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::app::{Alice, Plan};
use crate::kernel::contracts::Event;
use crate::lock::Lock;

use super::Context;
use super::chat::find;

/// Arguments of `alice run`.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Go on with this session, or with the newest one
    #[arg(long, value_name = "SESSION")]
    resume: Option<Option<String>>,
    /// Address to listen on, such as 0.0.0.0:7878 (then every client needs the token)
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
}

/// Runs the subcommand.
///
/// # Errors
/// Another Alice on this home, a taken port, an unknown session.
pub async fn run(args: Args, context: Context) -> anyhow::Result<ExitCode> {
    let Context { home, mut settings, .. } = context;
    if let Some(listen) = args.listen {
        settings.server.listen = listen;
    }
    let mut lock = Lock::take(&home)?;
    crate::app::raise_file_limit();
    let mut plan = Plan::full();
    plan.resume = args.resume.map(|id| find(&home, id.as_deref())).transpose()?;
    let mut out = std::io::stdout();
    writeln!(out, "starting: weights, devices, language model")?;
    let alice = Alice::start(home, settings, plan).await?;
    drop(alice.bus().on(
        "terminal",
        |event| matches!(event, Event::TurnFailed { .. }),
        |event| async move {
            if let Event::TurnFailed { error, .. } = &event.event {
                super::say(&format!("warning: no answer: {error}"));
            }
        },
    ));
    let url = alice.url().context("the server has no address")?;
    if let Err(error) = lock.set_address(&url) {
        tracing::warn!(%error, "the lock file can't be written");
    }
    let engines = alice.engines();
    let none = || "none".to_owned();
    writeln!(out, "model: {}", alice.model_line())?;
    writeln!(out, "ears:  {}", engines.stt.unwrap_or_else(none))?;
    writeln!(out, "voice: {}", engines.tts.unwrap_or_else(none))?;
    writeln!(out, "alice is at {url}")?;
    out.flush()?;
    stop_signal().await?;
    writeln!(out, "stopping")?;
    alice.stop().await;
    drop(lock);
    Ok(ExitCode::SUCCESS)
}

/// Waits until the person or the system asks the process to stop.
async fn stop_signal() -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        tokio::select! {
            done = tokio::signal::ctrl_c() => done?,
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    Ok(())
}
