//! A remote microphone and speaker (`GET /audio`) in the hands of a test.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

/// Rate of the microphone, that of Kokoro's recordings, Hz.
const RATE: u32 = 24_000;

/// How the device plays what it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plays {
    /// In no time: each segment is acknowledged as soon as it is there.
    AtOnce,
    /// The first so many ms of the first segment, and then it stands still.
    Until(u32),
}

/// A connected device; it hangs up with the value. Its microphone hears silence between words.
pub struct Phone {
    words: Arc<Mutex<VecDeque<i16>>>,
    line: JoinHandle<()>,
}

impl Phone {
    /// Connects; returns when Alice has let it in.
    pub async fn connect(address: &str, token: &str, plays: Plays) -> Self {
        Self::with(address, token, plays, RATE).await
    }

    /// A device without a speaker.
    pub async fn microphone(address: &str, token: &str) -> Self {
        Self::with(address, token, Plays::AtOnce, 0).await
    }

    async fn with(address: &str, token: &str, plays: Plays, output_rate: u32) -> Self {
        let url = format!("{}/audio?token={token}", address.replace("http://", "ws://"));
        let (socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        let (mut up, mut down) = socket.split();
        let hello = json!({
            "name": "phone", "input_rate": RATE, "output_rate": output_rate,
            "echo_cancelled": true,
        });
        up.send(Message::text(hello.to_string())).await.unwrap();
        let ready = down.next().await.unwrap().unwrap();
        assert!(ready.to_text().unwrap().contains("\"ready\""), "{ready}");
        let words: Arc<Mutex<VecDeque<i16>>> = Arc::default();
        let said = Arc::clone(&words);
        let line = tokio::spawn(async move {
            let (acks, mut acked) = mpsc::unbounded_channel();
            let speaker = async {
                while let Some(Ok(message)) = down.next().await {
                    let Message::Text(mark) = message else { continue };
                    let mark: Value = serde_json::from_str(&mark).unwrap();
                    if let Some(ack) = ack(&mark, plays) {
                        acks.send(ack).unwrap();
                    }
                }
            };
            let microphone = async {
                let mut tick = tokio::time::interval(Duration::from_millis(20));
                loop {
                    tokio::select! {
                        Some(ack) = acked.recv() => up.send(ack).await?,
                        _ = tick.tick() => {
                            let frame: Vec<u8> = {
                                let mut said = said.lock().unwrap();
                                let sample = |_| said.pop_front().unwrap_or(0).to_le_bytes();
                                (0..RATE / 50).flat_map(sample).collect()
                            };
                            up.send(Message::binary(frame)).await?;
                        }
                    }
                }
                #[expect(unreachable_code, reason = "gives the block its type")]
                Ok::<(), tokio_tungstenite::tungstenite::Error>(())
            };
            tokio::select! {
                () = speaker => {}
                _ = microphone => {}
            }
        });
        Self { words, line }
    }

    /// Speaks a recording of Kokoro into the microphone; returns at once.
    pub fn speak(&self, wav: &Path) {
        let mut reader = hound::WavReader::open(wav).unwrap();
        assert_eq!(reader.spec().sample_rate, RATE);
        self.words.lock().unwrap().extend(reader.samples::<i16>().map(Result::unwrap));
    }
}

impl Phone {
    /// Is gone without a goodbye, as when its battery is empty.
    pub fn hang_up(&mut self) {
        self.line.abort();
    }
}

impl Drop for Phone {
    fn drop(&mut self) {
        self.hang_up();
    }
}

/// What is acknowledged of a mark.
fn ack(mark: &Value, plays: Plays) -> Option<Message> {
    let (turn, index) = (&mark["turn"], &mark["index"]);
    let text = match (mark["type"].as_str()?, plays) {
        ("end", Plays::AtOnce) => json!({ "type": "finished", "turn": turn, "index": index }),
        ("end", Plays::Until(ms)) if *index == 0 => {
            json!({ "type": "played", "turn": turn, "index": index, "ms": ms })
        }
        _ => return None,
    };
    Some(Message::text(text.to_string()))
}
