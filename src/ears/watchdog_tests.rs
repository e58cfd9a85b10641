use super::*;

fn device(id: &str, hears: Loop) -> Candidate {
    Candidate { id: id.into(), name: id.to_uppercase(), hears }
}

fn mic(id: &str) -> Candidate {
    device(id, Loop::No)
}

fn only(default: Candidate) -> Seen {
    Seen { all: Some(vec![default.id.clone()]), default: Some(default), named: None }
}

fn tell(state: MicState, name: &str, reason: Option<&str>) -> Act {
    Act::Tell(MicStatus {
        state,
        device: (!name.is_empty()).then(|| name.to_uppercase()),
        reason: reason.map(String::from),
    })
}

fn tick(callback_ms: f64) -> Told {
    Told::Tick { callback_ms: Some(callback_ms) }
}

const NOTHING: Told = Told::Tick { callback_ms: None };

/// A watchdog whose stream of `device` is live at 100 ms.
fn live(wanted: Option<&str>, seen: Seen, device: &Candidate) -> Watchdog {
    let mut dog = Watchdog::new(wanted.map(String::from));
    assert_eq!(dog.step(0.0, NOTHING), [Act::Look]);
    let acts = dog.step(10.0, Told::Seen(seen));
    assert_eq!(acts.last(), Some(&Act::Open(device.clone())));
    assert_eq!(dog.step(50.0, Told::Opened), []);
    let told = dog.step(100.0, Told::Sound);
    assert!(
        matches!(told.as_slice(), [Act::Tell(MicStatus { state: MicState::Live, .. })]),
        "{told:?}"
    );
    dog
}

#[test]
fn a_microphone_is_ready_when_it_gives_sound() {
    let mut dog = Watchdog::new(None);
    assert_eq!(dog.step(0.0, NOTHING), [Act::Look]);
    assert_eq!(
        dog.step(10.0, Told::Seen(only(mic("a")))),
        [tell(MicState::Opening, "a", None), Act::Open(mic("a"))]
    );
    assert_eq!(dog.step(50.0, Told::Opened), []);
    assert_eq!(dog.step(400.0, tick(390.0)), []);
    assert_eq!(dog.step(410.0, Told::Sound), [tell(MicState::Live, "a", None)]);
    // Digital silence for minutes is fine from now on.
    for second in 1..60 {
        let now = f64::from(second) * 1_000.0;
        let acts = dog.step(now, tick(now - 10.0));
        assert!(acts.is_empty() || acts == [Act::Look]);
        dog.step(now, Told::Seen(only(mic("a"))));
    }
}

#[test]
fn only_zeros_is_live_with_a_remark() {
    let mut dog = Watchdog::new(None);
    dog.step(0.0, NOTHING);
    dog.step(10.0, Told::Seen(only(mic("a"))));
    dog.step(50.0, Told::Opened);
    assert_eq!(dog.step(1_040.0, tick(1_040.0)), []);
    let remark = Some("it gives only silence so far: is it muted?");
    assert_eq!(dog.step(1_100.0, tick(1_090.0)), [tell(MicState::Live, "a", remark)]);
    assert_eq!(dog.step(1_200.0, tick(1_190.0)), []);
    assert_eq!(dog.step(1_300.0, Told::Sound), [tell(MicState::Live, "a", None)]);
}

#[test]
fn a_stream_without_callbacks_is_opened_again() {
    let mut dog = live(None, only(mic("a")), &mic("a"));
    assert_eq!(dog.step(1_000.0, tick(900.0)), []);
    assert_eq!(dog.step(1_899.0, tick(900.0)), []);
    assert_eq!(
        dog.step(1_901.0, tick(900.0)),
        [Act::Close, tell(MicState::Lost, "a", Some("it gave no sound for a second"))]
    );
    assert_eq!(dog.step(2_100.0, NOTHING), []);
    assert_eq!(dog.step(2_151.0, NOTHING), [Act::Look]);
    // No word of each try, only when it is back.
    assert_eq!(dog.step(2_160.0, Told::Seen(only(mic("a")))), [Act::Open(mic("a"))]);
    assert_eq!(dog.step(2_200.0, Told::Opened), []);
    assert_eq!(dog.step(2_300.0, Told::Sound), [tell(MicState::Live, "a", None)]);
}

