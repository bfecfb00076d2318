//! Carrying out what `policy::claim` says: one action after the other, each told back.

use std::collections::BTreeSet;

use crds::names::finalizer;
use crds::{NodeIPPool, NodeIPPoolStatus, NodeNetworkConfigurationEnactment};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use policy::claim::{
    self, Action, ClaimKey, Inheritance, Lease, NodeSeen, NodeUid, Outcome, Phase, PolicyName, Request,
    RequestId, Seen, Slot, SlotKey, Time,
};
use policy::pool::{Barred, Pool};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::lossy::left_out;
use super::{Agent, NodeError};
use crate::api::error::{Trouble, optional, trouble, words};
use crate::api::{guard, list, random};
use crate::clock::now;
use crate::controller::ledger::{self, Written};
use crate::fault;
use crate::records;
use crate::telemetry::say;

/// What one look at the claims came to.
pub(super) enum Did {
    Something,
    /// Somebody else wrote first.
    Overtaken,
    Nothing {
        until: Option<Time>,
    },
}

/// How long a question without an answer rests, and up to as long again.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// How long a policy is left alone whose enactment's name is another node's.
const TAKEN: Duration = Duration::from_secs(30);

impl Agent {
    /// Does the next thing about claims.
    pub(super) async fn claims(&mut self) -> Result<Did, NodeError> {
        let node = self.node_seen().await;
        let selected = self.selected();
        if matches!(node, NodeSeen::Is(_)) {
            self.read_ranges(&selected).await;
        }
        let policies: BTreeSet<PolicyName> = selected.iter().map(|one| one.name.clone()).collect();
        let wants = self.wants(&selected);
        // Policies are put on the NIC whole, by what `policy::enact` says of them: those of the journal too, which is all
        // there is without the API.
        let waits = policies.iter().chain(self.host.journal.keys().map(|key| &key.policy)).cloned().collect();
        let enactments = self.enactments();
        let nic = self.pooled(&enactments);
        let good = self.book.in_good();
        let state = self.objects.state.get(self.name.as_str());
        let said = state.as_ref().and_then(|state| records::state::said(state).ok());
        let fresh_id = RequestId::of(&self.name, &random::id());
        let action = self.host.next(&Seen {
            now: now(),
            node: &node,
            ready: self.is_ready(),
            selected: &policies,
            wants: &wants,
            waits: &waits,
            enactments: &enactments,
            state: said.as_ref(),
            refresh: state.as_ref().is_some_and(|state| self.asks_for_report(state)),
            nic: &nic,
            good: &good,
            fresh_id: &fresh_id,
        });
        let Some(action) = action else {
            return Ok(Did::Nothing { until: None });
        };
        // While a pool is gone or on hold there is no answer: nobody is asked a thousand times for it.
        if let Action::Confirm { key, .. } | Action::Inherit { key, .. } = &action
            && self.unanswered.get(key).is_some_and(|at| *at > Instant::now())
        {
            return Ok(Did::Nothing { until: Some(now() + ASK_AGAIN.as_secs()) });
        }
        let Some(outcome) = self.act(&action).await? else {
            return Ok(Did::Overtaken);
        };
        fault::acted(&action);
        if let Action::Confirm { key, .. } | Action::Inherit { key, .. } = &action {
            match outcome {
                Outcome::Backed(false) | Outcome::Asserted => {
                    self.unanswered.insert(key.clone(), Instant::now() + ASK_AGAIN + random::up_to(ASK_AGAIN))
                }
                _ => self.unanswered.remove(key),
            };
        }
        self.done(&action, &outcome)?;
        Ok(Did::Something)
    }

    /// Takes in how an action went, and journals what follows from it.
    fn done(&mut self, action: &Action, outcome: &Outcome) -> Result<(), NodeError> {
        let after = self.host.after(action, outcome);
        self.host.done(action, outcome, now());
        if let Some(follow_up @ Action::Journal { .. }) = after {
            self.journal(&follow_up)?;
            self.host.done(&follow_up, &Outcome::Done, now());
        }
        Ok(())
    }

