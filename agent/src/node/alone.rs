//! Where nobody leads: an agent answers its own claims, and takes and gives back its own slots.
//!
//! What a leader would do and has not done is a [`Need`]. After a moment's grace the Lease is read; if nobody has it the
//! agent does it itself, by the leader's own code and under the same guards. A claim that a leader leaves without an answer
//! is the agent's own after half a minute. Overtaken by others, it tries again for as long as the need lasts, after ever
//! longer random pauses: that others were quicker never counts against a request. Never here: rebuilding, taking anything
//! back, ending a hold, saying what a policy comes to on all hosts; those need a leader.
//!
//! Of sliced pools an agent serves itself, led or not (`slices`).
//!
//! Costs: nothing where a leader answers within the grace, and that it did is known for some seconds. Alone, a claim is one
//! read of its pool and two writes, and the lists of all pools and ServiceCIDRs once a minute. A slot given back is one write of the policy;
//! while it waits for one, two lists once in a while, the more hosts the more rarely; of those it keeps a line for each host, and while it
//! reads has one page of enactments in memory: 500, whose status has all that was rendered and captured, some ten KiB each.

mod needs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crds::{NodeIPPool, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use ipnet::IpNet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use policy::claim::{self, Answer, Asked, Enactment, NodeName, NodeUid, PolicyName, PoolName};
use policy::pool::{Barred, Pool};
use policy::rollout::{Part, Standing};

use super::{Agent, NodeError};
use crate::api::error::{Trouble, optional, trouble, words};
use crate::api::lease;
use crate::clock::now;
use crate::controller::answers::{self, Landed, OfPool};
use crate::controller::known::EnactmentKnown;
use crate::controller::ledger::{self, Written};
use crate::controller::policies::{self, Rolled};
use crate::telemetry::say;
use crate::{api, networks, records};
pub(super) use needs::Came;
use needs::{Need, Needs, Turn};

/// How long what was read of the Lease is good for.
const LEASE_READ: Duration = Duration::from_secs(5);
/// How long what was read of other pools' ranges is good for.
const POOLS_READ: Duration = Duration::from_secs(60);

/// How long what was read of a policy on all nodes is good for, at least and for each node: however many there are, they don't
/// ask all together more often than so.
const PARTS_READ: Duration = Duration::from_secs(1);
const PART_READ: Duration = Duration::from_millis(30);

/// What one look came to.
pub(super) enum Did {
    Something,
    Nothing { again: Option<Duration> },
}

/// What is known of who else could do it.
pub(super) struct Alone {
    /// Where the controller's Lease is.
    namespace: String,
    lead: Option<(bool, Instant)>,
    needs: Needs,
    /// How this host stood when its slots were last looked after.
    rolled: BTreeMap<PolicyName, (i64, Standing)>,
    ranges: Option<(BTreeMap<PoolName, Pool>, Instant)>,
    /// Networks that no pool gives of, by this host's settings.
    exclude: Vec<IpNet>,
    /// And by the cluster's, as last read with the ranges.
    services: Vec<ServiceCIDR>,
    /// What was last read of how policies stand on all nodes.
    parts: BTreeMap<PolicyName, Standings>,
    /// Rights that are lacking, said once.
    lacks: BTreeSet<&'static str>,
    /// How many entries each pool's ledger had when it was last read.
    held: BTreeMap<PoolName, usize>,
}

/// How a policy stood on all nodes.
struct Standings {
    parts: Vec<Part>,
    at: Instant,
    /// Who had a slot before that was read: of these it tells who is through, or gone.
    holders: BTreeSet<NodeName>,
}

impl Alone {
    pub(super) fn new(namespace: String, exclude: Vec<IpNet>) -> Self {
        Self {
            namespace,
            lead: None,
            needs: Needs::default(),
            rolled: BTreeMap::new(),
            ranges: None,
            exclude,
            services: Vec::new(),
            parts: BTreeMap::new(),
            lacks: BTreeSet::new(),
            held: BTreeMap::new(),
        }
    }

    fn knows_lead(&self) -> Option<bool> {
        self.lead.filter(|(_, at)| at.elapsed() < LEASE_READ).map(|(leads, _)| leads)
    }

