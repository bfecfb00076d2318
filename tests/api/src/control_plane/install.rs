//! From started to usable: ready, with our CRDs, and with owner references tended.

use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use supervisor::Supervisor;

use super::StartError;
use crate::wait::{self, until};

/// Waits until the API server of this kubeconfig says that it is ready, as long as the programs that it takes run; returns
/// how to reach it.
pub(super) async fn wait_ready(
    folder: &Path,
    kubeconfig: &str,
    supervisor: &Supervisor,
    programs: &[&str],
) -> Result<Config, StartError> {
    let began = Instant::now();
    loop {
        let last = match ask_ready(&folder.join(kubeconfig)).await {
            Ok(config) => return Ok(config),
            Err(last) => last,
        };
        for program in programs {
            supervisor.check(program)?;
        }
        if began.elapsed() > wait::LIMIT {
            return Err(StartError::NotReady { last });
        }
        tokio::time::sleep(wait::PAUSE).await;
    }
}

async fn ask_ready(kubeconfig: &Path) -> Result<Config, String> {
    let said = |wrong: &dyn std::error::Error| wrong.to_string();
    let kubeconfig = Kubeconfig::read_from(kubeconfig).map_err(|wrong| said(&wrong))?;
    // Fails until the API server has written its certificate.
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(|wrong| said(&wrong))?;
    config.default_retry = false;
    let client = Client::try_from(config.clone()).map_err(|wrong| said(&wrong))?;
    let request = hyper::Request::get("/readyz").body(Vec::new()).map_err(|wrong| said(&wrong))?;
    let asked = tokio::time::timeout(Duration::from_secs(5), client.request_text(request));
    asked.await.map_err(|wrong| said(&wrong))?.map_err(|wrong| said(&wrong))?;
    Ok(config)
}

/// What etcd calls the first few revisions, all of them from the API server's own start.
const BEGINNING: u32 = 10;

/// Makes etcd forget the first revisions, as one that has run for a while has: reading so far back is Expired.
pub(super) async fn forget_the_beginning(port: u16) -> Result<(), StartError> {
    let refused =
        |source| StartError::Refused { what: "to compact etcd".to_owned(), source: Box::new(source) };
    let url = format!("http://127.0.0.1:{port}").parse().expect("a URL");
    let client = Client::try_from(Config::new(url)).map_err(refused)?;
    let body = format!("{{\"revision\": \"{BEGINNING}\"}}").into_bytes();
    let request = hyper::Request::post("/v3/kv/compaction").body(body).expect("a request");
    client.request_text(request).await.map(drop).map_err(refused)
}

/// Installs them all, and waits until each is served.
pub(super) async fn crds(client: &Client) -> Result<(), StartError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in crds::all() {
        let what = || format!("the CRD {}", crd.name_any());
        api.create(&PostParams::default(), &crd)
            .await
            .map_err(|source| StartError::Refused { what: what(), source: Box::new(source) })?;
    }
    for crd in crds::all() {
        until(&format!("{} Established", crd.name_any()), || established(&api, &crd)).await;
    }
    Ok(())
}

/// The condition, and then the real thing: an API server serves a CRD a moment after it said so.
async fn established(
    api: &Api<CustomResourceDefinition>,
    crd: &CustomResourceDefinition,
) -> Result<(), String> {
    let found = api.get(&crd.name_any()).await.map_err(|wrong| wrong.to_string())?;
    let status = found.status.ok_or("no status")?;
    let conditions = status.conditions.unwrap_or_default();
    if !conditions.iter().any(|condition| condition.type_ == "Established" && condition.status == "True") {
        return Err(format!("{conditions:?}"));
    }
    for version in &crd.spec.versions {
        let path = format!("/apis/{}/{}/{}", crd.spec.group, version.name, crd.spec.names.plural);
        let request = hyper::Request::get(path).body(Vec::new()).map_err(|wrong| wrong.to_string())?;
        api.clone().into_client().request_text(request).await.map_err(|wrong| wrong.to_string())?;
    }
    Ok(())
}

/// Owner references are tended: an object of ours whose owner is gone goes by itself.
pub(super) async fn wait_for_controllers(client: &Client) -> Result<(), StartError> {
    let api: Api<crds::NodeNetworkState> = Api::all(client.clone());
    let mut orphan = crds::NodeNetworkState::new("orphan-of-the-start", Default::default());
    orphan.metadata.owner_references =
        Some(vec![k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: "never-was".to_owned(),
            uid: "00000000-0000-0000-0000-000000000000".to_owned(),
            ..Default::default()
        }]);
    api.create(&PostParams::default(), &orphan)
        .await
        .map_err(|source| StartError::Refused { what: "an object".to_owned(), source: Box::new(source) })?;
    until("the garbage collector", || async {
        match api.get_opt(&orphan.name_any()).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    Ok(())
}
