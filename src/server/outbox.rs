//! What waits to go down to a remote device.

use std::collections::VecDeque;

use serde::Serialize;

use crate::kernel::ids::TurnId;
use crate::kernel::ports::RemoteOut;

/// Seconds of sound that may wait for a device. The longest reply is shorter, so a device that is
/// this far behind does not read.
const LIMIT_S: usize = 300;
/// Sound goes out in frames of at most this length, so that a `flush` waits behind little.
const FRAME_MS: usize = 100;

/// One message to the device.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    /// JSON.
    Mark(Mark),
    /// Samples.
    Sound(Vec<i16>),
}

/// A mark between the sound.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Mark {
    Start { turn: TurnId, index: u32, duration_ms: f64 },
    End { turn: TurnId, index: u32 },
    Flush { turn: Option<TurnId> },
    Duck { on: bool },
    Volume { volume: f32 },
}

impl Mark {
    /// How loud it is: of several that wait only the last counts, and a flush leaves it.
    fn is_loudness(&self) -> bool {
        matches!(self, Self::Duck { .. } | Self::Volume { .. })
    }
}

/// A queue in order, but for `flush`: it overtakes and removes the sound that waits.
#[derive(Debug)]
pub(super) struct Outbox {
    queue: VecDeque<Message>,
    samples: usize,
    rate: usize,
}

impl Outbox {
    /// For a device that plays `rate` samples a second.
    pub(super) fn new(rate: u32) -> Self {
        Self { queue: VecDeque::new(), samples: 0, rate: rate as usize }
    }

    /// Puts a message in; `false` when the device is too far behind.
    pub(super) fn push(&mut self, out: RemoteOut) -> bool {
        match out {
            RemoteOut::Start { segment, duration_ms } => {
                self.queue.push_back(Message::Mark(Mark::Start {
                    turn: segment.turn,
                    index: segment.index,
                    duration_ms,
                }))
            }
            RemoteOut::End(segment) => self
                .queue
                .push_back(Message::Mark(Mark::End { turn: segment.turn, index: segment.index })),
            RemoteOut::Sound(samples) => {
                self.samples += samples.len();
                let frame = (self.rate * FRAME_MS / 1000).max(1);
                self.queue.extend(samples.chunks(frame).map(|part| Message::Sound(part.to_vec())));
            }
            RemoteOut::Flush { turn } => {
                self.queue.retain(|it| matches!(it, Message::Mark(mark) if mark.is_loudness()));
                self.samples = 0;
                self.queue.push_front(Message::Mark(Mark::Flush { turn }));
            }
            RemoteOut::Duck(on) => self.loudness(Mark::Duck { on }),
            RemoteOut::Volume(volume) => self.loudness(Mark::Volume { volume }),
        }
        self.samples <= self.rate * LIMIT_S
    }

    /// Loudness is about what is already there, so it does not wait behind what is to come.
    fn loudness(&mut self, mark: Mark) {
        let kind = std::mem::discriminant(&mark);
        self.queue.retain(|waiting| match waiting {
            Message::Mark(waiting) => std::mem::discriminant(waiting) != kind,
            Message::Sound(_) => true,
        });
        self.queue.push_front(Message::Mark(mark));
    }

    pub(super) fn pop(&mut self) -> Option<Message> {
        let message = self.queue.pop_front()?;
        if let Message::Sound(samples) = &message {
            self.samples -= samples.len();
        }
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ids::SegmentId;

    const SEGMENT: SegmentId = SegmentId { turn: TurnId(3), index: 1 };

    fn all(outbox: &mut Outbox) -> Vec<Message> {
        std::iter::from_fn(|| outbox.pop()).collect()
    }

    #[test]
    fn sound_goes_in_small_frames_between_its_marks() {
        let mut outbox = Outbox::new(1000);
        assert!(outbox.push(RemoteOut::Start { segment: SEGMENT, duration_ms: 250.0 }));
        assert!(outbox.push(RemoteOut::Sound((0..250).collect())));
        assert!(outbox.push(RemoteOut::End(SEGMENT)));
        let sent = all(&mut outbox);
        let lengths: Vec<_> = sent
            .iter()
            .filter_map(|message| match message {
                Message::Sound(samples) => Some(samples.len()),
                Message::Mark(_) => None,
            })
            .collect();
        assert_eq!(lengths, [100, 100, 50]);
        assert_eq!(sent.last(), Some(&Message::Mark(Mark::End { turn: TurnId(3), index: 1 })));
    }

    #[test]
    fn a_flush_overtakes_the_sound_and_a_late_device_is_noticed() {
        let mut outbox = Outbox::new(1000);
        outbox.push(RemoteOut::Start { segment: SEGMENT, duration_ms: 500.0 });
        outbox.push(RemoteOut::Sound(vec![1; 500]));
        outbox.push(RemoteOut::Flush { turn: Some(TurnId(3)) });
        outbox.push(RemoteOut::Sound(vec![2; 50]));
        assert_eq!(
            all(&mut outbox),
            [Message::Mark(Mark::Flush { turn: Some(TurnId(3)) }), Message::Sound(vec![2; 50])]
        );
        outbox.push(RemoteOut::Sound(vec![3; 10]));
        outbox.push(RemoteOut::Volume(0.25));
        outbox.push(RemoteOut::Duck(true));
        outbox.push(RemoteOut::Duck(false));
        outbox.push(RemoteOut::Volume(0.5));
        let loudness =
            [Message::Mark(Mark::Volume { volume: 0.5 }), Message::Mark(Mark::Duck { on: false })];
        let [volume, duck] = loudness.clone();
        assert_eq!(all(&mut outbox), [volume, duck, Message::Sound(vec![3; 10])]);
        outbox.push(RemoteOut::Duck(false));
        outbox.push(RemoteOut::Volume(0.5));
        outbox.push(RemoteOut::Sound(vec![3; 10]));
        outbox.push(RemoteOut::Flush { turn: None });
        assert_eq!(all(&mut outbox)[1..], loudness);
        assert!(outbox.push(RemoteOut::Sound(vec![0; 300_000])));
        assert!(!outbox.push(RemoteOut::Sound(vec![0; 1])));
    }
}