    pub(super) fn journal(&mut self, action: &Action) -> Result<(), NodeError> {
        if let Action::Journal { key, record } = action {
            self.book.write_claim(key, record.as_ref())?;
            if let Some(Phase::Holding(lease)) = record.as_ref().map(|record| &record.phase) {
                self.wire.held(lease);
            }
            self.telling.journalled(key, record.as_ref());
            fault::journalled(record.as_ref());
        }
        Ok(())
    }

    /// `None`: it came to nothing, since somebody else wrote first; look again.
    async fn act(&mut self, action: &Action) -> Result<Option<Outcome>, NodeError> {
        match action {
            Action::Journal { .. } => self.journal(action)?,
            Action::Announce { .. } => {}
            // Never asked for: every policy waits.
            Action::AddToNic { .. } => return Ok(None),
            Action::RemoveFromNic { ips } => {
                self.kernel.remove(ips.iter().copied().collect()).await?;
                self.woken.kernel();
            }
            Action::Report { node_uid, shows } => {
                if !self.report(node_uid, shows).await? {
                    return Ok(None);
                }
            }
            Action::Confirm { key, lease } => return Ok(Some(self.confirm(key, lease).await?)),
            Action::Inherit { key, id, lease, node_uid } => {
                return Ok(Some(self.inherit(key, id, lease, node_uid).await?));
            }
            Action::CreateEnactment { policy, node_uid, slots } => {
                self.create(policy, node_uid, slots).await?;
            }
            Action::WriteRequests { policy, requests } => {
                if requests.values().any(|request| request.want) && !self.finalize(policy).await? {
                    return Ok(None);
                }
                if action.says_held() {
                    return Ok(self.say_held(policy, requests).await?.then_some(Outcome::Done));
                }
                let patch = requests.iter().map(|(key, request)| asks(key, Some(request)));
                return self.write_slots(policy, merged(patch)).await;
            }
            Action::RemoveSlot { key } => {
                return self.write_slots(&key.policy, self.removes(key)).await;
            }
            Action::DropEnactment { policy, node_uid } => self.drop_enactment(policy, node_uid).await?,
        }
        Ok(Some(Outcome::Done))
    }

    async fn confirm(&mut self, key: &ClaimKey, lease: &Lease) -> Result<Outcome, NodeError> {
        let read = self.read_pool(key.pool.as_str()).await?;
        let id = self.host.journal.get(key).map(|record| record.id.clone());
        if let Some((object, pool)) = &read {
            self.slices.is(&key.pool, pool.is_sliced());
            if let Some(id) = id.as_ref().filter(|_| pool.is_sliced()) {
                return Ok(Outcome::Backed(self.confirm_sliced(object, pool, id, lease).await?));
            }
        }
        let ledger = read.and_then(|(object, pool)| records::pool::read(&object, &pool).ok());
        Ok(Outcome::Backed(id.is_some_and(|id| claim::confirms(ledger.as_ref(), &id, lease))))
    }

