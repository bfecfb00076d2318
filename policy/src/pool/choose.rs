//! `choose`: the next address for a holder, or why there is none.
//!
//! Called by `claim::serve` for a request that holds nothing yet. See `pool` for the order of the search.

mod refusal;
pub(crate) mod scan;

use std::collections::BTreeMap;
use std::net::IpAddr;

pub use refusal::NoAddress;
use scan::Scan;

use super::family::{Family, split};
use super::range::{Part, Range};
use super::rank::{matches, rank};
use super::{Barred, Pool, Taken, hash};

/// A pool with what is going on in it.
#[derive(Debug, Clone, Copy)]
pub struct PoolView<'a> {
    pub pool: &'a Pool,
    pub taken: &'a Taken,
    pub barred: &'a Barred,
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub struct Holder<'a> {
    pub node: &'a str,
    pub capture: &'a str,
    /// Found in use on the wire by this holder.
    pub declined: &'a [IpAddr],
    pub want: Want,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Want {
    Any,
    /// A literal address of a policy: this one, in any band (R51).
    Exactly(IpAddr),
}

/// What a range's selector looks at.
#[derive(Debug, Clone, Copy)]
pub struct NodeView<'a> {
    pub name: &'a str,
    pub labels: &'a BTreeMap<String, String>,
}

/// What a holder gets: one address, or one of each family.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Choice {
    pub range: String,
    pub kind: Kind,
    pub v4: Option<Given>,
    pub v6: Option<Given>,
    pub attributes: BTreeMap<String, String>,
}

impl Choice {
    /// IPv4 first.
    pub fn given(&self) -> impl Iterator<Item = &Given> {
        self.v4.iter().chain(&self.v6)
    }
}

/// How an address came to its holder: `dynamic`, `static`, `reserved`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Dynamic,
    Static,
    Reserved,
}

impl Kind {
    /// As the ledger spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Dynamic => "dynamic",
            Kind::Static => "static",
            Kind::Reserved => "reserved",
        }
    }
}

/// An address as a capture returns it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Given {
    pub ip: IpAddr,
    /// Of the range's CIDR (R19).
    pub prefix_length: u8,
    pub gateway: Option<IpAddr>,
}

/// The next address for this holder. Same input, same answer.
pub fn choose(view: &PoolView<'_>, holder: &Holder<'_>, node: &NodeView<'_>) -> Result<Choice, NoAddress> {
    let taken = view.taken.fitted(view.pool);
    let search = Search { pool: view.pool, taken: &taken, barred: view.barred, holder, node };
    match holder.want {
        Want::Exactly(ip) => search.exactly(ip.to_canonical()),
        Want::Any => match search.reserved() {
            Some(choice) => Ok(choice),
            None => search.any(),
        },
    }
}

struct Search<'a> {
    pool: &'a Pool,
    taken: &'a Taken,
    barred: &'a Barred,
    holder: &'a Holder<'a>,
    node: &'a NodeView<'a>,
}

impl<'a> Search<'a> {
    fn hash(&self) -> u128 {
        hash::start(self.holder.node, &self.pool.name, self.holder.capture)
    }

