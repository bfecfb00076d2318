//! Which slices a node still needs: thought through before the first is made, so that none is made in vain.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::{Lacking, NewSlice, NodeSlice, SlicedView, requested};
use crate::claim::ledger::Ledger;
use crate::claim::names::{NodeName, RequestId};
use crate::claim::record::{Lease, Request, SlotKey};
use crate::claim::serve::Asked;
use crate::pool::{
    Holder, Kind, NoAddress, NodeView, Pool, PoolView, SliceChoice, SliceView, Taken, TakenSlices, Want,
    choose, choose_slice,
};

/// What is to be made, and who gets nothing.
#[derive(Default)]
pub(super) struct Grown {
    pub(super) create: Vec<NewSlice>,
    pub(super) lacking: Lacking,
    /// What a journal names, in a slice of another node.
    pub(super) lost: BTreeMap<RequestId, (IpAddr, NodeName)>,
}

/// The slices that would serve whom `next`, the ledger after serving, leaves without. `waits`: who can't be judged yet.
pub(super) fn grow(
    view: &SlicedView<'_>,
    own: &[NodeSlice],
    within: &Pool,
    next: &Ledger,
    waits: &dyn Fn(&SlotKey) -> bool,
) -> Grown {
    if !next.gives() {
        return Grown::default();
    }
    let mut need = Need {
        view,
        cut: own.iter().filter(|slice| slice.gives()).map(|slice| slice.cidr).collect(),
        within: within.clone(),
        taken: Taken::of(view.pool, next.allocations.keys().copied()),
        slices: taken(view, own),
        grown: Grown::default(),
    };
    need.cut.retain(|cidr| view.pool.within(&[*cidr]).is_ok());
    for ask in view.asked.iter().filter(|ask| ask.live) {
        if let Some(Request { id, want: true, holds: Some(lease), .. }) = requested(ask) {
            need.around(id, lease, next);
        }
    }
    for together in view.asked.chunk_by(|one, other| one.enactment.uid == other.enactment.uid) {
        let lacks = |ask: &&Asked<'_>| {
            requested(ask).is_some_and(|request| {
                request.want && request.holds.is_none() && next.held_by(&request.id).next().is_none()
            }) && ask.live
                && ask.ready
                && !waits(ask.key)
        };
        let mut lacking: Vec<&Asked<'_>> = together.iter().filter(lacks).collect();
        // As when they are served: what the policy names itself is not for its other captures (rule 11).
        lacking.sort_by_key(|ask| requested(ask).is_none_or(|request| request.literal.is_none()));
        need.together(&lacking);
    }
    need.grown
}

/// Every block that is not to be had: slices, and, of the pool's ledger, whatever is not this host's own.
fn taken(view: &SlicedView<'_>, own: &[NodeSlice]) -> TakenSlices {
    let node = view.asked.first().map(|ask| &ask.enactment.node_uid);
    let foreign = view.ledger.allocations.iter().filter(|(_, entry)| Some(&entry.node_uid) != node);
    let slices = own.iter().map(|slice| slice.cidr).chain(view.others.keys().copied());
    TakenSlices::of(view.pool, slices.chain(foreign.map(|(ip, _)| IpNet::from(*ip))))
}

struct Need<'a> {
    view: &'a SlicedView<'a>,
    /// What gives, by now.
    cut: Vec<IpNet>,
    within: Pool,
    taken: Taken,
    slices: TakenSlices,
    grown: Grown,
}

