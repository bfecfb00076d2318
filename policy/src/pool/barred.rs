//! Addresses that belong to somebody else: other pools' ranges, Service and pod CIDRs (R102).
//!
//! The caller gathers them once per pass; they are not part of a pool, because they change when others do.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use super::Pool;
use super::family::{Both, Family, bounds, split};
use super::runs::{Run, Runs};

/// Networks and ranges that are never given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Barred {
    runs: Both<Runs>,
    /// For messages: what is barred, and by whom.
    owners: Vec<(Family, Run, String)>,
}

impl Barred {
    /// Bars a network; `owner` is for messages: `Service CIDR 10.96.0.0/12`.
    pub fn net(&mut self, net: IpNet, owner: impl Into<String>) {
        let (family, first, last) = bounds(net);
        self.run(family, (first, last), owner.into());
    }

    /// Bars all ranges of another pool, from start to end.
    pub fn pool(&mut self, other: &Pool) {
        for part in other.ranges.iter().flat_map(|range| range.parts()) {
            self.run(part.family, (part.start, part.end), format!("pool {}", other.name));
        }
    }

    fn run(&mut self, family: Family, (first, last): Run, owner: String) {
        self.runs.get_mut(family).insert(first, last);
        self.owners.push((family, (first, last), owner));
    }

    pub fn contains(&self, ip: IpAddr) -> bool {
        let (family, number) = split(ip);
        self.runs.get(family).contains(number)
    }

    /// Who an address belongs to.
    pub fn owner(&self, ip: IpAddr) -> Option<&str> {
        let (family, number) = split(ip);
        let has = |(f, (first, last), _): &&(Family, Run, String)| {
            *f == family && (*first..=*last).contains(&number)
        };
        self.owners.iter().find(has).map(|(_, _, owner)| owner.as_str())
    }

    /// Who else owns addresses of these ranges that could be given otherwise: named once each, in order.
    /// Linear in what is barred; asked for a refusal only.
    pub(crate) fn owners_in(&self, pool: &Pool, full: &[(String, Family)]) -> Vec<String> {
        let mut owners = BTreeSet::new();
        for (name, family) in full {
            let part = pool.ranges.iter().find(|range| range.name == *name);
            let Some(part) = part.and_then(|range| range.part(*family)) else {
                continue;
            };
            let meets = |(f, (first, last), _): &&(Family, Run, String)| {
                f == family && *first <= part.last && part.first <= *last
            };
            owners.extend(self.owners.iter().filter(meets).map(|(_, _, owner)| owner.clone()));
        }
        owners.into_iter().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    pub(crate) fn runs(&self, family: Family) -> &Runs {
        self.runs.get(family)
    }
}

/// Networks with a shared owner, such as all Service CIDRs.
impl FromIterator<(IpNet, String)> for Barred {
    fn from_iter<I: IntoIterator<Item = (IpNet, String)>>(nets: I) -> Barred {
        let mut barred = Barred::default();
        for (net, owner) in nets {
            barred.net(net, owner);
        }
        barred
    }
}
