//! `berth render`: a policy's desired state as one node would get it.

mod captured;
mod grants;
mod literals;
mod source;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use policy::pool::Pool;
use policy::state::default_port_vlans;
use policy::template::{PolicyDoc, literals, render};
use serde_json::{Value, json};

use super::output::{self, Format};
use super::{UsageError, input};
use captured::Captured;
use grants::Asker;
use source::Source;

/// Print a policy's desired state as one node would get it
///
/// Evaluates the captures over the host's state, asks the pools for addresses with the code that serves claims in a
/// cluster (what the node already holds is used again, else the next address is chosen), and fills in the desired state.
/// A literal address in a pool's range is claimed first, or refused with who holds it. A pool that is being deleted, on
/// hold or being rebuilt gives nothing. Nothing is changed and nothing is claimed: the
/// same input gives the same answer.
///
/// What Berth can't apply is rendered all the same; 'berth plan' is what refuses it. In a NodeNetworkConfigurationPolicy,
/// linux-bridge ports that say nothing of vlan get the trunk of all VLANs that kubernetes-nmstate gives them; a bare
/// document is nmstate's and gets none.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A NodeNetworkConfigurationPolicy, or a bare document of capture and desiredState; pools may stand in the same file
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    policy: PathBuf,
    /// What the host has: a bare document or a NodeNetworkState; only needed by captures that look at it
    #[arg(long, value_name = "FILE")]
    current: Option<PathBuf>,
    /// What captures found before: an enactment, or its capturedStates (which say nothing of a pool's addresses)
    #[arg(long, value_name = "FILE")]
    captured: Option<PathBuf>,
    /// NodeIPPools, with who holds what in their status; and NodeIPSlices
    #[arg(long = "pool", value_name = "FILE", num_args = 1..)]
    pools: Vec<PathBuf>,
    /// The node to render for; needed by captures that ask a pool
    #[arg(long, value_name = "NAME", value_parser = node_name)]
    node: Option<String>,
    /// The node's labels, for ranges with a nodeSelector
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = label, requires = "node")]
    node_labels: Vec<(String, String)>,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "yaml")]
    output: Format,
}

const EXAMPLES: &str = "\
Examples:
  berth render -f policy.yaml --current state.yaml
  berth render -f policy.yaml --pool traffic-1.yaml --pool traffic-2.yaml --node node01
  berth render -f policy.yaml --pool pool.yaml --node node01 --node-labels rack=rack1,zone=a
  kubectl get nncp bridge -o yaml | berth render -f - --current state.yaml -o json";

pub(super) fn node_name(text: &str) -> Result<String, &'static str> {
    if text.is_empty() {
        return Err("a node's name can't be empty");
    }
    if !crds::text::is_dns_subdomain(text) {
        return Err(
            "no node has such a name: it is lower case letters, digits, '-' and '.', at most 253 of them, with a letter or digit at both ends and beside every '.'",
        );
    }
    Ok(text.to_owned())
}

pub(super) fn label(text: &str) -> Result<(String, String), &'static str> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    if !crds::text::is_qualified_name(key) {
        return Err("the key is no label's key");
    }
    if !crds::text::is_label_value(value) {
        return Err("the value is no label's value");
    }
    Ok((key.to_owned(), value.to_owned()))
}

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    let files = [&args.policy].into_iter().chain(&args.current).chain(&args.captured);
    input::stdin_once(files.chain(&args.pools))?;

    let mut source = Source::read(&args.policy)?;
    for path in &args.pools {
        source.add_pools(path)?;
    }
    let pools = source.pools()?;
    let failed = || format!("{}: can't be rendered", source.file);
    let doc = PolicyDoc::from_value(&source.policy).with_context(failed)?;
    let captured = args.captured.as_deref().map(Captured::read).transpose()?.unwrap_or_default();
    let wanted = doc.pools().with_context(failed)?;
    let current = current(args, &doc, &wanted, &captured)?;

    let labels = labels(args)?;
    source.warn_unselected(args.node.as_deref(), &labels);
    let asker = Asker { node: args.node.as_deref(), labels: &labels, policy: source.name() };
    for (capture, pool) in wanted.iter().filter(|_| args.node.is_some()) {
        if let Some(file) = captured.unproven(pool, capture) {
            output::warn(file, format!("capture {capture:?} is asked anew: {UNPROVEN}"));
        }
    }
    let known: Vec<&Pool> = pools.iter().map(|known| &known.pool).collect();
    let literals = literals(&doc.desired_state, &known);
    let grants =
        grants::grants(&wanted, &literals, &pools, &captured, &asker).map_err(|error| match error {
            grants::Failure::Usage(usage) => anyhow::Error::from(usage),
            grants::Failure::Refused(refusals) => anyhow::Error::from(refusals).context(failed()),
        })?;

    let mut desired = render(&doc, &current, &captured.states, &grants).with_context(failed)?.desired;
    if source.is_manifest {
        default_port_vlans(&mut desired);
    }
    if desired.is_null() {
        output::warn(&source.file, "desiredState is empty: agents have nothing to do");
        desired = json!({});
    }
    output::document(&desired, args.output)
}

/// Why a captured state of a pool's address is not used.
pub(super) const UNPROVEN: &str =
    "what a pool gave counts only where an enactment's status.ippool lists it: give the whole enactment";

fn labels(args: &Args) -> Result<BTreeMap<String, String>, UsageError> {
    let mut labels = BTreeMap::new();
    for (key, value) in &args.node_labels {
        if labels.insert(key.clone(), value.clone()).is_some() {
            return Err(UsageError::LabelTwice { key: key.clone() });
        }
    }
    Ok(labels)
}

/// The host's state; nothing if no capture looks at it.
fn current(
    args: &Args,
    doc: &PolicyDoc,
    wanted: &BTreeMap<String, String>,
    captured: &Captured,
) -> anyhow::Result<Value> {
    if let Some(path) = &args.current {
        return Ok(input::state(path)?.1);
    }
    let looks = |name: &&String| !wanted.contains_key(*name) && !captured.states.contains_key(*name);
    match doc.capture.keys().find(looks) {
        None => Ok(json!({})),
        Some(capture) => Err(UsageError::CurrentMissing { capture: capture.clone() }.into()),
    }
}