impl Need<'_> {
    /// A holder without a slice around what it has: it takes that slice, if nobody else has it, and none of the pool's own
    /// entries there is another's.
    fn around(&mut self, id: &RequestId, lease: &Lease, next: &Ledger) {
        for ip in &lease.ips {
            let around = self
                .view
                .pool
                .range_of(*ip)
                .and_then(|range| Some((range.name(), range.slice_around(*ip)?.0)));
            let Some((range, cidr)) = around.filter(|(_, cidr)| !self.cut.contains(cidr)) else { continue };
            let entry = next.allocations.get(ip).or_else(|| self.view.ledger.allocations.get(ip));
            if let Some(entry) =
                entry.filter(|entry| entry.is_recoverable() && entry.request.as_ref() != Some(id))
            {
                if entry.request.is_some() {
                    self.grown.lost.insert(id.clone(), (*ip, entry.node.clone()));
                }
                continue;
            }
            match self.view.others.get(&cidr) {
                Some(Some(node)) if entry.is_none() && Some(node) != self.own_name() => {
                    self.grown.lost.insert(id.clone(), (*ip, node.clone()));
                }
                _ if self.slices.contains(cidr) || self.view.own.iter().any(|own| own.cidr == cidr) => {}
                // The choice says no where the block is touched by what is not ours.
                _ => {
                    let want = Want::Exactly(*ip);
                    let range = range.to_owned();
                    if let Ok(choice) = self.choose_slice(None, want) {
                        self.add(&SliceChoice { range, ..choice }, true, true);
                    }
                }
            }
        }
    }

    fn own_name(&self) -> Option<&NodeName> {
        self.view.asked.first().map(|ask| &ask.enactment.node)
    }

    /// All of these or none (rule 1).
    fn together(&mut self, lacking: &[&Asked<'_>]) {
        let before = (self.cut.clone(), self.within.clone(), self.taken.clone(), self.slices.clone());
        let made = self.grown.create.len();
        let mut failed = None;
        for ask in lacking {
            if let Err(none) = self.find(ask) {
                failed = Some(none);
                break;
            }
        }
        let Some(none) = failed else { return };
        (self.cut, self.within, self.taken, self.slices) = before;
        self.grown.create.truncate(made);
        let ids = lacking.iter().filter_map(|ask| requested(ask)).map(|request| request.id.clone());
        self.grown.lacking.extend(ids.map(|id| (id, none.clone())));
    }

    /// An address for one, from what there is or from a slice more.
    fn find(&mut self, ask: &Asked<'_>) -> Result<(), NoAddress> {
        let Some(request) = requested(ask) else { return Ok(()) };
        let want = request.literal.map_or(Want::Any, Want::Exactly);
        let slice = self.choose_slice(Some((ask, request)), want);
        // What is reserved for the node comes before what its slices have.
        if let Some(reserved) = slice.as_ref().ok().filter(|choice| choice.kind == Kind::Reserved) {
            self.add(reserved, true, true);
        }
        if self.give(ask, request) {
            return Ok(());
        }
        let choice = slice?;
        // Of two families one may have room still; then only the other is taken, and never half of a pair for good.
        for (v4, v6) in [(true, false), (false, true), (true, true)] {
            let (cut, within) = (self.cut.clone(), self.within.clone());
            let (slices, made) = (self.slices.clone(), self.grown.create.len());
            self.add(&choice, v4, v6);
            if self.give(ask, request) {
                return Ok(());
            }
            (self.cut, self.within, self.slices) = (cut, within, slices);
            self.grown.create.truncate(made);
        }
        Err(NoAddress::Exhausted {
            pool: self.view.pool.name().to_owned(),
            node: ask.enactment.node.to_string(),
            full: Vec::new(),
            barred: Vec::new(),
        })
    }

    fn choose_slice(&self, of: Option<(&Asked<'_>, &Request)>, want: Want) -> Result<SliceChoice, NoAddress> {
        let view = SliceView { pool: self.view.pool, taken: &self.slices, barred: self.view.barred };
        let declined: Vec<IpAddr> =
            of.map(|(_, request)| request.declined.keys().copied().collect()).unwrap_or_default();
        let none = BTreeMap::new();
        let labels = of.map_or(&none, |(ask, _)| ask.labels);
        let node = self.own_name().map_or("", NodeName::as_str);
        let capture = of.map_or("", |(ask, _)| ask.key.capture.as_str());
        let holder = Holder { node, capture, declined: &declined, want };
        choose_slice(&view, &holder, &NodeView { name: node, labels })
    }

    /// Takes an address out of what there is by now. Whether there was one.
    fn give(&mut self, ask: &Asked<'_>, request: &Request) -> bool {
        let declined: Vec<IpAddr> = request.declined.keys().copied().collect();
        let node = ask.enactment.node.as_str();
        let holder = Holder {
            node,
            capture: ask.key.capture.as_str(),
            declined: &declined,
            want: request.literal.map_or(Want::Any, Want::Exactly),
        };
        let view = PoolView { pool: &self.within, taken: &self.taken, barred: self.view.barred };
        let Ok(choice) = choose(&view, &holder, &NodeView { name: node, labels: ask.labels }) else {
            return false;
        };
        self.taken.extend(choice.given().map(|given| given.ip));
        true
    }

    fn add(&mut self, choice: &SliceChoice, v4: bool, v6: bool) {
        let chosen = [choice.v4.as_ref().filter(|_| v4), choice.v6.as_ref().filter(|_| v6)];
        for slice in chosen.into_iter().flatten() {
            self.slices.insert(slice.cidr);
            self.cut.push(slice.cidr);
            let (name, cidr, range) = (slice.name.clone(), slice.cidr, choice.range.clone());
            self.grown.create.push(NewSlice { name, cidr, range, first: None });
        }
        if let Ok(within) = self.view.pool.within(&self.cut) {
            self.within = within;
        }
    }
}
