//! One claim of a host: what to do next about it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{
    Action, CONFIRMED_FOR, ClaimKey, Enactment, Host, Lease, NodeUid, Phase, Record, RefusalReason, Request,
    Seen, Slot, SlotKey, Stranger, add_missing, is_refused, journal, on_nic,
};

pub(super) fn next(host: &Host, key: &ClaimKey, seen: &Seen<'_>, uid: &NodeUid) -> Option<Action> {
    let look = Look::at(host, key, seen, uid);
    match host.journal.get(key) {
        None => look.unrecorded(),
        Some(record) if record.node_uid != *uid => look.inherited(record),
        Some(record) => match &record.phase {
            Phase::Releasing => look.releasing(record),
            Phase::Parked(_) => Some(journal(key, record, Phase::Asking { declined: BTreeMap::new() })),
            Phase::Asking { .. } if !look.wanted() || look.asks_otherwise(record) => look.let_go(record, &[]),
            Phase::Asking { declined } => look.asking(record, declined),
            Phase::Holding(lease) if look.keeps(lease) => look.holding(record, lease),
            Phase::Holding(lease) => look.let_go(record, &lease.ips),
        },
    }
}

struct Look<'a> {
    host: &'a Host,
    key: &'a ClaimKey,
    seen: &'a Seen<'a>,
    uid: &'a NodeUid,
    /// The own enactment of this policy; a predecessor's does not count.
    own: Option<&'a Enactment>,
    slot: Option<&'a Slot>,
}

impl<'a> Look<'a> {
    fn at(host: &'a Host, key: &'a ClaimKey, seen: &'a Seen<'a>, uid: &'a NodeUid) -> Self {
        let own = seen.enactments.get(&key.policy).filter(|enactment| enactment.node_uid == *uid);
        Self { host, key, seen, uid, own, slot: own.and_then(|own| own.slots.get(&key.slot())) }
    }

    /// A look at another claim of the same policy.
    fn sibling<'b>(&'b self, key: &'b ClaimKey) -> Look<'b>
    where
        'a: 'b,
    {
        Look::at(self.host, key, self.seen, self.uid)
    }

    /// What is held is kept: it is wanted, not another's, the one that is asked for, and no half of what goes together.
    fn keeps(&self, lease: &Lease) -> bool {
        self.wanted() && !self.lost() && !self.holds_otherwise(lease) && !self.is_half(lease)
    }

    /// An enactment that is being deleted is finished first, then made anew.
    fn wanted(&self) -> bool {
        self.seen.wants.contains_key(self.key) && self.own.is_none_or(|own| own.deleting.is_none())
    }

    /// The ledger gave our address to another.
    fn lost(&self) -> bool {
        self.slot.is_some_and(|slot| is_refused(slot, RefusalReason::HeldByAnother))
    }

    /// The policy now names another literal address than the one that was asked for: a change of mind is a
    /// new id (rule 3).
    fn asks_otherwise(&self, record: &Record) -> bool {
        let asked = self.slot.and_then(|slot| slot.request.as_ref());
        asked.is_some_and(|request| request.id == record.id && request.literal != self.literal())
    }

    /// … or than the one that is held.
    fn holds_otherwise(&self, lease: &Lease) -> bool {
        self.literal().is_some_and(|literal| !lease.ips.contains(&literal))
    }

    /// Held and not in use, while another claim of the policy is refused: nobody is served by keeping it (rule 1).
    fn is_half(&self, lease: &Lease) -> bool {
        let is_used = lease.ips.iter().any(|ip| self.seen.nic.contains(ip)) || self.is_good(lease);
        !is_used && self.sibling_refused()
    }

    /// In use by the policy's last good state, though a boot may just have emptied the NIC: it goes back there.
    fn is_good(&self, lease: &Lease) -> bool {
        let good = self.seen.good.get(&self.key.policy);
        good.is_some_and(|good| lease.ips.iter().any(|ip| good.contains(ip)))
    }

    fn literal(&self) -> Option<IpAddr> {
        self.seen.wants.get(self.key).copied().flatten()
    }

    /// The journal knows nothing: a new claim, or one whose journal was lost.
    fn unrecorded(&self) -> Option<Action> {
        let asked = self.slot.and_then(|slot| slot.request.as_ref());
        if self.wanted() {
            // What the enactment has already is taken up, whatever becomes of the others: nobody else would.
            let may_ask = self.seen.ready && (asked.is_some() || !self.sibling_refused());
            return may_ask.then(|| {
                self.record(self.seen.fresh_id.clone(), Phase::Asking { declined: BTreeMap::new() })
            });
        }
        let request = asked?;
        if let Some(off) = on_nic(&self.known_ips(), self.seen) {
            return Some(off);
        }
        Some(self.record(request.id.clone(), Phase::Releasing))
    }

