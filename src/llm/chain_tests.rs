use std::collections::VecDeque;
use std::time::Duration;

use super::*;
use crate::kernel::clock::FakeClock;
use crate::kernel::ports::StopReason;

/// What a model of these tests does with one request.
#[derive(Clone)]
enum Does {
    Says(&'static str),
    Fails(ChatError),
    SaysAndFails(&'static str),
    ThinksAndFails,
    Vanishes,
}

struct Scripted {
    name: &'static str,
    does: Mutex<VecDeque<Does>>,
}

impl Scripted {
    fn new(name: &'static str, does: impl IntoIterator<Item = Does>) -> Arc<Self> {
        Arc::new(Self { name, does: Mutex::new(does.into_iter().collect()) })
    }

    fn left(&self) -> usize {
        self.does.lock().unwrap().len()
    }
}

impl ChatModel for Scripted {
    fn name(&self) -> String {
        self.name.into()
    }

    fn tags_feelings(&self) -> bool {
        self.name == "first"
    }

    fn chat(&self, _: ChatRequest, _: CancellationToken) -> ChatStream {
        let (out, stream) = mpsc::channel(8);
        let does = self.does.lock().unwrap().pop_front().expect("an answer for each request");
        let deltas = match does {
            Does::Says(text) => {
                vec![Ok(ChatDelta::Text(text.into())), Ok(ChatDelta::Done(StopReason::End))]
            }
            Does::Fails(error) => vec![Err(error)],
            Does::SaysAndFails(text) => vec![Ok(ChatDelta::Text(text.into())), Err(down("cut"))],
            Does::ThinksAndFails => {
                vec![Ok(ChatDelta::Thinking("hm".into())), Err(down("cut"))]
            }
            Does::Vanishes => vec![],
        };
        for delta in deltas {
            out.try_send(delta).unwrap();
        }
        stream
    }

    fn warm(&self, _: Vec<ChatMessage>) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

fn down(line: &str) -> ChatError {
    ChatError::Unavailable(line.into())
}

struct Bench {
    chain: Chain,
    clock: Arc<FakeClock>,
    told: Arc<Mutex<Vec<String>>>,
}

fn bench(models: &[&Arc<Scripted>]) -> Bench {
    let clock = FakeClock::shared();
    let told = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&told);
    let notify: Notify = Arc::new(move |event| {
        notes.lock().unwrap().push(match event {
            Event::Notice(notice) => format!("{}: {}", notice.code, notice.text),
            Event::Engines(engines) => format!("uses {}", engines.llm.unwrap()),
            other => panic!("{other:?}"),
        });
    });
    let models = models.iter().map(|model| Arc::clone(model) as Arc<dyn ChatModel>).collect();
    Bench { chain: Chain::new(models, clock.clone(), notify), clock, told }
}

impl Bench {
    async fn ask(&self) -> (String, Option<ChatError>) {
        let request = ChatRequest { messages: vec![], max_tokens: 9, temperature: 0.0 };
        let mut stream = self.chain.chat(request, CancellationToken::new());
        let mut text = String::new();
        while let Some(delta) = stream.recv().await {
            match delta {
                Ok(ChatDelta::Text(more)) => text += &more,
                Ok(_) => {}
                Err(error) => return (text, Some(error)),
            }
        }
        (text, None)
    }

    fn told(&self) -> Vec<String> {
        std::mem::take(&mut self.told.lock().unwrap())
    }
}

#[tokio::test]
async fn the_next_model_stands_in_and_the_first_comes_back() {
    let first = Scripted::new("first", [Does::Fails(down("down")), Does::Says("me")]);
    let second = Scripted::new("second", [Does::Says("you"), Does::Says("you")]);
    let bench = bench(&[&first, &second]);
    assert_eq!((bench.chain.name(), bench.chain.tags_feelings()), ("first".into(), true));
    assert_eq!(bench.ask().await, ("you".into(), None));
    assert_eq!(bench.told(), ["llm_fallback: down; `second` answers instead", "uses second"]);
    assert_eq!((bench.chain.name(), bench.chain.tags_feelings()), ("second".into(), false));
    // The first one is left alone for five seconds, and nothing is told twice.
    assert_eq!(bench.ask().await, ("you".into(), None));
    assert_eq!(bench.told(), [""; 0]);
    bench.clock.advance(Duration::from_secs(5));
    assert_eq!(bench.ask().await, ("me".into(), None));
    assert_eq!(bench.told(), ["llm_back: `first` answers again", "uses first"]);
    assert_eq!(bench.chain.name(), "first");
}

#[tokio::test]
async fn every_kind_of_failure_before_the_first_word_is_followed_by_the_next_model() {
    let limited = ChatError::Limited { text: "quota".into(), retry_after: None };
    for does in [
        Does::Fails(limited),
        Does::Fails(ChatError::Refused("key".into())),
        Does::Fails(ChatError::Garbled("junk".into())),
        Does::ThinksAndFails,
        Does::Vanishes,
    ] {
        let first = Scripted::new("first", [does]);
        let second = Scripted::new("second", [Does::Says("you")]);
        assert_eq!(bench(&[&first, &second]).ask().await, ("you".into(), None));
    }
}

#[tokio::test]
async fn after_the_first_word_the_reply_ends_with_the_error() {
    let first = Scripted::new("first", [Does::SaysAndFails("half")]);
    let second = Scripted::new("second", [Does::Says("you")]);
    let bench = bench(&[&first, &second]);
    assert_eq!(bench.ask().await, ("half".into(), Some(down("cut (ask again)"))));
    assert_eq!(second.left(), 1);
    assert_eq!(bench.ask().await, ("you".into(), None), "the next turn is the second one's");
}

#[tokio::test]
async fn a_cancelled_reply_is_no_failure() {
    let first = Scripted::new("first", [Does::Fails(ChatError::Cancelled), Does::Says("me")]);
    let second = Scripted::new("second", []);
    let bench = bench(&[&first, &second]);
    assert_eq!(bench.ask().await, (String::new(), Some(ChatError::Cancelled)));
    assert_eq!(bench.ask().await, ("me".into(), None));
}

#[tokio::test]
async fn when_none_answers_every_reason_is_told_and_all_are_tried_again() {
    let first = Scripted::new("first", [Does::Fails(down("a")), Does::Says("me")]);
    let second = Scripted::new("second", [Does::Fails(down("b"))]);
    let bench = bench(&[&first, &second]);
    assert_eq!(bench.ask().await, (String::new(), Some(down("a; b (ask again)"))));
    assert_eq!(bench.ask().await, ("me".into(), None));
    assert_eq!(bench.told(), [""; 0]);
    let none = self::bench(&[]);
    assert_eq!(none.ask().await, (String::new(), Some(down("there is no language model"))));
    assert_eq!(none.chain.name(), "none");
}

#[tokio::test]
async fn a_server_that_says_when_is_not_asked_before() {
    let retry_after = Some(Duration::from_secs(60));
    let limited = ChatError::Limited { text: "slow".into(), retry_after };
    let first = Scripted::new("first", [Does::Fails(limited), Does::Says("me")]);
    let second = Scripted::new("second", [Does::Says("you"), Does::Says("you")]);
    let bench = bench(&[&first, &second]);
    bench.ask().await;
    bench.clock.advance(Duration::from_secs(59));
    assert_eq!(bench.ask().await.0, "you");
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(bench.ask().await.0, "me");
}
