//! Carrying out what `policy::enact` says of each policy: conditions written, states applied, failures counted.
//!
//! A policy that was looked at and needed nothing is not looked at again before it, its enactment, its slot, its claims or the
//! kernel changed: with hundreds of policies a pass costs what changed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crds::Condition;
use crds::names::annotation;
use crds::names::enactment as names;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use policy::capture::{Granted, GrantedAddress, Grants, read_cached};
use policy::claim::{ClaimKey, NodeSeen, Phase, PolicyName, Request, SlotKey, Time};
use policy::enact::{Next, Prospect, Retries, Said, View, next};
use policy::plan::plan_document;
use policy::rollout::Standing;
use policy::state::{AddressProtocol, default_port_vlans, features};
use policy::template::{Rendered, address_of, literal_of, render};
use serde_json::{Value, json};

use super::ask::AskApi;
use super::journal::Enacted;
use super::kernel::{Asks, Kernel};
use super::look::{Selected, captured};
use super::telling::rivals;
use super::{Agent, NodeError};
use crate::api::error::{Trouble, trouble, whole, words};
use crate::clock::{stamp, steady};
use crate::fault;
use crate::netlink::Placed;
use crate::probe::{self, NoProbe, Probes, Which};
use crate::records;
use crate::telemetry::say;
use crate::wire::{Timing, Unasked};

/// What one look at the policies came to.
pub(super) enum Did {
    Something,
    /// By the steady clock.
    Nothing {
        until: Option<Time>,
    },
}

/// What this process has tried at a policy.
#[derive(Clone, Debug, Default)]
pub(super) struct Tried {
    generation: i64,
    desired: Value,
    retry_at: Option<Time>,
    gave_up: bool,
    /// Failures in a row, of this state.
    failures: u32,
    /// Repairs in a row: who fights is given ever more time.
    repairs: u32,
    repaired_at: Option<Time>,
    /// What was last looked at and needed nothing, or nothing before then.
    rested: Option<(Print, Option<Time>)>,
    /// When this process first looked at its enactment.
    asks_since: Option<Time>,
    /// The API refuses what is to be said of it: left alone until then. What it holds it keeps.
    refused_until: Option<Instant>,
    /// How the last attempt failed, while that could not be said: it is, before anything else is tried. A change that cut the
    /// host off has just then nobody to say it to, and must not be made once more for that.
    owed: Option<Failure>,
}

/// Is the host other than a state that was good?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drift {
    None,
    /// It is, and was put right a moment ago, or could not be.
    Later {
        until: Time,
    },
    Due,
}

impl Drift {
    fn until(self) -> Option<Time> {
        match self {
            Self::Later { until } => Some(until),
            Self::None | Self::Due => None,
        }
    }

    /// Nothing is done about it.
    fn unless_due(self) -> Self {
        if self == Self::Due { Self::None } else { self }
    }
}

/// How an attempt failed.
#[derive(Clone, Debug)]
struct Failure {
    standing: Standing,
    message: String,
    attempts: u32,
}

impl Tried {
    /// Is it left alone for now?
    fn rests(&self) -> bool {
        self.refused_until.is_some_and(|until| until > Instant::now())
    }

    /// Something was put back: the first few times at once, then ever more slowly, for who fights.
    fn repaired(&mut self) {
        let fights = self.repaired_at.is_some_and(|at| steady() < at + PEACE);
        self.repairs = if fights { self.repairs + 1 } else { 0 };
        self.repaired_at = Some(steady());
        self.retry_at = (self.repairs > 3).then(|| steady() + (1 << (self.repairs - 3).min(5)));
    }
}

/// What a look depends on.
type Print = (Option<String>, Option<String>, u64, usize, u64);

/// So long a policy is left alone of which the API will not have what is to be said.
const REFUSED: Time = 30;

/// A repair after this long is no fight.
const PEACE: Time = 60;

