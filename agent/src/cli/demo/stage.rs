//! All that runs in the demo, on its [`ground`](super::ground): an API, a controller, and hosts with an agent each.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::ground::{Net, Process, Switches};

/// How long any part may take.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);

/// All that runs. Agents go before their hosts, hosts before the switches.
pub(super) struct Stage<'a> {
    folder: &'a Path,
    pub(super) client: Client,
    pub(super) agents: BTreeMap<String, Process>,
    pub(super) hosts: BTreeMap<String, Net>,
    _controller: Process,
    _api: Process,
    switches: Switches,
    /// Hosts that were told of.
    pub(super) told: BTreeSet<String>,
}

impl<'a> Stage<'a> {
    pub(super) async fn set(folder: &'a Path) -> anyhow::Result<Self> {
        let switches = Switches::new()?;
        let config = folder.join("kubeconfig");
        let path = config.to_string_lossy().into_owned();
        // The usual place of the page is for whoever serves for good.
        let api = Process::start(
            folder,
            "api",
            &[
                "serve",
                "--in-memory",
                "--listen",
                "127.0.0.1:0",
                "--write-kubeconfig",
                &path,
                "--page-address",
                "none",
            ],
        )?;
        until(
            || async { Ok(config.exists()) },
            || format!("the API doesn't start; see {}", folder.display()),
        )
        .await?;
        let controller = Process::start(
            folder,
            "controller",
            &["controller", "--kubeconfig", &path, "--health-address", "none", "--page-address", "none"],
        )?;
        let config = Kubeconfig::read_from(&config).context("the API's kubeconfig")?;
        let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        Ok(Self {
            folder,
            client: Client::try_from(config)?,
            agents: BTreeMap::new(),
            hosts: BTreeMap::new(),
            _controller: controller,
            _api: api,
            switches,
            told: BTreeSet::new(),
        })
    }

    pub(super) fn join(&mut self, name: &str) -> anyhow::Result<()> {
        self.hosts.insert(name.to_owned(), self.switches.host(name)?);
        self.start_agent(name)
    }

    pub(super) fn start_agent(&mut self, name: &str) -> anyhow::Result<()> {
        let netns = &self.hosts.get(name).context("the host")?.name;
        let (config, state) = (self.folder.join("kubeconfig"), self.folder.join(name));
        let (config, state) = (config.to_string_lossy(), state.to_string_lossy());
        let args = [
            "agent",
            "--node",
            name,
            "--netns",
            netns,
            "--kubeconfig",
            &config,
            "--state-dir",
            &state,
            "--checkpoint-dir",
            &state,
            "--register-node",
        ];
        self.agents.insert(name.to_owned(), Process::start(self.folder, name, &args)?);
        Ok(())
    }

    pub(super) async fn patience(&self, begun: Instant, otherwise: &str) -> anyhow::Result<()> {
        if begun.elapsed() > PATIENCE {
            let mut logs = String::new();
            for name in ["api", "controller", "node01"] {
                let log =
                    std::fs::read_to_string(self.folder.join(format!("{name}.log"))).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(5).collect();
                for line in tail.into_iter().rev() {
                    logs.push_str(&format!("\n{name}: {line}"));
                }
            }
            bail!("{otherwise} after {} s{logs}", PATIENCE.as_secs());
        }
        tokio::time::sleep(LOOK).await;
        Ok(())
    }
}

async fn until<F: Future<Output = anyhow::Result<bool>>>(
    holds: impl Fn() -> F,
    otherwise: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    let begun = Instant::now();
    while !holds().await? {
        if begun.elapsed() > PATIENCE {
            bail!("{}", otherwise());
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// To whoever listens: without a listener ('berth demo | head') the story goes on to its end, which takes everything away.
pub(super) fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
