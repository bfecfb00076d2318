//! What the page is told, and who is let in.

use std::net::SocketAddr;

use crds::{NodeIPPool, NodeIPSlice, NodeNetworkConfigurationPolicy};
use hyper::header::{AUTHORIZATION, CONTENT_SECURITY_POLICY, HOST};
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::Value;

use super::*;
use crate::embedded;

struct Look {
    api: embedded::Api,
    page: Page,
}

impl Look {
    fn new(address: &str) -> Self {
        let api = embedded::Api::in_memory();
        Self::by(address, api.client(), api, Vec::new())
    }

    /// By another way to the API, with settings.
    fn by(address: &str, client: Client, api: embedded::Api, exclude: Vec<IpNet>) -> Self {
        let address: SocketAddr = address.parse().unwrap();
        let page = Page { gate: Gate::new(address, client.clone()), sight: Sight::new(client, exclude) };
        Self { api, page }
    }

    async fn pool(&self, name: &str, spec: Value, allocations: Value) {
        let pools: Api<NodeIPPool> = Api::all(self.api.client());
        let pool = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
        pools.create(&PostParams::default(), &pool).await.unwrap();
        self.ledger(name, allocations).await;
    }

    async fn ledger(&self, name: &str, allocations: Value) {
        let pools: Api<NodeIPPool> = Api::all(self.api.client());
        let status = Patch::Merge(json!({"status": {"sequence": 1, "allocations": allocations}}));
        pools.patch_status(name, &PatchParams::default(), &status).await.unwrap();
    }

    async fn slice(&self, pool: &str, first: &str, node: &str, allocations: Value) {
        let slices: Api<NodeIPSlice> = Api::all(self.api.client());
        let name = format!("{pool}.{first}");
        let spec = json!({"pool": pool, "cidr": format!("{first}/28"), "node": node, "nodeUID": node});
        let slice = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
        slices.create(&PostParams::default(), &slice).await.unwrap();
        let status = Patch::Merge(json!({"status": {"sequence": 1, "allocations": allocations}}));
        slices.patch_status(&name, &PatchParams::default(), &status).await.unwrap();
    }

    async fn asked(&self, path: &str, headers: &[(HeaderName, &str)]) -> Answer {
        let mut request = Request::get(path).header(HOST, "localhost:9467");
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        self.page.answer(&request.body(()).unwrap()).await
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.asked(path, &[]).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&body).unwrap()
    }
}

fn held(node: &str) -> Value {
    json!({"node": node, "nodeUID": node, "policy": "static-ip", "capture": "address", "request": node, "sequence": 1})
}