/// Fields of an enactment's status, and the message among them.
struct Words {
    fields: Vec<(&'static str, Value)>,
    message: String,
}

/// A policy with what it comes to on this host.
struct Outlook {
    prospect: Prospect,
    rendered: Option<Rendered>,
    desired: Value,
}

impl Agent {
    /// Looks at each policy in name order, and does the next thing there is to do about it.
    pub(super) async fn policies(&mut self) -> Result<Did, NodeError> {
        let uid = match self.node_seen().await {
            NodeSeen::Is(uid) => uid,
            NodeSeen::Unreachable => return self.offline().await,
            NodeSeen::Gone => {
                self.retire();
                return Ok(Did::Nothing { until: Some(steady() + 5) });
            }
        };
        self.retired = false;
        let selected = self.selected();
        self.forget_unselected(&selected)?;
        let mut until: Option<Time> = None;
        let mut did = false;
        for one in &selected {
            if self.stopping.load(std::sync::atomic::Ordering::SeqCst) {
                break;
            }
            if self.tried.get(&one.name).is_some_and(Tried::rests) {
                until = [until, Some(steady() + REFUSED)].into_iter().flatten().min();
                continue;
            }
            let done = match one.enactment {
                None => self.create(&one.name, &uid, &BTreeMap::new()).await.map(|()| Did::Something),
                Some(_) => self.policy(one).await,
            };
            match done {
                Ok(Did::Something) => did = true,
                Ok(Did::Nothing { until: wait }) => until = [until, wait].into_iter().flatten().min(),
                // What the API will not have of one policy holds none of the others up.
                Err(NodeError::Api(error)) if trouble(&error) == Trouble::Refused => {
                    self.unwanted(one, &words(&error));
                    until = [until, Some(steady() + REFUSED)].into_iter().flatten().min();
                }
                Err(error) => return Err(error),
            }
        }
        if did {
            return Ok(Did::Something);
        }
        // What else changed on the host is news, too.
        if !self.is_reported() && self.host.memory.reported {
            self.host.memory.reported = false;
            return Ok(Did::Something);
        }
        Ok(Did::Nothing { until })
    }

    /// Nothing is this host's any more: that is said once, and its Lease is left to run out.
    fn retire(&mut self) {
        let registers = self.kept.take().is_some();
        if !std::mem::replace(&mut self.retired, true) {
            let again = if registers { "; start the agent again to register it anew" } else { "" };
            say(&format!("Node {} is gone: its pooled addresses are taken off{again}", self.name));
        }
    }

    /// The API refuses what is to be written about a policy: that is said, and tried again after a while.
    fn unwanted(&mut self, one: &Selected, why: &str) {
        let message =
            format!("{}: what is to be said of it is refused: {why}", self.enactment_name(&one.name));
        self.telling.refused(&one.object, &message);
        let rests = Some(Instant::now() + Duration::from_secs(REFUSED));
        self.tried.entry(one.name.clone()).or_default().refused_until = rests;
    }

    /// Without the API what was last good is kept so.
    async fn offline(&mut self) -> Result<Did, NodeError> {
        self.enforce(|_| true).await
    }

    /// The same where the API can be read and doesn't do its part otherwise: of policies that still select this node, as long
    /// as the Node is the one that holds. Another Node under its name has to take its addresses over first (rule 7), and
    /// where there is none, nothing is this host's any more.
    pub(super) async fn keep(&mut self) -> Result<(), NodeError> {
        let selected: Option<BTreeSet<PolicyName>> = match self.node_seen().await {
            NodeSeen::Unreachable => None,
            NodeSeen::Is(uid) if self.host.journal.values().all(|record| record.node_uid == uid) => {
                Some(self.selected().into_iter().map(|one| one.name).collect())
            }
            NodeSeen::Is(_) | NodeSeen::Gone => return Ok(()),
        };
        let counts = |policy: &PolicyName| selected.as_ref().is_none_or(|names| names.contains(policy));
        // One after the other; each is tried once in a while.
        while let Did::Something = self.enforce(counts).await? {
            self.observe().await?;
        }
        Ok(())
    }

    async fn enforce(&mut self, counts: impl Fn(&PolicyName) -> bool) -> Result<Did, NodeError> {
        for (policy, desired) in self.book.good().into_iter().filter(|(policy, _)| counts(policy)) {
            if self.drift(&policy, &desired) == Drift::Due {
                self.put_back(&policy, desired).await?;
                return Ok(Did::Something);
            }
        }
        Ok(Did::Nothing { until: Some(steady() + 5) })
    }

    /// Is the host other than a policy's last good state?
    fn drift(&self, policy: &PolicyName, good: &Value) -> Drift {
        let Some(seen) = self.observation() else { return Drift::None };
        if !plan_document(&seen.state, good).is_ok_and(|plan| !plan.is_empty()) {
            return Drift::None;
        }
        let retry_at = self.tried.get(policy).and_then(|tried| tried.retry_at);
        retry_at.filter(|at| *at > steady()).map_or(Drift::Due, |until| Drift::Later { until })
    }

