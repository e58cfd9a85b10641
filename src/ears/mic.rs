//! The microphone as a source: a thread that keeps it open, and one that does what may hang.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

use super::device::{Signs, System};
use super::tap::Tap;
use super::watchdog::{Act, Candidate, Fault, Seen, Told, Watchdog};
use super::{EchoPath, Source, SourceEvent};
use crate::kernel::clock::Clock;
use crate::kernel::contracts::MicStatus;

/// How often the watchdog looks.
const TICK: Duration = Duration::from_millis(100);

/// Longest wait for a frame before news of the device are looked for.
const SLICE: Duration = Duration::from_millis(50);

/// What the keeper tells the source.
enum News {
    Status(MicStatus),
    /// The sound comes from here now.
    Tap(Box<Tap>),
    /// No sound comes for now.
    Closed,
}

/// A microphone that comes back by itself. Dropping it closes the device.
pub struct Mic {
    news: Receiver<News>,
    tap: Option<Box<Tap>>,
    /// Dropped with the microphone, which ends the keeper.
    _stop: Sender<Never>,
}

/// Nothing is sent, only the end is seen.
enum Never {}

impl Mic {
    /// Opens a microphone: `default`, or the one whose name has `device` in it (the default one
    /// stands in while it is away). Returns at once; what becomes of it is told by the source.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn open(device: &str, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let named = !device.is_empty() && !device.eq_ignore_ascii_case("default");
        let wanted = named.then(|| device.to_owned());
        let (news_in, news) = mpsc::channel();
        let (stop, stopped) = mpsc::channel();
        let keeper = Keeper {
            dog: Watchdog::new(wanted.clone()),
            hands: Hands::start(wanted.clone(), Arc::clone(&clock))?,
            wanted,
            signs: Arc::default(),
            sounded: false,
            clock,
            news: news_in,
        };
        std::thread::Builder::new().name("mic".into()).spawn(move || keeper.run(&stopped))?;
        Ok(Self { news, tap: None, _stop: stop })
    }
}

impl Source for Mic {
    fn next(&mut self, wait: Duration) -> SourceEvent {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let news = match &self.tap {
                Some(_) => self.news.try_recv().map_err(|error| error == TryRecvError::Empty),
                None => {
                    self.news.recv_timeout(left).map_err(|error| error == RecvTimeoutError::Timeout)
                }
            };
            match news {
                Ok(News::Status(status)) => return SourceEvent::Status(status),
                Ok(News::Tap(tap)) => self.tap = Some(tap),
                Ok(News::Closed) => self.tap = None,
                Err(running) => {
                    let frame = self.tap.as_mut().and_then(|tap| tap.frame(left.min(SLICE)));
                    if let Some(frame) = frame {
                        return frame;
                    }
                    if !running {
                        // The keeper ended: nothing will come, and the caller must not spin.
                        std::thread::sleep(left);
                    }
                    if until <= Instant::now() {
                        return SourceEvent::Idle;
                    }
                }
            }
        }
    }

    fn echo_path(&self) -> EchoPath {
        EchoPath::Open
    }
}

/// The thread that asks the watchdog and has its answers done.
struct Keeper {
    dog: Watchdog,
    hands: Hands,
    wanted: Option<String>,
    signs: Arc<Signs>,
    sounded: bool,
    clock: Arc<dyn Clock>,
    news: Sender<News>,
}

