//! An explained pool as a table for people and as a document for programs.

use std::net::IpAddr;

use policy::pool::Range;
use policy::table::Table;
use serde_json::{Map, Value, json};

use super::Explained;
use crate::cli::cluster::time;
use crate::cli::pool::rows::{Row, View};
use crate::cli::terminal;
use crate::ledger::{Holding, Quarantined};
use crate::pools::KnownPool;

/// Counted in claims: a dual-stack range gives two addresses to one.
pub(in crate::cli::pool) struct Counts {
    /// `status.capacity`.
    pub(in crate::cli::pool) capacity: u128,
    /// By somebody who may use them.
    pub(in crate::cli::pool) held: u128,
    /// With `held`, `status.allocated`.
    pub(in crate::cli::pool) quarantined: u128,
    /// `status.available`: of a sliced pool what no slice has.
    pub(in crate::cli::pool) available: u128,
}

impl Counts {
    pub(in crate::cli::pool) fn of(view: &View<'_>) -> Self {
        let known = view.known;
        let slices = known.slices.iter().map(|slice| slice.cidr);
        let counts = known.pool.counts(known.held.keys().copied(), slices, &view.barred);
        let all = claims(known, |_| true);
        let held = claims(known, |holding| holding.quarantined.is_none());
        Self {
            capacity: counts.capacity,
            held,
            quarantined: all.saturating_sub(held),
            available: counts.available,
        }
    }