    /// Brings a policy's last good state about once more. Whether it could be.
    async fn put_back(&mut self, policy: &PolicyName, good: Value) -> Result<bool, NodeError> {
        let probes = Probes { insist: false, ..self.probes.clone() };
        let timing = self.book.timing(policy).unwrap_or(self.timing);
        let done = self.apply(good, probes, timing).await;
        let tried = self.tried.entry(policy.clone()).or_default();
        let Err(error) = done else {
            tried.repaired();
            return Ok(true);
        };
        tried.retry_at = Some(steady() + 5);
        if let Err(error) = self.declined(error).await? {
            say(&format!("{}: policy {policy}: {}", self.name, whole(&error)));
        }
        Ok(false)
    }

    /// Something was put back: that is told, and who may be fighting for it.
    fn tell_repaired(&mut self, one: &Selected) {
        let fights = self.tried.get(&one.name).is_some_and(|tried| tried.retry_at.is_some());
        let rivals = fights.then(|| rivals(one, &self.selected()));
        self.telling.repaired(one, rivals.as_deref());
    }

    /// While what a policy asks for by now can't be had, or waits for its turn, what it came to last is kept so. What of that
    /// another may have by now, since it was never claimed, is not.
    async fn keep_good(&mut self, one: &Selected, outlook: &Outlook) -> Result<Drift, NodeError> {
        if matches!(outlook.prospect, Prospect::Rendered { met: true, .. }) {
            return Ok(Drift::None);
        }
        // What failed is tried again by its own count.
        let failed = self.tried.get(&one.name).is_some_and(|tried| tried.failures > 0 || tried.gave_up);
        let good = self.book.good_of(&one.name).filter(|good| **good != outlook.desired || !failed);
        let Some(good) = good.cloned() else { return Ok(Drift::None) };
        let drift = self.drift(&one.name, &good);
        if drift != Drift::Due || self.lacks_claim(one, &good) {
            return Ok(drift.unless_due());
        }
        // What is known of pools may be older than a pool that has one of its addresses.
        if self.may_be_applied(one) && self.put_back(&one.name, good).await? {
            self.tell_repaired(one);
        }
        Ok(Drift::Due)
    }

    fn forget_unselected(&mut self, selected: &[Selected]) -> Result<(), NodeError> {
        let known: BTreeSet<&PolicyName> = selected.iter().map(|one| &one.name).collect();
        let gone: Vec<PolicyName> =
            self.book.enacted().filter(|policy| !known.contains(policy)).cloned().collect();
        for policy in &gone {
            self.book.write_enacted(policy, None)?;
        }
        self.tried.retain(|policy, _| known.contains(policy));
        let mut readings = self.readings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        readings.retain(|policy, _| known.contains(policy));
        Ok(())
    }

    async fn policy(&mut self, one: &Selected) -> Result<Did, NodeError> {
        // It came a moment ago: which of its addresses are a pool's is asked first.
        if !self.knows_ranges(one) {
            return match self.unread().cloned() {
                None => Ok(Did::Something),
                Some((why, until)) => self.without_pools(one, &why, until).await,
            };
        }
        let print = self.print(one);
        let tried = self.tried.entry(one.name.clone()).or_default();
        if let Some((then, until)) = &tried.rested
            && *then == print
            && until.is_none_or(|at| at > steady())
        {
            return Ok(Did::Nothing { until: *until });
        }
        tried.asks_since.get_or_insert_with(steady);
        let tried = tried.clone();
        let outlook = self.outlook(one);
        let view = self.view(one, &outlook, &tried);
        if let Some(failure) =
            tried.owed.filter(|_| tried.generation == view.generation && tried.desired == outlook.desired)
        {
            self.say_failure(one, &outlook, &failure).await?;
            return Ok(Did::Something);
        }
        let next = next(&view);
        let kept = match next {
            Next::Apply { .. } => Drift::None,
            Next::Rest { .. } | Next::Say { .. } => self.keep_good(one, &outlook).await?,
        };
        match next {
            _ if kept == Drift::Due => Ok(Did::Something),
            Next::Rest { until } => {
                let until = [until, kept.until()].into_iter().flatten().min();
                // What it was brought to with is held by now, perhaps.
                if matches!(outlook.prospect, Prospect::Rendered { met: true, .. })
                    && view.says(Standing::Available)
                {
                    self.remember(one, &outlook)?;
                }
                self.tried.entry(one.name.clone()).or_default().rested = Some((print, until));
                Ok(Did::Nothing { until })
            }
            Next::Say { standing, message } => {
                if standing == Standing::Available {
                    self.remember(one, &outlook)?;
                }
                self.telling.standing(one, standing, &message);
                self.say_standing(one, &outlook, standing, &message).await?;
                Ok(Did::Something)
            }
            // What is known of pools may be older than a pool that has one of its addresses.
            Next::Apply { .. } if !self.may_be_applied(one) => Ok(Did::Something),
            Next::Apply { repair } => {
                self.bring_about(one, outlook, &view, repair).await?;
                Ok(Did::Something)
            }
        }
    }

