//! The embedded API beside a real kube-apiserver: creates, guarded patches, lists of 5,000, watch fan-out to 100, memory.
//!
//! `make bench BENCH=api`, or with `real`, `served`, `durable` or `memory` for one server alone. All in one run, through the
//! same `kube::Client`: the real one over TLS on loopback with etcd that syncs; the embedded one as `berth serve` has it, on
//! disk and over TLS on loopback, which is like with like; and inside this process, on disk and in memory, as an agent on its
//! own has it. Nothing fails on a slow machine, nor where there is no control plane: figures are printed, not asserted.

use std::path::Path;
use std::time::{Duration, Instant};

use agent::embedded::Api;
use api_tests::control_plane::{ControlPlane, Disk, Options};
use api_tests::server::paths::{ENACTMENTS, POOLS, at, enactment, pool, status};
use api_tests::server::{Server, Watch, Which};
use api_tests::{RUNTIME, secure};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

const SERVERS: [&str; 4] = ["real", "served", "durable", "memory"];
/// One after the other: enough for a 99th percentile.
const SEQUENTIAL: usize = 500;
/// A rollout's worth, as the issue asks.
const OBJECTS: usize = 5_000;
/// As many writes under way as a controller and its agents have.
const AT_ONCE: usize = 32;
const WATCHERS: usize = 100;
const CHANGES: usize = 200;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|arg| arg == name || arg == "api");
    let servers: Vec<&str> = SERVERS.into_iter().filter(|name| is_wanted(name)).collect();
    if servers.is_empty() {
        return;
    }
    println!("{:44}  {:>9}  {:>9}  {:>9}  {:>10}", "api", "p50", "p99", "most", "per second");
    for name in servers {
        match name {
            "real" => real(name),
            "served" => on_disk(|api, folder| {
                RUNTIME.block_on(async {
                    let client = secure::serve(api, &folder.join("pki")).await;
                    table(name, &Server::new(Which::Embedded, client)).await;
                });
            }),
            "durable" => on_disk(|api, _| {
                RUNTIME.block_on(async { table(name, &Server::new(Which::Embedded, api.client())).await });
            }),
            _ => RUNTIME.block_on(async {
                table(name, &Server::new(Which::Embedded, Api::in_memory().client())).await;
            }),
        }
    }
}

/// The others are worth their figures without it.
fn real(name: &str) {
    let options = Options { disk: Disk::Durable, ..Options::default() };
    let plane = match ControlPlane::start_with(&options) {
        Ok(plane) => plane,
        Err(why) => return println!("real: skipped, there is no control plane: {why}"),
    };
    let server = Server::new(Which::Real, plane.client());
    RUNTIME.block_on(async {
        table(name, &server).await;
        memory(&server).await;
    });
}

/// The embedded API on a store of its own, whose folder goes afterwards.
fn on_disk(ask: impl FnOnce(Api, &Path)) {
    let folder = std::env::temp_dir().join(format!("berth-bench-{}", std::process::id()));
    ask(Api::open(&folder.join("store")).expect("a store"), &folder);
    std::fs::remove_dir_all(&folder).expect("the store's folder");
}

async fn table(server: &str, s: &Server) {
    row(server, "create, one after the other", creates(s, SEQUENTIAL, 1).await);
    row(server, "create, 32 at once", creates(s, OBJECTS - SEQUENTIAL, AT_ONCE).await);
    row(server, "list of 5,000", lists(s).await);
    row(server, "list of 5,000 in pages of 500", pages(s).await);
    row(server, "guarded patch of one pool", patches(s).await);
    row(server, "guarded patch of enactments, 32 at once", statuses(s).await);
    row(server, "an event at each of 100 watchers", fan_out(s).await);
}

/// How long each took, and all together.
struct Took {
    each: Vec<Duration>,
    all: Duration,
}

fn row(server: &str, what: &str, mut took: Took) {
    took.each.sort_unstable();
    let at = |part: usize| took.each[(took.each.len() - 1) * part / 100].as_secs_f64() * 1e3;
    let rate = took.each.len() as f64 / took.all.as_secs_f64();
    let name = format!("{server}: {what}");
    println!("{name:44}  {:>6.2} ms  {:>6.2} ms  {:>6.2} ms  {rate:>8.0}", at(50), at(99), at(100));
}

/// An enactment as an agent writes it: a policy of a few interfaces, about 1.5 KiB.
fn typical(name: &str) -> Value {
    let mut object = enactment(name);
    object["metadata"]["labels"] = json!({"nmstate.io/node": name, "nmstate.io/policy": "static-ip"});
    object["metadata"]["annotations"] = json!({"padding": "x".repeat(1024)});
    object
}

