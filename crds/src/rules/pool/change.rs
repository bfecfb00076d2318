//! What may change in a pool's ranges as a set. What may change inside a range is [`super::range`]'s business.

use serde_json::Value;

use crate::{
    address,
    rules::{Rule, list, range, rule, text},
};

pub(super) fn ranges_stay() -> Rule {
    rule(
        "ranges can't become range again: leave ranges as they are, one is enough, or delete and re-create the pool \
         (addresses that are held are kept)",
        "!has(oldSelf.ranges) || has(self.ranges)",
        |new, old| old.get("ranges").is_none() || new.get("ranges").is_some(),
    )
    .forbidden()
}

/// What a range has that stays as it is when it gets a name; in a half of a dual-stack range, the first four.
const KEPT: [&str; 6] = ["cidr", "start", "end", "gateway", "skipOctetEnds", "perNodeHostBits"];
const KEPT_IN_A_HALF: [&str; 4] = ["cidr", "start", "end", "gateway"];

/// D9: `range: X` may become `ranges: [X, …]`, X with a name and otherwise as it was.
pub(super) fn range_becomes_the_first() -> Rule {
    let same = |new: &str, old: &str, fields: &[&str]| {
        let each = fields.iter().map(|field| {
            let (new, old) = (format!("{new}.{field}"), format!("{old}.{field}"));
            format!("has({new}) == has({old}) && (!has({new}) || {new} == {old}) && ")
        });
        let grown = format!(
            "(!has({old}.exclude) || {old}.exclude.all(e, has({new}.exclude) && e in {new}.exclude))"
        );
        each.collect::<String>() + &grown
    };
    let same_half = |half: &str| {
        let (new, old) = (format!("self.ranges[0].{half}"), format!("oldSelf.range.{half}"));
        format!("has({new}) == has({old}) && (!has({new}) || {})", same(&new, &old, &KEPT_IN_A_HALF))
    };
    let cel = format!(
        "!has(oldSelf.range) || !has(self.ranges) || {} && {} && {} && \
         !has(self.ranges[0].nodeSelector) && !has(self.ranges[0].attributes)",
        same("self.ranges[0]", "oldSelf.range", &KEPT),
        same_half("ipv4"),
        same_half("ipv6")
    );
    rule(
        "the first of ranges must be what range was, with a name: the rest is appended after it",
        cel,
        |new, old| match (old.get("range"), list(new, "ranges").first()) {
            (Some(range), Some(first)) => is_range_with_a_name(first, range),
            _ => true,
        },
    )
    .at(".ranges")
    .forbidden()
}

fn is_range_with_a_name(first: &Value, range: &Value) -> bool {
    let same = |new: &Value, old: &Value, fields: &[&str]| {
        fields.iter().all(|field| new.get(field) == old.get(field))
            && list(old, "exclude").iter().all(|excluded| list(new, "exclude").contains(excluded))
    };
    let same_half = |half: &str| match (first.get(half), range.get(half)) {
        (Some(new), Some(old)) => same(new, old, &KEPT_IN_A_HALF),
        (new, old) => new.is_none() && old.is_none(),
    };
    same(first, range, &KEPT)
        && same_half("ipv4")
        && same_half("ipv6")
        && ["nodeSelector", "attributes"].iter().all(|field| first.get(field).is_none())
}

/// R62, R64: only a range that has stopped giving may go.
pub(super) fn only_draining_ranges_go() -> Rule {
    rule(
        "a range that gives addresses can't be removed, nor renamed: set its state to Draining first, and remove it when \
         status.drained names it",
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
pub(super) fn removed_range_is_empty() -> Rule {
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

/// R65: and a minute after it was last in use, so that a holder who had not been heard of can still say so. Who counts the
/// minute is the controller, since rules have no clock; a pool of which nothing was ever given needs none.
pub(super) fn removed_range_is_drained() -> Rule {
    rule(
        "a range goes a minute after it was last in use: wait until status.drained names it",
        "!has(oldSelf.spec.ranges) || !has(self.spec.ranges) || !has(self.status) || \
         !has(self.status.rebuiltFor) || oldSelf.spec.ranges.all(o, \
         self.spec.ranges.exists(n, n.name == o.name) || \
         has(self.status.drained) && self.status.drained.exists(d, d == o.name))",
        |new, old| {
            let (Some(spec), Some(old_spec)) = (new.get("spec"), old.get("spec")) else { return true };
            let Some(status) = new.get("status").filter(|status| status.get("rebuiltFor").is_some()) else {
                return true;
            };
            let drained = |range: &Value| {
                let named = list(status, "drained").iter().filter_map(Value::as_str);
                named.into_iter().any(|name| text(range, "name") == Some(name))
            };
            spec.get("ranges").is_none()
                || list(old_spec, "ranges").iter().all(|range| has_range(spec, range) || drained(range))
        },
    )
    .at(".spec.ranges")
    .forbidden()
}

fn has_range(spec: &Value, range: &Value) -> bool {
    list(spec, "ranges").iter().any(|other| text(other, "name") == text(range, "name"))
}