fn seeds() -> Value {
    let range = json!({"cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.10", "exclude": ["10.10.10.4", "10.10.10.7"]});
    json!({"range": range, "reservations": [{"node": "node09", "ip": "10.10.10.9"}]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_address_of_a_small_pool_is_told() {
    let look = Look::new("127.0.0.1:9467");
    let aside = json!({"node": "node02", "request": "b", "state": "Quarantined", "until": "2026-01-01T00:00:00Z", "reason": "NodeGone"});
    look.pool("traffic-1", seeds(), json!({"10.10.10.1": held("node01"), "10.10.10.2": aside})).await;
    let map = look.get("/map?pool=traffic-1&range=default&family=4").await;
    let states: Vec<&str> =
        map["cells"].as_array().unwrap().iter().map(|cell| cell["state"].as_str().unwrap()).collect();
    let free = "free";
    assert_eq!(
        states,
        ["held", "quarantined", free, "excluded", free, free, "excluded", free, "reserved", free]
    );
    assert_eq!(map["cells"][0]["node"], "node01");
    assert_eq!(map["cells"][1]["reason"], "NodeGone");
    let pools = look.get("/pools").await;
    assert_eq!(pools["pools"][0]["name"], "traffic-1");
    assert_eq!(pools["pools"][0]["quarantined"], 1);
}

/// R102: what settings and the cluster keep free is not free to look at, and it is said whose it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r102_networks_that_no_pool_gives_of_are_told() {
    let api = embedded::Api::in_memory();
    let behind = api.client();
    // As a cluster's API: this one has no ServiceCIDRs.
    let services = json!({"kind": "ServiceCIDRList", "apiVersion": "networking.k8s.io/v1", "metadata": {"resourceVersion": "1"},
        "items": [{"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.10.10.8/29"]}}]});
    let cluster = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (behind, services) = (behind.clone(), services.to_string());
        async move {
            let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
            match path.ends_with("/servicecidrs") {
                true if query.contains("watch") => std::future::pending().await,
                true => Ok(Response::new(kube::client::Body::from(services.into_bytes()))),
                false => Ok::<_, tower::BoxError>(behind.send(request).await?),
            }
        }
    });
    let exclude = vec!["10.10.10.0/31".parse().unwrap()];
    let look = Look::by("127.0.0.1:9467", Client::new(cluster, "default"), api, exclude);
    look.pool("traffic-1", seeds(), json!({})).await;
    let map = look.get("/map?pool=traffic-1&range=default&family=4").await;
    let states: Vec<&str> =
        map["cells"].as_array().unwrap().iter().map(|cell| cell["state"].as_str().unwrap()).collect();
    let (free, barred) = ("free", "barred");
    let drawn = [barred, free, free, "excluded", free, free, "excluded", barred, "reserved", barred];
    assert_eq!(states, drawn);
    let whose = |ip: &str| format!("/address?pool=traffic-1&ip={ip}");
    let why = look.get(&whose("10.10.10.1")).await["why"].clone();
    assert_eq!(why, "network 10.10.10.0/31 of the settings has it too, so nobody gets it");
    let why = look.get(&whose("10.10.10.10")).await["why"].clone();
    assert_eq!(why, "Service CIDR 10.10.10.8/29 has it too, so nobody gets it");
}

/// A range that is larger than a screen: counted in stretches, and looked into.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_ranges_are_told_in_stretches() {
    let look = Look::new("127.0.0.1:9467");
    look.pool("wide", json!({"range": {"cidr": "10.0.0.0/16"}}), json!({"10.0.200.7": held("node01")})).await;
    let map = look.get("/map?pool=wide&range=default&family=4").await;
    let cells = map["cells"].as_array().unwrap();
    assert_eq!((map["bits"].as_u64(), cells.len()), (Some(6), 1024));
    // 10.0.0.1 is offset 0: .200.7 is 51206, in the cell of 51200.
    assert_eq!(cells[800]["counts"], json!(["1", "0", "0", "0", "63", "0"]));
    assert_eq!(cells[0]["counts"], json!(["0", "0", "0", "64", "0", "0"]));
    let near = look.get("/map?pool=wide&range=default&family=4&from=51200&bits=0").await;
    assert_eq!((near["from"].as_str(), near["bits"].as_u64()), (Some("51200"), Some(0)));
    assert_eq!(near["cells"][6]["node"], "node01");
    // All of IPv6 that can be written: no number is too large.
    look.pool("v6", json!({"range": {"cidr": "fd00::/8"}}), json!({"fd00::5": held("node01")})).await;
    // Somebody looks already: what comes later is not waited for.
    while look.get("/search?q=fd00::5").await["count"] != 1 {}
    let map = look.get("/map?pool=v6&range=default&family=6").await;
    assert_eq!(map["cells"].as_array().unwrap().len(), 1024);
    assert_eq!(map["cells"][0]["counts"][0], "1");
    let near = look.get("/map?pool=v6&range=default&family=6&from=0&bits=0").await;
    assert_eq!(near["cells"][4]["node"], "node01");
}

