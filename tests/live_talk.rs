//! Whole talks with a real microphone and speaker: PulseAudio null sinks, the real programme.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "support/alice.rs"]
#[expect(dead_code, reason = "each test file uses its own part of the support")]
mod alice;
#[path = "support/pulse.rs"]
#[expect(dead_code, reason = "each test file uses its own part of the support")]
mod pulse;

use std::path::Path;
use std::time::{Duration, Instant};

use ::alice::bench::fake_llm::{Act, FakeLlm, Pace};
use ::alice::bench::report::percentile;
use alice::{Running, Seen};
use pulse::{Pulse, Recording};

const SECOND: Duration = Duration::from_secs(1);

/// A long reply, cut into sentences.
const STORY: &str = "Let me tell you about the lighthouse on the northern shore. Every evening the \
    keeper climbs one hundred and twelve steps to light the lamp. The ships far out on the water \
    wait for that light. In winter the waves are higher than the door. In summer the gulls sleep on \
    the railing and children come to count the stairs. Nobody has ever counted them the same way \
    twice.";

async fn model(replies: &[&str]) -> FakeLlm {
    let pace = Pace { first_token: Duration::from_millis(200), per_second: 40.0 };
    FakeLlm::start(pace, replies.iter().map(|reply| Act::Reply((*reply).to_owned()))).await.unwrap()
}

async fn start(pulse: &Pulse, model: &FakeLlm) -> Running {
    let running = Running::start(|command| {
        pulse.aim(command);
        command.args(["--set", "llm.model=paced", "--set", "llm.providers.paced.model=x", "--set"]);
        command.arg(format!("llm.providers.paced.base_url={}", model.base_url()));
    })
    .await;
    let live = |seen: &Seen| {
        let status = if seen.kind() == "snapshot" { &seen.event["mic"] } else { &seen.event };
        status["state"] == "live"
    };
    running.find(0, 15 * SECOND, live).await.expect("the microphone did not open");
    running
}

fn question(folder: &Path, text: &str) -> std::path::PathBuf {
    let wav = folder.join(format!("{}.wav", alice::words(text).join("_")));
    if !wav.is_file() {
        alice::speak_to(text, &wav);
    }
    wav
}

