//! What is done to the sound of an engine before it is given out.

/// Quietest sample that counts as sound: −50 dBFS.
const AUDIBLE: f32 = 0.003;

/// Silence that is left before the first sound, ms. Engines begin with 60 ms (Piper) to 350 ms
/// (Kokoro) of it, which a listener would only wait through.
const LEAD_MS: f64 = 15.0;

/// Length of the fades at the ends, ms.
const FADE_MS: f64 = 5.0;

/// Highest peak.
const PEAK: f32 = 0.95;

/// Cuts silence at both ends, leaving [`LEAD_MS`] before the first sound and `tail_ms` after the last
/// one (added where there is less), applies `gain`, and keeps every peak below full scale. Returns
/// how many samples were cut from the head.
pub(super) fn finish(samples: &mut Vec<f32>, rate: u32, gain: f32, tail_ms: f64) -> usize {
    let count = |ms: f64| (ms * f64::from(rate) / 1000.0) as usize;
    let audible = |sample: &f32| (sample * gain).abs() > AUDIBLE;
    let first = samples.iter().position(audible).unwrap_or(0);
    let last = samples.iter().rposition(audible).map_or(0, |last| last + 1);
    let head = first.saturating_sub(count(LEAD_MS));
    samples.resize(last + count(tail_ms), 0.0);
    samples.drain(..head);
    let peak = samples.iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs())) * gain;
    let gain = if peak > PEAK { gain * PEAK / peak } else { gain };
    samples.iter_mut().for_each(|sample| *sample *= gain);
    let fade = count(FADE_MS).max(1);
    for (index, sample) in samples.iter_mut().take(fade).enumerate() {
        *sample *= index as f32 / fade as f32;
    }
    for (index, sample) in samples.iter_mut().rev().take(fade).enumerate() {
        *sample *= index as f32 / fade as f32;
    }
    head
}

/// Pause after the last sound, ms: longer behind a sentence than behind a clause.
pub(super) fn tail_ms(spoken: &str) -> f64 {
    let end = spoken.trim_end().trim_end_matches(['"', '”', '’', ')', '」', '』', '）']);
    if end.ends_with([',', ';', ':', '，', '、', '；', '：', '—', '–']) {
        110.0
    } else {
        220.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(lead: usize, length: usize, tail: usize, level: f32) -> Vec<f32> {
        let sound = (0..length).map(|i| if i % 2 == 0 { level } else { -level });
        let silence = |count| std::iter::repeat_n(0.0, count);
        silence(lead).chain(sound).chain(silence(tail)).collect()
    }

    #[test]
    fn silence_is_cut_to_measure() {
        let mut samples = tone(8_000, 1_000, 16_000, 0.5);
        let head = finish(&mut samples, 16_000, 1.0, 100.0);
        assert_eq!(head, 8_000 - 240);
        assert_eq!(samples.len(), 240 + 1_000 + 1_600);
        // Too little silence is filled up.
        let mut samples = tone(10, 1_000, 10, 0.5);
        assert_eq!(finish(&mut samples, 16_000, 1.0, 100.0), 0);
        assert_eq!(samples.len(), 10 + 1_000 + 1_600);
    }

    #[test]
    fn nothing_clips_and_nothing_breaks() {
        let mut samples = tone(100, 1_000, 100, 0.8);
        finish(&mut samples, 16_000, 3.0, 50.0);
        assert!(samples.iter().all(|sample| sample.abs() <= PEAK + 1e-6));
        let mut quiet = tone(100, 1_000, 100, 0.2);
        finish(&mut quiet, 16_000, 2.0, 50.0);
        assert!((quiet[600].abs() - 0.4).abs() < 1e-6);
        let mut nothing = Vec::new();
        assert_eq!(finish(&mut nothing, 16_000, 1.0, 50.0), 0);
        assert_eq!(nothing.len(), 800);
    }

    #[test]
    fn a_clause_pauses_less_than_a_sentence() {
        assert!(tail_ms("Well,") < tail_ms("Well."));
        assert!(tail_ms("好，") < tail_ms("“好。”"));
    }
}
