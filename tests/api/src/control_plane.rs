//! A real control plane: etcd, kube-apiserver and kube-controller-manager on loopback, with our CRDs.
//!
//! Tests of the conformance suite share one per binary ([`ControlPlane::shared`]); a test that breaks it starts its own.
//! A start takes about five seconds and 400 MiB; the first on a machine may build the programs, for minutes
//! (`tests/control-plane/build.sh`). It is stopped when it is dropped, or when the process ends, however it does
//! (`tests/supervisor/supervise.sh`). When a test panics, the logs are kept and their place is said.
//!
//! It must never listen beyond loopback, and holds nothing that outlives the test.

mod files;
mod install;
mod programs;
mod second;

use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use kube::{Client, Config};
use serde_json::Value;

use crate::{RUNTIME, wait};
pub use programs::Programs;
use supervisor::{SuperviseError, Supervisor, folder};

/// Why there is no control plane.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the control plane's programs are not there:\n{said}")]
    Programs { said: String },
    #[error("{what} of a control plane")]
    Io { what: &'static str, source: io::Error },
    #[error(transparent)]
    Supervise(#[from] SuperviseError),
    #[error("the API server is not ready after {:?}: {last}", wait::LIMIT)]
    NotReady { last: String },
    #[error("{what} was refused by the API server")]
    Refused { what: String, source: Box<kube::Error> },
}

/// Whether etcd may answer before its disk has it, and all may take more memory than they do by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// For tests: nobody will read this after a crash of the machine.
    Fast,
    /// As in production, for measuring.
    Durable,
}

/// Which CRDs there are from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    Ours,
    /// For who brings others, and then ours.
    None,
}

/// How one is started that is not as most tests want it.
#[derive(Clone, Debug)]
pub struct Options {
    pub disk: Disk,
    pub kinds: Kinds,
    /// An audit policy (`audit.k8s.io/v1`): what it selects is written to [`ControlPlane::audit_log`].
    pub audit: Option<Value>,
}

impl Default for Options {
    fn default() -> Self {
        Self { disk: Disk::Fast, kinds: Kinds::Ours, audit: None }
    }
}

/// The three programs, by the name of their command and log.
const ETCD: &str = "etcd";
const API_SERVER: &str = "kube-apiserver";
const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// The administrator's, in the folder.
const KUBECONFIG: &str = "kubeconfig";

/// What the API server was asked, in the folder.
const AUDIT_LOG: &str = "audit.log";

/// A running control plane.
pub struct ControlPlane {
    programs: Programs,
    folder: PathBuf,
    config: Config,
    supervisor: Supervisor,
}

