use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::kernel::clock::FakeClock;
use crate::kernel::ids::TurnId;

fn bus() -> (Bus, Arc<FakeClock>) {
    let clock = FakeClock::shared();
    let bus = Bus::new(clock.clone(), SessionId::parse("s").unwrap());
    bus.start();
    (bus, clock)
}

fn token(turn: u64, delta: impl ToString) -> Event {
    Event::TokenEmitted { turn: TurnId(turn), delta: delta.to_string() }
}

fn delta(envelope: &Envelope) -> &str {
    match &envelope.event {
        Event::TokenEmitted { delta, .. } => delta,
        other => panic!("{other:?}"),
    }
}

/// Lets tasks run until nothing changes any more; no time passes.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn ten_thousand_events_a_session_keep_their_order_with_eight_publishers() {
    const EACH: usize = 10_000;
    const PUBLISHERS: usize = 8;
    let (bus, _) = bus();
    let sessions: Vec<_> =
        (0..4).map(|n| SessionId::parse(&format!("session-{n}")).unwrap()).collect();
    let mut all = bus.subscribe("all", |_| true);
    let mut other = bus.subscribe("other", |event| matches!(event, Event::SpeechStarted));
    std::thread::scope(|scope| {
        for publisher in 0..PUBLISHERS {
            let (bus, sessions) = (&bus, &sessions);
            scope.spawn(move || {
                let share = EACH / PUBLISHERS;
                for n in 0..share {
                    for session in sessions {
                        bus.publish_for(session.clone(), token(publisher as u64, n));
                    }
                }
            });
        }
    });
    bus.publish(Event::SpeechStarted);
    let mut next: HashMap<(SessionId, u64), usize> = HashMap::new();
    let mut seq = 0;
    while let Some(envelope) = all.try_next() {
        assert_eq!(envelope.seq, seq + 1, "numbered in the order of arrival, without a gap");
        seq = envelope.seq;
        let Event::TokenEmitted { turn, delta } = &envelope.event else { continue };
        let wanted = next.entry((envelope.session.clone(), turn.0)).or_default();
        assert_eq!(delta.parse::<usize>().unwrap(), *wanted);
        *wanted += 1;
    }
    assert_eq!(next.len(), sessions.len() * PUBLISHERS);
    assert!(next.values().all(|seen| *seen == EACH / PUBLISHERS));
    assert_eq!(other.try_next().unwrap().seq, seq, "the other one got only what it wanted");
    assert!(other.try_next().is_none());
}

#[tokio::test]
async fn what_is_published_before_the_start_is_delivered_at_the_start() {
    let clock = FakeClock::shared();
    let bus = Bus::new(clock.clone(), SessionId::parse("s").unwrap());
    let mut events = bus.subscribe("test", |_| true);
    bus.publish(token(1, "a"));
    clock.advance(Duration::from_millis(7));
    bus.publish(token(1, "b"));
    assert!(events.try_next().is_none());
    let mut late = bus.subscribe("late", |_| true);
    bus.start();
    bus.publish(token(1, "c"));
    for events in [&mut events, &mut late] {
        let got: Vec<_> = std::iter::from_fn(|| events.try_next()).collect();
        assert_eq!(got.iter().map(|e| delta(e)).collect::<String>(), "abc");
        assert_eq!(got.iter().map(|e| e.at_ms).collect::<Vec<_>>(), [0.0, 7.0, 7.0]);
    }
}

#[tokio::test]
async fn a_handler_that_panics_harms_neither_others_nor_itself() {
    let (bus, _) = bus();
    let counts = [Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0))];
    for (n, count) in counts.iter().enumerate() {
        let count = Arc::clone(count);
        bus.on(
            "test",
            |_| true,
            move |envelope| {
                let count = Arc::clone(&count);
                async move {
                    assert!(n != 0 || delta(&envelope) != "bad", "panics on purpose");
                    count.fetch_add(1, Ordering::Relaxed);
                }
            },
        );
    }
    for text in ["one", "bad", "two"] {
        bus.publish(token(1, text));
    }
    settle().await;
    assert_eq!(counts.map(|count| count.load(Ordering::Relaxed)), [2, 3]);
}

#[tokio::test]
async fn a_subscriber_that_is_gone_or_stuck_costs_the_others_nothing() {
    let (bus, _) = bus();
    drop(bus.subscribe("gone", |_| true));
    let mut stuck = bus.subscribe("stuck", |_| true);
    let mut quick = bus.subscribe("quick", |_| true);
    for n in 0..QUEUE_LIMIT + 10 {
        bus.publish(token(1, n));
        assert_eq!(delta(&quick.try_next().unwrap()), n.to_string());
    }
    let kept = std::iter::from_fn(|| stuck.try_next()).count();
    assert_eq!(kept, QUEUE_LIMIT);
    bus.publish(token(1, "again"));
    assert_eq!(delta(&stuck.try_next().unwrap()), "again");
}

