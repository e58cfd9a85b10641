//! The local server: the page, the events that viewers follow, and the small routes beside them.
//!
//! It listens on loopback unless told otherwise, checks host, origin and token of every request
//! ([`access`]), and bounds every body, queue and replay. `docs/http-api.md` describes it from the
//! outside, `docs/remote-audio.md` the line for microphones and speakers elsewhere.

mod access;
mod api;
mod audio;
mod error;
mod events;
mod gate;
mod guard;
mod hub;
mod outbox;
mod page;
mod standing;
mod token;

use std::net::SocketAddr;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::{Home, Settings};
use crate::kernel::bus::Bus;
use crate::kernel::clock::BoxFuture;
use crate::kernel::contracts::GetHistory;
use crate::kernel::host::Module;
use crate::kernel::ids::TurnIds;
use crate::kernel::ports::{MediaStore, RemoteDevices};
use crate::kernel::scene::SceneTimeline;

pub use error::ApiError;
pub use token::Token;

/// How long open requests may take when Alice stops.
const GRACE: Duration = Duration::from_secs(2);

/// What the server is made of.
pub struct ServerParts {
    /// All settings; `server`, the persona's name and the first volume are used.
    pub settings: Settings,
    /// The home, for the token and the person's own avatar.
    pub home: Home,
    /// Where ids of typed turns come from.
    pub turn_ids: Arc<TurnIds>,
    /// The sound of recent segments.
    pub media: Arc<dyn MediaStore>,
    /// Lets remote microphones and speakers in.
    pub remote: Arc<dyn RemoteDevices>,
    /// The face.
    pub timeline: Box<dyn SceneTimeline>,
}

/// The server as a module of the house.
pub struct Server {
    parts: Option<ServerParts>,
    address: Address,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

/// Where the server listens, once it has started. Clones know it too.
#[derive(Clone, Debug, Default)]
pub struct Address(Arc<OnceLock<SocketAddr>>);

impl Address {
    /// The address and port; `None` before the start.
    pub fn get(&self) -> Option<SocketAddr> {
        self.0.get().copied()
    }

    /// What to type into a browser on this machine; `None` before the start.
    pub fn url(&self) -> Option<String> {
        let address = self.get()?;
        let port = address.port();
        Some(match address.ip() {
            ip if ip.is_unspecified() => format!("http://127.0.0.1:{port}/"),
            _ => format!("http://{address}/"),
        })
    }
}

/// What the routes share.
struct Shared {
    settings: Settings,
    home: Home,
    turn_ids: Arc<TurnIds>,
    media: Arc<dyn MediaStore>,
    remote: Arc<dyn RemoteDevices>,
    bus: Bus,
    hub: hub::Hub,
    token: Token,
    places: Arc<Semaphore>,
    mirror_lag_ms: AtomicI64,
    port: u16,
    stop: CancellationToken,
}

impl Shared {
    /// Cookies do not know ports, so each port has a name of its own.
    fn cookie_name(&self) -> String {
        format!("alice_token_{}", self.port)
    }
}

impl Server {
    /// A server that does not listen yet.
    pub fn new(parts: ServerParts) -> Self {
        Self {
            parts: Some(parts),
            address: Address::default(),
            stop: CancellationToken::new(),
            tasks: Vec::new(),
        }
    }

    /// Where it listens, readable after the start.
    pub fn address(&self) -> Address {
        self.address.clone()
    }

    async fn listen(&mut self, bus: &Bus) -> anyhow::Result<()> {
        let parts = self.parts.take().context("a server starts once")?;
        let listener = bind(&parts.settings.server.listen).await?;
        let address = listener.local_addr()?;
        let token = Token::load_or_create(&parts.home.token_file())?;
        let hub = hub::Hub::new(
            Arc::clone(bus.clock()),
            bus.session().clone(),
            &parts.settings,
            parts.timeline,
        );
        if let Ok(history) = bus.request(GetHistory { limit: hub::HISTORY }).await {
            hub.recall(history);
        }
        let shared = Arc::new(Shared {
            places: Arc::new(Semaphore::new(parts.settings.server.max_viewers)),
            settings: parts.settings,
            home: parts.home,
            turn_ids: parts.turn_ids,
            media: parts.media,
            remote: parts.remote,
            bus: bus.clone(),
            hub,
            token,
            mirror_lag_ms: AtomicI64::new(0),
            port: address.port(),
            stop: self.stop.clone(),
        });
        if !address.ip().is_loopback() {
            tracing::warn!(%address, "the server can be reached from other machines; they need the token");
        }
        let mut events = bus.subscribe("server", |_| true);
        let (viewed, stop) = (Arc::clone(&shared), self.stop.clone());
        self.tasks.push(tokio::spawn(async move {
            while let Some(Some(event)) = stop.run_until_cancelled(events.next()).await {
                viewed.hub.take(event);
            }
        }));
        let app = routes(shared).into_make_service_with_connect_info::<SocketAddr>();
        let stop = self.stop.clone().cancelled_owned();
        self.tasks.push(tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, app).with_graceful_shutdown(stop).await {
                tracing::error!(%error, "the server stopped");
            }
        }));
        // Set once: `parts` was there, so this is the first start.
        let _ = self.address.0.set(address);
        Ok(())
    }
}

impl Module for Server {
    fn name(&self) -> &'static str {
        "server"
    }

    fn dependencies(&self) -> &'static [&'static str] {
        &["ears", "mind", "voice"]
    }

    fn start<'a>(&'a mut self, bus: &'a Bus) -> BoxFuture<'a, anyhow::Result<()>> {
        Box::pin(self.listen(bus))
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.stop.cancel();
            for mut task in self.tasks.drain(..) {
                if tokio::time::timeout(GRACE, &mut task).await.is_err() {
                    task.abort();
                }
            }
        })
    }
}

async fn bind(listen: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(listen).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => anyhow::anyhow!(
            "`{listen}` is taken by another programme: stop it, or set `server.listen` to another \
             port (port 0 takes a free one)"
        ),
        std::io::ErrorKind::PermissionDenied => anyhow::anyhow!(
            "`{listen}` may not be used by this user: set `server.listen` to a port above 1023"
        ),
        _ => anyhow::anyhow!(
            "can't listen on `{listen}` ({error}): set `server.listen` to an address of this \
             machine and a port, such as `127.0.0.1:7878`"
        ),
    })
}

fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(page::index))
        .route("/index.html", get(page::index))
        .route("/favicon.svg", get(page::favicon))
        .route("/assets/{*path}", get(page::asset))
        .route("/avatar.vrm", get(page::avatar))
        .route("/events", get(events::events))
        .route("/audio", get(audio::audio))
        .route("/chat", post(api::chat))
        .route("/interrupt", post(api::interrupt))
        .route("/mic", post(api::mic))
        .route("/volume", post(api::volume))
        .route("/playback", post(api::playback))
        .route("/media/{id}", get(api::media))
        .route("/history", get(api::history))
        .route("/healthz", get(api::healthz))
        .fallback(api::no_such_route)
        .method_not_allowed_fallback(api::wrong_method)
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&shared), guard::guard))
        .layer(DefaultBodyLimit::max(api::BODY_LIMIT))
        .with_state(shared)
}

#[cfg(test)]
#[path = "server/server_tests.rs"]
mod tests;
