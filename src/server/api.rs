//! The small routes: what a page or a script can ask and tell.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Bytes;
use axum::extract::{FromRequest, Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Shared;
use super::access::Pass;
use super::error::ApiError;
use crate::kernel::contracts::{
    EarsCommand, Event, GetHistory, InterruptCause, TurnCommand, TurnSource, VoiceCommand,
};
use crate::kernel::ids::{MediaId, SegmentId, TurnId};
use crate::kernel::wav::wav_bytes;

/// Most bytes of a request's body.
pub(super) const BODY_LIMIT: usize = 64 * 1024;
/// Most characters of one message of the user.
const TEXT_LIMIT: usize = 8_000;
/// Lines of `GET /history` unless it is asked for more, and at most.
const HISTORY_LINES: usize = 100;
const HISTORY_LIMIT: usize = 1_000;

type Shares = State<Arc<Shared>>;

/// A JSON body, refused with a line that says what is wrong with it.
pub(super) struct Body<T>(T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        const HINT: &str = "see docs/http-api.md for the form of the body";
        let kind = request.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        // A form or plain text can be sent by any site without asking first; JSON can't.
        if kind.split(';').next().map(str::trim) != Some("application/json") {
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "json_needed",
                "the body must be JSON",
                "send the header `Content-Type: application/json`",
            ));
        }
        let bytes = Bytes::from_request(request, state).await.map_err(|refused| {
            let status = refused.into_response().status();
            if status == StatusCode::PAYLOAD_TOO_LARGE {
                let message = format!("the body is larger than {BODY_LIMIT} bytes");
                ApiError::new(status, "too_large", message, "send less at once")
            } else {
                ApiError::new(status, "body_lost", "the body did not arrive whole", "try again")
            }
        })?;
        let body = if bytes.is_empty() { &b"{}"[..] } else { &bytes[..] };
        serde_json::from_slice(body).map(Self).map_err(|error| {
            // Only the place: serde's own text may quote what was said.
            let (line, column) = (error.line(), error.column());
            let what = if error.is_data() { "has a wrong or missing field" } else { "is not JSON" };
            let message = format!("the body {what} (line {line}, column {column})");
            ApiError::bad("bad_body", message, HINT)
        })
    }
}

#[derive(Deserialize)]
pub(super) struct Chat {
    text: String,
}

pub(super) async fn chat(
    State(shared): Shares,
    Body(chat): Body<Chat>,
) -> Result<Json<Value>, ApiError> {
    let text = chat.text.trim();
    if text.is_empty() {
        return Err(ApiError::bad("empty_text", "there is no text to answer", "write something"));
    }
    if text.chars().count() > TEXT_LIMIT {
        let message = format!("the text is longer than {TEXT_LIMIT} characters");
        return Err(ApiError::bad("text_too_long", message, "send it in parts"));
    }
    let turn = shared.turn_ids.next();
    let (text, source) = (text.to_owned(), TurnSource::Page);
    shared.bus.send(TurnCommand::Begin { turn, text, source, draft: false })?;
    Ok(Json(json!({ "turn": turn })))
}

#[derive(Deserialize)]
pub(super) struct Interrupt {
    turn: Option<TurnId>,
}

pub(super) async fn interrupt(State(shared): Shares, Body(asked): Body<Interrupt>) -> Json<Value> {
    let (turn, cause) = (asked.turn, InterruptCause::Request);
    shared.bus.publish(Event::Interrupted { turn, cause });
    Json(json!({ "ok": true }))
}

#[derive(Deserialize)]
pub(super) struct Mic {
    muted: Option<bool>,
    push_to_talk: Option<bool>,
}