    /// Which of its addresses are a pool's can't be found out now: what it was last brought to is kept, and nothing new begun. What
    /// is said of it already stays so.
    async fn without_pools(&mut self, one: &Selected, why: &str, until: Time) -> Result<Did, NodeError> {
        if let Some(good) = self.book.good_of(&one.name).cloned()
            && self.drift(&one.name, &good) == Drift::Due
        {
            if self.put_back(&one.name, good).await? {
                self.tell_repaired(one);
            }
            return Ok(Did::Something);
        }
        let message =
            format!("Waiting to learn which addresses are a pool's: the pools can't be read: {why}");
        let outlook =
            Outlook { prospect: Prospect::Asking { message }, rendered: None, desired: Value::Null };
        let tried = self.tried.entry(one.name.clone()).or_default();
        tried.asks_since.get_or_insert_with(steady);
        let tried = tried.clone();
        let view = self.view(one, &outlook, &tried);
        match next(&view) {
            Next::Say { standing, message } if !view.says(Standing::Available) => {
                self.telling.standing(one, standing, &message);
                self.say_standing(one, &outlook, standing, &message).await?;
                Ok(Did::Something)
            }
            Next::Rest { until: Some(then) } => Ok(Did::Nothing { until: Some(until.min(then)) }),
            Next::Say { .. } | Next::Rest { .. } | Next::Apply { .. } => {
                Ok(Did::Nothing { until: Some(until) })
            }
        }
    }

    fn print(&self, one: &Selected) -> Print {
        let kernel = self.seen.as_ref().map_or(0, |seen| seen.count);
        let holding = |phase: &Phase| matches!(phase, Phase::Holding(_));
        let held =
            self.host.journal.iter().filter(|(key, record)| key.policy == one.name && holding(&record.phase));
        let version = one.enactment.as_ref().and_then(|own| own.resource_version());
        (one.object.resource_version(), version, kernel, held.count(), self.ranges.reads())
    }

    /// What the policy comes to on this host, as far as it has come.
    fn outlook(&self, one: &Selected) -> Outlook {
        let stuck = |prospect| Outlook { prospect, rendered: None, desired: Value::Null };
        let broken = |why: &str| stuck(Prospect::Broken { message: names::message_render_failed(why) });
        let doc = match &one.read.doc {
            Ok(doc) => doc,
            Err(wrong) => return broken(wrong),
        };
        if let Some(wrong) = self.probes_of(one).err().or_else(|| self.timing_of(one).err()) {
            return broken(&wrong);
        }
        if let Some(wrong) = self.ungranted(one) {
            return broken(&wrong);
        }
        let grants = match self.grants(one) {
            Ok(grants) => grants,
            Err(prospect) => return stuck(prospect),
        };
        let cached = read_cached(&captured(one)).unwrap_or_default();
        let rendered = match render(doc, self.current(), &cached, &grants) {
            Ok(rendered) => rendered,
            Err(wrong) => return broken(&wrong.to_string()),
        };
        let mut desired = rendered.desired.clone();
        if desired.is_null() {
            desired = json!({});
        }
        default_port_vlans(&mut desired);
        let Some(seen) = self.observation() else { return broken("the host has not been looked at") };
        let met = match plan_document(&seen.state, &desired) {
            Ok(plan) => plan.is_empty(),
            Err(wrong) => {
                let message = names::message_apply_failed(self.name.as_str(), "", &wrong.to_string());
                return stuck(Prospect::Broken { message });
            }
        };
        let status = one.status();
        let said = status.and_then(|status| status.desired_state.as_ref()) == Some(&desired);
        Outlook { prospect: Prospect::Rendered { met, said }, rendered: Some(rendered), desired }
    }

