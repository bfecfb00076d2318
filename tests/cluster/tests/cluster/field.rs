//! The cluster that all tests share, with Berth on it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cluster_tests::{Cluster, Node, answer, wait};
use serde_json::{Value, json};

/// The nodes that are always there.
pub(crate) const NODES: [Node; 3] = [Node(1), Node(2), Node(3)];

/// The image that `deploy/base` names.
pub(crate) const IMAGE: &str = "localhost/berth:0.1.0";

/// The pools, with the card that each is for.
pub(crate) const POOLS: [(&str, &str); 2] = [("traffic-1", "eth1"), ("traffic-2", "eth2")];

/// What the policy is called.
pub(crate) const POLICY: &str = "static-ip";

/// What runs, by the names that kubectl takes.
pub(crate) const WORKLOADS: [&str; 2] = ["daemonset/berth-agent", "deployment/berth-controller"];

/// Variables that tests set on what runs: where to die, and how much to say.
const SET_BY_TESTS: [&str; 2] = ["BERTH_FAULT", "BERTH_LOG_LEVEL"];

/// Short, for tests that wait for its end; long enough to be told from none at all.
const QUARANTINE: Duration = Duration::from_secs(6);

pub(crate) struct Field {
    pub(crate) cluster: Cluster,
    /// Is all as [`Field::install`] left it?
    is_whole: Cell<bool>,
}

/// A pass to the cluster: one test at a time has it.
pub(crate) type Pass = MutexGuard<'static, Field>;

/// The cluster as every test finds it: three nodes, Berth rolled out, two pools, one policy, and each node with an address on
/// both cards. What an earlier test took away, or left when it failed, is put right first.
pub(crate) fn field() -> Pass {
    static FIELD: LazyLock<Mutex<Field>> = LazyLock::new(|| Mutex::new(Field::start()));
    let field = FIELD.lock().unwrap_or_else(|failed| {
        FIELD.clear_poison();
        let field = failed.into_inner();
        field.disturb();
        field
    });
    if !field.is_whole.get() {
        field.install();
    }
    field
}

/// As ledgers have it: whole seconds, of one length, so that what is later comes later as a text too.
fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let output =
        Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ", "-d", &format!("@{seconds}")]).output();
    String::from_utf8(output.expect("date runs").stdout).expect("text").trim().to_owned()
}

impl Field {
    fn start() -> Field {
        let cluster = Cluster::start();
        cluster.image(&program(), IMAGE);
        for node in NODES {
            cluster.boot(node);
        }
        let field = Field { cluster, is_whole: Cell::new(false) };
        for node in NODES {
            field.wait_ready(node);
        }
        field
    }

    /// Another image, which every node has when this returns; what it is called. The program in it differs by a byte that nobody
    /// reads.
    pub(crate) fn next_image(&self) -> String {
        let folder = self.cluster.folder().join("next");
        fs::create_dir_all(&folder).expect("a folder");
        let mut program = fs::read(program()).expect("a program");
        program.push(b'\n');
        let path = folder.join("berth");
        fs::write(&path, program).expect("written");
        let name = "localhost/berth:next";
        let image = self.cluster.image(&path, name);
        NODES.into_iter().for_each(|node| self.cluster.load(node, &image));
        name.to_owned()
    }

    /// From now on the next test has to put things right.
    pub(crate) fn disturb(&self) {
        self.is_whole.set(false);
    }

    /// As `docs` tell an administrator to.
    pub(crate) fn install(&self) {
        self.cluster.kubectl(&["apply", "-k", &quick("base")]);
        // What a test set stays over that: `apply` takes away only what it has put there.
        for what in WORKLOADS {
            self.set_env(what, &SET_BY_TESTS.map(|name| format!("{name}-")));
        }
        let strays = self.strays();
        for &stray in &strays {
            self.unplug(stray);
        }
        self.wait_rolled_out();
        // A CRD that was just made is served a moment later.
        wait::until("the pools and the policy", || {
            self.cluster.try_kubectl(&["get", "nodeippools,nncp,nnce"])
        });
        // What a test that failed left.
        for policy in self.cluster.get(&["nncp"])["items"].as_array().into_iter().flatten() {
            if let Some(name) = policy["metadata"]["name"].as_str().filter(|&name| name != POLICY) {
                self.cluster.kubectl(&["delete", "nncp", name]);
            }
        }
        self.apply_seeds();
        self.wait_configured(&NODES);
        for stray in strays {
            self.wait_set_aside(stray);
        }
        self.is_whole.set(true);
    }

