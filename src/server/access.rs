//! Who may use the server: a pure decision from what a request says of itself.
//!
//! Three checks, each against another danger. The `Host` must not be a foreign name (a site whose
//! name was pointed at this machine). The `Origin` must be ours or on the list (a site that talks to
//! us from the person's browser). And who does not come from this machine shows the token.

use std::net::IpAddr;

use axum::http::StatusCode;

use super::error::ApiError;
use super::token::Token;

/// What a path is to the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    /// The page and its files: nothing in them is secret.
    Page,
    /// Everything that tells or changes something.
    Api,
    /// The microphone and speaker line: takes the ears and the voice over, so without the token only
    /// our own page on this machine may open it.
    Audio,
}

impl Door {
    pub(super) fn of(path: &str) -> Self {
        match path {
            "/audio" => Self::Audio,
            "/" | "/index.html" | "/healthz" | "/avatar.vrm" | "/favicon.svg" => Self::Page,
            _ if path.starts_with("/assets/") => Self::Page,
            _ => Self::Api,
        }
    }
}

/// What a request says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller<'a> {
    pub(super) peer: IpAddr,
    pub(super) host: Option<&'a str>,
    pub(super) origin: Option<&'a str>,
    /// `Sec-Fetch-Site`, which browsers send and pages can't change.
    pub(super) fetch_site: Option<&'a str>,
    /// It came through a proxy, so the peer's address says nothing.
    pub(super) forwarded: bool,
    pub(super) token: Option<&'a str>,
}

/// What a request may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pass {
    /// It comes from this machine.
    pub(super) local: bool,
    /// It showed the token.
    pub(super) token: bool,
    /// It comes from a listed origin that is not our own, which must be told so.
    pub(super) cross_origin: bool,
}

pub(super) fn decide(
    door: Door,
    caller: &Caller<'_>,
    origins: &[String],
    token: &Token,
) -> Result<Pass, ApiError> {
    let host = caller.host.unwrap_or_default();
    let name = host_name(host);
    let listed_host = || origins.iter().any(|origin| origin_host(origin) == host);
    if !(is_address(name) || is_localhost(name) || listed_host()) {
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "host_refused",
            "this server is not known under the host name of the request",
            "use the address that Alice printed, or add the origin to `server.origins`",
        ));
    }
    let listed = |origin: &str| origins.iter().any(|listed| listed.eq_ignore_ascii_case(origin));
    let own = |origin: &str| origin.strip_prefix("http://").is_some_and(|rest| rest == host);
    let (cross_origin, own_page) = match caller.origin {
        Some(origin) if own(origin) => (false, true),
        Some(origin) if listed(origin) => (true, false),
        Some(_) => return Err(foreign_origin()),
        // Without an origin a browser still tells whose page asked. Pages of other sites may not; a
        // link to the page may be followed from anywhere.
        None if door == Door::Page => (false, false),
        None => match caller.fetch_site {
            Some("same-origin") => (false, true),
            None | Some("none") => (false, false),
            Some(_) => return Err(foreign_origin()),
        },
    };
    let loopback = caller.peer.to_canonical().is_loopback();
    let pass = Pass {
        local: loopback && !caller.forwarded && (is_localhost(name) || is_loopback(name)),
        token: caller.token.is_some_and(|shown| token.matches(shown)),
        cross_origin,
    };
    let enough = match door {
        Door::Page => true,
        Door::Api => pass.token || pass.local,
        // A page of another site has another origin, and one whose name was pointed here another
        // host. Programmes can write any origin; those of this machine get the cookie as well.
        Door::Audio => pass.token || (pass.local && own_page),
    };
    if !enough {
        return Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "token_needed",
            "this request needs Alice's token",
            "open the page with `?token=` and the content of the file `token` in Alice's home, or \
             send it as `Authorization: Bearer`",
        ));
    }
    Ok(pass)
}

fn foreign_origin() -> ApiError {
    ApiError::new(
        StatusCode::FORBIDDEN,
        "origin_refused",
        "requests from this web origin are refused",
        "add the origin to `server.origins` if it is yours",
    )
}

/// The host of `Host` without its port.
fn host_name(host: &str) -> &str {
    if host.starts_with('[') {
        return host.split_inclusive(']').next().unwrap_or(host);
    }
    host.split(':').next().unwrap_or(host)
}

fn origin_host(origin: &str) -> &str {
    origin.split_once("://").map_or(origin, |(_, host)| host)
}