struct Quick(u32);
impl Request for Quick {
    type Reply = u32;
}

struct Slow;
impl Request for Slow {
    type Reply = &'static str;
    const TIMEOUT: Duration = Duration::from_secs(180);
}

#[tokio::test]
async fn a_question_without_a_provider_fails_at_once() {
    let (bus, clock) = bus();
    let error = bus.request(Quick(1)).await.unwrap_err();
    assert!(matches!(error, BusError::Unavailable(name) if name.contains("Quick")), "{error}");
    assert_eq!(clock.now_ms(), 0.0);
}

#[tokio::test]
async fn one_provider_answers_and_a_second_is_refused() {
    let (bus, _) = bus();
    bus.provide(|Quick(n)| async move { n + 1 }).unwrap();
    let second = bus.provide(|Quick(n)| async move { n + 100 });
    assert!(matches!(second, Err(BusError::AlreadyProvided(_))));
    assert_eq!(bus.request(Quick(1)).await, Ok(2));
}

#[tokio::test]
async fn a_provider_that_panics_fails_its_question_only() {
    let (bus, _) = bus();
    bus.provide(|Quick(n)| async move {
        assert!(n != 0, "panics on purpose");
        n
    })
    .unwrap();
    assert!(matches!(bus.request(Quick(0)).await, Err(BusError::HandlerFailed(_))));
    assert_eq!(bus.request(Quick(3)).await, Ok(3));
}

#[tokio::test]
async fn each_request_has_its_own_time_out() {
    let (bus, clock) = bus();
    bus.provide(|Quick(_)| std::future::pending::<u32>()).unwrap();
    bus.provide(|Slow| std::future::pending::<&'static str>()).unwrap();
    let ask = |bus: Bus| tokio::spawn(async move { bus.request(Quick(1)).await });
    let short = {
        let bus = bus.clone();
        tokio::spawn(async move { bus.request_within(Quick(1), Duration::from_secs(1)).await })
    };
    let usual = ask(bus.clone());
    let long = {
        let bus = bus.clone();
        tokio::spawn(async move { bus.request(Slow).await })
    };
    settle().await;
    let mut at = Duration::ZERO;
    let mut to = async |seconds: u64, short_done, usual_done, long_done| {
        clock.advance(Duration::from_secs(seconds) - at);
        at = Duration::from_secs(seconds);
        settle().await;
        let done = (short.is_finished(), usual.is_finished(), long.is_finished());
        assert_eq!(done, (short_done, usual_done, long_done), "after {seconds} s");
    };
    to(0, false, false, false).await;
    to(1, true, false, false).await;
    to(29, true, false, false).await;
    to(30, true, true, false).await;
    to(179, true, true, false).await;
    to(180, true, true, true).await;
    let timed_out = |answer: Result<u32, BusError>, seconds| matches!(answer, Err(BusError::TimedOut(_, limit)) if limit == Duration::from_secs(seconds));
    assert!(timed_out(short.await.unwrap(), 1));
    assert!(timed_out(usual.await.unwrap(), 30));
    assert!(
        matches!(long.await.unwrap(), Err(BusError::TimedOut(_, limit)) if limit == Slow::TIMEOUT)
    );
}

#[tokio::test]
async fn an_answer_after_the_default_time_out_is_taken_where_more_was_allowed() {
    let (bus, clock) = bus();
    let answering = clock.clone();
    bus.provide(move |Slow| {
        let wait = answering.sleep(Duration::from_secs(100));
        async move {
            wait.await;
            "late but fine"
        }
    })
    .unwrap();
    let asked = {
        let bus = bus.clone();
        tokio::spawn(async move { bus.request(Slow).await })
    };
    settle().await;
    clock.advance(Duration::from_secs(100));
    assert_eq!(asked.await.unwrap(), Ok("late but fine"));
}

#[derive(Debug, PartialEq)]
struct Do(usize);
impl Command for Do {}

#[tokio::test]
async fn commands_reach_their_one_handler_in_order() {
    let (bus, _) = bus();
    assert!(matches!(bus.send(Do(0)), Err(BusError::Unavailable(_))));
    let mut commands = bus.commands::<Do>().unwrap();
    assert!(matches!(bus.commands::<Do>(), Err(BusError::AlreadyProvided(_))));
    for n in 0..COMMAND_LIMIT {
        bus.send(Do(n)).unwrap();
    }
    assert!(matches!(bus.send(Do(0)), Err(BusError::Busy(_))));
    for n in 0..COMMAND_LIMIT {
        assert_eq!(commands.try_recv(), Ok(Do(n)));
    }
    drop(commands);
    assert!(matches!(bus.send(Do(1)), Err(BusError::Unavailable(_))));
    let mut next = bus.commands::<Do>().unwrap();
    bus.send(Do(2)).unwrap();
    assert_eq!(next.recv().await, Some(Do(2)));
}
