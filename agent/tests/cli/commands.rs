//! Completions and man pages: what is committed is what the command line generates, and shells take it.

#[path = "../../examples/commands/pages.rs"]
mod pages;

use std::path::Path;
use std::process::Command;

use crate::support::{berth, tests};

#[test]
fn what_is_committed_is_up_to_date() {
    let stale: Vec<String> = pages::files()
        .expect("generated")
        .into_iter()
        .filter(|(path, text)| std::fs::read(path).ok().as_ref() != Some(text))
        .map(|(path, _)| path.display().to_string())
        .chain(pages::stale().into_iter().map(|path| path.display().to_string()))
        .collect();
    assert!(stale.is_empty(), "run 'make generate': {stale:?}");
}

#[test]
fn a_shell_is_given_its_completions() {
    for (shell, has) in [("bash", "_berth()"), ("zsh", "#compdef berth"), ("fish", "complete -c berth")] {
        let ran = berth(&tests(), &["completions", shell], b"");
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        assert!(ran.stdout.contains(has), "{shell}");
        assert!(ran.stdout.contains("preview"), "{shell}: every verb is there");
    }
    assert_eq!(berth(&tests(), &["completions", "tcsh"], b"").code, 2);
}

/// bash reads it, and completes a verb.
#[test]
fn bash_completes_a_verb() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("completions/berth.bash");
    let script = "source \"$1\"; COMP_WORDS=(berth pool expl); COMP_CWORD=2; _berth berth expl pool; echo \"${COMPREPLY[@]}\"";
    let output = Command::new("bash").args(["-c", script, "bash"]).arg(file).output().expect("bash");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "explain", "{output:?}");
}

/// Each verb has examples, which are of the program.
#[test]
fn every_verb_has_examples() {
    fn walk(command: &clap::Command, path: &str, lacking: &mut Vec<String>) {
        let path = format!("{path} {}", command.get_name());
        let verbs: Vec<_> = command.get_subcommands().filter(|verb| verb.get_name() != "help").collect();
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        if verbs.is_empty() && !help.contains("Examples:\n") {
            lacking.push(path.clone());
        }
        verbs.into_iter().for_each(|verb| walk(verb, &path, lacking));
    }
    let mut lacking = Vec::new();
    for verb in ["pool", "policy", "node", "completions"] {
        let command = agent::cli::command();
        walk(command.find_subcommand(verb).expect("the verb"), "", &mut lacking);
    }
    assert!(lacking.is_empty(), "{lacking:?}");
}
