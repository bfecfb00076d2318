//! What happens in the demo, in order; each part ends when what it tells of was seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};
use crds::{NodeIPPool, NodeNetworkConfigurationPolicy};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};

use super::stage::{Stage, say};
use super::view::{self, Held};

/// Tells the story.
pub(super) async fn tell(folder: &Path) -> anyhow::Result<()> {
    let begun = Instant::now();
    say("An API and a controller start, and three hosts with two network cards each.");
    let mut stage = Stage::set(folder).await?;
    for name in ["node01", "node02", "node03"] {
        stage.join(name)?;
    }
    say("\nTwo pools and one policy are created, as on a cluster with 'kubectl apply':");
    stage.apply().await?;
    let three = stage.until_served(3).await?;

    say("\nA fourth host joins. Nobody does anything for it:");
    stage.join("node04")?;
    stage.until_served(4).await?;

    say("\nnode02 leaves for good: its Node is deleted. Its addresses are quarantined, then free:");
    stage.leave("node02").await?;
    stage.until_free(&three["node02"]).await?;

    say(
        "\nThe agent of node01 is killed (-9), and an address is taken off its card meanwhile. It starts again:",
    );
    stage.kill_and_restart("node01", &three["node01"]).await?;

    say("\nSix more hosts join. traffic-1 has eight addresses, and there are nine hosts now:");
    for name in ["node05", "node06", "node07", "node08", "node09", "node10"] {
        stage.join(name)?;
    }
    stage.until_exhausted().await?;

    say("\nThe pool, address by address:");
    say(view::map(&stage.client, "traffic-1").await?.trim_end());
    say(&format!("\nThat was {:.0} s. Everything is taken away again.", begun.elapsed().as_secs_f64()));
    Ok(())
}

impl Stage<'_> {
    async fn apply(&self) -> anyhow::Result<()> {
        let pools: Api<NodeIPPool> = Api::all(self.client.clone());
        for (name, range) in [
            (
                "traffic-1",
                json!({"cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.10", "exclude": ["10.10.10.4", "10.10.10.7"]}),
            ),
            (
                "traffic-2",
                json!({"cidr": "10.10.11.0/24", "start": "10.10.11.1", "end": "10.10.11.10", "exclude": ["10.10.11.4", "10.10.11.7"]}),
            ),
        ] {
            let pool = json!({"metadata": {"name": name}, "spec": {"range": range, "quarantine": "3s"}});
            pools.create(&PostParams::default(), &serde_json::from_value(pool)?).await?;
        }
        let policies: Api<NodeNetworkConfigurationPolicy> = Api::all(self.client.clone());
        let policy = json!({"metadata": {"name": "static-ip"}, "spec": {
            "capture": {"first": "ippool.traffic-1.allocate", "second": "ippool.traffic-2.allocate"},
            "desiredState": {"interfaces": [card("eth1", "first"), card("eth2", "second")]},
        }});
        policies.create(&PostParams::default(), &serde_json::from_value(policy)?).await?;
        Ok(())
    }

    /// Until so many hosts have their addresses, in the API and in the kernel; each is told of as it is seen.
    async fn until_served(&mut self, count: usize) -> anyhow::Result<BTreeMap<String, Held>> {
        let mut served: BTreeMap<String, Held> = BTreeMap::new();
        let begun = Instant::now();
        while served.len() < count {
            for (name, (held, standing)) in view::hosts(&self.client).await? {
                let Some(host) = self.hosts.get(&name) else { continue };
                if standing != "Available" || served.contains_key(&name) {
                    continue;
                }
                let kernel = host.addresses()?;
                let has = |ip: &String| kernel.iter().find(|(_, on)| on == ip);
                let placed: Vec<String> = held
                    .iter()
                    .filter_map(|(pool, ip)| has(ip).map(|(card, _)| format!("{card} {ip:<12} of {pool}")))
                    .collect();
                if placed.len() == held.len() {
                    if self.told.insert(name.clone()) {
                        say(&format!("  {name}  {}", placed.join("   ")));
                    }
                    served.insert(name, held);
                }
            }
            self.patience(begun, "not every host has its addresses").await?;
        }
        let distinct: BTreeSet<&String> = served.values().flat_map(BTreeMap::values).collect();
        if distinct.len() != served.values().map(BTreeMap::len).sum::<usize>() {
            bail!("an address was given twice: {served:?}");
        }
        Ok(served)
    }

    async fn leave(&mut self, name: &str) -> anyhow::Result<()> {
        self.agents.remove(name);
        self.hosts.remove(name);
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    async fn until_free(&self, held: &Held) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut quarantined = BTreeSet::new();
        let mut free = BTreeSet::new();
        while free.len() < held.len() {
            for (pool, ip) in held {
                match view::allocations(&self.client, pool).await?.get(ip) {
                    Some((_, true)) if quarantined.insert(ip) => {
                        say(&format!("  {ip} of {pool} is quarantined"));
                    }
                    None if free.insert(ip) => {
                        say(&format!(
                            "  {ip} of {pool} is free, {:.1} s later",
                            begun.elapsed().as_secs_f64()
                        ));
                    }
                    _ => {}
                }
            }
            self.patience(begun, "an address of a host that left is not freed").await?;
        }
        Ok(())
    }

    async fn kill_and_restart(&mut self, name: &str, held: &Held) -> anyhow::Result<()> {
        if let Some(agent) = self.agents.get_mut(name) {
            agent.kill();
        }
        let host = self.hosts.get(name).context("the host")?;
        let (card, ip) = host.addresses()?.into_iter().next().context("an address")?;
        host.ip(&format!("addr del {ip}/24 dev {card}"))?;
        self.start_agent(name)?;
        let begun = Instant::now();
        let host = self.hosts.get(name).context("the host")?;
        loop {
            let kernel = host.addresses()?;
            if held.values().all(|ip| kernel.iter().any(|(_, on)| on == ip)) {
                break;
            }
            self.patience(begun, "the restarted agent doesn't put its address back").await?;
        }
        say(&format!("  {name} has {ip} again: the same as before, from its journal"));
        Ok(())
    }

    async fn until_exhausted(&mut self) -> anyhow::Result<()> {
        self.until_served(8).await?;
        let begun = Instant::now();
        loop {
            let refused = view::hosts(&self.client).await?;
            if let Some((name, (_, why))) = refused.iter().find(|(_, (_, why))| why.contains("exhausted")) {
                say(&format!("  {name}  {why}"));
                return Ok(());
            }
            self.patience(begun, "nobody says that the pool is exhausted").await?;
        }
    }
}

fn card(name: &str, capture: &str) -> Value {
    json!({"name": name, "type": "veth", "state": "up", "ipv4": {"enabled": true, "dhcp": false, "address": [
        {"ip": format!("{{{{ capture.{capture}.ip }}}}"), "prefix-length": format!("{{{{ capture.{capture}.prefix-length }}}}")},
    ]}})
}
