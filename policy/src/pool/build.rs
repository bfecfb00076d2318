//! From a `PoolSpec` to a `Pool`: the checks between ranges, reservations, and the lines to choose on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::error::{Findings, PoolErrors, Problem, Remark};
use super::family::{Both, Family, split};
use super::line::Line;
use super::range::{self, Range};
use super::runs::Runs;
use super::spec::PoolSpec;
use super::{Pool, explain};

/// What the spec's example has; long enough for a host to notice that its Node is gone.
const DEFAULT_QUARANTINE: u64 = 300;
/// Longest name of an object or a range.
const LABEL: usize = 63;

pub(super) fn pool(spec: &PoolSpec) -> Result<Pool, PoolErrors> {
    let mut found = Findings::default();
    check_label(&spec.name, "metadata.name", &mut found);
    match (&spec.range, &spec.ranges) {
        (Some(_), Some(_)) | (None, None) => found.error("spec", Problem::RangeOrRanges),
        (None, Some(ranges)) if ranges.is_empty() => found.error("spec.ranges", Problem::NoRanges),
        _ => {}
    }
    check_names(spec, &mut found);
    let parsed: Vec<(String, Option<Range>)> = spec
        .paths()
        .map(|(path, range)| {
            let parsed = range::range(range, &path, spec.static_band, &mut found);
            (path, parsed)
        })
        .collect();
    let ranges: Vec<(String, Range)> = parsed.into_iter().filter_map(|(p, r)| Some((p, r?))).collect();
    check_slicing(&ranges, &mut found);
    let quarantine = quarantine(spec, &mut found);

    let mut pool = assemble(spec.name.clone(), ranges.into_iter().map(|(_, range)| range).collect());
    pool.single = spec.range.is_some();
    pool.quarantine = quarantine;
    // Whether a reservation lies in a range can only be said of ranges that could be read.
    if found.errors.is_empty() {
        reserve(&mut pool, spec, &mut found);
    }
    pool.warnings = std::mem::take(&mut found.warnings);
    pool.draw();
    found.done(pool)
}

/// A pool of these ranges, without reservations; `draw` it before use.
pub(super) fn assemble(name: String, ranges: Vec<Range>) -> Pool {
    Pool {
        name,
        ranges,
        single: false,
        reservations: BTreeMap::new(),
        reserved: Both::default(),
        quarantine: DEFAULT_QUARANTINE,
        warnings: Vec::new(),
        lines: Both::default(),
    }
}

impl Pool {
    /// In the network of a range, from its start to its end or not.
    fn is_in_network(&self, ip: IpAddr) -> bool {
        let mut parts = self.ranges.iter().flat_map(|range| range.parts());
        parts.any(|part| part.cidr.contains(&ip))
    }

    /// Draws the lines that choosing runs on, from ranges and reservations.
    pub(super) fn draw(&mut self) {
        for family in Family::BOTH {
            let parts = || self.ranges.iter().filter_map(|range| Some((range, range.part(family)?)));
            let windows = Runs::of(parts().map(|(_, part)| (part.first, part.last)));
            let mut holes = Runs::of(parts().flat_map(|(_, part)| part.exclude.iter().collect::<Vec<_>>()));
            for number in
                parts().filter_map(|(_, part)| part.gateway).chain(self.reserved.get(family).keys().copied())
            {
                holes.insert(number, number);
            }
            let skipping = match family {
                Family::V4 => Runs::of(
                    parts()
                        .filter(|(range, _)| range.skip_octet_ends)
                        .map(|(_, part)| (part.first, part.last)),
                ),
                Family::V6 => Runs::default(),
            };
            *self.lines.get_mut(family) = Arc::new(Line::new(&windows, &holes, &skipping));
        }
    }
}

fn check_label(name: &str, path: &str, found: &mut Findings) {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    let good = bytes.len() <= LABEL
        && bytes.first().is_some_and(|b| inner(*b))
        && bytes.last().is_some_and(|b| inner(*b))
        && bytes.iter().all(|b| inner(*b) || *b == b'-');
    if !good {
        found.error(path, Problem::NotALabel { name: name.to_owned() });
    }
}

fn check_names(spec: &PoolSpec, found: &mut Findings) {
    let mut names = BTreeSet::new();
    for (i, range) in spec.ranges.iter().flatten().enumerate() {
        let path = format!("spec.ranges[{i}].name");
        if range.name.is_empty() {
            found.error(path, Problem::Missing);
            continue;
        }
        check_label(&range.name, &path, found);
        if !names.insert(&range.name) {
            found.error(path, Problem::DuplicateName { name: range.name.clone() });
        }
    }
}

