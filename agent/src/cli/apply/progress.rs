//! What is said while an apply is under way: a line on the terminal that says where things stand, and on stderr what was
//! undone, whatever becomes of the rest.

use std::io::{self, IsTerminal, Write as _};
use std::path::PathBuf;

use policy::plan::{Loss, Plan, Step};
use serde::Serialize;

use crate::cli::output;
use crate::transaction::{Event, Reverted};

/// What was undone of a change that was cut off earlier, for machines.
#[derive(Debug, Serialize)]
pub(super) struct Recovered {
    steps: Vec<Step>,
    /// What nobody can bring back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lost: Vec<Loss>,
    /// Where what was before is kept, if something is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<PathBuf>,
}

pub(super) struct Progress {
    terminal: bool,
    steps: Vec<String>,
    pub(super) recovered: Option<Recovered>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { terminal: io::stderr().is_terminal(), steps: Vec::new(), recovered: None }
    }

    pub(super) fn hear(&mut self, event: &Event<'_>) {
        match event {
            Event::Discarded { why } => output::warn("an old checkpoint is discarded", why),
            Event::Recovering => {
                output::warn("this host", "a change was cut off earlier; it is undone first");
            }
            Event::Recovered(reverted) => self.recovered(reverted),
            Event::Unreadable(count) => {
                let what = format!(
                    "{count} of the kernel's messages can't be read; what they say couldn't be put back"
                );
                output::warn("this host", what);
            }
            Event::Planned(plan) => self.steps = plan.steps.iter().map(ToString::to_string).collect(),
            Event::Step(done) => {
                let next = self.steps.get(*done).map_or("", String::as_str);
                self.line(&format!("[{done}/{}] {next}", self.steps.len()));
            }
            Event::Verifying => self.line("verifying"),
            // Nothing is pooled that is applied by hand.
            Event::Asking | Event::Asked => {}
            Event::Reverting => self.line("failed; putting everything back"),
            Event::Reverted(reverted) => {
                self.line("");
                if !reverted.done.is_empty() {
                    output::note(&format!("put back:\n{}\n", table(&reverted.done)));
                }
            }
        }
    }

    fn recovered(&mut self, reverted: &Reverted) {
        match reverted.done.as_slice() {
            [] => output::note("nothing of it was left to undo"),
            steps => output::note(&format!("undone:\n{}\n", table(steps))),
        }
        for lost in &reverted.lost {
            output::warn("this host", format!("can't be brought back: {lost}"));
        }
        for route in &reverted.unheard {
            output::warn("this host", format!("comes back when its router speaks again: {route}"));
        }
        if let Some(aside) = &reverted.aside {
            output::warn("this host", format!("what was before is kept in {}", aside.display()));
        }
        self.recovered = Some(Recovered {
            steps: reverted.done.clone(),
            lost: reverted.lost.clone(),
            checkpoint: reverted.aside.clone(),
        });
    }

    fn line(&self, text: &str) {
        if self.terminal {
            let text: String = text.chars().take(100).collect();
            let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
        }
    }

    pub(super) fn end(&self) {
        self.line("");
    }
}

fn table(steps: &[Step]) -> String {
    Plan { steps: steps.to_vec(), losses: Vec::new() }.to_string()
}
