//! How many threads the next step takes.

use std::num::NonZero;
use std::time::Duration;

use crate::kernel::load::CoreLoad;

/// Weight of the newest step in the running averages.
const NEWEST: f64 = 0.3;

/// A step on several threads must take less than this part of the time on one thread, or it is not
/// worth the core.
const WORTH: f64 = 0.9;

/// After so many times the time on one thread, a step on several threads is given up.
const HOPELESS: f64 = 1.1;

/// How long one thread is used after several were no better: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What a step decodes. The two kinds use the cores differently, so each has its own averages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Many tokens of a prompt.
    Prompt,
    /// One token of a reply.
    Reply,
}

/// The thread policy: as many as there are cores and the settings allow, less what the voice uses
/// ([`CoreLoad`]), and one while other programmes keep the cores busy.
///
/// llama.cpp's threads wait for each other by spinning, at some hundred places in each step. When
/// one of them has to share its core, all wait for it: on a busy machine of two cores the 0.5B model
/// was measured to write 47 tokens a second on one thread and 1.4 to 3.4 on two. Nobody tells us
/// about other programmes, so several threads are used only while they are seen to be faster: a step
/// that is not soon done is given up and done again on one thread, and then one thread is used for a
/// growing while.
#[derive(Debug)]
pub struct Threads {
    load: CoreLoad,
    cores: usize,
    cap: usize,
    /// Average ms a token on one thread.
    prompt: Option<f64>,
    reply: Option<f64>,
    /// The last step on several threads was worth it. The steps of a reply find that out: they are
    /// short, so a failed try costs little.
    proven: bool,
    until: Duration,
    pause: Duration,
}

impl Threads {
    /// The policy of this machine; `cap` threads at most, 0 for no limit of its own.
    pub fn new(load: CoreLoad, cap: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self::on(load, cores, cap)
    }

    fn on(load: CoreLoad, cores: usize, cap: usize) -> Self {
        let cap = if cap == 0 { cores } else { cap };
        let until = Duration::ZERO;
        let proven = false;
        Self { load, cores, cap, prompt: None, reply: None, proven, until, pause: PAUSE.0 }
    }

    fn average(&mut self, kind: Kind) -> &mut Option<f64> {
        match kind {
            Kind::Prompt => &mut self.prompt,
            Kind::Reply => &mut self.reply,
        }
    }

    /// Threads of the next step, and the time after which it is to be given up. `now` is any clock
    /// that only goes forward.
    pub fn next(&mut self, kind: Kind, tokens: usize, now: Duration) -> (usize, Option<Duration>) {
        let allowed = self.load.llm_threads(self.cores).min(self.cap);
        let one = *self.average(kind);
        match one {
            Some(one)
                if allowed > 1 && now >= self.until && (self.proven || kind == Kind::Reply) =>
            {
                let ms = one * tokens as f64 * HOPELESS;
                (allowed, Some(Duration::from_secs_f64(ms / 1000.0)))
            }
            // One thread is measured first.
            _ => (1, None),
        }
    }

    /// A step was done, or given up (`false`).
    pub fn took(
        &mut self,
        kind: Kind,
        threads: usize,
        tokens: usize,
        done: bool,
        took: Duration,
        now: Duration,
    ) {
        let ms = took.as_secs_f64() * 1000.0 / tokens.max(1) as f64;
        let average = self.average(kind);
        if threads <= 1 {
            if done {
                *average = Some(average.map_or(ms, |average| average + NEWEST * (ms - average)));
            }
            return;
        }
        self.proven = done && average.is_none_or(|one| ms < one * WORTH);
        if self.proven {
            self.pause = PAUSE.0;
        } else {
            self.until = now + self.pause;
            self.pause = (self.pause * 2).min(PAUSE.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Machine {
        threads: Threads,
        now: Duration,
    }

    impl Machine {
        fn new(cores: usize) -> Self {
            Self { threads: Threads::on(CoreLoad::default(), cores, 0), now: Duration::ZERO }
        }

        /// Writes tokens at these ms each on one and on several threads; gives the time that it took
        /// and how many steps were done on several threads.
        fn write(&mut self, tokens: usize, one: u64, many: u64) -> (Duration, usize) {
            let (began, mut on_many) = (self.now, 0);
            for _ in 0..tokens {
                loop {
                    let (threads, limit) = self.threads.next(Kind::Reply, 1, self.now);
                    let needs = Duration::from_millis(if threads == 1 { one } else { many });
                    let done = limit.is_none_or(|limit| needs <= limit);
                    let took = limit.map_or(needs, |limit| limit.min(needs));
                    self.now += took;
                    self.threads.took(Kind::Reply, threads, 1, done, took, self.now);
                    if done {
                        on_many += usize::from(threads > 1);
                        break;
                    }
                }
            }
            (self.now - began, on_many)
        }
    }

    #[test]
    fn the_voice_and_the_settings_come_first() {
        let load = CoreLoad::default();
        let known = |cap| {
            let mut threads = Threads::on(load.clone(), 4, cap);
            threads.took(Kind::Reply, 1, 1, true, Duration::from_millis(40), Duration::ZERO);
            threads.next(Kind::Reply, 1, Duration::ZERO).0
        };
        assert_eq!((known(0), known(2)), (4, 2));
        let _speaking = load.enter();
        assert_eq!((known(0), known(2)), (3, 2));
    }

    #[test]
    fn on_a_quiet_machine_all_threads_are_used() {
        let mut machine = Machine::new(2);
        let (_, on_many) = machine.write(100, 80, 40);
        assert_eq!(on_many, 99, "the first step is to measure one thread");
    }

    #[test]
    fn on_a_busy_machine_several_threads_cost_little_and_come_back() {
        let mut machine = Machine::new(2);
        machine.write(20, 20, 12);
        // Another programme takes a core: 1000 tokens on one thread would take 20 s.
        let (took, on_many) = machine.write(1000, 20, 400);
        assert_eq!(on_many, 0);
        assert!(took < Duration::from_millis(20_300), "{took:?}");
        // It ends: after what is left of the pause all threads are used again.
        machine.write(1000, 20, 12);
        assert_eq!(machine.write(100, 20, 12).1, 100);
    }

    #[test]
    fn a_thread_that_gains_nothing_is_left_to_others() {
        let mut machine = Machine::new(2);
        let (_, on_many) = machine.write(1000, 20, 20);
        assert!(on_many < 10, "{on_many}");
    }

    #[test]
    fn the_kinds_of_step_are_told_apart() {
        let mut threads = Threads::on(CoreLoad::default(), 2, 0);
        let ms = Duration::from_millis;
        threads.took(Kind::Prompt, 1, 32, true, ms(320), ms(0));
        // A prompt is not the place to try.
        assert_eq!(threads.next(Kind::Prompt, 16, ms(0)).0, 1);
        assert_eq!(threads.next(Kind::Reply, 1, ms(0)), (1, None));
        threads.took(Kind::Reply, 1, 1, true, ms(20), ms(0));
        threads.took(Kind::Reply, 2, 1, true, ms(12), ms(0));
        assert_eq!(threads.next(Kind::Prompt, 16, ms(0)), (2, Some(ms(176))));
        threads.took(Kind::Prompt, 2, 16, false, ms(176), ms(0));
        assert_eq!(threads.next(Kind::Prompt, 16, ms(2000)).0, 1);
    }
}