    /// The Node was re-created under its name; the journal on this disk is the proof (rule 7).
    fn inherited(&self, record: &Record) -> Option<Action> {
        match &record.phase {
            Phase::Asking { .. } | Phase::Releasing => Some(self.forget()),
            Phase::Holding(lease) if lease.ips.iter().any(|ip| !self.seen.nic.contains(ip)) => {
                on_nic(&lease.ips, self.seen)
                    .or_else(|| Some(journal(self.key, record, Phase::Parked(lease.clone()))))
            }
            Phase::Holding(lease) | Phase::Parked(lease) => Some(Action::Inherit {
                key: self.key.clone(),
                id: record.id.clone(),
                lease: lease.clone(),
                node_uid: self.uid.clone(),
            }),
        }
    }

    /// Off the NIC, then the journal; the report follows by itself, and only then `want: false` (rule 3).
    /// Where the journal was lost, only the enactment knows what is on the NIC.
    fn let_go(&self, record: &Record, ips: &[IpAddr]) -> Option<Action> {
        let known: BTreeSet<IpAddr> = self.known_ips().into_iter().chain(ips.iter().copied()).collect();
        let known: Vec<IpAddr> = known.into_iter().collect();
        on_nic(&known, self.seen).or_else(|| Some(journal(self.key, record, Phase::Releasing)))
    }

    fn releasing(&self, record: &Record) -> Option<Action> {
        let ours = self.slot.and_then(|slot| slot.request.as_ref()).filter(|request| request.id == record.id);
        let Some(request) = ours else {
            return Some(self.forget());
        };
        if request.want {
            let request = Request { want: false, holds: None, ..request.clone() };
            return Some(self.write(BTreeMap::from([(self.key.slot(), request)])));
        }
        let answered = self.slot.is_some_and(|slot| is_refused(slot, RefusalReason::Released));
        answered.then(|| Action::RemoveSlot { key: self.key.clone() })
    }

    fn asking(&self, record: &Record, declined: &BTreeMap<IpAddr, Stranger>) -> Option<Action> {
        let request = wish(record, declined, self.literal());
        // A claim has both families or none: with the one that answers on the wire the server lets go of
        // the other, so that one is off the NIC, and reported so, first.
        if let Some(off) = on_nic(&self.known_ips(), self.seen).filter(|_| !declined.is_empty()) {
            return Some(off);
        }
        if let Some(action) = self.request(&request) {
            return action;
        }
        if self.is_left_alone() || self.is_declined(declined) {
            return self.let_go(record, &[]);
        }
        let grant = self.slot.and_then(|slot| slot.grant.as_ref()).filter(|grant| grant.id == record.id)?;
        let lease = &grant.lease;
        if lease.ips.iter().any(|ip| declined.contains_key(ip)) {
            return None;
        }
        if self.is_in_use() {
            return self.use_grant(record, lease);
        }
        if self.sibling_refused() {
            return self.let_go(record, &[]);
        }
        if !self.siblings_granted() {
            return None;
        }
        self.use_grant(record, lease)
    }

    /// Grant → announced → confirmed → journal (rule 2). What the pool once did not back is asked about
    /// first and announced only then.
    fn use_grant(&self, record: &Record, lease: &Lease) -> Option<Action> {
        let memory = &self.host.memory;
        if memory.doubted.get(self.key) == Some(lease) {
            return Some(self.confirm(lease));
        }
        if memory.announced.get(self.key) != Some(lease) {
            let others =
                self.siblings().filter_map(|key| Some((key.clone(), self.sibling(key).unannounced()?)));
            let leases = others.chain([(self.key.clone(), lease.clone())]).collect();
            return Some(Action::Announce { leases });
        }
        match memory.confirmed.get(self.key) {
            Some((confirmed, at))
                if confirmed == lease && self.seen.now <= at.saturating_add(CONFIRMED_FOR) =>
            {
                Some(journal(self.key, record, Phase::Holding(lease.clone())))
            }
            _ => Some(self.confirm(lease)),
        }
    }

