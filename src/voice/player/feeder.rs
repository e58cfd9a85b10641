//! The thread `speaker`: keeps the device open, feeds it, reports.

use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::deck::{Controls, Feed};
use super::line::{Desk, Line, lock};
use super::output::{Choice, Output};
use crate::kernel::ports::{EchoReference, SpeakerEvent};
use crate::voice::switch::SpeakerPort;
use crate::voice::track::PROGRESS;

/// A device that asks for nothing for so long is gone.
const DEAD: Duration = Duration::from_secs(1);
/// How often a better device is looked for.
const LOOK: Duration = Duration::from_secs(2);
/// Waits between attempts to open a device: the first, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(4));

/// The thread `speaker`.
pub(super) struct Feeder {
    wanted: String,
    echo: Option<Arc<dyn EchoReference>>,
    port: SpeakerPort,
    desk: Weak<Mutex<Desk>>,
    controls: Arc<Controls>,
    output: Option<(Output, Feed)>,
    line: Line,
    /// The port was told that there is no device.
    lost: bool,
    retry: (Instant, Duration),
    look: Instant,
    alive: (u64, Instant),
}

impl Feeder {
    pub(super) fn new(
        wanted: &str,
        echo: Option<Arc<dyn EchoReference>>,
        port: SpeakerPort,
        desk: Weak<Mutex<Desk>>,
        controls: Arc<Controls>,
    ) -> Self {
        let now = Instant::now();
        Self {
            wanted: wanted.to_owned(),
            echo,
            port,
            desk,
            controls,
            output: None,
            line: Line::default(),
            lost: false,
            retry: (now, RETRY.0),
            look: now,
            alive: (0, now),
        }
    }

    /// Runs until the speaker is dropped.
    pub(super) fn run(mut self) {
        while let Some(desk) = self.desk.upgrade() {
            let now = Instant::now();
            self.keep_open(&desk, now);
            let busy = self.output.as_mut().is_some_and(|(output, feed)| {
                self.line.feed(&desk, feed);
                self.line.report(&desk, feed, &self.port, output.latency())
            });
            drop(desk);
            // A new segment, a stop and each report wake the thread; the rest is looking after things.
            thread::park_timeout(match (&self.output, busy) {
                (Some(_), true) => PROGRESS / 4,
                (Some(_), false) => DEAD / 2,
                (None, _) => self.retry.0.saturating_duration_since(now).max(RETRY.0 / 10),
            });
        }
    }

    /// Opens the device, notices its loss, follows the person's choice.
    fn keep_open(&mut self, desk: &Mutex<Desk>, now: Instant) {
        if let Some((output, _)) = &self.output {
            let blocks = self.controls.blocks();
            if blocks != self.alive.0 {
                self.alive = (blocks, now);
            }
            let gone = output.error().or_else(|| {
                (now.saturating_duration_since(self.alive.1) >= DEAD)
                    .then(|| "the output device takes no more sound".to_owned())
            });
            if let Some(reason) = gone {
                return self.lose(desk, reason, now);
            }
            if now >= self.look && lock(desk).is_idle() {
                self.look = now + LOOK;
                if output.is_outdated(&self.wanted) {
                    self.output = None;
                    self.retry = (now, RETRY.0);
                }
            }
        }
        if self.output.is_none() && now >= self.retry.0 {
            let opened = Choice::make(&self.wanted)
                .and_then(|choice| Output::open(choice, self.echo.clone(), &self.controls));
            match opened {
                Ok((output, feed)) => {
                    lock(desk).rate = output.rate();
                    self.alive = (self.controls.blocks(), Instant::now());
                    self.look = Instant::now() + LOOK;
                    self.retry.1 = RETRY.0;
                    self.lost = false;
                    tracing::info!(device = output.name(), rate = output.rate(), "speaker open");
                    self.port.send(SpeakerEvent::Ready(output.name().to_owned()));
                    self.output = Some((output, feed));
                }
                Err(reason) => self.lose(desk, reason, now),
            }
        }
    }

    fn lose(&mut self, desk: &Mutex<Desk>, reason: String, now: Instant) {
        self.output = None;
        self.line = Line::default();
        self.retry = (now + self.retry.1, (self.retry.1 * 2).min(RETRY.1));
        let mut desk = lock(desk);
        // What was queued is lost with the device.
        desk.stop();
        if !std::mem::replace(&mut self.lost, true) {
            // The person is told by the voice, which knows what is done instead.
            tracing::info!(reason, "speaker lost");
            self.port.send(SpeakerEvent::Lost(reason));
        }
    }
}
