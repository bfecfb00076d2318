//! `berth plan`: what would be done to a host so that a document holds.

use std::path::PathBuf;

use anyhow::Context;
use crds::Kind;
use policy::state::{Observed, default_port_vlans};
use policy::template::ipam_pools;
use serde_json::Value;
use thiserror::Error;

use super::input::{self, Document};
use super::manifest;
use super::output::{self, Shown};

/// Print what would be done to a host so that a document holds
///
/// Compares the desired state with what a host has and prints the ordered steps between them, as the agent would take
/// them; 'nothing to do' if all of it already holds. Nothing is changed. Whatever Berth can't apply is refused, all of it
/// at once, each with its path.
///
/// What a document doesn't name is left as it is. In a NodeNetworkConfigurationPolicy, linux-bridge ports that say nothing
/// of vlan get the trunk of all VLANs that kubernetes-nmstate gives them; a bare document is nmstate's and gets none.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The desired state: a bare document, a NodeNetworkConfigurationPolicy without captures, or an enactment
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    desired: PathBuf,
    /// What the host has: a bare document or a NodeNetworkState
    #[arg(long, value_name = "FILE")]
    current: PathBuf,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Shown,
}

const EXAMPLES: &str = "\
Examples:
  berth plan -f desired.yaml --current state.yaml
  berth plan -f desired.yaml --current <(kubectl get nns node01 -o yaml)
  berth render -f policy.yaml --current state.yaml | berth plan -f - --current state.yaml";

const EXPECTED: &str = "plan takes a network state (interfaces, routes, …), a NodeNetworkConfigurationPolicy \
                        without captures, or an enactment with status.desiredState";

/// Why a file can't be planned from.
#[derive(Debug, Error)]
enum PlanFileError {
    #[error(
        "{file}: it has captures (or ipam), which must be answered first; render it:\n\
         berth render -f POLICY --current STATE | berth plan -f - --current STATE"
    )]
    Captures { file: String },
}

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    input::stdin_once([&args.desired, &args.current])?;
    let (name, desired) = desired(args)?;
    let (current_name, current) = input::state(&args.current)?;
    let observed = Observed::from_value(&current)
        .with_context(|| format!("{current_name}: can't be read as the state of a host"))?;
    let plan = policy::plan::plan_document(&observed, &desired)
        .with_context(|| format!("{name}: can't be applied"))?;
    match args.output.format() {
        None => Ok(format!("{plan}\n")),
        Some(format) => output::document(&serde_json::to_value(&plan)?, format),
    }
}

fn desired(args: &Args) -> anyhow::Result<(String, Value)> {
    let (name, document) = input::read(&args.desired)?.only()?;
    let state = match &document {
        Document::Manifest(Kind::NodeNetworkConfigurationPolicy, manifest) => {
            let checked = manifest::checked(&name, manifest.clone())?;
            let mut state = of_policy(&name, checked.get("spec").unwrap_or(&Value::Null))?;
            state.as_mut().map(default_port_vlans);
            state
        }
        Document::Manifest(Kind::NodeNetworkConfigurationEnactment, manifest) => {
            manifest.pointer("/status/desiredState").cloned()
        }
        Document::Bare(value) if input::is_state(value) => Some(value.clone()),
        Document::Bare(value) if manifest::is_bare_policy(value) => of_policy(&name, value)?,
        _ => None,
    };
    match state {
        Some(state) => Ok((name, state)),
        None => Err(document.unexpected(&name, EXPECTED).into()),
    }
}

/// The desired state of a policy that asks its host nothing.
fn of_policy(name: &str, body: &Value) -> Result<Option<Value>, PlanFileError> {
    let captures = body.get("capture").and_then(Value::as_object);
    let state = body.get("desiredState").or_else(|| body.get("desired"));
    // What is wrong with an `ipam` is said when it is rendered.
    let asks_pools = |state: &Value| ipam_pools(state).map_or(true, |pools| !pools.is_empty());
    if captures.is_some_and(|captures| !captures.is_empty()) || state.is_some_and(asks_pools) {
        return Err(PlanFileError::Captures {
            file: name.to_owned(),
        });
    }
    Ok(state.cloned())
}
