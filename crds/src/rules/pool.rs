//! Rules of `NodeIPPool`: its name, how its ranges fit together, what may change, and its ledger's keys.

use serde_json::Value;

use super::{Placed, Rule, list, place, range, rule, text};
use crate::{address, text as shape};

pub(super) fn rules() -> Vec<Placed> {
    let mut all: Vec<Placed> = Vec::new();
    all.extend(place("", vec![name_is_a_label(), removed_range_is_empty()]));
    all.extend(place(
        "spec",
        vec![
            one_of_range_and_ranges(),
            ranges_stay(),
            range_becomes_the_first(),
            only_draining_ranges_go(),
            all_sliced_or_none(),
            sliced_ranges_are_apart(),
            reservations_are_inside(),
            quarantine_lasts(),
        ],
    ));
    all.extend(place("spec.reservations[]", vec![canonical_ip()]));
    all.extend(place("spec.range", range::of_range()));
    all.extend(place("spec.ranges[]", range::of_range()));
    all.extend(place("spec.ranges[]", range::of_named_range()));
    for at in ["spec.range", "spec.range.ipv4", "spec.range.ipv6"] {
        all.extend(place(at, range::of_family()));
    }
    for at in ["spec.ranges[]", "spec.ranges[].ipv4", "spec.ranges[].ipv6"] {
        all.extend(place(at, range::of_family()));
    }
    for (at, family) in [
        ("spec.range.ipv4", 4),
        ("spec.range.ipv6", 6),
        ("spec.ranges[].ipv4", 4),
        ("spec.ranges[].ipv6", 6),
    ] {
        all.extend(place(at, range::of_half(family)));
    }
    all.extend(place("status.allocations", vec![keys_are_canonical()]));
    all
}

/// A pool's name is part of captures (`ippool.<name>.allocate`) and of slices' names, where a dot ends it.
fn name_is_a_label() -> Rule {
    let name = |value: &Value| {
        value
            .get("metadata")
            .and_then(|meta| text(meta, "name"))
            .unwrap_or_default()
            .to_owned()
    };
    rule(
        "a pool's name must be one DNS label: lower-case letters, digits and -, at most 63, no dot",
        "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",
        move |new, _| shape::is_dns_label(&name(new)),
    )
    .at(".metadata.name")
}

fn one_of_range_and_ranges() -> Rule {
    rule(
        "exactly one of range and ranges must be set",
        "has(self.range) != has(self.ranges)",
        |new, _| new.get("range").is_some() != new.get("ranges").is_some(),
    )
}

fn ranges_stay() -> Rule {
    rule(
        "ranges can't become range again",
        "!has(oldSelf.ranges) || has(self.ranges)",
        |new, old| old.get("ranges").is_none() || new.get("ranges").is_some(),
    )
    .forbidden()
}

/// D9: `range: X` may become `ranges: [X, …]`, X with a name and otherwise as it was.
fn range_becomes_the_first() -> Rule {
    const SAME: [&str; 6] = [
        "cidr",
        "start",
        "end",
        "gateway",
        "skipOctetEnds",
        "perNodeHostBits",
    ];
    const SAME_IN_A_HALF: [&str; 3] = ["start", "end", "gateway"];
    let same = |new: &str, old: &str, field: &str| {
        format!(
            "has({new}.{field}) == has({old}.{field}) && (!has({new}.{field}) || {new}.{field} == {old}.{field})"
        )
    };
    let grown = |new: &str, old: &str| {
        format!("(!has({old}.exclude) || {old}.exclude.all(e, has({new}.exclude) && e in {new}.exclude))")
    };
    let (new, old) = ("self.ranges[0]", "oldSelf.range");
    let mut parts: Vec<String> = SAME.iter().map(|field| same(new, old, field)).collect();
    parts.push(grown(new, old));
    parts.push(format!("!has({new}.nodeSelector) && !has({new}.attributes)"));
    for half in ["ipv4", "ipv6"] {
        let (new_half, old_half) = (format!("{new}.{half}"), format!("{old}.{half}"));
        let mut inner = vec![
            format!("{new_half}.cidr == {old_half}.cidr"),
            grown(&new_half, &old_half),
        ];
        inner.extend(
            SAME_IN_A_HALF
                .iter()
                .map(|field| same(&new_half, &old_half, field)),
        );
        parts.push(format!(
            "has({new_half}) == has({old_half}) && (!has({new_half}) || {})",
            inner.join(" && ")
        ));
    }
    let cel = format!(
        "!has(oldSelf.range) || !has(self.ranges) || {}",
        parts.join(" && ")
    );
    rule(
        "the first of ranges must be what range was, with a name: the rest is appended after it",
        cel,
        |new, old| match (old.get("range"), new.get("ranges")) {
            (Some(old), Some(_)) => list(new, "ranges")
                .first()
                .is_some_and(|first| is_range_with_a_name(first, old)),
            _ => true,
        },
    )
    .at(".ranges")
    .forbidden()
}

