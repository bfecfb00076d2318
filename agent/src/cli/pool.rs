//! `berth pool …`: tools about pools.

mod explain;
mod history;
mod hold;
mod ls;
mod map;
mod release;
mod rows;
mod show;
mod source;
mod verify;

use clap::Subcommand;

use super::client::Reach;

/// Tools about pools
///
/// Against a cluster or a 'berth serve'; show and explain also on files. Of those that change something release asks first;
/// hold and resume don't, since either takes the other back.
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
    #[command(alias = "list")]
    Ls(ls::Args),
    Show(show::Args),
    Explain(explain::Args),
    Verify(verify::Args),
    Release(release::Args),
    Hold(hold::HoldArgs),
    Resume(hold::ResumeArgs),
    History(history::Args),
}

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    let reach = &args.reach;
    match &args.verb {
        Verb::Ls(args) => ls::run(args, reach),
        Verb::Show(args) => show::run(args, reach),
        Verb::Explain(args) => explain::run(args, reach),
        Verb::Verify(args) => verify::run(args, reach),
        Verb::Release(args) => release::run(args, reach),
        Verb::Hold(args) => hold::hold(args, reach),
        Verb::Resume(args) => hold::resume(args, reach),
        Verb::History(args) => history::run(args, reach),
    }
}
