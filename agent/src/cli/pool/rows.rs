//! The rows that explain a pool: neighbours that stand alike as one run, never an address at a time.
//!
//! A pool may have 2⁶⁴ addresses, but only few places where one address stands otherwise than the one before it: the
//! edges of ranges, bands, exclusions and slices, gateways, reservations, and what is held. [`walk`] goes from one such
//! place to the next and asks `policy` how the first address after it stands. Cost: O(places · log places) for what is
//! asked of the iterator, whatever the size of the range.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use policy::pool::{Band, Barred, BlockSpec, Family, Part, Range, Recorded, Word};

use crate::ledger::Holding;
use crate::networks;
use crate::pools::{KnownPool, Pools};

/// A range of at most so many addresses is shown address by address: it still fits a screen.
const SMALL: u128 = 32;

/// A pool among others.
pub(super) struct View<'a> {
    pub(super) known: &'a KnownPool,
    /// What other pools have too, or the cluster.
    pub(super) barred: Barred,
    /// The same as first and last addresses.
    others: Vec<(IpAddr, IpAddr)>,
}

impl<'a> View<'a> {
    pub(super) fn new(known: &'a KnownPool, pools: &Pools, services: &[ServiceCIDR]) -> Self {
        let name = known.pool.name();
        let others = pools.iter().filter(|other| other.pool.name() != name);
        let parts = others.flat_map(|other| other.pool.ranges()).flat_map(Range::parts);
        let parts = parts.map(|part| (part.start(), part.end()));
        let cluster = networks::cidrs(services).map(|net| (net.network(), net.broadcast()));
        let others = parts.chain(cluster).collect();
        let mut barred = pools.barred_for(name);
        networks::bar(&mut barred, &[], services);
        Self { known, barred, others }
    }
}

/// Addresses that stand alike, next to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) range: String,
    /// None for an address outside start and end, such as a gateway there.
    pub(super) offsets: Option<(u128, u128)>,
    pub(super) first: IpAddr,
    pub(super) last: IpAddr,
    /// Of a sliced pool, the slices of both ends.
    pub(super) slices: Option<(IpNet, IpNet)>,
    pub(super) standing: Standing,
}

/// How an address stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) status: Word,
    pub(super) band: Option<&'static str>,
    pub(super) holding: Option<Holding>,
    /// Why it is excluded, whose gateway it is.
    pub(super) why: Option<String>,
    pub(super) reserved_for: Option<String>,
    /// The node that owns the slice it is in.
    pub(super) slice: Option<(IpNet, String)>,
    /// The slice it is in touches the static band.
    pub(super) chosen_last: bool,
    pub(super) draining: bool,
}

impl Standing {
    /// The node that has it, or that it is kept for.
    pub(super) fn node(&self) -> Option<&str> {
        let holder = self.holding.as_ref().and_then(|holding| holding.by.as_ref());
        match &self.holding {
            Some(_) => holder.map(|by| by.node.as_str()),
            None => self.reserved_for.as_deref(),
        }
    }
}

/// How one address stands; nothing if the pool doesn't know it.
fn standing(view: &View<'_>, ip: IpAddr) -> Option<Standing> {
    let (known, pool) = (view.known, &view.known.pool);
    let holding = known.held.get(&ip).cloned();
    let recorded = holding.as_ref().map(|holding| match holding.quarantined {
        Some(_) => Recorded::Quarantined,
        None => Recorded::Held,
    });
    let stands = pool.standing(ip, &view.barred, recorded);
    if stands.word == Word::Outside {
        return None;
    }
    let slice = known.slices.iter().find(|slice| slice.cidr.contains(&ip));
    let around = pool.range_of(ip).and_then(|range| range.slice_around(ip));
    Some(Standing {
        status: stands.word,
        band: stands.band.map(Band::as_str),
        holding,
        why: stands.why,
        reserved_for: stands.reserved_for,
        slice: slice.map(|slice| (slice.cidr, slice.node.clone())),
        chosen_last: slice.is_none() && around.is_some_and(|(_, last)| last),
        draining: stands.draining,
    })
}

/// The rows of one family of a range, in order.
pub(super) fn walk<'a>(
    view: &'a View<'a>,
    range: &'a Range,
    part: &'a Part,
) -> impl Iterator<Item = Row> + 'a {
    let edges = Edges::of(view, part);
    let single = part.last_offset() < SMALL;
    let mut at = Some(0);
    std::iter::from_fn(move || {
        let first = at?;
        let from = part.address_at(first)?;
        let standing = standing(view, from)?;
        let mut last = first;
        if !single {
            last = edges.before_next(first);
            while let Some(next) = part.address_at(last + 1)
                && self::standing(view, next).as_ref() == Some(&standing)
            {
                last = edges.before_next(last + 1);
            }
        }
        at = (last < part.last_offset()).then_some(last + 1);
        let to = part.address_at(last)?;
        Some(Row {
            range: range.name().to_owned(),
            offsets: Some((first, last)),
            first: from,
            last: to,
            slices: slices(range, from, to),
            standing,
        })
    })
}