    /// The addresses that the policy holds; or where that stands. What is refused is said before what is waited for.
    fn grants(&self, one: &Selected) -> Result<Grants, Prospect> {
        let literals = self.literals(one);
        let named = literals.iter().map(|claim| (claim.path.to_owned(), &claim.key));
        let captures: Vec<ClaimKey> =
            one.read.pools.iter().map(|(capture, pool)| one.key(pool, capture)).collect();
        let asked = captures.iter().map(|key| (format!("capture {}", key.capture), key));
        for (place, key) in named.chain(asked) {
            if let Some(policy) = self.gives_back(key).filter(|_| !self.is_held(key)) {
                let ip = literal_of(key.capture.as_str()).map(|ip| ip.to_string()).unwrap_or_default();
                let message =
                    format!("Waiting for {ip} of pool {}: policy {policy} is giving it back", key.pool);
                return Err(Prospect::Asking { message });
            }
            if let Some(refusal) = one.refusal(key) {
                let message = format!("{place}: pool {}: {}", key.pool, refusal.message);
                return Err(Prospect::Refused { message });
            }
        }
        for claim in &literals {
            if !self.is_held(&claim.key) && !self.had(one, claim.ip) {
                let message = format!("Waiting for {} of pool {}", claim.ip, claim.key.pool);
                return Err(Prospect::Asking { message });
            }
        }
        let mut grants = Grants::new();
        for key in &captures {
            let message = || format!("Waiting for an address of pool {}", key.pool);
            let granted = self.granted(one, key).ok_or_else(|| Prospect::Asking { message: message() })?;
            grants.insert(key.capture.to_string(), granted);
        }
        Ok(grants)
    }

    /// Another policy of this host that is giving back the literal address that a claim is of, since it is gone.
    fn gives_back(&self, key: &ClaimKey) -> Option<&PolicyName> {
        literal_of(key.capture.as_str())?;
        let is_same = |other: &ClaimKey| (&other.pool, &other.capture) == (&key.pool, &key.capture);
        let others = self.host.journal.keys().filter(|other| is_same(other) && other.policy != key.policy);
        let is_gone = |policy: &&PolicyName| self.objects.policies.get(policy.as_str()).is_none();
        others.map(|other| &other.policy).find(is_gone)
    }

    /// Does the journal hold what a claim is of? Of a literal address that is all there is to know: a grant says nothing more.
    fn is_held(&self, key: &ClaimKey) -> bool {
        self.host.journal.get(key).is_some_and(|record| matches!(record.phase, Phase::Holding(_)))
    }

    /// What was granted to a claim, if it is held.
    fn granted(&self, one: &Selected, key: &ClaimKey) -> Option<Granted> {
        let grant = one.claims(key)?.grants.get(key.capture.as_str())?;
        let record = self.host.journal.get(key)?;
        let is_held = record.id.text() == grant.id && matches!(record.phase, Phase::Holding(_));
        granted(grant).filter(|_| is_held)
    }

    fn view(&self, one: &Selected, outlook: &Outlook, tried: &Tried) -> View {
        let generation = one.object.metadata.generation.unwrap_or_default();
        let said = one.status().filter(|status| status.policy_uid == one.object.uid()).map(|status| Said {
            generation: status.policy_generation.unwrap_or_default(),
            standing: records::standing::read(&status.conditions),
            message: records::standing::message(&status.conditions).to_owned(),
        });
        let policy = one.object.status.as_ref();
        let same = tried.generation == generation && tried.desired == outlook.desired;
        View {
            now: steady(),
            generation,
            prospect: outlook.prospect.clone(),
            said,
            // Who has said something, of whatever, says what is so now.
            asks_since: tried
                .asks_since
                .filter(|_| one.status().is_none_or(|status| status.conditions.is_empty())),
            slot: policy.and_then(|status| status.unavailable_nodes.get(self.name.as_str()).copied()),
            aborted: policy.and_then(|status| status.aborted_generation),
            retry_at: tried.retry_at.filter(|_| same),
            gave_up: same && tried.gave_up,
        }
    }

