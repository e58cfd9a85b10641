use super::*;
use crate::ears::Vad;
use crate::ears::vad::Silero;
use crate::ears::wav::{Pace, WavSource};
use crate::kernel::clock::FakeClock;
use crate::testing::{fixture, weights};

fn recording(name: &str) -> Option<Vec<f32>> {
    let path = fixture(name)?;
    let mut source = WavSource::open(&path, Pace::Fast, FakeClock::shared()).unwrap();
    let mut heard = Vec::new();
    while let SourceEvent::Frame { samples, .. } = source.next(Duration::ZERO) {
        heard.extend_from_slice(&*samples);
    }
    Some(heard)
}

fn noise(seed: u32) -> impl FnMut() -> f32 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    }
}

fn rms(samples: &[f32]) -> f64 {
    (samples.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>() / samples.len().max(1) as f64)
        .sqrt()
}

fn scaled_to(mut samples: Vec<f32>, db: f64) -> Vec<f32> {
    let gain = (10f64.powf(db / 20.0) / rms(&samples)) as f32;
    samples.iter_mut().for_each(|s| *s *= gain);
    samples
}

/// A laptop's speaker at its microphone: reverberation of 0.25 s, 6 dB below the direct sound, no
/// bass, at `db` dBFS.
fn in_room(far: &[f32], db: f64) -> Vec<f32> {
    let mut noise = noise(7);
    let taps: Vec<f32> = (0..4_000)
        .map(|n| noise() * 10f32.powf(-3.0 * n as f32 / 4_000.0) * if n == 0 { 20.0 } else { 1.0 })
        .collect();
    let mut out = vec![0.0f32; far.len()];
    for (tap, weight) in taps.iter().enumerate() {
        for (place, sample) in out.iter_mut().skip(tap).zip(far) {
            *place += sample * weight;
        }
    }
    // One pole at 250 Hz.
    let (mut last_in, mut last_out) = (0.0, 0.0);
    for sample in &mut out {
        let high = 0.907 * (last_out + *sample - last_in);
        (last_in, last_out) = (*sample, high);
        *sample = high;
    }
    scaled_to(out, db)
}

/// What the microphone would give, and what the canceller makes of it.
struct Heard {
    raw: Vec<f32>,
    clean: Vec<f32>,
}

/// How the speaker behaves.
#[derive(Clone, Copy)]
struct Speaker {
    /// What it says of its latency, ms.
    told_ms: f64,
    /// How much later than it says the echo is heard, ms.
    hidden_ms: f64,
    /// Samples that it hands over at a time.
    chunk: usize,
    /// Jitter of its callbacks, ms.
    jitter_ms: f64,
}

const SPEAKER: Speaker = Speaker { told_ms: 40.0, hidden_ms: 60.0, chunk: 320, jitter_ms: 4.0 };

/// Plays `far` and hears its echo with `near` on top. The microphone's frames arrive 20 ms after
/// their last sample. `plays` says which milliseconds the speaker is open.
fn hear(
    far: &[f32],
    echo: &[f32],
    near: &[f32],
    speaker: Speaker,
    plays: impl Fn(usize) -> bool,
) -> Heard {
    let clock = FakeClock::shared();
    let (reference, mut canceller) = echo_canceller(clock.clone());
    let mut noise = noise(99);
    let mut room = vec![0.0f32; far.len() + 32_000];
    let mut heard = Heard { raw: Vec::new(), clean: Vec::new() };
    let (mut handed, mut framed) = (0, 0);
    let latency = ((speaker.told_ms + speaker.hidden_ms) * PER_MS) as usize;
    for ms in 0..far.len() / 16 {
        clock.advance(Duration::from_millis(1));
        let now = (ms + 1) * 16;
        let jitter = (f64::from(noise()) * speaker.jitter_ms * PER_MS) as isize;
        if handed + speaker.chunk <= far.len() && now as isize + jitter >= handed as isize {
            let chunk = handed..handed + speaker.chunk;
            if plays(ms) {
                let told = Duration::from_secs_f64(speaker.told_ms / 1_000.0);
                reference.played(&far[chunk.clone()], told);
                // The echo belongs to where the stream is, not to the jitter of the callback.
                for n in chunk {
                    room[n + latency] += echo[n];
                }
            }
            handed += speaker.chunk;
        }
        // A frame is there 20 ms after it was heard.
        if now >= framed + FRAME + 320 {
            let mut frame: [f32; FRAME] = std::array::from_fn(|n| {
                let at = framed + n;
                room[at] + near.get(at).copied().unwrap_or(0.0) + noise() * 1.4e-3
            });
            framed += FRAME;
            heard.raw.extend_from_slice(&frame);
            canceller.process(&mut frame, framed as f64 / PER_MS);
            heard.clean.extend_from_slice(&frame);
        }
    }
    heard
}

