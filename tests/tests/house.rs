//! The house around the code keeps its word: links lead somewhere, targets exist, requirements have a test,
//! and nothing tells on which machine it was written.
//!
//! Each test lists all that is wrong, not the first.

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The requirements: all of them, as docs/requirements.md numbers them.
const SHOWN: RangeInclusive<u32> = 1..=119;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace around this crate")
}

/// Every file of the repository, by its path from the root: what git and cargo keep for themselves is left out.
fn files() -> Vec<(String, PathBuf)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name == ".git" || name == "target" {
                continue;
            }
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.push(path.clone());
            }
        }
    }
    let mut found = Vec::new();
    walk(root(), &mut found);
    found.sort();
    let relative = |path: &Path| path.strip_prefix(root()).expect("below the root").display().to_string();
    found.into_iter().map(|path| (relative(&path), path)).collect()
}

fn documents() -> Vec<(String, PathBuf)> {
    files().into_iter().filter(|(name, _)| name.ends_with(".md")).collect()
}

fn read(path: &Path) -> String {
    // Some fixtures are broken on purpose.
    let bytes = fs::read(path).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn report(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n  {}", wrong.join("\n  "));
}

/// The lines of a document, each with whether it stands in a code block.
fn lines(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut in_code = false;
    text.lines().map(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        (in_code && !is_fence, line)
    })
}

/// What stands in `](…)`, in the order of the text; code blocks have no links.
fn links(text: &str) -> Vec<&str> {
    lines(text)
        .filter(|(in_code, _)| !in_code)
        .flat_map(|(_, line)| line.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link)
        .collect()
}

/// Code of a document: lines of code blocks, and what stands between backticks.
fn code(text: &str) -> Vec<&str> {
    lines(text)
        .flat_map(|(in_code, line)| match in_code {
            true => vec![line.trim_start().trim_start_matches("$ ")],
            false => line.split('`').skip(1).step_by(2).collect(),
        })
        .collect()
}

/// The targets of `make …` in code; prose may make what it likes.
fn make_targets(text: &str) -> BTreeSet<String> {
    let target =
        |rest: &str| -> String { rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect() };
    code(text)
        .into_iter()
        .filter_map(|command| command.strip_prefix("make "))
        .map(target)
        .filter(|target| !target.is_empty())
        .collect()
}

/// Words in code that begin as a path from the root of the repository does; `<kind>` and the like stand for many.
fn paths(text: &str) -> BTreeSet<&str> {
    const TOPS: [&str; 8] = ["policy/", "crds/", "agent/", "tests/", "docs/", "systemd/", "deploy/", ".ci/"];
    code(text)
        .into_iter()
        .flat_map(|code| code.split([' ', ',', ';', ':']))
        .filter(|word| TOPS.iter().any(|top| word.starts_with(top)) && !word.contains(['<', '*', '…']))
        .collect()
}

/// A heading as links spell it: lower case, spaces as dashes, without punctuation.
fn anchor(heading: &str) -> String {
    let spelled = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = spelled.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut broken = Vec::new();
    for (name, path) in documents() {
        let text = read(&path);
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                _ => path.parent().unwrap_or(root()).join(file),
            };
            let leads = match (target.exists(), heading) {
                (false, _) => false,
                (true, "") => true,
                (true, heading) => {
                    read(&target).lines().any(|line| line.starts_with('#') && anchor(line) == heading)
                }
            };
            if !leads {
                broken.push(format!("{name}: {link}"));
            }
        }
    }
    report("these links lead nowhere", &broken);
}

#[test]
fn make_targets_in_documents_exist() {
    let makefile = read(&root().join("Makefile"));
    let targets: BTreeSet<&str> = makefile
        .lines()
        .filter(|line| line.contains("## "))
        .filter_map(|line| line.split_once(':'))
        .map(|(target, _)| target)
        .collect();
    let mut unknown = Vec::new();
    for (name, path) in documents() {
        let named = make_targets(&read(&path)).into_iter();
        let strange = named.filter(|target| !targets.contains(target.as_str()));
        unknown.extend(strange.map(|target| format!("{name}: make {target}")));
    }
    report("these targets are not in the Makefile", &unknown);
}

#[test]
fn paths_in_documents_exist() {
    let mut missing = Vec::new();
    for (name, path) in documents() {
        let text = read(&path);
        let gone = paths(&text).into_iter().filter(|path| !root().join(path).exists());
        missing.extend(gone.map(|path| format!("{name}: {path}")));
    }
    report("these paths lead nowhere", &missing);
}

#[test]
fn every_make_target_says_what_it_does() {
    let makefile = read(&root().join("Makefile"));
    let silent: Vec<String> = makefile
        .lines()
        .filter_map(|line| line.strip_prefix(".PHONY: "))
        .filter(|target| {
            !makefile.lines().any(|line| line.starts_with(&format!("{target}:")) && line.contains("## "))
        })
        .map(str::to_owned)
        .collect();
    report("these targets say nothing of themselves", &silent);
}