    /// Writes where the policy stands, and what was rendered.
    async fn say_standing(
        &self,
        one: &Selected,
        outlook: &Outlook,
        standing: Standing,
        message: &str,
    ) -> Result<bool, NodeError> {
        self.write_words(one, standing, self.words(one, outlook, standing, message, None)).await
    }

    /// Writes what is held, and in the same write what is next to be said of the policy.
    pub(super) async fn say_held(
        &mut self,
        policy: &PolicyName,
        requests: &BTreeMap<SlotKey, Request>,
    ) -> Result<bool, NodeError> {
        let Some(own) = self.objects.enactments.get(&self.enactment_name(policy)) else { return Ok(false) };
        let mut pools = records::enactment::pools(&own).unwrap_or_default().into_owned();
        for (SlotKey { pool, capture }, request) in requests {
            if let Ok(request) = records::enactment::request(pool, capture, request) {
                let claims = pools.entry(pool.to_string()).or_default();
                claims.requests.insert(capture.to_string(), request);
            }
        }
        let held = ("ippool", json!(pools));
        let Some(one) = self.selected().into_iter().find(|one| one.name == *policy) else {
            return self.replace_status(policy, vec![held]).await;
        };
        let tried = self.tried.get(policy).cloned().unwrap_or_default();
        let outlook = self.outlook(&one);
        let view = self.view(&one, &outlook, &tried);
        let (standing, message) = match next(&view) {
            _ if tried.rests() || !self.knows_ranges(&one) => {
                return self.replace_status(policy, vec![held]).await;
            }
            Next::Say { standing, message } => (standing, message),
            // One that is tried again stands as it stands until then.
            Next::Apply { repair: false } if !view.says(Standing::Retrying) => {
                (Standing::Progressing, String::new())
            }
            Next::Apply { .. } | Next::Rest { .. } => {
                return self.replace_status(policy, vec![held]).await;
            }
        };
        if standing == Standing::Available {
            self.remember(&one, &outlook)?;
        }
        let mut said = self.words(&one, &outlook, standing, &message, None);
        said.fields.push(held.clone());
        match self.write_words(&one, standing, said).await {
            // What the API will not have of a policy is no reason not to say what is held.
            Err(NodeError::Api(error @ kube::Error::Api(_))) => {
                self.unwanted(&one, &words(&error));
                self.replace_status(policy, vec![held]).await
            }
            written => {
                self.telling.standing(&one, standing, &message);
                written
            }
        }
    }

    async fn write_words(&self, one: &Selected, standing: Standing, words: Words) -> Result<bool, NodeError> {
        let written = self.replace_status(&one.name, words.fields).await?;
        if written {
            self.telling.written(one, standing, &words.message);
        }
        Ok(written)
    }

    /// What is to be written of where a policy stands, and of how many attempts have failed.
    fn words(
        &self,
        one: &Selected,
        outlook: &Outlook,
        standing: Standing,
        message: &str,
        attempts: Option<u32>,
    ) -> Words {
        let message = match standing {
            Standing::Pending => names::MESSAGE_LIMIT_REACHED.to_owned(),
            Standing::Available => names::MESSAGE_CONFIGURED.to_owned(),
            Standing::Progressing => names::MESSAGE_PROGRESSING.to_owned(),
            Standing::Aborted => names::message_aborted(&self.enactment_name(&one.name)),
            _ => message.to_owned(),
        };
        let mut fields = words_of(one, standing, &message, attempts);
        if let Some(rendered) = &outlook.rendered {
            let time = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            fields.push(("desiredState", outlook.desired.clone()));
            fields.push(("features", json!(features(&outlook.desired))));
            fields.push(("capturedStates", Value::Object(rendered.bindings.captured_states(&time))));
        }
        Words { fields, message }
    }

