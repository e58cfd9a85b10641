//! The bad days: each fault is told in a line that says what to do, nothing that was said is lost,
//! and Alice listens again within a second.
//!
//! Each test runs the real programme. Where a fault has nothing to do with a sound card, a remote
//! device is her microphone and speaker, so that a spoken question is heard on any machine.

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
#[path = "support/phone.rs"]
mod phone;
#[path = "support/pulse.rs"]
#[expect(dead_code, reason = "each test file uses its own part of the support")]
mod pulse;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ::alice::bench::fake_llm::{Act, FakeLlm, Pace};
use alice::{Running, Seen};
use phone::{Phone, Plays};
use pulse::Pulse;
use serde_json::Value;

const SECOND: Duration = Duration::from_secs(1);

/// What is asked aloud, and the answer when all is well.
const QUESTION: &str = "What is the capital city of France?";
const ANSWER: &str = "It is Paris.";

const STORY: &str = "Let me tell you about the lighthouse on the northern shore. Every evening the \
    keeper climbs one hundred and twelve steps to light the lamp. The ships far out on the water \
    wait for that light.";

/// A secret that must not be shown to anybody.
const KEY: &str = "sk-do-not-show-this-to-anybody";

/// The question as a recording, made once for all tests.
fn question() -> PathBuf {
    let wav = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fault-question.wav");
    if !wav.is_file() {
        let fresh = tempfile::NamedTempFile::with_suffix_in(".wav", wav.parent().unwrap()).unwrap();
        alice::speak_to(QUESTION, fresh.path());
        fresh.persist(&wav).unwrap();
    }
    wav
}

fn reply(text: &str) -> Act {
    Act::Reply(text.to_owned())
}

/// Settings of a model server at this address, and no sound card.
fn without_devices(command: &mut Command, base_url: &str) {
    command.args(["--set", "ears.enabled=false", "--set", "voice.device=none"]);
    with_model(command, base_url);
}

fn with_model(command: &mut Command, base_url: &str) {
    command.args(["--set", "llm.model=fake", "--set", "llm.providers.fake.model=x", "--set"]);
    command.arg(format!("llm.providers.fake.base_url={base_url}"));
}

/// A running Alice with a model server that behaves as it is told, spoken to through a device.
struct Scene {
    model: FakeLlm,
    phone: Phone,
    running: Running,
}

impl Scene {
    /// Starts; `None`, with the reason printed, where there are no weights.
    async fn start(act: Act, plays: Plays, aim: impl FnOnce(&mut Command)) -> Option<Self> {
        if !alice::weights() {
            return None;
        }
        let model = FakeLlm::start(Pace::INSTANT, [act]).await.unwrap();
        let running = Running::start(|command| {
            without_devices(command, &model.base_url());
            aim(command);
        })
        .await;
        let phone = Phone::connect(&running.address, running.token(), plays).await;
        let scene = Self { model, phone, running };
        scene.listens(0).await;
        Some(scene)
    }

    /// Asks aloud; what happens from the mark on belongs to it.
    fn ask(&self) -> usize {
        let mark = self.running.mark();
        self.phone.speak(&question());
        mark
    }

    /// Waits until she listens, and says when she began to.
    async fn listens(&self, mark: usize) -> Instant {
        listens(&self.running, mark).await
    }

    /// The end of a row: she listened again within a second after the line, the next question is
    /// answered, and both questions stand in the transcript.
    async fn recovers(&self, row: &str, line: &str, told: Instant, mark: usize) {
        listened_again(row, line, told, self.listens(mark).await);
        self.model.behave(reply(ANSWER));
        let mark = self.ask();
        let done = self.running.expect(mark, 20 * SECOND, "turn_completed").await;
        assert_eq!(done.event["content"], ANSWER);
        assert_eq!(asked(&self.running), 2, "{:?}", self.running.transcript());
    }
}

/// How often the question stands in the transcript.
fn asked(running: &Running) -> usize {
    let question = |line: &Value| {
        let text = line["text"].as_str().unwrap_or_default().to_lowercase();
        line["kind"] == "user" && text.contains("capital") && text.contains("france")
    };
    running.transcript().iter().filter(|line| question(line)).count()
}

