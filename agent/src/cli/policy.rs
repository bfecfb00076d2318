//! `berth policy …`: tools about policies.

mod preview;

use clap::Subcommand;

use super::client::Reach;

/// Tools about policies
///
/// Against a cluster or a 'berth serve'.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Args {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Preview(preview::Args),
}

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    match &args.verb {
        Verb::Preview(of) => preview::run(of, &args.reach),
    }
}