    /// The pools and the policy.
    pub(crate) fn apply_seeds(&self) {
        let objects = json!({"apiVersion": "v1", "kind": "List", "items": seeds()});
        self.cluster.kubectl_with(&["apply", "-f", "-"], &objects.to_string());
    }

    /// Nodes that a test which failed left running.
    fn strays(&self) -> Vec<Node> {
        let nodes = self.cluster.get(&["nodes"]);
        let names: Vec<&Value> =
            nodes["items"].as_array().into_iter().flatten().map(|node| &node["metadata"]["name"]).collect();
        (4..10).map(Node).filter(|node| names.iter().any(|&name| *name == node.name())).collect()
    }

    pub(crate) fn wait_ready(&self, node: Node) {
        let name = format!("node/{}", node.name());
        wait::until(&format!("{name} to be registered"), || self.cluster.try_kubectl(&["get", &name]));
        self.cluster.kubectl(&["wait", "--for=condition=Ready", &name, "--timeout=120s"]);
    }

    pub(crate) fn wait_rolled_out(&self) {
        for what in WORKLOADS {
            self.cluster.kubectl(&["-n", "berth-system", "rollout", "status", what, "--timeout=120s"]);
        }
    }

    /// Sets variables of what runs (`NAME=value`), or takes them away (`NAME-`); pods that have them otherwise are replaced. The
    /// next [`Field::install`] takes away those of [`SET_BY_TESTS`].
    pub(crate) fn set_env(&self, what: &str, settings: &[String]) {
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        self.cluster.kubectl(&[&["-n", "berth-system", "set", "env", what], &settings[..]].concat());
    }

    /// Waits until a node has no such link.
    pub(crate) fn wait_no_link(&self, node: Node, link: &str) {
        wait::until(&format!("{link} to be gone from {}", node.name()), || {
            match answer(self.cluster.on(node, "ip").args(["link", "show", link])) {
                Ok(shown) => Err(shown),
                Err(_) => Ok(()),
            }
        });
    }

    /// Each of these nodes has the addresses that the pools' ledgers say are its own, and nothing else.
    pub(crate) fn wait_configured(&self, nodes: &[Node]) -> Held {
        wait::until("every node to have its addresses", || {
            let held = self.held()?;
            for &node in nodes {
                for (pool, card) in POOLS {
                    let own = held.get(&(node.name(), pool.to_owned()));
                    let own = own.ok_or_else(|| format!("{} has no address of {pool}", node.name()))?;
                    let found = self.cluster.addresses(node, card);
                    if found != [format!("{own}/24")] {
                        return Err(format!("{} has {found:?} on {card}, not {own}", node.name()));
                    }
                }
            }
            Ok(held)
        })
    }

    /// Cuts a host's power and deletes its Node; since when that is so, at the soonest. Its pods would stay for a minute, with nobody to
    /// end them.
    fn unplug(&self, node: Node) -> SystemTime {
        self.cluster.power_cut(node);
        let name = node.name();
        let gone = SystemTime::now();
        self.cluster.kubectl(&["delete", "node", &name]);
        let there = format!("--field-selector=spec.nodeName={name}");
        self.cluster.kubectl(&[
            "delete",
            "pods",
            "-n",
            "berth-system",
            &there,
            "--force",
            "--grace-period=0",
        ]);
        gone
    }

    /// Of a node, in the ledgers: of which pool, and the entry.
    pub(crate) fn entries_of(&self, node: Node) -> Result<Vec<(String, Value)>, String> {
        let of_pool = |(pool, ledger): (String, Ledger)| {
            ledger.into_iter().map(move |(_, entry)| (pool.clone(), entry))
        };
        let all = self.ledgers()?.into_iter().flat_map(of_pool);
        Ok(all.filter(|(_, entry)| entry["node"] == *node.name()).collect())
    }

