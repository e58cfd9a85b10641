//! A running `alice run` on a home of its own, followed over its public interface.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ::alice::llm::sse::SseDecoder;
use futures_util::StreamExt;
use serde_json::Value;

/// The programme under test.
pub fn alice() -> Command {
    Command::new(env!("CARGO_BIN_EXE_alice"))
}

/// An event and when it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When it arrived here.
    pub at: Instant,
    /// Its JSON form.
    pub event: Value,
}

impl Seen {
    /// The event's `type`.
    pub fn kind(&self) -> &str {
        self.event["type"].as_str().unwrap_or_default()
    }
}

/// A running Alice; it is stopped with the value.
pub struct Running {
    child: Child,
    /// Her home.
    pub home: PathBuf,
    _folder: Option<tempfile::TempDir>,
    /// `http://127.0.0.1:PORT`.
    pub address: String,
    token: String,
    client: reqwest::Client,
    seen: Arc<Mutex<Vec<Seen>>>,
    stderr: Arc<Mutex<String>>,
}

impl Running {
    /// Starts on a fresh home; `aim` may change the command (environment, settings).
    pub async fn start(aim: impl FnOnce(&mut Command)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut running = Self::start_on(folder.path(), aim).await;
        running._folder = Some(folder);
        running
    }

    /// Starts on this home.
    pub async fn start_on(home: &Path, aim: impl FnOnce(&mut Command)) -> Self {
        let mut command = alice();
        command
            .arg("--home")
            .arg(home)
            .args(["--set", "server.listen=127.0.0.1:0", "run"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        aim(&mut command);
        let mut child = command.spawn().unwrap();
        let stderr: Arc<Mutex<String>> = Arc::default();
        let into = Arc::clone(&stderr);
        let err = child.stderr.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(err).lines().map_while(Result::ok) {
                let mut all = into.lock().unwrap();
                all.push_str(&line);
                all.push('\n');
            }
        });
        let out = BufReader::new(child.stdout.take().unwrap());
        let (say, address) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Some(at) = line.find("http://") {
                    let address = line[at..].split_whitespace().next().unwrap();
                    let _ = say.send(address.trim_end_matches('/').to_owned());
                }
            }
        });
        let Ok(address) = address.recv_timeout(Duration::from_secs(60)) else {
            let _ = child.kill();
            panic!("alice did not say where she is:\n{}", stderr.lock().unwrap());
        };
        let token = std::fs::read_to_string(home.join("token")).unwrap().trim().to_owned();
        // A second provider can't be installed; the first test of the process did it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let running = Self {
            child,
            home: home.to_owned(),
            _folder: None,
            address,
            token,
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            seen: Arc::default(),
            stderr,
        };
        running.follow().await;
        running
    }

    async fn follow(&self) {
        let response = self.client.get(format!("{}/events", self.address)).send().await.unwrap();
        assert!(response.status().is_success(), "events: {}", response.status());
        let seen = Arc::clone(&self.seen);
        tokio::spawn(async move {
            let mut bytes = response.bytes_stream();
            let mut decoder = SseDecoder::default();
            while let Some(Ok(chunk)) = bytes.next().await {
                let mut events = Vec::new();
                decoder.feed(&chunk, &mut events).unwrap();
                for event in events {
                    if let Ok(event) = serde_json::from_str(&event.data) {
                        seen.lock().unwrap().push(Seen { at: Instant::now(), event });
                    }
                }
            }
        });
        self.wait(Duration::from_secs(5), |seen| !seen.is_empty()).await.expect("no snapshot");
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What a device or another programme shows to be let in.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The lines of all transcripts in her home that are whole.
    pub fn transcript(&self) -> Vec<Value> {
        let Ok(files) = std::fs::read_dir(self.home.join("sessions")) else { return Vec::new() };
        let files = files.flatten().map(|file| file.path());
        let texts = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        let texts: Vec<String> = texts.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        let lines = texts.iter().flat_map(|text| text.lines());
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// All events so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How many events so far: a place to look from.
    pub fn mark(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// The events from a mark on.
    pub fn since(&self, mark: usize) -> Vec<Seen> {
        self.seen.lock().unwrap().get(mark..).unwrap_or_default().to_vec()
    }

    /// What was written to stderr so far.
    pub fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// The first line on stderr that holds this; fails the test when it does not come.
    pub async fn told(&self, part: &str) -> String {
        let begun = Instant::now();
        loop {
            let all = self.stderr();
            if let Some(line) = all.lines().find(|line| line.contains(part)) {
                return line.to_owned();
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "`{part}` was not told:\n{all}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn wait(&self, most: Duration, done: impl Fn(&[Seen]) -> bool) -> Option<()> {
        let begun = Instant::now();
        while begun.elapsed() < most {
            if done(&self.seen.lock().unwrap()) {
                return Some(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        None
    }

    /// The first event from `mark` on that `fits`, waiting for `most` at most.
    pub async fn find(
        &self,
        mark: usize,
        most: Duration,
        fits: impl Fn(&Seen) -> bool,
    ) -> Option<Seen> {
        let look = |seen: &[Seen]| seen.iter().skip(mark).find(|seen| fits(seen)).cloned();
        self.wait(most, |seen| look(seen).is_some()).await?;
        look(&self.seen.lock().unwrap())
    }

    /// The first event of a kind from `mark` on; fails the test with what was seen instead.
    pub async fn expect(&self, mark: usize, most: Duration, kind: &str) -> Seen {
        match self.find(mark, most, |seen| seen.kind() == kind).await {
            Some(seen) => seen,
            None => {
                let kinds: Vec<_> = self
                    .since(mark)
                    .iter()
                    .filter(|seen| seen.kind() != "level")
                    .map(|seen| seen.event.to_string())
                    .collect();
                panic!(
                    "no `{kind}` within {most:?}; seen:\n{}\nstderr:\n{}",
                    kinds.join("\n"),
                    self.stderr()
                );
            }
        }
    }

    /// Posts JSON and returns the status and the answer.
    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let answer = self
            .client
            .post(format!("{}{path}", self.address))
            .bearer_auth(&self.token)
            .json(&body)
            .send()
            .await
            .unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or(Value::Null))
    }

    /// Gets JSON.
    pub async fn get(&self, path: &str) -> Value {
        let answer = self
            .client
            .get(format!("{}{path}", self.address))
            .bearer_auth(&self.token)
            .send()
            .await
            .unwrap();
        answer.json().await.unwrap_or(Value::Null)
    }

    /// Types something and returns the turn's id.
    pub async fn chat(&self, text: &str) -> u64 {
        let (status, answer) = self.post("/chat", serde_json::json!({ "text": text })).await;
        assert!(status < 300, "chat: {status} {answer}");
        answer["turn"].as_u64().unwrap()
    }

    /// Ends the process without a warning, as a crash or a power cut would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks the process to stop and waits; returns whether it ended well within `most`.
    pub fn terminate(&mut self, most: Duration) -> bool {
        self.signal("TERM", most)
    }

    /// The same with another signal.
    pub fn signal(&mut self, name: &str, most: Duration) -> bool {
        let signal = format!("-{name}");
        let _ = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status();
        let begun = Instant::now();
        while begun.elapsed() < most {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Speaks `text` into a WAV file with a voice that is not Alice's.
pub fn speak_to(text: &str, wav: &Path) {
    let output = alice()
        .args(["--set", "voice.kokoro_voice=am_michael", "say", "--voice", "kokoro", text, "--out"])
        .arg(wav)
        .output()
        .unwrap();
    assert!(output.status.success(), "say: {}", String::from_utf8_lossy(&output.stderr));
}

/// Transcribes a WAV file.
pub fn transcribe(wav: &Path) -> String {
    let output = alice().arg("listen").arg(wav).arg("--json").output().unwrap();
    assert!(output.status.success(), "listen: {}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["text"].as_str().unwrap().to_owned()
}

/// Lower-case words without punctuation.
pub fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'')
        .map(|word| word.trim_matches('\'').to_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
}

/// The share of `wanted`'s words that stand in `got` in the same order.
pub fn words_back(wanted: &str, got: &str) -> f64 {
    let (wanted, got) = (words(wanted), words(got));
    let mut row = vec![0usize; got.len() + 1];
    for word in &wanted {
        let mut diagonal = 0;
        for (at, other) in got.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if word == other { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    row[got.len()] as f64 / wanted.len().max(1) as f64
}

/// Whether the weights that a live test needs are here; prints why it is skipped if not.
pub fn weights() -> bool {
    let output = alice().args(["models", "verify"]).output().unwrap();
    if !output.status.success() {
        eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
    }
    output.status.success()
}