    fn scan(&self, family: Family) -> Scan<'a> {
        Scan {
            family,
            line: self.pool.lines.get(family),
            taken: self.taken.runs(family),
            barred: self.barred.runs(family),
            declined: self.holder.declined,
        }
    }

    /// The ranges of the pool that give and are for this node, best first.
    fn any(&self) -> Result<Choice, NoAddress> {
        let hash = self.hash();
        let mut full = Vec::new();
        let mut attempt = |range: &Range| {
            let found = self.fill(range, |part| self.scan(part.family).part(part, hash));
            found
                .map(|(v4, v6)| choice(range, Kind::Dynamic, v4, v6))
                .map_err(|family| full.push((range.name.clone(), family)))
        };
        let chosen = match self.pool.ranges.as_slice() {
            // The usual pool: nothing to rank, nothing to allocate.
            [only] if only.gives() && matches(only, self.node) => attempt(only).ok(),
            [_] => None,
            _ => rank(self.pool, self.node).into_iter().find_map(|range| attempt(range).ok()),
        };
        chosen.ok_or_else(|| self.refuse(full))
    }

    fn refuse(&self, full: Vec<(String, Family)>) -> NoAddress {
        let (pool, node) = (self.pool.name.clone(), self.node.name.to_owned());
        if !full.is_empty() {
            let barred = self.barred.owners_in(self.pool, &full);
            return NoAddress::Exhausted { pool, node, full, barred };
        }
        let draining: Vec<String> = self
            .pool
            .ranges
            .iter()
            .filter(|r| !r.half && matches(r, self.node))
            .map(|r| r.name.clone())
            .collect();
        match draining.is_empty() {
            true => NoAddress::NoRangeForNode { pool, node },
            false => NoAddress::AllDraining { pool, node, draining },
        }
    }

    /// The first reservation of the node that can be had: its range may be any that gives, for the
    /// administrator named the node; ranges meant for the node come first.
    fn reserved(&self) -> Option<Choice> {
        if self.pool.reservations_for(self.holder.node).is_empty() {
            return None;
        }
        let hash = self.hash();
        let ranked = rank(self.pool, self.node);
        let others =
            self.pool.ranges.iter().filter(|r| r.gives() && !ranked.iter().any(|s| std::ptr::eq(*s, *r)));
        ranked.iter().copied().chain(others).find_map(|range| {
            range.parts().find_map(|part| self.own(part))?;
            let found =
                self.fill(range, |part| self.own(part).or_else(|| self.scan(part.family).part(part, hash)));
            found.ok().map(|(v4, v6)| choice(range, Kind::Reserved, v4, v6))
        })
    }

    /// A reservation of the node in this part that is free.
    fn own(&self, part: &Part) -> Option<u128> {
        let mine = self.pool.reservations_for(self.holder.node).iter();
        mine.filter(|ip| Family::of(**ip) == part.family && part.usable(split(**ip).1))
            .find(|ip| {
                !self.taken.contains(**ip)
                    && !self.barred.contains(**ip)
                    && !self.holder.declined.contains(ip)
            })
            .map(|ip| split(*ip).1)
    }

    /// Both families of a range, or the family that is lacking (R92).
    fn fill(&self, range: &Range, find: impl Fn(&Part) -> Option<u128>) -> Result<Pair, Family> {
        let given = |family| match range.part(family) {
            None => Ok(None),
            Some(part) => find(part).map(|number| Some(give(part, number))).ok_or(family),
        };
        Ok((given(Family::V4)?, given(Family::V6)?))
    }

    fn exactly(&self, ip: IpAddr) -> Result<Choice, NoAddress> {
        let pool = self.pool.name.clone();
        let number = split(ip).1;
        if !self.pool.contains(ip) {
            return Err(NoAddress::NotInPool { ip, pool });
        }
        if self.taken.contains(ip) {
            return Err(NoAddress::Held { ip, pool });
        }
        let kind = literal(self.pool, self.barred, self.holder, ip)?;
        let has = |range: &&Range| range.part(Family::of(ip)).is_some_and(|part| part.usable(number));
        let ranked = rank(self.pool, self.node);
        let range = ranked
            .iter()
            .copied()
            .find(has)
            .or_else(|| self.pool.ranges.iter().find(|r| r.gives_named() && has(r)));
        let Some((range, part)) = range.and_then(|r| Some((r, r.part(Family::of(ip))?))) else {
            let range = self.pool.range_of(ip).map(|r| r.name.clone()).unwrap_or_default();
            return Err(NoAddress::Draining { ip, pool, range });
        };
        let given = Some(give(part, number));
        Ok(match part.family {
            Family::V4 => choice(range, kind, given, None),
            Family::V6 => choice(range, kind, None, given),
        })
    }
}

/// What a literal address is given as, taken or not; or why this holder may never have it.
pub(super) fn literal(
    pool: &Pool,
    barred: &Barred,
    holder: &Holder<'_>,
    ip: IpAddr,
) -> Result<Kind, NoAddress> {
    let name = || pool.name.clone();
    if let Some(why) = pool.never_given(ip) {
        return Err(NoAddress::Excluded { ip, pool: name(), why });
    }
    let reserved = pool.reserved_for(ip);
    if let Some(owner) = reserved.filter(|owner| *owner != holder.node) {
        return Err(NoAddress::Reserved { ip, pool: name(), node: owner.to_owned() });
    }
    if let Some(owner) = barred.owner(ip) {
        return Err(NoAddress::Barred { ip, pool: name(), owner: owner.to_owned() });
    }
    if holder.declined.contains(&ip) {
        return Err(NoAddress::Declined { ip, pool: name() });
    }
    Ok(if reserved.is_some() { Kind::Reserved } else { Kind::Static })
}

type Pair = (Option<Given>, Option<Given>);

fn give(part: &Part, number: u128) -> Given {
    Given { ip: part.family.address(number), prefix_length: part.prefix_length(), gateway: part.gateway() }
}

fn choice(range: &Range, kind: Kind, v4: Option<Given>, v6: Option<Given>) -> Choice {
    Choice { range: range.name.clone(), kind, v4, v6, attributes: range.attributes.clone() }
}
