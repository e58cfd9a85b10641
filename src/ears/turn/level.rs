//! Loudness: what is too quiet to be speech, and where speech really ended.

use std::collections::VecDeque;

/// Quieter frames are not speech, whatever the model says: it takes digital silence for speech now
/// and then (silero-vad issue 396).
const FLOOR_DB: f32 = -60.0;

/// Frames below this probability teach the noise floor.
pub(super) const QUIET: f32 = 0.1;

/// Frames that are needed before the noise floor is believed (a third of a second).
const KNOWN_FRAMES: u32 = 10;

/// A frame no louder than this above the noise floor, and well below the voice, holds no speech. The
/// model's probability falls 60–120 ms after the voice, and the silence wait should not count that
/// time twice.
const HOLLOW_ABOVE_FLOOR_DB: f32 = 4.0;
const HOLLOW_BELOW_PEAK_DB: f32 = 25.0;

/// Probabilities that are kept to find the best place of a forced cut: three seconds.
const KEPT: usize = 94;

#[derive(Debug, Default)]
pub(super) struct Level {
    floor_db: f32,
    learned: u32,
    recent: VecDeque<f32>,
}

impl Level {
    /// The frame's probability, or 0 when it is too quiet.
    pub(super) fn gate(&mut self, speech: f32, rms_db: f32) -> f32 {
        let speech = if rms_db < FLOOR_DB || !speech.is_finite() { 0.0 } else { speech };
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(speech);
        speech
    }

    /// A frame without speech: the noise floor goes down at once and up slowly.
    pub(super) fn learn(&mut self, rms_db: f32) {
        let rms_db = rms_db.max(-90.0);
        self.floor_db = match self.learned {
            0 => rms_db,
            _ if rms_db < self.floor_db => 0.5f32.mul_add(rms_db - self.floor_db, self.floor_db),
            _ => 0.05f32.mul_add(rms_db - self.floor_db, self.floor_db),
        };
        self.learned = self.learned.saturating_add(1);
    }

    /// The frame is only the noise of the room after a voice of this peak.
    pub(super) fn hollow(&self, rms_db: f32, peak_db: f32) -> bool {
        self.learned >= KNOWN_FRAMES
            && rms_db <= self.floor_db + HOLLOW_ABOVE_FLOOR_DB
            && rms_db <= peak_db - HOLLOW_BELOW_PEAK_DB
    }

    /// How many frames back the least likely speech of the last three seconds is; 0 is the newest.
    pub(super) fn best_cut(&self) -> u64 {
        let lowest = self.recent.iter().rev().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
        lowest.map_or(0, |(back, _)| back as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_silence_is_not_speech() {
        let mut level = Level::default();
        assert_eq!(level.gate(0.99, -70.0), 0.0);
        assert_eq!(level.gate(0.99, -40.0), 0.99);
        assert_eq!(level.gate(f32::NAN, -40.0), 0.0);
    }

    #[test]
    fn a_frame_at_the_noise_floor_is_hollow_only_after_a_voice() {
        let mut level = Level::default();
        assert!(!level.hollow(-70.0, -20.0), "the floor is not known yet");
        for _ in 0..KNOWN_FRAMES {
            level.learn(-55.0);
        }
        assert!(level.hollow(-52.0, -20.0));
        assert!(!level.hollow(-45.0, -20.0), "louder than the room");
        assert!(!level.hollow(-52.0, -40.0), "a whisper is not far above the room");
    }

    #[test]
    fn the_cut_is_where_speech_is_least_likely() {
        let mut level = Level::default();
        for speech in [0.9, 0.9, 0.2, 0.8, 0.9] {
            level.gate(speech, -20.0);
        }
        assert_eq!(level.best_cut(), 2);
    }
}
