//! `berth pool explain`: what each offset and address of a pool is, and who holds it (R42).

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context;
use crds::Kind;
use policy::pool::{PoolView, Range};
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::rows::{self, Row};
use crate::cli::UsageError;
use crate::cli::input::{self, Document};
use crate::cli::output::{self, Shown};
use crate::cli::table::Table;
use crate::pools::{KnownPool, Pools};

/// Print what each offset and address of a pool is, and who holds it
///
/// Offsets count from the start of a range, excluded addresses included. A range of more than 32 addresses shows
/// neighbours that stand alike as one row. What is given to whom comes from the pool's status.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// NodeIPPools, and NodeIPSlices of theirs
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: PathBuf,
    /// Only the address at this offset
    #[arg(long, value_name = "N", conflicts_with = "ip")]
    offset: Option<u128>,
    /// Only this address
    #[arg(long, value_name = "ADDRESS")]
    ip: Option<IpAddr>,
    /// Only this range
    #[arg(long, value_name = "NAME")]
    range: Option<String>,
    /// At most so many rows of a pool, 0 for all of them; default: 40 in a table, else all
    #[arg(long, value_name = "ROWS")]
    limit: Option<usize>,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Shown,
}

const EXAMPLES: &str = "\
Examples:
  berth pool explain -f pool.yaml
  berth pool explain -f pool.yaml --offset 7
  berth pool explain -f pool.yaml --ip 10.10.10.8
  kubectl get nodeippool traffic-1 -o yaml | berth pool explain -f - -o json";

const EXPECTED: &str = "pool explain takes NodeIPPools, and NodeIPSlices of theirs";
/// What a person can take in without scrolling far.
const ROWS: usize = 40;

/// What was asked about isn't there.
#[derive(Debug, Error)]
enum NotThere {
    #[error("{ip} is not in pool {pools}\n{}", .ranges.join("\n"))]
    Address {
        ip: IpAddr,
        pools: String,
        ranges: Vec<String>,
    },
    #[error("pool {pool} has no offset {offset}: the last of range {range} is {last}, {ip}")]
    Offset {
        pool: String,
        offset: u128,
        range: String,
        last: u128,
        ip: IpAddr,
    },
}

/// What is printed of one pool.
struct Explained<'a> {
    known: &'a KnownPool,
    rows: Vec<Row>,
    /// Addresses that the rows left out, and where they begin.
    more: Option<(u128, IpAddr)>,
    whole: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    let pools = pools(args)?;
    let mut explained = Vec::new();
    for known in pools.iter() {
        explained.push(explain(args, known)?);
    }
    if let Some(ip) = args.ip {
        if explained.iter().all(|one| one.rows.is_empty()) {
            return Err(nowhere(ip, &pools).into());
        }
        explained.retain(|one| !one.rows.is_empty());
    }
    let Some(format) = args.output.format() else {
        let tables: Vec<String> = explained.iter().map(|one| table(one, &pools)).collect();
        return Ok(tables.join("\n"));
    };
    let mut documents: Vec<Value> = explained.iter().map(|one| document(one, &pools)).collect();
    let answer = match documents.len() {
        1 => documents.remove(0),
        _ => Value::Array(documents),
    };
    output::document(&answer, format)
}

fn pools(args: &Args) -> anyhow::Result<Pools> {
    let file = input::read(&args.file)?;
    let mut pools = Pools::default();
    let mut slices = Vec::new();
    for document in file.documents {
        match document {
            Document::Manifest(Kind::NodeIPPool, manifest) => {
                let name = manifest.pointer("/metadata/name").and_then(Value::as_str);
                let name = name.unwrap_or("without a name").to_owned();
                let remarks = pools
                    .add(&manifest)
                    .with_context(|| format!("{}: NodeIPPool {name} can't be used", file.name))?;
                remarks.iter().for_each(|remark| output::warn(&file.name, remark));
            }
            Document::Manifest(Kind::NodeIPSlice, manifest) => slices.push(manifest),
            other => return Err(other.unexpected(&file.name, EXPECTED).into()),
        }
    }
    for manifest in slices {
        pools
            .add_slice(&manifest)
            .with_context(|| format!("{}: a NodeIPSlice can't be used", file.name))?;
    }
    if pools.is_empty() {
        anyhow::bail!("{}: there is no NodeIPPool in it; {EXPECTED}", file.name);
    }
    Ok(pools)
}

