//! Man pages and completions, as the command line generates them. For the example that writes them and the test that
//! compares.

use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn manuals() -> PathBuf {
    root().join("docs/man")
}

/// Every file with its text.
pub(crate) fn files() -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    let mut command = agent::cli::command();
    command.build();
    page(&command, &mut files)?;
    for (shell, name) in [(Shell::Bash, "berth.bash"), (Shell::Zsh, "_berth"), (Shell::Fish, "berth.fish")] {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut agent::cli::command(), "berth", &mut text);
        files.push((root().join("agent/completions").join(name), text));
    }
    Ok(files)
}

/// A page for this command, and for each of its verbs.
fn page(command: &Command, files: &mut Vec<(PathBuf, Vec<u8>)>) -> io::Result<()> {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    man.render(&mut text)?;
    files.push((manuals().join(man.get_filename()), text));
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help" && !verb.is_hide_set()) {
        page(verb, files)?;
    }
    Ok(())
}

/// Pages of verbs that are no more.
pub(crate) fn stale() -> Vec<PathBuf> {
    let wanted: Vec<PathBuf> = files().unwrap_or_default().into_iter().map(|(path, _)| path).collect();
    let there = std::fs::read_dir(manuals()).into_iter().flatten().flatten().map(|entry| entry.path());
    there.filter(|path| !wanted.contains(path)).collect()
}
