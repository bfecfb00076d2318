//! What the page shows, kept current by watches for as long as somebody looks.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crds::{NodeIPPool, NodeIPSlice, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use ipnet::IpNet;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use policy::claim::Entry;
use policy::pool::{Barred, Pool};
use tokio::sync::watch;

use super::history::History;
use super::told::Told;
use crate::api::task::Task;
use crate::api::{Change, Link, Watched};
use crate::clock::now;
use crate::events::Heard;
use crate::{networks, records};

/// How long watches go on after the last look: a page that is loaded again finds them.
const LINGER: Duration = Duration::from_secs(60);
/// How long a first look may wait for everything to be read.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long for slices, which are many, and for networks, which there may be none of.
const BRIEFLY: Duration = Duration::from_secs(2);

/// What is seen, and when somebody last looked.
type Looked = Option<(Arc<Seen>, Instant)>;

/// What is seen, if somebody looks.
pub(super) struct Sight {
    client: Client,
    exclude: Vec<IpNet>,
    seen: Arc<Mutex<Looked>>,
}

impl Sight {
    pub(super) fn new(client: Client, exclude: Vec<IpNet>) -> Self {
        Self { client, exclude, seen: Arc::default() }
    }

    /// Everything, read once at least; or why not.
    pub(super) async fn look(&self) -> Result<Arc<Seen>, String> {
        let seen = self.begin();
        match tokio::time::timeout(PATIENCE, seen.started()).await {
            Ok(()) => Ok(seen),
            Err(_) => Err(format!("not everything could be read yet: {}", seen.lost())),
        }
    }

    fn begin(&self) -> Arc<Seen> {
        let mut kept = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = kept.take().map_or_else(
            || {
                let seen = Seen::start(&self.client, self.exclude.clone());
                tokio::spawn(end_unseen(self.seen.clone()));
                seen
            },
            |(seen, _)| seen,
        );
        *kept = Some((seen.clone(), Instant::now()));
        seen
    }
}

/// Ends the watches once nobody has looked for a while.
async fn end_unseen(seen: Arc<Mutex<Looked>>) {
    loop {
        tokio::time::sleep(LINGER / 4).await;
        let mut kept = seen.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *kept {
            // Somebody listens.
            Some((seen, at)) if Arc::strong_count(seen) > 1 => *at = Instant::now(),
            Some((_, at)) if at.elapsed() < LINGER => {}
            _ => {
                *kept = None;
                return;
            }
        }
    }
}

/// A pool with everything that is in its ledger, or in its slices'.
#[derive(Clone)]
pub(super) struct PoolSeen {
    pub(super) object: Arc<NodeIPPool>,
    /// Nothing, where this version can't read its spec.
    pub(super) pool: Option<Arc<Pool>>,
    pub(super) entries: BTreeMap<IpAddr, Entry>,
    /// By their first addresses: they never overlap.
    pub(super) slices: BTreeMap<IpAddr, Arc<SliceSeen>>,
}

impl PoolSeen {
    /// The slice that an address is in.
    pub(super) fn slice_of(&self, ip: IpAddr) -> Option<&SliceSeen> {
        let (_, slice) = self.slices.range(..=ip).next_back()?;
        slice.cidr.contains(&ip).then_some(&**slice)
    }

    /// The slices that have addresses from `first` to `last`, in their order.
    pub(super) fn slices_in(&self, first: IpAddr, last: IpAddr) -> impl Iterator<Item = &SliceSeen> {
        let before = self.slice_of(first).filter(|slice| slice.cidr.network() < first);
        before.into_iter().chain(self.slices.range(first..=last).map(|(_, slice)| &**slice))
    }
}

/// A block, whose it is, and what of it is given.
pub(super) struct SliceSeen {
    pub(super) pool: String,
    pub(super) cidr: IpNet,
    pub(super) node: String,
    pub(super) entries: BTreeMap<IpAddr, Entry>,
    /// When it was made, in seconds.
    made: u64,
}

