//! `berth pool show`: a pool as a map, and who holds what.

use std::path::PathBuf;

use policy::claim::{Entry, EntryState, Quarantine};
use policy::table::Table;
use serde_json::{Map, Value, json};

use super::explain::Counts;
use super::map;
use super::rows::View;
use super::source::Source;
use crate::cli::client::Reach;
use crate::cli::cluster::time;
use crate::cli::output::{self, Listing};
use crate::cli::terminal;
use crate::clock::now;
use crate::pools::KnownPool;
use crate::records::pool::reason_word;

/// Draw a pool as a map of its addresses, and list who holds them
///
/// A sign for each address: free, held, excluded, quarantined; what they mean stands below. A range that is too large for the
/// terminal is drawn with one sign for many addresses. Colours are for terminals, and not where NO_COLOR is set.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The pool
    #[arg(value_name = "POOL", required_unless_present = "file")]
    pools: Vec<String>,
    /// NodeIPPools, and NodeIPSlices of theirs, in a file instead of the API
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: Option<PathBuf>,
    /// At most so many holders in a table, 0 for all of them
    #[arg(long, value_name = "ROWS", default_value_t = 40)]
    limit: usize,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Listing,
}

const EXAMPLES: &str = "\
Examples:
  berth pool show traffic-1
  berth pool show traffic-1 -o wide
  berth pool show -f pool.yaml
  berth pool show traffic-1 -o json | jq '.allocations[] | select(.state == \"Quarantined\")'";

const EXPECTED: &str = "pool show takes NodeIPPools, and NodeIPSlices of theirs";

pub(super) fn run(args: &Args, reach: &Reach) -> anyhow::Result<String> {
    let source = Source::read(args.file.as_deref(), reach, EXPECTED)?;
    let chosen = source.chosen(&args.pools)?;
    let views = chosen.iter().map(|known| View::new(known, &source.pools, &source.services));
    let condition = |known: &KnownPool| source.conditions.get(known.pool.name());
    let Some(format) = args.output.format() else {
        let shown: Vec<String> = views.map(|view| text(args, &view, condition(view.known))).collect();
        return Ok(shown.join("\n"));
    };
    let mut documents: Vec<Value> = views.map(|view| document(&view, condition(view.known))).collect();
    let answer = match documents.len() {
        1 => documents.remove(0),
        _ => Value::Array(documents),
    };
    output::document(&answer, format)
}

/// Reason and message.
type Condition = (String, String);

fn text(args: &Args, view: &View<'_>, condition: Option<&Condition>) -> String {
    let counts = Counts::of(view);
    let said = condition.map(|(reason, message)| format!(" {reason}: {message}")).unwrap_or_default();
    let mut text = format!("pool {}{said}\n", view.known.pool.name());
    text += &format!(
        "capacity {}, held {}, quarantined {}, available {}\n\n",
        counts.capacity, counts.held, counts.quarantined, counts.available
    );
    text += &map::draw(view, terminal::width(), terminal::colours());
    let (held, aside): (Vec<_>, Vec<_>) = view.known.entries().partition(|(_, entry)| entry.is_held());
    let now = now();
    let wide = args.output.is_wide();
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    if !held.is_empty() {
        let mut columns = vec!["HELD", "NODE", "POLICY", "SINCE"];
        if wide {
            columns.extend(["KIND", "SEQUENCE", "REQUEST"]);
        }
        columns.push("CAPTURE");
        let mut table = Table::new(columns).within(terminal::width());
        for (ip, entry) in held.iter().take(limit) {
            let since = at(entry.since);
            let mut cells =
                vec![ip.to_string(), dash(entry.node.as_str()), dash(entry.policy.as_str()), since];
            if wide {
                let request = entry.request.as_ref().map(|id| id.text().to_owned()).unwrap_or_default();
                cells.extend([kind(entry).to_owned(), entry.sequence.to_string(), dash(&request)]);
            }
            cells.push(dash(entry.capture.as_str()));
            table.row(cells);
        }
        text += &format!("\n{table}");
        text += &more(held.len(), limit);
    }
    if !aside.is_empty() {
        let mut table = Table::new(["QUARANTINED", "NODE", "UNTIL", "REASON"]).within(terminal::width());
        for (ip, entry) in aside.iter().take(limit) {
            let EntryState::Quarantined(Quarantine { until, reason, .. }) = &entry.state else { continue };
            let over = if *until <= now { " (over)" } else { "" };
            let node = dash(entry.node.as_str());
            table.row(vec![ip.to_string(), node, at(*until), format!("{}{over}", reason_word(reason))]);
        }
        text += &format!("\n{table}");
        text += &more(aside.len(), limit);
    }
    text
}

fn more(all: usize, limit: usize) -> String {
    match all.saturating_sub(limit) {
        0 => String::new(),
        left => format!("… {left} more; see --limit\n"),
    }
}

fn at(seconds: u64) -> String {
    time(seconds).map_or_else(|| "-".to_owned(), |time| time.to_string())
}

fn dash(text: &str) -> String {
    if text.is_empty() { "-" } else { text }.to_owned()
}

fn kind(entry: &Entry) -> &'static str {
    match entry.kind {
        policy::claim::EntryKind::Dynamic => "dynamic",
        policy::claim::EntryKind::Static => "static",
        policy::claim::EntryKind::Reserved => "reserved",
    }
}

fn document(view: &View<'_>, condition: Option<&Condition>) -> Value {
    let known = view.known;
    let counts = Counts::of(view);
    let ranges: Vec<Value> = known
        .pool
        .ranges()
        .iter()
        .flat_map(|range| range.parts().map(move |part| (range, part)))
        .map(|(range, part)| {
            json!({"name": range.name(), "cidr": part.cidr().to_string(), "first": part.start(), "last": part.end(),
                "gives": range.gives()})
        })
        .collect();
    let mut fields = Map::new();
    fields.insert("pool".into(), json!(known.pool.name()));
    if let Some((reason, message)) = condition {
        fields.insert("reason".into(), json!(reason));
        fields.insert("message".into(), json!(message));
    }
    for (key, count) in counts.columns() {
        fields.insert(key.to_lowercase(), super::explain::number(count));
    }
    fields.insert("ranges".into(), Value::Array(ranges));
    let entries = known.entries().map(|(ip, entry)| {
        let mut fields = entry_document(entry);
        fields.insert("ip".into(), json!(ip));
        Value::Object(fields)
    });
    fields.insert("allocations".into(), entries.collect());
    Value::Object(fields)
}

/// An entry of a ledger, for programs.
pub(super) fn entry_document(entry: &Entry) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("ip".into(), Value::Null);
    let mut text = |key: &str, value: &str| {
        if !value.is_empty() {
            fields.insert(key.to_owned(), json!(value));
        }
    };
    text("node", entry.node.as_str());
    text("policy", entry.policy.as_str());
    text("capture", entry.capture.as_str());
    text("kind", kind(entry));
    text("since", &time(entry.since).map(|time| time.to_string()).unwrap_or_default());
    match &entry.state {
        EntryState::Held => text("state", "Held"),
        EntryState::Quarantined(Quarantine { until, reason, .. }) => {
            text("state", "Quarantined");
            text("reason", reason_word(reason));
            text("until", &time(*until).map(|time| time.to_string()).unwrap_or_default());
        }
    }
    fields.insert("sequence".into(), json!(entry.sequence));
    fields
}