    /// A grant that is to be announced, while the policy's others are: one report shows them all.
    fn unannounced(&self) -> Option<Lease> {
        let record = self.host.journal.get(self.key).filter(|record| record.node_uid == *self.uid)?;
        let Phase::Asking { declined } = &record.phase else { return None };
        let lease = &self.slot?.grant.as_ref().filter(|grant| grant.id == record.id)?.lease;
        let known = [&self.host.memory.doubted, &self.host.memory.announced];
        let is_known = known.iter().any(|known| known.get(self.key) == Some(lease));
        let is_declined = lease.ips.iter().any(|ip| declined.contains_key(ip));
        (!is_known && !is_declined).then(|| lease.clone())
    }

    /// A policy goes on the NIC whole, so all its claims must be held first; but what it last had there goes back. What can't
    /// go there now is held all the same, and said so.
    fn holding(&self, record: &Record, lease: &Lease) -> Option<Action> {
        let is_whole = self.is_good(lease) || self.siblings().all(|key| self.holds(key));
        let may_add = is_whole && !self.seen.waits.contains(&self.key.policy);
        if let Some(add) = add_missing(self.key, lease, self.seen).filter(|_| may_add) {
            return Some(add);
        }
        self.request(&self.held(record, lease)).flatten()
    }

    /// What the enactment is to say of a claim that is held.
    fn held(&self, record: &Record, lease: &Lease) -> Request {
        let id = record.id.clone();
        Request { holds: Some(lease.clone()), literal: self.literal(), ..Request::new(id) }
    }

    /// The policy's other claims that are held and not yet said to be.
    fn held_too(&self) -> BTreeMap<SlotKey, Request> {
        let unsaid = |key: &ClaimKey| {
            let look = self.sibling(key);
            let record = self.host.journal.get(key).filter(|record| record.node_uid == *self.uid)?;
            let Phase::Holding(lease) = &record.phase else { return None };
            let request = look.held(record, lease);
            let sent = look.slot.and_then(|slot| slot.request.as_ref());
            (look.keeps(lease) && sent != Some(&request)).then(|| (key.slot(), request))
        };
        self.siblings().filter_map(unsaid).collect()
    }

    /// Brings the request into the own enactment. `None`: it is there. `Some(None)`: it can't be now, since
    /// a predecessor's enactment still has the name, or those that go with it are not ready to be sent.
    fn request(&self, request: &Request) -> Option<Option<Action>> {
        let sent = self.slot.and_then(|slot| slot.request.as_ref());
        if sent == Some(request) {
            return None;
        }
        if self.own.is_none() && self.seen.enactments.contains_key(&self.key.policy) {
            return Some(None);
        }
        let mut requests = BTreeMap::from([(self.key.slot(), request.clone())]);
        let new = sent.is_none_or(|sent| sent.id != request.id) && request.holds.is_none();
        if new {
            match self.go_with_it() {
                Some(others) => requests.extend(others),
                None => return Some(None),
            }
            requests.extend(self.asks_of_others());
        } else if request.holds.is_some() {
            requests.extend(self.held_too());
        }
        if self.own.is_some() {
            return Some(Some(self.write(requests)));
        }
        let slot = |request| Slot { request: Some(request), ..Slot::default() };
        Some(Some(Action::CreateEnactment {
            policy: self.key.policy.clone(),
            node_uid: self.uid.clone(),
            slots: requests.into_iter().map(|(key, request)| (key, slot(request))).collect(),
        }))
    }

    /// A policy's new claims on one pool are sent together, so that the server can give to all of them or to
    /// none (rule 1): the others' requests. `None`: another has no id yet, or is still being given back.
    fn go_with_it(&self) -> Option<BTreeMap<SlotKey, Request>> {
        let mut requests = BTreeMap::new();
        for key in self.siblings().filter(|key| key.pool == self.key.pool) {
            let record = self.host.journal.get(key).filter(|record| record.node_uid == *self.uid)?;
            match &record.phase {
                Phase::Asking { .. } if self.is_sent(key, record) => {}
                Phase::Asking { declined } => {
                    let literal = self.seen.wants.get(key).copied().flatten();
                    requests.insert(key.slot(), wish(record, declined, literal));
                }
                Phase::Holding(_) => {}
                Phase::Parked(_) | Phase::Releasing => return None,
            }
        }
        Some(requests)
    }

    /// The policy's new claims on other pools that are ready to be sent: they need no write of their own.
    fn asks_of_others(&self) -> BTreeMap<SlotKey, Request> {
        let ready = |key: &ClaimKey| {
            let look = self.sibling(key);
            let record = self.host.journal.get(key).filter(|record| record.node_uid == *self.uid)?;
            let Phase::Asking { declined } = &record.phase else { return None };
            let is_new = declined.is_empty() && !look.is_sent(key, record) && look.slot.is_none();
            (is_new && look.go_with_it().is_some())
                .then(|| (key.slot(), wish(record, declined, look.literal())))
        };
        self.siblings().filter(|key| key.pool != self.key.pool).filter_map(ready).collect()
    }

