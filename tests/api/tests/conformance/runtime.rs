//! kube's own typed client, watcher and reflector: what the agent and the controller are made of.

use std::collections::BTreeSet;

use api_tests::server::Server;
use api_tests::server::paths::{STATES, at, state};
use api_tests::wait::until;
use crds::pool::NodeIPPoolStatus;
use crds::{NodeIPPool, NodeIPPoolSpec, NodeNetworkState};
use futures_util::{StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, reflector};
use kube::{Api, Error, ResourceExt};
use serde_json::json;

use crate::support::with_a_forgotten_version;

fn typed_pool(name: &str) -> NodeIPPool {
    let spec: NodeIPPoolSpec =
        serde_json::from_value(json!({"range": {"cidr": "10.10.10.0/24"}})).expect("a spec");
    NodeIPPool::new(name, spec)
}

pub(crate) async fn typed_objects(s: Server) {
    let api: Api<NodeIPPool> = Api::all(s.client());
    let name = s.name("pool");
    let made = api.create(&PostParams::default(), &typed_pool(&name)).await.expect("created");
    assert_eq!(made.metadata.generation, Some(1));
    let mut new = made.clone();
    new.labels_mut().insert("a".to_owned(), "b".to_owned());
    let replaced = api.replace(&name, &PostParams::default(), &new).await.expect("replaced");
    assert_ne!(replaced.resource_version(), made.resource_version());
    let patch = json!({"status": {"sequence": 3}});
    let patched =
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
    assert_eq!(patched.status.as_ref().map(|status: &NodeIPPoolStatus| status.sequence), Some(3));
    let mut stale = patched.clone();
    stale.metadata.resource_version = made.resource_version();
    assert!(matches!(api.replace_status(&name, &PostParams::default(), &stale).await, Err(Error::Api(_))));
    assert_eq!(
        api.list(&ListParams::default().labels("a=b").fields(&format!("metadata.name={name}")))
            .await
            .expect("a list")
            .items
            .len(),
        1
    );
    let guard = Preconditions { uid: made.uid(), resource_version: None };
    api.delete(&name, &DeleteParams::default().preconditions(guard)).await.expect("deleted");
    assert!(api.get_opt(&name).await.expect("an answer").is_none());
}