    async fn bring_about(
        &mut self,
        one: &Selected,
        outlook: Outlook,
        view: &View,
        repair: bool,
    ) -> Result<(), NodeError> {
        let is_said = repair || view.says(Standing::Progressing);
        if !is_said && !self.say_standing(one, &outlook, Standing::Progressing, "").await? {
            return Ok(());
        }
        fault::point("progressing-said");
        // The status was written since it was read.
        let one = self.selected().into_iter().find(|again| again.name == one.name);
        let Some(one) = one else { return Ok(()) };
        let probes = self.probes_of(&one).unwrap_or_else(|_| self.probes.clone());
        // What worked a moment ago is put back: that can't wait for who doesn't answer at once.
        let probes = Probes { insist: probes.insist && !repair, ..probes };
        let timing = self.timing_of(&one).unwrap_or(self.timing);
        let done = self.apply(outlook.desired.clone(), probes, timing).await;
        fault::point("applied");
        self.observe().await?;
        let done = match done {
            Ok(()) => Ok(()),
            Err(error) => match self.declined(error).await? {
                // Another is asked for.
                Ok(()) => return Ok(()),
                Err(error) => Err(error),
            },
        };
        let tried = self.tried.entry(one.name.clone()).or_default();
        if tried.generation != view.generation || tried.desired != outlook.desired {
            (tried.generation, tried.desired) = (view.generation, outlook.desired.clone());
            tried.failures = 0;
        }
        // What failed before is over.
        tried.owed = None;
        tried.rested = None;
        if done.is_ok() {
            tried.failures = 0;
        }
        match done {
            Ok(()) if repair => {
                tried.repaired();
                self.tell_repaired(&one);
                self.applied_literals(&one);
                self.remember(&one, &outlook)
            }
            Ok(()) => {
                (tried.retry_at, tried.gave_up) = (None, false);
                self.remember(&one, &outlook)?;
                self.applied_literals(&one);
                fault::point("state-journalled");
                self.say_standing(&one, &outlook, Standing::Available, "").await?;
                fault::point("available-said");
                Ok(())
            }
            Err(error) => self.failed(&one, &outlook, &error).await,
        }
    }

    /// Which probes a change by this policy must pass: the agent's, or those that the policy names.
    fn probes_of(&self, one: &Selected) -> Result<Probes, String> {
        let Some(named) = one.object.annotations().get(annotation::PROBES) else {
            return Ok(self.probes.clone());
        };
        let Which(which) = named
            .parse()
            .map_err(|wrong: NoProbe| format!("metadata.annotations[{}]: {wrong}", annotation::PROBES))?;
        Ok(Probes { which, ..self.probes.clone() })
    }

    /// Journals a state that is good, with the addresses that it must not be applied without.
    fn remember(&mut self, one: &Selected, outlook: &Outlook) -> Result<(), NodeError> {
        // A literal address that the policy no longer names is about to be let go.
        let is_former = |key: &ClaimKey| {
            literal_of(key.capture.as_str()).is_some_and(|ip| !one.read.literals.contains_key(&ip))
        };
        let own = self.host.journal.iter().filter(|(key, _)| key.policy == one.name && !is_former(key));
        let held = own.filter_map(|(_, record)| match &record.phase {
            Phase::Holding(lease) => Some(lease.ips.iter().copied()),
            Phase::Asking { .. } | Phase::Parked(_) | Phase::Releasing => None,
        });
        let wire_probe = one.object.annotations().get(annotation::WIRE_PROBE).cloned();
        let enacted = Enacted { state: outlook.desired.clone(), ips: held.flatten().collect(), wire_probe };
        Ok(self.book.write_enacted(&one.name, Some(&enacted))?)
    }

    async fn failed(
        &mut self,
        one: &Selected,
        outlook: &Outlook,
        error: &super::HostError,
    ) -> Result<(), NodeError> {
        // Told to stop, it was undone: that is no failure of the policy.
        if self.stopping.load(std::sync::atomic::Ordering::SeqCst) {
            return Ok(());
        }
        let retries = Retries::default();
        let why = names::message_apply_failed(self.name.as_str(), "", &whole(error));
        let tried = self.tried.entry(one.name.clone()).or_default();
        tried.failures += 1;
        let attempts = tried.failures;
        let (standing, message) = match retries.after(attempts).filter(|_| !error.cut_off()) {
            Some(wait) => {
                tried.retry_at = Some(steady() + wait);
                let retrying = names::message_retrying(self.name.as_str(), attempts, retries.most);
                (Standing::Retrying, format!("{retrying}\n{why}"))
            }
            None => {
                (tried.retry_at, tried.gave_up) = (None, true);
                self.telling.gave_up(one, attempts, &whole(error));
                (Standing::Failing, why)
            }
        };
        self.say_failure(one, outlook, &Failure { standing, message, attempts }).await
    }

