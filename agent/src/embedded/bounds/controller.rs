//! A controller: it serves claims and tends pools, and so writes others' entries; what people write it leaves alone.

use crds::Kind;
use crds::names::label::FROM_CONFIGURATION;
use serde_json::Value;

use super::{Asked, Verb, Write};
use crate::embedded::resource::Form;

pub(super) fn may_ask(asked: &Asked<'_>) -> Result<(), String> {
    let may = match (asked.form(), asked.verb) {
        (_, Verb::DeleteCollection) | (Form::Namespace | Form::Node, _) => false,
        // A person's: it writes their status, and marks on their metadata. Pools of its configuration it makes.
        (Form::Ours(Kind::NodeIPPool), Verb::Create) => true,
        (Form::Ours(Kind::NodeIPPool | Kind::NodeNetworkConfigurationPolicy), verb) => {
            matches!(verb, Verb::Update | Verb::Patch)
        }
        _ => true,
    };
    match may {
        true => Ok(()),
        false => Err(format!("a controller may not {} {}", asked.verb.word(), asked.what())),
    }
}

pub(super) fn may_write(asked: &Asked<'_>, write: Write<'_>) -> Result<(), String> {
    may_ask(asked)?;
    let theirs = matches!(asked.form(), Form::Ours(Kind::NodeIPPool | Kind::NodeNetworkConfigurationPolicy));
    let is_listed = |new: &Value| new["metadata"]["labels"][FROM_CONFIGURATION] == "true";
    if asked.verb == Verb::Create && theirs && !write.new.is_some_and(is_listed) {
        return Err(format!("a controller may not create {}", asked.what()));
    }
    let (Some(old), Some(new), true) = (write.old, write.new, theirs) else { return Ok(()) };
    // A label may select what others do with it, and an owner that goes would take it along.
    let differs = |field: &str| old["metadata"].get(field) != new["metadata"].get(field);
    let plural = &asked.resource.plural;
    if old["spec"] != new["spec"] {
        return Err(format!("a controller may not change the spec of {plural}"));
    }
    match differs("labels") || differs("ownerReferences") {
        true => Err(format!("a controller may not change labels or owners of {plural}")),
        false => Ok(()),
    }
}
