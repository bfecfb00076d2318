//! A `berth serve` of its own per test, with certificates of its own, and kubectl as a person runs it.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::folder::Folder;

/// Longer than anything takes here: a test that waits for it has failed.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// The real one: `KUBECTL`, or what the control plane's script finds. Without it these tests fail; they have nothing else
/// to say.
pub(crate) static KUBECTL: LazyLock<PathBuf> = LazyLock::new(|| {
    if let Some(path) = std::env::var_os("KUBECTL") {
        return path.into();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/control-plane/build.sh");
    let found = Command::new(&script).arg("--find").output().expect("tests/control-plane/build.sh");
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    let path = text.lines().find_map(|line| line.strip_prefix("kubectl "));
    let said = String::from_utf8_lossy(&found.stderr).into_owned();
    path.map(PathBuf::from)
        .unwrap_or_else(|| panic!("there is no kubectl: run tests/setup.sh --tests\n{said}"))
});

/// What a command left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().expect("an exit code, not a signal"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// Its answer, where it succeeded and said nothing else.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}", self.stdout);
        self.stdout
    }

    /// What it said when it was refused.
    #[track_caller]
    pub(crate) fn refused(self) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (1, ""), "{}", self.stderr);
        self.stderr
    }
}

pub(crate) fn berth(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    command.env("BERTH_PAGE_ADDRESS", "none");
    Ran::of(command.args(arguments).current_dir(folder).output().expect("start berth"))
}

/// A server with TLS, killed with the test.
pub(crate) struct Server {
    pub(crate) folder: Folder,
    child: Child,
    stderr: Option<Lines<BufReader<ChildStderr>>>,
}

impl Server {
    /// Certificates for an administrator and these hosts, and a server that trusts them.
    pub(crate) fn start(hosts: &[&str]) -> Self {
        let folder = Folder::new();
        let at = folder.path();
        berth(at, &["serve", "pki", "init", "--dir", "pki", "--server-name", "127.0.0.1"]).ok();
        let mut child = Command::new(env!("CARGO_BIN_EXE_berth"))
            // The usual place of the page may be another's.
            .env("BERTH_PAGE_ADDRESS", "none")
            .args(["serve", "--state-dir", "state", "--listen", "127.0.0.1:0"])
            .args([
                "--tls-cert",
                "pki/server.crt",
                "--tls-key",
                "pki/server.key",
                "--client-ca",
                "pki/ca.crt",
            ])
            .args(["--write-kubeconfig", "kubeconfig"])
            .current_dir(at)
            .stderr(Stdio::piped())
            .spawn()
            .expect("start berth serve");
        let mut stderr = BufReader::new(child.stderr.take().expect("its stderr")).lines();
        let mut said = Vec::new();
        loop {
            let line = stderr.next().unwrap_or_else(|| panic!("berth serve ended: {said:?}")).expect("text");
            if line == "kubeconfig: kubeconfig" {
                break;
            }
            said.push(line);
        }
        let url = said.iter().find_map(|line| line.strip_prefix("listening on "));
        let url = url.unwrap_or_else(|| panic!("it listens: {said:?}"));
        for host in hosts {
            berth(at, &["serve", "pki", "host", host, "--dir", "pki", "--server", url]).ok();
        }
        Self { folder, child, stderr: Some(stderr) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// kubectl as this user, with this on standard input.
    fn command(&self, kubeconfig: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(&*KUBECTL);
        command
            .args(arguments)
            .current_dir(self.path())
            .env("KUBECONFIG", self.path().join(kubeconfig))
            // Its cache is in the home of whoever runs it.
            .env("HOME", self.path())
            .env_remove("KUBECTL_EXTERNAL_DIFF");
        command
    }

    /// As the administrator: words apart by spaces.
    pub(crate) fn kubectl(&self, line: &str) -> Ran {
        self.kubectl_with(line, "")
    }

    pub(crate) fn kubectl_with(&self, line: &str, stdin: &str) -> Ran {
        self.run("kubeconfig", &line.split_whitespace().collect::<Vec<_>>(), stdin)
    }

    /// As a host.
    pub(crate) fn host(&self, host: &str, line: &str, stdin: &str) -> Ran {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.run(&format!("pki/hosts/{host}.kubeconfig"), &words, stdin)
    }

    pub(crate) fn run(&self, kubeconfig: &str, arguments: &[&str], stdin: &str) -> Ran {
        let mut child = self
            .command(kubeconfig, arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start kubectl");
        let mut pipe = child.stdin.take().expect("its standard input");
        pipe.write_all(stdin.as_bytes()).expect("written");
        drop(pipe);
        Ran::of(child.wait_with_output().expect("wait for kubectl"))
    }

    /// kubectl with an editor that runs this sed script on the file.
    pub(crate) fn edit(&self, line: &str, script: &str) -> Ran {
        let mut command = self.command("kubeconfig", &line.split_whitespace().collect::<Vec<_>>());
        Ran::of(command.env("KUBE_EDITOR", format!("sed -i {script}")).output().expect("start kubectl"))
    }

    /// kubectl that goes on; its lines come one by one.
    pub(crate) fn follow(&self, line: &str) -> Following {
        let mut child = self
            .command("kubeconfig", &line.split_whitespace().collect::<Vec<_>>())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start kubectl");
        let (send, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("its stdout"));
        thread::spawn(move || stdout.lines().map_while(Result::ok).all(|line| send.send(line).is_ok()));
        Following { child, lines }
    }

    fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).expect("told");
    }

    /// SIGHUP, and what it says to that.
    pub(crate) fn hang_up(&mut self) -> String {
        self.signal(nix::sys::signal::SIGHUP);
        self.stderr.as_mut().and_then(Iterator::next).expect("a line").expect("text")
    }

    /// SIGTERM, and what it says until its end.
    pub(crate) fn stop(mut self) -> (i32, Vec<String>) {
        self.signal(nix::sys::signal::SIGTERM);
        let said = self.stderr.take().expect("once").map_while(Result::ok).collect();
        (self.child.wait().expect("its end").code().expect("a code"), said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A kubectl that watches.
pub(crate) struct Following {
    child: Child,
    lines: Receiver<String>,
}

impl Following {
    /// The words of the next line.
    #[track_caller]
    pub(crate) fn next(&self) -> Vec<String> {
        words(&self.lines.recv_timeout(DEADLINE).expect("a line"))
    }

    /// Its end, which must come by itself.
    pub(crate) fn end(mut self) -> i32 {
        self.child.wait().expect("its end").code().expect("a code")
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// A table by its words, ages as `AGE`: they are the only thing that changes from run to run.
pub(crate) fn table(text: &str) -> Vec<Vec<String>> {
    let age = |word: &str| {
        let number = word.strip_suffix('s').or_else(|| word.strip_suffix('m'));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let row =
        |line: &str| words(line).into_iter().map(|w| if age(&w) { "AGE".to_owned() } else { w }).collect();
    text.lines().map(row).collect()
}
