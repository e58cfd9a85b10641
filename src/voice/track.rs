//! Playback as arithmetic: what a queue of segments would report as time passes.

use std::collections::VecDeque;
use std::time::Duration;

use crate::kernel::ids::SegmentId;
use crate::kernel::ports::SpeakerEvent;

/// Distance of progress reports.
pub(super) const PROGRESS: Duration = Duration::from_millis(100);

/// Segments one after another from the moment that the first is pushed.
#[derive(Debug, Default)]
pub(super) struct Track {
    queue: VecDeque<(SegmentId, Duration)>,
    /// When the first of the queue began to play.
    since: Duration,
    /// Up to when it was looked at.
    now: Duration,
    started: bool,
    reported: Duration,
}

impl Track {
    /// Queues a segment of this length at `now`.
    pub(super) fn push(&mut self, segment: SegmentId, length: Duration, now: Duration) {
        if self.queue.is_empty() {
            (self.since, self.now) = (now, now);
        }
        self.queue.push_back((segment, length));
    }

    /// What happens up to `now`.
    pub(super) fn advance(&mut self, now: Duration) -> Vec<SpeakerEvent> {
        let mut events = Vec::new();
        self.now = self.now.max(now);
        while let Some((segment, length)) = self.queue.front().copied() {
            if !std::mem::replace(&mut self.started, true) {
                events.push(SpeakerEvent::Started(segment));
            }
            let played = self.now.saturating_sub(self.since);
            if played < length {
                if played >= self.reported + PROGRESS {
                    self.reported = played;
                    events.push(SpeakerEvent::Progress(segment, played));
                }
                break;
            }
            self.queue.pop_front();
            self.since += length;
            (self.started, self.reported) = (false, Duration::ZERO);
            events.push(SpeakerEvent::Finished(segment));
            if self.queue.is_empty() {
                events.push(SpeakerEvent::Drained);
            }
        }
        events
    }

    /// How long after the last [`Track::advance`] the next event comes.
    pub(super) fn next_event(&self) -> Option<Duration> {
        let (_, length) = self.queue.front()?;
        if !self.started {
            return Some(Duration::ZERO);
        }
        let next = (self.reported + PROGRESS).min(*length);
        Some((self.since + next).saturating_sub(self.now))
    }

    /// Drops the queue; says how far the playing segment was at the last [`Track::advance`].
    pub(super) fn stop(&mut self) -> Option<(SegmentId, Duration)> {
        let playing =
            self.queue.front().filter(|_| self.started).map(|(segment, length)| {
                (*segment, self.now.saturating_sub(self.since).min(*length))
            });
        *self = Self { now: self.now, ..Self::default() };
        playing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ids::TurnId;
    use SpeakerEvent::{Drained, Finished, Progress, Started};

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn id(index: u32) -> SegmentId {
        SegmentId { turn: TurnId(1), index }
    }

    #[test]
    fn segments_follow_each_other_without_a_gap() {
        let mut track = Track::default();
        track.push(id(0), ms(250), ms(1000));
        track.push(id(1), ms(100), ms(1000));
        assert_eq!(track.next_event(), Some(ms(0)));
        assert_eq!(track.advance(ms(1000)), [Started(id(0))]);
        assert_eq!(track.next_event(), Some(ms(100)));
        assert_eq!(track.advance(ms(1110)), [Progress(id(0), ms(110))]);
        assert_eq!(track.next_event(), Some(ms(100)));
        // A late look reports everything, and the second began when the first ended.
        assert_eq!(track.advance(ms(1300)), [Finished(id(0)), Started(id(1))]);
        assert_eq!(track.next_event(), Some(ms(50)));
        assert_eq!(track.advance(ms(1350)), [Finished(id(1)), Drained]);
        assert_eq!(track.next_event(), None);
    }

    #[test]
    fn a_stop_says_how_far_it_came_and_forgets_the_rest() {
        let mut track = Track::default();
        assert_eq!(track.stop(), None);
        track.push(id(0), ms(250), ms(0));
        assert_eq!(track.stop(), None, "nothing of it was played");
        track.push(id(0), ms(250), ms(0));
        track.push(id(1), ms(250), ms(0));
        track.advance(ms(120));
        assert_eq!(track.stop(), Some((id(0), ms(120))));
        assert_eq!(track.advance(ms(900)), []);
        track.push(id(2), ms(50), ms(1000));
        assert_eq!(track.advance(ms(1000)), [Started(id(2))]);
    }
}