/// Waits until the newest state of her ears since `mark` is `listening`; when it became so.
async fn listens(running: &Running, mark: usize) -> Instant {
    let begun = Instant::now();
    loop {
        let mut states = running.since(mark).into_iter().filter_map(|seen| {
            let state = if seen.kind() == "snapshot" {
                seen.event["scene"]["listen"].clone()
            } else {
                (seen.kind() == "listen").then(|| seen.event["state"].clone())?
            };
            Some((state, seen.at))
        });
        match states.next_back() {
            Some((state, at)) if state == "listening" => return at,
            last => assert!(begun.elapsed() < 20 * SECOND, "she does not listen: {last:?}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn listened_again(row: &str, line: &str, told: Instant, again: Instant) {
    let after = again.saturating_duration_since(told);
    println!("| {row} | {line} | {} |", after.as_millis());
    assert!(after < SECOND, "{row}: listening again after {after:?}");
    assert!(!line.contains(KEY), "{row}: a secret is shown");
}

fn text<'a>(seen: &'a Seen, field: &str) -> &'a str {
    seen.event[field].as_str().unwrap_or_default()
}

/// Runs a command that has to end by itself.
fn ends(command: &mut Command) -> (Output, Duration) {
    let begun = Instant::now();
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > 60 * SECOND {
            let _ = child.kill();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let took = begun.elapsed();
    (child.wait_with_output().unwrap(), took)
}

fn run_on(home: &Path) -> Command {
    let mut command = alice::alice();
    command.arg("--home").arg(home).args(["--set", "server.listen=127.0.0.1:0", "run"]);
    command
}

/// The one line with which a start failed.
fn error(output: &Output) -> String {
    let all = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = all.lines().find(|line| line.starts_with("error: "));
    line.unwrap_or_else(|| panic!("no error is told: {all}")).to_owned()
}

/// A folder that is a small disk of its own; gone with the value.
struct Disk(PathBuf);

impl Disk {
    /// Mounts; prints why and gives nothing where this user may not.
    fn mount(at: &Path, options: &str) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "none"]).arg(at).stderr(Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            return Some(Self(at.to_owned()));
        }
        eprintln!("skipped: this user can't mount a small disk");
        None
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

// ---- language model -----------------------------------------------------------------------------

/// A turn fails; the line holds all of `parts`.
async fn the_model_fails(row: &str, act: Act, parts: &[&str]) {
    let key = format!("llm.providers.fake.api_key={KEY}");
    let aim = |command: &mut Command| {
        command.args(["--set", "llm.timeout_s=1", "--set", &key]);
    };
    let Some(scene) = Scene::start(act, Plays::AtOnce, aim).await else { return };
    let mark = scene.ask();
    let failed = scene.running.expect(mark, 20 * SECOND, "turn_failed").await;
    let line = text(&failed, "error");
    assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    assert!(scene.running.told("no answer").await.ends_with(line));
    scene.recovers(row, line, failed.at, mark).await;
    assert!(!scene.running.stderr().contains(KEY), "{}", scene.running.stderr());
}

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_the_model_server_is_not_there() {
    if !alice::weights() {
        return;
    }
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let base_url = format!("http://127.0.0.1:{port}/v1");
    let running = Running::start(|command| without_devices(command, &base_url)).await;
    let phone = Phone::connect(&running.address, running.token(), Plays::AtOnce).await;
    listens(&running, 0).await;
    let mark = running.mark();
    phone.speak(&question());
    let failed = running.expect(mark, 20 * SECOND, "turn_failed").await;
    let line = text(&failed, "error");
    assert!(line.contains(&base_url) && line.contains("is it running?"), "{line}");
    let model = FakeLlm::start_on(port, Pace::INSTANT, [reply(ANSWER)]).await.unwrap();
    let scene = Scene { model, phone, running };
    scene.recovers("LLM server refuses the connection", line, failed.at, mark).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_the_model_server_refuses_the_key() {
    let body = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    let act = Act::Status(401, Vec::new(), body);
    the_model_fails(
        "LLM server refuses the key",
        act,
        &["refuses the key", "`llm.providers.fake.api_key`"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_the_model_server_hangs() {
    the_model_fails("LLM server hangs", Act::Hang, &["said nothing for 1 s", "ask again"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_the_model_server_is_out_of_quota() {
    let body = r#"{"error":{"message":"Rate limit reached","type":"rate_limit"}}"#.to_owned();
    let act = Act::Status(429, vec![("retry-after", "30".into())], body);
    the_model_fails(
        "LLM server answers 429",
        act,
        &["no more requests for now", "ask again in 30 s"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_the_model_server_sends_garbage() {
    let act = Act::Raw("text/event-stream", vec![b"data: \xff\xfe{]\n\n".to_vec()]);
    the_model_fails("LLM server sends garbage", act, &["is not a chat reply", "base_url"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_the_model_server_is_a_web_page() {
    let act = Act::Raw("text/html", vec![b"<!doctype html><title>Welcome</title>".to_vec()]);
    the_model_fails("LLM server is a web page", act, &["web page", "base_url"]).await;
}

/// A reply breaks off: what came of it is spoken and kept, and the rest is said to be missing.
async fn the_reply_breaks_off(row: &str, act: Act, part: &str) {
    let aim = |command: &mut Command| {
        command.args(["--set", "llm.timeout_s=1"]);
    };
    let Some(scene) = Scene::start(act, Plays::AtOnce, aim).await else { return };
    let mark = scene.ask();
    let notice = scene.running.expect(mark, 20 * SECOND, "notice").await;
    let line = text(&notice, "text");
    assert!(line.contains("the reply is not whole") && line.contains(part), "{line}");
    let done = scene.running.expect(mark, 10 * SECOND, "turn_completed").await;
    let said = text(&done, "content");
    assert!(said.starts_with("Let me tell you about the lighthouse"), "{said}");
    assert!(STORY.starts_with(said), "{said}");
    scene.recovers(row, line, notice.at, mark).await;
    let kept = |line: &Value| line["kind"] == "assistant" && line["text"] == said;
    assert!(scene.running.transcript().iter().any(kept), "{:?}", scene.running.transcript());
}

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_the_model_server_drops_in_mid_stream() {
    let act = Act::Cut(STORY.into(), 14);
    the_reply_breaks_off("LLM server drops mid-stream", act, "broke the connection").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_the_model_server_hangs_in_mid_stream() {
    let act = Act::Stall(STORY.into(), 14);
    the_reply_breaks_off("LLM server hangs mid-stream", act, "said nothing for 1 s").await;
}

// ---- weights ------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_there_are_no_weights() {
    let none = tempfile::tempdir().unwrap();
    let model = FakeLlm::start(Pace::INSTANT, [reply(ANSWER)]).await.unwrap();
    let running = Running::start(|command| {
        without_devices(command, &model.base_url());
        command.env("ALICE_MODELS", none.path());
    })
    .await;
    for part in ["Alice can't hear", "Alice can't speak"] {
        let line = running.told(part).await;
        assert!(line.contains("are missing") && line.contains("`alice models pull`"), "{line}");
    }
    assert!(!running.stderr().contains("code="), "{}", running.stderr());
    // A page that is opened later is told as well.
    let snapshot = running.seen()[0].event["notices"].to_string();
    assert!(snapshot.contains("\"deaf\"") && snapshot.contains("\"mute\""), "{snapshot}");
    // Typing works.
    let (typed, mark) = (Instant::now(), running.mark());
    running.chat("What is the capital city of France?").await;
    let done = running.expect(mark, 5 * SECOND, "turn_completed").await;
    assert_eq!(done.event["content"], ANSWER);
    let line = running.told("Alice can't hear").await;
    listened_again("no weights", &line, typed, done.at);

    // And without any model she says so for each question.
    let running = Running::start(|command| {
        command.args(["--set", "llm.model=embedded", "--set", "ears.enabled=false"]);
        command.env("ALICE_MODELS", none.path());
    })
    .await;
    let mark = running.mark();
    running.chat("What is the capital city of France?").await;
    let failed = running.expect(mark, 5 * SECOND, "turn_failed").await;
    let line = text(&failed, "error");
    assert!(line.contains("no language model") && line.contains("`alice models pull`"), "{line}");
    assert_eq!(asked(&running), 1);
}

/// A models folder whose files are those of the real one, except that these are damaged: one byte is
/// another.
fn damaged_models(damaged: &[(&str, &str)]) -> tempfile::TempDir {
    let real = ::alice::config::Home::from_env().models();
    let folder = tempfile::tempdir().unwrap();
    link_all(&real, folder.path());
    for (model, file) in damaged {
        let path = folder.path().join(model).join(file);
        fs::remove_file(&path).unwrap();
        let mut bytes = fs::read(real.join(model).join(file)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        fs::write(&path, bytes).unwrap();
    }
    folder
}

fn link_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&target).unwrap();
            link_all(&entry.path(), &target);
        } else if entry.file_name() == ".verified" {
            // Is written to.
            fs::copy(entry.path(), target).unwrap();
        } else {
            std::os::unix::fs::symlink(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_weights_have_a_bad_hash() {
    if !alice::weights() {
        return;
    }
    let (piper, turns) = ("en_US-joe-medium.onnx", "smart-turn-v3.2-cpu.onnx");
    let models = damaged_models(&[("piper-joe", piper), ("smart-turn", turns)]);
    let aim = |command: &mut Command| {
        command.env("ALICE_MODELS", models.path());
    };
    let started = Scene::start(reply(ANSWER), Plays::AtOnce, aim).await;
    let Some(scene) = started else { return };
    let voice = scene.running.told("`piper-joe` are damaged").await;
    assert!(voice.contains("`alice models pull piper-joe`") && voice.contains("kokoro"), "{voice}");
    let turns = scene.running.told("`smart-turn` are damaged").await;
    assert!(turns.contains("by a timer"), "{turns}");
    // She hears and speaks all the same.
    let mark = scene.ask();
    let done = scene.running.expect(mark, 20 * SECOND, "turn_completed").await;
    assert_eq!(done.event["content"], ANSWER);
    assert!(scene.running.since(mark).iter().any(|seen| seen.kind() == "segment_finished"));
    scene.recovers("bad hash", &voice, done.at, mark).await;
}

// ---- voice --------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_one_segment_cannot_be_spoken() {
    // No engine of hers speaks Russian.
    let (first, second, third) =
        ("It is warm and sunny today.", "Сегодня тепло и солнечно.", "Have a nice walk outside.");
    let act = reply(&format!("{first} {second} {third}"));
    let Some(scene) = Scene::start(act, Plays::AtOnce, |_| {}).await else { return };
    let mark = scene.ask();
    let done = scene.running.expect(mark, 20 * SECOND, "turn_completed").await;
    let seen = scene.running.since(mark);
    let skipped: Vec<_> = seen.iter().filter(|seen| seen.kind() == "segment_skipped").collect();
    let [skipped] = skipped[..] else { panic!("{skipped:?}") };
    assert_eq!(text(skipped, "display").trim(), second);
    let line = text(skipped, "reason");
    assert!(line.contains("speak"), "{line}");
    let spoken: Vec<_> = seen
        .iter()
        .filter(|seen| seen.kind() == "segment_ready")
        .map(|seen| text(seen, "display").trim())
        .collect();
    assert_eq!(spoken, [first, third]);
    let whole = text(&done, "content");
    assert!([first, second, third].iter().all(|part| whole.contains(part)), "{whole}");
    scene.recovers("TTS fails on one segment", line, done.at, mark).await;
}

// ---- viewers and devices ------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_a_viewer_goes_away_while_she_speaks() {
    let Some(mut scene) = Scene::start(reply(STORY), Plays::Until(600), |_| {}).await else {
        return;
    };
    // A page of which the connection is cut.
    let address = scene.running.address.trim_start_matches("http://").to_owned();
    let mut page = std::net::TcpStream::connect(&address).unwrap();
    let request = format!("GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n");
    std::io::Write::write_all(&mut page, request.as_bytes()).unwrap();
    std::io::Read::read_exact(&mut page, &mut [0; 64]).unwrap();
    let mark = scene.ask();
    scene.running.expect(mark, 20 * SECOND, "segment_progress").await;
    drop(page);
    // And the device that plays.
    scene.phone.hang_up();
    let gone = Instant::now();
    let done = scene.running.expect(mark, 5 * SECOND, "turn_completed").await;
    let kept = text(&done, "content");
    assert!(!kept.is_empty() && STORY.starts_with(kept) && kept.len() < 60, "{kept}");
    let notice = scene.running.expect(mark, SECOND, "notice").await;
    let line = text(&notice, "text").to_owned();
    assert!(line.contains("`phone`"), "{line}");
    // What is typed is answered at once, without sound.
    scene.model.behave(reply(ANSWER));
    let typed = scene.running.mark();
    scene.running.chat("What is the capital city of France?").await;
    let done = scene.running.expect(typed, SECOND, "turn_completed").await;
    assert_eq!(done.event["content"], ANSWER);
    listened_again("viewer goes away while speaking", &line, gone, done.at);
    // The device comes back and is heard.
    let (address, token) = (&scene.running.address, scene.running.token());
    let back = scene.running.mark();
    scene.phone = Phone::connect(address, token, Plays::AtOnce).await;
    scene.listens(back).await;
    let mark = scene.ask();
    let done = scene.running.expect(mark, 20 * SECOND, "turn_completed").await;
    assert_eq!(done.event["content"], ANSWER);
    assert_eq!(asked(&scene.running), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_there_is_no_microphone() {
    let Some(pulse) = Pulse::start() else { return };
    if !alice::weights() {
        return;
    }
    pulse.unplug_microphone();
    let model = FakeLlm::start(Pace::INSTANT, [reply(ANSWER)]).await.unwrap();
    let running = Running::start(|command| {
        pulse.aim(command);
        with_model(command, &model.base_url());
        command.args(["--set", "ears.device=microphone", "--set", "voice.device=none"]);
    })
    .await;
    let line = running.told("typing works").await;
    let mark = running.mark();
    running.chat("hello").await;
    running.expect(mark, SECOND, "turn_completed").await;
    let mark = running.mark();
    pulse.plug_microphone();
    let plugged = Instant::now();
    listened_again("no microphone", &line, plugged, listens(&running, mark).await);
    let mark = running.mark();
    pulse.speak(&question());
    let done = running.expect(mark, 20 * SECOND, "turn_completed").await;
    assert_eq!(done.event["content"], ANSWER);
    assert_eq!(asked(&running), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_there_is_no_speaker() {
    let Some(pulse) = Pulse::start() else { return };
    if !alice::weights() {
        return;
    }
    pulse.unplug_outputs();
    let model = FakeLlm::start(Pace::INSTANT, [reply(ANSWER)]).await.unwrap();
    let running = Running::start(|command| {
        pulse.aim(command);
        with_model(command, &model.base_url());
        command.args(["--set", "ears.enabled=false"]);
    })
    .await;
    let line = running.told("no sound").await;
    assert!(line.contains("shown as text"), "{line}");
    let phone = Phone::microphone(&running.address, running.token()).await;
    let scene = Scene { model, phone, running };
    scene.listens(0).await;
    let mark = scene.ask();
    let done = scene.running.expect(mark, 20 * SECOND, "turn_completed").await;
    assert_eq!(done.event["content"], ANSWER);
    scene.recovers("no speaker", &line, done.at, mark).await;
    // It is used as soon as it is there.
    let mark = scene.running.mark();
    pulse.plug_speaker();
    let back = |seen: &Seen| seen.kind() == "notice" && seen.event["code"] == "speaker_back";
    scene.running.find(mark, 10 * SECOND, back).await.expect("the speaker is not found");
    let mark = scene.ask();
    scene.running.expect(mark, 20 * SECOND, "segment_progress").await;
    scene.running.expect(mark, 20 * SECOND, "turn_completed").await;
}

// ---- disk and home ------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_the_disk_is_full() {
    let home = tempfile::tempdir().unwrap();
    let sessions = home.path().join("sessions");
    let Some(_disk) = Disk::mount(&sessions, "size=16k") else { return };
    if !alice::weights() {
        return;
    }
    let filler = sessions.join("filler");
    let full = fs::write(&filler, vec![0; 1 << 20]).unwrap_err();
    println!("the disk: {full}");
    let model = FakeLlm::start(Pace::INSTANT, [reply(ANSWER)]).await.unwrap();
    let aim = |command: &mut Command| without_devices(command, &model.base_url());
    let running = Running::start_on(home.path(), aim).await;
    let phone = Phone::connect(&running.address, running.token(), Plays::AtOnce).await;
    let scene = Scene { model, phone, running };
    scene.listens(0).await;
    let mark = scene.ask();
    let notice = scene.running.expect(mark, 20 * SECOND, "notice").await;
    let line = text(&notice, "text");
    assert_eq!(notice.event["code"], "transcript_unwritable");
    assert!(text(&notice, "hint").contains("free disk space"), "{}", notice.event);
    let done = scene.running.expect(mark, 5 * SECOND, "turn_completed").await;
    assert_eq!(done.event["content"], ANSWER);
    assert_eq!(asked(&scene.running), 0, "the disk was not full");
    let again = scene.listens(mark).await;
    listened_again("disk full on the transcript", line, notice.at, again);

    let freed = scene.running.mark();
    fs::remove_file(&filler).unwrap();
    let written = |seen: &Seen| seen.event["code"] == "transcript_written";
    scene.running.find(freed, 3 * SECOND, written).await.expect("it is not written again");
    assert_eq!(asked(&scene.running), 1);
    let mark = scene.ask();
    scene.running.expect(mark, 20 * SECOND, "turn_completed").await;
    let kinds: Vec<_> = scene.running.transcript().iter().map(|l| l["kind"].clone()).collect();
    assert_eq!(kinds, ["user", "assistant", "user", "assistant"]);
}

#[test]
fn live_fault_the_home_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let Some(_disk) = Disk::mount(&home, "ro") else { return };
    for home in [home.as_path(), &home.join("inside")] {
        let (output, took) = ends(&mut run_on(home));
        let line = error(&output);
        println!("| read-only home | {line} | ended after {} |", took.as_millis());
        assert_eq!(output.status.code(), Some(1));
        assert!(line.contains(home.to_str().unwrap()) && line.contains("`--home`"), "{line}");
        assert_eq!(line.matches("can't be").count(), 1, "{line}");
    }
}

// ---- starts -------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_a_second_start_is_told_who_runs() {
    let Some(scene) = Scene::start(reply(ANSWER), Plays::AtOnce, |_| {}).await else { return };
    let mark = scene.ask();
    scene.running.expect(mark, 20 * SECOND, "turn_completed").await;
    let (output, took) = ends(&mut run_on(&scene.running.home));
    let refused = Instant::now();
    let line = error(&output);
    println!("| second start | refused | ended after {} |", took.as_millis());
    assert_eq!(output.status.code(), Some(3), "{line}");
    assert!(took < SECOND, "{took:?}");
    for part in [scene.running.address.as_str(), &scene.running.pid().to_string(), "`--home`"] {
        assert!(line.contains(part), "{line}");
    }
    scene.recovers("two starts", &line, refused, mark).await;
}

#[test]
fn live_fault_the_port_is_taken() {
    let home = tempfile::tempdir().unwrap();
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let mut command = run_on(home.path());
    command.args(["--set", "ears.enabled=false", "--set", "voice.device=none"]);
    command.args(["--set", "llm.model=embedded", "--listen", &address.to_string()]);
    let (output, took) = ends(&mut command);
    let line = error(&output);
    println!("| port taken | {line} | ended after {} |", took.as_millis());
    assert_eq!(output.status.code(), Some(1));
    assert!(line.contains(&format!("`{address}` is taken")), "{line}");
    assert!(line.contains("`server.listen`"), "{line}");
    assert_eq!(line.matches("is taken").count(), 1, "{line}");
}

#[test]
fn live_fault_the_settings_are_malformed() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("config.toml");
    for (content, place, part) in [
        ("[voice]\nengine = \"piper\n", "config.toml:2:16", "malformed TOML"),
        ("[voice]\nspeed = \"fast\"\n", "config.toml:2:9", "`voice.speed` must be a number"),
    ] {
        fs::write(&file, content).unwrap();
        let (output, took) = ends(&mut run_on(home.path()));
        let line = error(&output);
        println!("| malformed settings | {line} | ended after {} |", took.as_millis());
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(line.contains(place) && line.contains(part), "{line}");
        assert!(took < SECOND, "{took:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_a_setting_is_unknown() {
    let home = tempfile::tempdir().unwrap();
    let model = FakeLlm::start(Pace::INSTANT, [reply(ANSWER)]).await.unwrap();
    fs::write(home.path().join("config.toml"), "[voice]\nengin = \"kokoro\"\n").unwrap();
    let aim = |command: &mut Command| without_devices(command, &model.base_url());
    let running = Running::start_on(home.path(), aim).await;
    let line = running.told("`voice.engin`").await;
    assert!(line.contains("config.toml:2:9"), "{line}");
    assert!(line.contains("did you mean `voice.engine`?"), "{line}");
    let (asked, mark) = (Instant::now(), running.mark());
    running.chat("hello").await;
    let done = running.expect(mark, 5 * SECOND, "turn_completed").await;
    listened_again("unknown setting", &line, asked, done.at);
}

// ---- ends ---------------------------------------------------------------------------------------

/// Starts to speak a story, of which 600 ms are heard.
async fn speaking() -> Option<Scene> {
    let scene = Scene::start(reply(STORY), Plays::Until(600), |_| {}).await?;
    let mark = scene.ask();
    scene.running.expect(mark, 20 * SECOND, "segment_progress").await;
    Some(scene)
}

/// The transcript of a story of which 600 ms were heard.
fn holds_what_was_heard(running: &Running) {
    let lines = running.transcript();
    let [user, alice] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((&user["kind"], &alice["kind"]), (&"user".into(), &"assistant".into()));
    let heard = alice["text"].as_str().unwrap();
    assert!(!heard.is_empty() && STORY.starts_with(heard) && heard.len() < 60, "{heard}");
    assert_eq!(alice["interrupted"], true);
}

async fn ends_in_order(signal: &str) {
    let Some(mut scene) = speaking().await else { return };
    let begun = Instant::now();
    let well = scene.running.signal(signal, 5 * SECOND);
    let took = begun.elapsed();
    println!("| SIG{signal} while speaking | stopping | ended after {} |", took.as_millis());
    assert!(well, "{}", scene.running.stderr());
    assert!(took < 2 * SECOND, "{took:?}");
    holds_what_was_heard(&scene.running);
}

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_stopped_by_sigterm_while_she_speaks() {
    ends_in_order("TERM").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_stopped_by_sigint_while_she_speaks() {
    ends_in_order("INT").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_fault_killed_while_she_speaks() {
    let Some(mut scene) = speaking().await else { return };
    scene.running.kill();
    assert_eq!(asked(&scene.running), 1, "what was said is lost");
    // The power went in the middle of a line.
    let session = fs::read_dir(scene.running.home.join("sessions")).unwrap().flatten().next();
    let session = session.unwrap().path();
    let mut file = fs::OpenOptions::new().append(true).open(&session).unwrap();
    std::io::Write::write_all(&mut file, br#"{"v":1,"at":"2026-"#).unwrap();
    let aim = |command: &mut Command| {
        without_devices(command, &scene.model.base_url());
        command.arg("--resume");
    };
    let running = Running::start_on(&scene.running.home, aim).await;
    let line = running.told("is damaged").await;
    assert!(line.contains("line 2 ") && line.contains(session.to_str().unwrap()), "{line}");
    let history = running.get("/history").await;
    assert!(history.to_string().to_lowercase().contains("france"), "{history}");
    let phone = Phone::connect(&running.address, running.token(), Plays::AtOnce).await;
    let begun = Instant::now();
    let Scene { model, running: _killed, .. } = scene;
    let scene = Scene { model, phone, running };
    scene.recovers("killed, started again", &line, begun, 0).await;
}