#[test]
fn tries_come_ever_more_slowly_and_never_in_a_loop() {
    let mut dog = Watchdog::new(None);
    let mut tries = Vec::new();
    let mut now = 0.0;
    while now < 60_000.0 {
        for act in dog.step(now, NOTHING) {
            if act == Act::Look {
                tries.push(now);
                dog.step(now, Told::Seen(only(mic("a"))));
                dog.step(now, Told::OpenFailed("busy".into()));
            }
        }
        now += 50.0;
    }
    let waits: Vec<f64> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits[..6], [250.0, 500.0, 1_000.0, 2_000.0, 4_000.0, 5_000.0]);
    assert!(waits[6..].iter().all(|wait| *wait == 5_000.0));
}

#[test]
fn a_missing_microphone_is_looked_for_every_second() {
    let mut dog = Watchdog::new(None);
    dog.step(0.0, NOTHING);
    assert_eq!(
        dog.step(0.0, Told::Seen(Seen::default())),
        [tell(MicState::Lost, "", Some("there is no microphone"))]
    );
    let mut tries = 0;
    for n in 1..200 {
        let now = f64::from(n) * 100.0;
        for act in dog.step(now, NOTHING) {
            assert_eq!(act, Act::Look);
            tries += 1;
            assert_eq!(dog.step(now, Told::Seen(Seen::default())), []);
        }
    }
    assert!((18..=22).contains(&tries), "{tries}");
}

#[test]
fn a_dead_stream_is_told_and_found_again() {
    let mut dog = live(None, only(mic("a")), &mic("a"));
    assert_eq!(
        dog.step(500.0, Told::Fault(Fault::Dead, "it was unplugged".into())),
        [Act::Close, tell(MicState::Lost, "a", Some("it was unplugged"))]
    );
    // A second error of the same stream changes nothing.
    assert_eq!(dog.step(501.0, Told::Fault(Fault::Dead, "again".into())), []);
    assert_eq!(dog.step(750.0, NOTHING), [Act::Look]);
    assert_eq!(
        dog.step(760.0, Told::Seen(Seen::default())),
        [tell(MicState::Lost, "a", Some("`A` is gone"))]
    );
    assert_eq!(dog.step(1_260.0, NOTHING), [Act::Look]);
    assert_eq!(dog.step(1_270.0, Told::Seen(only(mic("a")))), [Act::Open(mic("a"))]);
}

#[test]
fn harmless_errors_change_nothing() {
    let mut dog = live(None, only(mic("a")), &mic("a"));
    assert_eq!(dog.step(500.0, Told::Fault(Fault::Harmless, "xrun".into())), []);
    assert_eq!(dog.step(600.0, tick(590.0)), []);
}

#[test]
fn the_default_device_is_followed() {
    let mut dog = live(None, only(mic("a")), &mic("a"));
    assert_eq!(dog.step(2_100.0, tick(2_090.0)), [Act::Look]);
    let seen =
        Seen { default: Some(mic("b")), named: None, all: Some(vec!["a".into(), "b".into()]) };
    assert_eq!(
        dog.step(2_110.0, Told::Seen(seen)),
        [
            Act::Close,
            tell(MicState::Opening, "b", Some("the default microphone is `B` now")),
            Act::Open(mic("b")),
        ]
    );
}

#[test]
fn a_rerouted_stream_is_looked_at_at_once() {
    let mut dog = live(None, only(mic("a")), &mic("a"));
    assert_eq!(dog.step(200.0, Told::Fault(Fault::Rerouted, String::new())), []);
    assert_eq!(dog.step(210.0, tick(205.0)), [Act::Look]);
}

