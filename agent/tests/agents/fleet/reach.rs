//! How the processes reach the API: `berth serve` with its one kubeconfig, or a real API server, where each has a kubeconfig
//! and a token of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::{Fleet, LOOK, PATIENCE, Process};
use crate::check::Settled;
use crate::cluster::{AGENT, CONTROLLER, Way};
use crate::folder::Folder;
use crate::on::On;

impl Fleet {
    /// An API; no controller and no host yet.
    pub(crate) async fn new(on: On) -> Self {
        let folder = Folder::new();
        match on {
            On::Embedded => {
                let api = serve(&folder, "127.0.0.1:0");
                Self::embedded(folder, api).await
            }
            On::Real(real) => Self::with(on, folder, real.client(), real.way()),
        }
    }

    async fn embedded(folder: Folder, mut api: Process) -> Self {
        let config = folder.path().join("kubeconfig");
        let begun = Instant::now();
        while !config.exists() {
            assert!(api.ended().is_none() && begun.elapsed() < PATIENCE, "berth serve doesn't start");
            tokio::time::sleep(LOOK).await;
        }
        let read = Kubeconfig::read_from(&config).expect("a kubeconfig");
        let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
        let config = config.expect("a configuration");
        let server = config.cluster_url.authority().expect("an address").to_string();
        let client = Client::try_from(config).expect("a client");
        let mut fleet = Self::with(On::Embedded, folder, client, Way { server, ..Way::default() });
        fleet.api = Some(api);
        fleet
    }

    fn with(on: On, folder: Folder, client: Client, way: Way) -> Self {
        Self {
            agents: BTreeMap::new(),
            controllers: BTreeMap::new(),
            api: None,
            listeners: BTreeMap::new(),
            machines: BTreeMap::new(),
            client,
            on,
            way,
            account: AGENT,
            lasts: None,
            health: false,
            is_away: false,
            died: BTreeSet::new(),
            renamed: BTreeMap::new(),
            settled: Settled::default(),
            folder,
        }
    }

    /// The API is killed; what it acknowledged is on disk.
    pub(crate) fn kill_api(&mut self) {
        self.is_away = true;
        match self.on {
            On::Embedded => self.api.take().expect("it runs").kill(),
            On::Real(real) => real.plane.kill_api_server().expect("killed"),
        }
    }

    /// At the address where it was.
    pub(crate) async fn start_api(&mut self) {
        match self.on {
            On::Embedded => self.api = Some(serve(&self.folder, &self.way.server)),
            On::Real(real) => real.plane.start_api_server().await.expect("it starts"),
        }
        self.is_away = false;
    }

    /// What a host has before its agent starts: with a kubelet its Node, a pod, and a token that says so. Without one, nothing.
    pub(crate) async fn enlist(&self, host: &str) {
        if let On::Real(real) = self.on {
            real.node(host).await;
            let token = match self.lasts {
                None => real.agent_token(self.account, host).await,
                Some(lasts) => real.short_token(self.account, Some(host), lasts).await,
            };
            self.give_token(host, &token);
        }
    }

    /// From now on this is the token of the host, or of the controller; as kubelets do, in one step.
    pub(crate) fn give_token(&self, name: &str, token: &str) {
        let (file, new) = (self.path(&format!("token-{name}")), self.path(&format!("token-{name}.new")));
        std::fs::write(&new, token).and_then(|()| std::fs::rename(&new, &file)).expect("a token");
        let kubeconfig = self.way.kubeconfig(file.as_ref()).to_string();
        std::fs::write(self.path(&format!("kubeconfig-{name}")), kubeconfig).expect("a kubeconfig");
    }

    /// Arguments of an agent.
    pub(super) fn connect_agent(&self, host: &str) -> Vec<String> {
        match self.on {
            On::Embedded => vec!["--register-node".to_owned(), self.kubeconfig("kubeconfig")],
            On::Real(_) => self.connect(host),
        }
    }

    /// Arguments of a controller.
    pub(super) async fn connect_controller(&self, name: &str) -> Vec<String> {
        match self.on {
            On::Embedded => vec![self.kubeconfig("kubeconfig")],
            On::Real(real) => {
                let token = match self.lasts {
                    None => real.controller_token().await,
                    Some(lasts) => real.short_token(CONTROLLER, None, lasts).await,
                };
                self.give_token(name, &token);
                self.connect(name)
            }
        }
    }

    fn connect(&self, name: &str) -> Vec<String> {
        let namespace = format!("--namespace={}", self.on.namespace());
        vec![namespace, self.kubeconfig(&format!("kubeconfig-{name}"))]
    }

    fn kubeconfig(&self, file: &str) -> String {
        format!("--kubeconfig={}", self.path(file))
    }
}

fn serve(folder: &Folder, listen: &str) -> Process {
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (state, config) = (path("api"), path("kubeconfig"));
    let args = ["serve", "--state-dir", &state, "--listen", listen, "--write-kubeconfig", &config];
    let args: Vec<String> = args.map(str::to_owned).to_vec();
    Process::start(folder.path(), "serve", &args, None)
}
