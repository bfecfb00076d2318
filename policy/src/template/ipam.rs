//! The shorthand `address: [{ipam: {pool: traffic-1}}]` (R44): an anonymous capture of that pool.
//!
//! Owns how such captures are named and how their grants become addresses. The agent asks [`ipam_pools`] which
//! addresses to claim before it renders.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::{Map, Value};

use super::field::Field;
use super::literals::literal_of;
use crate::capture::{Bindings, Captures, Diagnostic, Diagnostics, Problem, is_label};

/// The anonymous captures of a desired state as it is written (before it is filled): capture → pool.
///
/// A capture is called `ipam_<interface>_<pool>`, with `_2`, `_3` … where an interface uses a pool more than once
/// in one family. So it depends on nothing else in the document: an address stays when other interfaces come and
/// go. The family is no part of it, because a dual-stack pool gives both in one claim: the first use in `ipv4` and
/// the first in `ipv6` of an interface are the same claim, not two that waste half of each. Pool names have no `_`
/// and those of interfaces lose theirs, so no two uses share a name by accident.
pub fn ipam_pools(desired_state: &Value) -> Result<BTreeMap<String, String>, Diagnostics> {
    let mut pools = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut names = Names::default();
    for (at, interface) in interfaces(desired_state).iter().enumerate() {
        for family in FAMILIES {
            for (position, entry) in family.addresses(interface).iter().enumerate() {
                match pool_of(entry) {
                    Ok(None) => {}
                    Ok(Some(pool)) => {
                        pools.insert(names.next(interface, family, pool), pool.to_owned());
                    }
                    Err(problem) => wrong.push(family.diagnostic(at, position, problem)),
                }
            }
        }
    }
    Diagnostics::none_or(wrong, pools)
}

/// Puts what pools gave in the place of each `ipam`.
pub(crate) fn expand(desired_state: &mut Value, bindings: &Bindings, wrong: &mut Vec<Diagnostic>) {
    let Some(interfaces) = desired_state.get_mut("interfaces").and_then(Value::as_array_mut) else {
        return;
    };
    let mut names = Names::default();
    for (at, interface) in interfaces.iter_mut().enumerate() {
        for family in FAMILIES {
            // Taken out while the interface's name is looked at, and put back.
            let Some(slot) = interface.get_mut(family.key()).and_then(|ip| ip.get_mut("address")) else {
                continue;
            };
            let mut addresses = slot.take();
            for (position, entry) in addresses.as_array_mut().into_iter().flatten().enumerate() {
                let expanded = match pool_of(entry) {
                    Ok(None) => continue,
                    Ok(Some(pool)) => address(&names.next(interface, family, pool), pool, family, bindings),
                    Err(problem) => Err(problem),
                };
                match expanded {
                    Ok(address) => *entry = address,
                    Err(problem) => {
                        wrong.push(family.diagnostic(at, position, problem));
                        // Said once is enough: what stands in there isn't looked at again.
                        entry.take();
                    }
                }
            }
            if let Some(slot) = interface.get_mut(family.key()).and_then(|ip| ip.get_mut("address")) {
                *slot = addresses;
            }
        }
    }
}