/// A sliced pool: of each block whose it is and how full, of each address which block it is in; followed as slices come and go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slices_are_told_with_their_owners() {
    let look = Look::new("127.0.0.1:9467");
    look.pool("sliced", json!({"range": {"cidr": "10.20.0.0/16", "perNodeHostBits": 4}}), json!({})).await;
    let aside = json!({"node": "node02", "request": "b", "state": "Quarantined", "until": "2026-01-01T00:00:00Z", "reason": "NodeGone"});
    look.slice(
        "sliced",
        "10.20.0.0",
        "node01",
        json!({"10.20.0.1": held("node01"), "10.20.0.2": held("node01")}),
    )
    .await;
    look.slice("sliced", "10.20.0.32", "node02", json!({"10.20.0.33": aside})).await;
    let near = "/map?pool=sliced&range=default&family=4&from=0&bits=0";
    let mut map = look.get(near).await;
    // Slices are not waited for.
    while map["slices"]["count"] != 2 {
        map = look.get(near).await;
    }
    let first = json!({"cidr": "10.20.0.0/28", "node": "node01", "ip": "10.20.0.1", "offset": "0", "held": "2", "quarantined": "0", "free": "13"});
    let second = json!({"cidr": "10.20.0.32/28", "node": "node02", "ip": "10.20.0.32", "offset": "31", "held": "0", "quarantined": "1", "free": "15"});
    assert_eq!(map["slices"]["shown"], json!([first, second]));
    assert_eq!(map["cells"][1]["state"], "held");
    assert_eq!(map["cells"][14]["slice"], json!({"cidr": "10.20.0.0/28", "node": "node01"}));
    assert!(map["cells"][15]["slice"].is_null(), "the next block is nobody's");
    // From afar: how many have something there, and who.
    let far = look.get("/map?pool=sliced&range=default&family=4").await;
    assert_eq!(
        (&far["cells"][0]["owners"], &far["cells"][0]["nodes"]),
        (&json!(2), &json!(["node01", "node02"]))
    );
    assert!(far["cells"][1]["owners"].is_null());
    assert_eq!(look.get("/pools").await["pools"][0]["slices"], 2);
    // What was there when somebody began to look is no news; what goes is.
    let was = |ip: &'static str| {
        let look = &look;
        async move { look.get(&format!("/address?pool=sliced&ip={ip}")).await }
    };
    let told = was("10.20.0.33").await;
    assert_eq!(told["slice"]["node"], "node02");
    let slices: Api<NodeIPSlice> = Api::all(look.api.client());
    let confirmed = json!({"metadata": {"annotations": {"nmstate.io/confirm-release": "1"}}});
    slices.patch("sliced.10.20.0.32", &PatchParams::default(), &Patch::Merge(confirmed)).await.unwrap();
    slices.delete("sliced.10.20.0.32", &kube::api::DeleteParams::default()).await.unwrap();
    while look.get(near).await["slices"]["count"] != 1 {}
    let told = was("10.20.0.33").await;
    assert_eq!((&told["state"], &told["history"][0]["what"]), (&json!("free"), &json!("freed")));
    assert!(told["slice"].is_null());
}

/// What Events tell of an address is told with it, and nothing of others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_the_history_of_before() {
    let look = Look::new("127.0.0.1:9467");
    look.pool("traffic-1", seeds(), json!({})).await;
    let events: Api<Event> = Api::namespaced(look.api.client(), "default");
    for (name, message) in
        [("one", "10.10.10.1: freed, node01 had it"), ("two", "10.10.10.10: freed, node02 had it")]
    {
        let event = serde_json::from_value(json!({
            "metadata": {"name": name}, "involvedObject": {"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "name": "traffic-1"},
            "reason": "AddressFreed", "message": message, "type": "Normal", "count": 2,
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:07Z",
        }));
        events.create(&PostParams::default(), &event.unwrap()).await.unwrap();
    }
    let told = look.get("/address?pool=traffic-1&ip=10.10.10.1").await;
    let heard = json!({"at": 1_767_225_607, "what": "AddressFreed", "message": "10.10.10.1: freed, node01 had it", "count": 2});
    assert_eq!(told["told"], json!([heard]));
    assert_eq!(look.get("/address?pool=traffic-1&ip=10.10.10.2").await["told"], json!([]));
}

