//! An API with objects in it, and `berth` run against it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use api_tests::RUNTIME;
use api_tests::control_plane::ControlPlane;
use hyper::http::{Method, Request};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::between::Between;
use crate::folder::Folder;

pub(crate) const PREFIX: &str = "/apis/nmstate.io/v1";
/// When every entry was made.
pub(crate) const SINCE: &str = "2026-11-17T10:00:00Z";

/// What a run left.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Its answer, where it succeeded and said nothing else.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}", self.stdout);
        self.stdout
    }

    /// What it said when it did not.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        self.stderr
    }

    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.ok()).expect("JSON")
    }
}

pub(crate) struct Field {
    pub(crate) folder: Folder,
    pub(crate) kubeconfig: PathBuf,
    client: Client,
    server: Option<Child>,
}

impl Drop for Field {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            server.kill().ok();
            server.wait().ok();
        }
    }
}

impl Field {
    /// A `berth serve` of its own, by TCP and by its socket.
    pub(crate) fn served() -> Self {
        let folder = Folder::new();
        let mut server = Command::new(env!("CARGO_BIN_EXE_berth"))
            .args(["serve", "--in-memory", "--write-kubeconfig", "kubeconfig"])
            .args(["--listen", "127.0.0.1:0", &format!("unix:{}", folder.path().join("api.sock").display())])
            .current_dir(folder.path())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start berth serve");
        let mut said =
            BufReader::new(server.stderr.take().expect("its stderr")).lines().map_while(Result::ok);
        assert!(said.any(|line| line == "kubeconfig: kubeconfig"), "it listens");
        // Whoever writes to a pipe that nobody reads is stopped.
        std::thread::spawn(move || said.for_each(drop));
        let kubeconfig = folder.path().join("kubeconfig");
        let config = Kubeconfig::read_from(&kubeconfig).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(config, &options);
        let config = RUNTIME.block_on(config).expect("a configuration");
        let _inside = RUNTIME.enter();
        let client = Client::try_from(config).expect("a client");
        Self { folder, kubeconfig, client, server: Some(server) }
    }

