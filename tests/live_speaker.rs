//! The local speaker on a PulseAudio server of its own: what is recorded at the sink is what counts.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "support/pulse.rs"]
#[expect(dead_code, reason = "each live test uses its part of the server")]
mod pulse;

use std::sync::Arc;
use std::time::{Duration, Instant};

use alice::kernel::ids::{SegmentId, TurnId};
use alice::kernel::ports::{Pcm, Speaker, SpeakerEvent};
use alice::voice::player::LocalSpeaker;
use alice::voice::switch::{SpeakerSwitch, SwitchEvent, SwitchEvents};
use pulse::{Pulse, RATE, Recording, rms_db};

const VOICE_RATE: u32 = 22_050;

/// Speaks through the switch as the voice does.
struct Voice {
    switch: SpeakerSwitch,
    events: SwitchEvents,
    next: u32,
}

impl Voice {
    fn open() -> Self {
        let switch = SpeakerSwitch::default();
        let events = switch.events().unwrap();
        let port = switch.port();
        let speaker = LocalSpeaker::open("default", None, port.clone()).unwrap();
        switch.use_speaker(&port, speaker);
        Self { switch, events, next: 0 }
    }

    fn play(&mut self, pcm: &Arc<Pcm>) -> SegmentId {
        let segment = SegmentId { turn: TurnId(1), index: self.next };
        self.next += 1;
        self.switch.play(segment, Arc::clone(pcm));
        segment
    }

