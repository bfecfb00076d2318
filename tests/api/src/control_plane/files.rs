//! What the programs read: commands, keys, the administrator's token and kubeconfig.

use std::fs;
use std::io;
use std::path::Path;

use rcgen::KeyPair;
use supervisor::write_command;

use super::{
    API_SERVER, AUDIT_LOG, CONTROLLER_MANAGER, Disk, ETCD, KUBECONFIG, Options, Programs, StartError,
};

/// What the API server is to write down.
const AUDIT_POLICY: &str = "audit-policy";

/// Writes them all, for a control plane on these ports: the API server's, and etcd's for clients and peers.
pub(super) fn write(
    folder: &Path,
    programs: &Programs,
    ports: [u16; 3],
    options: &Options,
) -> Result<(), StartError> {
    let all = || -> io::Result<()> {
        // Any secret will do, and a fresh key is one.
        let key = || KeyPair::generate().map_err(io::Error::other);
        let token: String = key()?.public_key_raw().iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(folder.join("tokens.csv"), format!("{token},admin,admin,system:masters\n"))?;
        let accounts = key()?;
        fs::write(folder.join("accounts.key"), accounts.serialize_pem())?;
        fs::write(folder.join("accounts.pub"), accounts.public_key_pem())?;
        let write =
            |name: &str, command: Vec<String>| write_command(folder, name, &hasty(command, options.disk));
        write(ETCD, etcd(folder, programs, ports, options.disk))?;
        let mut api_server = api_server(folder, programs, ports);
        if let Some(policy) = &options.audit {
            fs::write(folder.join(AUDIT_POLICY), policy.to_string())?;
            api_server.extend(audits(folder));
        }
        write(API_SERVER, api_server)?;
        write(CONTROLLER_MANAGER, controller_manager(folder, programs))?;
        fs::write(folder.join(KUBECONFIG), kubeconfig(folder, &token, ports[0]))
    };
    all().map_err(|source| StartError::Io { what: "the files", source })
}

/// Where nothing is measured, a Go program may have more memory, and collect its garbage a quarter as often: that is a quarter of
/// what an API server uses of the two cores that it shares with the tests.
fn hasty(command: Vec<String>, disk: Disk) -> Vec<String> {
    match disk {
        Disk::Fast => ["env", "GOGC=400"].map(str::to_owned).into_iter().chain(command).collect(),
        Disk::Durable => command,
    }
}

fn etcd(folder: &Path, programs: &Programs, [_, client, peer]: [u16; 3], disk: Disk) -> Vec<String> {
    vec![
        programs.etcd.display().to_string(),
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls=http://127.0.0.1:{client}"),
        format!("--advertise-client-urls=http://127.0.0.1:{client}"),
        format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
        format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"),
        format!("--initial-cluster=default=http://127.0.0.1:{peer}"),
        format!("--unsafe-no-fsync={}", disk == Disk::Fast),
    ]
}

fn api_server(folder: &Path, programs: &Programs, [secure, client, _]: [u16; 3]) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    vec![
        programs.api_server.display().to_string(),
        format!("--etcd-servers=http://127.0.0.1:{client}"),
        // Not every address, as it would by itself.
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={secure}"),
        format!("--cert-dir={}", file("certs")),
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        format!("--service-account-key-file={}", file("accounts.pub")),
        format!("--service-account-signing-key-file={}", file("accounts.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        format!("--token-auth-file={}", file("tokens.csv")),
        // No controller makes service accounts, and nothing here runs pods.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
    ]
}

fn audits(folder: &Path) -> [String; 3] {
    [
        // Never begun anew: whoever reads it knows how far it was read.
        "--audit-log-maxsize=0".to_owned(),
        format!("--audit-policy-file={}", folder.join(AUDIT_POLICY).display()),
        format!("--audit-log-path={}", folder.join(AUDIT_LOG).display()),
    ]
}

fn controller_manager(folder: &Path, programs: &Programs) -> Vec<String> {
    vec![
        programs.controller_manager.display().to_string(),
        format!("--kubeconfig={}", folder.join("kubeconfig").display()),
        // Owner references, and namespaces that go; nothing that would touch Nodes behind a test's back.
        "--controllers=garbage-collector-controller,namespace-controller".to_owned(),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
    ]
}

/// The administrator's, for the tests, the controller manager and kubectl.
fn kubeconfig(folder: &Path, token: &str, port: u16) -> String {
    // The API server makes its own certificate, with a CA beside it in the same file.
    let certificate = folder.join("certs/apiserver.crt").display().to_string();
    let server = format!("https://127.0.0.1:{port}");
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": certificate}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
    });
    // JSON is YAML.
    kubeconfig.to_string()
}
