//! The page: its files, embedded when the programme is built, and the avatar.

use std::io::Write;
use std::sync::{Arc, OnceLock};

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use rust_embed::{EmbeddedFile, RustEmbed};
use sha2::{Digest, Sha256};

use super::Shared;
use super::access::Pass;
use super::error::ApiError;

/// What `npm run build` made; empty when it has not run.
#[derive(RustEmbed)]
#[folder = "vrm-web/dist"]
struct Dist;

/// Alice's own avatar, made by `vrm-web/scripts/make-avatar.mjs`.
static AVATAR: &[u8] = include_bytes!("../../assets/alice.vrm");

const POLICY: &str = "default-src 'self'; img-src 'self' blob: data:; connect-src 'self' blob:; \
                      style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

const NOT_BUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Alice</title>\
<body style=\"font: 16px/1.5 sans-serif; max-width: 40em; margin: 4em auto; padding: 0 1em\">\
<h1>The page was not built</h1><p>Alice runs, but this programme was built without its page. \
Run <code>npm ci &amp;&amp; npm run build</code> in <code>vrm-web</code>, then build Alice \
again (<code>make run</code> does both).</p>";

/// `GET /`: the page. Who may have the token gets it as a cookie that scripts can't read.
pub(super) async fn index(
    State(shared): State<Arc<Shared>>,
    Extension(pass): Extension<Pass>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let shown = query.is_some_and(|query| query.split('&').any(|part| part.starts_with("token=")));
    let mut response = if pass.token && shown {
        // The token leaves the address bar and the history.
        Redirect::to("/").into_response()
    } else {
        match Dist::get("index.html") {
            Some(file) => serve("index.html", file, &headers, "no-cache"),
            None => Html(NOT_BUILT).into_response(),
        }
    };
    let out = response.headers_mut();
    out.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    if pass.local || pass.token {
        let proxied_tls = headers.get("x-forwarded-proto").is_some_and(|kind| kind == "https");
        let cookie = format!(
            "{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000{}",
            shared.cookie_name(),
            shared.token.reveal(),
            if proxied_tls { "; Secure" } else { "" }
        );
        if let Ok(mut cookie) = HeaderValue::from_str(&cookie) {
            cookie.set_sensitive(true);
            out.insert(header::SET_COOKIE, cookie);
        }
    }
    response
}

/// `GET /assets/...`: files whose names hold a hash of their content, so they never change.
pub(super) async fn asset(
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let path = format!("assets/{path}");
    let file = Dist::get(&path).ok_or_else(not_found)?;
    Ok(serve(&path, file, &headers, "public, max-age=31536000, immutable"))
}

/// `GET /favicon.svg`.
pub(super) async fn favicon(headers: HeaderMap) -> Result<Response, ApiError> {
    let file = Dist::get("favicon.svg").ok_or_else(not_found)?;
    Ok(serve("favicon.svg", file, &headers, "no-cache"))
}

/// `GET /avatar.vrm`: `avatar.vrm` of the home, else Alice's own.
pub(super) async fn avatar(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    static PACKED: OnceLock<Bytes> = OnceLock::new();
    let path = shared.home.root().join("avatar.vrm");
    let (body, packed) = match tokio::fs::read(&path).await {
        Ok(own) => (Bytes::from(own), false),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "avatar_unreadable",
                format!("`avatar.vrm` in Alice's home can't be read: {}", error.kind()),
                "check its permissions, or remove it to use Alice's own",
            ));
        }
        Err(_) if accepts_gzip(&headers) => (PACKED.get_or_init(|| gzip(AVATAR)).clone(), true),
        Err(_) => (Bytes::from_static(AVATAR), false),
    };
    let tag = hex_tag(&Sha256::digest(&body));
    Ok(answer(body, "model/gltf-binary", &tag, packed, &headers, "no-cache"))
}

fn serve(path: &str, file: EmbeddedFile, headers: &HeaderMap, cache: &'static str) -> Response {
    let packed = accepts_gzip(headers).then(|| Dist::get(&format!("{path}.gz"))).flatten();
    let is_packed = packed.is_some();
    let file = packed.unwrap_or(file);
    let tag = hex_tag(&file.metadata.sha256_hash());
    let body = match file.data {
        std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        std::borrow::Cow::Owned(bytes) => Bytes::from(bytes),
    };
    answer(body, media_type(path), &tag, is_packed, headers, cache)
}

fn answer(
    body: Bytes,
    kind: &'static str,
    tag: &str,
    packed: bool,
    asked: &HeaderMap,
    cache: &'static str,
) -> Response {
    let known = asked.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    let same = known.is_some_and(|tags| tags.split(',').any(|known| known.trim() == tag));
    let mut response = if same {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, kind)], body).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    if packed && !same {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn hex_tag(hash: &[u8]) -> String {
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"")
}

fn gzip(plain: &[u8]) -> Bytes {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    // Writing into memory does not fail; if it ever did, the archive would be refused as broken.
    let _ = packer.write_all(plain);
    Bytes::from(packer.finish().unwrap_or_default())
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| {
        accepted.split(',').any(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            parts.next() == Some("gzip") && parts.next() != Some("q=0")
        })
    })
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

fn not_found() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "there is nothing at this address",
        "see docs/http-api.md",
    )
}
