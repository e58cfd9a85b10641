use std::collections::VecDeque;
use std::sync::Mutex;

use futures_util::{SinkExt, StreamExt};
use reqwest::header;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::*;
use crate::kernel::clock::FakeClock;
use crate::kernel::contracts::*;
use crate::kernel::ids::{MediaId, SegmentId, SessionId, TurnId};
use crate::kernel::ports::{Pcm, RemoteAcks, RemoteHello, RemoteLink, RemoteMic, RemoteOut};
use crate::kernel::scene::Scene;

/// A face that only counts, so that these tests are about the server.
#[derive(Default)]
struct Counting {
    scene: Scene,
}

impl SceneTimeline for Counting {
    fn apply(&mut self, event: &Envelope) {
        if let Event::Listen { state } = &event.event {
            self.scene.listen = *state;
        }
    }

    fn scene(&self, _at_ms: f64) -> Scene {
        self.scene.clone()
    }
}

struct OneSound;

impl MediaStore for OneSound {
    fn put(&self, _pcm: Arc<Pcm>) -> MediaId {
        MediaId("one".into())
    }

    fn get(&self, id: &MediaId) -> Option<Arc<Pcm>> {
        (id.0 == "one").then(|| Arc::new(Pcm { rate: 8_000, samples: vec![0.5; 80] }))
    }
}

/// Lets every device in, keeps what it says, and gives the test its downward end.
#[derive(Default)]
struct Devices {
    heard: Arc<Mutex<Vec<i16>>>,
    acks: Arc<Mutex<Vec<String>>>,
    down: Mutex<VecDeque<mpsc::Sender<RemoteOut>>>,
}

struct KeepSound(Arc<Mutex<Vec<i16>>>);

impl RemoteMic for KeepSound {
    fn heard(&mut self, samples: &[i16]) {
        self.0.lock().unwrap().extend_from_slice(samples);
    }
}

struct KeepAcks(Arc<Mutex<Vec<String>>>);

impl RemoteAcks for KeepAcks {
    fn played(&mut self, segment: SegmentId, played: Duration) {
        self.0.lock().unwrap().push(format!("{segment} {}", played.as_millis()));
    }

    fn finished(&mut self, segment: SegmentId) {
        self.0.lock().unwrap().push(format!("{segment} end"));
    }

    fn waiting(&mut self, segment: SegmentId) {
        self.0.lock().unwrap().push(format!("{segment} waits"));
    }
}

impl RemoteDevices for Devices {
    fn connect(&self, hello: RemoteHello) -> Result<RemoteLink, String> {
        if hello.input_rate == 1 {
            return Err("1 Hz is not a rate that Alice takes (8000 to 48000)".into());
        }
        let (down, out) = mpsc::channel(64);
        self.down.lock().unwrap().push_back(down);
        let mic = (hello.input_rate > 0)
            .then(|| Box::new(KeepSound(Arc::clone(&self.heard))) as Box<dyn RemoteMic>);
        Ok(RemoteLink { mic, acks: Box::new(KeepAcks(Arc::clone(&self.acks))), out })
    }
}

struct House {
    bus: Bus,
    server: Server,
    devices: Arc<Devices>,
    home: tempfile::TempDir,
    turns: mpsc::Receiver<TurnCommand>,
    ears: mpsc::Receiver<EarsCommand>,
    voice: mpsc::Receiver<VoiceCommand>,
}

