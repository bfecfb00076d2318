//! Rules of `NodeIPSlice`: the name follows from the block, and nothing changes.

use serde_json::Value;

use super::{Placed, Rule, place, pool, rule, text};
use crate::address;

pub(super) fn rules() -> Vec<Placed> {
    let mut all: Vec<Placed> = place("", vec![name_follows()]).collect();
    all.extend(place("spec", vec![immutable(), canonical_block(), first_is_inside()]));
    all.extend(pool::of_ledger());
    all
}

/// The name is the lock, so it must be a function of what is locked: [`crate::slice::name`]. A name has no `/`, so
/// what comes before the block's is all of it.
fn name_follows() -> Rule {
    let name = "self.spec.pool + '.' + (self.spec.cidr.startsWith('::') ? '0' : '') + \
         self.spec.cidr.replace('::/', '::0/').replace(':', '-')";
    let wanted = |value: &Value| -> String {
        let field = |name| value.get("spec").and_then(|spec| text(spec, name)).unwrap_or_default();
        let (pool, cidr) = (field("pool"), field("cidr"));
        let head = if cidr.starts_with("::") { "0" } else { "" };
        format!("{pool}.{head}{}", cidr.replace("::/", "::0/").replace(':', "-"))
    };
    rule(
        "name must be <pool>.<first address>, with - for : in IPv6",
        format!("({name}).startsWith(self.metadata.name + '/')"),
        move |new, _| wanted(new).starts_with(&format!("{}/", super::name(new))),
    )
    .at(".metadata.name")
    .say(format!("'the name must be ' + {name} + ' up to the /'"), move |new, _| {
        format!("the name must be {} up to the /", wanted(new))
    })
}

fn immutable() -> Rule {
    rule("a slice can't be changed: delete it and create another", "self == oldSelf", |new, old| new == old)
        .forbidden()
}

fn canonical_block() -> Rule {
    rule(
        "cidr must be a network in canonical form, without host bits",
        "isCIDR(self.cidr) && string(cidr(self.cidr).masked()) == self.cidr",
        |new, _| {
            let cidr = text(new, "cidr").unwrap_or_default();
            address::cidr(cidr).is_some_and(|net| is_canonical(&net, cidr))
        },
    )
    .at(".cidr")
    .say(
        "'cidr ' + self.cidr + (isCIDR(self.cidr) ? ' has host bits or is not in canonical form' : ' is not a network')",
        |new, _| {
            let cidr = text(new, "cidr").unwrap_or_default();
            let is_net = address::cidr(cidr).is_some();
            let wrong = if is_net { "has host bits or is not in canonical form" } else { "is not a network" };
            format!("cidr {cidr} {wrong}")
        },
    )
}

/// What a slice is made with is of its block.
fn first_is_inside() -> Rule {
    rule(
        "first.ip must be an address of the block, in canonical form",
        "!has(self.first) || (isIP(self.first.ip) && ip.isCanonical(self.first.ip) && isCIDR(self.cidr) && \
         cidr(self.cidr).containsIP(self.first.ip))",
        |new, _| {
            let Some(first) = new.get("first") else { return true };
            let written = text(first, "ip").unwrap_or_default();
            let ip = address::ip(written).filter(|ip| ip.to_string() == written);
            let block = address::cidr(text(new, "cidr").unwrap_or_default());
            ip.zip(block).is_some_and(|(ip, block)| block.contains(&ip))
        },
    )
    .at(".first")
}

fn is_canonical(net: &ipnet::IpNet, written: &str) -> bool {
    net.trunc().to_string() == written
}
