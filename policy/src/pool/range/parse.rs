//! From a `RangeSpec` to a `Range`: every check that needs no other range.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{Part, Range, SINGLE};
use crate::pool::band::StaticBand;
use crate::pool::error::{Findings, Problem, Remark};
use crate::pool::family::{Family, bounds, split};
use crate::pool::runs::Runs;
use crate::pool::selector::Selector;
use crate::pool::spec::{BlockSpec, RangeSpec};

/// Shortest prefix of a range. Nobody owns more than a /8, and sums of a few of these fit 128 bits.
const SHORTEST: u8 = 8;

/// `None` only together with an error in `found`.
pub(crate) fn range(spec: &RangeSpec, path: &str, band: StaticBand, found: &mut Findings) -> Option<Range> {
    let (v4, v6) = families(spec, path, found)?;
    if spec.skip_octet_ends && v4.is_none() {
        found.warn(format!("{path}.skipOctetEnds"), Remark::NoOctetEnds);
    }
    let selector = spec
        .node_selector
        .as_ref()
        .map(|selector| Selector::compile(selector, &format!("{path}.nodeSelector"), found));
    let mut range = Range {
        name: if spec.name.is_empty() { SINGLE.to_owned() } else { spec.name.clone() },
        v4,
        v6,
        skip_octet_ends: spec.skip_octet_ends,
        host_bits: None,
        selector,
        attributes: spec.attributes.clone(),
        state: spec.state,
        half: false,
    };
    if let Some(bits) = spec.per_node_host_bits {
        slice(&mut range, bits, &format!("{path}.perNodeHostBits"), found)?;
    }
    for part in range.v4.iter_mut().chain(&mut range.v6) {
        part.band = band.of(part.size);
    }
    Some(range)
}

type Parts = (Option<Part>, Option<Part>);

fn families(spec: &RangeSpec, path: &str, found: &mut Findings) -> Option<Parts> {
    match (&spec.block, &spec.ipv4, &spec.ipv6) {
        (Some(_), None, None) => {}
        (Some(_), _, _) => {
            found.error(path, Problem::TwoForms);
            return None;
        }
        (None, None, None) => {
            found.error(path, Problem::NoAddresses);
            return None;
        }
        (None, v4, v6) => {
            let mut read = |block: &Option<BlockSpec>, name: &str, family| match block {
                None => Some(None),
                Some(block) => part(block, &format!("{path}.{name}"), Some(family), found).map(Some),
            };
            // Both are read before either failure counts: all errors at once.
            let (v4, v6) = (read(v4, "ipv4", Family::V4), read(v6, "ipv6", Family::V6));
            return Some((v4?, v6?));
        }
    }
    let part = part(spec.block.as_ref()?, path, None, found)?;
    Some(match part.family {
        Family::V4 => (Some(part), None),
        Family::V6 => (None, Some(part)),
    })
}

fn part(spec: &BlockSpec, path: &str, family: Option<Family>, found: &mut Findings) -> Option<Part> {
    let cidr = cidr(&spec.cidr, &format!("{path}.cidr"), found);
    let mut bound = |text: &Option<String>, field: &str| {
        text.as_ref().map(|text| inside(text, &format!("{path}.{field}"), cidr, found))
    };
    let (start, end) = (bound(&spec.start, "start"), bound(&spec.end, "end"));
    let gateway = bound(&spec.gateway, "gateway");
    let mut exclude = excluded(&spec.exclude, path, cidr, found);

    let cidr = cidr?;
    if let Some(wanted) = family
        && wanted != bounds(cidr).0
    {
        found.error(format!("{path}.cidr"), Problem::WrongFamily { cidr, found: bounds(cidr).0, wanted });
        return None;
    }
    let (family, lowest, highest) = usable(cidr);
    let size = if start.is_none() && end.is_none() { whole(cidr) } else { 0 };
    // An address that was written and not understood stops here; its error is already noted.
    let (start, end) = match (start, end) {
        (None, None) => (lowest, highest),
        // The default gives way to what was written beyond it.
        (Some(start), None) => (start?, highest.max(start?)),
        (None, Some(end)) => (lowest.min(end?), end?),
        (Some(start), Some(end)) => (start?, end?),
    };
    let gateway = gateway.map_or(Some(None), |read| read.map(Some))?;
    let (from, to) = (family.address(start), family.address(end));
    if start > end {
        found.error(format!("{path}.start"), Problem::StartAboveEnd { start: from, end: to });
        return None;
    }
    let (mut first, mut last) = (start.max(lowest), end.min(highest));
    if first > last {
        found.warn(path, Remark::NothingUsable { start: from, end: to });
        (first, last) = (start, end);
        exclude.insert(first, last);
    }
    let size = if size == 0 { end - start + 1 } else { size };
    Some(Part { family, cidr, start, end, first, last, size, band: 0, gateway, exclude })
}

