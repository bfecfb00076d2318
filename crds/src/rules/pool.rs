//! Rules of `NodeIPPool`: its name, how its ranges fit together, what may change, and its ledger's keys.

use ipnet::IpNet;
use serde_json::Value;

use super::{Placed, Rule, list, place, range, rule, selector, text};

use crate::{address, text as shape};

mod change;

pub(super) fn rules() -> Vec<Placed> {
    let mut all: Vec<Placed> = Vec::new();
    all.extend(place(
        "",
        vec![name_is_a_label(), change::removed_range_is_empty(), change::removed_range_is_drained()],
    ));
    all.extend(place(
        "spec",
        vec![
            one_of_range_and_ranges(),
            change::ranges_stay(),
            change::range_becomes_the_first(),
            change::only_draining_ranges_go(),
            all_sliced_or_none(),
            sliced_ranges_are_apart(),
            reservations_are_inside(),
            quarantine_is_a_duration(),
            quarantine_lasts(),
        ],
    ));
    all.extend(place("spec.reservations[]", vec![canonical_ip()]));
    all.extend(place("spec.range", range::of_range(range::THE_ONLY_ONE)));
    all.extend(place("spec.ranges[]", range::of_range(range::ONE_OF_SEVERAL)));
    all.extend(place("spec.ranges[]", range::of_named_range()));
    for at in ["spec.range", "spec.range.ipv4", "spec.range.ipv6"] {
        all.extend(place(at, range::of_family(range::THE_ONLY_ONE)));
    }
    for at in ["spec.ranges[]", "spec.ranges[].ipv4", "spec.ranges[].ipv6"] {
        all.extend(place(at, range::of_family(range::ONE_OF_SEVERAL)));
    }
    let fields = "spec.ranges[].nodeSelector.nodeSelectorTerms[].matchFields[]";
    for at in ["spec.ranges[].nodeSelector.nodeSelectorTerms[].matchExpressions[]", fields] {
        all.extend(place(at, selector::of_requirement()));
    }
    all.extend(place(fields, selector::of_field()));
    for at in [
        "spec.range.exclude[]",
        "spec.range.ipv4.exclude[]",
        "spec.range.ipv6.exclude[]",
        "spec.ranges[].exclude[]",
        "spec.ranges[].ipv4.exclude[]",
        "spec.ranges[].ipv6.exclude[]",
    ] {
        all.extend(place(at, range::of_exclude()));
    }
    for (at, family) in
        [("spec.range.ipv4", 4), ("spec.range.ipv6", 6), ("spec.ranges[].ipv4", 4), ("spec.ranges[].ipv6", 6)]
    {
        all.extend(place(at, range::of_half(family)));
    }
    all.extend(of_ledger());
    all
}

/// A pool's name is part of captures (`ippool.<name>.allocate`) and of slices' names, where a dot ends it.
fn name_is_a_label() -> Rule {
    rule(
        "a pool's name must be one DNS label: lower-case letters, digits and -, at most 63, no dot",
        "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",
        |new, _| shape::is_dns_label(super::name(new)),
    )
    .at(".metadata.name")
}

fn one_of_range_and_ranges() -> Rule {
    rule("exactly one of range and ranges must be set", "has(self.range) != has(self.ranges)", |new, _| {
        new.get("range").is_some() != new.get("ranges").is_some()
    })
}

fn all_sliced_or_none() -> Rule {
    rule(
        "either all ranges have perNodeHostBits or none has: write the new one as the others are, or make another pool",
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
    // First the network of b takes its place, then what stands for that of a.
    let overlapping = "(cidr(OTHER).containsCIDR(NET) || cidr(NET).containsCIDR(OTHER))";
    let overlaps_b = range::any_net_cel("b", overlapping).replace("OTHER", "NET");
    let cel = format!(
        "!has(self.ranges) || self.ranges.all(a, !has(a.perNodeHostBits) || self.ranges.all(b, \
         a.name == b.name || !{}))",
        range::any_net_cel("a", &overlaps_b)
    );
    rule(
        "ranges with perNodeHostBits must not overlap: give each a network of its own, or delete and re-create the pool",
        cel,
        |new, _| {
            let ranges = list(new, "ranges");
            let apart =
                |a: &Value| ranges.iter().all(|b| text(a, "name") == text(b, "name") || !overlap(a, b));
            ranges.iter().filter(|a| a.get("perNodeHostBits").is_some()).all(apart)
        },
    )
    .at(".ranges")
}

fn overlap(a: &Value, b: &Value) -> bool {
    let within = |x: &IpNet, y: &IpNet| x.trunc().contains(&y.trunc());
    let theirs = range::nets(b);
    range::nets(a).iter().any(|x| theirs.iter().any(|y| within(x, y) || within(y, x)))
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
        "every reserved address must be in a range of the pool: take the reservation out, or append a range that has it",
        cel,
        |new, _| {
            let nets: Vec<_> =
                new.get("range").into_iter().chain(list(new, "ranges")).flat_map(range::nets).collect();
            let reserved =
                list(new, "reservations").iter().filter_map(|r| text(r, "ip").and_then(address::ip));
            reserved.into_iter().all(|ip| nets.iter().any(|net| net.contains(&ip)))
        },
    )
    .at(".reservations")
}

