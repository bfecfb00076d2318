//! A host: its own Node and Lease, its own enactments, state and slices, its own entries in a pool's ledger, its own slot in a
//! policy's rollout, Events.
//!
//! Whose an object is, is said by the label `nmstate.io/node` and the owner's UID, never by its name alone: node `a` with
//! policy `b.c` and node `a.b` with policy `c` have one name.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crds::Kind;
use crds::names::annotation::{LEDGER_ENCODING, RESET_POOL, SCHEMA_VERSION, SCHEMA_VERSION_CURRENT};
use crds::names::{finalizer, label};
use policy::pool::MADE_WITH;
use serde_json::Value;

use super::{Asked, Seen, Verb, Write, claims, ledger, slots};
use crate::embedded::resource::Form;

/// Where hosts keep their leases, as kubelets do.
const NODE_LEASES: &str = "kube-node-lease";

/// As what agents tell Events: of the program, and of the host's, as kubernetes-nmstate's handlers do.
const REPORTER: &str = "nmstate.io/berth-agent";
const HANDLER: &str = "nmstate-handler";

/// Labels under it are an administrator's word about a node, as in Kubernetes: a host can't give itself one.
const RESTRICTED: &str = "node-restriction.kubernetes.io/";

/// A label's value can't be longer; of a node with a longer name the owner alone says whose an object is.
const LABEL_VALUE: usize = 63;

/// Whether a host may ask this at all, whatever the object.
pub(super) fn may_ask(name: &str, asked: &Asked<'_>) -> Result<(), String> {
    use Verb::{Create, Delete, DeleteCollection, Patch, Update};
    let may = match (asked.form(), asked.verb) {
        (_, DeleteCollection) => false,
        // Deleting a Node is an administrator's word that its host is off.
        (Form::Node | Form::Lease, verb) => verb != Delete,
        (Form::CoreEvent | Form::NewEvent, verb) => verb != Delete,
        (Form::Ours(Kind::NodeIPPool | Kind::NodeNetworkConfigurationPolicy), verb) => {
            asked.subresource == "status" && matches!(verb, Update | Patch)
        }
        (
            Form::Ours(Kind::NodeNetworkConfigurationEnactment | Kind::NodeNetworkState | Kind::NodeIPSlice),
            verb,
        ) => matches!(verb, Create | Update | Patch | Delete),
        (Form::Namespace, _) => false,
    };
    match may {
        true => Ok(()),
        false => Err(format!("host {name} may not {} {}", asked.verb.word(), asked.what())),
    }
}

/// The host that asks.
#[derive(Clone, Copy)]
pub(super) struct Host<'a> {
    pub(super) name: &'a str,
    /// Its Node's, if there is one.
    pub(super) uid: Option<&'a str>,
}

