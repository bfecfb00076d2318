//! Networks of the cluster that no pool gives of (R102): its ServiceCIDRs, and what settings name, pods' networks say.
//!
//! Whoever serves claims bars them, as it bars other pools' ranges, and whoever shows pools shows them so. Must never keep
//! anybody from being served: an API that has no ServiceCIDRs (the embedded one, and Kubernetes before 1.33) has none to
//! keep free, and where the right to read them is lacking that is said, and the settings are what is left.
//!
//! Cost: a controller, and a page that somebody looks at, has one list and one watch of objects that hardly ever change and of
//! which there are one or two; an agent that serves itself lists them with the pools, once a minute.

use std::time::Duration;

use ipnet::IpNet;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::Client;
use kube::api::{Api, ListParams};
use policy::pool::Barred;

use crate::api::error::{Trouble, trouble, words};
use crate::api::{Watched, list};
use crate::telemetry::warn;

/// How long to wait before an API that doesn't answer is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Bars what settings and the cluster name.
pub(crate) fn bar<'a>(
    barred: &mut Barred,
    settings: &[IpNet],
    services: impl IntoIterator<Item = &'a ServiceCIDR>,
) {
    for net in settings {
        barred.net(net.trunc(), format!("network {net} of the settings"));
    }
    for net in cidrs(services) {
        barred.net(net.trunc(), format!("Service CIDR {net}"));
    }
}

/// What they name.
pub(crate) fn cidrs<'a>(services: impl IntoIterator<Item = &'a ServiceCIDR>) -> impl Iterator<Item = IpNet> {
    let cidrs = services.into_iter().filter_map(|object| object.spec.as_ref()?.cidrs.as_ref()).flatten();
    cidrs.filter_map(|text| text.parse().ok())
}

/// The ServiceCIDRs there are; an API that doesn't know them has none.
pub(crate) async fn services(client: &Client) -> Result<Vec<ServiceCIDR>, kube::Error> {
    match list::all(&Api::all(client.clone()), &ListParams::default()).await {
        Ok((all, _)) => Ok(all),
        Err(error) if trouble(&error) == Trouble::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Follows them, where the API has them and they may be read. `tell` hears that something changed.
pub(crate) async fn follow(
    client: &Client,
    tell: impl Fn() + Send + Sync + 'static,
) -> Option<Watched<ServiceCIDR>> {
    let api: Api<ServiceCIDR> = Api::all(client.clone());
    loop {
        let Err(error) = api.list(&ListParams::default().limit(1)).await else {
            let watched = Watched::start(api, ListParams::default(), move |_| tell());
            watched.started().await;
            return Some(watched);
        };
        match trouble(&error) {
            Trouble::NotFound => return None,
            Trouble::Forbidden => {
                warn(&format!(
                    "Service CIDRs are not kept free, they can't be read: {}; grant it list and watch of \
                     servicecidrs, or name them in --exclude-cidrs",
                    words(&error)
                ));
                return None;
            }
            _ => tokio::time::sleep(AGAIN).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r102_what_settings_and_service_cidrs_name_is_barred() {
        let object = |cidrs: &[&str]| -> ServiceCIDR {
            serde_json::from_value(serde_json::json!({"metadata": {"name": "x"}, "spec": {"cidrs": cidrs}}))
                .expect("an object")
        };
        let mut barred = Barred::default();
        let settings = ["10.244.0.0/16".parse().expect("a network")];
        let services = [object(&["10.96.0.0/12", "fd00:96::/112"]), object(&["no network"])];
        bar(&mut barred, &settings, &services);
        let owner = |ip: &str| barred.owner(ip.parse().expect("an address")).map(str::to_owned);
        assert_eq!(owner("10.244.3.4").as_deref(), Some("network 10.244.0.0/16 of the settings"));
        assert_eq!(owner("10.111.255.255").as_deref(), Some("Service CIDR 10.96.0.0/12"));
        assert_eq!(owner("fd00:96::ffff").as_deref(), Some("Service CIDR fd00:96::/112"));
        assert_eq!(owner("10.112.0.0"), None);
    }
}
