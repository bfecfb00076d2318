//! Literal addresses of policies that are in a pool's range (rule 11): which pools those are, and what is claimed of them.
//!
//! Agents don't watch pools (rule 9). What their specs mean is read for a policy that names an address, once per UID and
//! generation of it, before it is first applied; all policies that are new share one reading. It is read again
//!
//! - when such a policy is about to be applied, or repaired, with an address that no pool had when that was read more than
//!   [`FRESH`] ago: the policy may have waited for days, and its pool be made meanwhile;
//! - when such a policy was applied with an address that no pool had, once the report shows it: a pool that was made meanwhile
//!   is in that reading, and one that is made later finds the address in the report, is rebuilt with it (rule 5), and has
//!   the controller ask for this host's word;
//! - when somebody asks for a report: that may be why. A report that comes by itself may be the word that a controller waits for,
//!   so after each of them, too, while a policy has an address that no pool had;
//! - when a pool is gone that was asked for an address, or is there that wasn't.
//!
//! An address that was on a card before it was claimed stays there: its policy is not held up while it is asked for, and if it
//! is refused that is said, and nothing is taken off. What no pool gives to anybody (excluded, a gateway) needs no claim then.
//!
//! Where the pools can't be read, policies that name addresses wait, and say why; what they have they keep. No other policy waits.
//!
//! Costs: of policies that name no address nothing, no memory either. A reading is a list of the pools' metadata, and one read of
//! each pool whose spec is not known, which then stays known; at rest nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crds::NodeIPPool;
use crds::enactment::RefusalReason;
use crds::names::label;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use policy::claim::{ClaimKey, Phase, Time};
use policy::enact::named;
use policy::pool::{Pool, Status};
use policy::rollout::Standing;
use policy::template::{literal_capture, literal_of};
use serde_json::Value;

use super::Agent;
use super::look::Selected;
use crate::api::error::{Trouble, trouble, words};
use crate::api::list;
use crate::api::troubles::Troubles;
use crate::clock::steady;
use crate::records;

/// For how long it counts that no pool has an address: less than it takes to make one and have it give, and more than it takes to
/// come from the reading to the card.
const FRESH: Time = 3;

/// Which object, and which of its specs.
type Version = (Option<String>, Option<i64>);

/// What is known of pools' ranges.
#[derive(Default)]
pub(super) struct Ranges {
    /// By name.
    pools: BTreeMap<String, (Version, Option<Pool>)>,
    /// The policies that this was read for.
    read_for: BTreeSet<Version>,
    /// There may be a pool more by now, or one less.
    again: bool,
    /// What was last asked for by the label that asks for a report.
    asked: Option<String>,
    /// Requests that were answered that there is no such pool.
    missing: BTreeSet<String>,
    /// How often it was read.
    reads: u64,
    /// When it was last read, by the steady clock.
    read_at: Option<Time>,
    /// The report that was current when it was last thought of.
    report: Option<String>,
    /// What goes wrong when they are read.
    troubles: Troubles,
    /// The last of it, and when they are read again.
    unread: Option<(String, Time)>,
}

impl Ranges {
    /// Grows with every reading.
    pub(super) fn reads(&self) -> u64 {
        self.reads
    }

    fn covering(&self, ip: IpAddr) -> impl Iterator<Item = &Pool> {
        self.pools.values().filter_map(|(_, pool)| pool.as_ref()).filter(move |pool| pool.contains(ip))
    }

    /// The list knows of this spec what is known here.
    fn knows(&self, metadata: &ObjectMeta) -> bool {
        let name = metadata.name.as_deref().unwrap_or_default();
        self.pools.get(name).is_some_and(|(version, _)| *version == version_of(metadata))
    }
}

/// A claim that a policy's literal address needs.
pub(super) struct LiteralClaim<'a> {
    pub(super) key: ClaimKey,
    pub(super) ip: IpAddr,
    /// Where the policy names it.
    pub(super) path: &'a str,
}

impl Agent {
    /// Reads the pools, if there is reason to and it did not go wrong a moment ago.
    pub(super) async fn read_ranges(&mut self, selected: &[Selected]) {
        if self.ranges.unread.as_ref().is_some_and(|(_, until)| *until > steady()) {
            return;
        }
        match self.try_read_ranges(selected).await {
            Ok(()) => {
                self.ranges.troubles.over();
                self.ranges.unread = None;
            }
            Err(error) => {
                let why = words(&error);
                let said = format!(
                    "{}: the pools can't be read, so policies that name addresses wait: {why}",
                    self.name
                );
                let wait = self.ranges.troubles.again(&said);
                self.ranges.unread = Some((why, steady() + wait.as_secs().max(1)));
            }
        }
    }

