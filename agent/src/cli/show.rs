//! `berth show`: the network state of this host.

use std::collections::BTreeSet;

use policy::state::{IfName, Observed};
use thiserror::Error;

use super::live::{self, Where};
use super::output::{self, Format};

/// Print the network state of this host
///
/// Interfaces, addresses, routes, rules, resolver and hostname in nmstate's form, read from the kernel in one pass.
/// Piped into 'berth apply -f -' it changes nothing. Addresses that somebody renews (DHCP, router advertisements) are
/// shown with 'dhcp: true' or 'autoconf: true'; interfaces of kinds Berth doesn't know with 'state: ignore'.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Only these interfaces, by name or alternative name, and the routes through them
    #[arg(value_name = "IFACE")]
    interfaces: Vec<String>,
    #[command(flatten)]
    place: Where,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "yaml")]
    output: Format,
}

const EXAMPLES: &str = "\
Examples:
  berth show
  berth show eth1 bond0 -o json
  berth show --netns blue
  berth show | berth apply -f -";

/// What was asked for isn't there.
#[derive(Debug, Error)]
#[error("there is no interface {name}; there is: {}", .known.join(", "))]
struct NoSuchInterface {
    name: String,
    known: Vec<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    let mut state = args.place.look(|kernel| Ok(live::observe(kernel)?.state))?;
    if !args.interfaces.is_empty() {
        only(&mut state, &args.interfaces)?;
    }
    output::document(&state.to_value(), args.output)
}

/// Leaves these interfaces and the routes through them.
fn only(state: &mut Observed, wanted: &[String]) -> Result<(), NoSuchInterface> {
    let mut kept: BTreeSet<IfName> = BTreeSet::new();
    for name in wanted {
        let found =
            state.links.values().find(|link| link.name.as_str() == name || link.alt_names.contains(name));
        let known = || state.links.keys().map(ToString::to_string).collect();
        let found = found.ok_or_else(|| NoSuchInterface { name: name.clone(), known: known() })?;
        kept.insert(found.name.clone());
    }
    state.links.retain(|name, _| kept.contains(name));
    state.routes.retain(|route| kept.iter().any(|name| route.uses(name)));
    state.rules.clear();
    (state.dns, state.running_dns, state.hostname) = Default::default();
    Ok(())
}