/// Decibels by which the canceller lowers what was heard from `from` seconds on.
fn erle(heard: &Heard, from: f64) -> f64 {
    let from = (from * f64::from(RATE)) as usize;
    20.0 * (rms(&heard.raw[from..]) / rms(&heard.clean[from..])).log10()
}

fn speech(silero: &mut Silero, samples: &[f32]) -> Vec<f32> {
    silero.reset();
    samples.as_chunks::<FRAME>().0.iter().map(|frame| silero.speech(frame).unwrap()).collect()
}

fn share(speech: &[f32]) -> f64 {
    speech.iter().filter(|p| **p >= 0.5).count() as f64 / speech.len() as f64
}

#[test]
fn nothing_played_nothing_changed() {
    let (_reference, mut canceller) = echo_canceller(FakeClock::shared());
    let mut frame: [f32; FRAME] = std::array::from_fn(|n| (n as f32 * 0.1).sin());
    let before = frame;
    for n in 1..10 {
        assert_eq!(canceller.process(&mut frame, 32.0 * f64::from(n)), 32.0 * f64::from(n));
        assert_eq!(frame, before);
    }
}

#[test]
fn the_voice_alone_is_not_speech() {
    let Some(home) = weights("silero-vad", "silero_vad.onnx") else { return };
    let Some(far) = recording("audio/silero-test-60s.wav") else { return };
    let far = scaled_to(far[..15 * RATE as usize].to_vec(), -22.0);
    let echo = in_room(&far, -26.0);
    let mut silero = Silero::open(&home).unwrap();
    for hidden_ms in [20.0, 160.0] {
        let heard = hear(&far, &echo, &[], Speaker { hidden_ms, ..SPEAKER }, |_| true);
        let (raw, clean) = (speech(&mut silero, &heard.raw), speech(&mut silero, &heard.clean));
        println!(
            "{hidden_ms} ms: ERLE {:.1} dB, speech {:.1} % -> {:.2} %",
            erle(&heard, 4.0),
            100.0 * share(&raw),
            100.0 * share(&clean)
        );
        assert!(share(&raw) > 0.5);
        assert!(share(&clean) < 0.01);
        assert!(erle(&heard, 4.0) > 20.0);
    }
}

#[test]
fn pauses_of_the_voice_do_not_lose_the_alignment() {
    let Some(far) = recording("audio/silero-test-60s.wav") else { return };
    let far = scaled_to(far[..20 * RATE as usize].to_vec(), -22.0);
    let echo = in_room(&far, -26.0);
    // Three seconds of voice, two without: the device closes and opens.
    let heard = hear(&far, &echo, &[], SPEAKER, |ms| ms % 5_000 < 3_000);
    let after = 15 * RATE as usize;
    let last = Heard {
        raw: heard.raw[after..after + 45_000].to_vec(),
        clean: heard.clean[after..after + 45_000].to_vec(),
    };
    println!("ERLE after three pauses {:.1} dB", erle(&last, 0.3));
    assert!(erle(&last, 0.3) > 15.0);
}

#[test]
fn frames_keep_their_place() {
    let clock = FakeClock::shared();
    let (reference, mut canceller) = echo_canceller(clock.clone());
    // A speaker that plays something very quiet, so that the canceller works.
    let (mut noise, mut voice) = (noise(3), noise(5));
    let mut given = Vec::new();
    let mut out = Vec::new();
    for n in 1..200u32 {
        clock.advance(Duration::from_millis(32));
        let far: Vec<f32> = (0..FRAME).map(|_| noise() * 1e-4).collect();
        reference.played(&far, Duration::from_millis(40));
        let mut frame: [f32; FRAME] = std::array::from_fn(|_| voice() * 0.3);
        given.extend_from_slice(&frame);
        let at_ms = 32.0 * f64::from(n);
        let stamped = canceller.process(&mut frame, at_ms);
        out.extend_from_slice(&frame);
        if n > 1 {
            assert_eq!(stamped, at_ms - 16.0);
        }
    }
    let score = |lag: usize| -> f64 {
        (40_000..44_000).map(|n| f64::from(out[n + lag]) * f64::from(given[n])).sum()
    };
    let best = (0..400).max_by(|a, b| score(*a).total_cmp(&score(*b))).unwrap();
    assert_eq!(best, DELAY);
}

