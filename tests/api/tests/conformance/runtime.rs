//! kube's own typed client, and what is watched with it: what the agent and the controller are made of.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use agent::api::watched::{Change, Watched};
use api_tests::server::Server;
use api_tests::server::paths::{STATES, at, state};
use api_tests::wait::until;
use crds::pool::NodeIPPoolStatus;
use crds::{NodeIPPool, NodeIPPoolSpec, NodeNetworkState};
use futures_util::{TryStreamExt, pin_mut};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Error, ResourceExt};
use serde_json::{Value, json};

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

/// Lists by pages, as a client does that has many objects to read.
pub(crate) async fn typed_lists_by_pages(s: Server) {
    let group = s.name("group");
    let made: BTreeSet<String> = (0..5).map(|number| format!("{group}-{number}")).collect();
    for name in &made {
        s.post(STATES, &grouped(name, &group)).await.created();
    }
    let api: Api<NodeNetworkState> = Api::all(s.client());
    let mut params = ListParams::default().labels(&format!("group={group}")).limit(2);
    let (mut found, mut pages) = (BTreeSet::new(), 0);
    loop {
        let page = api.list(&params).await.expect("a page");
        pages += 1;
        found.extend(page.items.iter().map(ResourceExt::name_any));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!((found, pages), (made, 3));
}

/// A list and the watch that follows it: what was there, what comes, what changes and what goes, by selection and by name.
pub(crate) async fn watched_objects_follow(s: Server) {
    for start in [Watched::start, Watched::few] {
        let group = s.name("group");
        let names = [s.name("state"), s.name("state"), s.name("state")];
        s.post(STATES, &grouped(&names[0], &group)).await.created();
        let api: Api<NodeNetworkState> = Api::all(s.client());
        let gone = Arc::new(Mutex::new(Vec::new()));
        let told = gone.clone();
        let tell: Box<dyn Fn(Change<NodeNetworkState>) + Send + Sync> = Box::new(move |change| {
            if let Change::Gone(object) = change {
                told.lock().expect("nobody panicked").push(object.name_any());
            }
        });
        let watched = start(api.clone(), ListParams::default().labels(&format!("group={group}")), tell);
        watched.started().await;
        assert!(watched.get(&names[0]).is_some());
        for name in &names[1..] {
            let object = serde_json::from_value(grouped(name, &group)).expect("a state");
            // Who watches a few by name is told by whoever made them.
            watched.note(api.create(&PostParams::default(), &object).await.expect("created"));
        }
        s.merge(&at(STATES, &names[1]), &json!({"metadata": {"annotations": {"at": "last"}}})).await.ok();
        s.delete(&at(STATES, &names[0])).await.ok();
        until("all changes to be seen", || async {
            let found: BTreeSet<String> = watched.all().iter().map(|object| object.name_any()).collect();
            let changed = watched.get(&names[1]).is_some_and(|one| one.annotations().contains_key("at"));
            let gone = gone.lock().expect("nobody panicked").clone();
            let wanted: BTreeSet<String> = names[1..].iter().cloned().collect();
            if found == wanted && changed && gone == names[..1] {
                Ok(())
            } else {
                Err(format!("{found:?}, {changed}, gone {gone:?}"))
            }
        })
        .await;
    }
}

fn grouped(name: &str, group: &str) -> Value {
    let mut object = state(name);
    object["metadata"]["labels"] = json!({"group": group});
    object
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
