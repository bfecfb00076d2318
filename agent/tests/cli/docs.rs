//! The guide, the README and the table of what stays are true: every command on files in them gives the output that they show,
//! and every test that they name is there.

use std::fs;
use std::path::PathBuf;

use crate::support::line;

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

/// `(command, what the terminal shows)` of each `$ berth …` in the guide's console blocks.
fn commands(guide: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for text in guide.lines() {
        if let Some(fence) = text.strip_prefix("```") {
            inside = !inside && fence == "console";
        } else if !inside {
            continue;
        } else if let Some(command) = text.strip_prefix("$ ") {
            found.push((command.to_owned(), String::new()));
        } else if let Some((_, output)) = found.last_mut() {
            output.push_str(text);
            output.push('\n');
        }
    }
    found
}

/// Warnings come before the answer, as on a terminal. `UPDATE_GOLDENS=1` writes the guide's output anew.
#[test]
fn commands_give_what_the_guide_shows() {
    let path = docs().join("guide/files.md");
    let guide = fs::read_to_string(&path).unwrap();
    let examples = docs().join("examples");
    let commands = commands(&guide);
    assert!(commands.len() >= 8, "{commands:?}");
    let mut differ = Vec::new();
    let mut updated = guide;
    for (command, shown) in commands {
        let ran = line(&examples, &command);
        let actual = ran.stderr + &ran.stdout;
        if actual != shown {
            updated =
                updated.replacen(&format!("$ {command}\n{shown}"), &format!("$ {command}\n{actual}"), 1);
            differ.push(format!("$ {command}\n{actual}"));
        }
    }
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, updated).unwrap();
    } else {
        assert!(differ.is_empty(), "the guide shows something else than:\n{}", differ.join("\n"));
    }
}

/// The text of the code blocks of this language, in order.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let (fenced, opening) = (page.split("```").skip(1).step_by(2), format!("{language}\n"));
    fenced.filter_map(|block| block.strip_prefix(&opening)).collect()
}

/// The first thing on files that a reader tries. What it shows has remarks, and stops at one.
#[test]
fn the_readmes_first_command_gives_what_it_shows() {
    const PROGRAM: &str = "cargo run -q -p agent -- ";
    let root = docs().join("..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let commands = blocks(&readme, "");
    let command = commands.iter().find_map(|block| block.strip_prefix(PROGRAM)).expect("it is there");
    let command = command.replace("\\\n", " ");
    let ran = line(&root, &format!("berth {}", command.trim()));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{command}");
    let shown =
        blocks(&readme, "yaml")[0].lines().map(|text| text.split(" #").next().unwrap_or(text).trim_end());
    let shown: Vec<&str> = shown.collect();
    let actual: Vec<&str> = ran.stdout.lines().take(shown.len()).collect();
    assert_eq!(actual, shown);
}

/// The cells of a table's row; a bar after a backslash is text.
fn cells(row: &str) -> Vec<String> {
    let inner = row.trim().trim_start_matches('|').trim_end_matches('|').replace("\\|", "\0");
    inner.split('|').map(|cell| cell.trim().replace('\0', "|")).collect()
}

/// Every `path/to/file.rs::function` between backticks; anything else there that has a `.rs` in it is a slip of the pen.
fn tests_named(text: &str) -> Vec<(&str, &str)> {
    let code = text.split('`').skip(1).step_by(2).filter(|code| code.contains(".rs"));
    code.map(|code| code.split_once("::").unwrap_or_else(|| panic!("names no test: {code}"))).collect()
}

/// Every item has its row and one of three words; what is kept is shown by a test, and every test that is named is there.
#[test]
fn what_stays_for_users_of_kubernetes_nmstate_is_shown_by_tests() {
    const ITEMS: usize = 36;
    let page = fs::read_to_string(docs().join("compatibility.md")).unwrap();
    let mut wrong = Vec::new();
    let mut numbers = Vec::new();
    for row in page.lines().filter(|line| line.starts_with('|')).map(cells) {
        // Heads and rules of tables have no number.
        let Ok(number) = row[0].parse::<usize>() else { continue };
        numbers.push(number);
        let [_, what, word, why] = row.as_slice() else {
            wrong.push(format!("{number}: {} cells", row.len()));
            continue;
        };
        let is_shown = !tests_named(why).is_empty();
        let said = match word.as_str() {
            "kept" => is_shown,
            "different" | "not yet" => !why.is_empty(),
            _ => false,
        };
        if what.is_empty() || !said {
            wrong.push(format!("{number}: {word:?}, for {why:?}"));
        }
    }
    if !numbers.iter().copied().eq(1..=ITEMS) {
        wrong.push(format!("not 1 to {ITEMS}: {numbers:?}"));
    }
    for (file, function) in tests_named(&page) {
        let text = fs::read_to_string(docs().join("..").join(file)).unwrap_or_default();
        // Of suites that run on several APIs a list beside or above them says which are tests.
        let path = docs().join("..").join(file);
        let list =
            path.ancestors().skip(1).find_map(|folder| fs::read_to_string(folder.join("main.rs")).ok());
        let list = list.unwrap_or_default();
        let is_listed = list.lines().any(|line| {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            line.starts_with(' ') && words.into_iter().any(|word| word == function)
        });
        let is_marked = || {
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let at = lines.iter().position(|line| line.starts_with(&format!("fn {function}(")));
            let above = at.map_or(&[][..], |at| &lines[..at]);
            above.iter().rev().take_while(|line| line.starts_with('#')).any(|line| line.contains("test]"))
        };
        if !text.contains(&format!("fn {function}(")) || !(is_listed || is_marked()) {
            wrong.push(format!("no such test: {file}::{function}"));
        }
    }
    assert!(wrong.is_empty(), "docs/compatibility.md:\n{}", wrong.join("\n"));
}
