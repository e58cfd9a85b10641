use super::*;
use crate::kernel::clock::FakeClock;
use crate::kernel::ids::TurnId;
use crate::voice::switch::{SpeakerSwitch, SwitchEvent, SwitchEvents};

struct Rig {
    clock: Arc<FakeClock>,
    switch: SpeakerSwitch,
    events: SwitchEvents,
    acks: Box<dyn RemoteAcks>,
    out: mpsc::Receiver<RemoteOut>,
}

fn hello(output_rate: u32) -> RemoteHello {
    RemoteHello {
        name: "phone".into(),
        input_rate: 16_000,
        output_rate,
        echo_cancelled: false,
        half_duplex: false,
        acknowledges: false,
        sets_volume: false,
    }
}

impl Rig {
    fn new() -> Self {
        Self::of(&hello(8_000))
    }

    fn of(hello: &RemoteHello) -> Self {
        let clock = FakeClock::shared();
        let switch = SpeakerSwitch::default();
        let events = switch.events().unwrap();
        let port = switch.port();
        let (speaker, acks, out) = RemoteSpeaker::new(hello, port.clone(), clock.clone()).unwrap();
        switch.use_speaker(&port, speaker);
        Self { clock, switch, events, acks, out }
    }

    fn play(&self, index: u32, ms: usize) {
        let pcm = Pcm { rate: 16_000, samples: vec![0.25; ms * 16] };
        self.switch.play(id(index), Arc::new(pcm));
    }

    /// Everything sent down up to the end of a segment: marks, and how many samples lay between.
    async fn sent(&mut self, until: u32) -> (Vec<RemoteOut>, usize) {
        let (mut marks, mut samples) = (Vec::new(), 0);
        while let Some(message) = self.out.recv().await {
            let done = message == RemoteOut::End(id(until));
            match message {
                RemoteOut::Sound(frame) => samples += frame.len(),
                mark => marks.push(mark),
            }
            if done {
                break;
            }
        }
        (marks, samples)
    }

    async fn event(&mut self) -> SpeakerEvent {
        loop {
            match self.events.next().await.unwrap() {
                SwitchEvent::Speaker(SpeakerEvent::Ready(_)) | SwitchEvent::Changed { .. } => {}
                SwitchEvent::Speaker(event) => return event,
            }
        }
    }

    fn quiet(&mut self) -> bool {
        self.events.try_next().is_none()
    }
}

