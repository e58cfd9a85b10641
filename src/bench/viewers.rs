//! A thousand viewers of one talk: does any delay another, what do they cost?

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant as WallInstant};

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::app::{Alice, Plan};
use crate::config::{Home, Settings};
use crate::kernel::contracts::TurnSource;

use super::instant::Instant;
use super::report::{Report, Row, Usage};

const VIEWERS: usize = 1000;

/// A reply of 200 words.
fn reply() -> String {
    (0..20).map(|n| format!("This is sentence number {n} of a reply that is long. ")).collect()
}

/// Lets a thousand viewers follow three replies, and one more that never reads.
///
/// # Errors
/// When the server can't start or a viewer is refused.
pub async fn run() -> anyhow::Result<Report> {
    crate::app::raise_file_limit();
    let folder = tempfile::tempdir()?;
    let mut settings = Settings::default();
    settings.server.listen = "127.0.0.1:0".into();
    settings.server.max_viewers = VIEWERS + 10;
    let mut plan = Plan::text();
    plan.server = true;
    plan.model = Some(Arc::new(Instant::new([reply()])));
    let alice = Alice::start(Home::at(folder.path()), settings, plan).await?;
    let address = alice.address().context("the server has no address")?;
    let before = Usage::now();
    let connect = || async move {
        let mut stream = TcpStream::connect(address).await?;
        let ask =
            format!("GET /events HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
        stream.write_all(ask.as_bytes()).await?;
        anyhow::Ok(stream)
    };
    let idler = connect().await?;
    let clock = Arc::clone(alice.bus().clock());
    let (late, mut lates) = mpsc::unbounded_channel::<(usize, f64)>();
    let completed = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for viewer in 0..VIEWERS {
        let stream = connect().await?;
        let (clock, late, completed) = (Arc::clone(&clock), late.clone(), Arc::clone(&completed));
        tasks.push(tokio::spawn(async move {
            let mut lines = BufReader::with_capacity(1024, stream).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let Some(data) = line.strip_prefix("data:") else { continue };
                let Ok(event) = serde_json::from_str::<serde_json::Value>(data) else { continue };
                let kind = event.get("type").and_then(|kind| kind.as_str()).unwrap_or_default();
                if let Some(at_ms) = event.get("at_ms").and_then(serde_json::Value::as_f64)
                    && kind == "segment_ready"
                {
                    let _ = late.send((viewer, clock.now_ms() - at_ms));
                }
                if kind == "turn_completed" {
                    completed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }));
    }
    drop(late);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = WallInstant::now();
    const TALKS: usize = 3;
    for talk in 1..=TALKS {
        alice.type_in("Tell me something long.", TurnSource::Terminal)?;
        while completed.load(Ordering::Relaxed) < talk * VIEWERS {
            anyhow::ensure!(
                begun.elapsed() < Duration::from_secs(60),
                "only {} of {} viewers saw the end of reply {talk}",
                completed.load(Ordering::Relaxed) % VIEWERS,
                VIEWERS
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let after = Usage::now();
    let mut delays = Vec::new();
    while let Ok((_, delay)) = lates.try_recv() {
        delays.push(delay);
    }
    let mut worst = delays.clone();
    worst.sort_by(f64::total_cmp);
    drop(idler);
    for task in tasks {
        task.abort();
    }
    alice.stop().await;
    let rows = [
        Row::of("event published → read by a viewer", "ms", &delays),
        Row::of("memory of 1,000 viewers, both ends", "MB", &[after.rss_mb - before.rss_mb])
            .map(|row| row.with_bars(Some(100.0), None)),
    ];
    Ok(Report {
        bench: "viewers".into(),
        rows: rows.into_iter().flatten().collect(),
        cpu_s: after.cpu_s - before.cpu_s,
        wall_s: begun.elapsed().as_secs_f64(),
        rss_mb: after.rss_mb,
        load_1m: (before.load_1m, after.load_1m),
        notes: vec![format!(
            "{VIEWERS} viewers and one that never reads, in one process with the server; {} events \
             read; slowest {:.0} ms",
            delays.len(),
            worst.last().copied().unwrap_or(0.0)
        )],
    })
}
