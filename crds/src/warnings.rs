//! What is accepted, but probably not meant: told to whoever writes it, never a reason to refuse.
//!
//! The CLI and the embedded API show these; on a cluster the controller makes Events of them.

use std::fmt;

use serde_json::Value;

use crate::{Kind, address, schema};

/// Something accepted that is worth a word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    pub path: String,
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Everything about an object that is worth a word.
pub fn warnings(kind: Kind, object: &Value) -> Vec<Warning> {
    let unknown = schema::unknown_fields(&kind.definition().schema, object);
    let dropped = |path| Warning { path, message: "unknown field, it has no effect".to_owned() };
    let mut found: Vec<Warning> = unknown.into_iter().map(dropped).collect();
    match kind {
        Kind::NodeIPPool => found.extend(host_bits(object)),
        Kind::NodeNetworkConfigurationPolicy => found.extend(max_unavailable(object)),
        _ => {}
    }
    found
}

/// D4: host bits in a network are ignored.
fn host_bits(pool: &Value) -> Vec<Warning> {
    let places = [
        "spec.range",
        "spec.range.ipv4",
        "spec.range.ipv6",
        "spec.ranges[]",
        "spec.ranges[].ipv4",
        "spec.ranges[].ipv6",
    ];
    let schema = &Kind::NodeIPPool.definition().schema;
    let spots = places.into_iter().flat_map(|at| schema::place::spots(schema, at, pool, None));
    let warning = |spot: schema::place::Spot<'_>| {
        let written = spot.new.get("cidr")?.as_str()?;
        let net = address::cidr(written).filter(|net| net.addr() != net.network())?;
        let message = format!("{written} has host bits, it is taken as {}", net.trunc());
        Some(Warning { path: format!("{}.cidr", spot.path), message })
    };
    spots.filter_map(warning).collect()
}

/// A limit that is neither a number nor a percentage counts as none: 50%.
fn max_unavailable(policy: &Value) -> Option<Warning> {
    let written = policy.get("spec")?.get("maxUnavailable")?.as_str()?;
    let percent = written.strip_suffix('%').and_then(|number| number.parse::<u32>().ok());
    let message = format!("{written:?} is neither a number nor a percentage, 50% is used instead");
    percent.is_none().then(|| Warning { path: "spec.maxUnavailable".to_owned(), message })
}

#[cfg(test)]
mod tests;
