use std::io::Cursor;
use std::path::PathBuf;

use hound::WavWriter;

use super::*;
use crate::kernel::clock::FakeClock;

fn wav(spec: WavSpec, frames: usize, sample: impl Fn(usize, usize) -> f32) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = WavWriter::new(&mut bytes, spec).unwrap();
    let full = 2f32.powi(i32::from(spec.bits_per_sample) - 1) - 1.0;
    for frame in 0..frames {
        for channel in 0..usize::from(spec.channels) {
            let value = sample(frame, channel);
            match spec.sample_format {
                SampleFormat::Float => writer.write_sample(value).unwrap(),
                SampleFormat::Int => writer.write_sample((value * full) as i32).unwrap(),
            }
        }
    }
    writer.finalize().unwrap();
    bytes.into_inner()
}

fn spec(sample_rate: u32, channels: u16, bits_per_sample: u16) -> WavSpec {
    let sample_format = if bits_per_sample == 32 { SampleFormat::Float } else { SampleFormat::Int };
    WavSpec { channels, sample_rate, bits_per_sample, sample_format }
}

fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.wav");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn fault(bytes: &[u8]) -> String {
    let (folder, path) = file(bytes);
    let error = WavSource::open(&path, Pace::Fast, FakeClock::shared()).err().unwrap();
    format!("{error:#}").replace(&format!("{}/", folder.path().display()), "")
}

fn all(source: &mut WavSource) -> Vec<f32> {
    let mut heard = Vec::new();
    while let SourceEvent::Frame { samples, .. } = source.next(Duration::ZERO) {
        heard.extend_from_slice(&*samples);
    }
    heard
}

#[test]
fn any_format_is_the_same_sound() {
    let tone = |rate: u32| {
        move |frame: usize, _| {
            (std::f32::consts::TAU * 440.0 * frame as f32 / rate as f32).sin() * 0.5
        }
    };
    for (rate, channels, bits) in
        [(16_000, 1, 16), (48_000, 2, 16), (44_100, 1, 24), (8_000, 1, 8), (96_000, 6, 32)]
    {
        let bytes = wav(spec(rate, channels, bits), rate as usize, tone(rate));
        let (_folder, path) = file(&bytes);
        let mut source = WavSource::open(&path, Pace::Fast, FakeClock::shared()).unwrap();
        let heard = all(&mut source);
        assert_eq!(heard.len(), 32 * FRAME, "{rate} Hz");
        let inner = &heard[1_600..14_400];
        let level = (inner.iter().map(|s| s * s).sum::<f32>() / inner.len() as f32).sqrt();
        let wanted = 0.5 / 2f32.sqrt();
        assert!((level / wanted - 1.0).abs() < 0.02, "{rate} Hz {bits} bits: {level}");
        let crossings = inner.windows(2).filter(|pair| pair[0] < 0.0 && pair[1] >= 0.0).count();
        assert!(crossings.abs_diff(352) <= 1, "{rate} Hz: {crossings}");
        assert!(heard[16_000..].iter().all(|s| s.abs() < 0.02), "{rate} Hz: silence at the end");
    }
}

#[test]
fn channels_are_averaged() {
    let bytes = wav(spec(RATE, 2, 32), FRAME, |_, channel| [0.5, -0.1][channel]);
    let source = WavSource::from_reader(Cursor::new(bytes), "-", Pace::Fast, FakeClock::shared());
    assert_eq!(all(&mut source.unwrap()), [0.2; FRAME]);
}

#[test]
fn silence_follows_when_asked() {
    let bytes = wav(spec(RATE, 1, 32), FRAME, |_, _| 0.5);
    let mut source =
        WavSource::from_reader(Cursor::new(bytes), "-", Pace::Fast, FakeClock::shared())
            .unwrap()
            .with_silence(Duration::from_millis(100));
    let heard = all(&mut source);
    assert_eq!(heard.len(), 5 * FRAME);
    assert_eq!(heard[FRAME..], [0.0; 4 * FRAME]);
    assert_eq!(source.next(Duration::ZERO), SourceEvent::End);
}

