//! How far downloads are: bars in a terminal, lines elsewhere.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indicatif::{HumanBytes, MultiProgress, ProgressBar, ProgressStyle};

use crate::models::Progress;

/// Bars where stderr is a terminal, else lines.
pub(super) fn bars() -> Arc<dyn Progress> {
    if std::io::stderr().is_terminal() {
        Arc::new(Bars::default())
    } else {
        Arc::new(Lines::new(std::io::stderr()))
    }
}

#[derive(Default)]
struct Bars {
    all: MultiProgress,
    running: Mutex<HashMap<String, ProgressBar>>,
}

impl Bars {
    fn running(&self) -> MutexGuard<'_, HashMap<String, ProgressBar>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for Bars {
    fn begin(&self, name: &str, bytes: u64) {
        let style = ProgressStyle::with_template(
            "{msg:50!} {bar:24} {bytes:>10} of {total_bytes:10} {bytes_per_sec:>12} {eta:>4}",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = self.all.add(ProgressBar::new(bytes).with_style(style));
        bar.set_message(name.to_owned());
        self.running().insert(name.to_owned(), bar);
    }

    fn at(&self, name: &str, bytes: u64) {
        if let Some(bar) = self.running().get(name) {
            bar.set_position(bytes);
        }
    }

    fn end(&self, name: &str, fetched: bool) {
        if let Some(bar) = self.running().remove(name) {
            if fetched {
                bar.finish();
            } else {
                bar.abandon();
            }
        }
    }

    fn say(&self, line: &str) {
        // A line that can't be shown is no reason to stop.
        let _ = self.all.println(line);
    }
}

/// A line at the start, at each tenth and at the end of every file.
struct Lines<W> {
    output: Mutex<W>,
    running: Mutex<HashMap<String, (u64, u64)>>,
}

impl<W: Write> Lines<W> {
    fn new(output: W) -> Self {
        Self { output: Mutex::new(output), running: Mutex::default() }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, (u64, u64)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, text: &str) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(output, "{text}");
    }
}

impl<W: Write + Send> Progress for Lines<W> {
    fn begin(&self, name: &str, bytes: u64) {
        self.running().insert(name.to_owned(), (bytes, 0));
        self.line(&format!("fetching {name}, {}", HumanBytes(bytes)));
    }

    fn at(&self, name: &str, bytes: u64) {
        let tenths = {
            let mut running = self.running();
            let Some((total, shown)) = running.get_mut(name) else { return };
            let tenths = (bytes.saturating_mul(10) / (*total).max(1)).min(9);
            if tenths <= *shown {
                return;
            }
            *shown = tenths;
            tenths
        };
        self.line(&format!("  {name}: {tenths}0 %"));
    }

    fn end(&self, name: &str, fetched: bool) {
        self.running().remove(name);
        self.line(&format!("  {name}: {}", if fetched { "done" } else { "not fetched" }));
    }

    fn say(&self, line: &str) {
        self.line(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_each_tenth_once() {
        let lines = Lines::new(Vec::new());
        lines.begin("m/f", 1000);
        for bytes in [50, 150, 160, 450, 1200] {
            lines.at("m/f", bytes);
        }
        lines.end("m/f", true);
        let text = String::from_utf8(lines.output.into_inner().unwrap()).unwrap();
        assert_eq!(
            text,
            "fetching m/f, 1000 B\n  m/f: 10 %\n  m/f: 40 %\n  m/f: 90 %\n  m/f: done\n"
        );
    }
}