    async fn try_read_ranges(&mut self, selected: &[Selected]) -> Result<(), kube::Error> {
        let naming = selected.iter().filter(|one| !one.read.literals.is_empty());
        let of: BTreeSet<Version> = naming.map(|one| version_of(&one.object.metadata)).collect();
        if of.is_empty() {
            self.ranges = Ranges { reads: self.ranges.reads, ..Ranges::default() };
            return Ok(());
        }
        self.wonder(selected);
        let is_new = !of.is_subset(&self.ranges.read_for);
        // The report comes first: a pool that is made after the reading finds there what this host has.
        if !self.host.memory.reported || !(is_new || self.ranges.again) {
            return Ok(());
        }
        let is_reported = self.is_reported();
        if !is_new && !is_reported {
            return Ok(());
        }
        let api: Api<NodeIPPool> = Api::all(self.client.clone());
        let listed = match list::metadata(&api, &ListParams::default()).await {
            // Pools are not known there.
            Err(error) if trouble(&error) == Trouble::NotFound => Vec::new(),
            listed => listed?,
        };
        let names: BTreeSet<&str> = listed.iter().filter_map(|one| one.name.as_deref()).collect();
        self.ranges.pools.retain(|name, _| names.contains(name.as_str()));
        let unknown =
            listed.iter().filter(|one| !self.ranges.knows(one)).filter_map(|one| one.name.as_deref());
        let unknown: Vec<&str> = unknown.collect();
        for name in unknown {
            match list::one(&api, name).await? {
                Some(pool) => {
                    let known = (version_of(&pool.metadata), records::pool::meaning(&pool).ok());
                    self.ranges.pools.insert(name.to_owned(), known);
                }
                None => {
                    self.ranges.pools.remove(name);
                }
            }
        }
        self.ranges.read_for = of;
        self.ranges.reads += 1;
        self.ranges.read_at = Some(steady());
        self.ranges.again &= !is_reported;
        Ok(())
    }

    /// Is there a sign that pools came or went?
    fn wonder(&mut self, selected: &[Selected]) {
        let state = self.objects.state.get(self.name.as_str());
        let report = state.as_ref().and_then(|state| Some(state.status.as_ref()?.stamp.clone()));
        if report != self.ranges.report {
            self.ranges.report = report;
            self.ranges.again |= selected.iter().any(|one| !self.unclaimed(one).is_empty());
        }
        let asked = state.filter(|state| self.asks_for_report(state));
        let asked = asked.and_then(|state| state.labels().get(label::FORCE_STATE_REFRESH).cloned());
        if asked.is_some() && asked != self.ranges.asked {
            self.ranges.asked = asked;
            self.ranges.again = true;
        }
        let claims = selected.iter().filter_map(Selected::status).flat_map(|status| status.ippool.values());
        let refused = claims.flat_map(|claims| &claims.refused);
        let missing = refused.filter(|(_, refusal)| refusal.reason == RefusalReason::NoSuchPool);
        let missing: BTreeSet<String> = missing.map(|(_, refusal)| refusal.id.clone()).collect();
        self.ranges.again |= missing != self.ranges.missing;
        self.ranges.missing = missing;
    }

    /// Why the pools can't be read, and when that is tried again.
    pub(super) fn unread(&self) -> Option<&(String, Time)> {
        self.ranges.unread.as_ref()
    }

    /// Were the pools read since this policy came to be as it is?
    pub(super) fn knows_ranges(&self, one: &Selected) -> bool {
        one.read.literals.is_empty() || self.ranges.read_for.contains(&version_of(&one.object.metadata))
    }

    /// May the policy be applied by what is known of pools? Not with an address that is on no card yet and that no pool had, when
    /// that was long ago: it is read again first.
    pub(super) fn may_be_applied(&mut self, one: &Selected) -> bool {
        let there = |ip: &IpAddr| self.addresses().any(|address| address.ip == *ip);
        let is_unclaimed = !self.unclaimed(one).iter().all(there);
        let is_fresh = self.ranges.read_at.is_some_and(|at| steady() < at + FRESH);
        if is_unclaimed && !is_fresh {
            self.ranges.read_for.remove(&version_of(&one.object.metadata));
            return false;
        }
        true
    }

    /// A policy was applied: which pools there are is read once more if it put an address on a card that none has.
    pub(super) fn applied_literals(&mut self, one: &Selected) {
        self.ranges.again |= !self.unclaimed(one).is_empty();
    }

