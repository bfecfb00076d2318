//! A second API server on the same etcd, as clusters that mean it have: each answers from a cache of its own.

use std::fs;
use std::io;
use std::net::TcpListener;

use kube::Config;
use serde_json::{Value, json};

use supervisor::write_command;

use super::{API_SERVER, ControlPlane, ETCD, KUBECONFIG, StartError, install};

/// The name of its command and log.
const SECOND: &str = "kube-apiserver-2";
const SECOND_KUBECONFIG: &str = "kubeconfig-2";
const SECOND_CERTIFICATES: &str = "certs-2";

impl ControlPlane {
    /// Starts it; ready when this returns. How its administrator reaches it, and the file with its certificate.
    pub async fn second_api_server(&self) -> Result<(Config, String), StartError> {
        let certificate = self.folder.join(SECOND_CERTIFICATES).join("apiserver.crt").display().to_string();
        self.write_second(&certificate)
            .map_err(|source| StartError::Io { what: "the second's files", source })?;
        self.supervisor.start_program(SECOND)?;
        let wait = install::wait_ready(&self.folder, SECOND_KUBECONFIG, &self.supervisor, &[ETCD, SECOND]);
        Ok((wait.await?, certificate))
    }

    /// Kills it, if it runs.
    pub fn stop_second_api_server(&self) -> Result<(), StartError> {
        Ok(self.supervisor.tell("kill", SECOND).map(drop)?)
    }

    /// As the first's, but for the port and the certificate.
    fn write_second(&self, certificate: &str) -> io::Result<()> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let first = fs::read_to_string(self.folder.join(format!("{API_SERVER}.command")))?;
        let other = |argument: &str| match argument.split_once('=') {
            Some(("--secure-port", _)) => format!("--secure-port={port}"),
            Some(("--cert-dir", _)) => {
                format!("--cert-dir={}", self.folder.join(SECOND_CERTIFICATES).display())
            }
            _ => argument.to_owned(),
        };
        let command: Vec<String> = first.lines().map(other).collect();
        write_command(&self.folder, SECOND, &command)?;
        let kubeconfig = fs::read_to_string(self.folder.join(KUBECONFIG))?;
        let mut kubeconfig: Value = serde_json::from_str(&kubeconfig)?;
        let server = format!("https://127.0.0.1:{port}");
        kubeconfig["clusters"][0]["cluster"] =
            json!({"server": server, "certificate-authority": certificate});
        fs::write(self.folder.join(SECOND_KUBECONFIG), kubeconfig.to_string())
    }
}