/// What of Go's durations is one here: no sign, and no more digits than can be counted. Twin: [`shape::duration`].
const DURATION: &str = "matches('^([0-9]{1,5}([.][0-9]{1,5})?(ms|s|m|h))+$')";

/// A rule and no pattern of the schema, for a pattern is all that the API server would then say.
fn quarantine_is_a_duration() -> Rule {
    rule(
        "quarantine must be a duration such as 90s, 5m or 1h30m",
        format!("!has(self.quarantine) || self.quarantine.{DURATION}"),
        |new, _| text(new, "quarantine").is_none_or(|quarantine| shape::duration(quarantine).is_some()),
    )
    .at(".quarantine")
    .say("'quarantine ' + self.quarantine + ' is not a duration such as 90s, 5m or 1h30m'", |new, _| {
        let quarantine = text(new, "quarantine").unwrap_or_default();
        format!("quarantine {quarantine} is not a duration such as 90s, 5m or 1h30m")
    })
}

/// Without a quarantine a host that merely rebooted would find its address given away.
fn quarantine_lasts() -> Rule {
    rule(
        "quarantine must be at least 1s",
        format!(
            "!has(self.quarantine) || !self.quarantine.{DURATION} || duration(self.quarantine) >= duration('1s')"
        ),
        |new, _| {
            let quarantine = text(new, "quarantine").and_then(shape::duration);
            quarantine.is_none_or(|quarantine| quarantine.as_secs() >= 1)
        },
    )
    .at(".quarantine")
}

pub(super) fn canonical_ip() -> Rule {
    rule("ip must be an address in canonical form", "isIP(self.ip) && ip.isCanonical(self.ip)", |new, _| {
        text(new, "ip").is_some_and(address::is_canonical)
    })
    .at(".ip")
    .say(
        "'ip ' + self.ip + (isIP(self.ip) ? ' is not in canonical form' : ' is not an IP address')",
        |new, _| {
            let written = text(new, "ip").unwrap_or_default();
            let wrong =
                if address::ip(written).is_some() { "not in canonical form" } else { "not an IP address" };
            format!("ip {written} is {wrong}")
        },
    )
}

/// The rules of a ledger, in a pool's status and in a slice's.
pub(super) fn of_ledger() -> impl Iterator<Item = Placed> {
    let entry = vec![
        quarantine_is_whole(),
        only_quarantine_ends(),
        mac_is_of_a_collision(),
        interface_is_of_a_collision(),
    ];
    place("status.allocations", vec![keys_are_canonical()]).chain(place("status.allocations{}", entry))
}

/// An entry that nobody may use, for nobody knows how long, would never be free again.
fn quarantine_is_whole() -> Rule {
    rule(
        "a quarantined entry must say until when (until) and why (reason)",
        "!has(self.state) || has(self.until) && has(self.reason)",
        |new, _| !has(new, "state") || has(new, "until") && has(new, "reason"),
    )
}

/// Else the next write of the ledger would drop them.
fn only_quarantine_ends() -> Rule {
    rule(
        "until, reason and witness are for quarantined entries (state)",
        "has(self.state) || !has(self.until) && !has(self.reason) && !has(self.witness)",
        |new, _| has(new, "state") || ["until", "reason", "witness"].iter().all(|field| !has(new, field)),
    )
}

fn mac_is_of_a_collision() -> Rule {
    rule(
        "mac is for entries whose reason is IPCollision",
        "!has(self.mac) || has(self.reason) && self.reason == 'IPCollision'",
        |new, _| !has(new, "mac") || text(new, "reason") == Some("IPCollision"),
    )
    .at(".mac")
}

fn interface_is_of_a_collision() -> Rule {
    rule(
        "interface is for entries whose reason is IPCollision",
        "!has(self.interface) || has(self.reason) && self.reason == 'IPCollision'",
        |new, _| !has(new, "interface") || text(new, "reason") == Some("IPCollision"),
    )
    .at(".interface")
}

fn has(value: &Value, field: &str) -> bool {
    value.get(field).is_some()
}

/// R67: one address, one key.
fn keys_are_canonical() -> Rule {
    rule(
        "allocations must be keyed by addresses in canonical form",
        "self.all(a, isIP(a) && ip.isCanonical(a))",
        |new, _| new.as_object().is_none_or(|ledger| ledger.keys().all(|key| address::is_canonical(key))),
    )
}
