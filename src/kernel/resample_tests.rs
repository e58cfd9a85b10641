use std::f64::consts::TAU;

use proptest::prelude::*;

use super::*;

fn sine(hz: f64, rate: u32, samples: usize) -> Vec<f32> {
    (0..samples).map(|n| (TAU * hz * n as f64 / f64::from(rate)).sin() as f32 * 0.5).collect()
}

fn rms(samples: &[f32]) -> f64 {
    (samples.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>() / samples.len() as f64).sqrt()
}

/// The inner part, where the sudden start and end of a test tone are not seen.
fn inner(samples: &[f32]) -> &[f32] {
    &samples[1_000..samples.len() - 1_000]
}

fn db(value: f64) -> f64 {
    20.0 * value.log10()
}

#[test]
fn tones_keep_their_place_and_level() {
    for (from, to) in [
        (48_000, 16_000),
        (44_100, 16_000),
        (8_000, 16_000),
        (22_050, 48_000),
        (16_000, 48_000),
        (24_000, 44_100),
        (96_000, 16_000),
    ] {
        let made = Resampler::whole(&sine(1_000.0, from, from as usize), from, to).unwrap();
        let wanted = sine(1_000.0, to, to as usize);
        assert_eq!(made.len(), wanted.len(), "{from} -> {to}");
        let off: Vec<f32> =
            inner(&made).iter().zip(inner(&wanted)).map(|(made, wanted)| made - wanted).collect();
        // The delay is a whole number of output samples only for some ratios; at others the output
        // lies up to half a sample off. The engine's table of filters is itself off by one step,
        // 1/128 of an input sample. For a tone, being off in time is this much of its level.
        let error = db(rms(&off) / rms(inner(&wanted)));
        let off_by = |seconds: f64| db(TAU * 1_000.0 * seconds) + 0.5;
        let whole = from % to == 0 || to % from == 0;
        let allowed =
            off_by(if whole { 1.0 / 128.0 / f64::from(from) } else { 0.5 / f64::from(to) });
        assert!(error < allowed, "{from} -> {to}: {error:.1} dB");
    }
}

#[test]
fn the_band_is_flat_and_aliases_are_gone() {
    let level = |hz: f64, from: u32| {
        let made = Resampler::whole(&sine(hz, from, from as usize), from, 16_000).unwrap();
        db(rms(inner(&made)) / (0.5 / 2f64.sqrt()))
    };
    for from in [44_100, 48_000] {
        for hz in [50.0, 300.0, 3_000.0, 7_000.0] {
            let level = level(hz, from);
            println!("{from}: {hz} Hz {level:.3} dB");
            assert!(level.abs() < 0.1, "{from}: {hz} Hz: {level:.2} dB");
        }
        println!(
            "{from}: 7500 Hz {:.2} dB, 8200 Hz {:.1} dB",
            level(7_500.0, from),
            level(8_200.0, from)
        );
        for hz in [8_700.0, 9_500.0, 11_000.0, 15_000.0, 20_000.0] {
            let level = level(hz, from);
            println!("{from}: {hz} Hz {level:.1} dB");
            assert!(level < -80.0, "{from}: {hz} Hz: {level:.1} dB");
        }
    }
}

#[test]
fn equal_rates_pass_through() {
    let tone = sine(440.0, 16_000, 1_000);
    assert_eq!(Resampler::whole(&tone, 16_000, 16_000).unwrap(), tone);
}

#[test]
fn nothing_in_nothing_out() {
    assert_eq!(Resampler::whole(&[], 48_000, 16_000).unwrap(), Vec::<f32>::new());
}

#[test]
fn a_rate_of_nothing_is_refused() {
    let error = Resampler::new(0, 16_000).err().unwrap().to_string();
    assert_eq!(error, "sample rate 0 Hz is not supported: use 4000 to 384000 Hz");
}

#[test]
fn what_is_held_is_short() {
    let mut resampler = Resampler::new(48_000, 16_000).unwrap();
    let mut output = Vec::new();
    for _ in 0..100 {
        resampler.push(&[0.1; 480], &mut output);
        assert!(resampler.held_s() < 0.008, "{}", resampler.held_s());
    }
    let expected = 48_000.0 / 48_000.0 - output.len() as f64 / 16_000.0;
    assert!((resampler.held_s() - expected).abs() < 1e-9);
}

#[test]
fn a_flushed_resampler_is_as_new() {
    let tone = sine(700.0, 44_100, 5_000);
    let mut resampler = Resampler::new(44_100, 16_000).unwrap();
    let mut first = Vec::new();
    resampler.push(&tone, &mut first);
    resampler.flush(&mut first);
    let mut second = Vec::new();
    resampler.push(&tone, &mut second);
    resampler.flush(&mut second);
    assert_eq!(first, second);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the chunks, the stream is the same to the last bit: no click at a border.
    #[test]
    fn chunks_do_not_matter(
        rates in prop::sample::select(vec![
            (48_000, 16_000), (44_100, 16_000), (16_000, 48_000), (22_050, 16_000), (8_000, 16_000),
        ]),
        sizes in prop::collection::vec(0usize..1_500, 1..20),
    ) {
        let (from, to) = rates;
        let tone = sine(997.0, from, sizes.iter().sum());
        let whole = Resampler::whole(&tone, from, to).unwrap();
        let mut resampler = Resampler::new(from, to).unwrap();
        let mut output = Vec::new();
        let mut rest = tone.as_slice();
        for size in sizes {
            let (chunk, later) = rest.split_at(size);
            resampler.push(chunk, &mut output);
            rest = later;
        }
        resampler.flush(&mut output);
        let wanted = tone.len() as f64 * f64::from(to) / f64::from(from);
        prop_assert!((output.len() as f64 - wanted).abs() <= 1.0);
        prop_assert_eq!(output, whole);
    }
}