pub(super) async fn mic(
    State(shared): Shares,
    Body(asked): Body<Mic>,
) -> Result<Json<Value>, ApiError> {
    if asked.muted.is_none() && asked.push_to_talk.is_none() {
        let message = "neither `muted` nor `push_to_talk` was given";
        return Err(ApiError::bad("nothing_asked", message, "send one of them as true or false"));
    }
    if let Some(muted) = asked.muted {
        shared.bus.send(EarsCommand::Mute(muted))?;
    }
    if let Some(pressed) = asked.push_to_talk {
        shared.bus.send(EarsCommand::PushToTalk(pressed))?;
    }
    Ok(Json(json!({ "ok": true })))
}

#[derive(Deserialize)]
pub(super) struct Volume {
    volume: f32,
}

pub(super) async fn volume(
    State(shared): Shares,
    Body(asked): Body<Volume>,
) -> Result<Json<Value>, ApiError> {
    if !(0.0..=1.0).contains(&asked.volume) {
        return Err(ApiError::bad("bad_volume", "`volume` must lie between 0 and 1", "send 0.5"));
    }
    shared.bus.send(VoiceCommand::Volume(asked.volume))?;
    shared.hub.set_volume(asked.volume);
    Ok(Json(json!({ "volume": asked.volume })))
}

#[derive(Deserialize)]
pub(super) struct Playback {
    turn: TurnId,
    index: u32,
    played_ms: f64,
}

/// A page that mirrors the local speaker tells where it is; the difference is kept for `/healthz`.
pub(super) async fn playback(
    State(shared): Shares,
    Body(told): Body<Playback>,
) -> Result<Json<Value>, ApiError> {
    if !told.played_ms.is_finite() || told.played_ms < 0.0 {
        let hint = "send the ms of the segment that were shown";
        return Err(ApiError::bad("bad_position", "`played_ms` must be 0 or more", hint));
    }
    let segment = SegmentId { turn: told.turn, index: told.index };
    let lag_ms = shared.hub.lag_ms(segment, told.played_ms);
    if let Some(lag) = lag_ms {
        shared.mirror_lag_ms.store(lag.round() as i64, Ordering::Relaxed);
    }
    Ok(Json(json!({ "lag_ms": lag_ms })))
}

pub(super) async fn media(
    State(shared): Shares,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let pcm = shared.media.get(&MediaId(id)).ok_or_else(|| {
        ApiError::new(
            StatusCode::NOT_FOUND,
            "media_gone",
            "there is no sound of this id any more",
            "only the sound of recent segments is kept",
        )
    })?;
    let headers = [
        (header::CONTENT_TYPE, "audio/wav"),
        (header::CACHE_CONTROL, "private, max-age=3600, immutable"),
    ];
    Ok((headers, wav_bytes(&pcm)).into_response())
}

#[derive(Deserialize)]
pub(super) struct Lines {
    limit: Option<usize>,
}

pub(super) async fn history(
    State(shared): Shares,
    Query(asked): Query<Lines>,
) -> Result<Json<Value>, ApiError> {
    let limit = asked.limit.unwrap_or(HISTORY_LINES).min(HISTORY_LIMIT);
    let entries = shared.bus.request(GetHistory { limit }).await?;
    Ok(Json(json!({ "entries": entries })))
}

/// Says that the server runs; more to those who may know.
pub(super) async fn healthz(
    State(shared): Shares,
    Extension(pass): Extension<Pass>,
) -> Json<Value> {
    if !(pass.local || pass.token) {
        return Json(json!({ "status": "ok" }));
    }
    let scene = shared.hub.scene();
    let free = shared.places.available_permits();
    Json(json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "viewers": shared.settings.server.max_viewers.saturating_sub(free),
        "state": scene.state,
        "mic": scene.mic,
        "engines": scene.engines,
        "mirror_lag_ms": shared.mirror_lag_ms.load(Ordering::Relaxed),
    }))
}

pub(super) async fn no_such_route() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "there is nothing at this address",
        "see docs/http-api.md",
    )
}

pub(super) async fn wrong_method() -> ApiError {
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "wrong_method",
        "this address is not used with this method",
        "see docs/http-api.md",
    )
}
