//! Figures: percentiles, the machine's load, a table for people and a JSON line for programs.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// One measured quantity against its bar.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// What was measured.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// How many times.
    pub n: usize,
    /// Median.
    pub p50: f64,
    /// 95th percentile (nearest rank).
    pub p95: f64,
    /// The bar for the median, where there is one.
    pub bar_p50: Option<f64>,
    /// The bar for the 95th percentile, where there is one.
    pub bar_p95: Option<f64>,
}

impl Row {
    /// A row from samples; `None` when there are none.
    pub fn of(name: &str, unit: &str, samples: &[f64]) -> Option<Self> {
        Some(Self {
            name: name.to_owned(),
            unit: unit.to_owned(),
            n: samples.len(),
            p50: percentile(samples, 50.0)?,
            p95: percentile(samples, 95.0)?,
            bar_p50: None,
            bar_p95: None,
        })
    }

    /// The same with its bars.
    #[must_use]
    pub fn with_bars(mut self, p50: Option<f64>, p95: Option<f64>) -> Self {
        (self.bar_p50, self.bar_p95) = (p50, p95);
        self
    }

    /// Whether every bar is met; `None` without one.
    pub fn meets(&self) -> Option<bool> {
        let bars = [(self.bar_p50, self.p50), (self.bar_p95, self.p95)];
        let set: Vec<_> = bars.iter().filter_map(|(bar, is)| bar.map(|bar| *is <= bar)).collect();
        (!set.is_empty()).then(|| set.iter().all(|met| *met))
    }
}

/// The nearest-rank percentile of unsorted samples; `None` when there are none.
pub fn percentile(samples: &[f64], percent: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// What the process and the machine had used at a moment.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Usage {
    /// CPU seconds of this process so far.
    pub cpu_s: f64,
    /// Resident memory, MB.
    pub rss_mb: f64,
    /// Load average of the last minute.
    pub load_1m: f64,
}

impl Usage {
    /// Reads `/proc`; zeros where there is none.
    pub fn now() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let stat = read("/proc/self/stat");
        // Fields count from behind the command's closing bracket; utime and stime are the 12th and
        // 13th there, in ticks of 10 ms (USER_HZ is 100 on Linux, proc(5)).
        let fields: Vec<&str> =
            stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
        let kilobytes = read("/proc/self/status")
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok())
            .unwrap_or(0.0);
        let load = read("/proc/loadavg");
        let load = load.split_whitespace().next().and_then(|l| l.parse().ok()).unwrap_or(0.0);
        Self { cpu_s: (ticks(11) + ticks(12)) / 100.0, rss_mb: kilobytes / 1024.0, load_1m: load }
    }
}

/// The result of one benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Its name.
    pub bench: String,
    /// What it measured.
    pub rows: Vec<Row>,
    /// CPU seconds that it took.
    pub cpu_s: f64,
    /// Wall seconds that it took.
    pub wall_s: f64,
    /// Resident memory at its end, MB.
    pub rss_mb: f64,
    /// Load average before and after.
    pub load_1m: (f64, f64),
    /// What a reader must know to read the figures.
    pub notes: Vec<String>,
}

impl Report {
    /// The table, one line a row.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{} (cpu {:.1} s of {:.1} s, {:.0} MB, load {:.1} → {:.1})",
            self.bench, self.cpu_s, self.wall_s, self.rss_mb, self.load_1m.0, self.load_1m.1
        );
        let width = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        for row in &self.rows {
            let bar = |bar: Option<f64>| bar.map_or("–".to_owned(), |bar| format!("{bar:.0}"));
            let met = match row.meets() {
                Some(true) => "met",
                Some(false) => "MISSED",
                None => "",
            };
            let _ = writeln!(
                out,
                "  {:width$}  n {:>4}  p50 {:>8.1}  p95 {:>8.1} {:4}  bar {:>5} / {:<5} {met}",
                row.name,
                row.n,
                row.p50,
                row.p95,
                row.unit,
                bar(row.bar_p50),
                bar(row.bar_p95),
            );
        }
        for note in &self.notes {
            let _ = writeln!(out, "  {note}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let samples: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        assert_eq!(percentile(&samples, 50.0), Some(10.0));
        assert_eq!(percentile(&samples, 95.0), Some(19.0));
        assert_eq!(percentile(&[3.0], 95.0), Some(3.0));
        assert_eq!(percentile(&[], 50.0), None);
    }

    #[test]
    fn a_row_meets_its_bars_only_when_both_are_met() {
        let row = Row::of("x", "ms", &[1.0, 2.0, 9.0]).unwrap();
        assert_eq!(row.meets(), None);
        assert_eq!(row.clone().with_bars(Some(2.0), Some(9.0)).meets(), Some(true));
        assert_eq!(row.with_bars(Some(2.0), Some(8.0)).meets(), Some(false));
    }

    #[test]
    fn usage_of_this_process_is_read() {
        assert!(cfg!(not(target_os = "linux")) || Usage::now().rss_mb > 1.0);
    }
}
