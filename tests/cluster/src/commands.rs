//! The control plane's programs, and how they are started.

use std::path::Path;

use crate::pki::Authority;
use crate::programs::Programs;

pub(crate) const ETCD: &str = "etcd";
pub(crate) const API_SERVER: &str = "kube-apiserver";
pub(crate) const CONTROLLER_MANAGER: &str = "kube-controller-manager";
pub(crate) const SCHEDULER: &str = "kube-scheduler";

/// Each by its name, program and arguments.
pub(crate) fn all(
    folder: &Path,
    programs: &Programs,
    authority: &Authority,
) -> [(&'static str, Vec<String>); 4] {
    let file = |name: &str| authority.path(name).display().to_string();
    [
        (ETCD, etcd(folder, programs)),
        (API_SERVER, api_server(programs, file)),
        (CONTROLLER_MANAGER, controller_manager(programs, file)),
        (SCHEDULER, scheduler(programs, file)),
    ]
}

fn etcd(folder: &Path, programs: &Programs) -> Vec<String> {
    vec![
        programs.etcd.display().to_string(),
        format!("--data-dir={}", folder.join("etcd").display()),
        "--log-level=warn".to_owned(),
        // Nobody will read this after a crash of the machine.
        "--unsafe-no-fsync".to_owned(),
    ]
}

fn api_server(programs: &Programs, file: impl Fn(&str) -> String) -> Vec<String> {
    vec![
        programs.api_server.display().to_string(),
        "--etcd-servers=http://127.0.0.1:2379".to_owned(),
        "--bind-address=0.0.0.0".to_owned(),
        "--advertise-address=10.99.0.1".to_owned(),
        "--secure-port=443".to_owned(),
        format!("--tls-cert-file={}", file("apiserver.crt")),
        format!("--tls-private-key-file={}", file("apiserver.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        format!("--kubelet-client-certificate={}", file("apiserver-kubelet.crt")),
        format!("--kubelet-client-key={}", file("apiserver-kubelet.key")),
        format!("--kubelet-certificate-authority={}", file("ca.crt")),
        // Nodes have no names that anybody could look up.
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        format!("--service-account-key-file={}", file("accounts.pub")),
        format!("--service-account-signing-key-file={}", file("accounts.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        format!("--admission-control-config-file={}", programs.scripts.join("admission.yaml").display()),
    ]
}

fn controller_manager(programs: &Programs, file: impl Fn(&str) -> String) -> Vec<String> {
    vec![
        programs.controller_manager.display().to_string(),
        format!("--kubeconfig={}", file("controller-manager.kubeconfig")),
        format!("--service-account-private-key-file={}", file("accounts.key")),
        format!("--root-ca-file={}", file("ca.crt")),
        "--use-service-account-credentials".to_owned(),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        // A node that is silent is Unknown after this long, in place of 50 s: kubelets renew their Leases every three.
        "--node-monitor-grace-period=12s".to_owned(),
        "--node-monitor-period=2s".to_owned(),
    ]
}

fn scheduler(programs: &Programs, file: impl Fn(&str) -> String) -> Vec<String> {
    vec![
        programs.scheduler.display().to_string(),
        format!("--kubeconfig={}", file("scheduler.kubeconfig")),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
    ]
}
