//! Mouth shapes from the phonemes that were spoken and the sound that came out.
//!
//! Which vowel shape a phoneme asks for follows the Oculus/ARKit viseme sets as VRM and TalkingHead
//! use them; how far the mouth opens follows the loudness. At most two shapes are blended, since a
//! blend of all five always looks like "aa".

use super::phonemes::TimedPhone;
use crate::kernel::contracts::VisemeFrame;
use crate::kernel::ports::Pcm;

/// Distance of the frames, ms.
const STEP_MS: f64 = 1000.0 / 30.0;

/// The mouth is on its way to a sound before it is heard, and leaves it slowly: what it shows is the
/// mean of this stretch around the moment, ms.
const BEFORE_MS: f64 = 25.0;
const AFTER_MS: f64 = 45.0;

/// Below this part of the loud level the mouth is closed.
const SILENT: f32 = 0.04;

/// aa, ih, ou, ee, oh
type Shape = [f32; 5];
const CLOSED: Shape = [0.0; 5];

/// The mouth of one phoneme symbol: where it begins and where it goes (a diphthong in one symbol
/// goes somewhere); `None` for marks of stress and length, which have no mouth of their own.
fn shape(symbol: char) -> Option<(Shape, Shape)> {
    let aa = |w| [w, 0.0, 0.0, 0.0, 0.0];
    let ih = |w| [0.0, w, 0.0, 0.0, 0.0];
    let ou = |w| [0.0, 0.0, w, 0.0, 0.0];
    let ee = |w| [0.0, 0.0, 0.0, w, 0.0];
    let oh = |w| [0.0, 0.0, 0.0, 0.0, w];
    let still = |shape| Some((shape, shape));
    match symbol {
        'a' | 'ɑ' | 'ɐ' | 'ɒ' | 'ʌ' => still(aa(1.0)),
        'æ' => still([0.75, 0.0, 0.0, 0.35, 0.0]),
        'i' | 'ɪ' | 'ᵻ' | 'ɨ' | 'y' => still(ih(0.9)),
        'u' | 'ʊ' | 'ɯ' => still(ou(0.9)),
        'e' | 'ɛ' | 'œ' | 'ø' => still(ee(0.9)),
        'ə' | 'ᵊ' | 'ɤ' => still([0.3, 0.0, 0.0, 0.45, 0.0]),
        'ɜ' | 'ɚ' | 'ɝ' => still([0.0, 0.0, 0.3, 0.5, 0.0]),
        'o' | 'ɔ' => still(oh(0.95)),
        // Kokoro writes these diphthongs as one letter.
        'A' => Some((ee(0.9), ih(0.8))),
        'I' => Some((aa(1.0), ih(0.8))),
        'O' | 'Q' => Some((oh(0.95), ou(0.8))),
        'W' => Some((aa(1.0), ou(0.8))),
        'Y' => Some((oh(0.95), ih(0.8))),
        'm' | 'b' | 'p' | 'ɓ' => still(CLOSED),
        'f' | 'v' | 'ɸ' | 'β' => still(ih(0.15)),
        'w' | 'ɥ' | 'ʋ' => still(ou(0.7)),
        'ʃ' | 'ʒ' | 'ʧ' | 'ʤ' | 'ʂ' | 'ɕ' | 'ʨ' | 'ꭧ' | 'ʐ' | 'ʥ' => still(ou(0.45)),
        'ɹ' | 'r' | 'ɻ' | 'ʁ' => still(ou(0.4)),
        'j' => still(ih(0.7)),
        's' | 'z' | 't' | 'd' | 'n' | 'ʦ' | 'ʣ' | 'ɾ' | 'T' | 'ɲ' | 'ɳ' => still(ih(0.4)),
        'l' | 'θ' | 'ð' => still(ee(0.4)),
        'k' | 'ɡ' | 'g' | 'ŋ' | 'h' | 'x' | 'χ' | 'ʔ' | 'q' | 'c' => still(aa(0.3)),
        'ˈ' | 'ˌ' | 'ː' | 'ʲ' | 'ʰ' | '̃' | '↓' | '→' | '↗' | '↘' => None,
        _ => still(CLOSED),
    }
}

fn closes(symbol: char) -> bool {
    matches!(symbol, 'm' | 'b' | 'p' | 'ɓ')
}

fn mix(a: Shape, b: Shape, part: f32) -> Shape {
    std::array::from_fn(|i| {
        let (a, b) = (a.get(i).copied().unwrap_or(0.0), b.get(i).copied().unwrap_or(0.0));
        a + (b - a) * part
    })
}

/// A stretch of the sound with its mouth.
struct Hold {
    start: f64,
    end: f64,
    from: Shape,
    to: Shape,
    closes: bool,
}

/// Joins marks of stress with the phoneme behind them, and marks of length with the one before.
fn holds(phones: &[TimedPhone]) -> Vec<Hold> {
    let mut out: Vec<Hold> = Vec::new();
    let mut begin: Option<f64> = None;
    for timed in phones {
        let symbol = timed.phone.symbol;
        match shape(symbol) {
            Some((from, to)) => out.push(Hold {
                start: begin.take().unwrap_or(timed.start_ms),
                end: timed.end_ms,
                from,
                to,
                closes: closes(symbol),
            }),
            None if matches!(symbol, 'ˈ' | 'ˌ') => {
                begin.get_or_insert(timed.start_ms);
            }
            None => {
                if let Some(last) = out.last_mut() {
                    last.end = timed.end_ms;
                }
            }
        }
    }
    out
}

