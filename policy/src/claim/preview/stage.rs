//! A pool as a preview plays on it: what is taken grows, the ledger stays as it was read.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::{Ask, Gets, Lacks, Reason, Wish};
use crate::claim::ledger::Ledger;
use crate::claim::names::NodeUid;
use crate::pool::{
    Barred, Choice, Holder, Kind, NoAddress, Pool, PoolView, SliceView, Taken, TakenSlices, Want, choose,
    choose_slice,
};

/// A claim, whatever id it bears.
type ClaimOf = (NodeUid, String, String);

pub struct Stage<'a> {
    pool: &'a Pool,
    barred: &'a Barred,
    gives: bool,
    /// What each claim has, held or quarantined, with whether it is held.
    held: BTreeMap<ClaimOf, Vec<(IpAddr, bool)>>,
    /// The holders of addresses, for literals: Node and policy, none of what a host merely shows; and whether it is held.
    holders: BTreeMap<IpAddr, (NodeUid, String, bool)>,
    taken: Taken,
    /// Of a sliced pool: each slice, and whose it is. By UID: a Node made anew under its name has none of what the former had.
    slices: Vec<(IpNet, NodeUid)>,
    /// Those of them that nodes would take.
    cut: Vec<IpNet>,
    /// Of a sliced pool: whose each address is that somebody holds or shows, in a slice or not.
    owners: BTreeMap<IpAddr, NodeUid>,
}

impl<'a> Stage<'a> {
    /// `ledger` has the entries of the pool's slices too.
    pub fn new(pool: &'a Pool, barred: &'a Barred, ledger: &Ledger, slices: Vec<(IpNet, NodeUid)>) -> Self {
        let mut held: BTreeMap<ClaimOf, Vec<(IpAddr, bool)>> = BTreeMap::new();
        let mut holders = BTreeMap::new();
        for (ip, entry) in ledger.allocations.iter().filter(|(_, entry)| entry.is_recoverable()) {
            let claim = (entry.node_uid.clone(), entry.policy.to_string(), entry.capture.to_string());
            held.entry(claim).or_default().push((*ip, entry.is_held()));
            holders.insert(*ip, (entry.node_uid.clone(), entry.policy.to_string(), entry.is_held()));
        }
        let taken = Taken::of(pool, ledger.allocations.keys().copied());
        let entries = ledger.allocations.iter().filter(|_| pool.is_sliced());
        let owners = entries.map(|(ip, entry)| (*ip, entry.node_uid.clone())).collect();
        Self { pool, barred, gives: ledger.gives(), held, holders, taken, slices, owners, cut: Vec::new() }
    }

    /// How many claims could still be served; of a sliced pool those of nodes that have no slice yet.
    pub fn available(&self) -> u128 {
        let slices = self.slices.iter().map(|(cidr, _)| *cidr);
        self.pool.counts(self.taken.iter(), slices, self.barred).available
    }

    pub(super) fn ask(&mut self, ask: &Ask<'_>, wish: &Wish) -> Result<Gets, Lacks> {
        if let Some(has) = self.has(ask, wish) {
            return Ok(has);
        }
        if !self.gives {
            return Err(Lacks::NotGiving { pool: wish.pool.clone() });
        }
        if !ask.ready {
            return Err(Lacks::NotReady);
        }
        let holder = Holder { node: ask.node.name, capture: &wish.capture, declined: &[], want: wish.want };
        let given = match self.pool.is_sliced() {
            true => self.of_slices(ask, &holder)?,
            false => self.of_pool(ask, &holder)?,
        };
        self.taken.extend(given.ips.iter().copied());
        Ok(given)
    }

    /// With the slice that would have been taken for it.
    pub(super) fn give_back(&mut self, ips: &[IpAddr]) {
        for ip in ips {
            self.taken.remove(*ip);
        }
        let goes = |cidr: &IpNet| self.cut.contains(cidr) && ips.iter().any(|ip| cidr.contains(ip));
        self.slices.retain(|(cidr, _)| !goes(cidr));
    }

