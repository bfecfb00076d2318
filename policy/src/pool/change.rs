//! What may change in a pool's spec (R11, D9 in docs/requirements.md).
//!
//! `exclude` may grow; `state`, `reservations`, `staticBand` and `quarantine` may change; ranges may be
//! added; a Draining range may go once nothing in it is held or other ranges cover what is; `range: X` may
//! become `ranges: [X, …]`. All else stays, so that no offset and no held address ever changes its meaning.

use std::net::IpAddr;

use super::error::{Findings, PoolError, Problem};
use super::range::{Part, Range};
use super::spec::RangeState;
use super::{Family, Pool, PoolSpec};

/// Whether `old` may become `new` while `held` addresses are held; all that stands against it.
pub fn change(old: &PoolSpec, new: &PoolSpec, held: &[IpAddr]) -> Result<(), Vec<PoolError>> {
    let after = Pool::new(new).map_err(|errors| errors.0)?;
    // A spec that never was valid gave nothing: whatever is valid may replace it.
    let Ok(before) = Pool::new(old) else { return Ok(()) };

    let mut found = Findings::default();
    match (before.single, after.single) {
        (true, true) => {
            let pairs = before.ranges.iter().zip(&after.ranges);
            pairs.for_each(|(a, b)| compare(a, b, "spec.range", &mut found));
        }
        (true, false) => single_to_several(&before, &after, &mut found),
        (false, true) => found.error("spec.range", Problem::BackToSingle),
        (false, false) => several(&before, &after, held, &mut found),
    }
    if found.errors.is_empty() { Ok(()) } else { Err(found.errors) }
}

fn single_to_several(before: &Pool, after: &Pool, found: &mut Findings) {
    let Some(single) = before.ranges.first() else {
        return;
    };
    let kept = after.ranges.first().is_some_and(|range| {
        let mut differences = Findings::default();
        compare(single, range, "", &mut differences);
        differences.errors.is_empty()
    });
    if !kept {
        found.error("spec.ranges", Problem::SingleNotKept);
    }
}

fn several(before: &Pool, after: &Pool, held: &[IpAddr], found: &mut Findings) {
    for range in &before.ranges {
        let name = || range.name.clone();
        match after.ranges.iter().enumerate().find(|(_, other)| other.name == range.name) {
            Some((i, kept)) => compare(range, kept, &format!("spec.ranges[{i}]"), found),
            None if range.state == RangeState::Active => {
                found.error("spec.ranges", Problem::RemovedActive { name: name() });
            }
            None => {
                let uncovered = |ip: &&IpAddr| range.contains(**ip) && !after.contains(**ip);
                if let Some(ip) = held.iter().find(uncovered) {
                    found.error("spec.ranges", Problem::RemovedInUse { name: name(), ip: *ip });
                }
            }
        }
    }
}

/// Two versions of one range.
fn compare(old: &Range, new: &Range, path: &str, found: &mut Findings) {
    let mut same = |equal: bool, field: &str| {
        if !equal {
            found.error(format!("{path}.{field}"), Problem::Immutable);
        }
    };
    same(old.skip_octet_ends == new.skip_octet_ends, "skipOctetEnds");
    same(old.host_bits == new.host_bits, "perNodeHostBits");
    same(old.selector == new.selector, "nodeSelector");
    same(old.attributes == new.attributes, "attributes");
    for (family, field) in [(Family::V4, "ipv4"), (Family::V6, "ipv6")] {
        match (old.part(family), new.part(family)) {
            (Some(a), Some(b)) => {
                let dual = new.v4.is_some() && new.v6.is_some();
                let path = if dual { format!("{path}.{field}") } else { path.to_owned() };
                compare_part(a, b, &path, found);
            }
            (None, None) => {}
            _ => found.error(format!("{path}.{field}"), Problem::Immutable),
        }
    }
}

fn compare_part(old: &Part, new: &Part, path: &str, found: &mut Findings) {
    let mut same = |equal: bool, field: &str| {
        if !equal {
            found.error(format!("{path}.{field}"), Problem::Immutable);
        }
    };
    same(old.cidr == new.cidr, "cidr");
    if old.cidr != new.cidr {
        return;
    }
    same(old.start == new.start, "start");
    same(old.end == new.end, "end");
    same(old.gateway == new.gateway, "gateway");
    // Only a default spelled out, or taken away: the addresses are the same, the band is not (D11).
    same(old.size == new.size || old.start != new.start || old.end != new.end, "start");
    if let Some((first, _)) = old.exclude.minus(&new.exclude).iter().next() {
        found.error(format!("{path}.exclude"), Problem::ExcludeShrank { ip: old.family.address(first) });
    }
}
