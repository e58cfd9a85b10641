//! Hours of talk at the speed of the machine: does memory stay flat?

use std::time::{Duration, Instant as WallInstant};

use anyhow::Context;
use tokio::sync::mpsc;

use crate::app::{Alice, Plan};
use crate::config::{Home, Settings};
use crate::kernel::contracts::{Event, TurnSource};

use super::instant::Instant;
use super::report::{Report, Row, Usage};

/// Two hours of talk at five turns a minute.
const TURNS: u32 = 600;

/// Turns before the first look: caches and the history that a prompt holds are full by then.
const SETTLED: u32 = TURNS / 10;

const REPLY: &str = "Well, that is a good question, and I am glad you asked. The short answer is \
    that it depends on the day. If you like, I can tell you more about it.";

/// Types the turns of two hours to the real mind, voice pipeline and store, with a model that
/// answers at once and no sound.
///
/// # Errors
/// When a turn is not answered.
pub async fn run() -> anyhow::Result<Report> {
    let folder = tempfile::tempdir()?;
    let mut plan = Plan::text();
    plan.model = Some(std::sync::Arc::new(Instant::new([REPLY])));
    let alice = Alice::start(Home::at(folder.path()), Settings::default(), plan).await?;
    let (over, mut completed) = mpsc::unbounded_channel();
    drop(alice.bus().on(
        "bench",
        |event| matches!(event, Event::TurnCompleted { .. } | Event::TurnFailed { .. }),
        move |_| {
            // The benchmark has ended when nobody counts any more.
            let _ = over.send(());
            async {}
        },
    ));
    let (mut settled, begun) = (Usage::now(), WallInstant::now());
    let before = settled;
    for turn in 0..TURNS {
        if turn == SETTLED {
            settled = Usage::now();
        }
        alice.type_in(&format!("Tell me about the number {turn}."), TurnSource::Terminal)?;
        tokio::time::timeout(Duration::from_secs(10), completed.recv())
            .await
            .with_context(|| format!("turn {turn} was not answered"))?;
    }
    let after = Usage::now();
    alice.stop().await;
    let growth = after.rss_mb - settled.rss_mb;
    let rows = [Row::of("memory that two hours of talk added", "MB", &[growth])
        .map(|row| row.with_bars(Some(5.0), None))];
    Ok(Report {
        bench: "endurance".into(),
        rows: rows.into_iter().flatten().collect(),
        cpu_s: after.cpu_s - before.cpu_s,
        wall_s: begun.elapsed().as_secs_f64(),
        rss_mb: after.rss_mb,
        load_1m: (before.load_1m, after.load_1m),
        notes: vec![format!(
            "{TURNS} typed turns, text only: {:.1} MB after {SETTLED}, {:.1} MB after all; {:.1} MB \
             for each 1,000",
            settled.rss_mb,
            after.rss_mb,
            growth * 1000.0 / f64::from(TURNS - SETTLED)
        )],
    })
}