fn slices(range: &Range, first: IpAddr, last: IpAddr) -> Option<(IpNet, IpNet)> {
    Some((range.slice_around(first)?.0, range.slice_around(last)?.0))
}

/// The row of one address in each range that has it, or none.
pub(super) fn at(view: &View<'_>, ip: IpAddr) -> Vec<Row> {
    let ip = ip.to_canonical();
    let Some(standing) = standing(view, ip) else {
        return Vec::new();
    };
    let row = |range: &str, offsets, slices| Row {
        range: range.to_owned(),
        offsets,
        first: ip,
        last: ip,
        slices,
        standing: standing.clone(),
    };
    let rows: Vec<Row> = view
        .known
        .pool
        .ranges()
        .iter()
        .filter_map(|range| {
            let offset = range.part(Family::of(ip))?.offset_of(ip)?;
            Some(row(range.name(), Some((offset, offset)), slices(range, ip, ip)))
        })
        .collect();
    if rows.is_empty() { vec![row("-", None, None)] } else { rows }
}

/// The offsets of a part at which a new run may begin.
struct Edges<'a> {
    part: &'a Part,
    begins: BTreeSet<u128>,
    octet_ends: bool,
}

impl<'a> Edges<'a> {
    fn of(view: &View<'_>, part: &'a Part) -> Self {
        let known = view.known;
        let mut edges = Self { part, begins: BTreeSet::new(), octet_ends: false };
        let family = part.family();
        for (range, of) in known.pool.ranges().iter().filter_map(|range| Some((range, range.part(family)?))) {
            edges.run(of.start(), of.end());
            for (first, last) in of.static_band().into_iter().chain(of.dynamic_band()) {
                edges.run(first, last);
                // Slices are chosen last as far as the band's last one goes.
                if let Some((slice, _)) = range.slice_around(last) {
                    edges.run(slice.network(), slice.broadcast());
                }
            }
            of.gateway().into_iter().for_each(|ip| edges.run(ip, ip));
        }
        for range in known.spec.range.iter().chain(known.spec.ranges.iter().flatten()) {
            edges.octet_ends |= range.skip_octet_ends && part.family() == Family::V4;
            for block in range.block.iter().chain(&range.ipv4).chain(&range.ipv6) {
                edges.excluded(block);
            }
        }
        let reserved = known.spec.reservations.iter().filter_map(|one| one.ip.parse().ok());
        let alone: Vec<IpAddr> = reserved.chain(known.held.keys().copied()).collect();
        alone.into_iter().for_each(|ip| edges.run(ip, ip));
        view.others.iter().for_each(|(first, last)| edges.run(*first, *last));
        for slice in &known.slices {
            edges.run(slice.cidr.network(), slice.cidr.broadcast());
        }
        edges
    }

    fn excluded(&mut self, block: &BlockSpec) {
        for text in &block.exclude {
            let net = text.parse::<IpNet>().ok();
            let Some(net) = net.or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from)) else {
                continue;
            };
            self.run(net.network(), net.broadcast());
        }
    }

    /// What lies from `first` to `last` may stand otherwise than what lies around it.
    fn run(&mut self, first: IpAddr, last: IpAddr) {
        let (start, end) = (self.part.start(), self.part.end());
        if first.is_ipv4() != start.is_ipv4() || first > end || last < start {
            return;
        }
        self.begins.extend(self.part.offset_of(first.max(start)));
        self.begins.extend(self.part.offset_of(last.min(end)).map(|offset| offset + 1));
    }

    /// The last offset of the run that holds `offset`.
    fn before_next(&self, offset: u128) -> u128 {
        let listed = self.begins.range(offset + 1..).next().copied();
        let octet = self.octet_ends.then(|| self.next_octet_edge(offset)).flatten();
        let next = listed.into_iter().chain(octet).min();
        next.map_or(self.part.last_offset(), |next| (next - 1).min(self.part.last_offset()))
    }

    /// The next offset after this one whose address ends in 255, 0 or 1: an octet's end, or what follows on one.
    fn next_octet_edge(&self, offset: u128) -> Option<u128> {
        let IpAddr::V4(ip) = self.part.address_at(offset)? else {
            return None;
        };
        Some(match ip.octets()[3] {
            0 | 255 => offset + 1,
            within => offset + u128::from(255 - within),
        })
    }
}