    /// A host goes for good. Its addresses are quarantined, or free already, when this returns.
    pub(crate) fn take_away(&self, node: Node) {
        self.unplug(node);
        self.wait_set_aside(node);
    }

    /// Waits until nobody may use the addresses of a node that is gone, or nothing of them is left: what is.
    fn wait_set_aside(&self, node: Node) -> Vec<(String, Value)> {
        wait::until("its addresses to be quarantined", || {
            let left = self.entries_of(node)?;
            match left.iter().all(|(_, entry)| entry["state"] == "Quarantined") {
                true => Ok(left),
                false => Err(format!("{left:?}")),
            }
        })
    }

    /// The same. They are free when this returns, and were not before the quarantine was over, which began when the Node was gone and
    /// no sooner: by what their entries said, where there was time to see them. A machine that stands still for that long sees nothing
    /// of it.
    pub(crate) fn retire(&self, node: Node) {
        let gone = self.unplug(node);
        let set_aside = self.wait_set_aside(node);
        wait::until("its addresses to be free", || match self.entries_of(node)?.as_slice() {
            [] => Ok(()),
            left => Err(format!("{left:?}")),
        });
        let (soonest, free) = (utc(gone + QUARANTINE), utc(SystemTime::now()));
        for (pool, entry) in set_aside {
            let until = entry["until"].as_str().expect("a time");
            assert!(until >= soonest.as_str(), "{pool}: for less than {QUARANTINE:?}: {soonest}, {entry}");
            assert!(free.as_str() >= until, "{pool}: free at {free}: {entry}");
        }
    }

    /// Gives addresses of a pool to these nodes, when they ask. The next test's `field` takes the word back.
    pub(crate) fn reserve(&self, pool: &str, reservations: &[(Node, &str)]) {
        self.disturb();
        let mut seed = seeds().into_iter().find(|seed| seed["metadata"]["name"] == pool).expect("a pool");
        let one = |&(node, ip): &(Node, &str)| json!({"node": node.name(), "ip": ip});
        seed["spec"]["reservations"] = reservations.iter().map(one).collect();
        self.cluster.kubectl_with(&["apply", "-f", "-"], &seed.to_string());
    }

    /// The pods of a component (`agent`, `controller`), on one node or anywhere.
    pub(crate) fn pods(&self, component: &str, node: Option<Node>) -> Vec<Value> {
        let label = format!("--selector=app.kubernetes.io/component={component}");
        let pods = self.cluster.get(&["pods", "-n", "berth-system", &label]);
        let pods = pods["items"].as_array().cloned().unwrap_or_default();
        pods.into_iter()
            .filter(|pod| node.is_none_or(|node| pod["spec"]["nodeName"] == *node.name()))
            .collect()
    }

    /// The container that a node's agent runs in, when it is ready.
    pub(crate) fn agent(&self, node: Node) -> Result<String, String> {
        let pods = self.pods("agent", Some(node));
        let status = pods.first().map(|pod| &pod["status"]["containerStatuses"][0]).unwrap_or(&Value::Null);
        let container = status["containerID"].as_str().filter(|_| status["ready"] == true);
        container.map(str::to_owned).ok_or_else(|| status.to_string())
    }

    /// Waits until the node's agent is ready again, in another container than this.
    pub(crate) fn wait_restarted(&self, node: Node, before: &str) {
        wait::until("the agent to run again", || match self.agent(node)? {
            same if same == before => Err(format!("still {same}")),
            _ => Ok(()),
        });
    }

