//! What can't be given because somebody has it: held, quarantined, or otherwise in use.
//!
//! Kept as maximal runs on the pool's lines, so that a scan passes any number of neighbours in one
//! lookup, whatever lies between them. An address that the line doesn't have (reserved, excluded later,
//! out of range) is remembered one by one. Cost: O(log n) per operation, memory by what is in it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use super::Pool;
use super::family::{Both, Family, split};
use super::line::Line;
use super::runs::Runs;

/// A set of addresses, made for one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    lines: Both<Arc<Line>>,
    /// In places of the line.
    runs: Both<Runs>,
    /// Not on the line.
    others: Both<BTreeSet<u128>>,
    len: usize,
}

impl Taken {
    /// Nothing taken.
    pub fn new(pool: &Pool) -> Taken {
        Taken { lines: pool.lines.clone(), runs: Both::default(), others: Both::default(), len: 0 }
    }

    /// These addresses taken.
    pub fn of(pool: &Pool, addresses: impl IntoIterator<Item = IpAddr>) -> Taken {
        let mut taken = Taken::new(pool);
        taken.extend(addresses);
        taken
    }

    /// Whether it was not in before.
    pub fn insert(&mut self, ip: IpAddr) -> bool {
        let (family, number) = split(ip);
        let new = match self.lines.get(family).place_of(number) {
            None => self.others.get_mut(family).insert(number),
            Some(place) => {
                let runs = self.runs.get_mut(family);
                let new = !runs.contains(place);
                if new {
                    runs.insert(place, place);
                }
                new
            }
        };
        self.len += usize::from(new);
        new
    }

    /// Whether it was in.
    pub fn remove(&mut self, ip: IpAddr) -> bool {
        let (family, number) = split(ip);
        let was = match self.lines.get(family).place_of(number) {
            None => self.others.get_mut(family).remove(&number),
            Some(place) => {
                let runs = self.runs.get_mut(family);
                let was = runs.contains(place);
                if was {
                    runs.remove(place, place);
                }
                was
            }
        };
        self.len -= usize::from(was);
        was
    }

    pub fn contains(&self, ip: IpAddr) -> bool {
        let (family, number) = split(ip);
        match self.lines.get(family).place_of(number) {
            None => self.others.get(family).contains(&number),
            Some(place) => self.runs.get(family).contains(place),
        }
    }

    /// How many addresses are taken.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Every address in it, IPv4 first; within a family those on the line first, each in order.
    pub fn iter(&self) -> impl Iterator<Item = IpAddr> + '_ {
        Family::BOTH.into_iter().flat_map(move |family| {
            let line = self.lines.get(family);
            let placed = self.runs.get(family).iter().flat_map(|(first, last)| first..=last);
            let on = placed.filter_map(move |place| line.at(place));
            on.chain(self.others.get(family).iter().copied()).map(move |number| family.address(number))
        })
    }

    pub(crate) fn runs(&self, family: Family) -> &Runs {
        self.runs.get(family)
    }

    /// The same addresses, for this pool: made for another spec of it, its places mean nothing. Never guess, refit.
    pub(crate) fn fitted(&self, pool: &Pool) -> Cow<'_, Taken> {
        match self.lines == pool.lines {
            true => Cow::Borrowed(self),
            false => Cow::Owned(Taken::of(pool, self.iter())),
        }
    }
}

impl Extend<IpAddr> for Taken {
    fn extend<I: IntoIterator<Item = IpAddr>>(&mut self, addresses: I) {
        for ip in addresses {
            self.insert(ip);
        }
    }
}