impl ControlPlane {
    /// The one that all tests of this process share; started by the first that asks. Panics where there is none.
    pub fn shared() -> &'static ControlPlane {
        static SHARED: OnceLock<ControlPlane> = OnceLock::new();
        SHARED.get_or_init(|| ControlPlane::start().unwrap_or_else(|wrong| panic!("{}", chain(&wrong))))
    }

    /// A fresh one, ready, with our CRDs established and owner references tended, unless the options say otherwise. Not from inside a runtime: it blocks.
    pub fn start() -> Result<ControlPlane, StartError> {
        Self::start_with(&Options::default())
    }

    pub fn start_with(options: &Options) -> Result<ControlPlane, StartError> {
        let programs = Programs::find()?;
        // A port that was free may be taken before the program gets to it: then again with others.
        let mut tries = 3;
        loop {
            tries -= 1;
            match Self::start_on(&programs, free_ports()?, options) {
                Err(StartError::Supervise(SuperviseError::Ended { tail, .. }))
                    if tries > 0 && tail.contains("address already in use") => {}
                answer => return answer,
            }
        }
    }

    fn start_on(programs: &Programs, ports: [u16; 3], options: &Options) -> Result<ControlPlane, StartError> {
        let folder =
            folder::new("control-plane").map_err(|source| StartError::Io { what: "the folder", source })?;
        files::write(&folder, programs, ports, options)?;
        let supervisor = Supervisor::start(&folder)?;
        folder::keep_on_panic(&folder);
        supervisor.start_program(ETCD)?;
        supervisor.start_program(API_SERVER)?;
        let wait = install::wait_ready(&folder, KUBECONFIG, &supervisor, &[ETCD, API_SERVER]);
        let config = RUNTIME.block_on(wait)?;
        let plane = ControlPlane { programs: programs.clone(), folder, config, supervisor };
        RUNTIME.block_on(install::forget_the_beginning(ports[1]))?;
        if options.kinds == Kinds::None {
            plane.supervisor.start_program(CONTROLLER_MANAGER)?;
            return Ok(plane);
        }
        RUNTIME.block_on(install::crds(&plane.client()))?;
        // Only now: the garbage collector looks for new kinds when it starts, and then every half minute.
        plane.supervisor.start_program(CONTROLLER_MANAGER)?;
        RUNTIME.block_on(install::wait_for_controllers(&plane.client()))?;
        Ok(plane)
    }

    /// How to reach it, as its administrator. Nothing is tried twice: tests look at each answer.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// A client with connections of its own, living on the runtime of all tests.
    pub fn client(&self) -> Client {
        let _inside = RUNTIME.enter();
        Client::try_from(self.config()).expect("a client")
    }

    /// For kubectl and other programs.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join(KUBECONFIG)
    }

    /// Where the API server's certificate is, for kubeconfigs of others than the administrator.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("certs/apiserver.crt")
    }

    /// The key that service accounts' tokens are signed with: ES256, in PEM.
    pub fn signing_key(&self) -> PathBuf {
        self.folder.join("accounts.key")
    }

    /// A JSON object per line (`audit.k8s.io/v1`), where an audit policy was given; else there is no such file.
    pub fn audit_log(&self) -> PathBuf {
        self.folder.join(AUDIT_LOG)
    }

    pub fn kubectl(&self) -> &Path {
        &self.programs.kubectl
    }

    /// What the administrator's kubectl says; panics if it fails. Blocks.
    pub fn run_kubectl(&self, args: &[&str]) -> String {
        let mut command = Command::new(self.kubectl());
        command.arg(format!("--kubeconfig={}", self.kubeconfig().display())).args(args);
        let output = command.output().expect("kubectl runs");
        assert!(output.status.success(), "kubectl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Kills the API server, as a crash does, and starts it again on what etcd has; ready when this returns. Blocks.
    pub fn restart_api_server(&self) -> Result<(), StartError> {
        self.kill_api_server()?;
        RUNTIME.block_on(self.start_api_server())
    }

    /// As a crash does. One that is gone already stays so.
    pub fn kill_api_server(&self) -> Result<(), StartError> {
        Ok(self.supervisor.tell("kill", API_SERVER).map(drop)?)
    }

    /// Starts the API server that was killed, on what etcd has; ready when this returns.
    pub async fn start_api_server(&self) -> Result<(), StartError> {
        self.supervisor.start_program(API_SERVER)?;
        install::wait_ready(&self.folder, KUBECONFIG, &self.supervisor, &[ETCD, API_SERVER]).await.map(drop)
    }

    /// Whatever a test that failed left paused or killed runs again; what it had started besides is gone. Blocks.
    pub fn heal(&self) -> Result<(), StartError> {
        self.resume_etcd()?;
        self.stop_second_api_server()?;
        if self.supervisor.check(CONTROLLER_MANAGER).is_err() {
            self.supervisor.start_program(CONTROLLER_MANAGER)?;
        }
        match self.supervisor.check(API_SERVER) {
            Ok(()) => Ok(()),
            Err(_) => RUNTIME.block_on(self.start_api_server()),
        }
    }

    /// All of it ends, as when it is dropped: for one that many have. Blocks.
    pub fn stop(&self) {
        self.supervisor.end();
    }

    /// Nobody tends owner references or namespaces from now on.
    pub fn pause_controllers(&self) -> Result<(), StartError> {
        Ok(self.supervisor.tell("pause", CONTROLLER_MANAGER).map(drop)?)
    }

    /// etcd answers nobody until [`ControlPlane::resume_etcd`].
    pub fn pause_etcd(&self) -> Result<(), StartError> {
        Ok(self.supervisor.tell("pause", ETCD).map(drop)?)
    }

    pub fn resume_etcd(&self) -> Result<(), StartError> {
        Ok(self.supervisor.tell("resume", ETCD).map(drop)?)
    }
}

/// An error with all its causes, on one line.
fn chain(wrong: &dyn std::error::Error) -> String {
    let mut text = wrong.to_string();
    let mut cause = wrong.source();
    while let Some(wrong) = cause {
        text += &format!(": {wrong}");
        cause = wrong.source();
    }
    text
}

/// Three ports that nobody had a moment ago: held together, so that they differ.
fn free_ports() -> Result<[u16; 3], StartError> {
    let free = || -> io::Result<[u16; 3]> {
        let held = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0"));
        let mut ports = [0; 3];
        for (port, listener) in ports.iter_mut().zip(held) {
            *port = listener?.local_addr()?.port();
        }
        Ok(ports)
    };
    free().map_err(|source| StartError::Io { what: "a free port", source })
}
