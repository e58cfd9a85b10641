//! The speaker in use, which can be another one at any moment: a remote device comes and goes, the
//! person chooses another output.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::kernel::ids::SegmentId;
use crate::kernel::ports::{Pcm, Speaker, SpeakerEvent};

/// Where a speaker sends its events. Each speaker has one of its own, by which the switch knows it.
#[derive(Clone, Debug)]
pub struct SpeakerPort {
    id: u64,
    queue: mpsc::UnboundedSender<Message>,
}

impl SpeakerPort {
    /// Reports an event. Never blocks; may be called from any thread.
    pub fn send(&self, event: SpeakerEvent) {
        // Nobody listens any more when Alice is stopping.
        let _ = self.queue.send(Message::Event(self.id, event));
    }
}

#[derive(Debug)]
enum Message {
    Event(u64, SpeakerEvent),
    Changed { port: Option<u64>, heard: Option<(SegmentId, Duration)> },
}

/// What the voice hears of its speaker.
#[derive(Clone, Debug, PartialEq)]
pub enum SwitchEvent {
    /// The speaker in use reports.
    Speaker(SpeakerEvent),
    /// Another speaker took over.
    Changed {
        /// There is one and, as far as is known, it works.
        usable: bool,
        /// What the one before had played of the segment that it was stopped in.
        heard: Option<(SegmentId, Duration)>,
    },
}

/// Passes everything on to the speaker in use. Calls never block.
pub struct SpeakerSwitch {
    state: Mutex<State>,
    queue: mpsc::UnboundedSender<Message>,
}

struct State {
    speaker: Option<(u64, Arc<dyn Speaker>)>,
    next_port: u64,
    volume: f32,
    ducked: bool,
    events: Option<mpsc::UnboundedReceiver<Message>>,
}

impl Default for SpeakerSwitch {
    fn default() -> Self {
        let (queue, events) = mpsc::unbounded_channel();
        let state =
            State { speaker: None, next_port: 0, volume: 1.0, ducked: false, events: Some(events) };
        Self { state: Mutex::new(state), queue }
    }
}

impl SpeakerSwitch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A port for a new speaker.
    pub fn port(&self) -> SpeakerPort {
        let mut state = self.state();
        state.next_port += 1;
        SpeakerPort { id: state.next_port, queue: self.queue.clone() }
    }

    /// Makes `speaker`, which reports through `port`, the one in use. The one before is stopped; a
    /// reply that it was playing ends with what was heard. Volume is carried over.
    pub fn use_speaker(&self, port: &SpeakerPort, speaker: Arc<dyn Speaker>) {
        self.change(Some((port.id, speaker)));
    }

    /// Uses no speaker: replies are text.
    pub fn use_nothing(&self) {
        self.change(None);
    }

    fn change(&self, speaker: Option<(u64, Arc<dyn Speaker>)>) {
        let mut state = self.state();
        let heard = state.speaker.take().and_then(|(_, before)| before.stop());
        let port = speaker.as_ref().map(|(port, speaker)| {
            speaker.set_volume(state.volume);
            speaker.duck(state.ducked);
            *port
        });
        state.speaker = speaker;
        // Under the lock, so that the order of changes in the queue is the order in which they were.
        let _ = self.queue.send(Message::Changed { port, heard });
    }

    /// The reports of whichever speaker is in use; there is one reader, the first who asks.
    pub fn events(&self) -> Option<SwitchEvents> {
        let queue = self.state().events.take()?;
        Some(SwitchEvents { queue, active: None, broken: HashMap::new() })
    }

    fn speaker(&self) -> Option<Arc<dyn Speaker>> {
        self.state().speaker.as_ref().map(|(_, speaker)| Arc::clone(speaker))
    }
}

impl Speaker for SpeakerSwitch {
    fn play(&self, segment: SegmentId, pcm: Arc<Pcm>) {
        if let Some(speaker) = self.speaker() {
            speaker.play(segment, pcm);
        }
    }

    fn stop(&self) -> Option<(SegmentId, Duration)> {
        self.speaker()?.stop()
    }

    fn duck(&self, on: bool) {
        let mut state = self.state();
        state.ducked = on;
        if let Some((_, speaker)) = &state.speaker {
            speaker.duck(on);
        }
    }

    fn set_volume(&self, volume: f32) {
        let mut state = self.state();
        state.volume = volume;
        if let Some((_, speaker)) = &state.speaker {
            speaker.set_volume(volume);
        }
    }
}

/// The reading end of a [`SpeakerSwitch`].
#[derive(Debug)]
pub struct SwitchEvents {
    queue: mpsc::UnboundedReceiver<Message>,
    active: Option<u64>,
    /// Speakers that lost their device and have not found it again.
    broken: HashMap<u64, String>,
}

