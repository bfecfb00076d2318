//! `berth pool explain`: what each offset and address of a pool is, and who holds it (R42).

mod print;

use std::net::IpAddr;
use std::path::PathBuf;

pub(super) use print::{Counts, number};

use policy::pool::Range;
use serde_json::Value;
use thiserror::Error;

use super::rows::{self, Row, View};
use super::source::Source;
use crate::cli::UsageError;
use crate::cli::client::Reach;
use crate::cli::output::{self, Listing};
use crate::pools::KnownPool;

/// Print what each offset and address of a pool is, and who holds it
///
/// Offsets count from the start of a range, excluded addresses included. A range of more than 32 addresses shows
/// neighbours that stand alike as one row. What is given to whom comes from the pool's status: as the API has it, or as the
/// file of -f does.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The pool; not needed with --file or --ip, which look at all of them
    #[arg(value_name = "POOL", required_unless_present_any = ["file", "ip"])]
    pools: Vec<String>,
    /// NodeIPPools, and NodeIPSlices of theirs, in a file instead of the API
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Only the address at this offset
    #[arg(long, value_name = "N", conflicts_with = "ip", value_parser = offset)]
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
    output: Listing,
}

const EXAMPLES: &str = "\
Examples:
  berth pool explain traffic-1
  berth pool explain traffic-1 --ip 10.10.10.8
  berth pool explain -f pool.yaml
  berth pool explain -f pool.yaml --offset 7
  berth pool explain -f pool.yaml --ip 10.10.10.8
  kubectl get nodeippool traffic-1 -o yaml | berth pool explain -f - -o json";

const EXPECTED: &str = "pool explain takes NodeIPPools, and NodeIPSlices of theirs";
/// What a person can take in without scrolling far.
const ROWS: usize = 40;

/// No range is larger than a /8 of IPv6.
const LARGEST_OFFSET: u128 = (1 << 120) - 1;

fn offset(text: &str) -> Result<u128, String> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(offset) => Ok(offset),
        Err(_) if is_number => {
            Err(format!("no range has such an offset: the largest there can be is {LARGEST_OFFSET}"))
        }
        Err(_) => Err("expected a whole number from 0".to_owned()),
    }
}

/// What was asked about isn't there.
#[derive(Debug, Error)]
enum NotThere {
    #[error("{ip} is not in pool {pools}\n{}", .ranges.join("\n"))]
    Address { ip: IpAddr, pools: String, ranges: Vec<String> },
    #[error("pool {pool} has no offset {offset}: the last of range {range} is {last}, {ip}")]
    Offset { pool: String, offset: u128, range: String, last: u128, ip: IpAddr },
}

/// What is printed of one pool.
pub(super) struct Explained<'a> {
    pub(super) view: View<'a>,
    pub(super) rows: Vec<Row>,
    /// Addresses that the rows left out, and where they begin.
    pub(super) more: Option<(u128, IpAddr)>,
    /// All of the pool was asked for, not one address.
    pub(super) whole: bool,
}

pub(super) fn run(args: &Args, reach: &Reach) -> anyhow::Result<String> {
    let source = Source::read(args.file.as_deref(), reach, EXPECTED)?;
    let pools = &source.pools;
    let chosen = source.chosen(&args.pools)?;
    let mut explained = Vec::new();
    for known in &chosen {
        explained.push(explain(args, View::new(known, pools, &source.services))?);
    }
    if let Some(ip) = args.ip {
        if explained.iter().all(|one| one.rows.is_empty()) {
            return Err(nowhere(ip, &chosen).into());
        }
        explained.retain(|one| !one.rows.is_empty());
    }
    let Some(format) = args.output.format() else {
        let tables: Vec<String> =
            explained.iter().map(|one| print::table(one, chosen.len() > 1, args.output.is_wide())).collect();
        return Ok(tables.join("\n"));
    };
    let mut documents: Vec<Value> = explained.iter().map(|one| print::document(one)).collect();
    let answer = match documents.len() {
        1 => documents.remove(0),
        _ => Value::Array(documents),
    };
    output::document(&answer, format)
}

fn explain<'a>(args: &Args, view: View<'a>) -> anyhow::Result<Explained<'a>> {
    let ranges = chosen(args, view.known)?;
    let mut explained = Explained { view, rows: Vec::new(), more: None, whole: false };
    if let Some(ip) = args.ip {
        explained.rows = rows::at(&explained.view, ip);
        explained.rows.retain(|row| args.range.as_ref().is_none_or(|name| row.range == *name));
    } else if let Some(offset) = args.offset {
        explained.rows = at_offset(&explained.view, &ranges, offset)?;
    } else {
        explained.whole = true;
        let limit = match (args.limit, args.output) {
            (Some(0), _) | (None, Listing::Json | Listing::Yaml) => usize::MAX,
            (Some(limit), _) => limit,
            (None, Listing::Table | Listing::Wide) => ROWS,
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
            return Err(UsageError::RangeMissing { pool: known.pool.name().to_owned(), ranges: names() });
        }
        return Ok(all.iter().collect());
    };
    match all.iter().find(|range| range.name() == name) {
        Some(range) => Ok(vec![range]),
        None => Err(UsageError::NoSuchRange { range: name.clone(), known: names() }),
    }
}

/// One row of each family of a range.
fn at_offset(view: &View<'_>, ranges: &[&Range], offset: u128) -> Result<Vec<Row>, NotThere> {
    let mut found = Vec::new();
    let mut last = None;
    for range in ranges {
        for part in range.parts() {
            match part.address_at(offset) {
                Some(ip) => {
                    let rows = rows::at(view, ip).into_iter();
                    found.extend(rows.filter(|row| row.range == range.name()));
                }
                None => last = Some((range.name(), part.last_offset(), part.end())),
            }
        }
    }
    match last {
        Some((range, last, ip)) if found.is_empty() => Err(NotThere::Offset {
            pool: view.known.pool.name().to_owned(),
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
    for part in ranges.iter().flat_map(|range| range.parts().map(move |part| (*range, part))) {
        let (range, part) = part;
        let mut walk = rows::walk(&explained.view, range, part);
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

fn nowhere(ip: IpAddr, pools: &[&KnownPool]) -> NotThere {
    let ranges = pools.iter().flat_map(|known| {
        known.pool.ranges().iter().flat_map(move |range| {
            range.parts().map(move |part| {
                let (pool, range) = (known.pool.name(), range.name());
                format!("pool {pool}, range {range}: {} to {}", part.start(), part.end())
            })
        })
    });
    let names: Vec<&str> = pools.iter().map(|known| known.pool.name()).collect();
    NotThere::Address { ip, pools: names.join(", "), ranges: ranges.collect() }
}
