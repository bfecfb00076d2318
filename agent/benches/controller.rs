//! A controller's memory and the time until it leads, on clusters of many nodes. `make bench BENCH=controller`; with
//! `BERTH=target/release/berth` of the program that people run.
//!
//! `berth controller` is a process, and so is the API (`berth serve`), with everything in it that a cluster of so many nodes has. A
//! node has its Node (with images and managed fields, as kubelets write them), a NodeNetworkState of forty interfaces and sixty routes, an
//! enactment, and an address in one of the pools; or, in the last row, a slice of one pool with ten addresses.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// How many nodes, in the rows of the table.
const NODES: [usize; 4] = [3, 500, 2_000, 5_000];
/// How many with a slice each, and how many addresses of it are held.
const SLICED: usize = 1_000;
const HELD: usize = 10;
/// Sixteen addresses.
const SLICE_BITS: usize = 4;
/// What a ledger is good for.
const PER_POOL: usize = 1000;
const AT_ONCE: usize = 64;
const PATIENCE: Duration = Duration::from_secs(1200);

fn main() -> Result<()> {
    // Cargo adds `--bench`; a name that isn't this table's is for another program.
    if std::env::args().skip(1).any(|arg| !arg.starts_with('-') && arg != "controller") {
        return Ok(());
    }
    println!(
        "{:>6}  {:>12}  {:>10}  {:>10}  {:>10}  {:>12}",
        "nodes", "JSON of all", "leads in", "peak", "then", "all written"
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for count in NODES {
        runtime.block_on(row(count, Addresses::Shared))?;
    }
    println!("the same, each with a slice of {HELD} addresses, {} in all", SLICED * HELD);
    runtime.block_on(row(SLICED, Addresses::Sliced))
}

/// Where the nodes' addresses are from.
#[derive(Clone, Copy, PartialEq)]
enum Addresses {
    /// One each, of pools of [`PER_POOL`].
    Shared,
    /// [`HELD`] each, in a slice of its own.
    Sliced,
}

async fn row(count: usize, addresses: Addresses) -> Result<()> {
    let ground = Ground::new(count).await?;
    let bytes = populate(&ground.client, count, addresses).await?;
    let begun = Instant::now();
    let controller = ground.controller()?;
    let client = ground.client.clone();
    until_counted(&client, count).await?;
    let leads = begun.elapsed();
    let (peak, then) = (controller.memory("VmHWM")?, controller.memory("VmRSS")?);
    // Every host reports once more, as they do within minutes of a busy cluster's life.
    let states: Api<crds::NodeNetworkState> = Api::all(client.clone());
    each(count, |i| {
        let patch = json!({"status": {"stamp": format!("again-{i}")}});
        let states = states.clone();
        async move {
            states.patch_status(&name(i), &PatchParams::default(), &Patch::Merge(patch)).await?;
            Ok(0)
        }
    })
    .await?;
    until_counted(&client, count).await?;
    let after = controller.memory("VmHWM")?;
    println!(
        "{count:>6}  {:>9.1} MB  {:>8.1} s  {peak:>6.1} MiB  {then:>6.1} MiB  {after:>8.1} MiB",
        bytes as f64 / 1e6,
        leads.as_secs_f64()
    );
    Ok(())
}

fn name(i: usize) -> String {
    format!("node{i:05}")
}

/// The address of the i-th node: its pool has a range of its own.
fn address(i: usize) -> String {
    let (pool, at) = (i / PER_POOL, i % PER_POOL + 1);
    format!("10.{}.{}.{}", 64 + pool, at / 256, at % 256)
}

/// The name of the pool of the i-th node.
fn pool(i: usize) -> String {
    format!("pool{}", i / PER_POOL)
}

/// A policy's controller has counted all nodes when it leads: the last thing that it does at its start.
async fn until_counted(client: &Client, count: usize) -> Result<()> {
    let policies: Api<crds::NodeNetworkConfigurationPolicy> = Api::all(client.clone());
    let begun = Instant::now();
    loop {
        let policy = json!(policies.get("policy").await?);
        let conditions = policy["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let said = format!("{count}/{count}");
        if conditions.iter().any(|one| one["message"].as_str().is_some_and(|text| text.contains(&said))) {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "it never counted {said}: {policy:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Makes all objects; how much JSON they are.
async fn populate(client: &Client, count: usize, addresses: Addresses) -> Result<usize> {
    let policy = json!({
        "metadata": {"name": "policy"},
        "spec": {"capture": {"address": "ippool.pool0.allocate"}, "desiredState": desired("{{ capture.address.ip }}")},
    });
    let mut bytes = create::<crds::NodeNetworkConfigurationPolicy>(client, &policy).await?;
    let policies: Api<crds::NodeNetworkConfigurationPolicy> = Api::all(client.clone());
    let policy = policies.get("policy").await?.metadata.uid.unwrap_or_default();
    for first in (0..count).step_by(PER_POOL) {
        let mut range = json!({"cidr": format!("10.{}.0.0/16", 64 + first / PER_POOL)});
        if addresses == Addresses::Sliced {
            range["perNodeHostBits"] = json!(SLICE_BITS);
        }
        let object = json!({"metadata": {"name": pool(first)}, "spec": {"range": range}});
        bytes += create::<crds::NodeIPPool>(client, &object).await?;
    }
    bytes += each(count, |i| {
        let (client, policy) = (client.clone(), policy.clone());
        async move { host(&client, i, &policy, addresses).await }
    })
    .await?;
    Ok(bytes)
}

async fn each<F>(count: usize, work: impl Fn(usize) -> F) -> Result<usize>
where
    F: Future<Output = Result<usize>>,
{
    let all = futures_util::stream::iter(0..count).map(work).buffer_unordered(AT_ONCE);
    all.try_fold(0, |sum, bytes| async move { Ok(sum + bytes) }).await
}

/// An address that a node has, and the claim by which it has it.
struct Held {
    ip: String,
    capture: String,
    id: String,
}

fn held(i: usize, addresses: Addresses) -> Vec<Held> {
    let many = if addresses == Addresses::Sliced { HELD } else { 1 };
    let one = |n: usize| {
        let ip = match addresses {
            Addresses::Shared => address(i),
            Addresses::Sliced => in_slice(i, n + 1),
        };
        Held { ip, capture: format!("address{n}"), id: format!("{:032x}", i * HELD + n) }
    };
    (0..many).map(one).collect()
}

/// An address of a node's slice. The first block is left out: hosts may not have the network's own address.
fn in_slice(i: usize, n: usize) -> String {
    let at = ((i + 1) << SLICE_BITS) + n;
    format!("10.64.{}.{}", at / 256, at % 256)
}

/// One node's objects.
async fn host(client: &Client, i: usize, policy: &str, addresses: Addresses) -> Result<usize> {
    let mut bytes = create::<Node>(client, &node(i)).await?;
    let nodes: Api<Node> = Api::all(client.clone());
    let uid = nodes.get(&name(i)).await?.metadata.uid.unwrap_or_default();
    let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": name(i), "uid": uid}]);
    let metadata = json!({"name": name(i), "ownerReferences": owner});
    let held = held(i, addresses);
    let shown =
        |Held { ip, id, .. }: &Held| json!({"ip": ip, "pool": pool(i), "id": id, "state": "Journalled"});
    let state = json!({"metadata": metadata, "status": {
        "currentState": current(i), "stamp": "first", "pooledAddresses": held.iter().map(shown).collect::<Vec<_>>(),
    }});
    bytes += create::<crds::NodeNetworkState>(client, &state).await?;
    let request = |Held { ip, capture, id }: &Held| {
        let holds = json!({"ip": ip, "sequence": 1, "poolUID": "x"});
        (capture.clone(), json!({"id": id, "want": true, "holds": holds}))
    };
    let captured = |Held { ip, capture, .. }: &Held| {
        (capture.clone(), json!({"state": {"ip": ip, "prefix-length": 16}}))
    };
    let claims = json!({
        "requests": held.iter().map(request).collect::<Map<_, _>>(),
        "grants": {}, "refused": {}, "allocated": held.iter().map(|one| &one.ip).collect::<Vec<_>>(),
    });
    if addresses == Addresses::Sliced {
        bytes += create::<crds::NodeIPSlice>(client, &slice(i, &uid, &held)).await?;
    }
    let enactment = json!({
        "metadata": {
            "name": format!("{}.policy", name(i)), "ownerReferences": owner,
            "labels": {"nmstate.io/node": name(i), "nmstate.io/policy": "policy"},
            "finalizers": [crds::names::finalizer::ADDRESSES],
        },
        "status": {
            "desiredState": desired(&address(i)), "policyGeneration": 1, "policyUID": policy,
            "capturedStates": held.iter().map(captured).collect::<Map<_, _>>(),
            "ippool": {(pool(i)): claims},
            "conditions": [{"type": "Available", "status": "True", "reason": "SuccessfullyConfigured", "message": "successfully reconciled"}],
        },
    });
    Ok(bytes + create::<crds::NodeNetworkConfigurationEnactment>(client, &enactment).await?)
}

/// A node's slice, as its agent has written it.
fn slice(i: usize, uid: &str, held: &[Held]) -> Value {
    let entry = |Held { ip, capture, id }: &Held| {
        let entry = json!({"node": name(i), "nodeUID": uid, "policy": "policy", "capture": capture, "request": id,
            "sequence": 1, "since": "2026-01-01T00:00:00Z", "kind": "dynamic"});
        (ip.clone(), entry)
    };
    let first = in_slice(i, 0);
    json!({
        "metadata": {"name": format!("{}.{first}", pool(i)), "finalizers": [crds::names::finalizer::ADDRESSES]},
        "spec": {"pool": pool(i), "cidr": format!("{first}/{}", 32 - SLICE_BITS), "node": name(i), "nodeUID": uid},
        "status": {"sequence": 1, "allocations": held.iter().map(entry).collect::<Map<_, _>>()},
    })
}

/// Creates an object, and its status where that is written apart.
async fn create<K>(client: &Client, object: &Value) -> Result<usize>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let typed: K = serde_json::from_value(object.clone()).context("an object")?;
    api.create(&PostParams::default(), &typed).await?;
    if !object["status"].is_null() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let patch = Patch::Merge(json!({"status": object["status"]}));
        api.patch_status(name, &PatchParams::default(), &patch).await?;
    }
    Ok(object.to_string().len())
}

fn node(i: usize) -> Value {
    let image = |n: usize| {
        let names = [
            format!("registry.example/team/service-{n}@sha256:{n:064x}"),
            format!("registry.example/team/service-{n}:v{n}"),
        ];
        json!({"names": names, "sizeBytes": 123_456_789})
    };
    let images: Vec<Value> = (0..50).map(image).collect();
    json!({
        "metadata": {
            "name": name(i),
            "labels": {"kubernetes.io/hostname": name(i), "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
            "annotations": {"node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "status": {
            "images": images,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}],
            "nodeInfo": {"architecture": "amd64", "bootID": name(i), "containerRuntimeVersion": "containerd://2.0.0", "kernelVersion": "6.1.0",
                "kubeProxyVersion": "", "kubeletVersion": "v1.36.0", "machineID": name(i), "operatingSystem": "linux", "osImage": "Debian", "systemUUID": name(i)},
        },
    })
}

/// What such a host's agent reports: cards, bridges, the pods' ends of their wires, and routes to them.
fn current(i: usize) -> Value {
    let interface = |n: usize| {
        json!({
            "name": format!("veth{n:08x}"), "type": "veth", "state": "up", "mtu": 1450, "mac-address": format!("02:00:00:00:{:02X}:{n:02X}", i % 256),
            "ipv4": {"enabled": true, "dhcp": false, "address": [{"ip": if n == 0 { address(i) } else { format!("169.254.{n}.1") }, "prefix-length": 24}]},
            "ipv6": {"enabled": true, "dhcp": false, "autoconf": false, "address": [{"ip": format!("fe80::{n:x}"), "prefix-length": 64}]},
            "accept-all-mac-addresses": false, "min-mtu": 68, "max-mtu": 65535,
        })
    };
    let route = |n: usize| {
        json!({
            "destination": format!("172.16.{n}.0/24"), "next-hop-address": "169.254.1.1",
            "next-hop-interface": format!("veth{n:08x}"), "table-id": 254, "metric": 100,
        })
    };
    let interfaces: Vec<Value> = (0..40).map(interface).collect();
    let routes: Vec<Value> = (0..60).map(route).collect();
    json!({"interfaces": interfaces, "routes": {"running": routes, "config": routes[..10].to_vec()}, "dns-resolver": {"running": {"server": ["10.0.0.1"]}}})
}

fn desired(ip: &str) -> Value {
    json!({"interfaces": [{"name": "eth1", "type": "ethernet", "state": "up",
        "ipv4": {"enabled": true, "dhcp": false, "address": [{"ip": ip, "prefix-length": 16}]}}]})
}

/// An API, and a folder for all.
struct Ground {
    folder: PathBuf,
    client: Client,
    _api: Process,
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Ground {
    async fn new(count: usize) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("berth-bench-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let config = folder.join("kubeconfig");
        let mut serve = berth();
        serve.arg("serve").arg("--state-dir").arg(folder.join("api"));
        serve.args(["--listen", "127.0.0.1:0", "--write-kubeconfig"]).arg(&config);
        let api = Process::start(serve, &folder.join("serve.log"))?;
        let begun = Instant::now();
        while !config.exists() {
            ensure!(begun.elapsed() < PATIENCE, "'berth serve' never wrote its kubeconfig");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let read = kube::config::Kubeconfig::read_from(&config)?;
        let config = kube::Config::from_custom_kubeconfig(read, &Default::default()).await?;
        Ok(Self { folder, client: Client::try_from(config)?, _api: api })
    }

    fn controller(&self) -> Result<Process> {
        let mut command = berth();
        command
            .args(["controller", "--health-address=none", "--kubeconfig"])
            .arg(self.folder.join("kubeconfig"));
        Process::start(command, &self.folder.join("controller.log"))
    }
}

/// The program that is measured.
fn berth() -> Command {
    Command::new(std::env::var_os("BERTH").unwrap_or_else(|| env!("CARGO_BIN_EXE_berth").into()))
}

/// Killed when dropped.
struct Process(Child);

impl Process {
    fn start(mut command: Command, log: &Path) -> Result<Self> {
        let log = std::fs::File::create(log)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(Self(command.spawn().context("start berth")?))
    }

    /// A line of its status, in MiB.
    fn memory(&self, field: &str) -> Result<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line =
            text.lines().find_map(|line| line.strip_prefix(&format!("{field}:"))).context("no such line")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib / 1024.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
