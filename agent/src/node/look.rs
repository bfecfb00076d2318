//! What the agent sees: its policies, its enactments, what they want, what is on its NICs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crds::enactment::{PoolClaims, Refusal, RefusalReason};
use crds::{NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::Api;
use policy::capture::read_cached;
use policy::claim::{ClaimKey, Enactment, NodeSeen, Phase, PolicyName};
use policy::state::{Address, AddressProtocol};
use policy::template::{PolicyDoc, check, literal_addresses, literal_of};
use serde_json::Value;

use super::Agent;
use crate::api::Link;
use crate::api::error::optional;
use crate::records;

/// A policy that selects this node.
pub(super) struct Selected {
    pub(super) name: PolicyName,
    pub(super) object: Arc<NodeNetworkConfigurationPolicy>,
    pub(super) enactment: Option<Arc<NodeNetworkConfigurationEnactment>>,
    pub(super) read: Arc<Read>,
}

impl Selected {
    /// What the enactment says by now.
    pub(super) fn status(&self) -> Option<&crds::NodeNetworkConfigurationEnactmentStatus> {
        self.enactment.as_ref()?.status.as_ref()
    }

    /// A claim of this policy.
    pub(super) fn key(&self, pool: &str, capture: &str) -> ClaimKey {
        ClaimKey { policy: self.name.clone(), pool: pool.into(), capture: capture.into() }
    }

    /// What the enactment says of the pool of a claim.
    pub(super) fn claims(&self, key: &ClaimKey) -> Option<&PoolClaims> {
        self.status()?.ippool.get(key.pool.as_str())
    }

    /// Why a claim got nothing.
    pub(super) fn refusal(&self, key: &ClaimKey) -> Option<&Refusal> {
        let refusal = self.claims(key)?.refused.get(key.capture.as_str())?;
        (refusal.reason != RefusalReason::Released).then_some(refusal)
    }
}

/// What a policy says, read once per generation.
pub(super) struct Read {
    of: (Option<String>, Option<i64>),
    pub(super) doc: Result<PolicyDoc, String>,
    /// Capture → pool.
    pub(super) pools: BTreeMap<String, String>,
    /// The addresses that it names, with where.
    pub(super) literals: BTreeMap<IpAddr, String>,
}

impl Read {
    fn of(object: &NodeNetworkConfigurationPolicy) -> Self {
        let doc = serde_json::to_value(&object.spec)
            .map_err(|error| error.to_string())
            .and_then(|spec| PolicyDoc::from_value(&spec).map_err(|wrong| wrong.to_string()));
        let pools =
            doc.as_ref().map_err(Clone::clone).and_then(|doc| doc.pools().map_err(|wrong| wrong.to_string()));
        let (doc, pools) = match pools {
            Ok(pools) => (doc, pools),
            Err(wrong) => (Err(wrong), BTreeMap::new()),
        };
        let literals = doc.as_ref().map(|doc| literal_addresses(&doc.desired_state)).unwrap_or_default();
        let literals = literals.into_iter().collect();
        Self { of: (object.uid(), object.metadata.generation), doc, pools, literals }
    }
}

/// What was read of each enactment, by its UID and version.
pub(super) type Claims = Mutex<BTreeMap<(Option<String>, Option<String>), Enactment>>;

/// What was read of each policy, so that a look at hundreds costs what changed.
pub(super) type Readings = Mutex<BTreeMap<PolicyName, Arc<Read>>>;

impl Agent {
    /// Is there a Node for this host, as far as the API server says? That it is gone is asked, not concluded.
    pub(super) async fn node_seen(&self) -> NodeSeen {
        if self.objects.node.link() != Link::Current || !self.objects.are_read() || !self.registered.now() {
            return NodeSeen::Unreachable;
        }
        if let Some(node) = self.objects.node.get(self.name.as_str()) {
            return NodeSeen::Is(node.uid().unwrap_or_default().as_str().into());
        }
        let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(self.client.clone());
        match optional(nodes.get(self.name.as_str()).await) {
            // Its labels decide which policies select it, so it is kept before anything is decided.
            Ok(Some(node)) => {
                let uid = node.uid().unwrap_or_default();
                self.objects.node.note(node);
                NodeSeen::Is(uid.as_str().into())
            }
            Ok(None) => NodeSeen::Gone,
            Err(_) => NodeSeen::Unreachable,
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        let node = self.objects.node.get(self.name.as_str());
        let conditions = node.and_then(|node| node.status.clone()?.conditions).unwrap_or_default();
        conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    }

    /// The policies that select this node, in name order.
    pub(super) fn selected(&self) -> Vec<Selected> {
        let Some(node) = self.objects.node.get(self.name.as_str()) else {
            return Vec::new();
        };
        let matches = |object: &NodeNetworkConfigurationPolicy| {
            object.metadata.deletion_timestamp.is_none()
                && crate::controller::policies::selects(object, node.labels())
        };
        let taken = |object: &NodeNetworkConfigurationPolicy| {
            let until = self.taken.get(&PolicyName::new(object.name_any()));
            until.is_some_and(|until| *until > Instant::now())
        };
        let policies =
            self.objects.policies.all().into_iter().filter(|object| matches(object) && !taken(object));
        policies.map(|object| self.select(object)).collect()
    }

    pub(super) fn select(&self, object: Arc<NodeNetworkConfigurationPolicy>) -> Selected {
        let name = PolicyName::new(object.name_any());
        let enactment =
            self.objects.enactments.get(&crds::names::enactment_name(self.name.as_str(), name.as_str()));
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let known = readings.get(&name).filter(|read| read.of == (object.uid(), object.metadata.generation));
        let read = known.cloned().unwrap_or_else(|| Arc::new(Read::of(&object)));
        readings.insert(name.clone(), read.clone());
        Selected { name, object, enactment, read }
    }

    /// The claims that the policies make. A policy whose captures don't match here asks for nothing new; what it has it
    /// keeps, also while it can't be read, or the pools can't.
    pub(super) fn wants(&self, selected: &[Selected]) -> BTreeMap<ClaimKey, Option<IpAddr>> {
        let mut wants = BTreeMap::new();
        for one in selected {
            let kept: Vec<ClaimKey> = self.kept(one).collect();
            if one.read.doc.is_err() || !self.knows_ranges(one) {
                wants.extend(kept.into_iter().map(|key| {
                    let literal = literal_of(key.capture.as_str());
                    (key, literal)
                }));
                continue;
            }
            wants.extend(self.former_literals(one).into_iter().map(|(key, ip)| (key, Some(ip))));
            let literals = self.literals(one);
            if (one.read.pools.is_empty() && literals.is_empty())
                || (kept.is_empty() && self.ungranted(one).is_some())
            {
                continue;
            }
            wants.extend(literals.into_iter().map(|claim| (claim.key, Some(claim.ip))));
            let keys = one.read.pools.iter().map(|(capture, pool)| one.key(pool, capture));
            wants.extend(keys.map(|key| (key, None)));
        }
        wants
    }

    /// Claims of a policy that the journal has and that are not being given back; where it was lost, those that the own
    /// enactment has.
    fn kept<'a>(&'a self, one: &'a Selected) -> impl Iterator<Item = ClaimKey> + 'a {
        let own = self.host.journal.iter().filter(|(key, _)| key.policy == one.name);
        let kept =
            own.filter(|(_, record)| !matches!(record.phase, Phase::Releasing)).map(|(key, _)| key.clone());
        let asked = self.asked(one).into_iter().filter(|key| !self.host.journal.contains_key(key));
        kept.chain(asked)
    }

    /// The claims for which an enactment of this very Node asks.
    fn asked(&self, one: &Selected) -> Vec<ClaimKey> {
        let node = self.objects.node.get(self.name.as_str()).and_then(|node| node.uid());
        let own = one.enactment.as_ref().and_then(|own| records::enactment::read(own).ok());
        let own = own.filter(|own| node.as_deref() == Some(own.node_uid.as_str()));
        let slots = own.into_iter().flat_map(|own| own.slots);
        let asks = slots.filter(|(_, slot)| slot.request.as_ref().is_some_and(|request| request.want));
        asks.map(|(key, _)| one.key(key.pool.as_str(), key.capture.as_str())).collect()
    }

    /// What is wrong with a policy before it has any address, besides that it has none.
    pub(super) fn ungranted(&self, one: &Selected) -> Option<String> {
        let doc = one.read.doc.as_ref().ok()?;
        let cached = read_cached(&captured(one)).unwrap_or_default();
        check(doc, self.current(), &cached).err().map(|wrong| wrong.to_string())
    }

    /// The host's state, in nmstate's form.
    pub(super) fn current(&self) -> &Value {
        self.seen.as_ref().map_or(&Value::Null, |seen| &seen.current)
    }

    /// The enactments that bear this host's name, by policy.
    pub(super) fn enactments(&self) -> BTreeMap<PolicyName, Enactment> {
        let all = self.objects.enactments.all();
        let mut claims = self.claims_read.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *claims);
        let mut own = BTreeMap::new();
        for object in all {
            // The same object as before is what was read before.
            let version = (object.uid(), object.resource_version());
            let known = before.get(&version).cloned();
            let Some(read) = known.or_else(|| records::enactment::read(&object).ok()) else { continue };
            own.insert(read.policy.clone(), read.clone());
            claims.insert(version, read);
        }
        own
    }

    /// Pooled addresses on the NICs: those that the journal or an own enactment knows of, or that have Berth's mark.
    pub(super) fn pooled(&self, enactments: &BTreeMap<PolicyName, Enactment>) -> BTreeSet<IpAddr> {
        let journalled = self.host.journal.values().filter_map(|record| match &record.phase {
            Phase::Holding(lease) | Phase::Parked(lease) => Some(lease.clone()),
            Phase::Asking { .. } | Phase::Releasing => None,
        });
        let slots = enactments.values().flat_map(|own| own.slots.values());
        let said = slots.flat_map(|slot| {
            let granted = slot.grant.as_ref().map(|grant| grant.lease.clone());
            let held = slot.request.as_ref().and_then(|request| request.holds.clone());
            granted.into_iter().chain(held)
        });
        let known: BTreeSet<IpAddr> = journalled.chain(said).flat_map(|lease| lease.ips).collect();
        let pooled = |address: &&Address| {
            known.contains(&address.ip) || address.protocol == Some(AddressProtocol::BERTH)
        };
        self.addresses().filter(pooled).map(|address| address.ip).collect()
    }
}

/// `status.capturedStates` of an enactment, as far as they are of this very policy and not of one that had its name.
pub(super) fn captured(one: &Selected) -> Value {
    let own = one.enactment.as_ref().filter(|own| is_about(own, &one.object));
    let status = own.and_then(|own| own.status.as_ref());
    status.and_then(|status| serde_json::to_value(&status.captured_states).ok()).unwrap_or_default()
}

/// Is the enactment about this very policy? One that kubernetes-nmstate left doesn't say the policy's UID; it is about a
/// policy that was there before it, since an enactment never outlives its policy by more than its node was off.
fn is_about(own: &NodeNetworkConfigurationEnactment, policy: &NodeNetworkConfigurationPolicy) -> bool {
    match own.status.as_ref().and_then(|status| status.policy_uid.as_ref()) {
        Some(uid) => Some(uid) == policy.metadata.uid.as_ref(),
        None => {
            let made = |metadata: &ObjectMeta| metadata.creation_timestamp.as_ref().map(|time| time.0);
            made(&policy.metadata).is_some_and(|policy| made(&own.metadata).is_some_and(|own| policy <= own))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn enactment(made: &str, status: &Value) -> NodeNetworkConfigurationEnactment {
        let own = json!({"metadata": {"name": "a.b", "creationTimestamp": made}, "status": status});
        serde_json::from_value(own).unwrap()
    }

    #[test]
    fn what_kubernetes_nmstate_captured_is_of_the_policy_that_was_there() {
        let policy = json!({"metadata": {"name": "b", "uid": "u2", "creationTimestamp": "2026-03-02T10:00:00Z"}, "spec": {}});
        let policy: NodeNetworkConfigurationPolicy = serde_json::from_value(policy).unwrap();
        let (before, same, after) = ("2026-03-02T09:59:59Z", "2026-03-02T10:00:00Z", "2026-03-02T10:00:01Z");
        let theirs = json!({"policyGeneration": 1});
        assert!(is_about(&enactment(after, &theirs), &policy));
        assert!(is_about(&enactment(same, &theirs), &policy));
        assert!(!is_about(&enactment(before, &theirs), &policy), "the policy was made anew");
        // Where it is said, it is said.
        assert!(is_about(&enactment(before, &json!({"policyUID": "u2"})), &policy));
        assert!(!is_about(&enactment(after, &json!({"policyUID": "u1"})), &policy));
    }
}