    fn is_sent(&self, key: &ClaimKey, record: &Record) -> bool {
        let slot = self.own.and_then(|own| own.slots.get(&key.slot()));
        slot.and_then(|slot| slot.request.as_ref()).is_some_and(|request| request.id == record.id)
    }

    /// Refused, while another claim of the policy on this pool is being given back or was: were this one to
    /// wait on, it would be given what the other let go, and the two would take turns for ever. It is given
    /// back too, and they ask again together (rule 1).
    fn is_left_alone(&self) -> bool {
        let asks = |key: &ClaimKey| {
            let record = self.host.journal.get(key);
            record.is_some_and(|record| !matches!(record.phase, Phase::Releasing))
        };
        self.slot.is_some_and(|slot| is_refused(slot, RefusalReason::NoAddress))
            && self.siblings().any(|key| key.pool == self.key.pool && !asks(key))
    }

    /// A literal address that is on the NIC already, from before it was a pool's or was claimed: it is recorded, whatever
    /// becomes of the policy's other claims. To give it back would take it off.
    fn is_in_use(&self) -> bool {
        self.literal().is_some_and(|ip| self.seen.nic.contains(&ip))
    }

    /// The one address that would do answers on the wire, and the server knows: there is no other to wait for. It is asked
    /// for under a new id, which has declined nothing, and so served when the quarantine is over (rules 10 and 11).
    fn is_declined(&self, declined: &BTreeMap<IpAddr, Stranger>) -> bool {
        self.literal().is_some_and(|ip| declined.contains_key(&ip))
            && self.slot.is_some_and(|slot| is_refused(slot, RefusalReason::NoAddress))
    }

    fn write(&self, requests: BTreeMap<SlotKey, Request>) -> Action {
        Action::WriteRequests { policy: self.key.policy.clone(), requests }
    }

    /// All captures of a policy or none (rule 1): is another of them refused, so that this one must wait?
    fn sibling_refused(&self) -> bool {
        self.siblings().any(|key| {
            let slot = self.own.and_then(|own| own.slots.get(&key.slot()));
            slot.is_some_and(|slot| {
                is_refused(slot, RefusalReason::NoAddress) || is_refused(slot, RefusalReason::NoSuchPool)
            })
        })
    }

    fn siblings_granted(&self) -> bool {
        self.siblings().all(|key| {
            let record = self.host.journal.get(key);
            let slot = self.own.and_then(|own| own.slots.get(&key.slot()));
            let grant = slot.and_then(|slot| slot.grant.as_ref());
            self.holds(key) || grant.is_some_and(|grant| record.is_some_and(|record| record.id == grant.id))
        })
    }

    fn holds(&self, key: &ClaimKey) -> bool {
        self.host.journal.get(key).is_some_and(|record| matches!(record.phase, Phase::Holding(_)))
    }

    fn siblings(&self) -> impl Iterator<Item = &ClaimKey> {
        self.seen.wants.keys().filter(|key| key.policy == self.key.policy && *key != self.key)
    }

    /// The addresses that the own enactment knows for this claim.
    fn known_ips(&self) -> Vec<IpAddr> {
        let Some(slot) = self.slot else { return Vec::new() };
        let granted = slot.grant.as_ref().map(|grant| &grant.lease);
        let held = slot.request.as_ref().and_then(|request| request.holds.as_ref());
        granted.into_iter().chain(held).flat_map(|lease| lease.ips.iter().copied()).collect()
    }

    fn confirm(&self, lease: &Lease) -> Action {
        Action::Confirm { key: self.key.clone(), lease: lease.clone() }
    }

    fn record(&self, id: super::RequestId, phase: Phase) -> Action {
        let record = Record { id, node_uid: self.uid.clone(), phase };
        Action::Journal { key: self.key.clone(), record: Some(record) }
    }

    fn forget(&self) -> Action {
        Action::Journal { key: self.key.clone(), record: None }
    }
}

/// What a claim that holds nothing asks for.
fn wish(record: &Record, declined: &BTreeMap<IpAddr, Stranger>, literal: Option<IpAddr>) -> Request {
    Request { declined: declined.clone(), literal, ..Request::new(record.id.clone()) }
}
