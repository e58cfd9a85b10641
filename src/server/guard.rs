//! Puts [`super::access`] in front of every route.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::access::{Caller, Door, decide};

/// Checks a request and passes it on with what it may do as an extension.
pub(super) async fn guard(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let cookie = shared.cookie_name();
    let token = shown_token(headers, request.uri(), &cookie);
    let caller = Caller {
        peer: peer.ip(),
        host: text(header::HOST),
        origin: text(header::ORIGIN),
        fetch_site: text(HeaderName::from_static("sec-fetch-site")),
        forwarded: came_through_a_proxy(headers, request.version()),
        token: token.as_deref(),
    };
    let door = Door::of(request.uri().path());
    let preflight = request.method() == Method::OPTIONS;
    // A browser asks whether it may send the token before it sends it.
    let door = if preflight { Door::Page } else { door };
    let pass = match decide(door, &caller, &shared.settings.server.origins, &shared.token) {
        Ok(pass) => pass,
        Err(refused) => {
            tracing::debug!(path = request.uri().path(), code = refused.code, "request refused");
            return refused.into_response();
        }
    };
    let origin = headers.get(header::ORIGIN).cloned();
    request.extensions_mut().insert(pass);
    let mut response =
        if preflight { StatusCode::NO_CONTENT.into_response() } else { next.run(request).await };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Some(origin) = origin.filter(|_| pass.cross_origin) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("origin"));
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, POST, OPTIONS"),
        );
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static("authorization, content-type, last-event-id"),
        );
    }
    response
}

/// Whether a proxy says so, in one of the ways that proxies have. What no browser speaks any more,
/// HTTP/1.0, is what nginx sends on unless it is told otherwise, without any such header.
fn came_through_a_proxy(headers: &HeaderMap, version: Version) -> bool {
    const SIGNS: [&str; 7] = [
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-forwarded-server",
        "x-real-ip",
        "via",
    ];
    version < Version::HTTP_11 || SIGNS.iter().any(|sign| headers.contains_key(*sign))
}

fn shown_token(headers: &HeaderMap, uri: &Uri, cookie: &str) -> Option<String> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    let query = || {
        let pairs = uri.query()?.split('&');
        pairs.filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == "token")
    };
    let cookies = || {
        let pairs = text(header::COOKIE)?.split(';');
        pairs.filter_map(|pair| pair.trim().split_once('=')).find(|(key, _)| *key == cookie)
    };
    let found = bearer
        .or_else(|| query().map(|(_, value)| value))
        .or_else(|| cookies().map(|(_, value)| value))?;
    Some(found.trim().to_owned())
}
