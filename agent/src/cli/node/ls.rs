//! `berth node ls`: every node in a line.

use k8s_openapi::api::core::v1::Node;
use policy::table::Table;
use serde_json::{Value, json};

use super::{Has, holdings, keeper, key};
use crate::cli::client::{self, Reach};
use crate::cli::cluster::{Cluster, age};
use crate::cli::output::{self, Listing};
use crate::cli::terminal;
use crate::clock::now;
use crate::controller::known::NodeKnown;

/// List nodes with the addresses that they have of pools
///
/// Nodes that are gone, and of which a pool still has addresses in quarantine, are listed too. An address in parentheses is
/// quarantined.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Listing,
}

const EXAMPLES: &str = "\
Examples:
  berth node ls
  berth node ls -o json | jq '.[] | select(.addresses == []) | .name'";

struct Line<'a> {
    name: String,
    uid: String,
    ready: &'static str,
    keeper: &'static str,
    created: u64,
    has: Vec<Has<'a>>,
}

pub(super) fn run(args: &Args, reach: &Reach) -> anyhow::Result<String> {
    let (pools, nodes) = client::block_on(async {
        let cluster = Cluster::reach(reach).await?;
        Ok((cluster.pools().await?, cluster.list::<Node>().await?))
    })?;
    pools.warn();
    let mut held = holdings(&pools);
    let mut lines: Vec<Line<'_>> = Vec::new();
    for node in &nodes {
        let (name, uid) = key(node);
        let created = node.metadata.creation_timestamp.as_ref();
        lines.push(Line {
            ready: if NodeKnown::of(node).ready { "yes" } else { "no" },
            keeper: keeper(node),
            created: created.map(|time| time.0.as_second().unsigned_abs()).unwrap_or_default(),
            has: held.remove(&(name.clone(), uid.clone())).unwrap_or_default(),
            name,
            uid,
        });
    }
    // What is left is of nodes that are gone.
    for ((name, uid), has) in held {
        lines.push(Line { name, uid, ready: "gone", keeper: "-", created: 0, has });
    }
    lines.sort_by(|one, other| (&one.name, &one.uid).cmp(&(&other.name, &other.uid)));
    match args.output.format() {
        Some(format) => output::document(&lines.iter().map(document).collect(), format),
        None => Ok(table(&lines, args.output.is_wide())),
    }
}

fn table(lines: &[Line<'_>], wide: bool) -> String {
    let mut columns = vec!["NODE", "READY", "KEPT-BY"];
    if wide {
        columns.extend(["AGE", "UID"]);
    }
    columns.push("ADDRESSES");
    let mut table = Table::new(columns).within(terminal::width());
    for line in lines {
        let mut cells = vec![line.name.clone(), line.ready.to_owned(), line.keeper.to_owned()];
        if wide {
            cells.extend([age(line.created, now()), line.uid.clone()]);
        }
        let has = line.has.iter().map(|has| match has.entry.is_held() {
            true => format!("{} of {}", has.ip, has.pool),
            false => format!("({} of {})", has.ip, has.pool),
        });
        cells.push(has.collect::<Vec<_>>().join(", "));
        table.row(cells);
    }
    table.to_string()
}

fn document(line: &Line<'_>) -> Value {
    let addresses: Vec<Value> = line
        .has
        .iter()
        .map(|has| {
            json!({"ip": has.ip, "pool": has.pool, "policy": has.entry.policy.as_str(),
                "capture": has.entry.capture.as_str(), "held": has.entry.is_held()})
        })
        .collect();
    json!({"name": line.name, "uid": line.uid, "ready": line.ready, "keptBy": line.keeper, "addresses": addresses})
}