/// First and last address of a network that a host may have.
fn usable(cidr: IpNet) -> (Family, u128, u128) {
    let (family, first, last) = bounds(cidr);
    let host_bits = family.bits() - cidr.prefix_len();
    match family {
        _ if host_bits < 2 => (family, first, last),
        Family::V4 => (family, first + 1, last - 1),
        Family::V6 => (family, first + 1, last),
    }
}

fn whole(cidr: IpNet) -> u128 {
    let (_, first, last) = bounds(cidr);
    last - first + 1
}

fn cidr(text: &str, path: &str, found: &mut Findings) -> Option<IpNet> {
    let Ok(net) = text.parse::<IpNet>() else {
        // A missing one was reported when the manifest was read; built by hand it is simply no CIDR.
        found.error(path, Problem::NotACidr { text: text.to_owned() });
        return None;
    };
    let cidr = net.trunc();
    let problem = match cidr {
        _ if is_mapped(net.addr()) => Problem::Mapped { text: text.to_owned() },
        _ if cidr.prefix_len() < SHORTEST => Problem::TooLarge { cidr, least: SHORTEST },
        _ if cidr.addr().is_multicast() => Problem::NotForHosts { cidr, what: "multicast" },
        _ if cidr.addr().is_loopback() => Problem::NotForHosts { cidr, what: "loopback" },
        _ if cidr.addr().is_unspecified() => Problem::NotForHosts { cidr, what: "unspecified" },
        _ => {
            if net != cidr {
                found.warn(path, Remark::HostBits { text: text.to_owned(), cidr });
            }
            return Some(cidr);
        }
    };
    found.error(path, problem);
    None
}

fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// An address that must lie in `cidr` (where that could be read).
fn inside(text: &str, path: &str, cidr: Option<IpNet>, found: &mut Findings) -> Option<u128> {
    let Ok(ip) = text.parse::<IpAddr>() else {
        found.error(path, Problem::NotAnAddress { text: text.to_owned() });
        return None;
    };
    let cidr = cidr?;
    if cidr.contains(&ip) {
        return Some(split(ip).1);
    }
    found.error(path, Problem::OutsideCidr { ip, cidr });
    None
}

fn excluded(texts: &[String], path: &str, cidr: Option<IpNet>, found: &mut Findings) -> Runs {
    let mut runs = Runs::default();
    for (i, text) in texts.iter().enumerate() {
        let path = format!("{path}.exclude[{i}]");
        let net = match (text.parse::<IpAddr>(), text.parse::<IpNet>()) {
            (Ok(ip), _) => IpNet::from(ip),
            (_, Ok(net)) => net.trunc(),
            _ => {
                found.error(path, Problem::NotAddressOrCidr { text: text.clone() });
                continue;
            }
        };
        match cidr {
            Some(cidr) if !cidr.contains(&net) => {
                let problem = match text.parse() {
                    Ok(ip) => Problem::OutsideCidr { ip, cidr },
                    Err(_) => Problem::NetOutsideCidr { net, cidr },
                };
                found.error(path, problem);
            }
            _ => {
                let (_, first, last) = bounds(net);
                runs.insert(first, last);
            }
        }
    }
    runs
}

/// Cuts a range into blocks of 2^bits: what may be given shrinks to whole blocks.
fn slice(range: &mut Range, bits: u32, path: &str, found: &mut Findings) -> Option<()> {
    let mut failed = false;
    for part in range.v4.iter_mut().chain(&mut range.v6) {
        failed |= slice_part(part, bits, path, found).is_none();
    }
    range.host_bits = u8::try_from(bits).ok();
    (!failed).then_some(())
}

/// A block counts if all of it that hosts may have lies between start and end: a start at the first
/// usable address, written or default, loses nothing.
fn slice_part(part: &mut Part, bits: u32, path: &str, found: &mut Findings) -> Option<()> {
    let cidr = part.cidr;
    let most = part.family.bits() - cidr.prefix_len();
    if bits > u32::from(most) {
        found.error(path, Problem::SliceTooLarge { bits, cidr, most });
        return None;
    }
    let (_, network, top) = bounds(cidr);
    let (_, lowest, highest) = usable(cidr);
    let from = if part.start <= lowest { network } else { part.start };
    let to = if part.end >= highest { top } else { part.end };
    let block = 1_u128 << bits;
    let first = from.div_ceil(block) * block;
    let last = ((to + 1) / block * block).checked_sub(1).filter(|last| *last >= first);
    let Some(last) = last else {
        let (start, end) = (part.start(), part.end());
        found.warn(path, Remark::NoWholeSlice { bits, start, end });
        part.exclude.insert(part.first, part.last);
        part.size = 0;
        return Some(());
    };
    let (first_used, last_used) = (first.max(part.first), last.min(part.last));
    let lost = (part.last - part.first) - last_used.saturating_sub(first_used);
    if lost > 0 {
        found.warn(path, Remark::NotInWholeBlocks { lost, block });
    }
    (part.first, part.last) = (first_used, last_used);
    part.size = last - first + 1;
    Some(())
}