    /// Waits for an event of the speaker that fits.
    fn until(&mut self, what: &str, fits: impl Fn(&SpeakerEvent) -> bool) -> SpeakerEvent {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(15) {
            while let Some(event) = self.events.try_next() {
                if let SwitchEvent::Speaker(event) = event
                    && fits(&event)
                {
                    return event;
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("no {what}");
    }
}

fn tone(ms: usize) -> Arc<Pcm> {
    let samples = (0..VOICE_RATE as usize * ms / 1000)
        .map(|n| (n as f32 * 440.0 * std::f32::consts::TAU / VOICE_RATE as f32).sin() * 0.5)
        .collect();
    Arc::new(Pcm { rate: VOICE_RATE, samples })
}

/// Samples of a recording from the first to the last that are louder than a whisper.
fn sounding(samples: &[i16]) -> std::ops::Range<usize> {
    let loud = |sample: &i16| sample.unsigned_abs() > 300;
    let first = samples.iter().position(loud).unwrap_or(0);
    let last = samples.iter().rposition(loud).map_or(first, |last| last + 1);
    first..last
}

fn settle(recording: &Recording, ms: u64) {
    let wanted = recording.len() + (RATE as u64 * ms / 1000) as usize;
    let begun = Instant::now();
    while recording.len() < wanted && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

#[test]
fn live_speaker() {
    let Some(mut pulse) = Pulse::start() else { return };
    aim_this_process(&pulse);
    let mut voice = Voice::open();
    voice.until("ready", |event| matches!(event, SpeakerEvent::Ready(_)));

    plays_all_of_a_sound(&pulse, &mut voice);
    plays_segments_without_a_gap(&pulse, &mut voice);
    ducks_by_eighteen_decibels(&pulse, &mut voice);
    stops_soon(&pulse, &mut voice);
    comes_back(&mut pulse, &mut voice);
}

/// The audio library finds its server through the environment, so this file has one test only.
fn aim_this_process(pulse: &Pulse) {
    let mut command = std::process::Command::new("true");
    for (name, value) in pulse.aim(&mut command).get_envs() {
        if let Some(value) = value {
            // SAFETY: no other thread of this process reads or writes the environment yet.
            unsafe { std::env::set_var(name, value) };
        }
    }
}

fn plays_all_of_a_sound(pulse: &Pulse, voice: &mut Voice) {
    let recording = pulse.record("speaker.monitor");
    settle(&recording, 200);
    let segment = voice.play(&tone(500));
    voice.until("start", |event| *event == SpeakerEvent::Started(segment));
    voice.until("end", |event| *event == SpeakerEvent::Finished(segment));
    settle(&recording, 200);
    let heard = recording.stop();
    let sound = sounding(&heard);
    let ms = sound.len() as f64 * 1000.0 / f64::from(RATE);
    println!("a tone of 500 ms: {ms:.1} ms at the sink, {:.1} dB", rms_db(&heard[sound.clone()]));
    assert!((ms - 500.0).abs() < 3.0, "{ms} ms of 500 ms arrived");
    assert!((rms_db(&heard[sound]) + 9.0).abs() < 0.5);
}

fn plays_segments_without_a_gap(pulse: &Pulse, voice: &mut Voice) {
    let recording = pulse.record("speaker.monitor");
    settle(&recording, 200);
    let tone = tone(200);
    let segments = [voice.play(&tone), voice.play(&tone), voice.play(&tone)];
    for segment in segments {
        voice.until("end", |event| *event == SpeakerEvent::Finished(segment));
    }
    settle(&recording, 200);
    let heard = recording.stop();
    let sound = heard[sounding(&heard)].to_vec();
    let ms = sound.len() as f64 * 1000.0 / f64::from(RATE);
    let quietest = sound.chunks_exact(RATE as usize / 100).map(rms_db).fold(0.0, f64::min);
    println!("three tones of 200 ms: {ms:.1} ms, quietest 10 ms {quietest:.1} dB");
    assert!((ms - 600.0).abs() < 3.0, "{ms} ms of 600 ms arrived");
    assert!(quietest > -12.0, "there is a hole of {quietest} dB");
}

fn ducks_by_eighteen_decibels(pulse: &Pulse, voice: &mut Voice) {
    let recording = pulse.record("speaker.monitor");
    settle(&recording, 200);
    let segment = voice.play(&tone(1500));
    let at = |ms| move |e: &SpeakerEvent| matches!(e, SpeakerEvent::Progress(_, d) if d.as_millis() >= ms);
    voice.until("400 ms", at(400));
    voice.switch.duck(true);
    voice.until("900 ms", at(900));
    voice.switch.duck(false);
    voice.until("end", |event| *event == SpeakerEvent::Finished(segment));
    settle(&recording, 200);
    let heard = recording.stop();
    let begins = sounding(&heard).start;
    let part = |from: usize, to: usize| {
        let sample = |ms: usize| begins + ms * RATE as usize / 1000;
        rms_db(&heard[sample(from)..sample(to)])
    };
    let (full, low, back) = (part(100, 300), part(600, 850), part(1200, 1450));
    println!("full {full:.2} dB, ducked {:.2} dB below, back {:.2} dB", full - low, back - full);
    assert!((full - low - 18.0).abs() < 0.2, "ducked by {} dB", full - low);
    assert!((back - full).abs() < 0.2);
}

fn stops_soon(pulse: &Pulse, voice: &mut Voice) {
    let recording = pulse.record("speaker.monitor");
    settle(&recording, 200);
    let tone = tone(3000);
    let mut silences = Vec::new();
    for round in 0..20 {
        let segment = voice.play(&tone);
        voice.play(&tone);
        let wanted = 200 + round * 7;
        let far = |event: &SpeakerEvent| {
            matches!(event, SpeakerEvent::Progress(s, d)
                if *s == segment && d.as_millis() >= wanted)
        };
        voice.until("progress", far);
        let before = recording.len();
        let asked = Instant::now();
        let (stopped, heard) = voice.switch.stop().unwrap();
        assert_eq!(stopped, segment);
        // The recording's own delay is in the figure: what had been recorded at the stop is less
        // than what had been played.
        settle(&recording, 300);
        let after = recording.since(before);
        let silent = sounding(&after).end as f64 * 1000.0 / f64::from(RATE);
        silences.push(silent);
        assert!(heard.as_millis() >= wanted && asked.elapsed() < Duration::from_secs(5));
        while let Some(event) = voice.events.try_next() {
            assert!(
                matches!(event, SwitchEvent::Speaker(SpeakerEvent::Drained)),
                "{event:?} after the stop"
            );
        }
    }
    let (p50, p95) = (percentile(&mut silences, 0.5), percentile(&mut silences, 0.95));
    println!("stop to silence at the recording: p50 {p50:.1} ms, p95 {p95:.1} ms, {silences:.0?}");
    assert!(p50 < 80.0 && p95 < 150.0, "p50 {p50} ms, p95 {p95} ms");
}

fn comes_back(pulse: &mut Pulse, voice: &mut Voice) {
    voice.play(&tone(3000));
    voice.until("start", |event| matches!(event, SpeakerEvent::Started(_)));
    let killed = Instant::now();
    pulse.kill();
    let SpeakerEvent::Lost(reason) =
        voice.until("loss", |event| matches!(event, SpeakerEvent::Lost(_)))
    else {
        unreachable!()
    };
    println!("the server was killed: lost after {:?}: {reason}", killed.elapsed());
    assert_eq!(voice.switch.stop(), None, "what was queued is lost");
    std::thread::sleep(Duration::from_millis(700));
    pulse.restart();
    let restarted = Instant::now();
    voice.until("return", |event| matches!(event, SpeakerEvent::Ready(_)));
    println!("back {:?} after the server was", restarted.elapsed());
    plays_all_of_a_sound(pulse, voice);
}