    fn lacks(&mut self, what: &'static str, error: &kube::Error) {
        if self.lacks.insert(what) {
            say(&format!("without a controller this agent would need the right to {what}: {}", words(error)));
        }
    }
}

/// What one pool answers this host: its ledger says so already. Without a pool there are only refusals.
pub(super) struct Owed {
    pub(super) name: PoolName,
    pub(super) pool: Option<Pool>,
    pub(super) answers: Vec<Answer>,
}

/// What serving one pool came to: what it owes, its ledger being written; or what kept it from that.
pub(super) type Served = Result<Owed, Came>;

impl Owed {
    fn of_pool(&self) -> OfPool<'_> {
        OfPool { name: &self.name, pool: self.pool.as_ref(), answers: &self.answers }
    }
}

/// What this host asks, and what counts for it.
pub(super) struct Own {
    pub(super) enactments: Vec<Enactment>,
    labels: BTreeMap<String, String>,
    ready: bool,
}

impl Own {
    /// Its requests to one pool. `fresh`: they were read after that.
    pub(super) fn asked(&self, pool: &PoolName, uid: &NodeUid, fresh: bool) -> Vec<Asked<'_>> {
        let slots = self.enactments.iter().flat_map(|own| own.slots.keys().map(move |key| (own, key)));
        slots
            .filter(|(_, key)| key.pool == *pool)
            .map(|(enactment, key)| Asked {
                enactment,
                key,
                labels: &self.labels,
                live: enactment.node_uid == *uid,
                ready: self.ready,
                fresh,
            })
            .collect()
    }
}

impl Agent {
    /// Does the next thing that a leader has left undone, if it is this agent's turn.
    pub(super) async fn alone(&mut self) -> Result<Did, NodeError> {
        let Some(uid) = self.objects.node.get(self.name.as_str()).and_then(|node| node.uid()) else {
            return Ok(Did::Nothing { again: None });
        };
        let uid = NodeUid::new(uid);
        self.settle_slices(&uid).await?;
        let needs = self.needs(&uid);
        let known = self.alone.knows_lead();
        if self.alone.needs.are(needs, known == Some(false), Instant::now()) {
            self.alone.lead = Some((true, Instant::now()));
        }
        for pool in self.alone.needs.pools() {
            if self.is_sliced(&pool).await? {
                self.alone.needs.hurry(&pool, Instant::now());
            }
        }
        // Nobody but its host serves it, led or not.
        let is_own = |pool: &PoolName| self.slices.is_known(pool) == Some(true);
        let due = self.alone.needs.due(Instant::now(), is_own);
        let Some(need) = due.first() else {
            return Ok(Did::Nothing { again: self.alone.needs.again(Instant::now()) });
        };
        let leads = match known {
            _ if need.pool().is_some_and(is_own) => false,
            Some(leads) => leads,
            None => self.is_led().await?,
        };
        let came = match self.alone.needs.turn(need, leads, Instant::now()) {
            Turn::Theirs => Ok(vec![Came::Theirs]),
            Turn::Ours => match need {
                Need::Answer { .. } | Need::Room { .. } => {
                    let pools: Vec<&PoolName> = due.iter().filter_map(Need::pool).collect();
                    self.serve(&pools, &uid).await
                }
                Need::Slot { policy, .. } | Need::Count { policy, .. } => {
                    self.roll(policy).await.map(|came| vec![came])
                }
            },
        };
        if came.is_err() {
            due.iter().for_each(|need| self.alone.needs.failed(need, Instant::now()));
        }
        let came = came?;
        if let Need::Count { policy, generation, standing } = need
            && matches!(came[..], [Came::Done | Came::Nothing])
        {
            self.alone.rolled.insert(policy.clone(), (*generation, *standing));
        }
        for (need, came) in due.iter().zip(&came) {
            let many = match need {
                Need::Answer { pool, .. } | Need::Room { pool, .. } => self.alone.held.get(pool).copied(),
                Need::Slot { policy, .. } | Need::Count { policy, .. } => {
                    self.alone.parts.get(policy).map(|known| known.parts.len())
                }
            };
            self.alone.needs.came(need, came, many.unwrap_or_default(), Instant::now());
        }
        Ok(match came.contains(&Came::Done) {
            true => Did::Something,
            false => Did::Nothing { again: self.alone.needs.again(Instant::now()) },
        })
    }

