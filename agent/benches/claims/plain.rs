//! What the crowd is compared to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use api_tests::cluster::Cluster;
use crds::NodeIPPool;
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use futures_util::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::count::Counted;
use crate::crowd::{Grants, make_pool};
use crate::progress;

/// So many small objects, by as many clients at once.
pub(crate) async fn creates(cluster: &Cluster, counted: &Counted, many: usize) -> Result<Grants> {
    let start = Arc::new(Barrier::new(many));
    let one = |number: usize| {
        let (client, counted, start) = (cluster.client(), counted.clone(), start.clone());
        async move {
            connect(&Api::<ConfigMap>::namespaced(client.clone(), "default")).await?;
            let api: Api<ConfigMap> = Api::namespaced(counted.client(client), "default");
            let object =
                json!({"metadata": {"name": format!("small-{number}"), "labels": {"bench": "claims"}}});
            let object = serde_json::from_value(object)?;
            start.wait().await;
            let begun = Instant::now();
            api.create(&PostParams::default(), &object).await?;
            anyhow::Ok(begun.elapsed())
        }
    };
    let tasks = try_join_all((0..many).map(|number| tokio::spawn(one(number)))).await?;
    let took = tasks.into_iter().collect::<Result<Grants>>()?;
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    api.delete_collection(&DeleteParams::default(), &ListParams::default().labels("bench=claims")).await?;
    Ok(took)
}

/// A connection is there before the clock runs.
async fn connect<K>(api: &Api<K>) -> Result<()>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    api.list_metadata(&ListParams::default().limit(1)).await?;
    Ok(())
}

/// One claim after the other.
pub(crate) async fn one_by_one(cluster: &Cluster, counted: &Counted, many: usize) -> Result<Grants> {
    let api = fresh_pool(cluster, counted).await?;
    let begun = Instant::now();
    let mut all = Grants::new();
    for number in 0..many {
        ensure!(take(&api, number).await?, "nobody else writes");
        all.push(begun.elapsed());
        if number % 250 == 249 {
            progress(begun, &format!("{} of {many}, one after the other", number + 1));
        }
    }
    gone(&api).await?;
    Ok(all)
}

/// Everybody at once, again and again until it is written; for so long. Those that are through by then.
pub(crate) async fn naive(
    cluster: &Cluster,
    counted: &Counted,
    many: usize,
    patience: Duration,
) -> Result<Grants> {
    let first = fresh_pool(cluster, counted).await?;
    let start = Arc::new(Barrier::new(many));
    let begun = Instant::now();
    let one = |number: usize| {
        let (client, start) = (counted.client(cluster.client()), start.clone());
        async move {
            let api: Api<NodeIPPool> = Api::all(client);
            connect(&api).await?;
            start.wait().await;
            let begun = Instant::now();
            while !take(&api, number).await? {
                if begun.elapsed() > patience {
                    return Ok(None);
                }
            }
            anyhow::Ok(Some(begun.elapsed()))
        }
    };
    let mut tasks: FuturesUnordered<_> = (0..many).map(|number| tokio::spawn(one(number))).collect();
    let mut all = Grants::new();
    while let Some(task) = tasks.next().await {
        all.extend(task??);
        if all.len().is_multiple_of(16) {
            progress(begun, &format!("{} of {many}, the naive way", all.len()));
        }
    }
    gone(&first).await?;
    Ok(all)
}

const NAME: &str = "plain";

async fn fresh_pool(cluster: &Cluster, counted: &Counted) -> Result<Api<NodeIPPool>> {
    let api: Api<NodeIPPool> = Api::all(counted.client(cluster.client()));
    make_pool(&api, NAME, "10.99.0.0/16", None).await?;
    Ok(api)
}

async fn gone(api: &Api<NodeIPPool>) -> Result<()> {
    crate::crowd::force_away(api, NAME).await
}

/// Reads, takes the first free address, writes. Whether nobody else wrote between.
async fn take(api: &Api<NodeIPPool>, number: usize) -> Result<bool> {
    let mut pool = api.get(NAME).await?;
    let mut status: Value = json!(pool.status.clone().unwrap_or_default());
    let ip = (1..u16::MAX)
        .map(|offset| format!("10.99.{}.{}", offset >> 8, offset & 255))
        .find(|ip| status["allocations"].get(ip).is_none())
        .context("no address")?;
    status["allocations"][ip] = json!({"node": format!("n{number}"), "request": format!("r{number}")});
    status["sequence"] = json!(status["sequence"].as_i64().unwrap_or_default() + 1);
    pool.status = Some(serde_json::from_value(status)?);
    match api.replace_status(&pool.name_any(), &PostParams::default(), &pool).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => bail!(error),
    }
}