impl SliceSeen {
    /// Nothing, where it can't be read.
    fn of(object: &NodeIPSlice) -> Option<Self> {
        let made = object.metadata.creation_timestamp.as_ref();
        Some(Self {
            pool: object.spec.pool.clone(),
            cidr: crds::address::cidr(&object.spec.cidr)?,
            node: object.spec.node.clone(),
            entries: records::pool::read_slice(object).map(|ledger| ledger.allocations).unwrap_or_default(),
            made: made.map(|time| time.0.as_second().unsigned_abs()).unwrap_or_default(),
        })
    }
}

#[derive(Default)]
struct Index {
    pools: BTreeMap<String, Arc<PoolSeen>>,
    /// By name.
    slices: BTreeMap<String, Arc<SliceSeen>>,
    history: History,
    /// Since when somebody looks: what was there before is no news.
    since: u64,
}

pub(super) struct Seen {
    index: Arc<Mutex<Index>>,
    changes: watch::Sender<u64>,
    pools: Watched<NodeIPPool>,
    slices: Watched<NodeIPSlice>,
    policies: Watched<NodeNetworkConfigurationPolicy>,
    enactments: Watched<NodeNetworkConfigurationEnactment>,
    networks: Networks,
    told: Told,
}

/// What no pool gives of: what settings name, and the cluster's ServiceCIDRs.
struct Networks {
    exclude: Vec<IpNet>,
    /// Nothing until it is known whether the API has them and they may be read.
    services: watch::Receiver<Option<Option<Watched<ServiceCIDR>>>>,
    /// Nobody waits for that any longer.
    until: tokio::time::Instant,
    _follow: Task,
}

impl Networks {
    fn start(client: &Client, exclude: Vec<IpNet>, changes: watch::Sender<u64>) -> Self {
        let (followed, services) = watch::channel(None);
        let client = client.clone();
        let follow = Task::spawn(async move {
            let of_services = changes.clone();
            let watched = networks::follow(&client, move || tick(&of_services)).await;
            followed.send_replace(Some(watched));
            tick(&changes);
        });
        Self { exclude, services, until: tokio::time::Instant::now() + BRIEFLY, _follow: follow }
    }

    async fn started(&self) {
        let mut services = self.services.clone();
        let _ = tokio::time::timeout_at(self.until, services.wait_for(Option::is_some)).await;
    }

    fn barred(&self) -> Barred {
        let services = match &*self.services.borrow() {
            Some(Some(watched)) => watched.all(),
            Some(None) | None => Vec::new(),
        };
        let mut barred = Barred::default();
        networks::bar(&mut barred, &self.exclude, services.iter().map(|object| &**object));
        barred
    }
}

/// Something is other than it was.
fn tick(changes: &watch::Sender<u64>) {
    changes.send_modify(|count| *count += 1);
}

impl Seen {
    fn start(client: &Client, exclude: Vec<IpNet>) -> Arc<Self> {
        let (changes, _) = watch::channel(0);
        let index = Arc::new(Mutex::new(Index { since: now(), ..Index::default() }));
        let all = ListParams::default;
        let of_pools = (index.clone(), changes.clone());
        let of_slices = (index.clone(), changes.clone());
        let (of_policies, of_enactments) = (changes.clone(), changes.clone());
        Arc::new(Self {
            pools: Watched::start(Api::all(client.clone()), all(), move |change| {
                lock(&of_pools.0).pool(&change);
                tick(&of_pools.1);
            }),
            slices: Watched::start(Api::all(client.clone()), all(), move |change| {
                lock(&of_slices.0).slice(&change);
                tick(&of_slices.1);
            }),
            policies: Watched::start(Api::all(client.clone()), all(), move |_| tick(&of_policies)),
            enactments: Watched::start(Api::all(client.clone()), all(), move |_| tick(&of_enactments)),
            networks: Networks::start(client, exclude, changes.clone()),
            told: Told::new(client),
            index,
            changes,
        })
    }

    /// Slices and networks are waited for briefly, and slices not where they can't be read: without them the rest is still
    /// worth a look.
    async fn started(&self) {
        self.pools.started().await;
        self.policies.started().await;
        self.enactments.started().await;
        self.networks.started().await;
        if matches!(self.slices.link(), Link::Starting) {
            let _ = tokio::time::timeout(BRIEFLY, self.slices.started()).await;
        }
    }