    /// What the node has by this very claim; of a literal, by any of the policy's, or without one.
    fn has(&self, ask: &Ask<'_>, wish: &Wish) -> Option<Gets> {
        let mine: Vec<(IpAddr, bool)> = match wish.want {
            Want::Exactly(ip) => {
                let (uid, policy, held) = self.holders.get(&ip)?;
                let is_own = uid == ask.uid && ["", ask.policy].contains(&policy.as_str());
                is_own.then(|| vec![(ip, *held)])?
            }
            Want::Any => {
                let claim = (ask.uid.clone(), ask.policy.to_owned(), wish.capture.clone());
                let mine = self.held.get(&claim)?;
                // What is held counts before what is quarantined.
                let held: Vec<_> = mine.iter().copied().filter(|(_, held)| *held).collect();
                if held.is_empty() { mine.clone() } else { held }
            }
        };
        let reason = if mine.iter().all(|(_, held)| *held) { Reason::Holds } else { Reason::Returns };
        let ips: Vec<IpAddr> = mine.into_iter().map(|(ip, _)| ip).collect();
        let range = self.pool.speakers(&ask.node, wish.want, &ips).first().copied().flatten();
        Some(Gets { range: range.map(|range| range.name().to_owned()).unwrap_or_default(), ips, reason })
    }

    fn of_pool(&self, ask: &Ask<'_>, holder: &Holder<'_>) -> Result<Gets, NoAddress> {
        let choose_from = |taken: &Taken| {
            choose(&PoolView { pool: self.pool, taken, barred: self.barred }, holder, &ask.node)
        };
        let choice = choose_from(&self.taken)?;
        let reason = match choice.kind {
            Kind::Reserved => Reason::Reserved,
            Kind::Static => Reason::Named,
            Kind::Dynamic => {
                let range = self.pool.ranges().iter().find(|range| range.name() == choice.range);
                let selects = range.is_some_and(|range| range.selector().is_some());
                let first = choose_from(&Taken::new(self.pool)).ok();
                let own = first.is_some_and(|first| ips(&first) == ips(&choice));
                Reason::Chosen { range: selects.then(|| choice.range.clone()), own }
            }
        };
        Ok(Gets { ips: ips(&choice), range: choice.range, reason })
    }

    /// Of the node's own slices; where they are full, of the next one that it would take.
    fn of_slices(&mut self, ask: &Ask<'_>, holder: &Holder<'_>) -> Result<Gets, Lacks> {
        let own = self.slices.iter().filter(|(_, owner)| owner == ask.uid).map(|(cidr, _)| *cidr);
        // What this pool would not cut, left from another spec, gives nothing.
        let own: Vec<IpNet> = own.filter(|cidr| self.pool.within(&[*cidr]).is_ok()).collect();
        match self.within(&own, ask, holder, false) {
            Err(Lacks::NoAddress(_)) => {}
            other => return other,
        }
        // As when it is served: a block in which somebody else has an address is not to be had either.
        let foreign =
            self.owners.iter().filter(|(_, owner)| *owner != ask.uid).map(|(ip, _)| IpNet::from(*ip));
        let taken = TakenSlices::of(self.pool, self.slices.iter().map(|(cidr, _)| *cidr).chain(foreign));
        let view = SliceView { pool: self.pool, taken: &taken, barred: self.barred };
        let next = choose_slice(&view, holder, &ask.node)?;
        let next: Vec<IpNet> = next.v4.iter().chain(&next.v6).map(|slice| slice.cidr).collect();
        let given = self.within(&next, ask, holder, true)?;
        self.cut.extend(&next);
        self.slices.extend(next.into_iter().map(|cidr| (cidr, ask.uid.clone())));
        Ok(given)
    }

    fn within(&self, slices: &[IpNet], ask: &Ask<'_>, holder: &Holder<'_>, new: bool) -> Result<Gets, Lacks> {
        let pool = self.pool.within(slices)?;
        let taken = Taken::of(&pool, self.taken.iter());
        let choice =
            choose(&PoolView { pool: &pool, taken: &taken, barred: self.barred }, holder, &ask.node)?;
        let ips = ips(&choice);
        let around = |ip: &IpAddr| slices.iter().find(|cidr| cidr.contains(ip)).copied();
        let cidr = ips.iter().find_map(around);
        let reason = match (choice.kind, cidr) {
            (Kind::Reserved, _) => Reason::Reserved,
            (Kind::Static, _) => Reason::Named,
            (Kind::Dynamic, Some(cidr)) => Reason::Slice { cidr, new },
            (Kind::Dynamic, None) => Reason::Chosen { range: None, own: false },
        };
        Ok(Gets { ips, range: choice.range, reason })
    }
}

fn ips(choice: &Choice) -> Vec<IpAddr> {
    choice.given().map(|given| given.ip).collect()
}
