//! How many threads the next step takes.

use std::num::NonZero;

use crate::kernel::load::CoreLoad;

/// Weight of the newest step in the running averages.
const NEWEST: f64 = 0.3;

/// A step on several threads is slow when it takes so many times the average of one thread.
const SLOWER: f64 = 1.2;

/// The same against the best steps on several threads, while one thread was not tried yet.
const SLOWER_THAN_BEST: f64 = 2.5;

/// Slow steps in a row before one thread is used.
const PATIENCE: u32 = 2;

/// Steps on one thread before several are tried again, at first and at most.
const PAUSE: (u32, u32) = (16, 256);

/// The thread policy: as many as there are cores and the settings allow, less what the voice uses
/// ([`CoreLoad`]), and one while other programmes keep the cores busy.
///
/// llama.cpp's threads wait for each other by spinning, at some hundred places in each step. When
/// one of them has to share its core, all wait for it: with one busy core of two, two threads were
/// measured to be up to ten times slower than one. Nobody tells us about other programmes, so the
/// policy looks at how long the steps take.
#[derive(Debug)]
pub struct Threads {
    load: CoreLoad,
    cores: usize,
    cap: usize,
    one: Option<f64>,
    many: Option<f64>,
    slow: u32,
    pause: u32,
    next_pause: u32,
}

impl Threads {
    /// The policy of this machine; `cap` threads at most, 0 for no limit of its own.
    pub fn new(load: CoreLoad, cap: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self::on(load, cores, cap)
    }

    fn on(load: CoreLoad, cores: usize, cap: usize) -> Self {
        let cap = if cap == 0 { cores } else { cap };
        Self { load, cores, cap, one: None, many: None, slow: 0, pause: 0, next_pause: PAUSE.0 }
    }

    /// Threads of the next step.
    pub fn next(&self) -> usize {
        let allowed = self.load.llm_threads(self.cores).min(self.cap);
        if self.pause > 0 { 1 } else { allowed }
    }

    /// A step of one token took so long on so many threads.
    pub fn took(&mut self, threads: usize, ms: f64) {
        let blend = |average: &mut Option<f64>| {
            *average = Some(average.map_or(ms, |average| average + NEWEST * (ms - average)));
        };
        if threads <= 1 {
            blend(&mut self.one);
            self.pause = self.pause.saturating_sub(1);
            return;
        }
        let limit = match (self.one, self.many) {
            (Some(one), _) => one * SLOWER,
            (None, Some(best)) => best * SLOWER_THAN_BEST,
            (None, None) => f64::INFINITY,
        };
        if ms <= limit {
            self.slow = 0;
            self.next_pause = PAUSE.0;
            blend(&mut self.many);
            return;
        }
        self.slow += 1;
        if self.slow >= PATIENCE {
            self.slow = 0;
            self.pause = self.next_pause;
            self.next_pause = (self.next_pause * 2).min(PAUSE.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(threads: &mut Threads, steps: usize, one: f64, many: f64) -> usize {
        (0..steps)
            .filter(|_| {
                let count = threads.next();
                threads.took(count, if count == 1 { one } else { many });
                count == 1
            })
            .count()
    }

    #[test]
    fn the_voice_and_the_settings_come_first() {
        let load = CoreLoad::default();
        let threads = Threads::on(load.clone(), 4, 0);
        assert_eq!(threads.next(), 4);
        let speaking = load.enter();
        assert_eq!(threads.next(), 3);
        drop(speaking);
        assert_eq!(Threads::on(load, 4, 2).next(), 2);
    }

    #[test]
    fn on_a_quiet_machine_all_threads_are_used() {
        let mut threads = Threads::on(CoreLoad::default(), 2, 0);
        assert_eq!(run(&mut threads, 100, 80.0, 40.0), 0);
        // One late step is no busy machine.
        threads.took(2, 500.0);
        assert_eq!(run(&mut threads, 100, 80.0, 40.0), 0);
    }

    #[test]
    fn on_a_busy_machine_one_thread_is_used_and_several_are_tried_ever_less() {
        let mut threads = Threads::on(CoreLoad::default(), 2, 0);
        run(&mut threads, 20, 80.0, 40.0);
        // Another programme takes a core.
        let single = run(&mut threads, 400, 80.0, 400.0);
        assert!(single > 385, "{single} of 400");
        // It ends: after what is left of the pause all threads are used again.
        run(&mut threads, 256, 80.0, 40.0);
        assert_eq!(run(&mut threads, 100, 80.0, 40.0), 0);
    }
}
