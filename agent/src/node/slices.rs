//! Sliced pools: this host claims slices by creating them, and serves itself out of them, led or not.
//!
//! What is done `policy::claim::serve_slices` says; here it is read, made, written and tried again. That a pool is sliced
//! says an annotation of the controller's (`nmstate.io/sliced`), read as metadata alone, of all pools at once and as a rule once
//! per process; whoever reads a pool whole (to serve, to confirm) corrects what was thought of it.
//!
//! Which slices are others' is not watched (rule 9): the first attempt is by hash and nothing else; what this host then finds
//! taken is added one by one, and after some of that the pool's slices are listed once. Its own, of all pools, are
//! listed at the start of a process (`aside`), and known from then on, since nobody else writes them while the Node lives.
//!
//! Costs: the first claim of a process two reads (metadata of all pools; the pools whole, which is also what others have), of
//! further pools one (the pool), and two writes: the slice, which is made with the address, and the answer, which is one for all
//! pools that are asked at once. Where a claim needs more than a slice and an address, one more for each slice (its ledger). A
//! further claim from the same slice: one read and two writes. A collision of hashes: an attempt and a read of one slice, after
//! [`MET`] of them one list of the pool's. To confirm: the pool and each slice of the lease. At its start, for each pool that it
//! holds an address of: its metadata; and the same whenever somebody asks for a report, which a controller does that finds
//! something held without a slice. At rest: nothing.

mod aside;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crds::names::annotation;
use crds::{NodeIPPool, NodeIPSlice};
use ipnet::IpNet;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use policy::claim::{
    self, Lease, Ledger, NewSlice, NodeName, NodeSlice, NodeUid, PoolName, RequestId, SlicedView,
    SlicesServed,
};
use policy::pool::{Barred, Pool};

use super::alone::{Came, Owed, Served};
use super::{Agent, NodeError};
use crate::api::list;
use crate::api::slices::{self, Made, Written};
use crate::clock::now;
use crate::fault;
use crate::records;
use crate::telemetry::say;

/// So many looks in a row: each makes a slice, or learns of one that is another's.
const TRIES: usize = 64;

/// So many slices that are others' are met by name before all of a pool's are listed: a list of a thousand is a megabyte, and of a
/// pool that is half full two are met.
const MET: usize = 4;

/// How long a pool that nobody has begun is not asked about again.
const UNBEGUN: Duration = Duration::from_millis(500);

/// What is known of slices.
#[derive(Default)]
pub(super) struct Slices {
    /// What this host holds of sliced pools was looked after since its start.
    settled: bool,
    /// Whether a pool is cut into slices, as far as is known.
    sliced: BTreeMap<PoolName, bool>,
    /// When it was last asked without an answer that lasts: the pool is not there yet, or nobody has begun it.
    asked: BTreeMap<PoolName, Instant>,
    /// This host's, by pool.
    own: BTreeMap<PoolName, BTreeMap<String, Arc<NodeIPSlice>>>,
    /// They were listed, so that a pool that is not among them has none.
    listed: bool,
    /// When listing them was last refused: not every pass is to ask again.
    barred: Option<Instant>,
    others: BTreeMap<PoolName, Others>,
    /// When what should be free was last found not to be.
    in_vain: Option<Instant>,
}

/// Others' slices of a pool, as far as they are known.
#[derive(Default)]
struct Others {
    /// And whose, where that is known.
    slices: BTreeMap<IpNet, Option<NodeName>>,
    /// So many stood in the way.
    met: usize,
}

impl Slices {
    pub(super) fn is_known(&self, pool: &PoolName) -> Option<bool> {
        self.sliced.get(pool).copied()
    }

    /// A pool was read: what it is.
    pub(super) fn is(&mut self, pool: &PoolName, sliced: bool) {
        self.sliced.insert(pool.clone(), sliced);
    }

    /// Something became of this host's slices without its doing: all that it holds is looked after once more.
    pub(super) fn look_again(&mut self) {
        self.settled = false;
        self.listed = false;
        self.own.clear();
        self.others.clear();
    }

    /// Nothing that was known of a pool's slices counts any more.
    fn forget(&mut self, pool: &PoolName) {
        self.listed = false;
        self.own.remove(pool);
        self.others.remove(pool);
    }

    fn note(&mut self, pool: &PoolName, slice: NodeIPSlice) {
        self.own.entry(pool.clone()).or_default().insert(slice.name_any(), Arc::new(slice));
    }
}

/// What making slices came to.
enum Making {
    Done,
    /// Some are others': think again.
    Taken,
    Refused(String),
}

impl Agent {
    /// Is this pool sliced? Asked of the API where it is not known; a pool that no controller has begun yet may become so.
    pub(super) async fn is_sliced(&mut self, pool: &PoolName) -> Result<bool, NodeError> {
        if let Some(known) = self.slices.is_known(pool) {
            return Ok(known);
        }
        if self.slices.asked.get(pool).is_some_and(|at| at.elapsed() < UNBEGUN) {
            return Ok(false);
        }
        self.slices.asked.insert(pool.clone(), Instant::now());
        let pools: Api<NodeIPPool> = Api::all(self.client.clone());
        for metadata in list::metadata(&pools, &ListParams::default()).await? {
            let annotations = metadata.annotations.unwrap_or_default();
            let sliced = annotations.contains_key(annotation::SLICED);
            if sliced || annotations.contains_key(annotation::SCHEMA_VERSION) {
                self.slices.is(&PoolName::new(metadata.name.unwrap_or_default()), sliced);
            }
        }
        Ok(self.slices.is_known(pool) == Some(true))
    }