impl Host<'_> {
    pub(super) fn may_write(
        self,
        asked: &Asked<'_>,
        write: Write<'_>,
        seen: &dyn Seen,
    ) -> Result<(), String> {
        may_ask(self.name, asked)?;
        match asked.form() {
            Form::Node => self.node(asked, write),
            Form::Lease => self.lease(asked, write),
            Form::CoreEvent | Form::NewEvent => self.event(asked, write),
            Form::Ours(Kind::NodeNetworkConfigurationEnactment) => self.enactment(asked, write),
            Form::Ours(Kind::NodeNetworkState) => self.state(write),
            Form::Ours(Kind::NodeIPSlice) => self.slice(write, seen),
            Form::Ours(Kind::NodeIPPool) => match (write.old, write.new) {
                (Some(old), Some(new)) => ledger::may_write(self.name, self.uid()?, old, new),
                _ => Ok(()),
            },
            Form::Ours(Kind::NodeNetworkConfigurationPolicy) => match (write.old, write.new) {
                (Some(old), Some(new)) => slots::may_write(self.name, old, new),
                _ => Ok(()),
            },
            Form::Namespace => Ok(()),
        }
    }

    /// Everything of a host's hangs on its Node.
    fn uid(&self) -> Result<&str, String> {
        let name = self.name;
        self.uid.ok_or_else(|| format!("there is no Node {name} that it could belong to: register it first"))
    }

    fn node(self, asked: &Asked<'_>, write: Write<'_>) -> Result<(), String> {
        let (name, verb) = (self.name, asked.verb.word());
        if let Some(other) = write.images().map(named).find(|other| *other != name) {
            return Err(format!("host {name} may not {verb} Node {other}, only its own"));
        }
        let restricted = |object: Option<&Value>| -> Vec<(String, Value)> {
            let labels = object.and_then(|object| object["metadata"]["labels"].as_object());
            let labels = labels.into_iter().flatten().filter(|(key, _)| key.starts_with(RESTRICTED));
            let mut labels: Vec<_> = labels.map(|(key, value)| (key.clone(), value.clone())).collect();
            labels.sort_by(|a, b| a.0.cmp(&b.0));
            labels
        };
        if restricted(write.old) != restricted(write.new) {
            return Err(format!("host {name} may not change labels under {RESTRICTED}"));
        }
        // Both decide when a Node goes: an owner that is nowhere would take it away, which is an administrator's word.
        let listed = |object: Option<&Value>, field: &str| -> Vec<Value> {
            object.and_then(|object| object["metadata"][field].as_array().cloned()).unwrap_or_default()
        };
        let kept = |field: &&str| listed(write.old, field) == listed(write.new, field);
        match ["ownerReferences", "finalizers"].iter().find(|field| !kept(field)) {
            None => Ok(()),
            Some(field) => Err(format!("host {name} may not change metadata.{field} of its Node")),
        }
    }

    fn lease(self, asked: &Asked<'_>, write: Write<'_>) -> Result<(), String> {
        let Self { name, .. } = self;
        let own = |object: &Value| object["metadata"]["namespace"] == NODE_LEASES && named(object) == name;
        match write.images().all(own) {
            true => Ok(()),
            false => {
                let verb = asked.verb.word();
                Err(format!("host {name} may {verb} only Lease {name} in namespace {NODE_LEASES}"))
            }
        }
    }

    /// It tells things as itself, by whichever field people see; what others told stays as it is.
    fn event(self, asked: &Asked<'_>, write: Write<'_>) -> Result<(), String> {
        let name = self.name;
        let component = format!("{name}.{HANDLER}");
        let own = |event: &Value| {
            let source =
                event.get("source").or_else(|| event.get("deprecatedSource")).unwrap_or(&Value::Null);
            let said = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
            let mut tellers =
                [&event["reportingInstance"], &source["host"]].into_iter().filter_map(said).peekable();
            let reported = [&event["reportingComponent"], &event["reportingController"]];
            tellers.peek().is_some()
                && tellers.all(|teller| teller == name)
                && reported.into_iter().filter_map(said).all(|by| by == REPORTER)
                && said(&source["component"]).is_none_or(|by| by == component)
        };
        match write.images().all(own) {
            true => Ok(()),
            false => Err(format!(
                "host {name} may {} only Events of its own: reportingInstance and source.host {name}, reportingComponent {REPORTER}, source.component {component}",
                asked.verb.word()
            )),
        }
    }

    fn enactment(self, asked: &Asked<'_>, write: Write<'_>) -> Result<(), String> {
        let (name, uid) = (self.name, self.uid()?);
        if self.lets_go(asked, write, uid) {
            return Ok(());
        }
        for object in write.images() {
            self.labelled(object)?;
            owned(object, name, uid)?;
        }
        let Some(new) = write.new else { return Ok(()) };
        owned_alone(write.old, new, name, uid)?;
        // The name is a lock: whoever may take any can keep others from theirs.
        let policy = new["metadata"]["labels"][label::POLICY].as_str().unwrap_or_default();
        if named(new) != format!("{name}.{policy}") {
            return Err(format!(
                "an enactment of host {name} is named {name}.<policy>, with the policy in its label {}",
                label::POLICY
            ));
        }
        write.old.map_or(Ok(()), |old| claims::may_write(old, new))?;
        self.keeps(write, "enactment", Some(finalizer::ADDRESSES))?;
        // Where people ask for one, it stops the pool until it is done.
        let asks = |object: &Value| object["metadata"]["annotations"].get(RESET_POOL).cloned();
        match asks(new) {
            Some(pool) if write.old.and_then(asks).as_ref() != Some(&pool) => {
                Err(format!("host {name} may not ask for a reset, by {RESET_POOL}"))
            }
            _ => Ok(()),
        }
    }

    /// What keeps an object from going, as far as that is new: but for `own`, which Berth takes off again, it is others' to say.
    fn keeps(self, write: Write<'_>, what: &str, own: Option<&str>) -> Result<(), String> {
        let listed = |object: Option<&Value>| -> Vec<Value> {
            object.and_then(|object| object["metadata"]["finalizers"].as_array().cloned()).unwrap_or_default()
        };
        let before = listed(write.old);
        let foreign =
            listed(write.new).into_iter().find(|name| !before.contains(name) && name.as_str() != own);
        foreign.as_ref().and_then(Value::as_str).map_or(Ok(()), |foreign| {
            let only = own.map(|own| format!(": only {own}")).unwrap_or_default();
            Err(format!("host {} may not put the finalizer {foreign} on its {what}{only}", self.name))
        })
    }

    /// A Node re-created under its name takes the finalizer off what the former one left, and nothing else (rule 7 of the
    /// claim protocol).
    fn lets_go(self, asked: &Asked<'_>, write: Write<'_>, uid: &str) -> bool {
        let (Some(old), Some(new), "") = (write.old, write.new, asked.subresource) else { return false };
        let former = node_owners(old).all(|(name, of)| name == self.name && of != uid)
            && node_owners(old).next().is_some();
        let leaving = old["metadata"]["deletionTimestamp"].is_string();
        former && leaving && self.labelled(old).is_ok() && only_finalizer_gone(old, new)
    }

    fn labelled(self, object: &Value) -> Result<(), String> {
        let name = self.name;
        let of = object["metadata"]["labels"][label::NODE].as_str();
        match of {
            Some(of) if of == name => Ok(()),
            None if name.len() > LABEL_VALUE => Ok(()),
            _ => Err(format!(
                "it is not host {name}'s: its label {} is {}",
                label::NODE,
                of.unwrap_or("missing")
            )),
        }
    }

    fn state(self, write: Write<'_>) -> Result<(), String> {
        let (name, uid) = (self.name, self.uid()?);
        for object in write.images() {
            if named(object) != name {
                return Err(format!("host {name} may not write the state of node {}", named(object)));
            }
            if object["metadata"]["labels"].get(label::NODE).is_some() {
                self.labelled(object)?;
            }
        }
        // The state of a namesake that is gone may be taken over: it tells what this very host shows (rule 7). What it
        // is to be is this Node's.
        if let Some(new) = write.new {
            owned(new, name, uid)?;
            owned_alone(write.old, new, name, uid)?;
        }
        // One would keep it from going with its Node, and the next Node of that name from its own.
        self.keeps(write, "state", None)
    }

    /// A slice has no owner reference: its spec, which can't be changed, says whose it is.
    fn slice(self, write: Write<'_>, seen: &dyn Seen) -> Result<(), String> {
        let (name, uid) = (self.name, self.uid()?);
        for object in write.images() {
            let (node, node_uid) = (&object["spec"]["node"], &object["spec"]["nodeUID"]);
            if node != name {
                let other = node.as_str().unwrap_or("nobody");
                return Err(format!("host {name} may not write a slice of node {other}"));
            }
            if node_uid != uid {
                return Err(format!("spec.nodeUID must be {uid}, the UID of Node {name}"));
            }
        }
        let Some(new) = write.new else { return Ok(()) };
        holds_for(name, uid, write.old, new)?;
        self.keeps(write, "slice", Some(finalizer::ADDRESSES))?;
        // With one it would go, or keep it from going.
        if let Some(owner) = new_owners(write.old, new).next() {
            let text = |field: &str| owner[field].as_str().unwrap_or_default();
            let (kind, of) = (text("kind"), text("name"));
            return Err(format!("host {name} may not give its slice an owner: {kind} {of}"));
        }
        is_readable(name, write.old, new)?;
        match write.old {
            None => is_cut(new, seen),
            Some(_) => Ok(()),
        }
    }
}

