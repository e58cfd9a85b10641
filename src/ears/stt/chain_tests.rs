use super::*;
use crate::kernel::clock::FakeClock;

/// Fails, or answers with its name, and counts how often it was asked.
struct Fake {
    name: &'static str,
    broken: Mutex<bool>,
    asked: Mutex<u32>,
}

impl Fake {
    fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self { name, broken: Mutex::new(false), asked: Mutex::new(0) })
    }

    fn breaks(&self, broken: bool) {
        *self.broken.lock().unwrap() = broken;
    }
}

impl Stt for Fake {
    fn name(&self) -> String {
        self.name.into()
    }

    fn transcribe(
        &self,
        _audio: Vec<f32>,
        _cancel: CancellationToken,
    ) -> BoxFuture<'_, anyhow::Result<Transcription>> {
        *self.asked.lock().unwrap() += 1;
        let broken = *self.broken.lock().unwrap();
        Box::pin(async move {
            anyhow::ensure!(!broken, "`{}` broke", self.name);
            Ok(Transcription { text: self.name.into(), no_speech: None })
        })
    }
}

struct Bench {
    clock: Arc<FakeClock>,
    engines: [Arc<Fake>; 2],
    told: Arc<Mutex<Vec<String>>>,
    chain: Chain,
}

fn bench() -> Bench {
    let clock = FakeClock::shared();
    let engines = [Fake::new("far"), Fake::new("near")];
    let told = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&told);
    let tell: Tell = Arc::new(move |event| {
        let line = match event {
            Event::Notice(notice) => format!("{}: {}", notice.code, notice.text),
            Event::Engines(engines) => format!("{engines:?}"),
            other => panic!("{other:?}"),
        };
        log.lock().unwrap().push(line);
    });
    let list = engines.iter().map(|engine| Arc::clone(engine) as Arc<dyn Stt>).collect();
    let chain = Chain::new(list, Arc::clone(&clock) as Arc<dyn Clock>, tell);
    Bench { clock, engines, told, chain }
}

impl Bench {
    async fn ask(&self) -> Result<String, String> {
        let result = self.chain.transcribe(Vec::new(), CancellationToken::new()).await;
        result.map(|words| words.text).map_err(|error| error.to_string())
    }

    fn told(&self) -> Vec<String> {
        std::mem::take(&mut self.told.lock().unwrap())
    }

    fn asked(&self) -> [u32; 2] {
        [0, 1].map(|index| *self.engines[index].asked.lock().unwrap())
    }
}

fn engines_event(name: &str) -> String {
    format!("{:?}", Engines { stt: Some(name.into()), ..Engines::default() })
}

#[tokio::test]
async fn the_next_one_stands_in_and_the_first_comes_back() {
    let bench = bench();
    assert_eq!(bench.ask().await.unwrap(), "far");
    assert!(bench.told().is_empty());
    bench.engines[0].breaks(true);
    assert_eq!(bench.ask().await.unwrap(), "near");
    let fallback = "stt_fallback: `far` broke; `near` listens instead";
    assert_eq!(bench.told(), [fallback.to_owned(), engines_event("near")]);
    assert_eq!(bench.chain.name(), "near");
    // Within its wait the first one is not even asked, and nothing is told twice.
    let asked = bench.asked();
    assert_eq!(bench.ask().await.unwrap(), "near");
    assert_eq!(bench.asked(), [asked[0], asked[1] + 1]);
    bench.engines[0].breaks(false);
    bench.clock.advance(FIRST_WAIT);
    assert_eq!(bench.ask().await.unwrap(), "far");
    let back = "stt_back: `far` listens again";
    assert_eq!(bench.told(), [back.to_owned(), engines_event("far")]);
}

#[tokio::test]
async fn the_wait_doubles_up_to_five_minutes() {
    let bench = bench();
    bench.engines[0].breaks(true);
    for (round, seconds) in [5, 10, 20, 40, 80, 160, 300, 300].into_iter().enumerate() {
        bench.ask().await.unwrap();
        let asked = bench.asked()[0];
        assert_eq!(asked as usize, round + 1);
        bench.clock.advance(Duration::from_millis(seconds * 1000 - 1));
        bench.ask().await.unwrap();
        assert_eq!(bench.asked()[0], asked, "asked before {seconds} s were over");
        bench.clock.advance(Duration::from_millis(1));
    }
}

#[tokio::test]
async fn when_all_fail_every_reason_is_told_and_all_are_tried_again() {
    let bench = bench();
    bench.engines.iter().for_each(|engine| engine.breaks(true));
    assert_eq!(bench.ask().await.unwrap_err(), "`far` broke; `near` broke");
    bench.engines[1].breaks(false);
    // Both are to be left alone, but silence would help nobody.
    assert_eq!(bench.ask().await.unwrap(), "near");
}

#[tokio::test]
async fn a_cancelled_job_is_nobodys_failure() {
    let bench = bench();
    bench.engines[0].breaks(true);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = bench.chain.transcribe(Vec::new(), cancel).await.unwrap_err();
    assert_eq!(error.to_string(), "cancelled");
    assert_eq!(bench.asked(), [1, 0]);
    bench.engines[0].breaks(false);
    assert_eq!(bench.ask().await.unwrap(), "far");
    assert!(bench.told().is_empty());
}

#[tokio::test]
async fn an_empty_chain_says_so() {
    let chain = Chain::new(Vec::new(), FakeClock::shared(), Arc::new(|_| {}));
    assert_eq!(chain.name(), "none");
    let error = chain.transcribe(Vec::new(), CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no speech recogniser");
}
