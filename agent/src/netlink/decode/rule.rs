//! `RTM_NEWRULE`.

use ipnet::IpNet;
use policy::state::{Family, IfName, KeptKind, Raw, Rule, RuleAction};

use super::kept::{SeenKept, pieces, rewritten};
use super::{AF_INET, AF_INET6};
use crate::netlink::wire::{Attr, Attrs, Malformed, read_u16, read_u32};

pub(in crate::netlink) const HEADER: usize = 12;

pub(in crate::netlink) const FRA_DST: u16 = 1;
pub(in crate::netlink) const FRA_SRC: u16 = 2;
pub(in crate::netlink) const FRA_IIFNAME: u16 = 3;
pub(in crate::netlink) const FRA_PRIORITY: u16 = 6;
pub(in crate::netlink) const FRA_FWMARK: u16 = 10;
const FRA_SUPPRESS_GROUP: u16 = 13;
pub(in crate::netlink) const FRA_SUPPRESS_PREFIX: u16 = 14;
pub(in crate::netlink) const FRA_TABLE: u16 = 15;
pub(in crate::netlink) const FRA_FWMASK: u16 = 16;
const FRA_GOTO: u16 = 4;
const FRA_OIFNAME: u16 = 17;
const FRA_L3MDEV: u16 = 19;
const FRA_UID_RANGE: u16 = 20;
const FRA_IP_PROTO: u16 = 22;
const FRA_SPORT_RANGE: u16 = 23;
const FRA_DPORT_RANGE: u16 = 24;
/// Room that aligns what follows.
const FRA_PAD: u16 = 18;
pub(in crate::netlink) const FRA_PROTOCOL: u16 = 21;
/// What the model has words for, or what means nothing here; a rule with anything else says more.
const KNOWN: [u16; 11] = [
    FRA_DST,
    FRA_SRC,
    FRA_IIFNAME,
    FRA_PRIORITY,
    FRA_FWMARK,
    FRA_SUPPRESS_GROUP,
    FRA_SUPPRESS_PREFIX,
    FRA_TABLE,
    FRA_FWMASK,
    FRA_L3MDEV,
    FRA_PROTOCOL,
];

pub(in crate::netlink) const TO_TABLE: u8 = 1;
const INVERT: u32 = 2;
/// `RTPROT_KERNEL`: who made the rules that a host is born with.
const BY_KERNEL: u8 = 2;
/// "Suppress nothing".
const NO_PREFIX: u32 = u32::MAX;
/// The kernel's word for "every bit".
const ALL_BITS: u32 = u32::MAX;

pub(in crate::netlink) fn action_number(action: RuleAction) -> u8 {
    match action {
        RuleAction::Blackhole => 6,
        RuleAction::Unreachable => 7,
        RuleAction::Prohibit => 8,
    }
}

/// A rule: one that the model has words for, or one that is kept as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::netlink) enum SeenRule {
    Known(Box<Rule>),
    Kept(Box<SeenKept>),
}

