//! Programs that run for a test: started and stopped by a process of their own (`supervise.sh`), so that they end with the
//! test process, however that ends, and in the right order.
//!
//! Tests of the API and of clusters use it. It must never end a process that it did not start.

pub mod folder;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Why a program is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    #[error("{what}")]
    Io { what: &'static str, source: io::Error },
    #[error("{program} was not started: {answer}")]
    NotStarted { program: String, answer: String },
    #[error("{program} ended; its last words, from {}:\n{tail}", log.display())]
    Ended { program: String, log: PathBuf, tail: String },
}

/// Ends what it started when it is dropped, or this process dies; then the folder goes.
pub struct Supervisor {
    folder: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    child: Child,
    /// Closed, also by the kernel when this process dies, it stops all.
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    pids: BTreeMap<String, u32>,
}

/// Writes a program's command down, for [`Supervisor::start_program`].
pub fn write_command(folder: &Path, program: &str, command: &[String]) -> io::Result<()> {
    fs::write(folder.join(format!("{program}.command")), command.join("\n"))
}

impl Supervisor {
    /// For programs whose commands and logs are in this folder.
    pub fn start(folder: &Path) -> Result<Supervisor, SuperviseError> {
        let spawn = || -> io::Result<Inner> {
            let mut child = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("supervise.sh"))
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
        let inner = spawn()
            .map_err(|source| SuperviseError::Io { what: "the supervisor of a test's programs", source })?;
        Ok(Supervisor { folder: folder.to_owned(), inner: Mutex::new(inner) })
    }

    /// The command is in the folder, in a file with this name and `.command`. Its process.
    pub fn start_program(&self, program: &str) -> Result<u32, SuperviseError> {
        let answer = self.tell("start", program)?;
        let pid = answer.strip_prefix("ok ").and_then(|pid| pid.trim().parse().ok());
        let pid = pid.ok_or_else(|| SuperviseError::NotStarted { program: program.to_owned(), answer })?;
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).pids.insert(program.to_owned(), pid);
        Ok(pid)
    }

    /// Gives a command, and waits for the answer.
    pub fn tell(&self, verb: &str, program: &str) -> Result<String, SuperviseError> {
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
        exchange()
            .map_err(|source| SuperviseError::Io { what: "the supervisor of a test's programs", source })
    }

    /// Is this program still there? If not: its last words.
    pub fn check(&self, program: &str) -> Result<(), SuperviseError> {
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
        Err(SuperviseError::Ended { program: program.to_owned(), log, tail })
    }

    /// All stop, in the right order, and the folder goes. Again: nothing.
    pub fn end(&self) {
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
