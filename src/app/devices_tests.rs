use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::bench::senses::{KnowsTheWords, LoudIsSpeech};
use crate::config::Settings;
use crate::ears::runtime::{Ears, EarsParts};
use crate::ears::{EchoPath, SourceEvent};
use crate::kernel::clock::FakeClock;
use crate::kernel::load::CoreLoad;

struct Silence;

impl Source for Silence {
    fn next(&mut self, _wait: Duration) -> SourceEvent {
        SourceEvent::Idle
    }

    fn echo_path(&self) -> EchoPath {
        EchoPath::Cancelled
    }
}

fn hello(input_rate: u32, output_rate: u32) -> RemoteHello {
    RemoteHello {
        name: "page".into(),
        input_rate,
        output_rate,
        echo_cancelled: true,
        half_duplex: false,
        acknowledges: true,
        sets_volume: true,
    }
}

#[tokio::test]
async fn a_device_that_only_speaks_leaves_hearing_to_the_microphone_here() {
    let clock = FakeClock::shared();
    let ears = Ears::new(EarsParts {
        settings: Settings::default().ears,
        source: None,
        vad: Box::new(LoudIsSpeech),
        end_of_turn: None,
        stt: Arc::new(KnowsTheWords::default()),
        stt_timeout: Duration::from_secs(1),
        load: CoreLoad::default(),
        turn_ids: Arc::default(),
    });
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let microphone: OpenMicrophone = Box::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        Some(Box::new(Silence))
    });
    let switch = Arc::new(SpeakerSwitch::default());
    let tell: Tell = Arc::new(|_| ());
    let devices = Devices::new(Some(ears.control()), switch, clock, microphone, None, tell);
    let opened = || opened.load(Ordering::Relaxed);
    let phone = devices.connect(hello(16_000, 24_000)).unwrap();
    assert_eq!((phone.mic.is_some(), opened()), (true, 0));
    // The phone's microphone goes away with the phone, which lost the speaker.
    let page = devices.connect(hello(0, 48_000)).unwrap();
    assert_eq!((page.mic.is_some(), opened()), (false, 1));
    drop(phone);
    assert_eq!(opened(), 1, "it was not the newest");
    drop(page);
    assert_eq!(opened(), 2, "with the voice here again");
}
