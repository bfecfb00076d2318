//! The process that starts and stops the programs, so that they end with the test process and in the right order.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::{StartError, programs};

pub(super) struct Supervisor {
    folder: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    child: Child,
    /// Closed, also by the kernel when this process dies, it stops all.
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    pids: BTreeMap<&'static str, u32>,
}

impl Supervisor {
    pub(super) fn start(folder: &Path) -> Result<Supervisor, StartError> {
        let spawn = || -> io::Result<Inner> {
            let mut child = Command::new(programs::scripts().join("supervise.sh"))
                .arg(folder)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                // Ctrl-C is for the test: its end is what this one waits for.
                .process_group(0)
                .spawn()?;
            let commands = child.stdin.take();
            let answers = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
            Ok(Inner { child, commands, answers: BufReader::new(answers), pids: BTreeMap::new() })
        };
        let inner = spawn().map_err(|source| StartError::Io { what: "the supervisor", source })?;
        Ok(Supervisor { folder: folder.to_owned(), inner: Mutex::new(inner) })
    }

    pub(super) fn start_program(&self, program: &'static str) -> Result<(), StartError> {
        let answer = self.tell("start", program)?;
        let pid = answer.strip_prefix("ok ").and_then(|pid| pid.trim().parse().ok());
        let pid = pid.ok_or(StartError::Programs { said: format!("{program} was not started: {answer}") })?;
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).pids.insert(program, pid);
        Ok(())
    }

    /// Gives a command, and waits for the answer.
    pub(super) fn tell(&self, verb: &str, program: &'static str) -> Result<String, StartError> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let mut exchange = || -> io::Result<String> {
            let commands = inner.commands.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            writeln!(commands, "{verb} {program}")?;
            let mut answer = String::new();
            inner.answers.read_line(&mut answer)?;
            match answer.starts_with("ok") {
                true => Ok(answer),
                false => Err(io::Error::other(format!("{verb} {program}: {answer}"))),
            }
        };
        exchange().map_err(|source| StartError::Io { what: "the supervisor", source })
    }

    /// Is this program still there? If not: its last words.
    pub(super) fn check(&self, program: &'static str) -> Result<(), StartError> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        // The supervisor waits for its children, so a dead one is gone from there.
        let is_there = inner.pids.get(program).is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists());
        if is_there {
            return Ok(());
        }
        let log = self.folder.join(format!("{program}.log"));
        let text = fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(20)..].join("\n");
        Err(StartError::Ended { program, log, tail })
    }

    /// All stop, in the right order, and the folder goes. Again: nothing.
    pub(super) fn end(&self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        drop(inner.commands.take());
        // A failure to wait leaves nothing to do: the supervisor goes on by itself.
        let _ = inner.child.wait();
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.end();
    }
}
