//! Measures and prints: what every benchmark of Berth shares.
//!
//! A benchmark is a plain program (`harness = false`) that measures a few operations and prints one
//! table: the median over many samples, the slow end of them, the goal if there is one, and how it
//! compares to a baseline measured in the same run. Nothing fails on a slow machine: goals are printed, not asserted.

use std::time::{Duration, Instant};

/// Samples per measurement: enough for a median and a 95th percentile that stay put.
const SAMPLES: usize = 101;
/// Where so many would take too long, as many as fit in here, and never fewer than a median needs.
const PATIENCE: Duration = Duration::from_secs(3);
const FEWEST_SAMPLES: usize = 7;
/// How long one sample runs at least, so that reading the clock costs nothing beside it.
const SAMPLE: Duration = Duration::from_micros(200);
/// Upper bound of calls per sample, for operations that take no time at all.
const MOST_CALLS: usize = 1 << 20;

/// One line of the table.
#[derive(Debug, Clone)]
pub struct Row {
    name: String,
    /// Nanoseconds per call: median and 95th percentile of the samples.
    median: f64,
    slow: f64,
    goal: Option<f64>,
    ratio: Option<f64>,
}

impl Row {
    /// What it should take at most.
    pub fn goal(mut self, nanoseconds: f64) -> Row {
        self.goal = Some(nanoseconds);
        self
    }

    /// What it is compared to.
    pub fn against(mut self, baseline: &Row) -> Row {
        self.ratio = Some(self.median / baseline.median);
        self
    }
}

/// Runs `f` over and over; it is told the number of the call, to vary its input by.
pub fn measure(name: impl Into<String>, mut f: impl FnMut(usize)) -> Row {
    let mut call = 0;
    let mut sample = |calls: usize| {
        let begin = Instant::now();
        for _ in 0..calls {
            f(call);
            call += 1;
        }
        begin.elapsed()
    };
    let mut calls = 1;
    while sample(calls) < SAMPLE && calls < MOST_CALLS {
        calls *= 2;
    }
    let begin = Instant::now();
    let mut samples: Vec<f64> = Vec::with_capacity(SAMPLES);
    while samples.len() < FEWEST_SAMPLES || (samples.len() < SAMPLES && begin.elapsed() < PATIENCE) {
        samples.push(sample(calls).as_nanos() as f64 / calls as f64);
    }
    samples.sort_by(f64::total_cmp);
    let at = |percent: usize| samples[(samples.len() - 1) * percent / 100];
    Row { name: name.into(), median: at(50), slow: at(95), goal: None, ratio: None }
}

/// Prints the table.
pub fn print(title: &str, rows: &[Row]) {
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).max(title.len());
    println!("{title:width$}  {:>10}  {:>10}  {:>18}  {:>10}", "median", "95 %", "goal", "baseline");
    for row in rows {
        let goal = row.goal.map_or(String::new(), |goal| {
            format!("{} {}", time(goal), if row.median <= goal { "met" } else { "MISSED" })
        });
        let ratio = row.ratio.map_or(String::new(), times);
        println!(
            "{:width$}  {:>10}  {:>10}  {goal:>18}  {ratio:>10}",
            row.name,
            time(row.median),
            time(row.slow)
        );
    }
}

/// Three digits say enough.
fn times(ratio: f64) -> String {
    match ratio {
        r if r < 0.1 => format!("{r:.4} x"),
        r if r < 10.0 => format!("{r:.2} x"),
        r if r < 100.0 => format!("{r:.1} x"),
        r => format!("{r:.0} x"),
    }
}

fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.2} µs", n / 1e3),
        n if n < 1e9 => format!("{:.2} ms", n / 1e6),
        n => format!("{:.2} s", n / 1e9),
    }
}
