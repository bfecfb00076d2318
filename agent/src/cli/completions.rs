//! `berth completions`: what a shell needs to complete this command line.
//!
//! Generated and committed (`make generate`), so that the program has the text and not the generator.

use clap::ValueEnum;

/// Print the completions of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  source <(berth completions bash)
  berth completions zsh > \"${fpath[1]}/_berth\"
  berth completions fish > ~/.config/fish/completions/berth.fish";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub(super) fn run(args: &Args) -> String {
    let text = match args.shell {
        Shell::Bash => include_str!("../../completions/berth.bash"),
        Shell::Zsh => include_str!("../../completions/_berth"),
        Shell::Fish => include_str!("../../completions/berth.fish"),
    };
    text.to_owned()
}
