//! A page of metrics in Prometheus' text format: a family's lines stand together, below what they mean.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What is put together for one reader.
#[derive(Default)]
pub(crate) struct Page {
    families: BTreeMap<&'static str, String>,
}

impl Page {
    /// A value that goes up and down.
    pub(crate) fn gauge(
        &mut self,
        name: &'static str,
        help: &str,
        labels: &[&str],
        values: &[&str],
        value: f64,
    ) {
        self.head(name, help, "gauge");
        self.line(name, "", labels, values, &value.to_string());
    }

    pub(super) fn counter(
        &mut self,
        name: &'static str,
        help: &str,
        labels: &[&str],
        values: &[&str],
        count: u64,
    ) {
        self.head(name, help, "counter");
        self.line(name, "", labels, values, &count.to_string());
    }

    /// What a family is, said once.
    pub(super) fn head(&mut self, name: &'static str, help: &str, kind: &str) {
        self.families.entry(name).or_insert_with(|| {
            let help = help.replace('\\', "\\\\").replace('\n', "\\n");
            format!("# HELP {name} {help}\n# TYPE {name} {kind}\n")
        });
    }

    pub(super) fn line(
        &mut self,
        name: &'static str,
        suffix: &str,
        labels: &[&str],
        values: &[&str],
        value: &str,
    ) {
        let text = self.families.entry(name).or_default();
        let _ = write!(text, "{name}{suffix}");
        for (index, (label, value)) in labels.iter().zip(values).enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            let _ = write!(text, "{open}{label}=\"{}\"", escaped(value));
        }
        if !labels.is_empty() {
            text.push('}');
        }
        let _ = writeln!(text, " {value}");
    }

    pub(super) fn finish(self) -> String {
        self.families.into_values().collect()
    }
}

/// A label's value may be anything; three characters have a meaning in the format.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