async fn creates(s: &Server, count: usize, at_once: usize) -> Took {
    let begin = Instant::now();
    let create = |number: usize| async move {
        let object = typical(&format!("node-{at_once}-{number}.static-ip"));
        let begin = Instant::now();
        s.post(ENACTMENTS, &object).await.created();
        begin.elapsed()
    };
    let each = stream::iter(0..count).map(create).buffer_unordered(at_once).collect().await;
    Took { each, all: begin.elapsed() }
}

async fn lists(s: &Server) -> Took {
    let begin = Instant::now();
    let mut each = Vec::new();
    for _ in 0..11 {
        let begin = Instant::now();
        let list = s.get(ENACTMENTS).await;
        each.push(begin.elapsed());
        let found = list.body["items"].as_array().map_or(0, Vec::len);
        assert_eq!(found, OBJECTS);
    }
    Took { each, all: begin.elapsed() }
}

async fn pages(s: &Server) -> Took {
    let begin = Instant::now();
    let mut each = Vec::new();
    for _ in 0..5 {
        let begin = Instant::now();
        let (mut found, mut token) = (0, String::new());
        loop {
            let page = s.get(&format!("{ENACTMENTS}?limit=500&continue={token}")).await.ok();
            found += page["items"].as_array().map_or(0, Vec::len);
            match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                Some(next) => next.clone_into(&mut token),
                None => break,
            }
        }
        each.push(begin.elapsed());
        assert_eq!(found, OBJECTS);
    }
    Took { each, all: begin.elapsed() }
}

/// The ledger's write: tests the version, adds an entry, counts on.
async fn patches(s: &Server) -> Took {
    let mut now = s.post(POOLS, &pool("bench")).await.created();
    let begin = Instant::now();
    let mut each = Vec::new();
    for number in 0..SEQUENTIAL {
        let entry = json!({"node": format!("node-{number}"), "request": format!("r{number}")});
        let address = format!("/status/allocations/10.10.{}.{}", 10 + number / 200, number % 200 + 1);
        let patch = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": now["metadata"]["resourceVersion"]},
            {"op": "add", "path": address, "value": entry},
            {"op": "replace", "path": "/status/sequence", "value": number + 1},
        ]);
        let begin = Instant::now();
        now = s.json_patch(&status(POOLS, "bench"), &patch).await.ok();
        each.push(begin.elapsed());
    }
    Took { each, all: begin.elapsed() }
}

/// What an agent writes: its enactment's status, guarded by the version that it read. Each of its own.
async fn statuses(s: &Server) -> Took {
    let begin = Instant::now();
    let patch = |number: usize| async move {
        let name = format!("node-{AT_ONCE}-{number}.static-ip");
        let now = s.get(&at(ENACTMENTS, &name)).await.ok();
        let patch = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": now["metadata"]["resourceVersion"]},
            {"op": "add", "path": "/status", "value": {"policyGeneration": 1, "desiredState": {"interfaces": []}}},
        ]);
        let begin = Instant::now();
        s.json_patch(&status(ENACTMENTS, &name), &patch).await.ok();
        begin.elapsed()
    };
    let each = stream::iter(0..OBJECTS - SEQUENTIAL).map(patch).buffer_unordered(AT_ONCE).collect().await;
    Took { each, all: begin.elapsed() }
}

/// What the API server's process has in memory, by its own word, without etcd's. The embedded one's is in the agent's bench,
/// which gives each figure a process of its own.
async fn memory(s: &Server) {
    let metrics = s.get("/metrics").await.text;
    let bytes = metrics.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    let bytes: f64 = bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or_default();
    println!("{:44}  {:>6.0} MiB", "real: memory with 5,000, without etcd", bytes / f64::from(1 << 20));
}

/// From the beginning of a write until each watcher has its event.
async fn fan_out(s: &Server) -> Took {
    let name = "node-1-0.static-ip";
    let now = s.get(&format!("{ENACTMENTS}?limit=1")).await.ok();
    let version = now["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    let path = format!("{ENACTMENTS}?resourceVersion={version}");
    let mut readers = Vec::new();
    for watch in join_all((0..WATCHERS).map(|_| s.watch(&path))).await {
        readers.push(tokio::spawn(read(watch)));
    }
    let begin = Instant::now();
    let mut written = Vec::new();
    for number in 0..CHANGES {
        written.push(Instant::now());
        let patch = json!({"metadata": {"labels": {"change": number.to_string()}}});
        s.merge(&at(ENACTMENTS, name), &patch).await.ok();
    }
    let mut each = Vec::new();
    for reader in readers {
        let seen = reader.await.expect("a watcher");
        each.extend(seen.iter().zip(&written).map(|(seen, written)| *seen - *written));
    }
    Took { each, all: begin.elapsed() }
}

/// When each change was seen.
async fn read(mut watch: Watch) -> Vec<Instant> {
    let mut seen = Vec::with_capacity(CHANGES);
    while seen.len() < CHANGES {
        watch.next().await;
        seen.push(Instant::now());
    }
    seen
}
