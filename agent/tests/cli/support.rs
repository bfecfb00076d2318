//! Running `berth` as a person does: a line of arguments, pipes between runs, files relative to a folder.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

pub(crate) fn fixtures() -> PathBuf {
    tests().join("fixtures")
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    command.args(arguments).current_dir(folder);
    command
}

/// One run, with this on standard input.
pub(crate) fn berth(folder: &Path, arguments: &[&str], stdin: &[u8]) -> Ran {
    let mut child = command(folder, arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start berth");
    let mut pipe = child.stdin.take().expect("its standard input");
    let stdin = stdin.to_vec();
    // From a thread: a run that never reads must not block us, and one that doesn't read to the end may close.
    let writer = std::thread::spawn(move || drop(pipe.write_all(&stdin)));
    let output = child.wait_with_output().expect("wait for berth");
    writer.join().expect("write standard input");
    Ran {
        code: output.status.code().expect("an exit code, not a signal"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// A line as in a terminal: `berth … | berth … < file`. Errors of every part are kept, the last code counts.
pub(crate) fn line(folder: &Path, text: &str) -> Ran {
    let (text, mut input) = match text.split_once(" < ") {
        None => (text, Vec::new()),
        Some((text, file)) => (text, std::fs::read(folder.join(file.trim())).expect(file)),
    };
    let mut stderr = String::new();
    let mut last = None;
    for part in text.split(" | ") {
        let words: Vec<&str> = part.split_whitespace().collect();
        let Some((&"berth", arguments)) = words.split_first() else {
            panic!("not a line of berth: {text}");
        };
        let ran = berth(folder, arguments, &input);
        stderr.push_str(&ran.stderr);
        input = ran.stdout.clone().into_bytes();
        last = Some(ran);
    }
    let last = last.expect("at least one run");
    Ran { stderr, ..last }
}
