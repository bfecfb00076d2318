//! Rules of a range: of each family by itself, of the two together, and of what may change.

use ipnet::IpNet;
use serde_json::Value;

use super::{Rule, list, rule, text, unchanged};
use crate::address;

/// What to do instead of changing one of several ranges; R11, R61, R94.
pub(super) const ONE_OF_SEVERAL: &str = "an existing range can't be changed: append another to ranges and set this \
     one to state: Draining, or delete and re-create the pool (addresses that are held are kept)";
/// And instead of changing the only one, which can't drain before it has a name.
pub(super) const THE_ONLY_ONE: &str = "an existing range can't be changed: make it the first of ranges, as it is and \
     with a name, append another and set this one to state: Draining, or delete and re-create the pool (addresses \
     that are held are kept)";
/// Another range with other slices may be appended, but none without, nor one that overlaps: what is wanted is rarely that.
const SLICING: &str = "perNodeHostBits of an existing range can't be changed: delete and re-create the pool (addresses \
     that are held are kept)";

/// What holds wherever `cidr` and its companions stand: in a range, and in either half of a dual-stack one. `immutable`: what
/// to do instead of changing them.
pub(super) fn of_family(immutable: &'static str) -> Vec<Rule> {
    let mut rules = vec![
        rule("cidr must be a CIDR", "!has(self.cidr) || isCIDR(self.cidr)", |new, _| {
            text(new, "cidr").is_none_or(|cidr| address::cidr(cidr).is_some())
        })
        .at(".cidr")
        .say(
            "'cidr ' + self.cidr + ' is not a network such as 10.10.10.0/24 or 2001:db8::/64'",
            |new, _| {
                format!("cidr {} is not a network such as 10.10.10.0/24 or 2001:db8::/64", shown(new, "cidr"))
            },
        ),
        not_too_large(),
        for_hosts(),
        inside("start", ".start", "start must be an address in cidr"),
        inside("end", ".end", "end must be an address in cidr"),
        inside("gateway", ".gateway", "gateway must be an address in cidr"),
        excludes_inside(),
        start_before_end(),
        excludes_grow(),
    ];
    for (name, field) in [("cidr", ".cidr"), ("start", ".start"), ("end", ".end"), ("gateway", ".gateway")] {
        rules.push(fixed(immutable, name, field));
    }
    rules
}

/// What holds for a range as a whole.
pub(super) fn of_range(immutable: &'static str) -> Vec<Rule> {
    let either = "has(self.cidr) != (has(self.ipv4) || has(self.ipv6))";
    let companions = ["start", "end", "gateway", "exclude"];
    let mut rules = vec![
        rule("set either cidr, or ipv4 and ipv6 or one of them", either, |new, _| {
            new.get("cidr").is_some() != (new.get("ipv4").is_some() || new.get("ipv6").is_some())
        }),
        rule(
            "start, end, exclude and gateway of a dual-stack range stand under ipv4 and ipv6",
            "has(self.cidr) || !(has(self.ipv4) || has(self.ipv6)) || \
             !(has(self.start) || has(self.end) || has(self.gateway) || has(self.exclude))",
            move |new, _| {
                let dual = new.get("ipv4").is_some() || new.get("ipv6").is_some();
                new.get("cidr").is_some() || !dual || companions.iter().all(|name| new.get(name).is_none())
            },
        ),
        host_bits_fit(),
    ];
    rules.push(fixed(immutable, "skipOctetEnds", ".skipOctetEnds"));
    rules.push(fixed(SLICING, "perNodeHostBits", ".perNodeHostBits"));
    let families = "has(self.ipv4) == has(oldSelf.ipv4) && has(self.ipv6) == has(oldSelf.ipv6)";
    let same_families = |new: &Value, old: &Value| {
        ["ipv4", "ipv6"].iter().all(|name| new.get(name).is_some() == old.get(name).is_some())
    };
    rules.push(rule(immutable, families, same_families).forbidden());
    rules
}

