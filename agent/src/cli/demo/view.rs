//! What the demo sees of the API, and how it prints it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use crds::{NodeIPPool, NodeNetworkConfigurationEnactment};
use kube::Client;
use kube::api::{Api, ListParams};
use policy::pool::{Pool, Status};

use crate::records;

/// Addresses of one host: pool → address.
pub(super) type Held = BTreeMap<String, String>;

/// By host: what its enactment says, and where it stands.
pub(super) async fn hosts(client: &Client) -> anyhow::Result<BTreeMap<String, (Held, String)>> {
    let api: Api<NodeNetworkConfigurationEnactment> = Api::all(client.clone());
    let mut hosts = BTreeMap::new();
    for own in api.list(&ListParams::default()).await? {
        let Ok(claims) = records::enactment::read(&own) else { continue };
        let status = own.status.unwrap_or_default();
        let held: Held = status
            .ippool
            .iter()
            .filter_map(|(pool, claims)| Some((pool.clone(), claims.allocated.first()?.clone())))
            .collect();
        let standing = format!("{:?}", records::standing::read(&status.conditions));
        let message = records::standing::message(&status.conditions).to_owned();
        let word = if standing == "Refused" { message } else { standing };
        hosts.insert(claims.node.to_string(), (held, word));
    }
    Ok(hosts)
}

/// A pool: the allocations it has, and in which state.
pub(super) async fn allocations(
    client: &Client,
    pool: &str,
) -> anyhow::Result<BTreeMap<String, (String, bool)>> {
    let api: Api<NodeIPPool> = Api::all(client.clone());
    let status = api.get(pool).await?.status.unwrap_or_default();
    let entries = status.allocations.into_iter();
    Ok(entries.map(|(ip, entry)| (ip, (entry.node, entry.state.is_some()))).collect())
}

/// The pool as a map: every address of its range, and whose it is.
pub(super) async fn map(client: &Client, name: &str) -> anyhow::Result<String> {
    let api: Api<NodeIPPool> = Api::all(client.clone());
    let object = api.get(name).await?;
    let pool = records::pool::meaning(&object)?;
    let status = object.status.unwrap_or_default();
    let held = allocations(client, name).await?;
    let mut text = format!(
        "{name}: {} of {} held\n",
        status.allocated.unwrap_or_default(),
        status.capacity.unwrap_or_default()
    );
    for range in pool.ranges() {
        for part in range.parts() {
            let mut at: IpAddr = part.start();
            for column in 0..256 {
                let cell = match held.get(&at.to_string()) {
                    Some((node, false)) => node.clone(),
                    Some((node, true)) => format!("({node})"),
                    None if is_excluded(&pool, at) => "excluded".to_owned(),
                    None => "free".to_owned(),
                };
                let _ = write!(text, "  {:<12} {cell:<10}", at.to_string());
                if column % 3 == 2 || at == part.end() {
                    text.push('\n');
                }
                if at == part.end() {
                    break;
                }
                let Some(next) = part.offset_of(at).and_then(|offset| pool.address_at(offset + 1)) else {
                    break;
                };
                at = next;
            }
        }
    }
    Ok(text)
}

fn is_excluded(pool: &Pool, ip: IpAddr) -> bool {
    matches!(pool.explain(ip), Status::Excluded(_) | Status::Gateway { .. })
}