fn address(name: &str) -> Option<IpAddr> {
    name.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn is_address(name: &str) -> bool {
    address(name).is_some()
}

fn is_loopback(name: &str) -> bool {
    address(name).is_some_and(|address| address.to_canonical().is_loopback())
}

fn is_localhost(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: Caller<'static> = Caller {
        peer: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
        host: Some("127.0.0.1:7878"),
        origin: None,
        fetch_site: None,
        forwarded: false,
        token: None,
    };

    fn ask(door: Door, caller: Caller<'_>) -> Result<Pass, &'static str> {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("token"), "0123456789abcdef0123456789abcdef").unwrap();
        let token = Token::load_or_create(&home.path().join("token")).unwrap();
        let origins = ["https://alice.example".to_owned()];
        decide(door, &caller, &origins, &token).map_err(|refused| refused.code)
    }

    #[test]
    fn who_may_use_which_door() {
        let elsewhere: IpAddr = "192.0.2.7".parse().unwrap();
        let far = Caller { peer: elsewhere, host: Some("192.0.2.1:7878"), ..LOCAL };
        let token = Some("0123456789abcdef0123456789abcdef");
        let proxied = Caller { host: Some("alice.example"), forwarded: true, ..LOCAL };
        let own = Some("http://127.0.0.1:7878");
        let foreign = Some("https://evil.example");
        let other_port = Some("http://127.0.0.1:3000");
        let tls = Some("https://127.0.0.1:7878");
        let listed = Some("https://alice.example");
        let rebound = Caller {
            host: Some("evil.example:7878"),
            origin: Some("http://evil.example:7878"),
            ..LOCAL
        };
        let far_page = Caller { origin: Some("http://192.0.2.1:7878"), ..far };
        let cases = [
            (Door::Api, LOCAL, Ok(())),
            (Door::Api, Caller { host: Some("localhost:1"), ..LOCAL }, Ok(())),
            (Door::Api, Caller { host: Some("[::1]:1"), ..LOCAL }, Ok(())),
            (Door::Api, Caller { origin: own, ..LOCAL }, Ok(())),
            (Door::Audio, LOCAL, Err("token_needed")),
            (Door::Audio, Caller { fetch_site: Some("none"), ..LOCAL }, Err("token_needed")),
            (Door::Audio, Caller { origin: own, ..LOCAL }, Ok(())),
            (Door::Audio, Caller { fetch_site: Some("same-origin"), ..LOCAL }, Ok(())),
            (Door::Audio, Caller { origin: foreign, ..LOCAL }, Err("origin_refused")),
            (Door::Audio, Caller { origin: other_port, ..LOCAL }, Err("origin_refused")),
            (Door::Audio, Caller { origin: Some("null"), ..LOCAL }, Err("origin_refused")),
            (Door::Audio, Caller { origin: tls, ..LOCAL }, Err("origin_refused")),
            (Door::Audio, Caller { fetch_site: Some("same-site"), ..LOCAL }, Err("origin_refused")),
            // A name that was pointed at this machine is its page's own origin, and a foreign host.
            (Door::Audio, rebound, Err("host_refused")),
            (Door::Audio, Caller { origin: own, forwarded: true, ..LOCAL }, Err("token_needed")),
            (Door::Audio, Caller { origin: own, peer: elsewhere, ..LOCAL }, Err("token_needed")),
            (Door::Audio, far_page, Err("token_needed")),
            (Door::Audio, Caller { token, ..far_page }, Ok(())),
            (Door::Audio, Caller { token: Some("wrong"), ..far_page }, Err("token_needed")),
            // A listed origin is let in with the token only, whatever the host that a proxy sends on.
            (Door::Audio, Caller { origin: listed, ..LOCAL }, Err("token_needed")),
            (Door::Audio, Caller { origin: listed, ..proxied }, Err("token_needed")),
            (Door::Audio, Caller { origin: listed, token, ..proxied }, Ok(())),
            (Door::Audio, Caller { origin: listed, token, forwarded: true, ..LOCAL }, Ok(())),
            (Door::Audio, Caller { origin: foreign, token, ..proxied }, Err("origin_refused")),
            (Door::Audio, Caller { token, ..LOCAL }, Ok(())),
            (Door::Audio, Caller { token, origin: foreign, ..LOCAL }, Err("origin_refused")),
            (Door::Api, Caller { origin: foreign, ..LOCAL }, Err("origin_refused")),
            (Door::Api, Caller { origin: Some("null"), ..LOCAL }, Err("origin_refused")),
            (Door::Page, Caller { origin: foreign, ..LOCAL }, Err("origin_refused")),
            (Door::Api, Caller { fetch_site: Some("cross-site"), ..LOCAL }, Err("origin_refused")),
            (Door::Api, Caller { fetch_site: Some("same-site"), ..LOCAL }, Err("origin_refused")),
            (Door::Page, Caller { fetch_site: Some("cross-site"), ..LOCAL }, Ok(())),
            (Door::Page, Caller { host: Some("evil.example"), ..LOCAL }, Err("host_refused")),
            (Door::Api, Caller { host: None, ..LOCAL }, Err("host_refused")),
            (Door::Page, far, Ok(())),
            (Door::Api, far, Err("token_needed")),
            (Door::Api, Caller { token: Some("wrong"), ..far }, Err("token_needed")),
            (Door::Api, Caller { token, ..far }, Ok(())),
            (Door::Api, Caller { peer: elsewhere, ..LOCAL }, Err("token_needed")),
            (Door::Api, proxied, Err("token_needed")),
            (Door::Api, Caller { token, ..proxied }, Ok(())),
        ];
        for (door, caller, expected) in cases {
            assert_eq!(ask(door, caller).map(|_| ()), expected, "{door:?} {caller:?}");
        }
        let origin = Some("https://alice.example");
        assert!(ask(Door::Api, Caller { origin, token, ..far }).unwrap().cross_origin);
    }
}
