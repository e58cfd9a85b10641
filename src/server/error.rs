//! Refusals as JSON: `{"error": {"code", "message", "hint"}}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::kernel::bus::BusError;

/// Why a request was not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// HTTP status.
    pub status: StatusCode,
    /// Stable name for programs.
    pub code: &'static str,
    /// What is wrong, one line.
    pub message: String,
    /// What to do.
    pub hint: &'static str,
}

impl ApiError {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
        hint: &'static str,
    ) -> Self {
        Self { status, code, message: message.into(), hint }
    }

    pub(super) fn bad(code: &'static str, message: impl Into<String>, hint: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message, hint)
    }
}

impl From<BusError> for ApiError {
    fn from(error: BusError) -> Self {
        let (code, hint) = match &error {
            BusError::Unavailable(_) => {
                ("unavailable", "this part of Alice is switched off; see `alice doctor`")
            }
            BusError::Busy(_) => ("busy", "wait a moment and try again"),
            BusError::TimedOut(..) | BusError::HandlerFailed(_) | BusError::AlreadyProvided(_) => {
                ("failed", "try again; the log says more")
            }
        };
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, error.to_string(), hint)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({
            "error": { "code": self.code, "message": self.message, "hint": self.hint }
        });
        (self.status, Json(body)).into_response()
    }
}