    pub(in crate::cli::pool) fn columns(&self) -> [(&'static str, u128); 4] {
        [
            ("CAPACITY", self.capacity),
            ("HELD", self.held),
            ("QUARANTINED", self.quarantined),
            ("AVAILABLE", self.available),
        ]
    }
}

/// How many claims have such an address in a range.
fn claims(known: &KnownPool, counts: impl Fn(&Holding) -> bool) -> u128 {
    let in_range = |range: &Range, v4: bool| {
        let of = |ip: &IpAddr| {
            ip.is_ipv4() == v4 && known.pool.range_of(*ip).is_some_and(|other| other.name() == range.name())
        };
        let entries = known.held.iter();
        entries.filter(|(ip, holding)| of(ip) && counts(holding)).count() as u128
    };
    let ranges = known.pool.ranges().iter();
    ranges.map(|range| in_range(range, true).max(in_range(range, false))).sum()
}

/// A table of one pool; `among` others, each row says whose it is. A `wide` one also says since when, and by which write.
pub(super) fn table(explained: &Explained<'_>, among: bool, wide: bool) -> String {
    let known = explained.view.known;
    let name = known.pool.name();
    let among = among && !explained.whole;
    let mut text = String::new();
    if explained.whole {
        let counts = Counts::of(&explained.view);
        // Quarantine is rare: it has a column only where there is any.
        let shown = |(title, count): &(&str, u128)| *title != "QUARANTINED" || *count > 0;
        let (titles, cells): (Vec<&'static str>, Vec<String>) = counts
            .columns()
            .into_iter()
            .filter(shown)
            .map(|(title, count)| (title, count.to_string()))
            .unzip();
        let mut head = Table::new([&["POOL"], titles.as_slice()].concat());
        head.row([&[name.to_owned()], cells.as_slice()].concat());
        text = format!("{head}\n");
    }
    let several = known.pool.ranges().len() > 1;
    let mut header = vec!["OFFSET", "ADDRESS", "STATUS", "BAND", "NODE", "DETAIL"];
    if wide {
        header.splice(5..5, ["SINCE", "SEQUENCE"]);
    }
    if several {
        header.insert(0, "RANGE");
    }
    if among {
        header.insert(0, "POOL");
    }
    let mut body = Table::new(header).within(terminal::width());
    for row in &explained.rows {
        let mut cells = vec![
            row.offsets.map_or_else(|| "-".to_owned(), |(first, last)| span(first, last, first == last)),
            span(row.first, row.last, row.first == row.last),
            row.standing.status.as_str().to_owned(),
            row.standing.band.unwrap_or("-").to_owned(),
            row.standing.node().unwrap_or("-").to_owned(),
            detail(row),
        ];
        if wide {
            let entry = known.entry(row.first);
            let since = entry.and_then(|entry| time(entry.since)).map(|since| since.to_string());
            let sequence = entry.map(|entry| entry.sequence.to_string());
            let or_none = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
            cells.splice(5..5, [or_none(since), or_none(sequence)]);
        }
        if several {
            cells.insert(0, row.range.clone());
        }
        if among {
            cells.insert(0, name.to_owned());
        }
        body.row(cells);
    }
    text += &body.to_string();
    if let Some((left, from)) = explained.more {
        text += &format!(
            "… {left} more addresses, from {from} on; ask for one with --offset or --ip, or for more rows with --limit\n"
        );
    }
    text
}

fn span<T: std::fmt::Display>(first: T, last: T, one: bool) -> String {
    if one { first.to_string() } else { format!("{first} - {last}") }
}

fn detail(row: &Row) -> String {
    let standing = &row.standing;
    let mut parts = Vec::new();
    if let Some(holding) = &standing.holding {
        match &holding.by {
            None => parts.push("holder unknown".to_owned()),
            Some(by) => {
                let named = [("policy", &by.policy), ("capture", &by.capture)];
                let named = named.into_iter().filter(|(_, name)| !name.is_empty());
                let named: Vec<String> = named.map(|(word, name)| format!("{word} {name}")).collect();
                parts.extend(Some(named.join(", ")).filter(|named| !named.is_empty()));
            }
        }
        if let Some(Quarantined { reason, until }) = &holding.quarantined {
            parts.extend(Some(reason).filter(|reason| !reason.is_empty()).cloned());
            parts.extend(until.as_ref().map(|until| format!("until {until}")));
        }
    }
    parts.extend(standing.why.clone());
    match (&standing.slice, row.slices) {
        (Some((cidr, node)), _) => parts.push(format!("slice {cidr} of {node}")),
        (None, Some((first, last))) if first == last => parts.push(format!("slice {first}")),
        (None, Some((first, last))) => parts.push(format!("slices {first} to {last}")),
        (None, None) => {}
    }
    if standing.chosen_last {
        parts.push("chosen last (static band)".to_owned());
    }
    if standing.draining {
        parts.push(format!("range {} drains", row.range));
    }
    parts.join("; ")
}

pub(super) fn document(explained: &Explained<'_>) -> Value {
    let mut fields = Map::new();
    fields.insert("pool".into(), json!(explained.view.known.pool.name()));
    if explained.whole {
        for (key, count) in Counts::of(&explained.view).columns() {
            fields.insert(key.to_lowercase(), number(count));
        }
    }
    fields.insert("rows".into(), explained.rows.iter().map(row).collect());
    if let Some((left, from)) = explained.more {
        fields.insert("more".into(), json!({"addresses": number(left), "from": from}));
    }
    Value::Object(fields)
}

fn row(row: &Row) -> Value {
    let standing = &row.standing;
    let mut fields = Map::new();
    fields.insert("range".into(), json!(row.range));
    if let Some((first, last)) = row.offsets {
        fields.insert("offset".into(), number(first));
        if first != last {
            fields.insert("lastOffset".into(), number(last));
        }
    }
    fields.insert("address".into(), json!(row.first));
    if row.first != row.last {
        fields.insert("lastAddress".into(), json!(row.last));
    }
    fields.insert("status".into(), json!(standing.status.as_str()));
    let mut text = |key: &str, value: Option<&str>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            fields.insert(key.to_owned(), json!(value));
        }
    };
    text("band", standing.band);
    text("node", standing.node());
    if let Some(holding) = &standing.holding {
        let by = holding.by.as_ref();
        text("policy", by.map(|by| by.policy.as_str()));
        text("capture", by.map(|by| by.capture.as_str()));
        let quarantined = holding.quarantined.as_ref();
        text("reason", quarantined.map(|quarantined| quarantined.reason.as_str()));
        text("until", quarantined.and_then(|quarantined| quarantined.until.as_deref()));
    }
    text("why", standing.why.as_deref());
    match (&standing.slice, row.slices) {
        (Some((cidr, node)), _) => {
            fields.insert("slice".into(), json!({"cidr": cidr.to_string(), "node": node}));
        }
        (None, Some((first, last))) if first == last => {
            fields.insert("slice".into(), json!({"cidr": first.to_string()}));
        }
        (None, Some((first, last))) => {
            fields.insert("slices".into(), json!({"first": first.to_string(), "last": last.to_string()}));
        }
        (None, None) => {}
    }
    if standing.chosen_last {
        fields.insert("chosenLast".into(), json!(true));
    }
    if standing.draining {
        fields.insert("draining".into(), json!(true));
    }
    Value::Object(fields)
}

/// A number where every JSON reader keeps it exact, else text.
pub(in crate::cli::pool) fn number(n: u128) -> Value {
    match u64::try_from(n) {
        Ok(small) if small < 1 << 53 => json!(small),
        _ => json!(n.to_string()),
    }
}
