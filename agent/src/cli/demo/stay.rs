//! The demo that stays: hosts to try things on, and how to get there from another terminal.

use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Instant;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};

use super::ground::own_name;
use super::stage::{Stage, say};
use crate::controller::known::NodeKnown;
use crate::page;

/// As many as docs/pools.md needs: two racks, one of them with two hosts, and a host in none.
const HOSTS: [&str; 4] = ["node01", "node02", "node03", "node04"];

/// Nothing is in the API but the hosts' Nodes. Goes on until it is dropped.
pub(super) async fn stay(folder: &Path, inside: bool) -> anyhow::Result<()> {
    let mut stage = Stage::set(folder).await?;
    for name in HOSTS {
        stage.join(name)?;
    }
    until_ready(&stage).await?;
    // Any port: several demos may stay.
    let page =
        page::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), stage.client.clone(), Vec::new()).await?;
    let hosts = HOSTS.join(", ");
    say(&format!("An API, a controller, and hosts with two network cards each stay up: {hosts}."));
    // The file and the names of namespaces are found in there alone, and so is the page, where no browser is.
    if inside {
        let pid = std::process::id();
        say("\nThey are in a user namespace, since this is not root. Enter it in another terminal:\n");
        say(&format!("  nsenter --target {pid} --user --net --mount --preserve-credentials --wd"));
        say("\nand there:\n");
    } else {
        say("\nIn another terminal:\n");
    }
    let config = folder.join("kubeconfig");
    say(&format!("  export KUBECONFIG={} DEMO={}", config.display(), own_name()));
    say("  kubectl get nodes                # berth node ls, berth pool ls and the like ask there, too");
    say("  ip -n $DEMO-node01 addr          # what a host has; as root");
    if !inside {
        say(&format!("\nA page to look at: http://{}", page.address));
    }
    say("\ndocs/pools.md has things to try. Ctrl-C takes everything away again.");
    pending().await
}

async fn until_ready(stage: &Stage<'_>) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(stage.client.clone());
    let begun = Instant::now();
    while nodes.list(&ListParams::default()).await?.iter().filter(|node| NodeKnown::of(node).ready).count()
        < HOSTS.len()
    {
        stage.patience(begun, "not every host has its Node").await?;
    }
    Ok(())
}
