//! The sound of the last seconds, by position in the stream.

use std::collections::VecDeque;

/// Sound from `first` on. What is dropped is told by the caller, so it is as long as an utterance.
#[derive(Debug, Default)]
pub(super) struct Capture {
    first: u64,
    samples: VecDeque<f32>,
}

impl Capture {
    pub(super) fn push(&mut self, samples: &[f32]) {
        self.samples.extend(samples);
    }

    /// Forgets what is before this position.
    pub(super) fn keep_from(&mut self, position: u64) {
        let old = position.saturating_sub(self.first).min(self.samples.len() as u64);
        self.samples.drain(..usize::try_from(old).unwrap_or(0));
        self.first += old;
    }

    /// The part from one position up to another, as far as it is kept.
    pub(super) fn part(&self, from: u64, to: u64) -> Vec<f32> {
        let place = |position: u64| {
            usize::try_from(position.saturating_sub(self.first))
                .unwrap_or(usize::MAX)
                .min(self.samples.len())
        };
        let (from, to) = (place(from), place(to));
        self.samples.range(from..to.max(from)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_position() {
        let mut capture = Capture::default();
        capture.push(&[0.0, 1.0, 2.0, 3.0]);
        capture.keep_from(2);
        capture.push(&[4.0]);
        assert_eq!(capture.part(2, 4), [2.0, 3.0]);
        assert_eq!(capture.part(0, 99), [2.0, 3.0, 4.0]);
        assert_eq!(capture.part(4, 3), [0.0; 0]);
        capture.keep_from(99);
        assert_eq!(capture.part(0, 99), [0.0; 0]);
    }
}