/// What holds for a range that has a name, besides.
pub(super) fn of_named_range() -> Vec<Rule> {
    [("nodeSelector", ".nodeSelector"), ("attributes", ".attributes")]
        .map(|(name, field)| fixed(ONE_OF_SEVERAL, name, field))
        .into()
}

/// What holds for one half of a dual-stack range, besides.
pub(super) fn of_half(family: u8) -> Vec<Rule> {
    let (text, other) = match family {
        4 => ("cidr under ipv4 must be an IPv4 network", IpNet::V6(Default::default())),
        _ => ("cidr under ipv6 must be an IPv6 network", IpNet::V4(Default::default())),
    };
    let cel = format!("!isCIDR(self.cidr) || cidr(self.cidr).ip().family() == {family}");
    let same_family = move |new: &Value, _: &Value| {
        let cidr = super::text(new, "cidr").and_then(address::cidr);
        cidr.is_none_or(|cidr| cidr.max_prefix_len() != other.max_prefix_len())
    };
    vec![rule(text, cel, same_family).at(".cidr")]
}

/// The networks of a range, of either form, that can be read.
pub(super) fn nets(range: &Value) -> Vec<IpNet> {
    let halves = match range.get("cidr") {
        Some(_) => [Some(range), None],
        None => [range.get("ipv4"), range.get("ipv6")],
    };
    halves.into_iter().flatten().filter_map(|half| text(half, "cidr").and_then(address::cidr)).collect()
}

/// CEL for: the address `a`, an IP and not its text, is in a network of `range`.
pub(super) fn holds_cel(range: &str) -> String {
    let holds = |net: &str| format!("isCIDR({net}) && cidr({net}).containsIP(a)");
    format!(
        "(has({range}.cidr) ? {} : a.family() == 4 ? has({range}.ipv4) && {} : has({range}.ipv6) && {})",
        holds(&format!("{range}.cidr")),
        holds(&format!("{range}.ipv4.cidr")),
        holds(&format!("{range}.ipv6.cidr"))
    )
}

/// CEL for: `what`, in which `NET` stands for the text of a network, holds for some network of `range`.
///
/// Spelled out for each form of a range: a list of the networks would be shorter, but older API servers see no
/// bound on what is in a list that a rule has made, and refuse the rule as too expensive.
pub(super) fn any_net_cel(range: &str, what: &str) -> String {
    let each = |holder: &str| {
        let net = format!("{holder}.cidr");
        format!("isCIDR({net}) && {}", what.replace("NET", &net))
    };
    format!(
        "(has({range}.cidr) ? {} : has({range}.ipv4) && {} || has({range}.ipv6) && {})",
        each(range),
        each(&format!("{range}.ipv4")),
        each(&format!("{range}.ipv6"))
    )
}

/// Nobody owns more than a /8, and what is counted in such networks fits the numbers that count it.
fn not_too_large() -> Rule {
    rule(
        "cidr must not be larger than a /8",
        "!has(self.cidr) || !isCIDR(self.cidr) || cidr(self.cidr).prefixLength() >= 8",
        |new, _| {
            let net = text(new, "cidr").and_then(address::cidr);
            net.is_none_or(|net| !is_too_large(&net))
        },
    )
    .at(".cidr")
    .say(
        "'cidr ' + self.cidr + ' is larger than a /8; split it into the parts that are yours'",
        |new, _| {
            format!("cidr {} is larger than a /8; split it into the parts that are yours", shown(new, "cidr"))
        },
    )
}

fn is_too_large(net: &IpNet) -> bool {
    net.prefix_len() < 8
}

