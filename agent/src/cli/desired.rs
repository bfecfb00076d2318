//! A desired state from a file, for the verbs that plan or apply one.

use std::path::Path;

use crds::Kind;
use policy::state::default_port_vlans;
use policy::template::ipam_pools;
use serde_json::Value;
use thiserror::Error;

use super::input::{self, Document};
use super::manifest;

const EXPECTED: &str = "expected a network state (interfaces, routes, …), a NodeNetworkConfigurationPolicy without \
                        captures, or an enactment with status.desiredState";

/// Why a file can't be planned from.
#[derive(Debug, Error)]
enum DesiredError {
    #[error(
        "{file}: it has captures (or ipam), which must be answered first; render it:\n\
         berth render -f POLICY --current STATE | berth plan -f - --current STATE"
    )]
    Captures { file: String },
}

/// The file's name for messages, and the state it asks for.
pub(super) fn read(path: &Path) -> anyhow::Result<(String, Value)> {
    let (name, document) = input::read(path)?.only()?;
    let document = match document {
        // The usual case, and the largest: nothing of it is copied.
        Document::Bare(value) if input::is_state(&value) => return Ok((name, value)),
        other => other,
    };
    let state = match &document {
        Document::Manifest(Kind::NodeNetworkConfigurationPolicy, manifest) => {
            let checked = manifest::checked(&name, manifest.clone())?;
            let mut state = of_policy(&name, checked.get("spec").unwrap_or(&Value::Null))?;
            default_port_vlans(&mut state);
            Some(state)
        }
        Document::Manifest(Kind::NodeNetworkConfigurationEnactment, manifest) => {
            manifest.pointer("/status/desiredState").cloned()
        }
        Document::Bare(value) if manifest::is_bare_policy(value) => Some(of_policy(&name, value)?),
        // What `berth render` prints of a policy that wants nothing.
        Document::Bare(Value::Object(none)) if none.is_empty() => Some(Value::Object(none.clone())),
        _ => None,
    };
    match state {
        Some(state) => Ok((name, state)),
        None => Err(document.unexpected(&name, EXPECTED).into()),
    }
}

/// The desired state of a policy that asks its host nothing.
fn of_policy(name: &str, body: &Value) -> Result<Value, DesiredError> {
    let captures = body.get("capture").and_then(Value::as_object);
    let state = body.get("desiredState").or_else(|| body.get("desired"));
    // What is wrong with an `ipam` is said when it is rendered.
    let asks_pools = |state: &Value| ipam_pools(state).map_or(true, |pools| !pools.is_empty());
    if captures.is_some_and(|captures| !captures.is_empty()) || state.is_some_and(asks_pools) {
        return Err(DesiredError::Captures { file: name.to_owned() });
    }
    Ok(state.cloned().unwrap_or_else(|| Value::Object(Default::default())))
}
