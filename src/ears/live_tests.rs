//! The ears with their real engines on a real recording: pauses inside a sentence end no turn, and
//! its end does within the bar.

use std::sync::Arc;
use std::time::Duration;

use super::runtime::{Ears, EarsParts};
use super::smart_turn::SmartTurn;
use super::stt::moonshine::Moonshine;
use super::stt::wer::word_error_rate;
use super::vad::Silero;
use super::wav::{Pace, WavSource};
use crate::config::settings;
use crate::kernel::bus::{Bus, Events};
use crate::kernel::clock::{Clock, SystemClock};
use crate::kernel::contracts::{EarsStats, Event, GetEarsStats, MicState, Stage, TurnCommand};
use crate::kernel::host::Module;
use crate::kernel::ids::SessionId;
use crate::kernel::load::CoreLoad;

const JFK: &str = "And so, my fellow Americans, ask not what your country can do for you, ask what \
                   you can do for your country.";

struct Heard {
    texts: Vec<String>,
    /// Speech end, endpoint and transcript of each turn, ms.
    stages: Vec<(Stage, f64)>,
    stats: EarsStats,
}

/// Plays a recording to the ears; `None` where weights or the recording are missing.
async fn hear(recording: &str, pace: Pace) -> Option<Heard> {
    let path = crate::testing::fixture(recording)?;
    crate::testing::weights("smart-turn", "smart-turn-v3.2-cpu.onnx")?;
    crate::testing::weights("silero-vad", "silero_vad.onnx")?;
    let home = crate::testing::weights("moonshine-tiny", "encoder_model.onnx")?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let bus = Bus::new(Arc::clone(&clock), SessionId::fresh());
    let load = CoreLoad::default();
    let mut ears = Ears::new(EarsParts {
        settings: settings::Ears::default(),
        source: None,
        vad: Box::new(Silero::open_live(&home).unwrap()),
        end_of_turn: Some(Box::new(SmartTurn::open(&home, 1).unwrap())),
        stt: Arc::new(Moonshine::open(&home, 2, load.clone()).unwrap()),
        stt_timeout: Duration::from_secs(10),
        load,
        turn_ids: Arc::default(),
    });
    let _turns = bus.commands::<TurnCommand>().unwrap();
    let mut events = bus.subscribe("test", |event| !matches!(event, Event::Level { .. }));
    bus.start();
    ears.start(&bus).await.unwrap();
    let source = WavSource::open(&path, pace, clock).unwrap();
    ears.control().use_source(Box::new(source.with_silence(Duration::from_secs(4))));
    let (texts, stages) =
        tokio::time::timeout(Duration::from_secs(120), until_the_end(&mut events))
            .await
            .expect("the recording ends");
    let stats = bus.request(GetEarsStats).await.unwrap();
    ears.stop().await;
    Some(Heard { texts, stages, stats })
}

async fn until_the_end(events: &mut Events) -> (Vec<String>, Vec<(Stage, f64)>) {
    let (mut texts, mut stages, mut live) = (Vec::new(), Vec::new(), false);
    while let Some(event) = events.next().await {
        match &event.event {
            Event::Transcript { text, is_final: true, .. } => texts.push(text.clone()),
            Event::Stage { stage, at_ms, .. } => stages.push((*stage, *at_ms)),
            Event::Mic(mic) if mic.state == MicState::Live => live = true,
            Event::Mic(mic) if live && mic.state == MicState::Off => break,
            _ => {}
        }
    }
    (texts, stages)
}

/// The president pauses for 1.0, 0.9 and 0.5 s. The model takes the first pause for an end (0.93; so
/// would a person who reads "And so, my fellow Americans."), the others not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_word_is_lost_between_turns_and_pauses_inside_a_sentence_end_none() {
    let Some(heard) = hear("audio/jfk.wav", Pace::Fast).await else { return };
    assert!(heard.texts.len() <= 2, "{:?}", heard.texts);
    let wer = word_error_rate(JFK, &heard.texts.join(" "));
    assert!(wer <= 0.1, "word error rate {wer:.3}: {:?}", heard.texts);
    assert_eq!(heard.stats.turns as usize, heard.texts.len());
}

/// Prints what the end of a turn costs; run with `--no-capture --run-ignored all`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints times, in real time"]
async fn times() {
    for recording in ["audio/jfk.wav", "audio/silero-test-60s.wav"] {
        let Some(heard) = hear(recording, Pace::RealTime).await else { return };
        println!("{recording}: {:?}", heard.stats);
        for (text, stages) in heard.texts.iter().zip(heard.stages.chunks(3)) {
            let since: Vec<f64> = stages.iter().map(|(_, at)| (at - stages[0].1).round()).collect();
            println!(
                "{:6.0}  endpoint +{}, transcript +{}  {text}",
                stages[0].1, since[1], since[2]
            );
        }
    }
}