/// What happens while somebody looks is told, and remembered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_told_and_remembered() {
    let look = Look::new("127.0.0.1:9467");
    look.pool("traffic-1", seeds(), json!({})).await;
    let mut stream = look.asked("/stream", &[]).await.into_body();
    assert!(frame(&mut stream).await.starts_with("retry:"));
    look.ledger("traffic-1", json!({"10.10.10.1": held("node01")})).await;
    while !frame(&mut stream).await.starts_with("data: ") {}
    look.ledger("traffic-1", json!({"10.10.10.1": null})).await;
    let was = || async { look.get("/address?pool=traffic-1&ip=10.10.10.1").await };
    let mut told = was().await;
    while told["history"].as_array().unwrap().len() < 2 {
        frame(&mut stream).await;
        told = was().await;
    }
    let what: Vec<&Value> = told["history"].as_array().unwrap().iter().map(|one| &one["what"]).collect();
    assert_eq!(what, ["freed", "held"]);
    assert_eq!(told["state"], "free");
}

async fn frame(body: &mut UnsyncBoxBody<Bytes, Infallible>) -> String {
    let frame = body.frame().await.unwrap().unwrap();
    String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_addresses_and_policies_are_found() {
    let look = Look::new("127.0.0.1:9467");
    look.pool("traffic-1", seeds(), json!({"10.10.10.1": held("node01"), "10.10.10.2": held("node02")}))
        .await;
    let policies: Api<NodeNetworkConfigurationPolicy> = Api::all(look.api.client());
    let policy = serde_json::from_value(json!({"metadata": {"name": "static-ip"}, "spec": {}})).unwrap();
    policies.create(&PostParams::default(), &policy).await.unwrap();
    for (words, count) in
        [("node01", 1), ("10.10.10.", 2), ("STATIC", 2), ("nobody", 0), ("", 0), ("node%2001", 0)]
    {
        assert_eq!(look.get(&format!("/search?q={words}")).await["count"], count, "{words}");
    }
    let find = &look.get("/search?q=node02").await["finds"][0];
    assert_eq!((find["pool"].as_str(), find["offset"].as_str()), (Some("traffic-1"), Some("1")));
    assert_eq!(look.get("/policies").await["policies"][0]["name"], "static-ip");
}

/// The document runs nothing but its own, and names nothing elsewhere.
#[tokio::test]
async fn the_document_is_whole() {
    let look = Look::new("127.0.0.1:9467");
    let answer = look.asked("/", &[]).await;
    let policy = answer.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
    let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let text = std::str::from_utf8(&body).unwrap();
    assert!(text.contains(&format!("<script nonce=\"{nonce}\">")) && !text.contains(NONCE));
    assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("src="));
}

#[tokio::test]
async fn nothing_is_written_and_nothing_else_is_there() {
    let look = Look::new("127.0.0.1:9467");
    let post = Request::post("/pools").header(HOST, "127.0.0.1").body(()).unwrap();
    assert_eq!(look.page.answer(&post).await.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(look.asked("/elsewhere", &[]).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(look.asked("/map?pool=none", &[]).await.status(), StatusCode::NOT_FOUND);
}

/// A site that resolves its own name to loopback must not look through its visitors' browsers.
#[tokio::test]
async fn on_loopback_only_loopback_is_asked_for() {
    let look = Look::new("127.0.0.1:9467");
    for (host, code) in
        [("evil.example:9467", 403), ("127.0.0.1:1", 200), ("[::1]:9467", 200), ("localhost", 200)]
    {
        let request = Request::get("/").header(HOST, host).body(()).unwrap();
        assert_eq!(look.page.answer(&request).await.status(), code, "{host}");
    }
}

/// Elsewhere: without a token nothing but the document, and an API that knows no tokens lets nobody in.
#[tokio::test]
async fn elsewhere_a_token_is_needed() {
    let look = Look::new("10.0.0.1:9467");
    assert_eq!(look.asked("/", &[]).await.status(), StatusCode::OK);
    let refused = look.asked("/pools", &[]).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(refused.headers()[header::WWW_AUTHENTICATE], "Bearer");
    let away = look.asked("/pools", &[(AUTHORIZATION, "Bearer abc")]).await;
    assert_eq!(away.status(), StatusCode::SERVICE_UNAVAILABLE);
}