/// No host can have a multicast, a loopback or the unspecified address. What is too large is refused for that
/// alone: it holds everything.
fn for_hosts() -> Rule {
    const FIRST: &str = "cidr(self.cidr).masked().ip()";
    let cel = format!(
        "!has(self.cidr) || !isCIDR(self.cidr) || cidr(self.cidr).prefixLength() < 8 || \
         !({FIRST}.isLoopback() || {FIRST}.isUnspecified() || \
         cidr('224.0.0.0/4').containsIP({FIRST}) || cidr('ff00::/8').containsIP({FIRST}))"
    );
    let say = format!(
        "'cidr ' + self.cidr + ' holds ' + ({FIRST}.isLoopback() ? 'loopback' : \
         {FIRST}.isUnspecified() ? 'unspecified' : 'multicast') + ' addresses, which no host can have'"
    );
    rule("cidr must hold addresses that a host can have", cel, |new, _| not_for_hosts(new).is_none())
        .at(".cidr")
        .say(say, |new, _| {
            format!(
                "cidr {} holds {} addresses, which no host can have",
                shown(new, "cidr"),
                not_for_hosts(new).unwrap_or_default()
            )
        })
}

/// What its first address is, where that is none for a host.
fn not_for_hosts(family: &Value) -> Option<&'static str> {
    let net = text(family, "cidr").and_then(address::cidr)?;
    match net.network() {
        _ if is_too_large(&net) => None,
        first if first.is_loopback() => Some("loopback"),
        first if first.is_unspecified() => Some("unspecified"),
        first if first.is_multicast() => Some("multicast"),
        _ => None,
    }
}

/// R2: `field` is an address inside the network.
fn inside(name: &'static str, field: &'static str, plain: &'static str) -> Rule {
    let cel = format!(
        "!has(self.{name}) || !has(self.cidr) || !isCIDR(self.cidr) || \
         (isIP(self.{name}) && cidr(self.cidr).containsIP(self.{name}))"
    );
    let say = format!(
        "'{name} ' + self.{name} + (isIP(self.{name}) ? ' is not in ' + self.cidr : ' is not an IP address')"
    );
    rule(plain, cel, move |new, _| match (text(new, name), text(new, "cidr")) {
        (Some(addr), Some(net)) => address::cidr(net).is_none() || address::contains_ip(net, addr),
        _ => true,
    })
    .at(field)
    .say(say, move |new, _| {
        let addr = shown(new, name);
        match address::ip(addr) {
            Some(_) => format!("{name} {addr} is not in {}", shown(new, "cidr")),
            None => format!("{name} {addr} is not an IP address"),
        }
    })
}

/// What holds for one entry of `exclude`, R3: here the path can name it.
pub(super) fn of_exclude() -> Vec<Rule> {
    vec![
        rule("exclude must be an address or a network", "isIP(self) || isCIDR(self)", |new, _| {
            new.as_str().is_some_and(is_exclude)
        })
        .say("self + ' is neither an IP address nor a network'", |new, _| {
            format!("{} is neither an IP address nor a network", new.as_str().unwrap_or_default())
        }),
    ]
}

fn is_exclude(text: &str) -> bool {
    address::ip(text).is_some() || address::cidr(text).is_some()
}

/// R3: every exclusion that can be read is inside the network. Which one is not stays unsaid: API servers see no
/// bound on a text out of a list that a rule has made.
fn excludes_inside() -> Rule {
    let cel = "!has(self.exclude) || !has(self.cidr) || !isCIDR(self.cidr) || self.exclude.all(e, \
         isIP(e) ? cidr(self.cidr).containsIP(e) : !isCIDR(e) || cidr(self.cidr).containsCIDR(e))";
    rule("every exclude must be an address or a network in cidr", cel, |new, _| {
        let Some(net) = text(new, "cidr").filter(|net| address::cidr(net).is_some()) else {
            return true;
        };
        let fits = |e: &str| !is_exclude(e) || address::contains_ip(net, e) || address::contains_cidr(net, e);
        list(new, "exclude").iter().filter_map(Value::as_str).all(fits)
    })
    .at(".exclude")
    .say("'every exclude must be an address or a network in ' + self.cidr", |new, _| {
        format!("every exclude must be an address or a network in {}", shown(new, "cidr"))
    })
}