    /// Has a state of the policy's an address that a pool has, as far as is known, and that is neither held for it nor on a card?
    pub(super) fn lacks_claim(&self, one: &Selected, state: &Value) -> bool {
        let held: BTreeSet<IpAddr> = self.host.held_by(|policy| *policy == one.name).collect();
        let is_there = |ip: IpAddr| held.contains(&ip) || self.addresses().any(|address| address.ip == ip);
        named(state)
            .any(|(ip, _)| !is_there(ip) && self.ranges.covering(ip).any(|pool| !gives_nobody(pool, ip)))
    }

    /// The addresses that a policy names and that need no claim, as far as is known.
    fn unclaimed(&self, one: &Selected) -> BTreeSet<IpAddr> {
        let claims = self.literals(one);
        let is_claimed = |ip: &IpAddr| claims.iter().any(|claim| claim.ip == *ip);
        one.read.literals.keys().copied().filter(|ip| !is_claimed(ip)).collect()
    }

    /// The claims that a policy's literal addresses need: on each pool that has the address; and what is held of a pool that is
    /// gone stays so.
    pub(super) fn literals<'a>(&self, one: &'a Selected) -> Vec<LiteralClaim<'a>> {
        let mut claims = Vec::new();
        for (ip, path) in &one.read.literals {
            let ip = *ip;
            let capture = literal_capture(ip);
            let covering =
                self.ranges.covering(ip).filter(|pool| !gives_nobody(pool, ip) || !self.was_used(one, ip));
            let mut pools: BTreeSet<&str> = covering.map(Pool::name).collect();
            pools.extend(
                self.held_literals(one)
                    .filter(|key| key.capture.as_str() == capture)
                    .map(|key| key.pool.as_str()),
            );
            let said = one.status().into_iter().flat_map(|status| &status.ippool);
            let holds = said.filter(|(_, claims)| {
                claims.requests.get(&capture).is_some_and(|request| request.want && request.holds.is_some())
            });
            pools.extend(holds.map(|(pool, _)| pool.as_str()));
            claims.extend(pools.into_iter().map(|pool| LiteralClaim {
                key: one.key(pool, &capture),
                ip,
                path,
            }));
        }
        claims
    }

    /// What a policy no longer names and is still in use by it: held until the state that does without it is applied.
    pub(super) fn former_literals(&self, one: &Selected) -> Vec<(ClaimKey, IpAddr)> {
        let held =
            self.held_literals(one).filter_map(|key| Some((key.clone(), literal_of(key.capture.as_str())?)));
        held.filter(|(_, ip)| self.was_brought(one, *ip)).collect()
    }

    /// The claims of a policy's literal addresses that the journal holds.
    fn held_literals<'a>(&'a self, one: &'a Selected) -> impl Iterator<Item = &'a ClaimKey> + 'a {
        let own = self.host.journal.iter().filter(|(key, _)| key.policy == one.name);
        let held = own.filter(|(_, record)| matches!(record.phase, Phase::Holding(_) | Phase::Parked(_)));
        held.map(|(key, _)| key).filter(|key| literal_of(key.capture.as_str()).is_some())
    }

    /// Is this address of the policy's in use here, from before it was claimed?
    pub(super) fn had(&self, one: &Selected, ip: IpAddr) -> bool {
        self.was_used(one, ip) && self.addresses().any(|address| address.ip == ip)
    }

    /// Did the policy bring it about here, whether it is on a card just now or not? By the journal, or where that was lost by what
    /// the enactment says.
    fn was_used(&self, one: &Selected, ip: IpAddr) -> bool {
        let said = one.status().filter(|status| {
            status.policy_uid == one.object.uid()
                && records::standing::read(&status.conditions) == Standing::Available
        });
        let said = said.and_then(|status| status.desired_state.as_ref());
        let is_said = said.is_some_and(|state| named(state).any(|(other, _)| other == ip));
        is_said || self.was_brought(one, ip)
    }

    /// Does the last good state of the policy have it?
    fn was_brought(&self, one: &Selected, ip: IpAddr) -> bool {
        self.book.state(&one.name).is_some_and(|state| named(state).any(|(other, _)| other == ip))
    }
}

/// Is it an address of the pool's that it never gives?
fn gives_nobody(pool: &Pool, ip: IpAddr) -> bool {
    matches!(pool.explain(ip), Status::Gateway { .. } | Status::Excluded(_))
}

fn version_of(metadata: &ObjectMeta) -> Version {
    (metadata.uid.clone(), metadata.generation)
}
