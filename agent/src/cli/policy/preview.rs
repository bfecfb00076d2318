//! `berth policy preview`: what a policy would get of its pools, before it is applied.
//!
//! Decided by `policy::claim::preview`, over copies of the ledgers; nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context;
use crds::{Kind, NodeIPPool, NodeNetworkConfigurationPolicy, NodeNetworkState};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::ResourceExt;
use policy::claim::{Ask, Foreseen, NodeUid, PoolName, Reason, Stage, Wish, preview};
use policy::pool::{Barred, NodeView, Pool, Want};
use policy::table::{Column, Table};
use policy::template::{PolicyDoc, literals};
use serde_json::{Value, json};

use crate::cli::client::{self, Reach};
use crate::cli::cluster::{Cluster, PoolsSeen};
use crate::cli::input::{self, Document, FileError};
use crate::cli::output::{self, Listing};
use crate::cli::{manifest, terminal};
use crate::controller::known::NodeKnown;
use crate::controller::policies::selects;
use crate::pools;

/// Print which node would get which address by a policy, and why
///
/// Asks the API for Nodes, pools and who holds what, and plays the policy through with the code that serves claims: what a
/// node holds it keeps, a reservation comes before the hash, all captures of a policy on a node or none. Nothing is written.
///
/// Nodes are asked in the order of their names. In a cluster they ask when they please: where two of them hash to the same
/// place, the first has it. Pools may stand in the file too, if the API doesn't have them yet.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A NodeNetworkConfigurationPolicy; pools that are yet to be created may stand in the same file
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: PathBuf,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Listing,
}

const EXAMPLES: &str = "\
Examples:
  berth policy preview -f policy.yaml
  berth policy preview -f policy.yaml -o json | jq '.nodes[] | select(.lacks)'
  cat pool.yaml policy.yaml | berth policy preview -f -";

const EXPECTED: &str =
    "policy preview takes a NodeNetworkConfigurationPolicy, and pools that are yet to be created";

/// A file's policy, and the pools beside it.
struct Source {
    policy: NodeNetworkConfigurationPolicy,
    doc: PolicyDoc,
    pools: Vec<NodeIPPool>,
}

pub(super) fn run(args: &Args, reach: &Reach) -> anyhow::Result<String> {
    let source = read(&args.file)?;
    let (mut pools, services, mut nodes, states) = client::block_on(async {
        let cluster = Cluster::reach(reach).await?;
        let pools = cluster.pools().await?;
        let services = cluster.services().await?;
        let nodes = cluster.list::<Node>().await?;
        Ok((pools, services, nodes, cluster.list::<NodeNetworkState>().await?))
    })?;
    pools.warn();
    let api: BTreeSet<String> = pools.names().into_iter().collect();
    for pool in &source.pools {
        match api.contains(&pool.name_any()) {
            true => output::warn(&pool.name_any(), "the API has this pool, and that is what counts"),
            false => pools.add_new(pool.clone())?,
        }
    }
    let all = nodes.len();
    nodes.retain(|node| selects(&source.policy, node.labels()));
    nodes.sort_by_key(ResourceExt::name_any);
    let reporting: BTreeSet<String> = states.iter().map(ResourceExt::name_any).collect();
    let answer = Answer::of(&source, &pools, &services, &nodes, all, &reporting)?;
    match args.output.format() {
        Some(format) => output::document(&answer.document(), format),
        None => Ok(answer.text(args.output.is_wide())),
    }
}

fn read(path: &Path) -> anyhow::Result<Source> {
    let file = input::read(path)?;
    let (mut policies, mut new) = (Vec::new(), Vec::new());
    for document in file.documents {
        match document {
            Document::Manifest(Kind::NodeNetworkConfigurationPolicy, manifest) => policies.push(manifest),
            Document::Manifest(Kind::NodeIPPool, manifest) => {
                let refused = || manifest::refused(&file.name, &manifest);
                pools::check(Kind::NodeIPPool, &manifest).with_context(refused)?;
                new.push(serde_json::from_value(manifest.clone()).with_context(refused)?);
            }
            other => return Err(other.unexpected(&file.name, EXPECTED).into()),
        }
    }
    if policies.len() > 1 {
        return Err(FileError::Several { file: file.name, found: policies.len(), what: "policies" }.into());
    }
    let Some(policy) = policies.pop() else {
        let found = "it has pools only".to_owned();
        return Err(FileError::NoneOfThese { file: file.name, found, expected: EXPECTED }.into());
    };
    let policy = manifest::checked(&file.name, policy)?;
    let failed = || format!("{}: can't be rendered", file.name);
    let doc = PolicyDoc::from_value(&policy).with_context(failed)?;
    Ok(Source { policy: serde_json::from_value(policy).with_context(failed)?, doc, pools: new })
}