fn check_slicing(ranges: &[(String, Range)], found: &mut Findings) {
    if !ranges.iter().any(|(_, range)| range.host_bits.is_some()) {
        return;
    }
    for (i, (path, range)) in ranges.iter().enumerate() {
        if range.host_bits.is_none() {
            found.error(format!("{path}.perNodeHostBits"), Problem::MixedSlicing);
        }
        let meets = |(_, other): &&(String, Range)| {
            range.parts().any(|a| {
                other.part(a.family).is_some_and(|b| a.cidr.contains(&b.cidr) || b.cidr.contains(&a.cidr))
            })
        };
        if let Some((_, other)) = ranges.iter().take(i).find(meets) {
            found.error(path.clone(), Problem::SlicedOverlap { other: other.name.clone() });
        }
    }
}

fn reserve(pool: &mut Pool, spec: &PoolSpec, found: &mut Findings) {
    for (i, reservation) in spec.reservations.iter().enumerate() {
        let path = format!("spec.reservations[{i}]");
        if reservation.node.is_empty() {
            found.error(format!("{path}.node"), Problem::Missing);
        }
        let path = format!("{path}.ip");
        let Ok(ip) = reservation.ip.parse::<IpAddr>() else {
            found.error(path, Problem::NotAnAddress { text: reservation.ip.clone() });
            continue;
        };
        let ip = ip.to_canonical();
        let (family, number) = split(ip);
        let (node, taken) = (reservation.node.clone(), pool.reserved.get(family).get(&number));
        match (pool.never_given(ip), taken) {
            _ if !pool.contains(ip) && pool.is_in_network(ip) => {
                found.warn(path, Remark::ReservedBeyond { ip, node });
            }
            _ if !pool.contains(ip) => found.error(path, Problem::ReservedOutside { ip }),
            (_, Some(other)) => found.error(path, Problem::ReservedTwice { ip, node: other.clone() }),
            (Some(explain::Why::Gateway { .. }), _) => {
                found.warn(path, Remark::ReservedGateway { ip, node });
            }
            (Some(_), _) => found.warn(path, Remark::ReservedButExcluded { ip, node }),
            (None, None) => {
                pool.reserved.get_mut(family).insert(number, node.clone());
                pool.reservations.entry(node).or_default().push(ip);
            }
        }
    }
}

fn quarantine(spec: &PoolSpec, found: &mut Findings) -> u64 {
    let Some(text) = &spec.quarantine else {
        return DEFAULT_QUARANTINE;
    };
    let problem = match nanoseconds(text) {
        None => Problem::NotADuration { text: text.clone() },
        Some(short) if short < SECOND => Problem::TooShort { text: text.clone() },
        Some(nanos) => return u64::try_from(nanos.div_ceil(SECOND)).unwrap_or(u64::MAX),
    };
    found.error("spec.quarantine", problem);
    DEFAULT_QUARANTINE
}

/// In nanoseconds.
const SECOND: u128 = 1_000_000_000;

/// `90s`, `5m`, `1h30m`, `1.5h`, `1000ms`: Go's durations without a sign, in the form that the API takes.
fn nanoseconds(text: &str) -> Option<u128> {
    let (mut total, mut rest) = (0_u128, text);
    while !rest.is_empty() {
        let (whole, after) = digits(rest)?;
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after)?,
            None => ("", after),
        };
        let (unit, after) = unit(after)?;
        let tenths = u32::try_from(fraction.len()).ok()?;
        // Five digits of a nanosecond's multiple that is divisible by 100,000: nothing is lost.
        let part =
            if fraction.is_empty() { 0 } else { fraction.parse::<u128>().ok()? * unit / 10_u128.pow(tenths) };
        total = total.checked_add(whole.parse::<u128>().ok()? * unit + part)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

/// One to five digits, and what follows. The API takes no more, so that every sum can be counted.
fn digits(text: &str) -> Option<(&str, &str)> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(count).filter(|_| (1..=5).contains(&count))
}

/// A unit, in nanoseconds, and what follows.
fn unit(text: &str) -> Option<(u128, &str)> {
    let units = [("ms", SECOND / 1000), ("s", SECOND), ("m", 60 * SECOND), ("h", 3600 * SECOND)];
    units.into_iter().find_map(|(name, unit)| Some((unit, text.strip_prefix(name)?)))
}
