//! `GET /audio`: a microphone and speaker at the other end of a WebSocket.
//!
//! The device speaks first, with a JSON hello; then sound goes up and down as binary s16le frames and
//! JSON marks go between. `docs/remote-audio.md` describes the line.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message as Frame, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;

use super::Shared;
use super::error::ApiError;
use super::outbox::{Message, Outbox};
use crate::kernel::ids::{SegmentId, TurnId};
use crate::kernel::ports::{RemoteAcks, RemoteHello, RemoteLink, RemoteMic, RemoteOut};

/// Most bytes of one message from a device.
const MESSAGE_LIMIT: usize = 1024 * 1024;
/// How long a device may take to introduce itself.
const HELLO_TIME: Duration = Duration::from_secs(5);
/// How long one message of at most 100 ms of sound may take to leave.
const SEND_TIME: Duration = Duration::from_secs(10);
/// A ping goes out this often while nothing else does.
const PING: Duration = Duration::from_secs(10);
/// A device that sends nothing for so long, not even answers to pings, is gone.
const SILENCE: Duration = Duration::from_secs(30);

/// How long a device may take to answer a close.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why the line ends.
#[derive(Debug)]
enum End {
    /// The device went away; nobody is there to be told.
    Gone,
    /// Closed by us: WebSocket code and reason.
    Close(u16, String),
}

impl End {
    const GOING_AWAY: u16 = 1001;
    const UNSUPPORTED: u16 = 1003;
    const MALFORMED: u16 = 1007;
    const REFUSED: u16 = 1008;
    const TOO_LARGE: u16 = 1009;

    fn close(code: u16, reason: impl Into<String>) -> Self {
        Self::Close(code, reason.into())
    }
}

/// Opens the line.
pub(super) async fn audio(
    State(shared): State<Arc<Shared>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|_| {
        ApiError::new(
            StatusCode::UPGRADE_REQUIRED,
            "websocket_needed",
            "this address is a WebSocket",
            "see docs/remote-audio.md",
        )
    })?;
    let upgrade = upgrade.max_message_size(MESSAGE_LIMIT).max_frame_size(MESSAGE_LIMIT);
    Ok(upgrade.on_upgrade(|socket| serve(shared, socket)))
}

async fn serve(shared: Arc<Shared>, socket: WebSocket) {
    let (mut sink, mut stream) = socket.split();
    let end = tokio::select! {
        end = talk(&shared, &mut sink, &mut stream) => end,
        () = shared.stop.cancelled() => End::close(End::GOING_AWAY, "Alice is stopping"),
    };
    if let End::Close(code, reason) = end {
        tracing::info!(code, "remote device disconnected");
        let close = Frame::Close(Some(CloseFrame { code, reason: short(reason).into() }));
        let farewell = async {
            // A connection that is closed with something unread in it is reset, and a browser that can't
            // write its sound any more does not read why. So all of it is read, up to its own close.
            if sink.send(close).await.is_ok() {
                while let Some(Ok(_)) = stream.next().await {}
            }
        };
        // It may be gone already.
        let _ = tokio::time::timeout(FAREWELL, farewell).await;
    }
}

async fn talk(
    shared: &Shared,
    sink: &mut SplitSink<WebSocket, Frame>,
    stream: &mut SplitStream<WebSocket>,
) -> End {
    let hello = match tokio::time::timeout(HELLO_TIME, hello(stream)).await {
        Ok(Ok(hello)) => hello,
        Ok(Err(end)) => return end,
        Err(_) => return End::close(End::REFUSED, "no hello within 5 seconds"),
    };
    let RemoteLink { mic, acks, mut out } = match shared.remote.connect(hello.clone()) {
        Ok(link) => link,
        Err(reason) => return End::close(End::REFUSED, reason),
    };
    let ready = json!({
        "type": "ready",
        "format": "s16le",
        "input_rate": hello.input_rate,
        "output_rate": hello.output_rate,
        "echo_cancelled": hello.echo_cancelled,
        "half_duplex": hello.half_duplex,
        "acknowledges": hello.acknowledges,
        "sets_volume": hello.sets_volume,
    });
    if sink.send(Frame::Text(ready.to_string().into())).await.is_err() {
        return End::Gone;
    }
    tracing::info!(name = hello.name, "remote device connected");
    tokio::select! {
        end = down(sink, &mut out, hello.output_rate) => end,
        end = up(stream, mic, acks) => end,
    }
}

async fn hello(stream: &mut SplitStream<WebSocket>) -> Result<RemoteHello, End> {
    loop {
        match stream.next().await {
            Some(Ok(Frame::Text(text))) => {
                return serde_json::from_str(&text).map_err(|error| {
                    End::close(End::MALFORMED, format!("the hello can't be read: {error}"))
                });
            }
            Some(Ok(Frame::Binary(_))) => {
                return Err(End::close(End::UNSUPPORTED, "sound came before the hello"));
            }
            Some(Ok(Frame::Ping(_) | Frame::Pong(_))) => {}
            Some(Ok(Frame::Close(_)) | Err(_)) | None => return Err(End::Gone),
        }
    }
}

