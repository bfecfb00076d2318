//! Rules of `NodeIPSlice`: the name follows from the block, and nothing changes.

use serde_json::Value;

use super::{Placed, Rule, place, pool, rule, text};
use crate::{address, slice};

pub(super) fn rules() -> Vec<Placed> {
    let mut all: Vec<Placed> = place("", vec![name_follows()]).collect();
    all.extend(place("spec", vec![immutable(), canonical_block()]));
    all.extend(place("status.allocations", vec![pool::keys_are_canonical()]));
    all
}

/// The name is the lock, so it must be a function of what is locked.
fn name_follows() -> Rule {
    let name = "self.spec.pool + '.' + (self.spec.cidr.startsWith('::') ? '0' : '') + \
         self.spec.cidr.replace('::/', '::0/').replace(':', '-').split('/')[0]";
    let wanted = |value: &Value| -> Option<String> {
        let spec = value.get("spec")?;
        let (pool, cidr) = (text(spec, "pool")?, text(spec, "cidr")?);
        Some(slice_name_as_written(pool, cidr))
    };
    rule(
        "name must be <pool>.<first address>, with - for : in IPv6",
        format!("self.metadata.name == {name}"),
        move |new, _| new.get("metadata").and_then(|meta| text(meta, "name")) == wanted(new).as_deref(),
    )
    .at(".metadata.name")
    .say(format!("'the name of this slice must be ' + {name}"), move |new, _| {
        format!("the name of this slice must be {}", wanted(new).unwrap_or_default())
    })
}

/// As [`slice::name`], of whatever stands before the `/`: that it is an address is another rule's business.
fn slice_name_as_written(pool: &str, cidr: &str) -> String {
    match address::cidr(cidr).filter(|net| is_canonical(net, cidr)) {
        Some(net) => slice::name(pool, net.addr()),
        None => {
            let head = if cidr.starts_with("::") { "0" } else { "" };
            let flat = cidr.replace("::/", "::0/").replace(':', "-");
            format!("{pool}.{head}{}", flat.split('/').next().unwrap_or_default())
        }
    }
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

fn is_canonical(net: &ipnet::IpNet, written: &str) -> bool {
    net.trunc().to_string() == written
}
