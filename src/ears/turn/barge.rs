//! Barge-in evidence: when to lower the voice, when to believe that the user speaks over it.

use std::collections::VecDeque;

use crate::ears::FRAME;

/// Echo cancelling takes some of the user's voice too, so the first stage listens lower than usual
/// (0.2–0.35 found 11–12 of 12 utterances at equal loudness where 0.5 came 100–200 ms later; measured
/// with AEC3 and Silero).
const CANDIDATE: f32 = 0.3;
/// Frames in a row that lower the voice (64 ms).
const CANDIDATE_FRAMES: u32 = 2;
/// So many of the last [`CONFIRM_WINDOW`] frames at the usual threshold are a user who speaks. With
/// the 30–60 ms that the model needs to notice an onset this stops the voice within 200 ms of it.
const CONFIRM_FRAMES: usize = 4;
const CONFIRM_WINDOW: usize = 5;
/// A candidate that is not confirmed by then is none.
const GIVE_UP_MS: f64 = 288.0;

/// With the voice itself in the microphone, only loud and lasting speech is looked at.
const OPEN_THRESHOLD: f32 = 0.7;
const OPEN_FRAMES: usize = 9;
const OPEN_WINDOW: usize = 10;
/// Wait after such a look that found only the voice itself.
const OPEN_HOLD_MS: f64 = 1_000.0;

/// What a frame means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BargeStep {
    Nothing,
    /// Somebody may be speaking.
    Candidate,
    /// It was nothing.
    Over,
    /// The user speaks, since `began`, with so many speech frames.
    Confirmed {
        began: u64,
        frames: u32,
    },
}

#[derive(Debug)]
pub(super) struct Barge {
    threshold: f32,
    window: VecDeque<f32>,
    raised: u32,
    began: Option<u64>,
    ducked_ms: Option<f64>,
    /// Given up; the voice is not lowered again before it was quiet.
    refused: bool,
    held_until_ms: f64,
}

impl Barge {
    pub(super) fn new(threshold: f32) -> Self {
        Self {
            threshold,
            window: VecDeque::with_capacity(OPEN_WINDOW),
            raised: 0,
            began: None,
            ducked_ms: None,
            refused: false,
            held_until_ms: 0.0,
        }
    }

    pub(super) fn reset(&mut self) {
        *self = Self { held_until_ms: self.held_until_ms, ..Self::new(self.threshold) };
    }

    /// The earliest beginning that a confirmation may name.
    pub(super) fn reach(&self, pos: u64) -> u64 {
        self.began.unwrap_or(pos).min(pos.saturating_sub((self.window.len() * FRAME) as u64))
    }

    fn push(&mut self, speech: f32, length: usize) {
        self.window.push_back(speech);
        while self.window.len() > length {
            self.window.pop_front();
        }
    }

    fn at_least(&self, threshold: f32) -> usize {
        self.window.iter().filter(|&&speech| speech >= threshold).count()
    }

    /// A frame that ends at `pos`, the voice's echo removed.
    pub(super) fn frame(&mut self, speech: f32, pos: u64, now_ms: f64) -> BargeStep {
        self.push(speech, CONFIRM_WINDOW);
        if speech >= CANDIDATE {
            self.raised += 1;
            self.began.get_or_insert(pos - FRAME as u64);
        } else {
            self.raised = 0;
        }
        let frames = self.at_least(self.threshold);
        if frames >= CONFIRM_FRAMES && speech >= self.threshold {
            let began = self.began.unwrap_or(pos - (frames * FRAME) as u64);
            return BargeStep::Confirmed { began, frames: frames as u32 };
        }
        let quiet = self.window.iter().rev().take(3).all(|&speech| speech < CANDIDATE);
        if quiet {
            self.began = None;
            self.refused = false;
        }
        match self.ducked_ms {
            Some(since) if quiet || now_ms - since >= GIVE_UP_MS => {
                self.ducked_ms = None;
                self.refused = !quiet;
                BargeStep::Over
            }
            None if self.raised >= CANDIDATE_FRAMES && !self.refused => {
                self.ducked_ms = Some(now_ms);
                BargeStep::Candidate
            }
            _ => BargeStep::Nothing,
        }
    }

    /// A frame with the voice's own sound in it. Where lasting speech began, when it is time to look
    /// at its words.
    pub(super) fn open_path(&mut self, speech: f32, pos: u64, now_ms: f64) -> Option<u64> {
        self.push(speech, OPEN_WINDOW);
        let sure = self.window.len() == OPEN_WINDOW
            && self.at_least(OPEN_THRESHOLD) >= OPEN_FRAMES
            && now_ms >= self.held_until_ms;
        sure.then(|| pos - (OPEN_WINDOW * FRAME) as u64)
    }

    /// The look found nothing.
    pub(super) fn hold(&mut self, now_ms: f64) {
        self.held_until_ms = now_ms + OPEN_HOLD_MS;
    }
}