/// What a host writes into its slice is of that slice, and its own: what a slice holds beyond itself is another's, or free.
fn holds_for(name: &str, uid: &str, old: Option<&Value>, new: &Value) -> Result<(), String> {
    let before = old.map_or(&Value::Null, |old| &old["status"]["allocations"]);
    let entries = new["status"]["allocations"].as_object().into_iter().flatten();
    let written: BTreeMap<&String, &Value> =
        entries.filter(|(ip, entry)| before.get(ip.as_str()) != Some(entry)).collect();
    let cidr = new["spec"]["cidr"].as_str().unwrap_or_default();
    let block = crds::address::cidr(cidr);
    let is_in = |ip: &str| ip.parse().is_ok_and(|ip: IpAddr| block.is_some_and(|block| block.contains(&ip)));
    if let Some(ip) = written.keys().find(|ip| !is_in(ip)) {
        return Err(format!("{ip} is not an address of this slice, {cidr}"));
    }
    let given = written.iter().find(|(_, entry)| entry["node"] != name || entry["nodeUID"] != uid);
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    given.map_or(Ok(()), |(ip, entry)| {
        Err(format!(
            "{ip} is of Node {} with UID {}: in its slice a host holds addresses for itself alone",
            text(entry, "node"),
            text(entry, "nodeUID")
        ))
    })?;
    let unkind = written.iter().find(|(_, entry)| entry.get("kind").is_none());
    unkind.map_or(Ok(()), |(ip, _)| Err(format!("status.allocations.{ip}.kind is missing")))
}