/// R2: `start` is not above `end`, in either family.
///
/// CEL can't order addresses. But two addresses differ first at some bit p, and start is the lower one if there
/// its bit is 0 and end's is 1: that is, if the first address of end/p is in start/(p+1), and end is not.
/// `string(p)` has no bound that the API server knows, so that the rule would be too expensive to be accepted;
/// pieces of a constant have one.
fn start_before_end() -> Rule {
    const GROUPS: &str = "[0, 16, 32, 48, 64, 80, 96, 112]";
    const BITS_OF_A_GROUP: &str = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]";
    let decimal = |n: &str| {
        format!(
            "'   1 2 3 4 5 6 7 8 9101112'.substring(({n}) / 10 * 2, ({n}) / 10 * 2 + 2).trim() + \
             '0123456789'.substring(({n}) % 10, ({n}) % 10 + 1)"
        )
    };
    let (here, next) = (decimal("g + b"), decimal("g + b + 1"));
    let cel = format!(
        "!has(self.start) || !has(self.end) || !isIP(self.start) || !isIP(self.end) || \
         ip(self.start).family() != ip(self.end).family() || \
         cidr(self.start + (ip(self.start).family() == 4 ? '/32' : '/128')).containsIP(self.end) || \
         {GROUPS}.exists(g, {BITS_OF_A_GROUP}.exists(b, g + b < (ip(self.start).family() == 4 ? 32 : 128) && \
         !cidr(self.start + '/' + {next}).containsIP(self.end) && \
         cidr(self.start + '/' + {next}).containsIP(cidr(self.end + '/' + {here}).masked().ip())))"
    );
    let ordered = |new: &Value, _: &Value| {
        let bound = |name| text(new, name).and_then(address::ip);
        match (bound("start"), bound("end")) {
            (Some(start), Some(end)) => start.is_ipv4() != end.is_ipv4() || start <= end,
            _ => true,
        }
    };
    rule("start must not be above end", cel, ordered)
        .at(".start")
        .say("'start ' + self.start + ' is above end ' + self.end", |new, _| {
            format!("start {} is above end {}", shown(new, "start"), shown(new, "end"))
        })
}

/// R118: a slice is not larger than the network it is cut from.
fn host_bits_fit() -> Rule {
    let too_small =
        "self.perNodeHostBits > (cidr(NET).ip().family() == 4 ? 32 : 128) - cidr(NET).prefixLength()";
    let cel = format!("!has(self.perNodeHostBits) || !{}", any_net_cel("self", too_small));
    rule("perNodeHostBits must not exceed the host bits of the network (8 in an IPv4 /24)", cel, |new, _| {
        let bits = new.get("perNodeHostBits").and_then(Value::as_u64).unwrap_or(0);
        nets(new).iter().all(|net| bits <= u64::from(address::host_bits(net)))
    })
    .at(".perNodeHostBits")
}

/// D9: what is excluded stays excluded; more may be. What one range excludes no other gives either, so that another range
/// alone would not help.
fn excludes_grow() -> Rule {
    let cel = "!has(oldSelf.exclude) || oldSelf.exclude.all(e, has(self.exclude) && e in self.exclude)";
    rule(
        "exclude may only grow: keep every entry as it is written and add more; to give what is excluded, delete and \
         re-create the pool (addresses that are held are kept)",
        cel,
        |new, old| list(old, "exclude").iter().all(|e| list(new, "exclude").contains(e)),
    )
    .at(".exclude")
    .forbidden()
}

/// R11, R61, R94: a field that is what it was.
fn fixed(instead: &'static str, name: &'static str, field: &'static str) -> Rule {
    rule(instead, unchanged(name), move |new, old| new.get(name) == old.get(name)).at(field).forbidden()
}

fn shown<'a>(value: &'a Value, field: &str) -> &'a str {
    text(value, field).unwrap_or_default()
}