#[test]
fn a_named_device_is_come_back_to() {
    let seen = |named: Option<Candidate>| Seen {
        default: Some(mic("a")),
        named,
        all: Some(vec!["a".into(), "usb".into()]),
    };
    let mut dog = Watchdog::new(Some("usb".into()));
    dog.step(0.0, NOTHING);
    assert_eq!(
        dog.step(10.0, Told::Seen(seen(None))),
        [
            tell(
                MicState::Opening,
                "a",
                Some("there is no microphone `usb`: the default one is used")
            ),
            Act::Open(mic("a")),
        ]
    );
    dog.step(50.0, Told::Opened);
    dog.step(100.0, Told::Sound);
    assert_eq!(dog.step(2_100.0, tick(2_090.0)), [Act::Look]);
    assert_eq!(dog.step(2_110.0, Told::Seen(seen(None))), []);
    assert_eq!(dog.step(4_200.0, tick(4_190.0)), [Act::Look]);
    assert_eq!(
        dog.step(4_210.0, Told::Seen(seen(Some(mic("usb"))))),
        [
            Act::Close,
            tell(MicState::Opening, "usb", Some("`USB` is here again")),
            Act::Open(mic("usb")),
        ]
    );
    dog.step(4_300.0, Told::Opened);
    dog.step(4_400.0, Told::Sound);
    // And stays there, whatever the default is.
    assert_eq!(dog.step(6_400.0, tick(6_390.0)), [Act::Look]);
    assert_eq!(dog.step(6_410.0, Told::Seen(seen(Some(mic("usb"))))), []);
}

#[test]
fn a_monitor_is_a_microphone_only_when_it_was_chosen() {
    // From the start, or while the microphone is there: somebody wants it.
    let monitor = device("mic.monitor", Loop::Monitor);
    live(None, only(monitor.clone()), &monitor);
    let mut dog = live(None, only(mic("a")), &mic("a"));
    dog.step(2_100.0, tick(2_090.0));
    let both = Seen {
        default: Some(monitor.clone()),
        named: None,
        all: Some(vec!["a".into(), "mic.monitor".into()]),
    };
    assert_eq!(dog.step(2_110.0, Told::Seen(both)).last(), Some(&Act::Open(monitor.clone())));
    // When the microphone goes: the sound server's stopgap.
    let mut dog = live(None, only(mic("a")), &mic("a"));
    dog.step(2_100.0, tick(2_090.0));
    assert_eq!(
        dog.step(2_110.0, Told::Seen(only(monitor.clone()))),
        [Act::Close, tell(MicState::Lost, "a", Some("`A` is gone"))]
    );
    assert_eq!(dog.step(2_400.0, NOTHING), [Act::Look]);
    assert_eq!(dog.step(2_410.0, Told::Seen(only(monitor))), []);
}

#[test]
fn her_own_voice_is_no_microphone() {
    let mut dog = Watchdog::new(None);
    dog.step(0.0, NOTHING);
    assert_eq!(
        dog.step(10.0, Told::Seen(only(device("speaker.monitor", Loop::OwnVoice)))),
        [tell(MicState::Lost, "", Some("there is no microphone"))]
    );
}

#[test]
fn who_hangs_is_left_alone() {
    let mut dog = Watchdog::new(None);
    assert_eq!(dog.step(0.0, NOTHING), [Act::Look]);
    assert_eq!(dog.step(4_900.0, NOTHING), []);
    assert_eq!(
        dog.step(5_001.0, NOTHING),
        [Act::Abandon, tell(MicState::Lost, "", Some("the sound system does not answer"))]
    );
    assert_eq!(dog.step(5_300.0, NOTHING), [Act::Look]);
    dog.step(5_310.0, Told::Seen(only(mic("a"))));
    let acts = dog.step(10_400.0, NOTHING);
    assert_eq!(acts.first(), Some(&Act::Abandon));
}