/// How functions end that suites call, once per API: of agents, of the conformance of APIs, of tools.
const ON: [&str; 3] = ["(on: On) {", "(s: Server) {", "(field: &Field) {"];

/// The numbers that tests show: `r24` in the name of a test, or `R24` in the comment right above it. A test of a suite that runs on
/// several APIs is a function of the one that it is on. A number anywhere else, in a table of cases say, shows nothing: no test
/// need stand behind it.
fn requirements(text: &str) -> BTreeSet<u32> {
    let numbers = |words: &str, letter: char| -> Vec<u32> {
        words
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter_map(|word| word.strip_prefix(letter)?.parse().ok())
            .collect()
    };
    let mut found = BTreeSet::new();
    let (mut above, mut is_test) = (Vec::new(), false);
    for line in text.lines().map(str::trim) {
        match line.strip_prefix("//") {
            Some(comment) if !comment.starts_with('!') => above.extend(numbers(comment, 'R')),
            None if line == "#[test]" || line.starts_with("#[tokio::test") => is_test = true,
            None if line.starts_with("#[") => {}
            _ => {
                is_test |= line.starts_with("pub(crate) ") && ON.iter().any(|on| line.ends_with(on));
                if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test) {
                    found.extend(above.drain(..));
                    found.extend(numbers(rest.split('(').next().unwrap_or_default(), 'r'));
                }
                (above, is_test) = (Vec::new(), false);
            }
        }
    }
    found
}

#[test]
fn every_requirement_is_named_by_a_test() {
    let mut shown = BTreeSet::new();
    let own = |name: &str| name.ends_with("house.rs");
    for (_, path) in files().into_iter().filter(|(name, _)| name.ends_with(".rs") && !own(name)) {
        shown.extend(requirements(&read(&path)));
    }
    let missing: Vec<String> =
        SHOWN.filter(|number| !shown.contains(number)).map(|number| format!("R{number}")).collect();
    report("no test names these requirements", &missing);
}

#[test]
fn no_file_names_the_machine_it_was_written_on() {
    // Put together here, so that this file doesn't name them either.
    let homes = ["work", "root", "home", "Users"].map(|folder| format!("/{folder}/"));
    let mut found = Vec::new();
    for (name, path) in files() {
        // What isn't text has no paths to read.
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            if homes.iter().any(|home| names_path(line, home)) {
                found.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    report("these lines name a path of some machine", &found);
}

/// Is this folder named as the beginning of an absolute path?
fn names_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '~' | '}')))
    })
}

#[test]
fn every_crate_takes_the_workspace_lints() {
    let manifest = read(&root().join("Cargo.toml"));
    let members =
        manifest.lines().find_map(|line| line.strip_prefix("members = [")).expect("members of the workspace");
    let lax: Vec<String> = members
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|member| {
            let manifest = read(&root().join(member).join("Cargo.toml"));
            !manifest.contains("[lints]\nworkspace = true")
        })
        .map(str::to_owned)
        .collect();
    report("these crates don't take the workspace's lints", &lax);
}

/// The instruments themselves, on text that they must read right.
mod instruments {
    use super::*;

    #[test]
    fn links_and_anchors() {
        assert_eq!(links("a [b](c.md) and [d](e#f)\n```\n[x](y)\n```\n"), ["c.md", "e#f"]);
        assert_eq!(anchor("## What works, today?"), "what-works-today");
    }

    #[test]
    fn targets() {
        let read = make_targets(
            "we make do: `make test` and\n```\n$ make lint   # all\nmake   # lists\nmake bench BENCH=x\n```\n",
        );
        assert_eq!(read, ["bench", "lint", "test"].map(str::to_owned).into());
    }

    #[test]
    fn words_that_are_paths() {
        let read =
            paths("see policy/gone, `crds/yaml` and `crds/src/<kind>.rs`\n```\nberth -f docs/x.yaml\n```\n");
        assert_eq!(read, ["crds/yaml", "docs/x.yaml"].into());
    }

    #[test]
    fn numbers() {
        let read = requirements(
            "//! R20\n/// R3, R10: …\n#[test]\n#[ignore]\nfn r7_slash_16() {\n// R21\nlet r1 = R2D2 + OR5 + rack1 + R;\n}\n\
             /// R22\nfn r23_helper() {}\n\n// R24\n\n#[test]\nfn another_r8() {}\n\
             // R25\npub(crate) async fn r26(on: On) {\n// R27\nasync fn r28(s: Server) {\n#[tokio::test(flavor = \"x\")]\nasync fn r29() {\n",
        );
        assert_eq!(read, BTreeSet::from([3, 7, 8, 10, 25, 26, 29]));
    }

    #[test]
    fn folders_of_a_machine() {
        let home = format!("/{}/", "root");
        assert!(names_path(&format!("cd {home}x"), &home));
        assert!(!names_path(&format!("policy{home}x"), &home));
    }
}
