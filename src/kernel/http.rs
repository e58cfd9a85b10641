//! The HTTP client of rooms that talk to servers: language models, recognisers.

use std::sync::Once;
use std::time::Duration;

use reqwest::{Client, Url};

/// A client for requests to the server at `url`, made once and kept: it holds the open connections.
/// Connecting takes `timeout` or 5 s at most; the time of a request is the caller's to bound.
///
/// # Errors
/// When the system's certificates or the proxy settings are unusable.
pub fn client(url: Option<&Url>, timeout: Duration) -> reqwest::Result<Client> {
    static CRYPTO: Once = Once::new();
    CRYPTO.call_once(|| {
        // The programme may have installed it: the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let builder = Client::builder()
        .user_agent(concat!("alice/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(timeout.min(Duration::from_secs(5)))
        .tcp_keepalive(Duration::from_secs(30))
        .pool_idle_timeout(Duration::from_secs(300))
        // A redirected POST would become a GET, and the key is meant for this address alone.
        .redirect(reqwest::redirect::Policy::none());
    // A proxy does not know what this machine's own addresses are.
    let builder = if url.is_some_and(is_local) { builder.no_proxy() } else { builder };
    builder.build()
}

/// Whether the address is on this machine.
pub fn is_local(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_local() {
        let cases = [
            ("http://localhost:11434/v1", true),
            ("http://127.8.0.1/v1", true),
            ("http://[::1]:8080/v1", true),
            ("http://192.168.0.7/v1", false),
            ("https://localhost.example/v1", false),
        ];
        for (url, local) in cases {
            assert_eq!(is_local(&Url::parse(url).unwrap()), local, "{url}");
        }
    }
}