    /// At the start, and when there is reason to: what this host holds of a sliced pool without a slice around it (of before it
    /// was sliced, or where somebody deleted the slice by force) gets one, and what was given out of a slice that goes is given
    /// up, though nobody asks for anything.
    pub(super) async fn settle_slices(&mut self, uid: &NodeUid) -> Result<(), NodeError> {
        if self.slices.settled || !self.objects.are_read() {
            return Ok(());
        }
        let own = self.enactments().into_values().filter(|own| own.node_uid == *uid);
        let pools: BTreeSet<PoolName> =
            own.flat_map(|own| own.slots.into_keys().map(|key| key.pool)).collect();
        for pool in pools {
            if self.is_sliced(&pool).await? {
                self.serve(&[&pool], uid).await?;
            }
        }
        self.slices.settled = true;
        Ok(())
    }

    /// Serves this host's requests to a sliced pool: slices, then their ledgers. What it answers is owed.
    pub(super) async fn serve_sliced(
        &mut self,
        name: &PoolName,
        uid: &NodeUid,
        object: &NodeIPPool,
        pool: &Pool,
    ) -> Result<Served, NodeError> {
        let Ok(ledger) = records::pool::read(object, pool) else { return Ok(Err(Came::Nothing)) };
        let barred = self.others(name);
        // What others had may be free by now.
        self.slices.others.remove(name);
        let mut fresh = false;
        for _ in 0..TRIES {
            let own = self.own_slices(name, uid).await?;
            let served = self.think(name, uid, (pool, &ledger, &barred), &own, fresh);
            if !served.create.is_empty() {
                match self.make_slices(name, uid, &served.create).await? {
                    Making::Done | Making::Taken => continue,
                    Making::Refused(why) => {
                        say(&format!("{}: a slice of pool {name} is refused: {why}", self.name));
                        return Ok(Err(Came::Nothing));
                    }
                }
            }
            if !served.reread.is_empty() && !fresh {
                // What takes up an old claim is read after the ledger that guards the write (rule 1).
                let policies: BTreeSet<_> = self
                    .enactments()
                    .into_values()
                    .filter(|own| own.slots.keys().any(|key| key.pool == *name))
                    .map(|own| own.policy)
                    .collect();
                for policy in policies {
                    self.reread(&policy).await?;
                }
                fresh = true;
                continue;
            }
            return self.carry_out(name, Some(pool), served).await;
        }
        Ok(Err(Came::Overtaken))
    }

    /// The same where there is no such pool.
    pub(super) async fn serve_slices_alone(
        &mut self,
        name: &PoolName,
        uid: &NodeUid,
    ) -> Result<Served, NodeError> {
        let own = self.own_slices(name, uid).await?;
        let requests = self.own();
        let served = claim::serve_slices_without_pool(&own, &requests.asked(name, uid, false), now());
        self.carry_out(name, None, served).await
    }

    /// Does this host have slices of a pool, as far as it knows?
    pub(super) fn has_slices(&self, pool: &PoolName) -> bool {
        self.slices.own.get(pool).is_some_and(|own| !own.is_empty())
    }

    fn think(
        &self,
        name: &PoolName,
        uid: &NodeUid,
        (pool, ledger, barred): (&Pool, &Ledger, &Barred),
        own: &[NodeSlice],
        fresh: bool,
    ) -> SlicesServed {
        let requests = self.own();
        let none = BTreeMap::new();
        let ids = requests.enactments.iter().flat_map(|own| own.slots.values());
        let ids = ids.filter_map(|slot| Some(slot.request.as_ref()?.id.clone()));
        let known: BTreeSet<RequestId> =
            ids.chain(self.host.journal.values().map(|record| record.id.clone())).collect();
        let nic = self.addresses().map(|address| address.ip);
        let announced = self.host.memory.announced.values().flat_map(|lease| lease.ips.iter().copied());
        let shown: BTreeSet<IpAddr> = nic.chain(self.host.held()).chain(announced).collect();
        claim::serve_slices(&SlicedView {
            pool,
            ledger,
            barred,
            own,
            others: self.slices.others.get(name).map_or(&none, |others| &others.slices),
            asked: &requests.asked(name, uid, fresh),
            known: &known,
            shown: &shown,
            now: now(),
        })
    }

