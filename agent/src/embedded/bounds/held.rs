//! A slice that addresses are held in stays, whoever deletes it. Its finalizer is what keeps its name taken: without it
//! another node could make the slice anew, and give what its former owner still uses (rule 1 of the claim protocol).
//!
//! Asked of those who may do everything. A host is bound to its own slices, and it and the controller let go of empty ones
//! only. A cluster says the same in `deploy/admission/slices.yaml`, in the same words.

use crds::Kind;
use crds::names::{annotation, finalizer};
use serde_json::Value;

use super::{Asked, Write};
use crate::embedded::resource::Form;

pub(super) fn may_let_go(asked: &Asked<'_>, write: Write<'_>) -> Result<(), String> {
    let (Form::Ours(Kind::NodeIPSlice), "", Some(old)) = (asked.form(), asked.subresource, write.old) else {
        return Ok(());
    };
    let lets_go = match (is_kept(old), write.new) {
        (true, Some(new)) => !is_kept(new),
        (true, None) => false,
        (false, new) => new.is_none(),
    };
    let held = if lets_go { holds(old) } else { Vec::new() };
    let Some(least) = held.iter().min() else { return Ok(()) };
    let count = held.len();
    let confirmed = &write.new.unwrap_or(old)["metadata"]["annotations"][annotation::CONFIRM_RELEASE];
    if confirmed.as_str() == Some(count.to_string().as_str()) {
        return Ok(());
    }
    let node = old["spec"]["node"].as_str().unwrap_or_default();
    let more = if count == 1 { String::new() } else { format!(" and {} more", count - 1) };
    Err(format!(
        "node {node} holds {least}{more} in this slice. If its host is off for good, delete Node {node}: the slice goes after \
         the quarantine. If another node may be given what this one uses, annotate the slice with {}: \"{count}\"",
        annotation::CONFIRM_RELEASE
    ))
}

/// By its status or, before that was written, by what it was made with.
fn holds(slice: &Value) -> Vec<&str> {
    let (status, first) = (&slice["status"], slice["spec"]["first"]["ip"].as_str());
    match first.filter(|_| status["rebuiltFor"].is_null()) {
        Some(first) => vec![first],
        None => status["allocations"].as_object().into_iter().flatten().map(|(ip, _)| ip.as_str()).collect(),
    }
}

fn is_kept(slice: &Value) -> bool {
    let finalizers = slice["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|finalizers| finalizers.iter().any(|name| name == finalizer::ADDRESSES))
}