/// Sends what comes from the voice, and pings.
async fn down(
    sink: &mut SplitSink<WebSocket, Frame>,
    out: &mut mpsc::Receiver<RemoteOut>,
    rate: u32,
) -> End {
    let replaced = || End::close(End::GOING_AWAY, "another device took over");
    let slow = || End::close(End::REFUSED, "the device does not read its sound");
    let mut outbox = Outbox::new(rate);
    loop {
        while let Ok(next) = out.try_recv() {
            if !outbox.push(next) {
                return slow();
            }
        }
        let frame = match outbox.pop() {
            Some(message) => frame(&message),
            None => match tokio::time::timeout(PING, out.recv()).await {
                Ok(Some(next)) => {
                    outbox.push(next);
                    continue;
                }
                Ok(None) => return replaced(),
                Err(_) => Frame::Ping(Bytes::new()),
            },
        };
        // While a frame leaves the voice is still listened to: a device that reads slowly does not
        // hold it up, and a flush overtakes what waits.
        let leaving = tokio::time::timeout(SEND_TIME, sink.send(frame));
        tokio::pin!(leaving);
        loop {
            tokio::select! {
                biased;
                left = &mut leaving => match left {
                    Ok(Ok(())) => break,
                    Ok(Err(_)) => return End::Gone,
                    Err(_) => return slow(),
                },
                next = out.recv() => match next {
                    Some(next) => {
                        if !outbox.push(next) {
                            return slow();
                        }
                    }
                    None => return replaced(),
                },
            }
        }
    }
}

fn frame(message: &Message) -> Frame {
    match message {
        Message::Sound(samples) => {
            Frame::Binary(samples.iter().flat_map(|sample| sample.to_le_bytes()).collect())
        }
        Message::Mark(mark) => Frame::Text(json!(mark).to_string().into()),
    }
}

/// What a device says beside its sound.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Ack {
    Played { turn: TurnId, index: u32, ms: f64 },
    Finished { turn: TurnId, index: u32 },
    Waiting { turn: TurnId, index: u32 },
}

/// Takes what the device sends.
async fn up(
    stream: &mut SplitStream<WebSocket>,
    mut mic: Option<Box<dyn RemoteMic>>,
    mut acks: Box<dyn RemoteAcks>,
) -> End {
    let mut samples = Samples::default();
    loop {
        let Ok(next) = tokio::time::timeout(SILENCE, stream.next()).await else {
            return End::close(End::REFUSED, "nothing came from the device for 30 seconds");
        };
        match next {
            Some(Ok(Frame::Binary(bytes))) => match &mut mic {
                Some(mic) => mic.heard(samples.take(&bytes)),
                None => {
                    let reason = "the hello said that no sound comes (`input_rate` is 0)";
                    return End::close(End::UNSUPPORTED, reason);
                }
            },
            Some(Ok(Frame::Text(text))) => match serde_json::from_str(&text) {
                Ok(Ack::Played { turn, index, ms }) => {
                    match Duration::try_from_secs_f64(ms / 1e3) {
                        Ok(played) => acks.played(SegmentId { turn, index }, played),
                        Err(_) => return End::close(End::MALFORMED, "`ms` must be 0 or more"),
                    }
                }
                Ok(Ack::Finished { turn, index }) => acks.finished(SegmentId { turn, index }),
                Ok(Ack::Waiting { turn, index }) => acks.waiting(SegmentId { turn, index }),
                Err(error) => {
                    let reason = format!("the message can't be read: {error}");
                    return End::close(End::MALFORMED, reason);
                }
            },
            Some(Ok(Frame::Ping(_) | Frame::Pong(_))) => {}
            Some(Err(_)) => {
                let reason = format!("a message is malformed or larger than {MESSAGE_LIMIT} bytes");
                return End::close(End::TOO_LARGE, reason);
            }
            Some(Ok(Frame::Close(_))) | None => return End::Gone,
        }
    }
}

/// Puts samples together from frames that may be cut anywhere, in the middle of a sample too.
#[derive(Debug, Default)]
struct Samples {
    half: Option<u8>,
    whole: Vec<i16>,
}

impl Samples {
    fn take(&mut self, bytes: &[u8]) -> &[i16] {
        self.whole.clear();
        let mut bytes = self.half.take().into_iter().chain(bytes.iter().copied());
        while let Some(low) = bytes.next() {
            match bytes.next() {
                Some(high) => self.whole.push(i16::from_le_bytes([low, high])),
                None => self.half = Some(low),
            }
        }
        &self.whole
    }
}

/// A close reason holds at most 123 bytes.
fn short(mut reason: String) -> String {
    while reason.len() > 123 {
        reason.pop();
    }
    reason
}

#[cfg(test)]
#[path = "audio_tests.rs"]
mod tests;
