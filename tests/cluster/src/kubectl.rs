//! kubectl, as the administrator: the one way in which tests speak to the cluster, but for a request that it doesn't send.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::pki::SERVER;
use crate::{Cluster, Node, answer};

impl Cluster {
    fn kubectl_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.in_plane(&self.programs.kubectl);
        let config = self.authority.path("admin.kubeconfig").display().to_string();
        // What it learns of the API is kept with the cluster, not in the home of whoever runs the test.
        let cache = self.folder.join("pki/cache").display().to_string();
        command.args(["--kubeconfig", &config, "--cache-dir", &cache]).args(arguments);
        command
    }

    /// On a node, with the cluster's address and authority and nothing that says who asks.
    pub fn bare_kubectl(&self, node: Node) -> Command {
        let kubectl = self.programs.kubectl.display().to_string();
        let mut command = self.on(node, &kubectl);
        let authority = self.authority.path("ca.crt").display().to_string();
        command.args(["--server", SERVER, "--certificate-authority", &authority]);
        command.args(["--cache-dir", "/run/kubectl"]);
        command
    }

    /// curl on a node, about this path of the API, for a request that kubectl doesn't send as it is; with nothing that says who
    /// asks. It fails only where there is no answer.
    pub fn curl(&self, node: Node, path: &str) -> Command {
        let mut command = self.on(node, "curl");
        let authority = self.authority.path("ca.crt").display().to_string();
        command.args(["--silent", "--show-error", "--cacert", &authority, &format!("{SERVER}{path}")]);
        command
    }

    /// How to run it from a shell, as root.
    pub fn kubectl_line(&self) -> String {
        let config = self.authority.path("admin.kubeconfig");
        let kubectl = self.programs.kubectl.display();
        format!("nsenter --net=/proc/{}/ns/net {kubectl} --kubeconfig {}", self.plane, config.display())
    }

    /// What it prints; or what it says against it.
    pub fn try_kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        answer(&mut self.kubectl_command(arguments))
    }

    /// What it prints. Panics where it fails.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.try_kubectl(arguments).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    /// With something to read, such as `apply -f -`. Panics where it fails.
    pub fn kubectl_with(&self, arguments: &[&str], input: &str) -> String {
        let mut command = self.kubectl_command(arguments);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl can be run");
        let mut pipe = child.stdin.take().expect("its input");
        pipe.write_all(input.as_bytes()).expect("it reads");
        drop(pipe);
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
        said
    }

    /// An object, or a list of them.
    pub fn get(&self, what: &[&str]) -> Value {
        self.try_get(what).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    pub fn try_get(&self, what: &[&str]) -> Result<Value, String> {
        let mut arguments = vec!["get", "--output=json"];
        arguments.extend(what);
        let said = self.try_kubectl(&arguments)?;
        serde_json::from_str(&said).map_err(|wrong| format!("{wrong}: {said}"))
    }
}
