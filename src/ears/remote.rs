//! The microphone of a remote device as a source: frames of any size at the device's rate.

use std::sync::Arc;
use std::time::Duration;

use super::tap::{Inlet, Tap, tap};
use super::{EchoPath, Source, SourceEvent};
use crate::kernel::clock::Clock;
use crate::kernel::ports::{RemoteHello, RemoteMic};

/// Rates that a remote device may send, Hz.
pub const REMOTE_RATES: std::ops::RangeInclusive<u32> = 8_000..=48_000;

/// The ears' end of a remote microphone. It gives [`SourceEvent::Idle`] while nothing arrives, and
/// [`SourceEvent::End`] never: whoever holds the connection takes the source away.
pub struct RemoteSource {
    tap: Tap,
    path: EchoPath,
}

/// Makes the two ends of a remote microphone: one for the connection, one for the ears.
///
/// # Errors
/// One line for the device's person when the rate of the hello is not taken.
pub fn remote_source(
    hello: &RemoteHello,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<(Box<dyn RemoteMic>, RemoteSource)> {
    let rate = hello.input_rate;
    anyhow::ensure!(
        REMOTE_RATES.contains(&rate),
        "input rate {rate} Hz is not supported: use {} to {} Hz",
        REMOTE_RATES.start(),
        REMOTE_RATES.end()
    );
    let (inlet, tap) = tap(rate, &hello.name)?;
    let path = match hello {
        RemoteHello { half_duplex: true, .. } => EchoPath::HalfDuplex,
        RemoteHello { echo_cancelled: true, .. } => EchoPath::Cancelled,
        _ => EchoPath::Open,
    };
    Ok((Box::new(Mic { inlet, clock }), RemoteSource { tap, path }))
}

struct Mic {
    inlet: Inlet,
    clock: Arc<dyn Clock>,
}

impl RemoteMic for Mic {
    fn heard(&mut self, samples: &[i16]) {
        let scaled = samples.iter().map(|sample| f32::from(*sample) / 32_768.0);
        self.inlet.write(scaled, self.clock.now_ms());
    }
}

impl Source for RemoteSource {
    fn next(&mut self, wait: Duration) -> SourceEvent {
        self.tap.frame(wait).unwrap_or(SourceEvent::Idle)
    }

    fn echo_path(&self) -> EchoPath {
        self.path
    }
}

/// A microphone of this machine while the voice sounds elsewhere: the canceller gets nothing of it, so
/// what it says may be heard.
pub struct Apart(pub Box<dyn Source>);

impl Source for Apart {
    fn next(&mut self, wait: Duration) -> SourceEvent {
        self.0.next(wait)
    }

    fn echo_path(&self) -> EchoPath {
        match self.0.echo_path() {
            EchoPath::Cancelled => EchoPath::Open,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ears::FRAME;
    use crate::kernel::clock::FakeClock;

    fn hello(input_rate: u32) -> RemoteHello {
        RemoteHello {
            name: "phone".into(),
            input_rate,
            output_rate: 24_000,
            echo_cancelled: false,
            half_duplex: false,
            acknowledges: false,
            sets_volume: false,
        }
    }

    fn pull(source: &mut RemoteSource) -> Vec<f32> {
        let mut heard = Vec::new();
        while let SourceEvent::Frame { samples, .. } = source.next(Duration::ZERO) {
            heard.extend_from_slice(&*samples);
        }
        heard
    }

    #[test]
    fn frames_of_any_size_and_rate_arrive() {
        for rate in [8_000, 16_000, 24_000, 44_100, 48_000] {
            let (mut mic, mut source) = remote_source(&hello(rate), FakeClock::shared()).unwrap();
            assert_eq!(source.next(Duration::ZERO), SourceEvent::Idle);
            let second: Vec<i16> = (0..rate)
                .map(|n| ((n as f32 * 2_764.6 / rate as f32).sin() * 16_384.0) as i16)
                .collect();
            let mut heard = Vec::new();
            let mut rest = second.as_slice();
            for size in [1, 7, 320, 960, 3, 5_000].into_iter().cycle() {
                let (chunk, later) = rest.split_at(size.min(rest.len()));
                mic.heard(chunk);
                heard.extend(pull(&mut source));
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            // All but what does not fill a frame, and the filter's few ms.
            assert!(heard.len() >= 16_000 - FRAME - 200, "{rate}: {}", heard.len());
            let inner = &heard[800..15_000];
            let level = (inner.iter().map(|s| s * s).sum::<f32>() / inner.len() as f32).sqrt();
            assert!((level - 0.3535).abs() < 0.01, "{rate}: {level}");
        }
    }

    #[test]
    fn a_device_that_sends_too_much_loses_its_oldest_sound() {
        let (mut mic, mut source) = remote_source(&hello(16_000), FakeClock::shared()).unwrap();
        for second in 0..5 {
            mic.heard(&[second * 1_000; 16_000]);
        }
        let heard = pull(&mut source);
        assert!(heard.len() <= 32_000 && heard.len() > 31_000);
        assert!(heard.iter().all(|sample| *sample > 2_900.0 / 32_768.0));
        // And goes on as if nothing had been.
        mic.heard(&[7_000; 1_024]);
        assert!(!pull(&mut source).is_empty());
    }

    #[test]
    fn a_gap_is_idle_and_stamps_go_on_after_it() {
        let clock = FakeClock::shared();
        let (mut mic, mut source) = remote_source(&hello(16_000), clock.clone()).unwrap();
        mic.heard(&[1; 512]);
        assert!(matches!(source.next(Duration::ZERO), SourceEvent::Frame { at_ms: 0.0, .. }));
        clock.advance(Duration::from_secs(3));
        assert_eq!(source.next(Duration::ZERO), SourceEvent::Idle);
        mic.heard(&[1; 512]);
        assert!(matches!(source.next(Duration::ZERO), SourceEvent::Frame { at_ms: 3_000.0, .. }));
    }

    #[test]
    fn the_hello_tells_the_echo_path() {
        let path = |echo_cancelled, half_duplex| {
            let hello = RemoteHello { echo_cancelled, half_duplex, ..hello(16_000) };
            remote_source(&hello, FakeClock::shared()).unwrap().1.echo_path()
        };
        assert_eq!(path(false, false), EchoPath::Open);
        assert_eq!(path(true, false), EchoPath::Cancelled);
        assert_eq!(path(false, true), EchoPath::HalfDuplex);
        assert_eq!(path(true, true), EchoPath::HalfDuplex);
    }

    #[test]
    fn a_voice_that_sounds_elsewhere_is_not_cancelled_here() {
        let apart = |echo_cancelled, half_duplex| {
            let hello = RemoteHello { echo_cancelled, half_duplex, ..hello(16_000) };
            let (mut mic, source) = remote_source(&hello, FakeClock::shared()).unwrap();
            let mut apart = Apart(Box::new(source));
            mic.heard(&[1; 512]);
            assert!(matches!(apart.next(Duration::ZERO), SourceEvent::Frame { .. }));
            apart.echo_path()
        };
        assert_eq!(apart(true, false), EchoPath::Open);
        assert_eq!(apart(false, false), EchoPath::Open);
        assert_eq!(apart(true, true), EchoPath::HalfDuplex);
    }

    #[test]
    fn an_odd_rate_is_refused() {
        let error = remote_source(&hello(96_000), FakeClock::shared()).err().unwrap();
        assert_eq!(error.to_string(), "input rate 96000 Hz is not supported: use 8000 to 48000 Hz");
    }
}
