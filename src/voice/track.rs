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
    /// How far the first of the queue is.
    played: Duration,
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
            self.played = self.now.saturating_sub(self.since);
            if self.played < length {
                if self.played >= self.reported + PROGRESS {
                    self.reported = self.played;
                    events.push(SpeakerEvent::Progress(segment, self.played));
                }
                break;
            }
            self.since += length;
            self.finish(segment, &mut events);
        }
        events
    }

    fn finish(&mut self, segment: SegmentId, events: &mut Vec<SpeakerEvent>) {
        self.queue.pop_front();
        self.started = false;
        (self.played, self.reported) = (Duration::ZERO, Duration::ZERO);
        events.push(SpeakerEvent::Finished(segment));
        if self.queue.is_empty() {
            events.push(SpeakerEvent::Drained);
        }
    }

    /// A device says itself how far it is; `None`: to the end. What it names ends what was before it.
    pub(super) fn acknowledge(
        &mut self,
        named: SegmentId,
        played: Option<Duration>,
    ) -> Vec<SpeakerEvent> {
        let mut events = Vec::new();
        if !self.holds(named) {
            return events;
        }
        while let Some((segment, length)) = self.queue.front().copied() {
            if !std::mem::replace(&mut self.started, true) {
                events.push(SpeakerEvent::Started(segment));
            }
            if segment != named {
                self.finish(segment, &mut events);
                continue;
            }
            match played {
                None => self.finish(segment, &mut events),
                Some(played) => {
                    self.played = self.played.max(played.min(length));
                    events.push(SpeakerEvent::Progress(segment, self.played));
                }
            }
            break;
        }
        events
    }

    /// Whether the segment is queued and not over.
    pub(super) fn holds(&self, named: SegmentId) -> bool {
        self.queue.iter().any(|(segment, _)| *segment == named)
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

    /// Drops the queue; says how far the playing segment was when that was last known.
    pub(super) fn stop(&mut self) -> Option<(SegmentId, Duration)> {
        let playing =
            self.queue.front().filter(|_| self.started).map(|(segment, _)| (*segment, self.played));
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

    #[test]
    fn a_device_that_says_how_far_it_is_is_believed() {
        let mut track = Track::default();
        track.push(id(0), ms(250), ms(0));
        track.push(id(1), ms(250), ms(0));
        track.push(id(2), ms(250), ms(0));
        assert_eq!(
            track.acknowledge(id(0), Some(ms(90))),
            [Started(id(0)), Progress(id(0), ms(90))]
        );
        assert_eq!(track.acknowledge(id(0), Some(ms(20))), [Progress(id(0), ms(90))]);
        assert_eq!(track.acknowledge(id(0), Some(ms(999))), [Progress(id(0), ms(250))]);
        assert_eq!(
            track.acknowledge(id(1), None),
            [Finished(id(0)), Started(id(1)), Finished(id(1))]
        );
        assert_eq!(track.acknowledge(id(1), None), [], "it is over");
        track.acknowledge(id(2), Some(ms(40)));
        assert_eq!(track.stop(), Some((id(2), ms(40))));
        assert_eq!(track.acknowledge(id(2), Some(ms(60))), [], "it was dropped");
    }
}