/// A pool before and after.
struct Room {
    pool: String,
    before: u128,
    after: u128,
}

struct Answer {
    policy: String,
    nodes: usize,
    matching: usize,
    unready: Vec<String>,
    /// Without an agent that reports.
    silent: Vec<String>,
    rooms: Vec<Room>,
    foreseen: Vec<Foreseen>,
}

impl Answer {
    fn of(
        source: &Source,
        pools: &PoolsSeen,
        services: &[ServiceCIDR],
        nodes: &[Node],
        all: usize,
        reporting: &BTreeSet<String>,
    ) -> anyhow::Result<Self> {
        let known: Vec<&Pool> = pools.iter().map(|(_, seen)| &seen.pool).collect();
        let mut wishes: Vec<Wish> = literals(&source.doc.desired_state, &known)
            .into_iter()
            .map(|one| Wish {
                pool: one.pool.as_str().into(),
                capture: String::new(),
                want: Want::Exactly(one.ip),
            })
            .collect();
        for (capture, pool) in source.doc.pools().context("the policy's captures")? {
            wishes.push(Wish { pool: pool.as_str().into(), capture, want: Want::Any });
        }
        let asked: BTreeSet<&PoolName> = wishes.iter().map(|wish| &wish.pool).collect();
        let barred: BTreeMap<&String, Barred> =
            pools.iter().map(|(name, _)| (name, pools.barred_for(name, services))).collect();
        let mut stages: BTreeMap<PoolName, Stage<'_>> = BTreeMap::new();
        for (name, seen) in pools.iter().filter(|(name, _)| asked.iter().any(|one| one.as_str() == *name)) {
            let slices = seen.slices.iter().map(|slice| (slice.cidr, slice.node_uid.clone())).collect();
            let stage = Stage::new(&seen.pool, &barred[name], &seen.ledger, slices);
            stages.insert(name.as_str().into(), stage);
        }
        let before: Vec<u128> = stages.values().map(Stage::available).collect();
        let known: Vec<(String, NodeKnown)> =
            nodes.iter().map(|node| (node.name_any(), NodeKnown::of(node))).collect();
        let policy = source.policy.name_any();
        let asks: Vec<Ask<'_>> = known.iter().map(|(name, known)| ask(name, known, &policy)).collect();
        let foreseen = preview(&mut stages, &asks, &wishes);
        let rooms = stages.iter().zip(before).map(|((pool, stage), before)| Room {
            pool: pool.to_string(),
            before,
            after: stage.available(),
        });
        let names = |which: &dyn Fn(&(String, NodeKnown)) -> bool| {
            known.iter().filter(|one| which(one)).map(|(name, _)| name.clone()).collect()
        };
        Ok(Self {
            nodes: all,
            matching: nodes.len(),
            unready: names(&|(_, known)| !known.ready),
            silent: names(&|(name, _)| !reporting.contains(name)),
            rooms: rooms.collect(),
            foreseen,
            policy,
        })
    }

