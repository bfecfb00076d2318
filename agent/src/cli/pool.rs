//! `berth pool …`: tools about pools.

mod explain;
mod rows;
mod show;

use clap::Subcommand;

/// Tools about pools
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Explain(explain::Args),
}

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    match &args.verb {
        Verb::Explain(args) => explain::run(args),
    }
}