    /// Why something isn't read, or no longer current.
    pub(super) fn lost(&self) -> String {
        let links = [self.pools.link(), self.policies.link(), self.enactments.link(), self.slices.link()];
        let lost = links.into_iter().find_map(|link| match link {
            Link::Lost(why) => Some(why),
            Link::Starting | Link::Current => None,
        });
        lost.unwrap_or_default()
    }

    /// Counts up whenever something is other than it was.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn pools(&self) -> BTreeMap<String, Arc<PoolSeen>> {
        lock(&self.index).pools.clone()
    }

    pub(super) fn pool(&self, name: &str) -> Option<Arc<PoolSeen>> {
        lock(&self.index).pools.get(name).cloned()
    }

    /// What this pool's addresses are that others have too, or the cluster.
    pub(super) fn barred(&self, name: &str) -> Barred {
        let mut barred = self.networks.barred();
        for (other, seen) in self.pools() {
            seen.pool.iter().filter(|_| other != name).for_each(|pool| barred.pool(pool));
        }
        barred
    }

    pub(super) fn history<T>(&self, of: impl FnOnce(&History) -> T) -> T {
        of(&lock(&self.index).history)
    }

    /// What Events tell of a pool, the latest first.
    pub(super) async fn told(&self, pool: &str) -> Arc<Vec<Heard>> {
        match self.pool(pool) {
            Some(_) => self.told.of(pool).await,
            None => Arc::default(),
        }
    }

    pub(super) fn policies(&self) -> Vec<Arc<NodeNetworkConfigurationPolicy>> {
        self.policies.all()
    }

    pub(super) fn enactments(&self) -> Vec<Arc<NodeNetworkConfigurationEnactment>> {
        self.enactments.all()
    }
}

fn lock(index: &Mutex<Index>) -> MutexGuard<'_, Index> {
    index.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Index {
    fn pool(&mut self, change: &Change<NodeIPPool>) {
        match change {
            Change::Put(object) => self.put(object.clone()),
            Change::Gone(object) | Change::Missing(object) => drop(self.pools.remove(&object.name_any())),
        }
    }

    /// Only what is its own changes: a crowd that claims tells of thousands.
    fn slice(&mut self, change: &Change<NodeIPSlice>) {
        let name = change.object().name_any();
        let is = match change {
            Change::Put(object) => SliceSeen::of(object).map(Arc::new),
            Change::Gone(_) | Change::Missing(_) => None,
        };
        let was = match &is {
            Some(is) => self.slices.insert(name, is.clone()),
            None => self.slices.remove(&name),
        };
        let Some(of) = is.as_ref().or(was.as_ref()).map(|slice| slice.pool.clone()) else { return };
        let Some(pool) = self.pools.get_mut(&of) else { return };
        let none = BTreeMap::new();
        let before = was.as_ref().map_or(&none, |slice| &slice.entries);
        let after = is.as_ref().map_or(&none, |slice| &slice.entries);
        if was.is_some() || is.as_ref().is_some_and(|slice| slice.made >= self.since) {
            self.history.note(&of, before, after, now());
        }
        let seen = Arc::make_mut(pool);
        before.keys().for_each(|ip| drop(seen.entries.remove(ip)));
        if let Some(was) = &was {
            seen.slices.remove(&was.cidr.network());
        }
        if let Some(is) = is {
            seen.entries.extend(is.entries.clone());
            seen.slices.insert(is.cidr.network(), is);
        }
    }

    fn put(&mut self, object: Arc<NodeIPPool>) {
        let name = object.name_any();
        let pool = records::pool::meaning(&object).ok().map(Arc::new);
        let ledger = pool.as_ref().and_then(|pool| records::pool::read(&object, pool).ok());
        let mut entries = ledger.map(|ledger| ledger.allocations).unwrap_or_default();
        let mut slices = BTreeMap::new();
        for slice in self.slices.values().filter(|slice| slice.pool == name) {
            entries.extend(slice.entries.clone());
            slices.insert(slice.cidr.network(), slice.clone());
        }
        if let Some(was) = self.pools.get(&name) {
            self.history.note(&name, &was.entries, &entries, now());
        }
        self.pools.insert(name, Arc::new(PoolSeen { object, pool, entries, slices }));
    }
}