    /// Waits until the node's enactment of this policy has this condition; what it says then.
    pub(crate) fn wait_enactment(&self, node: Node, policy: &str, condition: &str) -> String {
        let name = format!("{}.{policy}", node.name());
        wait::until(&format!("{name} to be {condition}"), || {
            let enactment = self.cluster.try_get(&["nnce", &name])?;
            let conditions = enactment["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found = conditions.iter().find(|one| one["type"] == condition && one["status"] == "True");
            let message = |one: &Value| one["message"].as_str().unwrap_or_default().to_owned();
            found.map(message).ok_or_else(|| format!("{conditions:?}"))
        })
    }

    /// Makes a policy that brings this interface about, on one node or on all.
    pub(crate) fn apply_policy(&self, name: &str, node: Option<Node>, interface: &Value) {
        let selector = node.map(|node| json!({"kubernetes.io/hostname": node.name()}));
        let policy = json!({
            "apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy", "metadata": {"name": name},
            "spec": {"nodeSelector": selector.unwrap_or(json!({})), "desiredState": {"interfaces": [interface]}},
        });
        self.cluster.kubectl_with(&["apply", "-f", "-"], &policy.to_string());
    }

    /// Who holds what, by the pools' ledgers.
    pub(crate) fn held(&self) -> Result<Held, String> {
        let mut held = Held::new();
        for (pool, ledger) in self.ledgers()? {
            for (address, entry) in ledger {
                if entry["state"] == "Quarantined" {
                    continue;
                }
                let node = entry["node"].as_str().unwrap_or_default().to_owned();
                if let Some(other) = held.insert((node.clone(), pool.clone()), address.clone()) {
                    return Err(format!("{node} has {address} and {other} of {pool}"));
                }
            }
        }
        Ok(held)
    }

    /// What the pools' ledgers have, in one look.
    fn ledgers(&self) -> Result<Vec<(String, Ledger)>, String> {
        let names = POOLS.map(|(pool, _)| pool);
        let pools = self.cluster.try_get(&[&["nodeippools"], &names[..]].concat())?;
        let pools = pools["items"].as_array().cloned().unwrap_or_default();
        let name = |pool: &Value| pool["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Ok(pools.iter().map(|pool| (name(pool), entries(pool))).collect())
    }
}

/// What is in the image.
fn program() -> PathBuf {
    let program = std::env::var_os("BERTH_STATIC").map(PathBuf::from);
    program.expect("BERTH_STATIC is a static berth; 'make test-cluster' builds one")
}

/// A folder of `deploy`.
pub(crate) fn deploy(folder: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(folder).display().to_string()
}

/// What an administrator installs, but for what would only be waited for.
pub(crate) fn quick(folder: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(folder).display().to_string()
}

/// Addresses by node and pool.
pub(crate) type Held = BTreeMap<(String, String), String>;

/// What is in a pool's ledger, by address.
type Ledger = Vec<(String, Value)>;

fn entries(pool: &Value) -> Ledger {
    let allocations = pool["status"]["allocations"].as_object().cloned().unwrap_or_default();
    allocations.into_iter().collect()
}

/// The two pools and the policy that the project grew from, with a quarantine that a test can wait for.
fn seeds() -> Vec<Value> {
    let pool = |name: &str, net: &str| {
        let ip = |host: u8| format!("{net}.{host}");
        let range = json!({
            "cidr": format!("{net}.0/24"), "start": ip(1), "end": ip(10), "exclude": [ip(4), ip(7)],
        });
        json!({
            "apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "metadata": {"name": name},
            "spec": {"range": range, "quarantine": format!("{}s", QUARANTINE.as_secs())},
        })
    };
    let card = |card: &str, pool: &str| {
        let address = json!({
            "ip": format!("{{{{ capture.address-from-{pool}.ip }}}}"),
            "prefix-length": format!("{{{{ capture.address-from-{pool}.prefix-length }}}}"),
        });
        json!({
            "name": card, "type": "ethernet", "state": "up",
            "ipv4": {"enabled": true, "dhcp": false, "address": [address]},
        })
    };
    let interfaces: Vec<Value> = POOLS.map(|(pool, name)| card(name, pool)).to_vec();
    let capture: BTreeMap<String, String> = POOLS
        .map(|(pool, _)| (format!("address-from-{pool}"), format!("ippool.{pool}.allocate")))
        .into_iter()
        .collect();
    let policy = json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy", "metadata": {"name": POLICY},
        "spec": {"maxUnavailable": "100%", "capture": capture, "desiredState": {"interfaces": interfaces}},
    });
    vec![pool("traffic-1", "10.10.10"), pool("traffic-2", "10.10.11"), policy]
}