    /// What of this host's waits for a leader.
    fn needs(&mut self, uid: &NodeUid) -> BTreeSet<Need> {
        let mut needs = BTreeSet::new();
        let own = self.enactments();
        for enactment in own.values().filter(|own| own.node_uid == *uid) {
            for (key, slot) in &enactment.slots {
                let (policy, pool) = (enactment.policy.clone(), key.pool.clone());
                if let Some(request) = slot.unanswered() {
                    needs.insert(Need::Answer { policy, pool, id: request.id.clone() });
                } else if let Some(request) = slot.refused_for_now() {
                    needs.insert(Need::Room { policy, pool, id: request.id.clone() });
                }
            }
        }
        let selected = self.selected();
        let names: BTreeSet<&PolicyName> = selected.iter().map(|one| &one.name).collect();
        self.alone.rolled.retain(|policy, _| names.contains(policy));
        self.alone.parts.retain(|policy, _| names.contains(policy));
        for one in selected {
            let status = one.status();
            let Some(status) = status.filter(|status| status.policy_uid == one.object.uid()) else {
                continue;
            };
            let standing = records::standing::read(&status.conditions);
            let generation = status.policy_generation.unwrap_or_default();
            let slots = one.object.status.as_ref().map(|status| &status.unavailable_nodes);
            let has_slot = slots.is_some_and(|slots| slots.contains_key(self.name.as_str()));
            if standing == Standing::Pending && !has_slot {
                needs.insert(Need::Slot { policy: one.name, generation });
            } else if has_slot && self.alone.rolled.get(&one.name) != Some(&(generation, standing)) {
                needs.insert(Need::Count { policy: one.name, generation, standing });
            }
        }
        needs
    }

