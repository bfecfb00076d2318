//! Something that looks on while a test does something else.

use std::io::Read;
use std::process::{Child, Command, Stdio};

/// A program that prints what it sees; ended when it is asked, or dropped.
pub struct Watch {
    child: Child,
    /// The signal that it ends on.
    end: &'static str,
}

impl Watch {
    /// `runner` is what runs the line: `setpriv`, so that it can't outlive the test. `end` ends it: `INT` only where the program
    /// takes that for itself, since it is ignored in whatever a shell started in the background.
    pub(crate) fn start(mut runner: Command, line: &[&str], end: &'static str) -> Watch {
        runner.args(["--pdeathsig", "KILL", "--"]).args(line);
        runner.stdin(Stdio::null()).stdout(Stdio::piped());
        Watch { child: runner.spawn().expect("it can be run"), end }
    }

    /// Ends it. What it has seen, a line each.
    pub fn seen(mut self) -> Vec<String> {
        crate::run(Command::new("kill").args(["-s", self.end, &self.child.id().to_string()]));
        let mut text = String::new();
        self.child.stdout.take().expect("its output").read_to_string(&mut text).expect("text");
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // One that has ended is only waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