pub(super) fn interfaces(desired_state: &Value) -> &[Value] {
    desired_state.get("interfaces").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    /// The key of nmstate's section, and of a dual-stack grant's part.
    fn key(self) -> &'static str {
        match self {
            Self::V4 => "ipv4",
            Self::V6 => "ipv6",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    fn has(self, ip: IpAddr) -> bool {
        ip.is_ipv4() == (self == Self::V4)
    }

    /// The interface's addresses of this family, as the document has them.
    pub(super) fn addresses(self, interface: &Value) -> &[Value] {
        let addresses = interface.get(self.key()).and_then(|ip| ip.get("address"));
        addresses.and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Is this family switched off there? Then its addresses are not used.
    pub(super) fn is_off(self, interface: &Value) -> bool {
        interface.get(self.key()).and_then(|ip| ip.get("enabled")) == Some(&Value::Bool(false))
    }

    /// The path of a field of an entry of an address list.
    pub(super) fn path(self, interface: usize, position: usize, field: &str) -> String {
        let path = Field::Root;
        let path = Field::Key(&path, "interfaces");
        let path = Field::Index(&path, interface);
        let path = Field::Key(&path, self.key());
        let path = Field::Key(&path, "address");
        let path = Field::Index(&path, position);
        Field::Key(&path, field).to_string()
    }

    fn diagnostic(self, interface: usize, position: usize, problem: Problem) -> Diagnostic {
        Diagnostic::field(self.path(interface, position, "ipam"), problem)
    }
}

/// Names anonymous captures, counting repeats.
#[derive(Default)]
struct Names(BTreeMap<(String, Family), usize>);

impl Names {
    fn next(&mut self, interface: &Value, family: Family, pool: &str) -> String {
        let name = format!("ipam_{}_{pool}", plain(interface.get("name").unwrap_or(&Value::Null)));
        let count = self.0.entry((name.clone(), family)).or_default();
        *count += 1;
        match *count {
            1 => name,
            repeat => format!("{name}_{repeat}"),
        }
    }
}

/// An interface's name, as written, in letters, digits and dashes: it may be a template, and dots or slashes
/// would hurt where captures are keys of a map. A name that had to be changed carries a hash of the original, so
/// that `eth1.2` and `eth1-2` never share or swap their addresses.
fn plain(name: &Value) -> String {
    let text = match name {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if text.chars().all(allowed) {
        return text;
    }
    let words = text.split(|c| !allowed(c)).filter(|word| !word.is_empty());
    format!("{}-{:08x}", words.collect::<Vec<_>>().join("-"), fnv(&text))
}

/// FNV-1a with its standard 32-bit constants: small, and the same for ever, which is what a name needs.
fn fnv(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The pool an entry of an address list asks for, if it does.
fn pool_of(entry: &Value) -> Result<Option<&str>, Problem> {
    let Some(ipam) = entry.get("ipam") else {
        return Ok(None);
    };
    let other = |map: &Map<String, Value>, key: &str| map.keys().find(|other| *other != key).cloned();
    let beside = entry.as_object().and_then(|entry| other(entry, "ipam"));
    let inside = ipam.as_object().and_then(|ipam| other(ipam, "pool"));
    match (ipam.get("pool").and_then(Value::as_str), beside.or(inside)) {
        (Some(pool), None) if is_label(pool) => Ok(Some(pool)),
        (Some(pool), None) => Err(Problem::PoolName { name: pool.to_owned() }),
        (_, beside) => Err(Problem::IpamShape { beside }),
    }
}

/// `{ip, prefix-length}` of the list's family from what the capture was granted.
fn address(capture: &str, pool: &str, family: Family, bindings: &Bindings) -> Result<Value, Problem> {
    let granted = bindings
        .get(capture)
        .ok_or_else(|| Problem::NoGrant { capture: capture.to_owned(), pool: pool.to_owned() })?;
    let part = granted.get(family.key()).unwrap_or(granted);
    let fits = |ip: &&Value| ip.as_str().and_then(|ip| ip.parse().ok()).is_some_and(|ip| family.has(ip));
    match (part.get("ip").filter(fits), part.get("prefix-length")) {
        (Some(ip), Some(length)) => {
            let fields = [("ip".to_owned(), ip.clone()), ("prefix-length".to_owned(), length.clone())];
            Ok(Value::Object(Map::from_iter(fields)))
        }
        _ => Err(Problem::IpamFamily { pool: pool.to_owned(), family: family.name() }),
    }
}

/// A capture of the user's that has the name of an anonymous one, or asks a pool and has that of a literal address' claim.
pub(crate) fn collisions(anonymous: &BTreeMap<String, String>, captures: &Captures) -> Vec<Diagnostic> {
    let pools = captures.pools();
    let problem = |name: &str| {
        let own = || name.to_owned();
        if anonymous.contains_key(name) {
            return Some(Problem::ReservedName { name: own() });
        }
        (pools.contains_key(name) && literal_of(name).is_some()).then(|| Problem::LiteralName { name: own() })
    };
    let wrong = captures.names().filter_map(|name| Some((name, problem(name)?)));
    wrong.map(|(name, problem)| Diagnostic::field(format!("capture.{name}"), problem)).collect()
}
