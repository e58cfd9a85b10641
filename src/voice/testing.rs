//! What must hold of every engine's utterance.

use super::Utterance;
use crate::kernel::contracts::VisemeFrame;
use crate::kernel::ports::Pcm;

/// Checks sound, word times and mouth shapes of `text` as it was spoken.
pub(super) fn check_utterance(text: &str, made: &Utterance) {
    let pcm = &made.pcm;
    let duration = pcm.duration_ms();
    let peak = pcm.samples.iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
    assert!((0.1..=0.96).contains(&peak), "peak {peak}");
    let lead = pcm.samples.iter().position(|sample| sample.abs() > 0.003).unwrap();
    let lead_ms = lead as f64 * 1000.0 / f64::from(pcm.rate);
    assert!(lead_ms <= 25.0, "lead {lead_ms} ms");
    // Words: every one, in order, inside the sound.
    let words: Vec<&str> = made
        .words
        .iter()
        .map(|(at, _)| text.get(*at..).unwrap().split_whitespace().next().unwrap())
        .collect();
    assert_eq!(made.words.len(), text.split_whitespace().count(), "{words:?}");
    assert!(made.words.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    assert!(made.words.iter().all(|(_, ms)| (0.0..duration).contains(ms)));
    // Mouths: closed at the ends, moving with the sound.
    let open = |frame: &VisemeFrame| frame.aa + frame.ih + frame.ou + frame.ee + frame.oh;
    assert!(open(made.visemes.first().unwrap()) == 0.0);
    assert!(open(made.visemes.last().unwrap()) == 0.0);
    let r = correlation(&made.visemes, pcm);
    eprintln!("mouth and loudness: r = {r:.2}");
    assert!(r >= 0.6, "mouth and loudness: r = {r}");
}

/// Correlation of how far the mouth is open with how loud it is, every 33 ms.
fn correlation(frames: &[VisemeFrame], pcm: &Pcm) -> f64 {
    let per_ms = pcm.rate as usize / 1000;
    let mut pairs = Vec::new();
    let mut ms = 33.0_f32;
    while f64::from(ms) + 33.0 < pcm.duration_ms() {
        let after = frames.partition_point(|frame| frame.at_ms < ms).max(1);
        let (a, b) = (frames[after - 1], frames[after]);
        let part = (ms - a.at_ms) / (b.at_ms - a.at_ms).max(1e-3);
        let weight = |f: VisemeFrame| f.aa.max(f.ih).max(f.ou).max(f.ee).max(f.oh);
        let open = weight(a) + (weight(b) - weight(a)) * part;
        let from = (ms as usize).saturating_sub(20) * per_ms;
        let window = &pcm.samples[from..(from + 40 * per_ms).min(pcm.samples.len())];
        let rms = (window.iter().map(|s| s * s).sum::<f32>() / window.len() as f32).sqrt();
        pairs.push((f64::from(open), f64::from(rms)));
        ms += 33.0;
    }
    let n = pairs.len() as f64;
    let (sx, sy) = pairs.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0, y + p.1));
    let (mx, my) = (sx / n, sy / n);
    let cov: f64 = pairs.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    let vx: f64 = pairs.iter().map(|p| (p.0 - mx).powi(2)).sum();
    let vy: f64 = pairs.iter().map(|p| (p.1 - my).powi(2)).sum();
    cov / (vx * vy).sqrt()
}
