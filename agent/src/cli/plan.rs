//! `berth plan`: what would be done to a host so that a document holds.

use std::path::PathBuf;

use anyhow::Context;
use policy::state::Observed;

use super::live::{self, Where};
use super::output::{self, Shown};
use super::{desired, input};
use crate::kernel;

/// Print what would be done to a host so that a document holds
///
/// Compares the desired state with what a host has and prints the ordered steps between them, as the agent would take
/// them; 'nothing to do' if all of it already holds. Nothing is changed. What the kernel takes away along the way and
/// no step puts back follows as 'also lost'. Whatever Berth can't apply is refused, all of it at once, each with its path.
///
/// What a document doesn't name is left as it is. In a NodeNetworkConfigurationPolicy, linux-bridge ports that say nothing
/// of vlan get the trunk of all VLANs that kubernetes-nmstate gives them; a bare document is nmstate's and gets none.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The desired state: a bare document, a NodeNetworkConfigurationPolicy without captures, or an enactment
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    desired: PathBuf,
    /// What the host has: a bare document or a NodeNetworkState. Default: this host, as it is now
    #[arg(long, value_name = "FILE", conflicts_with = "netns")]
    current: Option<PathBuf>,
    #[command(flatten)]
    place: Where,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Shown,
}

const EXAMPLES: &str = "\
Examples:
  berth plan -f desired.yaml
  berth plan -f desired.yaml --current state.yaml
  berth plan -f desired.yaml --current <(kubectl get nns node01 -o yaml)
  berth render -f policy.yaml --current state.yaml | berth plan -f - --current state.yaml";

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    input::stdin_once(std::iter::once(&args.desired).chain(&args.current))?;
    let (name, desired) = desired::read(&args.desired)?;
    let cant = || format!("{name}: can't be applied");
    let plan = match &args.current {
        Some(file) => {
            let (name, current) = input::state(file)?;
            let observed = Observed::from_value(&current)
                .with_context(|| format!("{name}: can't be read as the state of a host"))?;
            policy::plan::plan_document(&observed, &desired).with_context(cant)?
        }
        None => args.place.look(|kernel| {
            let observed = live::observe(kernel)?.state;
            kernel::plan(kernel, &observed, &desired).with_context(cant)
        })?,
    };
    match args.output.format() {
        None => Ok(format!("{plan}\n")),
        Some(format) => output::document(&serde_json::to_value(&plan)?, format),
    }
}
