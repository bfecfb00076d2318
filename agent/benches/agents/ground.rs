//! The API with a counter at its door, a host, and the processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent::embedded::Api;
use agent::embedded::listen::Listener;
use anyhow::{Context, Result, ensure};
use hyper::Request;
use hyper::body::Incoming;
use kube::Client;
use tokio::sync::watch;
use tower::ServiceExt;

/// The program that is measured: `BERTH=target/release/berth` for what `make build` built, which is what people run. Without
/// it, the one that was built with this: without link-time optimisation and with its libraries beside it, so larger.
pub(crate) fn berth() -> PathBuf {
    std::env::var_os("BERTH").map_or_else(|| env!("CARGO_BIN_EXE_berth").into(), PathBuf::from)
}

pub(crate) const NODE: &str = "node";

/// What was asked, by what it was.
#[derive(Clone, Default)]
pub(crate) struct Counted(Arc<Mutex<BTreeMap<String, usize>>>);

impl Counted {
    fn add(&self, what: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += 1;
    }

    /// Since this was last asked.
    pub(crate) fn take(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(crate) struct Ground {
    pub(crate) netns: String,
    /// Requests of the agent.
    pub(crate) counted: Counted,
    folder: PathBuf,
    api: Api,
    _stop: watch::Sender<bool>,
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.netns]).status();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Ground {
    pub(crate) async fn new() -> Result<Self> {
        let netns = format!("berth-bench-{}", std::process::id());
        let folder = std::env::temp_dir().join(&netns);
        std::fs::create_dir_all(&folder)?;
        ip(&["netns", "add", &netns])?;
        let (stop, stopping) = watch::channel(false);
        let api = Api::open(&folder.join("api"))?;
        let ground = Self { netns, counted: Counted::default(), folder, api, _stop: stop };
        ground.ip("link set lo up")?;
        ground.ip("link add eth0 type veth peer name far0")?;
        ground.ip("link set far0 up")?;
        ground.ip("link set eth0 up")?;
        ground.door("agent", ground.counted.clone(), stopping.clone()).await?;
        ground.door("controller", Counted::default(), stopping).await?;
        Ok(ground)
    }

    /// A place to listen at, whose requests are counted, and a kubeconfig of it.
    async fn door(&self, name: &str, counted: Counted, stopping: watch::Receiver<bool>) -> Result<()> {
        let listener = Listener::bind(&"127.0.0.1:0".parse()?, None, false).await?;
        let url = listener.place().to_string();
        let api = self.api.clone();
        let service = tower::service_fn(move |request: Request<Incoming>| {
            let uri = request.uri();
            counted.add(class(request.method().as_str(), uri.path(), uri.query().unwrap_or_default()));
            api.clone().oneshot(request)
        });
        tokio::spawn(listener.serve(service, stopping, Duration::ZERO));
        let config = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             clusters: [{{name: a, cluster: {{server: \"{url}\"}}}}]\nusers: [{{name: a, user: {{}}}}]\n"
        );
        Ok(std::fs::write(self.config(name), config)?)
    }

    fn config(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.kubeconfig"))
    }

    pub(crate) fn client(&self) -> Client {
        self.api.client()
    }

    pub(crate) fn controller(&self) -> Result<Process> {
        let mut command = Command::new(berth());
        command.arg("controller").arg("--kubeconfig").arg(self.config("controller"));
        Process::start(command, &self.folder.join("controller.log"))
    }

    pub(crate) fn agent(&self) -> Result<Process> {
        let mut command = Command::new(berth());
        command.args(["agent", "--register-node", "--node", NODE, "--netns", &self.netns]);
        command.arg("--state-dir").arg(self.folder.join("state"));
        command.arg("--checkpoint-dir").arg(self.folder.join("checkpoints"));
        command.arg("--kubeconfig").arg(self.config("agent"));
        Process::start(command, &self.folder.join("agent.log"))
    }

    /// As somebody at the host would.
    pub(crate) fn take_address_away(&self) -> Result<()> {
        self.ip("-4 addr flush dev eth0")
    }

    fn ip(&self, line: &str) -> Result<()> {
        ip(&["-n", &self.netns].into_iter().chain(line.split_whitespace()).collect::<Vec<_>>())
    }
}

fn ip(args: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(args).output()?;
    ensure!(output.status.success(), "ip {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// A process; killed when dropped.
pub(crate) struct Process(Child);

impl Process {
    fn start(mut command: Command, log: &Path) -> Result<Self> {
        let log = std::fs::File::create(log)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(Self(command.spawn().context("start berth")?))
    }

    /// A line of `smaps_rollup`, in MiB.
    pub(crate) fn memory(&self, field: &str) -> Result<String> {
        let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.0.id()))?;
        let line =
            text.lines().find_map(|line| line.strip_prefix(&format!("{field}:"))).context("no such line")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(format!("{:.1} MiB", kib / 1024.0))
    }

    /// Used so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let mut all = Duration::ZERO;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.0.id()))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            all += Duration::from_nanos(text.split_whitespace().next().context("a number")?.parse()?);
        }
        Ok(all)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What was asked, as a figure: the verb, what of, and whether it is a watch.
fn class(method: &str, path: &str, query: &str) -> String {
    let kind = path.split('/').find(|part| part.ends_with('s') && !["apis", "namespaces"].contains(part));
    let verb = if query.contains("watch=") { "watch" } else { method };
    format!("{verb} {}", kind.unwrap_or(path))
}