fn explain<'a>(args: &Args, known: &'a KnownPool) -> anyhow::Result<Explained<'a>> {
    let ranges = chosen(args, known)?;
    let mut explained = Explained {
        known,
        rows: Vec::new(),
        more: None,
        whole: false,
    };
    if let Some(ip) = args.ip {
        explained.rows = rows::at(known, ip);
        explained
            .rows
            .retain(|row| args.range.as_ref().is_none_or(|name| row.range == *name));
    } else if let Some(offset) = args.offset {
        explained.rows = at_offset(known, &ranges, offset)?;
    } else {
        explained.whole = true;
        let limit = match (args.limit, args.output) {
            (Some(0), _) | (None, Shown::Json | Shown::Yaml) => usize::MAX,
            (Some(limit), _) => limit,
            (None, Shown::Table) => ROWS,
        };
        fill(&mut explained, &ranges, limit);
    }
    Ok(explained)
}

fn chosen<'a>(args: &Args, known: &'a KnownPool) -> Result<Vec<&'a Range>, UsageError> {
    let all = known.pool.ranges();
    let names = || all.iter().map(|range| range.name().to_owned()).collect();
    let Some(name) = &args.range else {
        if args.offset.is_some() && all.len() > 1 {
            return Err(UsageError::RangeMissing {
                pool: known.pool.name().to_owned(),
                ranges: names(),
            });
        }
        return Ok(all.iter().collect());
    };
    match all.iter().find(|range| range.name() == name) {
        Some(range) => Ok(vec![range]),
        None => Err(UsageError::NoSuchRange {
            range: name.clone(),
            known: names(),
        }),
    }
}

/// One row of each family of a range.
fn at_offset(known: &KnownPool, ranges: &[&Range], offset: u128) -> Result<Vec<Row>, NotThere> {
    let mut found = Vec::new();
    let mut last = None;
    for range in ranges {
        for part in range.parts() {
            match part.address_at(offset) {
                Some(ip) => {
                    let rows = rows::at(known, ip).into_iter();
                    found.extend(rows.filter(|row| row.range == range.name()));
                }
                None => last = Some((range.name(), part.last_offset(), part.end())),
            }
        }
    }
    match last {
        Some((range, last, ip)) if found.is_empty() => Err(NotThere::Offset {
            pool: known.pool.name().to_owned(),
            offset,
            range: range.to_owned(),
            last,
            ip,
        }),
        _ => Ok(found),
    }
}

/// As many rows as allowed, and how many addresses they leave out.
fn fill(explained: &mut Explained<'_>, ranges: &[&Range], limit: usize) {
    let known = explained.known;
    for part in ranges
        .iter()
        .flat_map(|range| range.parts().map(move |part| (*range, part)))
    {
        let (range, part) = part;
        let mut walk = rows::walk(known, range, part);
        while explained.rows.len() < limit {
            let Some(row) = walk.next() else { break };
            explained.rows.push(row);
        }
        let mine = explained
            .rows
            .last()
            .filter(|row| row.range == range.name() && part.contains(row.last) && explained.more.is_none());
        let next = mine.and_then(|row| row.offsets).map_or(0, |(_, last)| last + 1);
        if let Some(ip) = part.address_at(next) {
            let left = part.last_offset() - next + 1;
            let (before, from) = explained.more.unwrap_or((0, ip));
            explained.more = Some((before.saturating_add(left), from));
        }
    }
}

fn nowhere(ip: IpAddr, pools: &Pools) -> NotThere {
    let ranges = pools.iter().flat_map(|known| {
        known.pool.ranges().iter().flat_map(move |range| {
            range.parts().map(move |part| {
                let (pool, range) = (known.pool.name(), range.name());
                format!("pool {pool}, range {range}: {} to {}", part.start(), part.end())
            })
        })
    });
    NotThere::Address {
        ip,
        pools: pools.names().join(", "),
        ranges: ranges.collect(),
    }
}

/// `status.capacity`, what is held, and `status.available`, counted in claims.
fn counts(known: &KnownPool, pools: &Pools) -> (u128, u128, u128) {
    let (taken, barred) = (known.taken(), pools.barred_for(known.pool.name()));
    let view = PoolView {
        pool: &known.pool,
        taken: &taken,
        barred: &barred,
    };
    let counts = view.counts();
    (counts.capacity, held(known), counts.available)
}