/// Left out: rules a host is born with. Rules that say more than the model has words for are kept as they came; taken for
/// simpler ones they could be deleted in another's stead.
pub(in crate::netlink) fn read(payload: &[u8]) -> Result<Option<SeenRule>, Malformed> {
    let attrs = Attrs::after(payload, HEADER)?;
    let &[family, to, from, tos, table, _, _, action, ..] = payload else { return Err(Malformed) };
    let flags = read_u32(payload, 8).ok_or(Malformed)?;
    let family = match family {
        AF_INET => Family::Ipv4,
        AF_INET6 => Family::Ipv6,
        _ => return Ok(None),
    };
    let actions = [RuleAction::Blackhole, RuleAction::Unreachable, RuleAction::Prohibit];
    let instead = actions.into_iter().find(|known| action_number(*known) == action);
    let by_vrf = attrs.get(FRA_L3MDEV).and_then(Attr::u8).unwrap_or(0) != 0;
    let groups = attrs.u32(FRA_SUPPRESS_GROUP).is_some_and(|group| group != NO_PREFIX);
    let more = attrs.iter().any(|attr| !KNOWN.contains(&attr.number));
    let unknown = instead.is_none() && action != TO_TABLE;
    let net = |number: u16, length: u8| match attrs.ip(number) {
        Some(ip) => IpNet::new(ip, length).map(Some).map_err(|_| Malformed),
        None => Ok(None),
    };
    let iif = attrs.text(FRA_IIFNAME).map(|name| IfName::new(&name).map_err(|_| Malformed)).transpose()?;
    let mask = attrs.u32(FRA_FWMASK).filter(|mask| *mask != 0);
    // A mark of 0 is not sent, but its mask is.
    let fwmark = attrs.u32(FRA_FWMARK).filter(|mark| *mark != 0).or(mask.map(|_| 0));
    let rule = Rule {
        family,
        priority: attrs.u32(FRA_PRIORITY).unwrap_or(0),
        from: net(FRA_SRC, from)?,
        to: net(FRA_DST, to)?,
        iif,
        fwmark,
        fwmask: mask.filter(|mask| *mask != ALL_BITS || fwmark == Some(0)),
        table: match (instead, unknown) {
            (None, false) => Some(attrs.u32(FRA_TABLE).unwrap_or(u32::from(table))),
            _ => None,
        },
        action: instead,
        suppress_prefix_length: attrs.u32(FRA_SUPPRESS_PREFIX).filter(|length| *length != NO_PREFIX),
        // Two rules that differ in who made them are two.
        raw: Raw(attrs.get(FRA_PROTOCOL).map(|by| (FRA_PROTOCOL, by.payload.to_vec())).into_iter().collect()),
    };
    let inverted = flags & INVERT != 0;
    if unknown || by_vrf || groups || more || tos != 0 || inverted {
        let mut seen = SeenKept::new(KeptKind::Rule, Some(family), bare(payload, attrs));
        seen.lead = words(&rule, attrs, tos, inverted);
        seen.rule = Some(rule);
        return Ok(Some(SeenRule::Kept(Box::new(seen))));
    }
    // One that somebody made just like it is theirs.
    let born = attrs.get(FRA_PROTOCOL).and_then(Attr::u8).is_none_or(|by| by == BY_KERNEL);
    Ok(Some(rule).filter(|rule| !(born && rule.is_kernels())).map(|rule| SeenRule::Known(Box::new(rule))))
}

/// The message without what the kernel owns. Without a priority it would get another one.
fn bare(payload: &[u8], attrs: Attrs<'_>) -> Vec<u8> {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&payload[..8]);
    let flags = read_u32(payload, 8).unwrap_or(0) & INVERT;
    header[8..].copy_from_slice(&flags.to_ne_bytes());
    let mut pieces = pieces(payload, HEADER);
    if attrs.get(FRA_PRIORITY).is_none() {
        pieces.push((FRA_PRIORITY, &[0; 4]));
    }
    rewritten(&header, &pieces, |number, inside| (number != FRA_PAD).then(|| inside.to_vec()))
}

/// What it says, as `ip rule` would.
fn words(rule: &Rule, attrs: Attrs<'_>, tos: u8, inverted: bool) -> String {
    let mut text = rule.to_string();
    if inverted {
        text = text.replacen(": ", ": not ", 1);
    }
    let mut say = |word: &str, what: Option<String>| {
        if let Some(what) = what {
            text.push_str(&format!(" {word} {what}"));
        }
    };
    let range = |number: u16, size: usize| {
        let bytes = attrs.get(number)?.payload;
        let read = |at: usize| match size {
            2 => read_u16(bytes, at).map(u32::from),
            _ => read_u32(bytes, at),
        };
        let (first, last) = (read(0)?, read(size)?);
        Some(if first == last { first.to_string() } else { format!("{first}-{last}") })
    };
    say("tos", (tos != 0).then(|| format!("{tos:#04x}")));
    say("oif", attrs.text(FRA_OIFNAME));
    say("uidrange", range(FRA_UID_RANGE, 4));
    say("ipproto", attrs.get(FRA_IP_PROTO).and_then(Attr::u8).map(|number| number.to_string()));
    say("sport", range(FRA_SPORT_RANGE, 2));
    say("dport", range(FRA_DPORT_RANGE, 2));
    say("goto", attrs.u32(FRA_GOTO).map(|target| target.to_string()));
    let by_vrf = attrs.get(FRA_L3MDEV).and_then(Attr::u8).is_some_and(|on| on != 0);
    say("lookup", by_vrf.then(|| "[l3mdev-table]".to_owned()));
    let group = attrs.u32(FRA_SUPPRESS_GROUP).filter(|group| *group != NO_PREFIX);
    say("suppress-ifgroup", group.map(|group| group.to_string()));
    text
}