    /// The real API server that all share, with nothing in it.
    pub(crate) fn real() -> Self {
        let plane = ControlPlane::shared();
        let _inside = RUNTIME.enter();
        // Others read nothing of what is too deep for them.
        let client = agent::api::connection::client(plane.config(), Default::default()).expect("a client");
        let field = Self { folder: Folder::new(), kubeconfig: plane.kubeconfig(), client, server: None };
        let kinds =
            ["nodeippools", "nodeipslices", "nodenetworkstates", "nodenetworkconfigurationenactments"];
        let kinds = kinds.map(|kind| format!("{PREFIX}/{kind}"));
        for path in kinds.iter().map(String::as_str).chain(["/api/v1/nodes"]) {
            field.ask(Method::DELETE, path, &Value::Null);
        }
        field
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// A cluster's, which has ServiceCIDRs; the embedded API has none.
    pub(crate) fn is_cluster(&self) -> bool {
        self.server.is_none()
    }

    /// `berth`, words apart by spaces, against this API.
    pub(crate) fn berth(&self, line: &str) -> Ran {
        self.berth_as(Path::new(env!("CARGO_BIN_EXE_berth")), line)
    }

    pub(crate) fn berth_as(&self, program: &Path, line: &str) -> Ran {
        self.ran(program, &self.kubeconfig, line)
    }

    /// The same with something in between.
    pub(crate) fn berth_by(&self, way: &Between, line: &str) -> Ran {
        self.ran(Path::new(env!("CARGO_BIN_EXE_berth")), &way.kubeconfig, line)
    }

    fn ran(&self, program: &Path, kubeconfig: &Path, line: &str) -> Ran {
        let mut command = Command::new(program);
        command.args(line.split_whitespace()).env("KUBECONFIG", kubeconfig).env_remove("NODE_NAME");
        run(command.current_dir(self.folder.path()).env("HOME", self.folder.path()).env_remove("COLUMNS"))
    }

    pub(crate) fn ask(&self, method: Method, path: &str, body: &Value) -> Value {
        let content =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("content-type", content);
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).expect("JSON") };
        let request = request.body(body).expect("a request");
        RUNTIME.block_on(self.client.request(request)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn get(&self, kind: &str, name: &str) -> Value {
        let request = Request::get(format!("{PREFIX}/{kind}/{name}")).body(Vec::new()).expect("a request");
        RUNTIME
            .block_on(self.client.request(request))
            .unwrap_or_else(|error| panic!("{kind} {name}: {error}"))
    }

    /// Creates an object and gives it a status; its UID.
    fn put(&self, collection: &str, mut object: Value) -> String {
        let status = object.as_object_mut().and_then(|fields| fields.shift_remove("status"));
        let made = self.ask(Method::POST, collection, &object);
        if let Some(status) = status {
            let name = object["metadata"]["name"].as_str().expect("a name");
            self.ask(Method::PATCH, &format!("{collection}/{name}/status"), &json!({"status": status}));
        }
        made["metadata"]["uid"].as_str().expect("a UID").to_owned()
    }

    /// A Ready Node; its agent's own, if it is not a kubelet's.
    pub(crate) fn node(&self, name: &str, kubelet: bool) -> String {
        let annotations = if kubelet { json!({}) } else { json!({"nmstate.io/self-registered": "true"}) };
        let ready =
            json!({"conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": ""}]});
        let metadata = json!({"name": name, "labels": {"name": name}, "annotations": annotations});
        self.put(
            "/api/v1/nodes",
            json!({"kind": "Node", "apiVersion": "v1", "metadata": metadata, "status": ready}),
        )
    }

    /// A pool of one range that is rebuilt and gives; its UID.
    pub(crate) fn pool(&self, name: &str, range: &Value) -> String {
        let object = json!({
            "kind": "NodeIPPool", "apiVersion": "nmstate.io/v1", "metadata": {"name": name},
            "spec": {"range": range, "quarantine": "5m"},
        });
        let uid = self.put(&format!("{PREFIX}/nodeippools"), object);
        self.ledger(name, &uid, &[]);
        uid
    }

    /// Its ledger: offset, address and entry of each.
    pub(crate) fn ledger(&self, pool: &str, uid: &str, entries: &[(i64, &str, Value)]) {
        let allocations: serde_json::Map<String, Value> =
            entries.iter().map(|(_, ip, entry)| ((*ip).to_owned(), entry.clone())).collect();
        let mut offsets: Vec<i64> = entries.iter().map(|(offset, ..)| *offset).collect();
        offsets.sort_unstable();
        let condition = json!({
            "type": "Available", "status": "True", "reason": "ReconciledPool", "message": "The pool is up to date",
        });
        let status = json!({
            "sequence": 7, "rebuiltFor": uid, "allocations": allocations, "allocated-offsets": offsets,
            "conditions": [condition],
        });
        let path = format!("{PREFIX}/nodeippools/{pool}/status");
        self.ask(Method::PATCH, &path, &json!({"status": status}));
    }

    /// A block of a sliced pool, made with an address as its agent does; nothing keeps it, so that it goes with what made it. Its
    /// UID, which a grant out of it names.
    pub(crate) fn slice(&self, pool: &str, cidr: &str, node: &str, node_uid: &str, ip: &str) -> String {
        let network: ipnet::IpNet = cidr.parse().expect("a network");
        let first = json!({
            "ip": ip, "policy": "static-ip", "capture": "addr", "request": id(node), "sequence": 1, "since": SINCE,
        });
        let name = crds::slice::name(pool, network.addr());
        let annotations = json!({"nmstate.io/ledger-encoding": "first"});
        self.put(
            &format!("{PREFIX}/nodeipslices"),
            json!({
                "kind": "NodeIPSlice", "apiVersion": "nmstate.io/v1",
                "metadata": {"name": name, "annotations": annotations, "labels": {"nmstate.io/pool": pool}},
                "spec": {"pool": pool, "cidr": cidr, "node": node, "nodeUID": node_uid, "first": first},
            }),
        )
    }

    /// An enactment that holds this address.
    pub(crate) fn enactment(&self, node: &str, node_uid: &str, claim: &Claim<'_>) {
        let Claim { policy, pool, pool_uid, ip } = claim;
        let id = id(node);
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid});
        let holds = json!({"ip": ip, "sequence": 1, "poolUID": pool_uid});
        let grant = json!({"id": id, "ip": ip, "prefix-length": 24, "sequence": 1, "poolUID": pool_uid});
        self.put(
            &format!("{PREFIX}/nodenetworkconfigurationenactments"),
            json!({
                "kind": "NodeNetworkConfigurationEnactment", "apiVersion": "nmstate.io/v1",
                "metadata": {
                    "name": format!("{node}.{policy}"), "ownerReferences": [owner],
                    "labels": {"nmstate.io/node": node, "nmstate.io/policy": policy},
                },
                "status": {"ippool": {*pool: {
                    "requests": {"addr": {"id": id, "want": true, "holds": holds}},
                    "grants": {"addr": grant}, "allocated": [ip],
                }}},
            }),
        );
    }

    /// This enactment's state is nested as deeply as the API takes it, and deeper than most can read where that is asked by nobody.
    pub(crate) fn deepen(&self, enactment: &str) {
        let levels = if self.server.is_some() { 60 } else { 200 };
        let state = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        let path = format!("{PREFIX}/nodenetworkconfigurationenactments/{enactment}/status");
        let body = format!("{{\"status\":{{\"desiredState\":{state}}}}}");
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(path)
            .header("content-type", "application/merge-patch+json");
        let request = request.body(body.into_bytes()).expect("a request");
        let taken = RUNTIME.block_on(self.client.request_text(request));
        assert!(taken.expect("it is taken").len() > 5 * levels);
    }

    /// What a host shows on an interface.
    pub(crate) fn state(&self, node: &str, node_uid: &str, interface: &str, ips: &[&str]) {
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid});
        let addresses: Vec<Value> = ips.iter().map(|ip| json!({"ip": ip, "prefix-length": 24})).collect();
        let interface =
            json!({"name": interface, "type": "ethernet", "ipv4": {"enabled": true, "address": addresses}});
        self.put(
            &format!("{PREFIX}/nodenetworkstates"),
            json!({
                "kind": "NodeNetworkState", "apiVersion": "nmstate.io/v1",
                "metadata": {"name": node, "ownerReferences": [owner]},
                "status": {"stamp": "s1", "currentState": {"interfaces": [interface]}},
            }),
        );
    }
}

/// What an enactment holds.
pub(crate) struct Claim<'a> {
    pub(crate) policy: &'a str,
    pub(crate) pool: &'a str,
    pub(crate) pool_uid: &'a str,
    pub(crate) ip: &'a str,
}

fn id(node: &str) -> String {
    format!("id-of-{node}")
}

/// An entry of a ledger that this node holds.
pub(crate) fn held(node: &str, node_uid: &str, policy: &str) -> Value {
    json!({
        "node": node, "nodeUID": node_uid, "policy": policy, "capture": "addr", "request": id(node), "sequence": 1,
        "since": SINCE, "kind": "dynamic",
    })
}

/// An entry that nobody may use.
pub(crate) fn quarantined(node: &str, until: &str) -> Value {
    let mut entry = held(node, "gone", "static-ip");
    entry["state"] = json!("Quarantined");
    entry["until"] = json!(until);
    entry["reason"] = json!("NodeGone");
    entry
}

pub(crate) fn run(command: &mut Command) -> Ran {
    let output = command.stdin(Stdio::null()).output().expect("start it");
    Ran {
        code: output.status.code().expect("an exit code, not a signal"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}