fn id(index: u32) -> SegmentId {
    SegmentId { turn: TurnId(4), index }
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[tokio::test]
async fn sound_goes_down_at_once_between_its_marks() {
    let mut rig = Rig::new();
    rig.play(0, 5_000);
    rig.play(1, 1_000);
    // No time passes on the clock.
    let (marks, samples) = rig.sent(1).await;
    assert_eq!(samples, 6_000 * 8);
    let wanted = [
        RemoteOut::Duck(false),
        RemoteOut::Start { segment: id(0), duration_ms: 5_000.0 },
        RemoteOut::End(id(0)),
        RemoteOut::Start { segment: id(1), duration_ms: 1_000.0 },
        RemoteOut::End(id(1)),
    ];
    assert_eq!(marks, wanted);
}

#[tokio::test]
async fn without_acknowledgements_the_clock_stands_for_them() {
    let mut rig = Rig::new();
    rig.play(0, 250);
    rig.sent(0).await;
    assert_eq!(rig.event().await, SpeakerEvent::Started(id(0)));
    rig.clock.advance(ms(100));
    assert_eq!(rig.event().await, SpeakerEvent::Progress(id(0), ms(100)));
    rig.clock.advance(ms(150));
    assert_eq!(rig.event().await, SpeakerEvent::Finished(id(0)));
    assert_eq!(rig.event().await, SpeakerEvent::Drained);
}

#[tokio::test]
async fn a_device_that_acknowledges_is_believed_and_not_the_clock() {
    let mut rig = Rig::new();
    rig.play(0, 250);
    rig.sent(0).await;
    assert_eq!(rig.event().await, SpeakerEvent::Started(id(0)));
    rig.acks.played(id(0), ms(60));
    assert_eq!(rig.event().await, SpeakerEvent::Progress(id(0), ms(60)));
    rig.clock.advance(ms(5_000));
    tokio::task::yield_now().await;
    assert!(rig.quiet(), "it may lag behind");
    assert_eq!(rig.switch.stop(), Some((id(0), ms(60))));
    rig.acks.finished(id(0));
    assert!(rig.quiet(), "what was flushed is not reported");

    rig.play(1, 250);
    rig.sent(1).await;
    tokio::task::yield_now().await;
    rig.acks.played(id(9), ms(60));
    rig.acks.finished(id(1));
    assert_eq!(rig.event().await, SpeakerEvent::Started(id(1)));
    assert_eq!(rig.event().await, SpeakerEvent::Finished(id(1)));
}

#[tokio::test]
async fn a_device_that_promised_to_acknowledge_is_not_taken_to_play_before_it_says_so() {
    let mut rig = Rig::of(&RemoteHello { acknowledges: true, ..hello(8_000) });
    rig.play(0, 250);
    rig.sent(0).await;
    rig.clock.advance(ms(5_000));
    tokio::task::yield_now().await;
    rig.acks.waiting(id(7));
    rig.acks.waiting(id(0));
    assert_eq!(rig.event().await, SpeakerEvent::Waiting(id(0)), "and nothing of what it has not");
    assert!(rig.quiet());
    rig.acks.played(id(0), ms(20));
    assert_eq!(rig.event().await, SpeakerEvent::Started(id(0)));
    assert_eq!(rig.event().await, SpeakerEvent::Progress(id(0), ms(20)));
}

#[tokio::test]
async fn what_waited_and_was_dropped_was_not_heard() {
    let mut rig = Rig::new();
    rig.acks.waiting(id(0));
    rig.play(0, 250);
    rig.sent(0).await;
    assert_eq!(rig.event().await, SpeakerEvent::Started(id(0)), "it promised nothing");
    let mut rig = Rig::of(&RemoteHello { acknowledges: true, ..hello(8_000) });
    rig.play(0, 250);
    rig.sent(0).await;
    rig.acks.waiting(id(0));
    assert_eq!(rig.switch.stop(), None);
}

#[tokio::test]
async fn a_device_that_sets_its_volume_gets_it_beside_the_sound() {
    let mut rig = Rig::of(&RemoteHello { sets_volume: true, ..hello(8_000) });
    rig.switch.set_volume(0.5);
    rig.play(0, 100);
    let (mut volumes, mut loudest) = (Vec::new(), 0);
    while let Some(message) = rig.out.recv().await {
        match message {
            RemoteOut::Volume(volume) => volumes.push(volume),
            RemoteOut::Sound(frame) => loudest = loudest.max(frame.into_iter().max().unwrap()),
            RemoteOut::End(_) => break,
            _ => {}
        }
    }
    assert_eq!(volumes, [1.0, 0.5]);
    assert!((i32::from(loudest) - 8192).abs() < 1_000, "{loudest}");
}

#[tokio::test]
async fn after_a_flush_nothing_old_is_sent() {
    let mut rig = Rig::new();
    for index in 0..3 {
        rig.play(index, 3_000);
    }
    rig.switch.stop();
    rig.play(3, 100);
    let mut flushed = false;
    loop {
        match rig.out.recv().await.unwrap() {
            RemoteOut::Flush { .. } => flushed = true,
            RemoteOut::Start { segment, .. } | RemoteOut::End(segment) if flushed => {
                assert_eq!(segment, id(3));
                if segment == id(3) {
                    break;
                }
            }
            RemoteOut::Sound(_) => assert!(!flushed, "sound without a start"),
            _ => {}
        }
    }
    assert_eq!(rig.sent(3).await.1, 800);
}

#[tokio::test]
async fn a_device_that_does_not_read_is_let_go() {
    let mut rig = Rig::new();
    for index in 0..20 {
        rig.play(index, 3_000);
    }
    loop {
        if let SpeakerEvent::Lost(reason) = rig.event().await {
            assert_eq!(reason, "`phone` does not take its sound");
            break;
        }
    }
    let mut waiting = 0;
    while rig.out.recv().await.is_some() {
        waiting += 1;
    }
    assert_eq!(waiting, WAITING, "the line is bounded, and closed");
    assert_eq!(rig.switch.stop(), None);
}

#[tokio::test]
async fn a_device_that_went_away_is_named() {
    let mut rig = Rig::new();
    rig.out.close();
    rig.play(0, 100);
    assert_eq!(rig.event().await, SpeakerEvent::Lost("`phone` is gone".into()));
}

#[tokio::test]
async fn volume_is_in_the_sound_and_ducking_is_the_devices() {
    let mut rig = Rig::new();
    rig.switch.set_volume(0.5);
    rig.switch.duck(true);
    rig.play(0, 100);
    let mut ducked = false;
    loop {
        match rig.out.recv().await.unwrap() {
            RemoteOut::Duck(on) => ducked = on,
            RemoteOut::Sound(frame) => {
                assert!((i32::from(frame[frame.len() / 2]) - 4096).abs() < 40, "{frame:?}");
                break;
            }
            _ => {}
        }
    }
    assert!(ducked);
}

#[tokio::test]
async fn rates_that_no_device_has_are_refused() {
    for rate in [0, 7_999, 96_000] {
        let switch = SpeakerSwitch::default();
        let refused = RemoteSpeaker::new(&hello(rate), switch.port(), FakeClock::shared());
        assert!(refused.is_err_and(|line| line.contains("8000 to 48000")), "{rate}");
    }
}
