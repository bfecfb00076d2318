//! One metric with its series: a counter or a histogram.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Page;

/// Series of one family: a cluster has tens of pools. What comes beyond is counted as [`OTHER`].
pub(crate) const MOST: usize = 1000;
/// The label values of everything beyond.
const OTHER: &str = "other";

/// A metric.
pub(crate) struct Family {
    name: &'static str,
    help: &'static str,
    /// Upper bounds of a histogram's buckets; of a counter none.
    bounds: Option<&'static [f64]>,
    labels: &'static [&'static str],
    series: Mutex<BTreeMap<Vec<String>, Series>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Series {
    count: u64,
    sum: f64,
    /// Of each bound how many were at most that, and above the one before.
    within: Vec<u64>,
}

impl Family {
    pub(crate) const fn counter(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Self {
        Self { name, help, bounds: None, labels, series: Mutex::new(BTreeMap::new()) }
    }

    pub(crate) const fn histogram(
        name: &'static str,
        help: &'static str,
        bounds: &'static [f64],
        labels: &'static [&'static str],
    ) -> Self {
        Self { name, help, bounds: Some(bounds), labels, series: Mutex::new(BTreeMap::new()) }
    }

    /// Shown from now on, as 0 until it is counted: of a series that begins with a number, Prometheus sees no increase.
    pub(super) fn begin(&self, labels: &[&str]) {
        self.change(labels, |_| ());
    }

    /// So many more.
    pub(crate) fn add(&self, labels: &[&str], count: usize) {
        if count > 0 {
            self.change(labels, |series| series.count += count as u64);
        }
    }

    /// Something took so many seconds.
    pub(crate) fn observe(&self, labels: &[&str], seconds: f64) {
        let bounds = self.bounds.unwrap_or_default();
        self.change(labels, |series| {
            series.count += 1;
            series.sum += seconds;
            series.within.resize(bounds.len(), 0);
            if let Some(bucket) = bounds.iter().position(|bound| seconds <= *bound) {
                series.within[bucket] += 1;
            }
        });
    }

    fn change(&self, labels: &[&str], change: impl FnOnce(&mut Series)) {
        assert!(
            !cfg!(feature = "testing") || labels.len() == self.labels.len(),
            "{} has other labels",
            self.name
        );
        let mut key: Vec<String> = labels.iter().map(ToString::to_string).collect();
        let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST && !all.contains_key(&key) {
            key = vec![OTHER.to_owned(); labels.len()];
        }
        change(all.entry(key).or_default());
    }

    pub(super) fn show(&self, page: &mut Page) {
        let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Without labels there is one series, and nothing yet is a value of it.
        if self.labels.is_empty() {
            all.entry(Vec::new()).or_default();
        }
        for (values, series) in &all {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            match self.bounds {
                None => page.counter(self.name, self.help, self.labels, &values, series.count),
                Some(bounds) => self.show_histogram(page, bounds, &values, series),
            }
        }
        if all.is_empty() {
            let kind = if self.bounds.is_some() { "histogram" } else { "counter" };
            page.head(self.name, self.help, kind);
        }
    }

    fn show_histogram(&self, page: &mut Page, bounds: &[f64], values: &[&str], series: &Series) {
        page.head(self.name, self.help, "histogram");
        let labels: Vec<&str> = self.labels.iter().copied().chain(["le"]).collect();
        let mut below = 0;
        for (index, bound) in bounds.iter().enumerate() {
            below += series.within.get(index).copied().unwrap_or_default();
            let bound = bound.to_string();
            let values: Vec<&str> = values.iter().copied().chain([bound.as_str()]).collect();
            page.line(self.name, "_bucket", &labels, &values, &below.to_string());
        }
        let all: Vec<&str> = values.iter().copied().chain(["+Inf"]).collect();
        page.line(self.name, "_bucket", &labels, &all, &series.count.to_string());
        page.line(self.name, "_sum", self.labels, values, &series.sum.to_string());
        page.line(self.name, "_count", self.labels, values, &series.count.to_string());
    }
}