#[test]
fn a_local_source_tells_that_it_cancels() {
    struct Fake(EchoPath);
    impl Source for Fake {
        fn next(&mut self, _: Duration) -> SourceEvent {
            SourceEvent::Frame { samples: Box::new([0.5; FRAME]), at_ms: 32.0 }
        }
        fn echo_path(&self) -> EchoPath {
            self.0
        }
    }
    for (path, told) in [(EchoPath::Open, EchoPath::Cancelled), (EchoPath::None, EchoPath::None)] {
        let mut source = LocalSource::new(Fake(path), echo_canceller(FakeClock::shared()).1);
        assert_eq!(source.echo_path(), told);
        assert_eq!(
            source.next(Duration::ZERO),
            SourceEvent::Frame { samples: Box::new([0.5; FRAME]), at_ms: 32.0 }
        );
    }
}

/// The tables of the documentation: `cargo nextest run --release echo --run-ignored only`.
#[test]
#[ignore = "a measurement of half a minute"]
fn measure() {
    let Some(home) = weights("silero-vad", "silero_vad.onnx") else { return };
    let Some(far) = recording("audio/silero-test-60s.wav") else { return };
    let Some(words) = recording("audio/jfk.wav") else { return };
    let far = scaled_to(far, -22.0);
    let mut silero = Silero::open(&home).unwrap();
    println!("echo alone, after 4 s: hidden delay, ERLE, speech frames raw -> cancelled");
    for hidden_ms in [20.0, 60.0, 80.0, 200.0, 400.0, 450.0] {
        let echo = in_room(&far, if hidden_ms == 80.0 { -28.0 } else { -26.0 });
        let heard = hear(&far, &echo, &[], Speaker { hidden_ms, ..SPEAKER }, |_| true);
        let (raw, clean) = (speech(&mut silero, &heard.raw), speech(&mut silero, &heard.clean));
        println!(
            "{hidden_ms:>4} ms  {:5.1} dB  {:4.1} % -> {:.2} %",
            erle(&heard, 4.0),
            100.0 * share(&raw),
            100.0 * share(&clean)
        );
    }
    println!(
        "12 utterances of 1.5 s over the voice: level, found (median ms to 6 frames >= 0.5), "
    );
    println!("found (median ms to 2 frames >= 0.2)");
    let echo = in_room(&far, -26.0);
    let starts = [0.32, 3.27, 5.4, 8.17];
    for ratio in [10.0, 0.0, -10.0] {
        let mut near = vec![0.0; far.len()];
        let mut onsets = Vec::new();
        for n in 0..12 {
            let from = (starts[n % 4] * f64::from(RATE)) as usize;
            let clip = scaled_to(words[from..from + 24_000].to_vec(), -26.0 + ratio);
            let at = (6 + 4 * n) * RATE as usize;
            near[at..at + clip.len()].copy_from_slice(&clip);
            onsets.push(at);
        }
        let heard = hear(&far, &echo, &near, SPEAKER, |_| true);
        let clean = speech(&mut silero, &heard.clean);
        let found = |threshold: f32, run: usize| {
            let mut delays: Vec<usize> = onsets
                .iter()
                .filter_map(|onset| {
                    let first = onset / FRAME;
                    let frames = clean.get(first..first + 47)?;
                    let at = frames.windows(run).position(|w| w.iter().all(|p| *p >= threshold))?;
                    Some((at + run) * 32)
                })
                .collect();
            delays.sort_unstable();
            (delays.len(), delays.get(delays.len() / 2).copied())
        };
        println!("{ratio:>4} dB  {:?}  {:?}", found(0.5, 6), found(0.2, 2));
    }
    let begun = std::time::Instant::now();
    hear(&far[..160_000], &echo, &[], SPEAKER, |_| true);
    println!("10 s of sound through the canceller and this test: {:?}", begun.elapsed());
}