    /// Owed until it is written.
    async fn say_failure(
        &mut self,
        one: &Selected,
        outlook: &Outlook,
        failure: &Failure,
    ) -> Result<(), NodeError> {
        self.tried.entry(one.name.clone()).or_default().owed = Some(failure.clone());
        let Failure { standing, message, attempts } = failure;
        let words = self.words(one, outlook, *standing, message, Some(*attempts));
        if self.write_words(one, *standing, words).await? {
            self.tried.entry(one.name.clone()).or_default().owed = None;
        }
        Ok(())
    }

    async fn apply(
        &mut self,
        desired: Value,
        probes: Probes,
        timing: Timing,
    ) -> Result<(), super::HostError> {
        let asks = self.asks(timing);
        let api = AskApi::new(self.client.clone(), self.name.to_string());
        let done = bring(&self.kernel, desired, probes, asks, api, &self.stopping).await;
        // Our own doing is seen without waiting to be told.
        self.woken.kernel();
        self.went_unasked(done?, timing);
        Ok(())
    }
}

/// Brings a state about, with the mark on what this host holds, or leaves the host as it was. What went on a link without a
/// question to the wire, and why.
pub(super) async fn bring(
    kernel: &Kernel,
    desired: Value,
    probes: Probes,
    asks: Asks,
    api: impl probe::Api + 'static,
    stopping: &Arc<AtomicBool>,
) -> Result<Vec<(Placed, Unasked)>, super::HostError> {
    let stopping = stopping.clone();
    let stop = move || stopping.load(std::sync::atomic::Ordering::SeqCst);
    kernel.apply(marked(desired, &asks.pooled), probes, asks, api, stop).await
}

/// The fields of an enactment's status that say where a policy stands.
fn words_of(
    one: &Selected,
    standing: Standing,
    message: &str,
    attempts: Option<u32>,
) -> Vec<(&'static str, Value)> {
    let before = one.enactment.as_ref().and_then(|own| own.status.clone()).unwrap_or_default();
    let generation = one.object.metadata.generation.unwrap_or_default();
    // What somebody else counted, kubernetes-nmstate say, or for another policy, is over.
    let is_ours = before.policy_uid == one.object.uid();
    let counted = if is_ours { attempts_of(&before, generation) } else { 0 };
    vec![
        ("policyGeneration", json!(generation)),
        ("policyUID", json!(one.object.uid())),
        ("conditions", conditions(standing, message, &before.conditions)),
        // Of other generations nobody counts any more.
        ("retryCount", json!({generation.to_string(): attempts.unwrap_or(counted)})),
    ]
}

fn conditions(standing: Standing, message: &str, before: &[Condition]) -> Value {
    json!(records::standing::write(standing, message, before, &stamp()))
}

/// A document whose pooled addresses bear Berth's mark.
fn marked(mut desired: Value, pooled: &BTreeSet<IpAddr>) -> Value {
    for interface in desired.get_mut("interfaces").and_then(Value::as_array_mut).into_iter().flatten() {
        for family in ["ipv4", "ipv6"] {
            let addresses = interface.get_mut(family).and_then(|of| of.get_mut("address"));
            for address in addresses.and_then(Value::as_array_mut).into_iter().flatten() {
                let ip = address["ip"].as_str().and_then(address_of);
                if ip.is_some_and(|ip| pooled.contains(&ip)) {
                    address["protocol"] = json!(AddressProtocol::BERTH.0);
                }
            }
        }
    }
    desired
}

fn attempts_of(status: &crds::NodeNetworkConfigurationEnactmentStatus, generation: i64) -> u32 {
    status.retry_count.get(&generation.to_string()).copied().unwrap_or_default().unsigned_abs()
}

/// A grant, as a capture yields it.
fn granted(grant: &crds::enactment::Grant) -> Option<Granted> {
    let one = |address: &crds::enactment::Address| {
        let ip = address.ip.parse().ok()?;
        Some(GrantedAddress {
            address: ipnet::IpNet::new(ip, address.prefix_length).ok()?,
            gateway: address.gateway.as_ref().and_then(|gateway| gateway.parse().ok()),
        })
    };
    let second = match &grant.ipv6 {
        Some(second) => Some(one(second)?),
        None => None,
    };
    Some(Granted {
        address: one(&grant.address)?,
        second,
        range: grant.range.clone().unwrap_or_default(),
        attributes: grant.attributes.clone(),
    })
}
