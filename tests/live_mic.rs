//! The microphone against a real sound server: a recording played into a null sink is heard at real
//! time, the device goes and comes back, the server dies and is started again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use alice::config::Home;
use alice::ears::mic::Mic;
use alice::ears::vad::Silero;
use alice::ears::{Source, SourceEvent, Vad};
use alice::kernel::clock::{Clock, SystemClock};

#[path = "support/pulse.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod pulse;

/// A line of the listener.
#[derive(Debug)]
enum Line {
    Status(String),
    /// Frames heard so far, the age of the last one in ms, its speech probability.
    Frame {
        count: u64,
        age_ms: f64,
        speech: f32,
    },
}

/// The listener: this test again, in a process that knows no other sound server.
struct Listener {
    child: Child,
    lines: Receiver<(Instant, Line)>,
}

impl Listener {
    fn start(pulse: &pulse::Pulse) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "listener", "--ignored", "--nocapture", "--test-threads=1"]);
        pulse.aim(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let Some(line) = parse(&line) else { continue };
                if send.send((Instant::now(), line)).is_err() {
                    break;
                }
            }
        });
        Self { child, lines }
    }

    /// Waits for a status that begins so; returns how long it took.
    fn await_status(&self, begins: &str, patience: Duration) -> Duration {
        let begun = Instant::now();
        let mut seen = Vec::new();
        loop {
            let left = patience.saturating_sub(begun.elapsed());
            match self.lines.recv_timeout(left) {
                Ok((at, Line::Status(status))) => {
                    println!("{:5} ms  {status}", at.duration_since(begun).as_millis());
                    if status.starts_with(begins) {
                        return at.saturating_duration_since(begun);
                    }
                    seen.push(status);
                }
                Ok((_, Line::Frame { .. })) => {}
                Err(_) => panic!("no status `{begins}` within {patience:?}, but {seen:?}"),
            }
        }
    }

    /// The frames of a while.
    fn frames(&self, during: Duration) -> Vec<(u64, f64, f32)> {
        let begun = Instant::now();
        let mut frames = Vec::new();
        while let Some(left) = during.checked_sub(begun.elapsed()) {
            if let Ok((_, Line::Frame { count, age_ms, speech })) = self.lines.recv_timeout(left) {
                frames.push((count, age_ms, speech));
            }
        }
        frames
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn parse(line: &str) -> Option<Line> {
    if let Some(status) = line.strip_prefix("status ") {
        return Some(Line::Status(status.into()));
    }
    let mut values = line.strip_prefix("frame ")?.split(' ');
    Some(Line::Frame {
        count: values.next()?.parse().ok()?,
        age_ms: values.next()?.parse().ok()?,
        speech: values.next()?.parse().ok()?,
    })
}

fn recording() -> Option<PathBuf> {
    let root = std::env::var_os("ALICE_FIXTURES").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/fixtures"),
        PathBuf::from,
    );
    let path = root.join("audio/jfk.wav");
    path.is_file().then_some(path)
}

#[test]
fn a_microphone_is_heard_lost_and_found() {
    let Some(recording) = recording() else {
        eprintln!("skipped: fixture audio/jfk.wav is not here");
        return;
    };
    let Some(mut pulse) = pulse::Pulse::start() else { return };
    let listener = Listener::start(&pulse);
    // Nobody speaks: only zeros, which is live after a while.
    listener.await_status("Live", Duration::from_secs(10));

    std::thread::scope(|scope| {
        scope.spawn(|| pulse.speak(&recording));
        let frames = listener.frames(Duration::from_secs(8));
        let count = frames.last().unwrap().0 - frames.first().unwrap().0;
        println!("{count} frames in 8 s (250 are real time)");
        assert!((235..=265).contains(&count), "{count}");
        let mut ages: Vec<f64> = frames.iter().map(|frame| frame.1).collect();
        ages.sort_by(f64::total_cmp);
        let at = |share: f64| ages[(ages.len() as f64 * share) as usize];
        println!("age of a frame when it is given: p50 {:.0} ms, p95 {:.0} ms", at(0.5), at(0.95));
        let speech = frames.iter().filter(|frame| frame.2 >= 0.5).count();
        println!("{speech} of {} frames are speech", frames.len());
        if frames.iter().any(|frame| frame.2 >= 0.0) {
            assert!(speech > 80, "{speech}");
        }
    });

    println!("unplugged");
    pulse.unplug_microphone();
    let took = listener.await_status("Lost", Duration::from_secs(5));
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    std::thread::sleep(Duration::from_secs(2));
    println!("plugged in");
    pulse.plug_microphone();
    let took = listener.await_status("Live", Duration::from_secs(10));
    assert!(took < Duration::from_millis(4_500), "{took:?}");

    println!("the sound server dies");
    pulse.kill();
    let took = listener.await_status("Lost", Duration::from_secs(5));
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    pulse.restart();
    println!("and is there again");
    listener.await_status("Live", Duration::from_secs(15));
    assert!(!listener.frames(Duration::from_secs(1)).is_empty());
}

/// Not a test of its own: what [`Listener`] runs. Ends when its parent does.
#[test]
#[ignore = "run by the test above"]
fn listener() {
    if std::env::var_os("PULSE_SERVER").is_none() {
        return;
    }
    let parent = std::thread::spawn(|| std::io::stdin().lines().count());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let mut mic = Mic::open("default", Arc::clone(&clock)).unwrap();
    let mut silero = Silero::open_live(&Home::from_env()).ok();
    let mut count = 0u64;
    while !parent.is_finished() {
        match mic.next(Duration::from_millis(200)) {
            SourceEvent::Status(status) => println!(
                "status {:?} {} {}",
                status.state,
                status.device.unwrap_or_default(),
                status.reason.unwrap_or_default()
            ),
            SourceEvent::Frame { samples, at_ms } => {
                count += 1;
                let age_ms = clock.now_ms() - at_ms;
                // −1 where there are no weights.
                let speech = silero.as_mut().map_or(-1.0, |vad| vad.speech(&samples).unwrap());
                println!("frame {count} {age_ms:.1} {speech:.3}");
            }
            SourceEvent::Idle | SourceEvent::End => {}
        }
    }
}