    /// Does somebody lead? Who may not know that leaves it to whoever may.
    async fn is_led(&mut self) -> Result<bool, NodeError> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.alone.namespace);
        let led = match optional(leases.get(crds::names::lease::CONTROLLER).await) {
            Ok(read) => read.is_some_and(|read| lease::is_fresh(&read)),
            Err(error) if trouble(&error) == Trouble::Forbidden => {
                self.alone.lacks("get the controller's Lease", &error);
                true
            }
            Err(error) => return Err(error.into()),
        };
        self.alone.lead = Some((led, Instant::now()));
        Ok(led)
    }

    /// Answers this host's requests to these pools: their ledgers first, then the answers of all of them. What came of each.
    pub(super) async fn serve(&mut self, pools: &[&PoolName], uid: &NodeUid) -> Result<Vec<Came>, NodeError> {
        let mut served = Vec::new();
        for name in pools {
            served.push(self.serve_one(name, uid).await?);
        }
        let owed: Vec<&Owed> = served.iter().filter_map(|one| one.as_ref().ok()).collect();
        let answered = self.answer(&owed).await?;
        let came = |one: Served| match one {
            Ok(owed) if owed.answers.is_empty() => Came::Nothing,
            Ok(_) => answered,
            Err(came) => came,
        };
        Ok(served.into_iter().map(came).collect())
    }

    async fn serve_one(&mut self, name: &PoolName, uid: &NodeUid) -> Result<Served, NodeError> {
        let object = match self.read_pools(name).await? {
            Some(all) => all.into_iter().find(|pool| pool.name_any() == name.as_str()),
            None => {
                let pools: Api<NodeIPPool> = Api::all(self.client.clone());
                api::list::one(&pools, name.as_str()).await?
            }
        };
        let Some(object) = object.map(Arc::new) else {
            if self.slices.is_known(name) == Some(true) || self.has_slices(name) {
                return self.serve_slices_alone(name, uid).await;
            }
            let answers = claim::serve_without_pool(&self.own().asked(name, uid, false));
            return Ok(Ok(Owed { name: name.clone(), pool: None, answers }));
        };
        let Ok(pool) = records::pool::meaning(&object) else { return Ok(Err(Came::Nothing)) };
        self.slices.is(name, pool.is_sliced());
        if pool.is_sliced() {
            return self.serve_sliced(name, uid, &object, &pool).await;
        }
        let Ok(ledger) = records::pool::read(&object, &pool) else { return Ok(Err(Came::Nothing)) };
        self.alone.held.insert(name.clone(), ledger.allocations.len());
        let barred = self.others(name);
        let own = self.own();
        let mut served = claim::serve(&ledger, &pool, &barred, &own.asked(name, uid, false), now());
        // What takes up an old claim is read after the ledger that guards the write (rule 1).
        if !served.reread.is_empty() {
            for own in own.enactments.iter().filter(|own| own.slots.keys().any(|key| key.pool == *name)) {
                self.reread(&own.policy).await?;
            }
            served = claim::serve(&ledger, &pool, &barred, &self.own().asked(name, uid, true), now());
        }
        if served.went_back {
            say(&format!("{}: pool {name} knows less than this host: it needs a controller", self.name));
            return Ok(Err(Came::Nothing));
        }
        if let Some(next) = &served.ledger {
            // What people are told of the pool is the leader's to say.
            let says = ledger::as_a_host;
            match ledger::write(&self.client, &object, &pool, &barred, next, says).await? {
                Written::Done(_) => {}
                Written::Overtaken(_) => return Ok(Err(Came::Overtaken)),
                Written::Refused(why) => {
                    say(&format!("{}: pool {name}: its ledger is refused: {why}", self.name));
                    return Ok(Err(Came::Nothing));
                }
            }
        }
        Ok(Ok(Owed { name: name.clone(), pool: Some(pool), answers: served.answers }))
    }

    pub(super) fn own(&self) -> Own {
        let node = self.objects.node.get(self.name.as_str());
        Own {
            enactments: self.enactments().into_values().collect(),
            labels: node.map(|node| node.labels().clone()).unwrap_or_default(),
            ready: self.is_ready(),
        }
    }

    async fn answer(&mut self, owed: &[&Owed]) -> Result<Came, NodeError> {
        let owed: Vec<OfPool<'_>> = owed.iter().map(|owed| owed.of_pool()).collect();
        if owed.iter().all(|owed| owed.answers.is_empty()) {
            return Ok(Came::Nothing);
        }
        let all = self.objects.enactments.all();
        let object_of =
            |uid: &str| all.iter().find(|own| own.uid().as_deref() == Some(uid)).map(|own| &**own);
        let mut came = Came::Done;
        for landed in answers::write(&self.client, &owed, object_of).await {
            match landed {
                Landed::Done(now) => self.objects.enactments.note(*now),
                Landed::Dropped(now) => {
                    now.into_iter().for_each(|now| self.objects.enactments.note(*now));
                    came = Came::Overtaken;
                }
                Landed::Refused(enactment, why) => {
                    say(&format!(
                        "{}: enactment {enactment}: its answer is refused: {}",
                        self.name,
                        words(&why)
                    ));
                    came = Came::Nothing;
                }
                Landed::Failed(error) => return Err(error.into()),
            }
        }
        Ok(came)
    }

    /// Reads what other pools and the cluster have, if that is not known, or too old, or of before there was this pool, which another
    /// one may overlap that was made with it: then these are all pools, as they are now.
    async fn read_pools(&mut self, name: &PoolName) -> Result<Option<Vec<NodeIPPool>>, NodeError> {
        let ranges = self.alone.ranges.as_ref();
        if ranges.is_some_and(|(known, at)| at.elapsed() < POOLS_READ && known.contains_key(name)) {
            return Ok(None);
        }
        self.alone.services = match networks::services(&self.client).await {
            Ok(services) => services,
            Err(error) if trouble(&error) == Trouble::Forbidden => {
                self.alone.lacks("list ServiceCIDRs, which are not kept free", &error);
                Vec::new()
            }
            Err(error) => return Err(error.into()),
        };
        let pools: Api<NodeIPPool> = Api::all(self.client.clone());
        let (read, _) = api::list::all(&pools, &ListParams::default()).await?;
        let ranges = read
            .iter()
            .filter_map(|pool| Some((PoolName::new(pool.name_any()), records::pool::meaning(pool).ok()?)));
        self.alone.ranges = Some((ranges.collect(), Instant::now()));
        Ok(Some(read))
    }

    /// The addresses that other pools and the cluster have.
    pub(super) fn others(&self, name: &PoolName) -> Barred {
        let mut barred = Barred::default();
        let known = self.alone.ranges.iter().flat_map(|(ranges, _)| ranges);
        known.filter(|(other, _)| *other != name).for_each(|(_, other)| barred.pool(other));
        networks::bar(&mut barred, &self.alone.exclude, &self.alone.services);
        barred
    }

    /// Takes or gives back this host's slot.
    async fn roll(&mut self, policy: &PolicyName) -> Result<Came, NodeError> {
        let Some(object) = self.objects.policies.get(policy.as_str()) else { return Ok(Came::Nothing) };
        Ok(match self.roll_own(&object, policy).await {
            Ok(None) => Came::Nothing,
            Ok(Some(Rolled::Written(now))) => {
                self.objects.policies.note(*now);
                Came::Done
            }
            Ok(Some(Rolled::Overtaken)) => Came::Overtaken,
            Err(error) if trouble(&error) == Trouble::Forbidden => {
                self.alone
                    .lacks("list Nodes and enactments, and write its slot into a policy's status", &error);
                Came::Theirs
            }
            Err(error) => return Err(error.into()),
        })
    }

    /// This host's own slot is taken, if there is one to be had, or given back. Only to take one it matters how the others
    /// stand; and not to the second: where hundreds want one, hundreds would ask for hundreds again and again.
    async fn roll_own(
        &mut self,
        object: &NodeNetworkConfigurationPolicy,
        policy: &PolicyName,
    ) -> Result<Option<Rolled>, kube::Error> {
        let own = self.objects.enactments.get(&self.enactment_name(policy));
        let Some(own) = own.and_then(|own| EnactmentKnown::of(&own)) else { return Ok(None) };
        let slots = object.status.as_ref().map(|status| &status.unavailable_nodes);
        let has_slot = slots.is_some_and(|slots| slots.contains_key(self.name.as_str()));
        let mut parts = match (has_slot, own.part.standing) {
            (true, _) => Vec::new(),
            (false, Standing::Pending) => {
                let holders: BTreeSet<NodeName> = slots
                    .into_iter()
                    .flat_map(|slots| slots.keys())
                    .map(|node| node.as_str().into())
                    .collect();
                self.parts(policy, object, &holders).await?
            }
            (false, _) => return Ok(None),
        };
        parts.retain(|part| part.node != self.name);
        parts.push(own.part);
        match policies::own_slot(object, &parts, &self.name) {
            None => Ok(None),
            Some(status) => policies::put(&self.client, object, &status).await.map(Some),
        }
    }

    /// How a policy stands on every node, as it was read not long ago: the more there are, the longer that is. Whoever of the
    /// `holders` of a slot took it since is at work, whatever was read before.
    async fn parts(
        &mut self,
        policy: &PolicyName,
        object: &NodeNetworkConfigurationPolicy,
        holders: &BTreeSet<NodeName>,
    ) -> Result<Vec<Part>, kube::Error> {
        let many = |known: &Standings| u32::try_from(known.parts.len()).unwrap_or(u32::MAX);
        let is_old =
            |known: &Standings| known.at.elapsed() >= PARTS_READ.max(PART_READ.saturating_mul(many(known)));
        if self.alone.parts.get(policy).is_none_or(is_old) {
            let parts = self.read_parts(policy).await?;
            let now = Standings { parts, at: Instant::now(), holders: holders.clone() };
            self.alone.parts.insert(policy.clone(), now);
        }
        let Some(known) = self.alone.parts.get(policy) else { return Ok(Vec::new()) };
        let generation = object.metadata.generation.unwrap_or_default();
        let since: Vec<&NodeName> = holders.difference(&known.holders).collect();
        let before = known.parts.iter().filter(|part| !since.contains(&&part.node)).cloned();
        let at_work = since.iter().map(|node| Part {
            node: (*node).clone(),
            generation,
            standing: Standing::Progressing,
        });
        Ok(before.chain(at_work).collect())
    }

    async fn read_parts(&self, policy: &PolicyName) -> Result<Vec<Part>, kube::Error> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let nodes = api::list::metadata(&nodes, &ListParams::default()).await?;
        let live: BTreeSet<NodeUid> =
            nodes.iter().filter_map(|node| node.uid.as_deref()).map(NodeUid::new).collect();
        let labelled = ListParams::default().labels(&format!("{}={policy}", crds::names::label::POLICY));
        let enactments: Api<NodeNetworkConfigurationEnactment> = Api::all(self.client.clone());
        // Of an enactment this is a hundredth.
        let part = |object: NodeNetworkConfigurationEnactment| {
            let known = EnactmentKnown::of(&Arc::new(object))?;
            let counts = known.claims.policy == *policy && live.contains(&known.claims.node_uid);
            counts.then_some(known.part)
        };
        Ok(api::list::all_as(&enactments, &labelled, part).await?.0)
    }
}
