//! An agent as a person runs it: from a policy to the address on the card, drift put back, and what it costs when there is
//! nothing to do. `make bench BENCH=agents`; as root. With `BERTH=target/release/berth` of the program that people run.
//!
//! `berth controller` and `berth agent` are processes; the API is in this one, durable, so that every request of the agent
//! can be counted. The kernel is heard, not asked: times end with its notification.

mod ear;
mod ground;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use crds::{NodeIPPool, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};

use ear::{Ear, Heard};
use ground::{Ground, Process};

const ROUNDS: usize = 200;
const IDLE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(2);

fn main() -> Result<()> {
    // Cargo adds `--bench`; a name that isn't this table's is for another program.
    if std::env::args().skip(1).any(|arg| !arg.starts_with('-') && arg != "agents") {
        return Ok(());
    }
    ensure!(nix::unistd::geteuid().is_root(), "the table 'agents' needs root");
    without_fault_points()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let ground = Ground::new().await?;
        let mut ear = Ear::in_namespace(&ground.netns)?;
        let _controller = ground.controller()?;
        let agent = ground.agent()?;
        let client = ground.client();
        prepare(&client).await?;
        // First: Events of the rounds are written for a quarter of an hour, one after the other.
        idle(&ground, &client, &agent, &mut ear).await?;
        rounds(&ground, &client, &mut ear).await
    })
}

/// A release has none, not even their names.
fn without_fault_points() -> Result<()> {
    let binary = std::fs::read(ground::berth())?;
    let has = |word: &[u8]| binary.windows(word.len()).any(|part| part == word);
    ensure!(has(b"nmstate.io"), "the binary is read");
    ensure!(!has(b"BERTH_FAULT") && !has(b"journal-holding"), "fault points are in a release");
    Ok(())
}

async fn prepare(client: &Client) -> Result<()> {
    let pool = json!({"metadata": {"name": "pool"}, "spec": {"range": {"cidr": "10.77.0.0/16"}}});
    let pools: Api<NodeIPPool> = Api::all(client.clone());
    pools.create(&PostParams::default(), &serde_json::from_value(pool)?).await?;
    let proven = |pool: &Value| !pool["status"]["rebuiltFor"].is_null();
    until("a proven pool", || async {
        Ok(pools.get_opt("pool").await?.is_some_and(|pool| proven(&json!(pool))))
    })
    .await?;
    let states: Api<crds::NodeNetworkState> = Api::all(client.clone());
    until("an agent", || async { Ok(states.get_opt(ground::NODE).await?.is_some()) }).await
}

async fn create(client: &Client) -> Result<()> {
    let spec = json!({
        "capture": {"address": "ippool.pool.allocate"},
        "desiredState": {"interfaces": [{"name": "eth0", "type": "veth", "state": "up", "ipv4": {
            "enabled": true, "dhcp": false, "address": [
                {"ip": "{{ capture.address.ip }}", "prefix-length": "{{ capture.address.prefix-length }}"},
            ]}}]},
    });
    let policy = serde_json::from_value(json!({"metadata": {"name": "policy"}, "spec": spec}))?;
    let policies: Api<NodeNetworkConfigurationPolicy> = Api::all(client.clone());
    policies.create(&PostParams::default(), &policy).await?;
    Ok(())
}

fn enactments(client: &Client) -> (Api<NodeNetworkConfigurationEnactment>, String) {
    (Api::all(client.clone()), crds::names::enactment_name(ground::NODE, "policy"))
}

async fn until_available(client: &Client) -> Result<()> {
    let (api, name) = enactments(client);
    until("available", || async {
        let own = json!(api.get_opt(&name).await?);
        Ok(own["status"]["conditions"][0]["status"] == "True")
    })
    .await
}

/// The policy is deleted, and its address comes back.
async fn release(client: &Client, ear: &mut Ear) -> Result<()> {
    let policies: Api<NodeNetworkConfigurationPolicy> = Api::all(client.clone());
    let (enactments, name) = enactments(client);
    policies.delete("policy", &DeleteParams::default()).await?;
    ear.next(Heard::Removed)?;
    until("released", || async { Ok(enactments.get_opt(&name).await?.is_none()) }).await
}

/// A policy is created, its address taken away and put back, and it is deleted; again and again.
async fn rounds(ground: &Ground, client: &Client, ear: &mut Ear) -> Result<()> {
    let (mut claims, mut said, mut repairs) = (Vec::new(), Vec::new(), Vec::new());
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..ROUNDS {
        ground.counted.take();
        let begun = Instant::now();
        create(client).await?;
        let on = ear.next(Heard::Added)?;
        claims.push(on.saturating_duration_since(begun));
        until_available(client).await?;
        said.push(begun.elapsed());
        for (what, count) in ground.counted.take() {
            *asked.entry(what).or_default() += count;
        }
        ground.take_address_away()?;
        let off = ear.next(Heard::Removed)?;
        repairs.push(ear.next(Heard::Added)?.saturating_duration_since(off));
        release(client, ear).await?;
    }
    println!("{:44}  {:>10}  {:>10}  {:>10}", "agents", "p50", "p99", "goal, p50");
    row("policy created: address on the card", claims, "150 ms");
    row("policy created: enactment Available", said, "");
    row("drift: address gone: put back", repairs, "50 ms");
    let per = |count: &usize| *count as f64 / ROUNDS as f64;
    let asked: Vec<String> = asked.iter().map(|(what, count)| format!("{what} {:.1}", per(count))).collect();
    println!("requests of the agent per policy: {}", asked.join(", "));
    Ok(())
}

fn row(what: &str, mut times: Vec<Duration>, goal: &str) {
    times.sort();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
    let text = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
    println!("{what:44}  {:>10}  {:>10}  {goal:>10}", text(at(50)), text(at(99)));
}

/// One policy is applied, and nothing happens.
async fn idle(ground: &Ground, client: &Client, agent: &Process, ear: &mut Ear) -> Result<()> {
    create(client).await?;
    until_available(client).await?;
    // Whatever follows from that is over when two looks, some seconds apart, find nothing but the Lease.
    loop {
        ground.counted.take();
        tokio::time::sleep(Duration::from_secs(6)).await;
        if ground.counted.take().keys().all(|what| what.contains("leases")) {
            break;
        }
    }
    let (cpu, begun) = (agent.cpu()?, Instant::now());
    tokio::time::sleep(IDLE).await;
    let used = agent.cpu()?.saturating_sub(cpu).as_secs_f64() / begun.elapsed().as_secs_f64();
    let asked: Vec<String> =
        ground.counted.take().iter().map(|(what, count)| format!("{what} {count}")).collect();
    println!(
        "idle for {} s: RSS {} (goal 15 MiB), of which private {}; CPU {:.2} %; requests: {}",
        IDLE.as_secs(),
        agent.memory("Rss")?,
        agent.memory("Private_Dirty")?,
        used * 100.0,
        asked.join(", ")
    );
    ear.next(Heard::Added)?;
    release(client, ear).await
}

async fn until<F: Future<Output = Result<bool>>>(what: &str, holds: impl Fn() -> F) -> Result<()> {
    let begun = Instant::now();
    while !holds().await? {
        ensure!(begun.elapsed() < PATIENCE, "never {what}");
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}
