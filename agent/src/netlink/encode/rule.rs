//! Rules.

use policy::state::{RouteProtocol, Rule};

use super::family_number;
use crate::netlink::decode::rule::{
    FRA_DST, FRA_FWMARK, FRA_FWMASK, FRA_IIFNAME, FRA_PRIORITY, FRA_PROTOCOL, FRA_SRC, FRA_SUPPRESS_PREFIX,
    FRA_TABLE, HEADER, TO_TABLE, action_number,
};
use crate::netlink::wire::Message;

pub(super) const RTM_NEWRULE: u16 = 32;
pub(super) const RTM_DELRULE: u16 = 33;

pub(super) fn message(kind: u16, flags: u16, rule: &Rule) -> Message {
    let length = |net: Option<ipnet::IpNet>| net.map_or(0, |net| net.prefix_len());
    let mut header = [0; HEADER];
    header[0] = family_number(rule.family);
    (header[1], header[2]) = (length(rule.to), length(rule.from));
    header[7] = rule.action.map_or(TO_TABLE, action_number);
    let mut message = Message::new(kind, flags);
    message.raw(&header).u32(FRA_PRIORITY, rule.priority);
    for (number, net) in [(FRA_SRC, rule.from), (FRA_DST, rule.to)] {
        if let Some(net) = net.filter(|net| net.prefix_len() > 0) {
            message.ip(number, net.addr());
        }
    }
    if let Some(iif) = &rule.iif {
        message.text(FRA_IIFNAME, iif.as_str());
    }
    let numbers = [
        (FRA_TABLE, rule.table),
        (FRA_FWMARK, rule.fwmark),
        (FRA_FWMASK, rule.fwmask),
        (FRA_SUPPRESS_PREFIX, rule.suppress_prefix_length),
    ];
    for (number, value) in numbers {
        if let Some(value) = value {
            message.u32(number, value);
        }
    }
    match rule.raw.0.iter().find(|(number, _)| *number == FRA_PROTOCOL) {
        Some((number, by)) => message.attr(*number, by),
        None => message.u8(FRA_PROTOCOL, RouteProtocol::STATIC.0),
    };
    message
}
