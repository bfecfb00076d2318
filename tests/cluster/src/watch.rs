//! Something that looks on while a test does something else.

use std::io::Read;
use std::process::{Child, Command, Stdio};

/// A program that prints what it sees; ended when it is asked, or dropped.
pub struct Watch(Child);

impl Watch {
    /// `runner` is what runs the line: `setpriv`, so that it can't outlive the test.
    pub(crate) fn start(mut runner: Command, line: &[&str]) -> Watch {
        runner.args(["--pdeathsig", "KILL", "--"]).args(line);
        runner.stdin(Stdio::null()).stdout(Stdio::piped());
        Watch(runner.spawn().expect("it can be run"))
    }

    /// Ends it. What it has seen, a line each.
    pub fn seen(mut self) -> Vec<String> {
        // It writes what it knows when it is interrupted: the sum, of a pinger.
        crate::run(Command::new("kill").args(["-s", "INT", &self.0.id().to_string()]));
        let mut text = String::new();
        self.0.stdout.take().expect("its output").read_to_string(&mut text).expect("text");
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // One that has ended is only waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