/// A recording that is known to run: its first samples are there.
async fn record(pulse: &Pulse, source: &str) -> Recording {
    let recording = pulse.record(source);
    let begun = Instant::now();
    while recording.len() == 0 {
        assert!(begun.elapsed() < 5 * SECOND, "nothing is recorded from {source}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    recording
}

#[tokio::test(flavor = "multi_thread")]
async fn live_a_spoken_question_is_answered_audibly() {
    let Some(pulse) = Pulse::start() else { return };
    if !alice::weights() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let wav = question(folder.path(), "What is the capital city of France?");
    // A fixed answer, long enough that one misheard word of the recogniser does not decide.
    let answer = "The capital city of France is Paris. It lies on the river Seine, and many people \
        visit its museums and gardens every year.";
    let model = model(&[answer]).await;
    let running = start(&pulse, &model).await;
    let mark = running.mark();
    let recording = record(&pulse, "speaker.monitor").await;
    pulse.speak(&wav);
    let done = running.expect(mark, 60 * SECOND, "turn_completed").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let heard = folder.path().join("heard.wav");
    pulse::write_wav(&heard, pulse::RATE, &recording.stop());
    let started = running.expect(mark, SECOND, "turn_started").await;
    let (reply, back) = (done.event["content"].as_str().unwrap(), alice::transcribe(&heard));
    println!("user: {}\nreply: {reply}\nback: {back}", started.event["user_text"]);
    assert!(
        alice::words_back("capital city of france", &started.event["user_text"].to_string()) > 0.7
    );
    assert!(!reply.is_empty());
    assert!(alice::words_back(reply, &back) >= 0.85, "{reply} / {back}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "acceptance run of minutes on a quiet machine: cargo nextest run --release --run-ignored only live_"]
async fn live_thirty_answers_with_their_echo_start_no_turn_of_their_own() {
    let Some(pulse) = Pulse::start() else { return };
    if !alice::weights() {
        return;
    }
    pulse.echo(Duration::from_millis(80), -6.0);
    let replies = [
        "The kettle is on, and the tea will be ready in a minute or two.",
        "I think it will rain tomorrow, so take your coat when you go out.",
        "Sure! The answer is forty two, and that has always been my favourite number.",
    ];
    let model = model(&replies.repeat(10)).await;
    let running = start(&pulse, &model).await;
    let recording = record(&pulse, "microphone").await;
    for answer in 0..30 {
        let mark = running.mark();
        let turn = running.chat("go on").await;
        let own = |seen: &Seen| seen.kind() == "turn_completed" && seen.event["turn"] == turn;
        let done = running.find(mark, 30 * SECOND, own).await.expect("no end of the answer");
        assert_eq!(done.event["interrupted"], false, "answer {answer} interrupted itself");
    }
    tokio::time::sleep(3 * SECOND).await;
    let echo = pulse::rms_db(&recording.stop());
    println!("echo in the microphone: {echo:.1} dBFS");
    assert!(echo > -45.0, "the echo was not in the microphone");
    let own: Vec<_> = running
        .seen()
        .into_iter()
        .filter(|seen| seen.kind() == "turn_started" && seen.event["source"] == "voice")
        .map(|seen| seen.event.to_string())
        .collect();
    let ducked = running.seen().iter().filter(|seen| seen.kind() == "ducked").count();
    println!("turns begun by the echo: {}; lowered {} times", own.len(), ducked / 2);
    assert!(own.is_empty(), "{own:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "acceptance run of minutes on a quiet machine: cargo nextest run --release --run-ignored only live_"]
async fn live_interrupting_in_ten_places_stops_the_sound_and_keeps_what_was_heard() {
    let Some(pulse) = Pulse::start() else { return };
    if !alice::weights() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let wav = question(folder.path(), "Stop, stop it, please wait a moment.");
    // Where the speech begins in the recording itself.
    let mut reader = hound::WavReader::open(&wav).unwrap();
    let rate = f64::from(reader.spec().sample_rate);
    let loud = reader.samples::<i16>().position(|sample| sample.unwrap().unsigned_abs() > 600);
    let lead_ms = loud.unwrap() as f64 * 1000.0 / rate;
    let model = model(&[STORY]).await;
    let running = start(&pulse, &model).await;
    let mut stops = Vec::new();
    for place in 0..10u64 {
        let mark = running.mark();
        let speaker = record(&pulse, "speaker.monitor").await;
        let microphone = record(&pulse, "microphone").await;
        let turn = running.chat("tell me a story").await;
        running.expect(mark, 20 * SECOND, "speaking_started").await;
        tokio::time::sleep(Duration::from_millis(700 + 450 * place)).await;
        pulse.speak(&wav);
        let own = |seen: &Seen| seen.kind() == "turn_completed" && seen.event["turn"] == turn;
        let done = running.find(mark, 10 * SECOND, own).await;
        let done = done.unwrap_or_else(|| panic!("place {place}: not interrupted"));
        assert_eq!(done.event["interrupted"], true, "place {place}");
        // The interruption itself is answered with the story again: end that too, when it comes.
        let next = |seen: &Seen| seen.kind() == "turn_started" && seen.event["source"] == "voice";
        running.find(mark, 6 * SECOND, next).await;
        let heard_end = speaker.len();
        running.post("/interrupt", serde_json::json!({})).await;
        tokio::time::sleep(SECOND).await;
        let (speaker_begun, microphone_begun) = (speaker.begun(), microphone.begun());
        let mut spoken = speaker.stop();
        spoken.truncate(heard_end);
        let said = microphone.stop();
        let onset = said.iter().position(|sample| sample.unsigned_abs() > 600).unwrap();
        let onset_ms = onset as f64 * 1000.0 / f64::from(pulse::RATE);
        let offset = microphone_begun.duration_since(speaker_begun).as_secs_f64() * 1000.0;
        let onset_in_speaker = onset_ms + offset;
        // The first reply's sound ends at the first 150 ms of silence behind the onset.
        let window = (pulse::RATE / 100) as usize;
        let from = (onset_in_speaker / 10.0) as usize;
        let quiet: Vec<bool> =
            spoken.chunks(window).map(|chunk| pulse::rms_db(chunk) < -50.0).collect();
        let end = (from..quiet.len().saturating_sub(15))
            .find(|at| quiet[*at..at + 15].iter().all(|quiet| *quiet))
            .unwrap_or(quiet.len());
        stops.push(end as f64 * 10.0 - onset_in_speaker);
        // What was heard, by an ear of its own, holds every word of the history but the cut one.
        let cut = (end * window).min(spoken.len());
        let file = folder.path().join("heard.wav");
        pulse::write_wav(&file, pulse::RATE, &spoken[..cut]);
        let (kept, back) = (done.event["content"].as_str().unwrap(), alice::transcribe(&file));
        println!(
            "place {place}: silent {:.0} ms after the onset (lead {lead_ms:.0}); kept `{kept}`; heard `{back}`",
            stops.last().unwrap()
        );
        assert!(STORY.starts_with(kept.trim()), "place {place}: `{kept}` is not what was said");
        let extra = alice::words(kept).len() as i64 - alice::words(&back).len() as i64;
        assert!(extra <= 1, "place {place}: kept `{kept}`, heard `{back}`");
    }
    let (p50, p95) = (percentile(&stops, 50.0).unwrap(), percentile(&stops, 95.0).unwrap());
    println!("onset → silence: p50 {p50:.0} ms, p95 {p95:.0} ms over {} places", stops.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn live_a_microphone_that_comes_back_is_heard_again() {
    let Some(pulse) = Pulse::start() else { return };
    if !alice::weights() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let wav = question(folder.path(), "What is the capital city of France?");
    let model = model(&["Paris."]).await;
    let running = start(&pulse, &model).await;
    let state = |wanted: &'static str| {
        move |seen: &Seen| seen.kind() == "mic" && seen.event["state"] == wanted
    };
    let mark = running.mark();
    let unplugged = Instant::now();
    pulse.unplug_microphone();
    let lost = running.find(mark, 5 * SECOND, state("lost")).await.expect("the loss is not said");
    println!("lost after {:?}: {}", lost.at - unplugged, lost.event["reason"]);
    assert!(lost.event["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
    tokio::time::sleep(SECOND).await;
    let mark = running.mark();
    let plugged = Instant::now();
    pulse.plug_microphone();
    let live = running.find(mark, 10 * SECOND, state("live")).await.expect("it did not come back");
    println!("back after {:?}", live.at - plugged);
    let mark = running.mark();
    pulse.speak(&wav);
    let done = running.expect(mark, 20 * SECOND, "turn_completed").await;
    assert_eq!(done.event["content"], "Paris.");
}
