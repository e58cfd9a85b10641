//! `GET /events`: server-sent events for viewers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use tokio::time::{Interval, MissedTickBehavior};

use super::Shared;
use super::error::ApiError;
use super::hub::LastSeen;

/// A comment is sent this often, so that proxies and viewers know that the line is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Bounds of the time after which a viewer comes back, ms. It is drawn for each, so that they do not
/// all come at once.
const RETRY_MS: std::ops::RangeInclusive<u32> = 800..=2_000;

/// What can be asked of `GET /events` beside the `Last-Event-ID` header.
#[derive(Deserialize)]
pub(super) struct Asked {
    /// The same as the header, for viewers that begin a new `EventSource` and so can't send it.
    last_event_id: Option<String>,
}

struct Viewer {
    shared: Arc<Shared>,
    waiting: std::vec::IntoIter<Bytes>,
    frames: broadcast::Receiver<Bytes>,
    heartbeat: Interval,
    _place: OwnedSemaphorePermit,
}

pub(super) async fn events(
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let place = Arc::clone(&shared.places).try_acquire_owned().map_err(|_| {
        ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too_many_viewers",
            "all places for viewers are taken",
            "close another page, or raise `server.max_viewers`",
        )
    })?;
    let header = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let last = header.or(asked.last_event_id.as_deref()).and_then(LastSeen::parse);
    let (mut first, frames) = shared.hub.join(last.as_ref());
    let retry = rand::random_range(RETRY_MS);
    first.insert(0, Bytes::from(format!("retry: {retry}\n\n")));
    let mut heartbeat =
        tokio::time::interval_at(tokio::time::Instant::now() + HEARTBEAT, HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let waiting = first.into_iter();
    let viewer = Viewer { shared, waiting, frames, heartbeat, _place: place };
    let body = Body::from_stream(stream::unfold(viewer, |mut viewer| async move {
        let frame = viewer.next().await?;
        Some((Ok::<_, Infallible>(frame), viewer))
    }));
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, body).into_response())
}

impl Viewer {
    /// The next bytes; `None` when Alice stops. One that is too late skips to a fresh snapshot.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.waiting.next() {
                return Some(frame);
            }
            tokio::select! {
                biased;
                () = self.shared.stop.cancelled() => return None,
                frame = self.frames.recv() => match frame {
                    Ok(frame) => return Some(frame),
                    Err(broadcast::error::RecvError::Closed) => return None,
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        let (first, frames) = self.shared.hub.join(None);
                        self.waiting = first.into_iter();
                        self.frames = frames;
                    }
                },
                _ = self.heartbeat.tick() => return Some(Bytes::from_static(b": alive\n\n")),
            }
        }
    }
}