#[test]
fn real_time_is_the_clocks_time() {
    let clock = FakeClock::shared();
    clock.advance(Duration::from_millis(1_000));
    let bytes = wav(spec(RATE, 1, 16), 3 * FRAME, |_, _| 0.1);
    let mut source =
        WavSource::from_reader(Cursor::new(bytes), "-", Pace::RealTime, clock.clone()).unwrap();
    assert_eq!(source.next(Duration::ZERO), SourceEvent::Idle);
    clock.advance(Duration::from_millis(31));
    assert_eq!(source.next(Duration::ZERO), SourceEvent::Idle);
    clock.advance(Duration::from_millis(1));
    let SourceEvent::Frame { at_ms, .. } = source.next(Duration::ZERO) else { panic!() };
    assert_eq!(at_ms, 1_032.0);
    // The reader was late: both frames are there at once, with the times at which they sounded.
    clock.advance(Duration::from_millis(500));
    let SourceEvent::Frame { at_ms, .. } = source.next(Duration::ZERO) else { panic!() };
    assert_eq!(at_ms, 1_064.0);
    let SourceEvent::Frame { at_ms, .. } = source.next(Duration::ZERO) else { panic!() };
    assert_eq!(at_ms, 1_096.0);
    assert_eq!(source.next(Duration::ZERO), SourceEvent::End);
}

#[test]
fn broken_files_say_what_is_wrong() {
    let whole = wav(spec(RATE, 1, 16), RATE as usize, |_, _| 0.1);
    assert_eq!(fault(&[]), "`a.wav` is empty");
    assert_eq!(fault(&whole[..20]), "`a.wav` ends within its WAV header");
    assert_eq!(
        fault(&whole[..16_044]),
        "`a.wav` is cut short: its header promises 1.0 s of sound, 0.5 s are there"
    );
    assert_eq!(
        fault(b"ID3 this is an MP3 file or so"),
        "`a.wav` is not a WAV file: convert it with `sox` or `ffmpeg` first"
    );
    assert_eq!(fault(&wav(spec(RATE, 1, 16), 0, |_, _| 0.0)), "`a.wav` holds no sound");
    assert_eq!(
        fault(&wav(spec(1_000, 1, 16), 100, |_, _| 0.0)),
        "can't use `a.wav`: sample rate 1000 Hz is not supported: use 4000 to 384000 Hz"
    );
    let mut compressed = whole;
    compressed[20] = 6; // A-law
    assert_eq!(
        fault(&compressed),
        "`a.wav` is a compressed WAV: convert it to 16-bit PCM with `sox` or `ffmpeg` first"
    );
}

#[test]
fn a_missing_file_is_named() {
    let missing = PathBuf::from("no/such.wav");
    let error = WavSource::open(&missing, Pace::Fast, FakeClock::shared()).err().unwrap();
    assert!(format!("{error:#}").starts_with("can't open `no/such.wav`: "), "{error:#}");
}

#[test]
fn a_pipe_that_does_not_know_its_length_is_read_to_its_end() {
    for length in [0x7fff_ffff_u32, 0xffff_ffff] {
        let mut bytes = wav(spec(RATE, 2, 16), 2 * FRAME, |_, _| 0.25);
        let place = bytes.len() - 2 * FRAME * 4 - 4;
        bytes[place..place + 4].copy_from_slice(&length.to_le_bytes());
        let (_folder, path) = file(&bytes);
        let mut source = WavSource::open(&path, Pace::Fast, FakeClock::shared()).unwrap();
        assert_eq!(all(&mut source).len(), 2 * FRAME);
    }
}

#[test]
fn a_whole_recording_has_its_own_length() {
    for (rate, frames, expected) in [(16_000, 1_000, 1_000), (48_000, 3_000, 1_000)] {
        let bytes = wav(spec(rate, 1, 16), frames, |_, _| 0.25);
        let source =
            WavSource::from_reader(Cursor::new(bytes), "a", Pace::Fast, FakeClock::shared());
        let source = source.unwrap().with_silence(Duration::from_secs(1));
        assert_eq!(source.read_whole().unwrap().len(), expected);
    }
}

#[test]
fn a_stream_that_ends_too_early_is_not_whole() {
    let mut bytes = wav(spec(16_000, 1, 16), 1_000, |_, _| 0.25);
    bytes.truncate(1_000);
    let whole = |bytes: Vec<u8>| {
        WavSource::from_reader(Cursor::new(bytes), "a", Pace::Fast, FakeClock::shared())?
            .read_whole()
    };
    let error = whole(bytes).unwrap_err().to_string();
    assert_eq!(error, "`a` is cut short: its header promises more sound");
    assert_eq!(whole(Vec::new()).unwrap_err().to_string(), "`a` is empty");
}
