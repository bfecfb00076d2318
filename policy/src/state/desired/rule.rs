//! Reading `route-rules.config`.

use super::super::error::Reason;
use super::super::path::Path;
use super::super::scalar::Reader;
use super::super::{Family, RuleAction};
use super::DesiredRule;
use super::route::{is_unset, read_net};
use serde_json::{Map, Value};

pub(in crate::state) fn read_list(r: &mut Reader, path: &Path<'_>, value: &Value) -> Vec<DesiredRule> {
    let list = r.list(path, value).iter().enumerate();
    list.filter_map(|(i, item)| read(r, &path.index(i), i, item)).collect()
}

fn read(r: &mut Reader, path: &Path<'_>, index: usize, value: &Value) -> Option<DesiredRule> {
    let map = r.map(path, value)?;
    let mut rule = DesiredRule { index, ..DesiredRule::default() };
    for (key, value) in r.fields(path, value) {
        let at = path.key(key);
        match key {
            "state" => {
                rule.absent = r.word(&at, value, &[("absent", true), ("present", false)]).unwrap_or(false);
            }
            "family" => rule.family = r.word(&at, value, &[("ipv4", Family::Ipv4), ("ipv6", Family::Ipv6)]),
            "ip-from" if value.as_str() == Some("") => {}
            "ip-to" if value.as_str() == Some("") => {}
            "ip-from" => rule.from = read_net(r, &at, value),
            "ip-to" => rule.to = read_net(r, &at, value),
            "priority" if is_unset(value) => {}
            "priority" => rule.priority = r.u32(&at, value),
            "route-table" => rule.table = r.u32(&at, value).filter(|t| *t != 0),
            "fwmark" => rule.fwmark = r.u32(&at, value),
            "fwmask" => rule.fwmask = r.u32(&at, value),
            "action" => rule.action = r.word(&at, value, &RuleAction::WORDS),
            "iif" => rule.iif = r.reference(&at, value),
            "suppress-prefix-length" => {
                rule.suppress_prefix_length = r.u16(&at, value, 0, 128).map(u32::from);
            }
            _ => r.unread(&at, false, value),
        }
    }
    check(r, path, &mut rule, map);
    Some(rule)
}

fn check(r: &mut Reader, path: &Path<'_>, rule: &mut DesiredRule, map: &Map<String, Value>) {
    for (key, net) in [("ip-from", rule.from), ("ip-to", rule.to)] {
        let Some(family) = net.as_ref().map(Family::of_net) else {
            continue;
        };
        match rule.family {
            None => rule.family = Some(family),
            Some(said) if said != family => {
                let wanted = match said {
                    Family::Ipv4 => "an IPv4 network, as the rest of the rule",
                    Family::Ipv6 => "an IPv6 network, as the rest of the rule",
                };
                let found = net.map(|n| n.to_string()).unwrap_or_default();
                r.find(&path.key(key), Reason::Expected { wanted, found });
            }
            Some(_) => {}
        }
    }
    if rule.absent || r.lenient {
        return;
    }
    if rule.family.is_none() && !["family", "ip-from", "ip-to"].iter().any(|key| map.contains_key(*key)) {
        r.find(path, Reason::Needs { other: "family, ip-from or ip-to" });
    }
    if rule.fwmask.is_some() && rule.fwmark.is_none() {
        r.find(&path.key("fwmask"), Reason::Needs { other: "fwmark" });
    }
    // The kernel takes a mark of 0 without a mask for no condition at all: the rule would be for every packet.
    if rule.fwmark == Some(0) && rule.fwmask.is_none() {
        r.find(&path.key("fwmark"), Reason::Needs { other: "fwmask, since 0 alone means any mark" });
    }
    if rule.action.is_some() && rule.table.is_some() {
        r.find(&path.key("action"), Reason::Conflict { other: "route-table" });
    }
}