impl House {
    async fn start() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: fn(&mut Settings)) -> Self {
        // reqwest was built without a provider of its own; a second install is refused, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let bus = Bus::new(FakeClock::shared(), SessionId::parse("s").unwrap());
        bus.provide::<GetHistory, _, _>(|_| async {
            let text = "from before".to_owned();
            vec![HistoryEntry { turn: TurnId(0), from_user: true, text, interrupted: false }]
        })
        .unwrap();
        let turns = bus.commands::<TurnCommand>().unwrap();
        let ears = bus.commands::<EarsCommand>().unwrap();
        let voice = bus.commands::<VoiceCommand>().unwrap();
        let home = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        settings.server.listen = "127.0.0.1:0".into();
        change(&mut settings);
        let devices = Arc::new(Devices::default());
        let mut server = Server::new(ServerParts {
            settings,
            home: Home::at(home.path()),
            turn_ids: Arc::default(),
            media: Arc::new(OneSound),
            remote: Arc::clone(&devices) as Arc<dyn RemoteDevices>,
            timeline: Box::new(Counting::default()),
        });
        server.start(&bus).await.unwrap();
        bus.start();
        Self { bus, server, devices, home, turns, ears, voice }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.address().url().unwrap())
    }

    fn token(&self) -> String {
        std::fs::read_to_string(self.home.path().join("token")).unwrap().trim().to_owned()
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let response = client().post(self.url(path)).json(&body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn viewer(&self, last: Option<&str>) -> Viewer {
        let mut request = client().get(self.url("events"));
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        Viewer { response, buffer: String::new() }
    }

    fn token_events(&self, from: usize, count: usize) {
        for number in from..from + count {
            self.bus.publish(Event::TokenEmitted { turn: TurnId(1), delta: number.to_string() });
        }
    }

    async fn device(&self, token: &str, hello: Value) -> Line {
        let (mut line, _) = tokio_tungstenite::connect_async(self.audio(token)).await.unwrap();
        line.send(Message::text(hello.to_string())).await.unwrap();
        line
    }

    fn audio(&self, token: &str) -> tungstenite::handshake::client::Request {
        let url = self.url(&format!("audio?token={token}")).replace("http", "ws");
        url.into_client_request().unwrap()
    }
}

type Line = WebSocketStream<MaybeTlsStream<TcpStream>>;

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

struct Viewer {
    response: reqwest::Response,
    buffer: String,
}

struct Seen {
    id: Option<String>,
    kind: String,
    data: Value,
}

impl Viewer {
    async fn next(&mut self) -> Seen {
        loop {
            while let Some((block, rest)) = self.buffer.split_once("\n\n") {
                let block = block.to_owned();
                self.buffer = rest.to_owned();
                let field = |name: &str| {
                    let lines = block.lines();
                    let mut values = lines.filter_map(|line| line.strip_prefix(name));
                    values.next().map(str::to_owned)
                };
                if let Some(data) = field("data: ") {
                    return Seen {
                        id: field("id: "),
                        kind: field("event: ").unwrap(),
                        data: serde_json::from_str(&data).unwrap(),
                    };
                }
            }
            let chunk = tokio::time::timeout(Duration::from_secs(20), self.response.chunk());
            let chunk = chunk.await.unwrap().unwrap().expect("the stream goes on");
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    async fn token(&mut self) -> usize {
        loop {
            let seen = self.next().await;
            if seen.kind == "token_emitted" {
                return seen.data["delta"].as_str().unwrap().parse().unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_viewer_gets_the_present_and_then_everything_in_order() {
    let house = House::start().await;
    let mut viewer = house.viewer(None).await;
    let first = viewer.next().await;
    assert_eq!((first.kind.as_str(), &first.data["type"]), ("snapshot", &json!("snapshot")));
    assert_eq!(first.data["history"][0]["text"], "from before");
    assert_eq!(first.data["scene"]["state"], "idle");
    assert_eq!(first.data["volume"], 1.0);
    assert_eq!(first.data["mode"], "open");
    assert_eq!(first.data["name"], "Alice");
    house.token_events(0, 100);
    for number in 0..100 {
        assert_eq!(viewer.token().await, number);
    }
    // Drafts are nobody's business.
    let begin = |turn, draft| Event::TurnStarted {
        turn: TurnId(turn),
        source: TurnSource::Voice,
        user_text: "a secret".into(),
        draft,
    };
    house.bus.publish(begin(7, true));
    house.bus.publish(Event::TurnDiscarded { turn: TurnId(7) });
    house.bus.publish(begin(8, false));
    let seen = viewer.next().await;
    assert_eq!((seen.kind.as_str(), &seen.data["turn"]), ("turn_started", &json!(8)));
    let mut later = house.viewer(None).await;
    let history = later.next().await.data["history"].clone();
    assert_eq!(history.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_viewer_that_comes_back_gets_the_state_it_missed_and_no_sound() {
    let house = House::start().await;
    let segment = SegmentId { turn: TurnId(1), index: 0 };
    let mut viewer = house.viewer(None).await;
    viewer.next().await;
    house.token_events(0, 1);
    let last = viewer.next().await.id.unwrap();
    drop(viewer);
    let mut watch = house.viewer(None).await;
    watch.next().await;
    house.bus.publish(Event::SpeakingStarted { turn: TurnId(1) });
    house.bus.publish(Event::SegmentStarted { segment });
    house.bus.publish(Event::SegmentProgress { segment, played_ms: 100.0 });
    house.token_events(1, 1);
    // Level and progress are worth nothing later and carry no id, so they do not move the place.
    let ids: Vec<bool> = [watch.next().await, watch.next().await, watch.next().await]
        .iter()
        .map(|seen| seen.id.is_some())
        .collect();
    assert_eq!(ids, [true, true, false]);
    watch.token().await;

    let mut back = house.viewer(Some(&last)).await;
    assert_eq!(back.next().await.kind, "snapshot");
    let missed = back.next().await;
    assert_eq!((missed.kind.as_str(), &missed.data["replayed"]), ("token_emitted", &json!(true)));
    assert_eq!(missed.data["delta"], "1");
    house.token_events(2, 1);
    let live = back.next().await;
    assert_eq!((&live.data["delta"], live.data.get("replayed")), (&json!("2"), None));

    // The same for pages that can't send the header; an id of another start counts for nothing.
    let asked = client().get(house.url(&format!("events?last_event_id={last}"))).send().await;
    let mut by_query = Viewer { response: asked.unwrap(), buffer: String::new() };
    by_query.next().await;
    assert_eq!(by_query.next().await.data["delta"], "1");
    let mut stranger = house.viewer(Some("otherepoch-1")).await;
    assert_eq!(stranger.next().await.kind, "snapshot");
    house.token_events(3, 1);
    assert_eq!(stranger.next().await.data["delta"], "3");
}

#[tokio::test]
async fn the_replay_is_bounded() {
    let house = House::start().await;
    let mut viewer = house.viewer(None).await;
    let first = viewer.next().await.id.unwrap();
    for round in 0..15 {
        house.token_events(round * 100, 100);
        for _ in 0..100 {
            viewer.token().await;
        }
    }
    let mut back = house.viewer(Some(&first)).await;
    back.next().await;
    assert_eq!(back.token().await, 1500 - hub::REPLAY);
}

#[tokio::test]
async fn a_slow_viewer_delays_nobody_and_skips_to_the_present() {
    let house = House::start().await;
    // This one reads its snapshot and then nothing, while far more comes than the line holds.
    let mut slow = house.viewer(None).await;
    slow.next().await;
    let mut quick = house.viewer(None).await;
    quick.next().await;
    let long = "x".repeat(8_000);
    let rounds = 40;
    for round in 0..rounds {
        for _ in 0..100 {
            let delta = long.clone();
            house.bus.publish(Event::ThinkingUpdated { turn: TurnId(1), delta });
        }
        house.token_events(round, 1);
        assert_eq!(quick.token().await, round);
    }
    house.bus.publish(Event::Listen { state: ListenState::Thinking });
    let mut snapshots = 0;
    let mut thoughts = 0;
    loop {
        let seen = slow.next().await;
        match seen.kind.as_str() {
            "snapshot" => snapshots += 1,
            "thinking_updated" => thoughts += 1,
            "listen" => break,
            _ => {}
        }
        if seen.kind == "snapshot" && seen.data["scene"]["listen"] == "thinking" {
            break;
        }
    }
    assert!(snapshots > 0, "it skipped");
    assert!(thoughts < rounds * 100, "and did not get all");
}

#[tokio::test]
async fn two_hundred_viewers_see_the_same_order() {
    let house = House::start().await;
    let mut viewers = Vec::new();
    for _ in 0..200 {
        let mut viewer = house.viewer(None).await;
        viewer.next().await;
        viewers.push(viewer);
    }
    house.token_events(0, 50);
    for viewer in &mut viewers {
        for number in 0..50 {
            assert_eq!(viewer.token().await, number);
        }
    }
}

#[tokio::test]
async fn there_are_only_so_many_places() {
    let house = House::with(|settings| settings.server.max_viewers = 1).await;
    let viewer = house.viewer(None).await;
    let refused = client().get(house.url("events")).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["code"], "too_many_viewers");
    drop(viewer);
    // The place is free again as soon as the server notices, which its next event makes it do.
    for _ in 0..200 {
        house.token_events(0, 1);
        if client().get(house.url("events")).send().await.unwrap().status() == 200 {
            return;
        }
    }
    panic!("the place was not given back");
}

#[tokio::test]
async fn a_new_start_is_a_new_epoch_and_a_stop_ends_every_stream() {
    let mut house = House::start().await;
    let mut viewer = house.viewer(None).await;
    let first = viewer.next().await;
    let mut line = house.device(&house.token(), hello()).await;
    assert_eq!(text(&mut line).await["type"], "ready");
    house.server.stop().await;
    while let Some(chunk) = viewer.response.chunk().await.unwrap_or(None) {
        assert!(!chunk.is_empty());
    }
    assert_eq!(closed(&mut line).await.0, 1001);
    let again = House::start().await;
    let mut viewer = again.viewer(first.id.as_deref()).await;
    let snapshot = viewer.next().await;
    assert_ne!(snapshot.data["epoch"], first.data["epoch"]);
}

#[tokio::test]
async fn what_a_page_asks_reaches_the_rooms() {
    let mut house = House::start().await;
    let mut events =
        house.bus.subscribe("test", |event| matches!(event, Event::Interrupted { .. }));
    assert_eq!(house.post("chat", json!({ "text": " Hello \n" })).await, (200, json!({"turn": 1})));
    let text = "Hello".to_owned();
    let begin =
        TurnCommand::Begin { turn: TurnId(1), text, source: TurnSource::Page, draft: false };
    assert_eq!(house.turns.recv().await, Some(begin));
    assert_eq!(house.post("interrupt", json!({})).await.0, 200);
    let asked = Event::Interrupted { turn: None, cause: InterruptCause::Request };
    assert_eq!(events.next().await.unwrap().event, asked);
    assert_eq!(house.post("mic", json!({ "muted": true })).await.0, 200);
    assert_eq!(house.ears.recv().await, Some(EarsCommand::Mute(true)));
    assert_eq!(house.post("mic", json!({ "push_to_talk": true })).await.0, 200);
    assert_eq!(house.ears.recv().await, Some(EarsCommand::PushToTalk(true)));
    let mut viewer = house.viewer(None).await;
    viewer.next().await;
    assert_eq!(house.post("volume", json!({ "volume": 0.25 })).await.0, 200);
    assert_eq!(house.voice.recv().await, Some(VoiceCommand::Volume(0.25)));
    assert_eq!(viewer.next().await.data["volume"], 0.25);
    assert_eq!(house.viewer(None).await.next().await.data["volume"], 0.25);
    let told = json!({ "turn": 1, "index": 0, "played_ms": 10.0 });
    assert_eq!(house.post("playback", told).await, (200, json!({ "lag_ms": null })));
    let got = client().get(house.url("history?limit=5")).send().await.unwrap();
    let got: Value = got.json().await.unwrap();
    assert_eq!(got["entries"][0]["text"], "from before");
    let sound = client().get(house.url("media/one")).send().await.unwrap();
    assert_eq!(sound.headers()[header::CONTENT_TYPE], "audio/wav");
    assert_eq!(sound.bytes().await.unwrap().len(), 44 + 160);
    // A room that is not there is said, not waited for.
    house.ears.close();
    let (status, error) = house.post("mic", json!({ "muted": false })).await;
    assert_eq!((status, &error["error"]["code"]), (503, &json!("unavailable")));
}

#[tokio::test]
async fn bad_requests_are_refused_with_a_line() {
    let house = House::start().await;
    let long = json!({ "text": "x".repeat(api::BODY_LIMIT) });
    let cases = [
        ("chat", json!({ "text": "  " }), 400, "empty_text"),
        ("chat", json!({ "text": "x".repeat(8_001) }), 400, "text_too_long"),
        ("chat", json!({ "words": "private" }), 400, "bad_body"),
        ("chat", long, 413, "too_large"),
        ("mic", json!({}), 400, "nothing_asked"),
        ("volume", json!({ "volume": 1.5 }), 400, "bad_volume"),
        ("playback", json!({ "turn": 1, "index": 0, "played_ms": -1.0 }), 400, "bad_position"),
        ("nowhere", json!({}), 404, "not_found"),
        ("events", json!({}), 405, "wrong_method"),
    ];
    for (path, body, status, code) in cases {
        let (got, error) = house.post(path, body).await;
        assert_eq!((got, &error["error"]["code"]), (status, &json!(code)), "{path}");
        assert!(!error["error"]["hint"].as_str().unwrap().is_empty());
        assert!(!error.to_string().contains("private"));
    }
    let form = client().post(house.url("chat")).body(r#"{"text":"hi"}"#).send().await.unwrap();
    assert_eq!(form.status(), 415);
    assert_eq!(client().get(house.url("media/none")).send().await.unwrap().status(), 404);
    assert_eq!(client().get(house.url("audio?token=x")).send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn other_sites_and_strangers_are_kept_out() {
    let house = House::with(|settings| {
        settings.server.origins = vec!["https://alice.example".into()];
    })
    .await;
    let evil = client()
        .post(house.url("chat"))
        .header(header::ORIGIN, "https://evil.example")
        .json(&json!({ "text": "hi" }));
    assert_eq!(evil.send().await.unwrap().status(), 403);
    let rebound = client().get(house.url("history")).header(header::HOST, "evil.example");
    assert_eq!(rebound.send().await.unwrap().status(), 403);
    let proxied = || client().get(house.url("history")).header("x-forwarded-for", "192.0.2.1");
    assert_eq!(proxied().send().await.unwrap().status(), 401);
    assert_eq!(proxied().bearer_auth(house.token()).send().await.unwrap().status(), 200);
    let listed =
        proxied().bearer_auth(house.token()).header(header::ORIGIN, "https://alice.example");
    let answer = listed.send().await.unwrap();
    assert_eq!(answer.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], "https://alice.example");
    let foreign = {
        let mut request = house.audio(&house.token());
        request.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
        tokio_tungstenite::connect_async(request).await
    };
    assert!(matches!(foreign, Err(tungstenite::Error::Http(answer)) if answer.status() == 403));
    let nobody = tokio_tungstenite::connect_async(house.audio("")).await;
    assert!(matches!(nobody, Err(tungstenite::Error::Http(answer)) if answer.status() == 401));
    let at = house.server.address().get().unwrap();
    let by_page = |origin: String| {
        let mut request = house.audio("");
        request.headers_mut().insert("origin", origin.parse().unwrap());
        tokio_tungstenite::connect_async(request)
    };
    assert!(by_page(format!("http://{at}")).await.is_ok(), "our own page on this machine");
    let other = by_page("http://127.0.0.1:1".into()).await;
    assert!(matches!(other, Err(tungstenite::Error::Http(answer)) if answer.status() == 403));
    // From afar the server says that it lives, and no more.
    let health = client().get(house.url("healthz")).header("x-forwarded-for", "192.0.2.1");
    let health: Value = health.send().await.unwrap().json().await.unwrap();
    assert_eq!(health, json!({ "status": "ok" }));
}

#[tokio::test]
async fn the_page_brings_the_token_as_a_cookie_to_who_may_have_it() {
    let house = House::start().await;
    let page = client().get(house.url("")).send().await.unwrap();
    assert_eq!(page.status(), 200);
    let cookie = page.headers()[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.contains(&house.token()) && cookie.contains("HttpOnly; SameSite=Strict"));
    assert!(page.headers().contains_key(header::CONTENT_SECURITY_POLICY));
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let far = |path: &str| client().get(house.url(path)).header("x-forwarded-for", "192.0.2.1");
    let answer = far("history").header(header::COOKIE, cookie).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    for sign in ["forwarded", "x-forwarded-proto", "x-forwarded-host", "x-real-ip", "via"] {
        let stranger = client().get(house.url("")).header(sign, "something").send().await.unwrap();
        assert!(!stranger.headers().contains_key(header::SET_COOKIE), "{sign}");
    }
    let old = client().get(house.url("")).version(reqwest::Version::HTTP_10).send().await.unwrap();
    assert!(!old.headers().contains_key(header::SET_COOKIE), "a proxy without a word of it");
    assert!(!far("").send().await.unwrap().headers().contains_key(header::SET_COOKIE));
    let no_redirect = reqwest::redirect::Policy::none();
    let shy = reqwest::Client::builder().no_proxy().redirect(no_redirect).build().unwrap();
    let with = house.url(&format!("?token={}", house.token()));
    let tls = shy.get(&with).header("x-forwarded-proto", "https").send().await.unwrap();
    assert!(tls.headers()[header::SET_COOKIE].to_str().unwrap().ends_with("; Secure"));
    let answer = shy.get(with).header("x-forwarded-for", "192.0.2.1").send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()[header::LOCATION]),
        (303, &"/".parse().unwrap())
    );
    assert!(answer.headers().contains_key(header::SET_COOKIE));

    std::fs::write(house.home.path().join("avatar.vrm"), b"mine").unwrap();
    let own = client().get(house.url("avatar.vrm")).send().await.unwrap();
    let tag = own.headers()[header::ETAG].clone();
    assert_eq!(own.bytes().await.unwrap(), "mine");
    let known = client().get(house.url("avatar.vrm")).header(header::IF_NONE_MATCH, tag);
    assert_eq!(known.send().await.unwrap().status(), 304);
    std::fs::remove_file(house.home.path().join("avatar.vrm")).unwrap();
    let plain = client().get(house.url("avatar.vrm")).send().await.unwrap();
    assert_eq!(&plain.bytes().await.unwrap()[..4], b"glTF");
    let packed = client().get(house.url("avatar.vrm")).header(header::ACCEPT_ENCODING, "br, gzip");
    let packed = packed.send().await.unwrap();
    assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip");
    assert_eq!(&packed.bytes().await.unwrap()[..2], &[0x1f, 0x8b]);
}

#[tokio::test]
async fn a_taken_port_is_one_clear_line() {
    let house = House::start().await;
    let taken = house.server.address().get().unwrap().to_string();
    let error = bind(&taken).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("`{taken}` is taken")) && !error.contains('\n'), "{error}");
    assert!(bind("nonsense").await.unwrap_err().to_string().contains("server.listen"));
}

fn hello() -> Value {
    json!({ "name": "phone", "input_rate": 16_000, "output_rate": 1_000 })
}

async fn text(line: &mut Line) -> Value {
    loop {
        match line.next().await.unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

async fn closed(line: &mut Line) -> (u16, String) {
    loop {
        if let Message::Close(Some(close)) = line.next().await.unwrap().unwrap() {
            return (close.code.into(), close.reason.to_string());
        }
    }
}

#[tokio::test]
async fn a_remote_device_is_heard_and_hears() {
    let house = House::start().await;
    let mut line = house.device(&house.token(), hello()).await;
    let ready = text(&mut line).await;
    assert_eq!((&ready["type"], &ready["input_rate"]), (&json!("ready"), &json!(16_000)));
    let down = house.devices.down.lock().unwrap().pop_front().unwrap();
    let segment = SegmentId { turn: TurnId(2), index: 0 };
    down.send(RemoteOut::Start { segment, duration_ms: 200.0 }).await.unwrap();
    down.send(RemoteOut::Sound((0..200).collect())).await.unwrap();
    down.send(RemoteOut::End(segment)).await.unwrap();
    let start = json!({"type": "start", "turn": 2, "index": 0, "duration_ms": 200.0});
    assert_eq!(text(&mut line).await, start);
    let mut sound = Vec::new();
    while sound.len() < 400 {
        match line.next().await.unwrap().unwrap() {
            Message::Binary(bytes) => sound.extend_from_slice(&bytes),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(&sound[..6], &[0, 0, 1, 0, 2, 0]);
    assert_eq!(text(&mut line).await, json!({"type": "end", "turn": 2, "index": 0}));
    down.send(RemoteOut::Duck(true)).await.unwrap();
    assert_eq!(text(&mut line).await, json!({"type": "duck", "on": true}));
    down.send(RemoteOut::Flush { turn: Some(TurnId(2)) }).await.unwrap();
    assert_eq!(text(&mut line).await, json!({"type": "flush", "turn": 2}));

    down.send(RemoteOut::Volume(0.5)).await.unwrap();
    assert_eq!(text(&mut line).await, json!({"type": "volume", "volume": 0.5}));

    line.send(Message::binary(vec![1, 0, 2])).await.unwrap();
    line.send(Message::binary(vec![0])).await.unwrap();
    line.send(Message::text(r#"{"type":"waiting","turn":2,"index":0}"#)).await.unwrap();
    line.send(Message::text(r#"{"type":"played","turn":2,"index":0,"ms":120.5}"#)).await.unwrap();
    line.send(Message::text(r#"{"type":"finished","turn":2,"index":0}"#)).await.unwrap();
    line.send(Message::text("nonsense")).await.unwrap();
    assert_eq!(closed(&mut line).await.0, 1007);
    assert_eq!(*house.devices.heard.lock().unwrap(), [1, 2]);
    assert_eq!(*house.devices.acks.lock().unwrap(), ["2.0 waits", "2.0 120", "2.0 end"]);
    // The link was dropped, so the house knows.
    assert!(down.is_closed());
}

#[tokio::test]
async fn devices_that_break_the_rules_are_told_why() {
    let house = House::start().await;
    let token = house.token();
    let mut line = house.device(&token, json!({ "input_rate": 1, "output_rate": 0 })).await;
    let (code, reason) = closed(&mut line).await;
    assert!(code == 1008 && reason.starts_with("1 Hz"), "{reason}");
    let mut line = house.device(&token, json!({ "output_rate": 0 })).await;
    let (code, reason) = closed(&mut line).await;
    assert!(code == 1007 && reason.contains("input_rate"), "{reason}");
    let mut line = house.device(&token, json!({ "input_rate": 0, "output_rate": 16_000 })).await;
    assert_eq!(text(&mut line).await["type"], "ready");
    line.send(Message::binary(vec![0, 0])).await.unwrap();
    assert_eq!(closed(&mut line).await.0, 1003);
    let (mut line, _) = tokio_tungstenite::connect_async(house.audio(&token)).await.unwrap();
    line.send(Message::binary(vec![0, 0])).await.unwrap();
    assert_eq!(closed(&mut line).await.0, 1003);
    let mut line = house.device(&token, hello()).await;
    assert_eq!(text(&mut line).await["type"], "ready");
    line.send(Message::binary(vec![0; 2 * 1024 * 1024])).await.unwrap();
    assert_eq!(closed(&mut line).await.0, 1009);
    // Another device takes over: the voice lets go of the first.
    let mut line = house.device(&token, hello()).await;
    assert_eq!(text(&mut line).await["type"], "ready");
    house.devices.down.lock().unwrap().clear();
    assert_eq!(closed(&mut line).await.1, "another device took over");
}

#[tokio::test]
async fn a_device_that_speaks_while_the_line_is_closed_still_learns_why() {
    let house = House::start().await;
    let token = house.token();
    for _ in 0..20 {
        let mut line = house.device(&token, hello()).await;
        assert_eq!(text(&mut line).await["type"], "ready");
        for part in 0..20 {
            // A connection that is closed with sound in it that nobody read is reset, and a browser that
            // can't write any more does not read why.
            line.send(Message::binary(vec![0; 200_000])).await.unwrap();
            if part == 10 {
                house.devices.down.lock().unwrap().clear();
            }
        }
        assert_eq!(closed(&mut line).await.1, "another device took over");
    }
}

#[tokio::test]
async fn a_device_that_does_not_read_is_let_go() {
    let house = House::start().await;
    let mut line = house.device(&house.token(), hello()).await;
    assert_eq!(text(&mut line).await["type"], "ready");
    let down = house.devices.down.lock().unwrap().pop_front().unwrap();
    // At 1 kHz ten seconds are 20 kB: after some MB the socket is full and the queue grows.
    for _ in 0..100_000 {
        if down.send(RemoteOut::Sound(vec![7; 10_000])).await.is_err() {
            return;
        }
    }
    panic!("a device that never reads was kept");
}