    fn text(&self, wide: bool) -> String {
        let mut text = format!("policy {} matches {} of {} nodes\n", self.policy, self.matching, self.nodes);
        if !self.unready.is_empty() {
            text += &format!("not Ready: {}\n", some(&self.unready));
        }
        if !self.silent.is_empty() {
            text += &format!("without an agent that reports: {}\n", some(&self.silent));
        }
        if self.rooms.is_empty() && self.foreseen.is_empty() {
            return text + "it asks no pool for addresses\n";
        }
        let right = |title: &'static str| Column::from(title).right();
        let columns = ["POOL".into(), right("FREE"), right("TAKEN"), right("LEFT"), "".into()];
        let mut table = Table::new(columns).within(terminal::width());
        for Room { pool, before, after } in &self.rooms {
            let out = if self.lacking(pool).is_empty() { "" } else { "runs out" };
            let taken = before.saturating_sub(*after);
            let counts = [*before, taken, *after].map(|count| count.to_string());
            let [before, taken, after] = counts;
            table.row(vec![pool.clone(), before, taken, after, out.to_owned()]);
        }
        text += &format!("\n{table}");
        let mut columns = vec!["NODE", "POOL", "ADDRESS"];
        if wide {
            columns.extend(["RANGE", "CAPTURE"]);
        }
        columns.push("WHY");
        let mut table = Table::new(columns).within(terminal::width());
        for one in &self.foreseen {
            table.row(cells(one, wide));
        }
        text += &format!("\n{table}");
        for Room { pool, .. } in &self.rooms {
            let lacking = self.lacking(pool);
            if !lacking.is_empty() {
                text += &format!("\npool {pool} would run out: no address for {}\n", some(&lacking));
            }
        }
        text
    }

    /// The nodes for which a pool runs out.
    fn lacking(&self, pool: &str) -> Vec<String> {
        let out = |one: &&Foreseen| {
            one.wish.pool.as_str() == pool
                && one.outcome.as_ref().is_err_and(policy::claim::Lacks::is_exhausted)
        };
        let names: BTreeSet<String> = self.foreseen.iter().filter(out).map(|one| one.node.clone()).collect();
        names.into_iter().collect()
    }

    fn document(&self) -> Value {
        let rooms = self.rooms.iter().map(|Room { pool, before, after }| {
            json!({"pool": pool, "free": before.to_string(), "left": after.to_string(), "lacking": self.lacking(pool)})
        });
        json!({
            "policy": self.policy, "nodesMatching": self.matching, "nodesTotal": self.nodes, "notReady": self.unready,
            "withoutAgent": self.silent, "pools": rooms.collect::<Vec<_>>(),
            "nodes": self.foreseen.iter().map(document).collect::<Vec<_>>(),
        })
    }
}

fn ask<'a>(name: &'a str, known: &'a NodeKnown, policy: &'a str) -> Ask<'a> {
    let uid: &NodeUid = &known.uid;
    Ask { node: NodeView { name, labels: &known.labels }, uid, ready: known.ready, policy }
}

fn cells(one: &Foreseen, wide: bool) -> Vec<String> {
    let (ips, range, why) = match &one.outcome {
        Ok(gets) => {
            let ips: Vec<String> = gets.ips.iter().map(ToString::to_string).collect();
            (ips.join(", "), gets.range.clone(), gets.reason.to_string())
        }
        Err(lacks) => ("none".to_owned(), "-".to_owned(), lacks.to_string()),
    };
    let mut cells = vec![one.node.clone(), one.wish.pool.to_string(), ips];
    if wide {
        let capture = if one.wish.capture.is_empty() { "-" } else { &one.wish.capture };
        cells.extend([range, capture.to_owned()]);
    }
    cells.push(why);
    cells
}

/// A word for programs.
fn word(reason: &Reason) -> &'static str {
    match reason {
        Reason::Holds => "Holds",
        Reason::Returns => "Returns",
        Reason::Reserved => "Reserved",
        Reason::Named => "Named",
        Reason::Chosen { .. } => "Chosen",
        Reason::Slice { .. } => "Slice",
    }
}

fn document(one: &Foreseen) -> Value {
    let (pool, capture) = (one.wish.pool.as_str(), one.wish.capture.as_str());
    match &one.outcome {
        Ok(gets) => json!({
            "node": one.node, "pool": pool, "capture": capture, "ips": gets.ips, "range": gets.range,
            "reason": word(&gets.reason), "why": gets.reason.to_string(),
        }),
        Err(lacks) => {
            json!({"node": one.node, "pool": pool, "capture": capture, "ips": [], "lacks": lacks.to_string()})
        }
    }
}

/// So many names are listed.
const NAMED: usize = 12;

fn some(names: &[String]) -> String {
    match names.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..NAMED].join(", ")),
    }
}
