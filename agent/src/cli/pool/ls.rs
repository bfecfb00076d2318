//! `berth pool ls`: every pool in a line.

use policy::claim::Hold;
use policy::pool::{Barred, Range, RangeState};
use policy::table::{Column, Table};
use serde_json::{Value, json};

use crate::cli::client::{self, Reach};
use crate::cli::cluster::{Cluster, PoolSeen, age, time};
use crate::cli::output::{self, Listing};
use crate::cli::terminal;
use crate::clock::now;
use crate::records::pool::ENDLESS;

/// List pools: how they are, how much they have, and how much is left
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Only these; all of them, if none is named
    #[arg(value_name = "POOL")]
    pools: Vec<String>,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Listing,
}

const EXAMPLES: &str = "\
Examples:
  berth pool ls
  berth pool ls -o wide
  berth pool ls -o json | jq '.[] | select(.available == 0) | .name'
  berth pool ls --kubeconfig kubeconfig --context lab";

pub(super) fn run(args: &Args, reach: &Reach) -> anyhow::Result<String> {
    let (pools, services) = client::block_on(async {
        let cluster = Cluster::reach(reach).await?;
        let pools = cluster.pools().await?;
        // Asked for only where no controller has counted yet.
        let counted =
            |seen: &PoolSeen| seen.object.status.as_ref().is_some_and(|said| said.available.is_some());
        let services = match pools.iter().all(|(_, seen)| counted(seen)) {
            true => Vec::new(),
            false => cluster.services().await?,
        };
        Ok((pools, services))
    })?;
    let chosen = pools.chosen(&args.pools)?;
    let line = |(name, seen): (&String, &PoolSeen)| Line::of(name, seen, &pools.barred_for(name, &services));
    let lines: Vec<Line> = chosen.into_iter().map(line).collect();
    match args.output.format() {
        Some(format) => {
            let documents: Vec<Value> = lines.iter().map(Line::document).collect();
            output::document(&Value::Array(documents), format)
        }
        None if lines.is_empty() => {
            output::note("there is no pool");
            Ok(String::new())
        }
        None => Ok(table(&lines, args.output.is_wide())),
    }
}

struct Line {
    name: String,
    status: String,
    reason: String,
    message: String,
    capacity: u128,
    allocated: u128,
    available: u128,
    quarantined: usize,
    ranges: Vec<String>,
    slices: usize,
    sequence: u64,
    quarantine: u64,
    hold: Option<Hold>,
    created: u64,
}

impl Line {
    fn of(name: &str, seen: &PoolSeen, barred: &Barred) -> Self {
        let status = seen.object.status.clone().unwrap_or_default();
        let condition = status.conditions.first();
        let slices = seen.slices.iter().map(|slice| slice.cidr);
        let counts = seen.pool.counts(seen.ledger.allocations.keys().copied(), slices, barred);
        // The controller's word where it has spoken: what it counts is counted in claims.
        let said =
            |count: Option<i64>, own: u128| count.and_then(|count| u128::try_from(count).ok()).unwrap_or(own);
        let created = seen.object.metadata.creation_timestamp.as_ref();
        Self {
            name: name.to_owned(),
            status: condition.map_or_else(|| "-".to_owned(), |condition| condition.status.clone()),
            reason: condition.map_or_else(|| "-".to_owned(), |condition| condition.reason.clone()),
            message: condition.map(|condition| condition.message.clone()).unwrap_or_default(),
            capacity: said(status.capacity, counts.capacity),
            allocated: said(status.allocated, seen.ledger.allocations.len() as u128),
            available: said(status.available, counts.available),
            quarantined: seen.ledger.allocations.values().filter(|entry| !entry.is_held()).count(),
            ranges: seen.pool.ranges().iter().map(|range| shown(range, seen.pool.ranges().len())).collect(),
            slices: seen.slices.len(),
            sequence: seen.ledger.sequence,
            quarantine: seen.pool.quarantine(),
            hold: seen.ledger.hold,
            created: created.map(|time| time.0.as_second().unsigned_abs()).unwrap_or_default(),
        }
    }

    /// Why it is so, in a word or two.
    fn standing(&self) -> String {
        if self.hold.is_some() { format!("{} (on hold)", self.reason) } else { self.reason.clone() }
    }

    fn held_until(&self) -> Option<String> {
        self.hold.map(|hold| match time(hold.until).filter(|_| hold.until != ENDLESS) {
            Some(until) => until.to_string(),
            None => "resumed".to_owned(),
        })
    }

    fn document(&self) -> Value {
        json!({
            "name": self.name, "status": self.status, "reason": self.reason, "message": self.message,
            "capacity": super::explain::number(self.capacity), "allocated": super::explain::number(self.allocated),
            "available": super::explain::number(self.available), "quarantined": self.quarantined,
            "ranges": self.ranges, "slices": self.slices, "sequence": self.sequence,
            "quarantineSeconds": self.quarantine, "holdUntil": self.held_until(),
        })
    }
}

/// `rack-1 10.0.0.1-10.0.0.9`; the one range of a pool needs no name.
fn shown(range: &Range, of: usize) -> String {
    let parts: Vec<String> = range.parts().map(|part| format!("{}-{}", part.start(), part.end())).collect();
    let parts = parts.join("+");
    let drains = if range.state() == RangeState::Draining { " (drains)" } else { "" };
    let name = if of > 1 { format!("{} ", range.name()) } else { String::new() };
    format!("{name}{parts}{drains}")
}

fn table(lines: &[Line], wide: bool) -> String {
    let right = |title: &'static str| Column::from(title).right();
    let mut columns: Vec<Column> = vec![
        "NAME".into(),
        "REASON".into(),
        right("CAPACITY"),
        right("ALLOCATED"),
        right("AVAILABLE"),
        right("QUARANTINED"),
    ];
    if wide {
        columns.extend([right("SLICES"), right("SEQUENCE"), right("QUARANTINE"), right("AGE")]);
        columns.push("HOLD-UNTIL".into());
    }
    columns.push("RANGES".into());
    let mut table = Table::new(columns).within(terminal::width());
    for line in lines {
        let mut cells = vec![
            line.name.clone(),
            line.standing(),
            line.capacity.to_string(),
            line.allocated.to_string(),
            line.available.to_string(),
            line.quarantined.to_string(),
        ];
        if wide {
            cells.extend([
                line.slices.to_string(),
                line.sequence.to_string(),
                format!("{}s", line.quarantine),
                age(line.created, now()),
                line.held_until().unwrap_or_else(|| "-".to_owned()),
            ]);
        }
        cells.push(line.ranges.join(", "));
        table.row(cells);
    }
    table.to_string()
}
