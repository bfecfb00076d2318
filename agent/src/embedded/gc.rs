//! Deleting: finalizers, and what becomes of an object's dependents.
//!
//! A cluster has controllers for the latter; here it happens in the write that deletes. Called inside the writer. Must
//! never take away an object that has a finalizer, or an owner that is still there.
//!
//! Cost: a change per dependent, all in one commit. A chain of owners is walked with a list, not with the stack. Whether a
//! namespace is empty is asked once per write, not with each object that goes.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::admit::{meta, remove};
use super::resource::{self, Form, Table};
use super::store::{Key, Object, Owner, Transaction};

/// What holds an owner until its dependents are gone.
const FOREGROUND: &str = "foregroundDeletion";

/// What becomes of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagation {
    /// They go after their owner.
    Background,
    /// They go before it.
    Foreground,
    /// They stay, without it.
    Orphan,
}

/// What became of an object that was to be deleted.
#[derive(Clone, Debug)]
pub(super) enum Deleted {
    /// It is gone; this was its last state.
    Gone(Arc<Object>),
    /// It waits for its finalizers.
    Waits(Arc<Object>),
}

/// Namespaces that something went from.
type Left = BTreeSet<Box<str>>;

/// Deletes an object, as far as its finalizers let it.
pub(super) fn delete(tx: &mut Transaction<'_>, object: &Arc<Object>, propagation: Propagation) -> Deleted {
    let mut left = Left::new();
    let deleted = delete_from(tx, object, propagation, &mut left);
    vacate(tx, left);
    match deleted {
        // A namespace goes with the last that is in it.
        Deleted::Waits(waits) if tx.get(&waits.key).is_none() => Deleted::Gone(waits),
        deleted => deleted,
    }
}

fn delete_from(
    tx: &mut Transaction<'_>,
    object: &Arc<Object>,
    propagation: Propagation,
    left: &mut Left,
) -> Deleted {
    tx.frees();
    let mut value = object.value();
    match propagation {
        Propagation::Orphan => orphan(tx, &object.facts.uid),
        Propagation::Foreground if has_blocking(tx, &object.facts.uid) => {
            let finalizers = &mut value["metadata"]["finalizers"];
            match finalizers.as_array_mut() {
                Some(list) if list.iter().any(|name| name == FOREGROUND) => {}
                Some(list) => list.push(FOREGROUND.into()),
                None => *finalizers = json!([FOREGROUND]),
            }
        }
        _ => {}
    }
    let is_namespace = object.key.table.resource().form == Form::Namespace;
    if finalizers(&value).is_empty() && !is_namespace {
        let Some(last) = tx.remove(&object.key, &value) else { return Deleted::Gone(object.clone()) };
        follow(tx, last.clone(), left);
        return Deleted::Gone(last);
    }
    let mut waits = object.clone();
    if value["metadata"].get("deletionTimestamp").is_none() || value != object.value() {
        mark(tx, &mut value);
        if is_namespace {
            value["status"]["phase"] = "Terminating".into();
        }
        waits = tx.put(object.key.clone(), &value);
    }
    if propagation == Propagation::Foreground {
        for dependent in tx.dependents(&object.facts.uid) {
            match tx.get(&dependent.key) {
                // One that has another owner stays for that one's sake, as kube-controller-manager has it.
                Some(dependent) if dependent.facts.owners.iter().any(|owner| is_solid(tx, owner)) => {
                    leave(tx, &dependent, is_solid);
                }
                // Whatever is theirs follows them: only direct dependents are waited for.
                Some(dependent) => drop(delete_from(tx, &dependent, Propagation::Background, left)),
                None => {}
            }
        }
        // Nobody may be left to wait for.
        if let Some(last) = tx.get(&object.key).and_then(|owner| released(tx, &owner)) {
            follow(tx, last, left);
        }
    }
    if is_namespace {
        empty(tx, &object.key.name, left);
    }
    match tx.get(&object.key) {
        Some(object) => Deleted::Waits(object),
        None => Deleted::Gone(waits),
    }
}

/// Takes an object away, and then whatever was there only for it. Gives back its last state.
pub(super) fn removed(tx: &mut Transaction<'_>, key: &Key, last: &Value) -> Option<Arc<Object>> {
    let first = tx.remove(key, last)?;
    let mut left = Left::new();
    follow(tx, first.clone(), &mut left);
    vacate(tx, left);
    Some(first)
}

/// Takes away whatever was there only for an object that is gone.
fn follow(tx: &mut Transaction<'_>, first: Arc<Object>, left: &mut Left) {
    let mut gone = vec![first];
    while let Some(object) = gone.pop() {
        for dependent in tx.dependents(&object.facts.uid) {
            gone.extend(bereaved(tx, &dependent));
        }
        for owner in &object.facts.owners {
            gone.extend(tx.by_uid(&owner.uid).and_then(|owner| released(tx, &owner)));
        }
        left.insert(object.key.namespace.clone());
    }
}

/// After a write: an object whose owners were gone before it came goes too.
pub(super) fn settle(tx: &mut Transaction<'_>, object: &Arc<Object>) {
    let owners = &object.facts.owners;
    if !owners.is_empty() && !owners.iter().any(|owner| lives(tx, owner)) {
        delete(tx, object, Propagation::Background);
    }
}

/// Whether an object is being deleted.
pub(super) fn is_deleting(value: &Value) -> bool {
    value["metadata"].get("deletionTimestamp").is_some_and(|stamp| !stamp.is_null())
}

