//! `berth pool history`: what happened to a pool, or to one of its addresses, as far as anybody remembers.
//!
//! Two memories: Events, which an API keeps for an hour or so, and the ledger, which knows of each address who has it now, since
//! when and by which write. What was before that is nowhere.

use std::net::IpAddr;

use policy::claim::{Entry, EntryState, Quarantine, Time};
use policy::table::Table;
use serde_json::{Value, json};

use crate::cli::client::{self, Reach};
use crate::cli::cluster::{Cluster, time};
use crate::cli::output::{self, Listing};
use crate::cli::terminal;
use crate::events::Heard;
use crate::records::pool::reason_word;

/// Print what happened to a pool, or to one of its addresses
///
/// Put together from the Events about the pool and from what its ledger says of each address: who has it, since when, and by
/// which write. That is its limit: an API keeps Events for a while only (an hour, on most clusters), and the ledger knows
/// nothing of earlier holders.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The pool
    #[arg(value_name = "POOL")]
    pool: String,
    /// Only what is about this address
    #[arg(value_name = "ADDRESS")]
    ip: Option<IpAddr>,
    /// At most so many lines of a table, the latest; 0 for all
    #[arg(long, value_name = "ROWS", default_value_t = 40)]
    limit: usize,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Listing,
}

const EXAMPLES: &str = "\
Examples:
  berth pool history traffic-1
  berth pool history traffic-1 10.10.10.8
  berth pool history traffic-1 -o json";

const LIMIT: &str = "Events are kept for a while only; of each address the ledger knows its present holder, not earlier ones.";

pub(super) fn run(args: &Args, reach: &Reach) -> anyhow::Result<String> {
    let mut lines = client::block_on(async {
        let cluster = Cluster::reach(reach).await?;
        let pools = cluster.pools().await?;
        let seen = pools.get(&args.pool)?;
        let ip = args.ip.map(|ip| ip.to_canonical());
        let entries = seen.ledger.allocations.iter().filter(|(of, _)| ip.is_none_or(|ip| ip == **of));
        let mut lines: Vec<Line> = entries.map(|(ip, entry)| Line::of_entry(*ip, entry)).collect();
        // An address may be spoken of in Events of policies and Nodes too.
        let events = match ip {
            None => cluster.events(Some(("NodeIPPool", &args.pool))).await?,
            Some(_) => cluster.events(None).await?,
        };
        let about = |heard: &Heard| ip.is_none_or(|ip| heard.mentions(ip));
        lines.extend(events.iter().map(Heard::of).filter(about).map(Line::of_event));
        Ok(lines)
    })?;
    lines.sort_by(|one, other| {
        (one.at, &one.what, &one.message).cmp(&(other.at, &other.what, &other.message))
    });
    if let Some(format) = args.output.format() {
        let lines: Vec<Value> = lines.iter().map(Line::document).collect();
        return output::document(&json!({"pool": args.pool, "history": lines, "limit": LIMIT}), format);
    }
    let all = lines.len();
    let limit = if args.limit == 0 { all } else { args.limit };
    let mut columns = vec!["TIME", "WHAT"];
    if args.output.is_wide() {
        columns.extend(["COUNT", "BY", "SEQUENCE"]);
    }
    columns.push("MESSAGE");
    let mut table = Table::new(columns).within(terminal::width());
    for line in lines.iter().skip(all.saturating_sub(limit)) {
        table.row(line.cells(args.output.is_wide()));
    }
    let earlier = match all.saturating_sub(limit) {
        0 => String::new(),
        left => format!("… {left} earlier; see --limit\n"),
    };
    Ok(format!("{table}{earlier}\n{LIMIT}\n"))
}

/// One thing that happened.
struct Line {
    at: Time,
    what: String,
    message: String,
    count: i32,
    by: String,
    sequence: Option<u64>,
}

impl Line {
    fn of_event(heard: Heard) -> Self {
        let Heard { at, what, message, count, by } = heard;
        Self { at, what, message, count, by, sequence: None }
    }

    fn of_entry(ip: IpAddr, entry: &Entry) -> Self {
        let Entry { node, policy, capture, .. } = entry;
        let who = format!("node {node}, policy {policy}, capture {capture}");
        let (what, message) = match &entry.state {
            EntryState::Held => ("Held", format!("{ip}: held by {who} since then")),
            EntryState::Quarantined(Quarantine { until, reason, .. }) => {
                let until = time(*until).map(|until| until.to_string()).unwrap_or_default();
                let reason = reason_word(reason);
                ("Quarantined", format!("{ip}: given then to {who}; quarantined now until {until}: {reason}"))
            }
        };
        Self {
            at: entry.since,
            what: what.to_owned(),
            message,
            count: 1,
            by: "ledger".to_owned(),
            sequence: Some(entry.sequence),
        }
    }

    fn time(&self) -> String {
        time(self.at).map_or_else(|| "-".to_owned(), |time| time.to_string())
    }

    fn cells(&self, wide: bool) -> Vec<String> {
        let mut cells = vec![self.time(), self.what.clone()];
        if wide {
            let sequence = self.sequence.map_or_else(|| "-".to_owned(), |sequence| sequence.to_string());
            cells.extend([self.count.to_string(), self.by.clone(), sequence]);
        }
        cells.push(self.message.clone());
        cells
    }

    fn document(&self) -> Value {
        json!({
            "time": self.time(), "what": self.what, "message": self.message, "count": self.count, "by": self.by,
            "sequence": self.sequence,
        })
    }
}