/// How a slice is written down, as far as that is new, is what agents write: one that nobody can read would outlast its Node,
/// and its name with it.
fn is_readable(name: &str, old: Option<&Value>, new: &Value) -> Result<(), String> {
    let known = [(LEDGER_ENCODING, MADE_WITH), (SCHEMA_VERSION, SCHEMA_VERSION_CURRENT)];
    let unknown = known.into_iter().find(|(annotation, known)| {
        let says = |object: &Value| object["metadata"]["annotations"].get(*annotation).cloned();
        says(new).is_some_and(|value| value != *known && old.and_then(says) != Some(value))
    });
    unknown.map_or(Ok(()), |(annotation, known)| {
        Err(format!("host {name} may set {annotation} only to {known}"))
    })
}

/// A slice is one that its pool would cut: whoever could make any would have the whole pool.
fn is_cut(slice: &Value, seen: &dyn Seen) -> Result<(), String> {
    let spec = &slice["spec"];
    let name = spec["pool"].as_str().unwrap_or_default();
    let pool = seen.pool(name).ok_or_else(|| format!("there is no pool {name} that it could be cut from"))?;
    let cidr = spec["cidr"].as_str().and_then(crds::address::cidr);
    let cidr = cidr.ok_or_else(|| "spec.cidr is no network".to_owned())?;
    // A slice is addresses: while a pool is stopped another may hold what is free by its word. Whether a slice's own
    // ledger is complete, it says itself.
    ledger::goes_on(&pool)?;
    ledger::pool(&pool)?.within(&[cidr]).map(|_| ()).map_err(|error| error.to_string())
}

fn named(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// `(name, UID)` of each Node that owns an object.
fn node_owners(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners
        .filter(|owner| owner["kind"] == "Node" && owner["apiVersion"] == "v1")
        .map(|owner| (owner["name"].as_str().unwrap_or_default(), owner["uid"].as_str().unwrap_or_default()))
}

/// This very Node owns it, once, and no other does.
fn owned(object: &Value, name: &str, uid: &str) -> Result<(), String> {
    match node_owners(object).find(|owner| *owner != (name, uid)) {
        None if node_owners(object).count() == 1 => Ok(()),
        None => Err(only_owner(name, uid)),
        Some((other, other_uid)) => Err(format!(
            "it is owned by Node {other} with UID {other_uid}, not by Node {name} with UID {uid}"
        )),
    }
}

/// Nor does anything else, as far as that is new: one that stays would keep it when its Node is gone, and one that waits for it to
/// go would keep its Node.
fn owned_alone(old: Option<&Value>, new: &Value, name: &str, uid: &str) -> Result<(), String> {
    let is_node = |owner: &Value| owner["kind"] == "Node" && owner["apiVersion"] == "v1";
    let waits = |owner: &Value| owner["blockOwnerDeletion"] == true;
    match new_owners(old, new).any(|owner| !is_node(owner) || waits(owner)) {
        true => Err(only_owner(name, uid)),
        false => Ok(()),
    }
}

/// The owners that a write gives an object.
fn new_owners<'a>(old: Option<&'a Value>, new: &'a Value) -> impl Iterator<Item = &'a Value> {
    let listed = |object: &'a Value| object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let before: Vec<&Value> = old.into_iter().flat_map(listed).collect();
    listed(new).filter(move |owner| !before.contains(owner))
}

fn only_owner(name: &str, uid: &str) -> String {
    format!("it must have Node {name} with UID {uid} as its only owner")
}

/// Whether our finalizer went, and nothing else changed but what the server itself writes.
fn only_finalizer_gone(old: &Value, new: &Value) -> bool {
    let finalizers = |object: &Value| -> Vec<String> {
        let listed = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        listed.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let rest = |object: &Value| {
        let mut rest = object.clone();
        if let Some(metadata) = rest["metadata"].as_object_mut() {
            for field in ["finalizers", "resourceVersion", "generation", "managedFields"] {
                metadata.remove(field);
            }
        }
        rest
    };
    let mut left = finalizers(old);
    left.retain(|name| name != finalizer::ADDRESSES);
    finalizers(new) == left && rest(old) == rest(new)
}