    /// Ledgers first, then slices that nobody needs; the answers come after.
    async fn carry_out(
        &mut self,
        name: &PoolName,
        pool: Option<&Pool>,
        served: SlicesServed,
    ) -> Result<Served, NodeError> {
        for (slice, next) in &served.ledgers {
            let Some(object) = self.own_slice(name, slice) else { continue };
            match slices::write(&self.client, &object, next).await? {
                Written::Done(now) => {
                    self.slices.note(name, *now);
                    fault::point("slice-written");
                }
                Written::Overtaken => {
                    self.slices.forget(name);
                    return Ok(Err(Came::Overtaken));
                }
                Written::Refused(why) => {
                    say(&format!("{}: the ledger of slice {slice} is refused: {why}", self.name));
                    return Ok(Err(Came::Nothing));
                }
            }
        }
        for slice in &served.give_back {
            let Some(object) = self.own_slice(name, slice) else { continue };
            // Its name may be taken by another at once.
            if !slices::give_back(&self.client, &object).await? {
                self.slices.forget(name);
                return Ok(Err(Came::Overtaken));
            }
            if let Some(own) = self.slices.own.get_mut(name) {
                own.remove(slice);
            }
        }
        Ok(Ok(Owed { name: name.clone(), pool: pool.cloned(), answers: served.answers }))
    }

    fn own_slice(&self, pool: &PoolName, name: &str) -> Option<Arc<NodeIPSlice>> {
        self.slices.own.get(pool)?.get(name).cloned()
    }

    /// This host's slices of a pool, under its present UID. What a Node of its name left is the controller's to free.
    async fn own_slices(&mut self, pool: &PoolName, uid: &NodeUid) -> Result<Vec<NodeSlice>, NodeError> {
        self.list_slices().await?;
        Ok(self.known_slices(pool, uid).collect())
    }

    fn known_slices(&self, pool: &PoolName, uid: &NodeUid) -> impl Iterator<Item = NodeSlice> {
        let own = self.slices.own.get(pool).into_iter().flat_map(BTreeMap::values);
        let read = own.filter_map(|object| records::slice::read(object).ok());
        read.filter(move |slice| slice.is_of(&self.name, uid))
    }

    /// Of every pool, once.
    async fn list_slices(&mut self) -> Result<(), kube::Error> {
        if !self.slices.listed {
            let all = slices::of_node(&self.client, &self.name).await?;
            self.slices.own.clear();
            for slice in all {
                self.slices.note(&PoolName::new(slice.spec.pool.as_str()), slice);
            }
            self.slices.listed = true;
        }
        Ok(())
    }

    async fn make_slices(
        &mut self,
        pool: &PoolName,
        uid: &NodeUid,
        create: &[NewSlice],
    ) -> Result<Making, NodeError> {
        for new in create {
            let object = records::slice::new(pool, new, &self.name, uid);
            match slices::make(&self.client, &object).await? {
                Made::Done(made) => self.slices.note(pool, *made),
                Made::Exists(there) => {
                    self.taken(pool, uid, new, there.map(|there| *there)).await?;
                    return Ok(Making::Taken);
                }
                Made::Refused(why) => return Ok(Making::Refused(why)),
            }
        }
        Ok(Making::Done)
    }

    /// A slice's name is taken: by this host, which did not hear of it; or by another, and then more may be.
    async fn taken(
        &mut self,
        pool: &PoolName,
        uid: &NodeUid,
        new: &NewSlice,
        there: Option<NodeIPSlice>,
    ) -> Result<(), NodeError> {
        let Some(there) = there else { return Ok(()) };
        if there.spec.is_of(self.name.as_str(), uid.as_str()) {
            self.slices.note(pool, there);
            return Ok(());
        }
        let others = self.slices.others.entry(pool.clone()).or_default();
        others.slices.insert(new.cidr, Some(NodeName::new(there.spec.node.as_str())));
        others.met += 1;
        if others.met == MET {
            for slice in slices::of_pool(&self.client, pool).await? {
                if slice.spec.is_of(self.name.as_str(), uid.as_str()) {
                    continue;
                }
                if let Some(cidr) = crds::address::cidr(&slice.spec.cidr) {
                    others.slices.insert(cidr, Some(NodeName::new(slice.spec.node.as_str())));
                }
            }
        }
        Ok(())
    }

    /// Does a sliced pool back this grant? The pool and the slices are read for it (rule 2).
    pub(super) async fn confirm_sliced(
        &mut self,
        object: &NodeIPPool,
        pool: &Pool,
        id: &RequestId,
        lease: &Lease,
    ) -> Result<bool, NodeError> {
        let Ok(ledger) = records::pool::read(object, pool) else { return Ok(false) };
        let mut own = Vec::new();
        for ip in &lease.ips {
            let around = pool.range_of(*ip).and_then(|range| range.slice_around(*ip));
            let Some((cidr, _)) = around else { continue };
            let name = crds::slice::name(pool.name(), cidr.addr());
            let read = slices::one(&self.client, &name).await?;
            let read = read.and_then(|slice| records::slice::read(&slice).ok());
            let read = read.filter(|slice| slice.node == self.name);
            if read.as_ref().is_none_or(|slice| slice.ledger.deleting) {
                self.slices.look_again();
            }
            own.extend(read);
        }
        let node = self.objects.node.get(self.name.as_str()).and_then(|node| node.uid());
        own.retain(|slice| node.as_deref() == Some(slice.node_uid.as_str()));
        Ok(claim::slices_confirm(&ledger, &own, id, lease))
    }
}
