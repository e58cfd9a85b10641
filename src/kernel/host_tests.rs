use std::sync::{Arc, Mutex};

use super::*;
use crate::kernel::clock::FakeClock;
use crate::kernel::ids::SessionId;

type Diary = Arc<Mutex<Vec<String>>>;

struct Room {
    name: &'static str,
    needs: &'static [&'static str],
    fails: bool,
    diary: Diary,
}

impl Module for Room {
    fn name(&self) -> &'static str {
        self.name
    }

    fn dependencies(&self) -> &'static [&'static str] {
        self.needs
    }

    fn start<'a>(&'a mut self, _: &'a Bus) -> BoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async {
            anyhow::ensure!(!self.fails, "no device");
            self.diary.lock().unwrap().push(format!("+{}", self.name));
            Ok(())
        })
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.diary.lock().unwrap().push(format!("-{}", self.name)) })
    }
}

fn bus() -> Bus {
    Bus::new(FakeClock::shared(), SessionId::fresh())
}

/// A host of these modules (name, dependencies), of which `failing` can't start.
fn host(rooms: &[(&'static str, &'static [&'static str])], failing: Option<&str>) -> (Host, Diary) {
    let diary = Diary::default();
    let mut host = Host::default();
    for (name, needs) in rooms {
        let fails = failing == Some(*name);
        host.add(Room { name, needs, fails, diary: Arc::clone(&diary) });
    }
    (host, diary)
}

const CHAIN: [(&str, &[&str]); 4] =
    [("voice", &["store", "llm"]), ("store", &[]), ("mind", &["voice"]), ("llm", &["store"])];

#[tokio::test]
async fn modules_start_after_what_they_need_and_stop_in_reverse() {
    let (mut host, diary) = host(&CHAIN, None);
    host.start(&bus()).await.unwrap();
    host.stop().await;
    host.stop().await;
    let lived = diary.lock().unwrap().join(" ");
    assert_eq!(lived, "+store +llm +voice +mind -mind -voice -llm -store");
}

#[tokio::test]
async fn modules_that_need_nothing_start_in_the_order_they_were_added() {
    let (mut host, diary) = host(&[("c", &[]), ("a", &[]), ("b", &[])], None);
    host.start(&bus()).await.unwrap();
    assert_eq!(diary.lock().unwrap().join(" "), "+c +a +b");
}

#[tokio::test]
async fn a_failure_at_any_position_stops_exactly_the_started_ones() {
    let order = ["store", "llm", "voice", "mind"];
    for (position, failing) in order.iter().enumerate() {
        let (mut host, diary) = host(&CHAIN, Some(failing));
        let error = host.start(&bus()).await.unwrap_err();
        assert_eq!(error.to_string(), format!("`{failing}` could not start: no device"));
        let started = order.iter().take(position);
        let lived: Vec<_> = started
            .clone()
            .map(|name| format!("+{name}"))
            .chain(started.rev().map(|name| format!("-{name}")))
            .collect();
        assert_eq!(*diary.lock().unwrap(), lived, "{failing}");
        host.stop().await;
        assert_eq!(diary.lock().unwrap().len(), lived.len(), "stopped twice");
    }
}

#[tokio::test]
async fn a_module_that_is_left_out_is_not_waited_for() {
    let (mut host, diary) = host(&[("mind", &["memory", "store"]), ("store", &[])], None);
    host.start(&bus()).await.unwrap();
    assert_eq!(diary.lock().unwrap().join(" "), "+store +mind");
}

#[tokio::test]
async fn circles_and_double_names_start_nothing() {
    let circle: [(&str, &[&str]); 4] = [("free", &[]), ("a", &["b"]), ("b", &["c"]), ("c", &["a"])];
    let (mut circular, diary) = host(&circle, None);
    let error = circular.start(&bus()).await.unwrap_err().to_string();
    assert!(
        error.contains("circle") && ["a", "b", "c"].iter().all(|n| error.contains(n)),
        "{error}"
    );
    assert!(diary.lock().unwrap().is_empty());

    let (mut alone, _) = host(&[("a", &["a"])], None);
    assert!(matches!(alone.start(&bus()).await, Err(HostError::Cycle(_))));

    let (mut double, diary) = host(&[("a", &[]), ("b", &[]), ("a", &[])], None);
    assert!(matches!(double.start(&bus()).await, Err(HostError::Duplicate("a"))));
    assert!(diary.lock().unwrap().is_empty());
}
