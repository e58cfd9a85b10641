//! What a position in a segment's sound means for the mouth and for the line of text.

use crate::kernel::contracts::{Segment, VisemeFrame};
use crate::kernel::scene::Subtitle;

/// The mouth at `position` ms: linear between the frames around it, closed before the first and
/// after the last.
pub(super) fn mouth_at(track: &[VisemeFrame], position: f64) -> VisemeFrame {
    let at_ms = position as f32;
    let closed = VisemeFrame { at_ms, ..VisemeFrame::default() };
    let next = track.partition_point(|frame| frame.at_ms <= at_ms);
    let Some(before) = next.checked_sub(1).and_then(|place| track.get(place)) else {
        return closed;
    };
    let Some(after) = track.get(next) else { return closed };
    let span = after.at_ms - before.at_ms;
    let part = if span > 0.0 { (at_ms - before.at_ms) / span } else { 1.0 };
    let mix = |from: f32, to: f32| from + (to - from) * part;
    VisemeFrame {
        at_ms,
        aa: mix(before.aa, after.aa),
        ih: mix(before.ih, after.ih),
        ou: mix(before.ou, after.ou),
        ee: mix(before.ee, after.ee),
        oh: mix(before.oh, after.oh),
    }
}

/// The line of a segment and what of it was said at `position` ms.
///
/// The line for the eye and the words for the ear are different strings, so the spoken share (to the
/// end of the word that sounds; without word times, the share of the time) is laid over the line and
/// cut at the nearest end of a word. Scripts without spaces are cut at the character.
pub(super) fn subtitle(segment: &Segment, position: f64) -> Subtitle {
    let text = segment.display.trim();
    let share = spoken_share(segment, position);
    let wanted = text.chars().count() as f64 * share;
    let cuts = text.char_indices().enumerate().filter_map(|(count, (at, letter))| {
        (letter.is_whitespace() || is_cjk(letter)).then_some((count, at))
    });
    let nearest = cuts
        .chain([(0, 0), (text.chars().count(), text.len())])
        .filter(|(count, _)| (share <= 0.0) == (*count == 0))
        .min_by(|(a, _), (b, _)| {
            let distance = |count: usize| (count as f64 - wanted).abs();
            distance(*a).total_cmp(&distance(*b))
        });
    let said = nearest.and_then(|(_, at)| text.get(..at)).unwrap_or(text);
    Subtitle { text: text.to_owned(), said: said.to_owned() }
}

fn spoken_share(segment: &Segment, position: f64) -> f64 {
    if segment.words.is_empty() {
        return if segment.duration_ms > 0.0 { position / segment.duration_ms } else { 1.0 };
    }
    let begun = segment.words.iter().filter(|(_, at_ms)| *at_ms <= position).count();
    if begun == 0 {
        return 0.0;
    }
    let Some((next, _)) = segment.words.get(begun) else { return 1.0 };
    let spoken = segment.spoken.get(..*next).unwrap_or(&segment.spoken).trim_end();
    spoken.chars().count() as f64 / segment.spoken.chars().count().max(1) as f64
}

/// Letters of scripts that are written without spaces.
fn is_cjk(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}