fn is_range_with_a_name(first: &Value, range: &Value) -> bool {
    let same =
        |a: &Value, b: &Value, fields: &[&str]| fields.iter().all(|field| a.get(field) == b.get(field));
    let grown = |a: &Value, b: &Value| {
        list(b, "exclude")
            .iter()
            .all(|excluded| list(a, "exclude").contains(excluded))
    };
    let same_half = |half: &str| match (first.get(half), range.get(half)) {
        (Some(a), Some(b)) => same(a, b, &["cidr", "start", "end", "gateway"]) && grown(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    same(
        first,
        range,
        &[
            "cidr",
            "start",
            "end",
            "gateway",
            "skipOctetEnds",
            "perNodeHostBits",
        ],
    ) && grown(first, range)
        && first.get("nodeSelector").is_none()
        && first.get("attributes").is_none()
        && same_half("ipv4")
        && same_half("ipv6")
}

/// R62, R64: only a range that has stopped giving may go.
fn only_draining_ranges_go() -> Rule {
    rule(
        "a range that gives addresses can't be removed: set its state to Draining first",
        "!has(oldSelf.ranges) || !has(self.ranges) || oldSelf.ranges.all(o, \
         has(o.state) && o.state == 'Draining' || self.ranges.exists(n, n.name == o.name))",
        |new, old| {
            let may_go = |range: &Value| text(range, "state") == Some("Draining") || has_range(new, range);
            new.get("ranges").is_none() || list(old, "ranges").iter().all(may_go)
        },
    )
    .at(".ranges")
    .forbidden()
}

/// R62: a range goes when all that is held is in the ranges that stay. Asked of the whole object: it needs the
/// ledger. The names are compared first, so that writes of the ledger, which remove no range, cost little.
fn removed_range_is_empty() -> Rule {
    let cel = format!(
        "!has(oldSelf.spec.ranges) || !has(self.spec.ranges) || !has(self.status) || \
         !has(self.status.allocations) || \
         oldSelf.spec.ranges.all(o, self.spec.ranges.exists(n, n.name == o.name)) || \
         self.status.allocations.map(k, isIP(k), ip(k)).all(a, self.spec.ranges.exists(n, {}))",
        range::holds_cel("n")
    );
    rule(
        "a range that holds addresses can't be removed: wait until they are free, or add a range that covers them",
        cel,
        |new, old| {
            let (Some(spec), Some(old_spec)) = (new.get("spec"), old.get("spec")) else { return true };
            let ledger = new.get("status").and_then(|status| status.get("allocations")).and_then(Value::as_object);
            let (Some(_), Some(ledger)) = (spec.get("ranges"), ledger) else { return true };
            let nets: Vec<_> = list(spec, "ranges").iter().flat_map(range::nets).collect();
            list(old_spec, "ranges").iter().all(|range| has_range(spec, range))
                || ledger
                    .keys()
                    .filter_map(|key| address::ip(key))
                    .all(|held| nets.iter().any(|net| net.contains(&held)))
        },
    )
    .at(".spec.ranges")
    .forbidden()
}

fn has_range(spec: &Value, range: &Value) -> bool {
    list(spec, "ranges")
        .iter()
        .any(|other| text(other, "name") == text(range, "name"))
}

fn all_sliced_or_none() -> Rule {
    rule(
        "either all ranges have perNodeHostBits or none has",
        "!has(self.ranges) || self.ranges.all(r, has(r.perNodeHostBits)) || \
         self.ranges.all(r, !has(r.perNodeHostBits))",
        |new, _| {
            let sliced = |range: &&Value| range.get("perNodeHostBits").is_some();
            let count = list(new, "ranges").iter().filter(sliced).count();
            count == 0 || count == list(new, "ranges").len()
        },
    )
    .at(".ranges")
}

/// A slice's name is its first address: were two ranges to overlap, one block could be locked twice, in
/// slices of two sizes.
fn sliced_ranges_are_apart() -> Rule {
    let overlap = "(cidr(OTHER).containsCIDR(NET) || cidr(NET).containsCIDR(OTHER))";
    let overlaps_b = range::any_net_cel("b", overlap).replace("OTHER", "NET");
    let cel = format!(
        "!has(self.ranges) || self.ranges.all(a, !has(a.perNodeHostBits) || self.ranges.all(b, \
         a.name == b.name || !{}))",
        range::any_net_cel("a", &overlaps_b)
    );
    rule("ranges with perNodeHostBits must not overlap", cel, |new, _| {
        let ranges = list(new, "ranges");
        let overlap = |a: &Value, b: &Value| {
            range::nets(a).iter().any(|x| {
                range::nets(b)
                    .iter()
                    .any(|y| x.trunc().contains(&y.trunc()) || y.trunc().contains(&x.trunc()))
            })
        };
        ranges
            .iter()
            .filter(|a| a.get("perNodeHostBits").is_some())
            .all(|a| {
                ranges
                    .iter()
                    .all(|b| text(a, "name") == text(b, "name") || !overlap(a, b))
            })
    })
    .at(".ranges")
}

/// Addresses are read once and families told apart first: with a thousand reservations and many ranges this is
/// the dearest rule.
fn reservations_are_inside() -> Rule {
    let cel = format!(
        "!has(self.reservations) || self.reservations.map(r, isIP(r.ip), ip(r.ip)).all(a, \
         has(self.range) && {} || has(self.ranges) && self.ranges.exists(n, {}))",
        range::holds_cel("self.range"),
        range::holds_cel("n")
    );
    rule(
        "every reserved address must be in a range of the pool",
        cel,
        |new, _| {
            let nets: Vec<_> = new
                .get("range")
                .into_iter()
                .chain(list(new, "ranges"))
                .flat_map(range::nets)
                .collect();
            let reserved = list(new, "reservations")
                .iter()
                .filter_map(|r| text(r, "ip").and_then(address::ip));
            reserved
                .into_iter()
                .all(|ip| nets.iter().any(|net| net.contains(&ip)))
        },
    )
    .at(".reservations")
}

/// Without a quarantine a host that merely rebooted would find its address given away.
fn quarantine_lasts() -> Rule {
    rule(
        "quarantine must be at least 1s",
        "!has(self.quarantine) || !self.quarantine.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') || \
         duration(self.quarantine) >= duration('1s')",
        |new, _| {
            let quarantine = text(new, "quarantine").and_then(shape::duration);
            quarantine.is_none_or(|quarantine| quarantine.as_secs() >= 1)
        },
    )
    .at(".quarantine")
}

pub(super) fn canonical_ip() -> Rule {
    rule(
        "ip must be an address in canonical form",
        "isIP(self.ip) && ip.isCanonical(self.ip)",
        |new, _| text(new, "ip").is_some_and(address::is_canonical),
    )
    .at(".ip")
    .say(
        "'ip ' + self.ip + (isIP(self.ip) ? ' is not in canonical form' : ' is not an IP address')",
        |new, _| {
            let written = text(new, "ip").unwrap_or_default();
            let wrong = if address::ip(written).is_some() {
                "not in canonical form"
            } else {
                "not an IP address"
            };
            format!("ip {written} is {wrong}")
        },
    )
}

/// R67: one address, one key.
pub(super) fn keys_are_canonical() -> Rule {
    rule(
        "allocations must be keyed by addresses in canonical form",
        "self.all(a, isIP(a) && ip.isCanonical(a))",
        |new, _| {
            new.as_object()
                .is_none_or(|ledger| ledger.keys().all(|key| address::is_canonical(key)))
        },
    )
}