/// The mean mouth of a stretch of time.
fn mean(holds: &[Hold], from: f64, to: f64) -> Shape {
    let mut sum = CLOSED;
    let first = holds.partition_point(|hold| hold.end <= from);
    for hold in holds.iter().skip(first).take_while(|hold| hold.start < to) {
        let (begin, end) = (hold.start.max(from), hold.end.min(to));
        if end <= begin {
            continue;
        }
        let length = (hold.end - hold.start).max(1e-6);
        let place = (((begin + end) / 2.0 - hold.start) / length) as f32;
        let now = mix(hold.from, hold.to, place.clamp(0.0, 1.0));
        let share = ((end - begin) / (to - from)) as f32;
        sum = std::array::from_fn(|i| {
            sum.get(i).copied().unwrap_or(0.0) + now.get(i).copied().unwrap_or(0.0) * share
        });
    }
    sum
}

/// Keeps the two strongest.
fn strongest_two(shape: Shape) -> Shape {
    let mut order = shape;
    order.sort_by(|a, b| b.total_cmp(a));
    let least = order.get(1).copied().unwrap_or(0.0).max(0.02);
    let mut left = 2;
    shape.map(|weight| {
        let keep = weight >= least && left > 0;
        left -= usize::from(keep);
        if keep { weight.min(1.0) } else { 0.0 }
    })
}

/// RMS of the sound in steps of [`STEP_MS`], each over 40 ms around its moment.
fn loudness(pcm: &Pcm, steps: usize) -> Vec<f32> {
    let per_ms = f64::from(pcm.rate) / 1000.0;
    (0..steps)
        .map(|step| {
            let middle = step as f64 * STEP_MS;
            let from = ((middle - 20.0).max(0.0) * per_ms) as usize;
            let to = (((middle + 20.0) * per_ms) as usize).min(pcm.samples.len());
            let window = pcm.samples.get(from..to).unwrap_or_default();
            let power: f32 = window.iter().map(|sample| sample * sample).sum();
            (power / window.len().max(1) as f32).sqrt()
        })
        .collect()
}

/// The track of a segment: one frame about every 33 ms and one in the middle of each closure, from a
/// closed mouth to a closed mouth.
pub(super) fn track(phones: &[TimedPhone], pcm: &Pcm) -> Vec<VisemeFrame> {
    let duration = pcm.duration_ms();
    let steps = (duration / STEP_MS) as usize + 1;
    let loudness = loudness(pcm, steps);
    let mut sorted = loudness.clone();
    sorted.sort_by(f32::total_cmp);
    let loud = sorted.get(sorted.len() * 97 / 100).copied().unwrap_or(0.0);
    let holds = holds(phones);
    let mut frames = Vec::with_capacity(steps + 8);
    for (step, level) in loudness.iter().enumerate() {
        let at = step as f64 * STEP_MS;
        if at >= duration {
            break;
        }
        let part = if loud > 0.0 { level / loud } else { 0.0 };
        let shape = if step == 0 || part < SILENT {
            CLOSED
        } else {
            let open = part.min(1.0).powf(0.75);
            strongest_two(mean(&holds, at - BEFORE_MS, at + AFTER_MS).map(|w| w * open))
        };
        frames.push(frame(at, shape));
    }
    for hold in holds.iter().filter(|hold| hold.closes && hold.end - hold.start >= 15.0) {
        let at = (hold.start + hold.end) / 2.0;
        if at > 0.0 && at < duration {
            // The neighbours within the closure are closed too.
            frames
                .iter_mut()
                .filter(|frame| {
                    let at = f64::from(frame.at_ms);
                    at >= hold.start && at <= hold.end
                })
                .for_each(|frame| *frame = self::frame(f64::from(frame.at_ms), CLOSED));
            frames.push(frame(at, CLOSED));
        }
    }
    frames.push(frame(duration, CLOSED));
    frames.sort_by(|a, b| a.at_ms.total_cmp(&b.at_ms));
    frames.dedup_by(|b, a| b.at_ms - a.at_ms < 1.0 && weights(a) == weights(b));
    thin(frames)
}

/// Drops closed frames between closed frames.
fn thin(frames: Vec<VisemeFrame>) -> Vec<VisemeFrame> {
    let closed: Vec<bool> = frames.iter().map(|frame| weights(frame) == CLOSED).collect();
    let is = |index: usize| closed.get(index).copied().unwrap_or(false);
    let last = frames.len().saturating_sub(1);
    frames
        .into_iter()
        .enumerate()
        .filter(|(index, _)| {
            *index == 0 || *index == last || !(is(*index) && is(index - 1) && is(index + 1))
        })
        .map(|(_, frame)| frame)
        .collect()
}

fn frame(at: f64, [aa, ih, ou, ee, oh]: Shape) -> VisemeFrame {
    VisemeFrame { at_ms: at as f32, aa, ih, ou, ee, oh }
}

fn weights(frame: &VisemeFrame) -> Shape {
    [frame.aa, frame.ih, frame.ou, frame.ee, frame.oh]
}

#[cfg(test)]
#[path = "visemes_tests.rs"]
mod tests;