    async fn inherit(
        &self,
        key: &ClaimKey,
        id: &RequestId,
        lease: &Lease,
        uid: &NodeUid,
    ) -> Result<Outcome, NodeError> {
        let read = self.read_pool(key.pool.as_str()).await?;
        let Some((object, pool)) = read else { return Ok(Outcome::Asserted) };
        if pool.is_sliced() {
            // A slice is its Node's for good: what is on the NIC is asserted, and kept in the pool's own ledger until the
            // former Node's slice is free; what is not is claimed anew.
            let record = self.host.journal.get(key);
            let is_parked = record.is_some_and(|record| matches!(record.phase, Phase::Parked(_)));
            return Ok(if is_parked { Outcome::NotOurs } else { Outcome::Asserted });
        }
        let Ok(ledger) = records::pool::read(&object, &pool) else { return Ok(Outcome::Asserted) };
        Ok(match claim::inherit(&ledger, id, lease, uid) {
            Inheritance::Write(next) => {
                let object = Arc::new(object);
                // As many as before: what else the pool can't give is not known here.
                let says = |before: &NodeIPPoolStatus, status: &mut NodeIPPoolStatus| {
                    ledger::as_a_host(before, status);
                    status.available = before.available;
                };
                // Whatever came of it is seen at the next look.
                match ledger::write(&self.client, &object, &pool, &Barred::default(), &next, says).await {
                    Ok(Written::Done(_) | Written::Overtaken(_)) => Outcome::Done,
                    Ok(Written::Refused(_)) => Outcome::Asserted,
                    // No other claim waits for a right.
                    Err(error) if trouble(&error) == Trouble::Forbidden => {
                        say(&format!("{}: pool {}: {}", self.name, key.pool, words(&error)));
                        Outcome::Asserted
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Inheritance::Done => Outcome::Inherited,
            Inheritance::Lost => Outcome::NotOurs,
            Inheritance::NotNow => Outcome::Asserted,
        })
    }

    /// The pool as the API server has it now (rule 9).
    async fn read_pool(&self, name: &str) -> Result<Option<(NodeIPPool, Pool)>, NodeError> {
        let pools: Api<NodeIPPool> = Api::all(self.client.clone());
        let Some(object) = list::one(&pools, name).await? else { return Ok(None) };
        let pool = records::pool::meaning(&object).ok();
        Ok(pool.map(|pool| (object, pool)))
    }

    fn enactment_api(&self) -> Api<NodeNetworkConfigurationEnactment> {
        Api::all(self.client.clone())
    }

    pub(super) fn enactment_name(&self, policy: &PolicyName) -> String {
        crds::names::enactment_name(self.name.as_str(), policy.as_str())
    }

    /// Makes an enactment, with what it asks for and the finalizer that keeps it while it holds addresses.
    pub(super) async fn create(
        &mut self,
        policy: &PolicyName,
        uid: &NodeUid,
        slots: &BTreeMap<SlotKey, Slot>,
    ) -> Result<(), NodeError> {
        let metadata = records::enactment::metadata(&self.name, uid, policy);
        let (metadata, asked) = match metadata.and_then(|made| Ok((made, records::enactment::asked(slots)?)))
        {
            Ok(made) => made,
            Err(why) => {
                self.leave_alone(policy, &format!("policy {policy} can't have an enactment here: {why}"));
                return Ok(());
            }
        };
        let annotations = asked.map(|asked| BTreeMap::from([asked]));
        let metadata = ObjectMeta { annotations, ..metadata };
        let object = NodeNetworkConfigurationEnactment { metadata, ..Default::default() };
        match self.enactment_api().create(&PostParams::default(), &object).await {
            Ok(made) => self.objects.enactments.note(made),
            // Made by us before, or by a namesake: the next look tells.
            Err(error) if trouble(&error) == Trouble::Exists => {
                let name = self.enactment_name(policy);
                let why = match self.reread(policy).await? {
                    Whose::Ours | Whose::Nobodys => return Ok(()),
                    Whose::Another => "is another node's: rename the policy, or the node".to_owned(),
                    Whose::Unreadable(why) => format!("can't be read: {why}; mend or delete it"),
                };
                self.leave_alone(policy, &format!("policy {policy}: enactment {name} {why}"));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// An enactment that kubernetes-nmstate made has no finalizer to keep it while it holds addresses: it gets one before it
    /// asks for any. Whether it has it; one that is being deleted can't.
    async fn finalize(&self, policy: &PolicyName) -> Result<bool, NodeError> {
        let name = self.enactment_name(policy);
        let Some(own) = self.objects.enactments.get(&name) else { return Ok(false) };
        let has_it = own.finalizers().iter().any(|one| one == finalizer::ADDRESSES);
        if has_it || own.metadata.deletion_timestamp.is_some() {
            return Ok(true);
        }
        let mut finalizers = own.finalizers().to_vec();
        finalizers.push(finalizer::ADDRESSES.to_owned());
        let metadata =
            json!({"resourceVersion": own.resource_version(), "uid": own.uid(), "finalizers": finalizers});
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let written = self.enactment_api().patch(&name, &PatchParams::default(), &patch).await;
        self.written(policy, written).await
    }

    /// Nothing can be done about a policy for now: that is said, and looked at again after a while.
    fn leave_alone(&mut self, policy: &PolicyName, why: &str) {
        self.taken.insert(policy.clone(), Instant::now() + TAKEN);
        if let Some(object) = self.objects.policies.get(policy.as_str()) {
            self.telling.refused(&object, why);
        }
    }

    /// A patch that removes a slot; of the addresses given those of the pool's other captures stay.
    fn removes(&self, key: &ClaimKey) -> Value {
        let own = self.objects.enactments.get(&self.enactment_name(&key.policy));
        let status = own.and_then(|own| own.status.clone()).unwrap_or_default();
        let claims = status.ippool.get(key.pool.as_str()).cloned().unwrap_or_default();
        let others = claims.grants.iter().filter(|(capture, _)| *capture != key.capture.as_str());
        let left: Vec<&String> = others
            .flat_map(|(_, grant)| [Some(&grant.address.ip), grant.ipv6.as_ref().map(|second| &second.ip)])
            .flatten()
            .collect();
        let capture = key.capture.as_str();
        let is_last = claims.requests.keys().chain(claims.grants.keys()).all(|one| one == capture);
        if is_last {
            return json!({"ippool": {key.pool.as_str(): null}});
        }
        let mut patch = asks(&key.slot(), None);
        patch["ippool"][key.pool.as_str()]["allocated"] = json!(left);
        patch
    }

    async fn write_slots(&self, policy: &PolicyName, status: Value) -> Result<Option<Outcome>, NodeError> {
        Ok(self.write_status(policy, status).await?.then_some(Outcome::Done))
    }

    /// Writes part of an own enactment's status, if it is still what was read. Whether it is written.
    async fn write_status(&self, policy: &PolicyName, status: Value) -> Result<bool, NodeError> {
        let name = self.enactment_name(policy);
        let Some(own) = self.objects.enactments.get(&name) else { return Ok(false) };
        let metadata = json!({"resourceVersion": own.resource_version(), "uid": own.uid()});
        let status = merged([beginning(&own), status].into_iter());
        let patch = Patch::Merge(json!({"metadata": metadata, "status": &status}));
        let written = self.enactment_api().patch_status(&name, &PatchParams::default(), &patch).await;
        self.wholly_written(policy, &status, written).await
    }

    /// Writes whole fields of an own enactment's status in place of what they were, if it is still what was read.
    /// Whether it is written.
    pub(super) async fn replace_status(
        &self,
        policy: &PolicyName,
        fields: Vec<(&str, Value)>,
    ) -> Result<bool, NodeError> {
        let name = self.enactment_name(policy);
        let Some(own) = self.objects.enactments.get(&name) else { return Ok(false) };
        let mut writes = vec![
            guard::same(&["metadata", "uid"], json!(own.uid())),
            guard::same(&["metadata", "resourceVersion"], json!(own.resource_version())),
        ];
        if own.status.is_none() {
            writes.push(guard::put(&["status"], beginning(&own)));
        }
        let sent: Value = fields.iter().map(|(field, value)| ((*field).to_owned(), value.clone())).collect();
        writes.extend(fields.into_iter().map(|(field, value)| guard::put(&["status", field], value)));
        let patch = Patch::Json::<()>(guard::patch(writes));
        match self.enactment_api().patch_status(&name, &PatchParams::default(), &patch).await {
            // Overtaken, or against the rules: a look tells.
            Err(error) if trouble(&error) == Trouble::Refused => {
                self.reread(policy).await?;
                let now = self.objects.enactments.get(&name).and_then(|now| now.resource_version());
                if now == own.resource_version() { Err(error.into()) } else { Ok(false) }
            }
            written => self.wholly_written(policy, &sent, written).await,
        }
    }

    /// Takes in what a write of a status came to, if all of it is in the answer.
    async fn wholly_written(
        &self,
        policy: &PolicyName,
        sent: &Value,
        written: kube::Result<NodeNetworkConfigurationEnactment>,
    ) -> Result<bool, NodeError> {
        let field = written.as_ref().ok().and_then(|now| left_out(sent, now));
        let written = self.written(policy, written).await?;
        let crd = "nodenetworkconfigurationenactments.nmstate.io";
        field.map_or(Ok(written), |field| Err(NodeError::LeftOut { crd, field }))
    }

    /// Takes in what a guarded write of an own enactment came to. Whether it is written; if somebody else wrote first, what
    /// there is now is known.
    async fn written(
        &self,
        policy: &PolicyName,
        written: kube::Result<NodeNetworkConfigurationEnactment>,
    ) -> Result<bool, NodeError> {
        match written {
            Ok(now) => {
                self.objects.enactments.note(now);
                Ok(true)
            }
            Err(error) => match trouble(&error) {
                Trouble::Conflict | Trouble::NotFound => {
                    self.reread(policy).await?;
                    Ok(false)
                }
                _ => Err(error.into()),
            },
        }
    }

    /// What there is now, without waiting for the watch.
    pub(super) async fn reread(&self, policy: &PolicyName) -> Result<Whose, NodeError> {
        let name = self.enactment_name(policy);
        let Some(now) = optional(self.enactment_api().get(&name).await)? else {
            self.objects.enactments.forget(&name);
            return Ok(Whose::Nobodys);
        };
        // Both names may contain dots: whose it is, is not said by its own.
        let whose = match records::enactment::read(&now) {
            Ok(claims) if claims.node == self.name => Whose::Ours,
            Err(why) if records::read_owner(&now.metadata).is_ok_and(|(node, _)| node == self.name) => {
                Whose::Unreadable(why.to_string())
            }
            Ok(_) | Err(_) => Whose::Another,
        };
        match whose {
            Whose::Ours => self.objects.enactments.note(now),
            _ => self.objects.enactments.forget(&name),
        }
        Ok(whose)
    }

    async fn drop_enactment(&self, policy: &PolicyName, uid: &NodeUid) -> Result<(), NodeError> {
        let name = self.enactment_name(policy);
        let Some(own) = self.objects.enactments.get(&name) else { return Ok(()) };
        let is_meant = records::enactment::read(&own).is_ok_and(|claims| claims.node_uid == *uid);
        if !is_meant {
            return Ok(());
        }
        let mut finalizers = own.finalizers().to_vec();
        finalizers.retain(|one| one != finalizer::ADDRESSES);
        let metadata = json!({"resourceVersion": own.resource_version(), "finalizers": finalizers});
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let gone = match self.enactment_api().patch(&name, &PatchParams::default(), &patch).await {
            Ok(_) => {
                fault::point("finalizer-off");
                let exactly = Preconditions { uid: own.uid(), resource_version: None };
                let params = DeleteParams { preconditions: Some(exactly), ..DeleteParams::default() };
                self.enactment_api().delete(&name, &params).await.map(drop)
            }
            Err(error) => Err(error),
        };
        match gone {
            Ok(()) => self.reread(policy).await.map(drop),
            Err(error) => match trouble(&error) {
                Trouble::NotFound | Trouble::Conflict => self.reread(policy).await.map(drop),
                _ => Err(error.into()),
            },
        }
    }
}

/// Whose an enactment is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    Another,
    /// Ours by its owner, and not what Berth writes: why.
    Unreadable(String),
    Nobodys,
}

/// What a status begins with that there is not yet: what was asked for until now.
fn beginning(own: &NodeNetworkConfigurationEnactment) -> Value {
    match &own.status {
        Some(_) => json!({}),
        None => json!({"ippool": records::enactment::pools(own).unwrap_or_default()}),
    }
}

/// A merge patch of a status that sets one request, or removes its slot. What a request no longer has is named.
fn asks(key: &SlotKey, request: Option<&Request>) -> Value {
    let (pool, capture) = (key.pool.as_str(), key.capture.as_str());
    let Some(request) = request else {
        return json!({"ippool": {pool: {
            "requests": {capture: null}, "grants": {capture: null}, "refused": {capture: null}, "allocated": null,
        }}});
    };
    let mut value = json!({"holds": null, "declined": null, "literal": null});
    if let Ok(Value::Object(fields)) =
        records::enactment::request(&key.pool, &key.capture, request).map(|request| json!(request))
    {
        for (field, content) in fields {
            value[field] = content;
        }
    }
    json!({"ippool": {pool: {"requests": {capture: value}}}})
}

/// Several patches as one.
fn merged(patches: impl Iterator<Item = Value>) -> Value {
    fn add(into: &mut Value, from: Value) {
        match (into, from) {
            (Value::Object(into), Value::Object(from)) => {
                for (key, value) in from {
                    add(into.entry(key).or_insert(Value::Object(Default::default())), value);
                }
            }
            (into, from) => *into = from,
        }
    }
    patches.fold(json!({}), |mut all, patch| {
        add(&mut all, patch);
        all
    })
}