impl Keeper {
    fn run(mut self, stopped: &Receiver<Never>) {
        let mut tick_at = Instant::now();
        loop {
            if matches!(stopped.try_recv(), Err(TryRecvError::Disconnected)) {
                return;
            }
            let wait = tick_at.saturating_duration_since(Instant::now());
            let told = match self.hands.done.recv_timeout(wait) {
                Ok(Done::Seen(Ok(seen))) => Told::Seen(seen),
                Ok(Done::Seen(Err(error))) => Told::LookFailed(error),
                Ok(Done::Opened(Ok(opened))) => {
                    self.signs = opened.signs;
                    self.sounded = false;
                    if self.news.send(News::Tap(opened.tap)).is_err() {
                        return;
                    }
                    Told::Opened
                }
                Ok(Done::Opened(Err(error))) => Told::OpenFailed(error),
                // Errors of streams that are closed already mean nothing.
                Ok(Done::Fault(signs, fault, text)) if Arc::ptr_eq(&signs, &self.signs) => {
                    Told::Fault(fault, text)
                }
                Ok(Done::Fault(..)) => continue,
                Err(RecvTimeoutError::Timeout) => {
                    tick_at = Instant::now() + TICK;
                    if !self.sounded && self.signs.sound() {
                        self.sounded = true;
                        Told::Sound
                    } else {
                        Told::Tick { callback_ms: self.signs.callback_ms() }
                    }
                }
                // The worker ended, which it does only by a panic inside the sound system.
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(TICK);
                    if !self.new_hands() {
                        return;
                    }
                    Told::Fault(Fault::Dead, "the sound system failed".into())
                }
            };
            let acts = self.dog.step(self.clock.now_ms(), told);
            for act in acts {
                if !self.act(act) {
                    return;
                }
            }
        }
    }

    /// Does what the watchdog wants; `false` when nobody listens any more.
    fn act(&mut self, act: Act) -> bool {
        match act {
            // When the worker is gone, the next wait for it sees that.
            Act::Look => drop(self.hands.orders.send(Order::Look)),
            Act::Open(device) => drop(self.hands.orders.send(Order::Open(device))),
            Act::Close => {
                self.signs = Arc::default();
                drop(self.hands.orders.send(Order::Close));
                return self.news.send(News::Closed).is_ok();
            }
            Act::Abandon => return self.new_hands(),
            Act::Tell(status) => {
                tracing::info!(
                    state = ?status.state,
                    device = status.device,
                    reason = status.reason,
                    "microphone"
                );
                return self.news.send(News::Status(status)).is_ok();
            }
        }
        true
    }

    fn new_hands(&mut self) -> bool {
        match Hands::start(self.wanted.clone(), Arc::clone(&self.clock)) {
            Ok(hands) => {
                self.hands = hands;
                true
            }
            Err(error) => {
                tracing::error!(%error, "the microphone is given up");
                false
            }
        }
    }
}

enum Order {
    Look,
    Open(Candidate),
    Close,
}

enum Done {
    Seen(Result<Seen, String>),
    Opened(Result<Opened, String>),
    Fault(Arc<Signs>, Fault, String),
}

struct Opened {
    tap: Box<Tap>,
    signs: Arc<Signs>,
}

/// The thread that talks to the sound system, which may hang there.
struct Hands {
    orders: Sender<Order>,
    done: Receiver<Done>,
}

impl Hands {
    fn start(wanted: Option<String>, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let (orders, taken) = mpsc::channel();
        let (told, done) = mpsc::channel();
        std::thread::Builder::new()
            .name("mic-device".into())
            .spawn(move || work(&taken, &told, wanted.as_deref(), &clock))?;
        Ok(Self { orders, done })
    }
}

/// Runs until nobody gives orders or reads answers.
fn work(
    orders: &Receiver<Order>,
    done: &Sender<Done>,
    wanted: Option<&str>,
    clock: &Arc<dyn Clock>,
) {
    let mut system = System::new();
    let mut stream = None;
    while let Ok(order) = orders.recv() {
        let answer = match order {
            Order::Look => Done::Seen(system.look(wanted).map_err(|error| format!("{error:#}"))),
            Order::Open(device) => {
                drop(stream.take());
                let signs = Arc::new(Signs::default());
                let failed = {
                    let (done, signs) = (done.clone(), Arc::clone(&signs));
                    move |fault, text| {
                        // Not an error when the keeper has left.
                        let _ = done.send(Done::Fault(Arc::clone(&signs), fault, text));
                    }
                };
                let opened = system.open(&device, &signs, clock, failed);
                Done::Opened(match opened {
                    Ok((open, tap)) => {
                        stream = Some(open);
                        Ok(Opened { tap: Box::new(tap), signs })
                    }
                    Err(error) => Err(format!("{error:#}")),
                })
            }
            Order::Close => {
                drop(stream.take());
                continue;
            }
        };
        if done.send(answer).is_err() {
            return;
        }
    }
}