/// What an object still waits for.
pub(super) fn finalizers(value: &Value) -> &[Value] {
    value["metadata"]["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn mark(tx: &Transaction<'_>, value: &mut Value) {
    if is_deleting(value) {
        return;
    }
    let meta = &mut value["metadata"];
    meta["deletionTimestamp"] = meta::stamp(tx.now()).into();
    meta["deletionGracePeriodSeconds"] = 0.into();
    if let Some(generation) = meta.get("generation").and_then(Value::as_i64) {
        meta["generation"] = generation.saturating_add(1).into();
    }
}

/// A dependent that lost an owner. Gives back its last state if it is gone for that.
fn bereaved(tx: &mut Transaction<'_>, object: &Arc<Object>) -> Option<Arc<Object>> {
    if object.facts.owners.iter().any(|owner| lives(tx, owner)) {
        leave(tx, object, lives);
        return None;
    }
    let mut value = object.value();
    if finalizers(&value).is_empty() {
        return tx.remove(&object.key, &value);
    }
    if !is_deleting(&value) {
        mark(tx, &mut value);
        tx.put(object.key.clone(), &value);
    }
    None
}

/// Takes off an object the owners that don't stay.
fn leave(tx: &mut Transaction<'_>, object: &Object, stays: fn(&Transaction<'_>, &Owner) -> bool) {
    let owners = object.facts.owners.iter().filter(|owner| !stays(tx, owner));
    let gone: Vec<String> = owners.map(|owner| owner.uid.clone()).collect();
    let mut value = object.value();
    strip(&mut value, &gone);
    tx.put(object.key.clone(), &value);
}

/// Whether an owner is there, and not only until its dependents are gone.
fn is_solid(tx: &Transaction<'_>, owner: &Owner) -> bool {
    lives(tx, owner) && !tx.by_uid(&owner.uid).is_some_and(|owner| waits(&owner.value()))
}

/// Whether an object is being deleted once its dependents are gone.
fn waits(value: &Value) -> bool {
    is_deleting(value) && finalizers(value).iter().any(|name| name == FOREGROUND)
}

/// An owner that waited for its dependents, once the last that it has to wait for is gone.
fn released(tx: &mut Transaction<'_>, owner: &Arc<Object>) -> Option<Arc<Object>> {
    let mut value = owner.value();
    if !waits(&value) || has_blocking(tx, &owner.facts.uid) {
        return None;
    }
    if let Some(list) = value["metadata"]["finalizers"].as_array_mut() {
        list.retain(|name| name != FOREGROUND);
    }
    if finalizers(&value).is_empty() {
        remove(&mut value["metadata"], "finalizers");
        return tx.remove(&owner.key, &value);
    }
    tx.put(owner.key.clone(), &value);
    None
}

fn has_blocking(tx: &Transaction<'_>, uid: &str) -> bool {
    let blocks =
        |object: &Arc<Object>| object.facts.owners.iter().any(|owner| owner.uid == uid && owner.blocks);
    tx.dependents(uid).iter().any(blocks)
}

/// Takes an owner's name off its dependents.
fn orphan(tx: &mut Transaction<'_>, uid: &str) {
    for dependent in tx.dependents(uid) {
        let mut value = dependent.value();
        strip(&mut value, &[uid.to_owned()]);
        tx.put(dependent.key.clone(), &value);
    }
}

fn strip(value: &mut Value, uids: &[String]) {
    let meta = &mut value["metadata"];
    if let Some(owners) = meta["ownerReferences"].as_array_mut() {
        owners.retain(|owner| !owner["uid"].as_str().is_some_and(|uid| uids.iter().any(|gone| gone == uid)));
        if owners.is_empty() {
            remove(meta, "ownerReferences");
        }
    }
}

/// Whether an owner is there. Of kinds that aren't served nothing is known: they count as there.
fn lives(tx: &Transaction<'_>, owner: &Owner) -> bool {
    let served = resource::all().iter().any(|resource| {
        let versions = 0..resource.versions.len();
        resource.kind == owner.kind
            && versions.into_iter().any(|v| resource.api_version(v) == owner.api_version)
    });
    !served || tx.by_uid(&owner.uid).is_some()
}

/// Deletes what is in a namespace, which then goes too.
fn empty(tx: &mut Transaction<'_>, namespace: &str, left: &mut Left) {
    for table in Table::all().filter(|table| table.resource().namespaced) {
        for object in tx.range(table, Some(namespace)) {
            // One that went with another before it is not there any more.
            if let Some(object) = tx.get(&object.key) {
                delete_from(tx, &object, Propagation::Background, left);
            }
        }
    }
    left.insert(namespace.into());
}

/// Takes away those namespaces that are being deleted and have nothing in them any more.
fn vacate(tx: &mut Transaction<'_>, mut left: Left) {
    while let Some(namespace) = left.pop_first() {
        if let Some(last) = vacated(tx, &namespace) {
            follow(tx, last, &mut left);
        }
    }
}

/// A namespace that is being deleted goes with the last object in it.
fn vacated(tx: &mut Transaction<'_>, namespace: &str) -> Option<Arc<Object>> {
    let key = Key::new(Table::of("", "namespaces")?, "", namespace);
    let object = tx.get(&key).filter(|_| !namespace.is_empty())?;
    let value = object.value();
    let mut tables = Table::all().filter(|table| table.resource().namespaced);
    if !is_deleting(&value)
        || !finalizers(&value).is_empty()
        || tables.any(|table| tx.has_any(table, namespace))
    {
        return None;
    }
    tx.remove(&key, &value)
}