pub(crate) async fn watcher_by_pages_and_by_stream(s: Server) {
    let group = s.name("group");
    let made: BTreeSet<String> = (0..5).map(|number| format!("{group}-{number}")).collect();
    for name in &made {
        let mut object = state(name);
        object["metadata"]["labels"] = json!({"group": group});
        s.post(STATES, &object).await.created();
    }
    let api: Api<NodeNetworkState> = Api::all(s.client());
    let by = || watcher::Config::default().labels(&format!("group={group}"));
    for config in [by().page_size(2), by().streaming_lists()] {
        let events = watcher::watcher(api.clone(), config);
        pin_mut!(events);
        assert!(matches!(events.try_next().await.expect("an event"), Some(Event::Init)));
        let mut found = BTreeSet::new();
        loop {
            match events.try_next().await.expect("an event") {
                Some(Event::InitApply(object)) => drop(found.insert(object.name_any())),
                Some(Event::InitDone) => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(found, made);
        let name = made.first().expect("one");
        s.merge(&at(STATES, name), &json!({"metadata": {"annotations": {"at": s.name("x")}}})).await.ok();
        match events.try_next().await.expect("an event") {
            Some(Event::Apply(object)) => assert_eq!(object.name_any(), *name),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) async fn reflector_follows(s: Server) {
    let group = s.name("group");
    let labelled = |name: &str| {
        let mut object = state(name);
        object["metadata"]["labels"] = json!({"group": group});
        object
    };
    let names = [s.name("state"), s.name("state"), s.name("state")];
    s.post(STATES, &labelled(&names[0])).await.created();
    let api: Api<NodeNetworkState> = Api::all(s.client());
    let (reader, writer) = reflector::store();
    let config = watcher::Config::default().labels(&format!("group={group}"));
    let stream = reflector(writer, watcher::watcher(api, config)).default_backoff().touched_objects();
    let follow = tokio::spawn(stream.for_each(|_| async {}));
    reader.wait_until_ready().await.expect("ready");
    s.post(STATES, &labelled(&names[1])).await.created();
    s.post(STATES, &labelled(&names[2])).await.created();
    s.delete(&at(STATES, &names[0])).await.ok();
    let wanted: BTreeSet<String> = [names[1].clone(), names[2].clone()].into();
    until("the reflector to have seen all", || async {
        let found: BTreeSet<String> = reader.state().iter().map(|object| object.name_any()).collect();
        if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    follow.abort();
}

/// kube's typed watch of a version of long ago: an error of code 410, from which a watcher lists anew.
pub(crate) async fn watcher_survives_an_old_version(s: Server) {
    let (s, forgotten, _) = with_a_forgotten_version(s).await;
    let api: Api<NodeNetworkState> = Api::all(s.client());
    let stream = api.watch(&kube::api::WatchParams::default(), &forgotten).await.expect("a stream");
    pin_mut!(stream);
    match stream.try_next().await.expect("an event") {
        Some(kube::api::WatchEvent::Error(status)) => {
            assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn leases_by_type(s: Server) {
    let api: Api<Lease> = Api::default_namespaced(s.client());
    let name = s.name("lease");
    let lease: Lease = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"holderIdentity": "me", "renewTime": "2024-01-01T00:00:00.123456Z"},
    }))
    .expect("a lease");
    let made = api.create(&PostParams::default(), &lease).await.expect("created");
    assert_eq!(made.namespace().as_deref(), Some("default"));
    assert_eq!(made.spec, lease.spec);
    let mut mine = made.clone();
    mine.spec.get_or_insert_default().holder_identity = Some("you".to_owned());
    api.replace(&name, &PostParams::default(), &mine).await.expect("replaced");
    match api.replace(&name, &PostParams::default(), &mine).await {
        Err(Error::Api(status)) => assert!(status.is_conflict(), "{status:?}"),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn errors_by_type(s: Server) {
    let api: Api<NodeIPPool> = Api::all(s.client());
    let name = s.name("pool");
    match api.get(&name).await {
        Err(Error::Api(status)) => assert!(status.is_not_found(), "{status:?}"),
        other => panic!("{other:?}"),
    }
    api.create(&PostParams::default(), &typed_pool(&name)).await.expect("created");
    match api.create(&PostParams::default(), &typed_pool(&name)).await {
        Err(Error::Api(status)) => assert!(status.is_already_exists(), "{status:?}"),
        other => panic!("{other:?}"),
    }
    let test = json!([{"op": "test", "path": "/spec/quarantine", "value": "1m"}]);
    match api
        .patch(
            &name,
            &PatchParams::default(),
            &Patch::<NodeIPPool>::Json(serde_json::from_value(test).expect("a patch")),
        )
        .await
    {
        Err(Error::Api(status)) => assert!(status.is_invalid(), "{status:?}"),
        other => panic!("{other:?}"),
    }
}

/// Clients compare it with their own: the embedded API is to be taken for the server that it is held against.
pub(crate) async fn the_version_is_one_that_clients_know(s: Server) {
    let info = s.client().apiserver_version().await.expect("a version");
    assert_eq!((info.major.as_str(), info.minor.as_str()), ("1", "36"));
    assert!(info.git_version.starts_with("v1.36."), "{}", info.git_version);
    assert!(info.platform.starts_with("linux/") && !info.compiler.is_empty(), "{info:?}");
    for path in ["/version", "/version/"] {
        assert_eq!(s.get(path).await.ok()["gitVersion"], info.git_version, "{path}");
    }
}