/// Claims that are held: a dual-stack range gives two addresses to one.
fn held(known: &KnownPool) -> u128 {
    let in_range = |range: &Range, v4: bool| {
        let of = |ip: &&IpAddr| {
            ip.is_ipv4() == v4
                && known
                    .pool
                    .range_of(**ip)
                    .is_some_and(|other| other.name() == range.name())
        };
        known.held.keys().filter(of).count() as u128
    };
    let ranges = known.pool.ranges().iter();
    ranges
        .map(|range| in_range(range, true).max(in_range(range, false)))
        .sum()
}

fn table(explained: &Explained<'_>, pools: &Pools) -> String {
    let known = explained.known;
    let mut text = String::new();
    if explained.whole {
        let (capacity, held, available) = counts(known, pools);
        let mut head = Table::new(vec!["POOL", "CAPACITY", "HELD", "AVAILABLE"]);
        head.row(vec![
            known.pool.name().to_owned(),
            capacity.to_string(),
            held.to_string(),
            available.to_string(),
        ]);
        text = head.print() + "\n";
    }
    let several = known.pool.ranges().len() > 1;
    let mut header = vec!["OFFSET", "ADDRESS", "STATUS", "BAND", "DETAIL"];
    if several {
        header.insert(0, "RANGE");
    }
    let mut body = Table::new(header);
    for row in &explained.rows {
        let mut cells = vec![
            row.offsets.map_or_else(
                || "-".to_owned(),
                |(first, last)| span(first, last, first == last),
            ),
            span(row.first, row.last, row.first == row.last),
            row.standing.status.as_str().to_owned(),
            row.standing.band.unwrap_or("-").to_owned(),
            detail(row),
        ];
        if several {
            cells.insert(0, row.range.clone());
        }
        body.row(cells);
    }
    text += &body.print();
    if let Some((left, from)) = explained.more {
        text += &format!(
            "… {left} more addresses, from {from} on; ask for one with --offset or --ip, or for more rows with --limit\n"
        );
    }
    text
}

fn span<T: std::fmt::Display>(first: T, last: T, one: bool) -> String {
    if one {
        first.to_string()
    } else {
        format!("{first} - {last}")
    }
}

fn detail(row: &Row) -> String {
    let mut parts = Vec::new();
    if let Some(holding) = &row.standing.holding {
        parts.push(match &holding.by {
            None => "holder unknown".to_owned(),
            Some(by) => {
                let named = [("policy", &by.policy), ("capture", &by.capture)];
                let named = named.into_iter().filter(|(_, name)| !name.is_empty());
                let named: String = named.map(|(word, name)| format!(", {word} {name}")).collect();
                format!("node {}{named}", by.node)
            }
        });
        if let Some(quarantined) = &holding.quarantined {
            parts.extend(
                Some(&quarantined.reason)
                    .filter(|reason| !reason.is_empty())
                    .cloned(),
            );
            parts.extend(quarantined.until.as_ref().map(|until| format!("until {until}")));
        }
    }
    parts.extend(row.standing.why.clone());
    if let Some((cidr, node)) = &row.standing.slice {
        parts.push(format!("slice {cidr} of node {node}"));
    }
    if row.standing.draining {
        parts.push(format!("range {} drains", row.range));
    }
    parts.join("; ")
}

fn document(explained: &Explained<'_>, pools: &Pools) -> Value {
    let mut fields = Map::new();
    fields.insert("pool".into(), json!(explained.known.pool.name()));
    if explained.whole {
        let (capacity, held, available) = counts(explained.known, pools);
        for (key, count) in [("capacity", capacity), ("held", held), ("available", available)] {
            fields.insert(key.into(), number(count));
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
    if let Some(holding) = &standing.holding {
        let by = holding.by.as_ref();
        text("node", by.map(|by| by.node.as_str()));
        text("policy", by.map(|by| by.policy.as_str()));
        text("capture", by.map(|by| by.capture.as_str()));
        let quarantined = holding.quarantined.as_ref();
        text(
            "reason",
            quarantined.map(|quarantined| quarantined.reason.as_str()),
        );
        text(
            "until",
            quarantined.and_then(|quarantined| quarantined.until.as_deref()),
        );
    }
    text("why", standing.why.as_deref());
    if let Some((cidr, node)) = &standing.slice {
        fields.insert("slice".into(), json!({"cidr": cidr.to_string(), "node": node}));
    }
    if standing.draining {
        fields.insert("draining".into(), json!(true));
    }
    Value::Object(fields)
}

/// A number where every JSON reader keeps it exact, else text.
fn number(n: u128) -> Value {
    match u64::try_from(n) {
        Ok(small) if small < 1 << 53 => json!(small),
        _ => json!(n.to_string()),
    }
}