impl SwitchEvents {
    /// The next report of the speaker in use; `None` when the switch and all speakers are gone.
    pub async fn next(&mut self) -> Option<SwitchEvent> {
        loop {
            let message = self.queue.recv().await?;
            if let Some(event) = self.take(message) {
                return Some(event);
            }
        }
    }

    /// The next report, if one waits.
    pub fn try_next(&mut self) -> Option<SwitchEvent> {
        while let Ok(message) = self.queue.try_recv() {
            if let Some(event) = self.take(message) {
                return Some(event);
            }
        }
        None
    }

    fn take(&mut self, message: Message) -> Option<SwitchEvent> {
        match message {
            Message::Changed { port, heard } => {
                self.active = port;
                let usable = port.is_some_and(|port| !self.broken.contains_key(&port));
                Some(SwitchEvent::Changed { usable, heard })
            }
            Message::Event(port, event) => {
                match &event {
                    SpeakerEvent::Lost(reason) => {
                        self.broken.insert(port, reason.clone());
                    }
                    SpeakerEvent::Ready(_) => {
                        self.broken.remove(&port);
                    }
                    _ => {}
                }
                (self.active == Some(port)).then_some(SwitchEvent::Speaker(event))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ids::TurnId;

    /// Remembers what it was told, and says that it was stopped in `heard`.
    #[derive(Default)]
    struct Told {
        lines: Mutex<Vec<String>>,
        heard: Option<(SegmentId, Duration)>,
    }

    impl Told {
        fn tell(&self, line: String) {
            self.lines.lock().unwrap().push(line);
        }
    }

    impl Speaker for Told {
        fn play(&self, segment: SegmentId, _: Arc<Pcm>) {
            self.tell(format!("play {segment}"));
        }
        fn stop(&self) -> Option<(SegmentId, Duration)> {
            self.tell("stop".into());
            self.heard
        }
        fn duck(&self, on: bool) {
            self.tell(format!("duck {on}"));
        }
        fn set_volume(&self, volume: f32) {
            self.tell(format!("volume {volume}"));
        }
    }

    const SEGMENT: SegmentId = SegmentId { turn: TurnId(1), index: 0 };

    #[test]
    fn a_change_stops_the_old_one_and_carries_the_volume_over() {
        let switch = SpeakerSwitch::default();
        let mut events = switch.events().unwrap();
        assert!(switch.events().is_none());
        let heard = Some((SEGMENT, Duration::from_millis(300)));
        let (one, two) = (Arc::new(Told { heard, ..Told::default() }), Arc::<Told>::default());
        let (first, second) = (switch.port(), switch.port());
        switch.use_speaker(&first, one.clone());
        switch.set_volume(0.4);
        switch.play(SEGMENT, Arc::new(Pcm { rate: 8000, samples: Vec::new() }));
        switch.use_speaker(&second, two.clone());
        assert_eq!(one.lines.lock().unwrap()[2..], ["volume 0.4", "play 1.0", "stop"]);
        assert_eq!(*two.lines.lock().unwrap(), ["volume 0.4", "duck false"]);
        assert_eq!(events.try_next(), Some(SwitchEvent::Changed { usable: true, heard: None }));
        assert_eq!(events.try_next(), Some(SwitchEvent::Changed { usable: true, heard }));
        // What the old one still says is not heard.
        first.send(SpeakerEvent::Finished(SEGMENT));
        second.send(SpeakerEvent::Drained);
        assert_eq!(events.try_next(), Some(SwitchEvent::Speaker(SpeakerEvent::Drained)));
        assert_eq!(events.try_next(), None);
    }

    #[test]
    fn a_speaker_that_broke_while_it_rested_is_known_to_be_broken() {
        let switch = SpeakerSwitch::default();
        let mut events = switch.events().unwrap();
        let (local, remote) = (switch.port(), switch.port());
        let speaker = Arc::<Told>::default();
        switch.use_speaker(&remote, speaker.clone());
        local.send(SpeakerEvent::Lost("gone".into()));
        switch.use_speaker(&local, speaker.clone());
        events.try_next();
        assert_eq!(events.try_next(), Some(SwitchEvent::Changed { usable: false, heard: None }));
        local.send(SpeakerEvent::Ready("card".into()));
        assert!(matches!(events.try_next(), Some(SwitchEvent::Speaker(SpeakerEvent::Ready(_)))));
        switch.use_nothing();
        assert_eq!(events.try_next(), Some(SwitchEvent::Changed { usable: false, heard: None }));
        assert_eq!(switch.stop(), None);
    }
}
