//! Sliced pools (`perNodeHostBits`): nodes claim slices by creating them, and serve themselves out of them.

use std::collections::BTreeSet;
use std::time::Duration;

use agent::controller::Settings;
use crds::NodeIPSlice;
use crds::names::annotation::{HOLD, RESTORED};
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::field::{Field, Host, address_on, doubles, one_address};
use crate::on::On;
use crate::pause::Pause;
use crate::told::{POOL, told};
use crate::world::entries;

/// A range cut into blocks of so many host bits.
fn sliced(cidr: &str, bits: u8) -> Value {
    json!({"range": {"cidr": cidr, "perNodeHostBits": bits}, "staticBand": "None", "quarantine": "1s"})
}

/// All hosts at once.
fn at_once(mut policy: Value) -> Value {
    policy["maxUnavailable"] = json!("100%");
    policy
}

async fn slices(field: &Field) -> Vec<NodeIPSlice> {
    let api: Api<NodeIPSlice> = Api::all(field.client());
    api.list(&ListParams::default()).await.expect("slices").items
}

async fn slices_of(field: &Field, host: &Host) -> Vec<NodeIPSlice> {
    slices(field).await.into_iter().filter(|slice| slice.spec.node == host.name).collect()
}

fn held(slice: &NodeIPSlice) -> BTreeSet<String> {
    slice.ledger().allocations.keys().cloned().collect()
}

/// Without slices, once everybody has heard.
async fn until_no_slices(field: &Field) {
    let (begun, mut pause) = (std::time::Instant::now(), Pause::new());
    loop {
        let left = slices(field).await;
        if left.is_empty() {
            return;
        }
        assert!(begun.elapsed().as_secs() < 60, "they never go: {:#}", json!(left));
        pause.pass().await;
    }
}

/// R93, R112 to R116: three nodes with a /28 each, and nothing of it in the pool's own ledger. The prefix length is the
/// range's; a pool that is not sliced is served as ever. The policy goes, and so do the slices.
pub(crate) async fn r93_r112_r113_r114_r115_r116_every_node_has_a_slice_of_its_own(on: On) {
    let field = Field::new(on).await;
    field.pool("sliced", sliced("10.20.0.0/16", 4)).await;
    field.pool("shared", json!({"range": {"cidr": "10.30.0.0/24"}, "quarantine": "1s"})).await;
    let mut hosts = Vec::new();
    for name in ["node01", "node02", "node03"] {
        hosts.push(field.host(name, 2).await);
    }
    field.policy("one", at_once(one_address("sliced"))).await;
    field.policy("two", at_once(address_on("shared", "eth1"))).await;
    let mut blocks = BTreeSet::new();
    for host in &hosts {
        let own = field.until_standing(host, "one", "Available").await;
        let ip = own["status"]["ippool"]["sliced"]["allocated"][0].as_str().expect("an address").to_owned();
        assert_eq!(own["status"]["capturedStates"]["address"]["prefix-length"], 16, "R114");
        assert_eq!(host.addresses("eth0"), [format!("{ip}/16")]);
        let theirs = slices_of(&field, host).await;
        assert_eq!(theirs.len(), 1, "R115");
        let spec = &theirs[0].spec;
        assert!(spec.cidr.ends_with("/28"), "R93: {}", spec.cidr);
        let network: ipnet::IpNet = spec.cidr.parse().expect("a network");
        assert!(network.contains(&ip.parse::<std::net::IpAddr>().expect("an address")), "{ip} of {network}");
        assert_eq!(
            theirs[0].metadata.name.as_deref(),
            Some(&*format!("sliced.{}", network.network())),
            "R116"
        );
        assert_eq!(held(&theirs[0]), BTreeSet::from([ip]), "R113");
        assert!(blocks.insert(spec.cidr.clone()), "two have {}", spec.cidr);
        field.until_standing(host, "two", "Available").await;
    }
    assert_eq!(slices(&field).await.len(), 3, "R112: none of a pool that is not sliced");
    let pool = field.until_pool("sliced", "counted", |pool| pool["status"]["allocated"] == 3).await;
    assert_eq!(pool["status"]["allocations"], json!({}));
    // Two addresses of a /16 are no host's, and three slices are taken.
    assert_eq!(pool["status"]["capacity"], 65_534);
    assert!(
        pool["status"]["available"].as_i64().is_some_and(|left| (65_486..=65_488).contains(&left)),
        "{pool:#}"
    );
    let shared = field.until_pool("shared", "counted", |pool| pool["status"]["allocated"] == 3).await;
    assert_eq!(shared["status"]["allocations"].as_object().map(serde_json::Map::len), Some(3));
    field.delete_policy("one").await;
    for host in &hosts {
        field.until_no_enactment(host, "one").await;
        assert!(host.addresses("eth0").is_empty());
    }
    until_no_slices(&field).await;
    field.until_pool("sliced", "empty", |pool| pool["status"]["allocated"] == 0).await;
    field.agree().await;
}

/// R113, R115, R119: `perNodeHostBits: 0` is an object per address, so a node with two captures has two; and with one bit a
/// node that fills its slice takes another.
pub(crate) async fn r113_r115_r119_a_node_that_fills_its_slice_takes_another(on: On) {
    let field = Field::new(on).await;
    field.pool("single", sliced("10.20.0.0/24", 0)).await;
    field.pool("pairs", sliced("10.21.0.0/24", 1)).await;
    let host = field.host("node01", 6).await;
    let captures = |pool: &str, names: &[&str]| -> Vec<(String, Value)> {
        names.iter().map(|name| ((*name).to_owned(), json!(format!("ippool.{pool}.allocate")))).collect()
    };
    let mut capture = captures("single", &["a", "b"]);
    capture.extend(captures("pairs", &["c", "d", "e"]));
    let interfaces: Vec<Value> = capture.iter().enumerate().map(|(card, (name, _))| json!({
        "name": format!("eth{card}"), "type": "veth", "state": "up", "ipv4": {"enabled": true, "dhcp": false, "address": [
            {"ip": format!("{{{{ capture.{name}.ip }}}}"), "prefix-length": format!("{{{{ capture.{name}.prefix-length }}}}")}]}
    })).collect();
    let capture: serde_json::Map<String, Value> = capture.into_iter().collect();
    field.policy("many", json!({"capture": capture, "desiredState": {"interfaces": interfaces}})).await;
    let own = field.until_standing(&host, "many", "Available").await;
    let given = |pool: &str| -> BTreeSet<String> {
        let all = own["status"]["ippool"][pool]["allocated"].as_array().cloned().unwrap_or_default();
        all.iter().filter_map(|ip| ip.as_str().map(str::to_owned)).collect()
    };
    let all = slices_of(&field, &host).await;
    let of = |pool: &str| all.iter().filter(|slice| slice.spec.pool == pool).collect::<Vec<_>>();
    assert_eq!(of("single").len(), 2);
    for slice in of("single") {
        let ip = slice.spec.cidr.trim_end_matches("/32").to_owned();
        assert_eq!(held(slice), BTreeSet::from([ip]));
    }
    assert_eq!(of("single").iter().flat_map(|slice| held(slice)).collect::<BTreeSet<_>>(), given("single"));
    assert_eq!(of("pairs").len(), 2, "three addresses, two to a slice");
    assert_eq!(of("pairs").iter().flat_map(|slice| held(slice)).collect::<BTreeSet<_>>(), given("pairs"));
    field.delete_policy("many").await;
    field.until_no_enactment(&host, "many").await;
    until_no_slices(&field).await;
    field.agree().await;
}

/// R92: of both families a node takes a slice each, or none: what it got of one is given back when there is none of the other.
pub(crate) async fn r92_of_two_families_a_node_takes_two_slices_or_none(on: On) {
    let field = Field::new(on).await;
    let range =
        json!({"ipv4": {"cidr": "10.20.0.0/29"}, "ipv6": {"cidr": "fd00:20::/126"}, "perNodeHostBits": 1});
    field.pool("both", json!({"range": range, "staticBand": "None", "quarantine": "1s"})).await;
    let mut policy = one_address("both");
    policy["desiredState"]["interfaces"][0]["ipv6"] = json!({"enabled": true, "dhcp": false, "autoconf": false, "address": [
        {"ip": "{{ capture.address.ipv6.ip }}", "prefix-length": "{{ capture.address.ipv6.prefix-length }}"}]});
    policy["desiredState"]["interfaces"][0]["ipv4"]["address"] = json!([{"ip": "{{ capture.address.ipv4.ip }}", "prefix-length": "{{ capture.address.ipv4.prefix-length }}"}]);
    policy["nodeSelector"] = json!({"in": "yes"});
    field.policy("one", at_once(policy)).await;
    let mut hosts = Vec::new();
    // A /126 has two slices of two addresses.
    for name in ["node01", "node02"] {
        let host = field.host(name, 1).await;
        field.label(&host, "in", "yes").await;
        field.until_standing(&host, "one", "Available").await;
        let own = slices_of(&field, &host).await;
        let families: BTreeSet<bool> = own.iter().map(|slice| slice.spec.cidr.contains(':')).collect();
        assert_eq!((own.len(), families.len()), (2, 2), "{:#}", json!(own));
        hosts.push(host);
    }
    let late = field.host("node03", 1).await;
    field.label(&late, "in", "yes").await;
    let refused = field.until_standing(&late, "one", "Failing").await;
    assert_eq!(refused["status"]["ippool"]["both"]["refused"]["address"]["reason"], "NoAddress");
    assert!(slices_of(&field, &late).await.is_empty(), "none, though there is one of IPv4");
    assert!(late.addresses("eth0").is_empty());
    field.label(&hosts[0], "in", "no").await;
    field.until_no_enactment(&hosts[0], "one").await;
    field.until_standing(&late, "one", "Available").await;
    assert_eq!(slices_of(&field, &late).await.len(), 2);
    field.agree().await;
}

/// R118: no slice is left: the pool says so, with an Event, and so does the policy; and when one is, whoever waits has it.
pub(crate) async fn r118_slices_run_out_and_room_is_found(on: On) {
    let field = Field::new(on).await;
    field.pool("sliced", sliced("10.20.0.0/27", 4)).await;
    let mut hosts = Vec::new();
    for name in ["node01", "node02"] {
        let host = field.host(name, 1).await;
        field.label(&host, "in", "yes").await;
        hosts.push(host);
    }
    let mut policy = at_once(one_address("sliced"));
    policy["nodeSelector"] = json!({"in": "yes"});
    field.policy("one", policy).await;
    for host in &hosts {
        field.until_standing(host, "one", "Available").await;
    }
    let reason = |pool: &Value| pool["status"]["conditions"][0]["reason"].clone();
    field.until_pool("sliced", "exhausted", |pool| reason(pool) == "ExhaustedIPPool").await;
    assert_eq!(told(&field, POOL, "ExhaustedIPPool").await.type_.as_deref(), Some("Warning"));
    let late = field.host("node03", 1).await;
    field.label(&late, "in", "yes").await;
    let refused = field.until_standing(&late, "one", "Failing").await;
    let said = &refused["status"]["ippool"]["sliced"]["refused"]["address"];
    assert_eq!(said["reason"], "NoAddress");
    assert!(said["message"].as_str().is_some_and(|text| text.contains("pool sliced is exhausted")), "{said}");
    assert!(late.addresses("eth0").is_empty());
    field.label(&hosts[0], "in", "no").await;
    field.until_standing(&late, "one", "Available").await;
    field
        .until_pool("sliced", "exhausted again", |pool| {
            pool["status"]["allocated"] == 2 && reason(pool) == "ExhaustedIPPool"
        })
        .await;
    field.agree().await;
}

/// R62, R64, R96: a range of a sliced pool drains. No slice is cut of it any more, and of one that a node has there it gives itself
/// nothing more; who holds an address keeps it. It can't go while a slice is cut of it, though nothing of it is in the pool's own
/// ledger; with the last address the slice goes, and with the last slice the range may.
pub(crate) async fn r62_r64_r96_a_sliced_range_drains_and_goes(on: On) {
    let field = Field::told(on, Settings { grace: Duration::ZERO, ..Settings::default() }).await;
    // One slice is all of it, with the network's own address and its broadcast address.
    let old = json!({"name": "old", "cidr": "10.20.0.0/28", "perNodeHostBits": 4});
    field.pool("sliced", json!({"ranges": [old], "staticBand": "None", "quarantine": "1s"})).await;
    let first = field.host("node01", 2).await;
    field.policy("one", at_once(one_address("sliced"))).await;
    field.until_standing(&first, "one", "Available").await;
    let had = first.addresses("eth0");
    assert!(had[0].starts_with("10.20."), "{had:?}");

    let mut draining = old.clone();
    draining["state"] = json!("Draining");
    let new = json!({"name": "new", "cidr": "10.30.0.0/24", "perNodeHostBits": 4});
    field.patch_pool("sliced", json!({"spec": {"ranges": [draining, new]}})).await;
    field.policy("two", at_once(address_on("sliced", "eth1"))).await;
    let second = field.host("node02", 2).await;
    for (host, policy, card) in [(&first, "two", "eth1"), (&second, "one", "eth0"), (&second, "two", "eth1")]
    {
        field.until_standing(host, policy, "Available").await;
        let given = host.addresses(card);
        assert!(given[0].starts_with("10.30."), "{}: {policy} has {given:?}", host.name);
    }
    assert_eq!(first.addresses("eth0"), had, "what is held stays");
    let pool = field.until_pool("sliced", "counted", |pool| pool["status"]["allocated"] == 4).await;
    assert!(pool["status"]["drained"].is_null(), "a slice is cut of it: {pool:#}");
    let only_new = json!({"spec": {"ranges": [new]}});
    let refused = field.try_patch_pool("sliced", only_new.clone()).await.expect_err("in use").to_string();
    assert!(refused.contains("wait until status.drained names it"), "{refused}");

    field.delete_policy("one").await;
    for host in [&first, &second] {
        field.until_no_enactment(host, "one").await;
    }
    field.until_pool("sliced", "drained", |pool| pool["status"]["drained"] == json!(["old"])).await;
    assert!(slices(&field).await.iter().all(|slice| slice.spec.range.as_deref() == Some("new")));
    field.patch_pool("sliced", only_new).await;
    let gone = |pool: &Value| pool["status"]["drained"].is_null() && pool["status"]["allocated"] == 2;
    field.until_pool("sliced", "without it", gone).await;
    field.agree().await;
}

/// Rule 6: what a restore puts on hold, pool and slices, gives again by itself after one quarantine, and who asked meanwhile is
/// served. What a person put on hold stays so.
pub(crate) async fn rule6_what_a_restore_holds_gives_again_by_itself(on: On) {
    let field = Field::new(on).await;
    let mut pool = sliced("10.20.0.0/27", 4);
    pool["quarantine"] = json!("3s");
    field.pool("sliced", pool).await;
    field.pool("kept", json!({"range": {"cidr": "10.30.0.0/24"}, "quarantine": "1s"})).await;
    let first = field.host("node01", 1).await;
    field.policy("one", at_once(one_address("sliced"))).await;
    field.until_standing(&first, "one", "Available").await;
    let had = first.addresses("eth0");
    let before = field.until_pool("sliced", "counted", |pool| pool["status"]["allocated"] == 1).await;
    let name = slices(&field).await[0].metadata.name.clone().expect("a name");
    let api: Api<NodeIPSlice> = Api::all(field.client());
    let restored = Patch::Merge(json!({"metadata": {"annotations": {HOLD: RESTORED}}}));
    api.patch(&name, &PatchParams::default(), &restored).await.expect("annotated");
    field.annotate_pool("sliced", HOLD, json!(RESTORED)).await;
    field.annotate_pool("kept", HOLD, json!("by hand")).await;
    let holds = |pool: &Value| pool["status"]["hold"]["until"].is_string();
    field.until_pool("sliced", "on hold", holds).await;
    field.until_pool("kept", "on hold", holds).await;
    let second = field.host("node02", 1).await;
    let gives =
        |pool: &Value| pool["status"]["hold"].is_null() && pool["metadata"]["annotations"][HOLD].is_null();
    let after = field.until_pool("sliced", "giving again", gives).await;
    assert!(after["status"]["sequence"].as_i64() > before["status"]["sequence"].as_i64());
    field
        .until::<NodeIPSlice>(&name, "giving again", |slice| slice["metadata"]["annotations"][HOLD].is_null())
        .await;
    field.until_standing(&second, "one", "Available").await;
    assert_eq!(first.addresses("eth0"), had);
    let kept = field.until_pool("kept", "as it was", |_| true).await;
    assert!(holds(&kept), "{kept:#}");
    assert_eq!(kept["metadata"]["annotations"][HOLD], "by hand");
    field.agree().await;
}

/// R117: a Node is gone for good: what it held is set aside first, then its slice is free, and another node has it.
pub(crate) async fn r117_the_slice_of_a_lost_node_is_set_aside_freed_and_used_again(on: On) {
    let field = Field::new(on).await;
    let mut pool = sliced("10.20.0.0/28", 4);
    pool["quarantine"] = json!("3s");
    field.pool("sliced", pool).await;
    let lost = field.host("node01", 1).await;
    field.policy("one", at_once(one_address("sliced"))).await;
    field.until_standing(&lost, "one", "Available").await;
    let name = slices_of(&field, &lost).await[0].metadata.name.clone().expect("a name");
    field.remove_host(&lost).await;
    let aside = |slice: &Value| {
        let entries = slice["status"]["allocations"].as_object().cloned().unwrap_or_default();
        entries.values().any(|entry| entry["state"] == "Quarantined" && entry["reason"] == "NodeGone")
    };
    field.until::<NodeIPSlice>(&name, "set aside", aside).await;
    let next = field.host("node02", 1).await;
    field.until_standing(&next, "one", "Available").await;
    let own = slices_of(&field, &next).await;
    assert_eq!(own[0].metadata.name, Some(name), "the only one there is");
    assert_eq!(slices(&field).await.len(), 1);
    field.until_no_enactment(&lost, "one").await;
    told(&field, POOL, "SliceFreed").await;
    field.agree().await;
}

/// Rule 5 in a sliced pool: it is deleted and made anew, and a newcomer is given nothing of what a holder has, though nothing
/// of it is in the pool. Nor of what a host held when the pool was not sliced yet.
pub(crate) async fn r33_r97_a_sliced_pool_made_anew_gives_nobody_what_is_held(on: On) {
    let field = Field::new(on).await;
    // Two blocks: whoever comes second must have the other.
    let shared = json!({"range": {"cidr": "10.20.0.0/27"}, "staticBand": "None", "quarantine": "1s"});
    field.pool("sliced", shared).await;
    let mut first = field.host("node01", 1).await;
    field.policy("one", at_once(one_address("sliced"))).await;
    field.until_standing(&first, "one", "Available").await;
    let had = first.addresses("eth0");
    // Its agent is away while the pool is made anew, cut into slices, and a newcomer asks.
    first.stop().await;
    field.force_pool_away("sliced").await;
    field.pool("sliced", sliced("10.20.0.0/27", 4)).await;
    let second = field.host("node02", 1).await;
    field.until_standing(&second, "one", "Available").await;
    let block = |address: &str| {
        let last: u8 =
            address.split(['.', '/']).nth(3).and_then(|octet| octet.parse().ok()).expect("an octet");
        last / 16
    };
    assert_ne!(block(&second.addresses("eth0")[0]), block(&had[0]));
    let pool =
        field.until_pool("sliced", "holding what it has", |pool| pool["status"]["allocated"] == 2).await;
    let ip = had[0].split('/').next().expect("an address");
    assert_eq!(pool["status"]["allocations"][ip]["node"], "node01", "held without a slice");
    // Back again, it has a slice around what it holds, and the pool's own ledger is empty.
    field.start(&mut first).await;
    field
        .until_pool("sliced", "all in slices", |pool| {
            pool["status"]["allocations"] == json!({}) && pool["status"]["allocated"] == 2
        })
        .await;
    assert_eq!(first.addresses("eth0"), had);
    // Once more, with slices: they outlive their pool.
    field.force_pool_away("sliced").await;
    field.pool("sliced", sliced("10.20.0.0/26", 4)).await;
    field.until_pool("sliced", "as it was", |pool| pool["status"]["allocated"] == 2).await;
    let third = field.host("node03", 1).await;
    field.until_standing(&third, "one", "Available").await;
    let blocks: BTreeSet<u8> =
        [&first, &second, &third].iter().map(|host| block(&host.addresses("eth0")[0])).collect();
    assert_eq!(blocks.len(), 3);
    assert_eq!(first.addresses("eth0"), had);
    field.agree().await;
}

/// Rule 7: a Node re-created under its name never loses what is on its card; its former slice is freed, and one of its own
/// is there in its place.
pub(crate) async fn rule7_a_node_made_anew_keeps_what_is_on_its_card(on: On) {
    let field = Field::new(on).await;
    field.pool("sliced", sliced("10.20.0.0/24", 4)).await;
    let mut host = field.host("node01", 1).await;
    field.policy("one", one_address("sliced")).await;
    field.until_standing(&host, "one", "Available").await;
    let had = host.addresses("eth0");
    let before = slices_of(&field, &host).await[0].clone();
    host.stop().await;
    field.delete_node(&host).await;
    field.make_node(&host.name, "True").await;
    field.start(&mut host).await;
    let name = before.metadata.name.clone().expect("a name");
    let is_anew =
        |slice: &Value| slice["spec"]["nodeUID"] != json!(before.spec.node_uid) && entries(slice).len() == 1;
    field.until::<NodeIPSlice>(&name, "the new Node's", is_anew).await;
    assert_eq!(host.addresses("eth0"), had);
    field.until_pool("sliced", "in slices alone", |pool| pool["status"]["allocations"] == json!({})).await;
    field.agree().await;
}

/// R71, R110: a slice in use is not deleted by force unless that is said to be meant; then the pool keeps what was in it, and it
/// comes back with its host's agent, or by it where it runs.
pub(crate) async fn r71_a_slice_deleted_by_force_comes_back(on: On) {
    let field = Field::new(on).await;
    field.pool("sliced", sliced("10.20.0.0/24", 4)).await;
    let mut host = field.host("node01", 1).await;
    field.policy("one", one_address("sliced")).await;
    field.until_standing(&host, "one", "Available").await;
    let had = host.addresses("eth0");
    let name = slices_of(&field, &host).await[0].metadata.name.clone().expect("a name");
    host.stop().await;
    let refused = field.force_slice_away(&name).await;
    let ip = had[0].split('/').next().expect("an address").to_owned();
    assert!(refused.contains(&format!("node node01 holds {ip} in this slice")), "{refused}");
    // Nobody else may have it meanwhile: the pool itself keeps it.
    field
        .until_pool("sliced", "keeping it", |pool| pool["status"]["allocations"][&ip]["node"] == "node01")
        .await;
    field.start(&mut host).await;
    let holds = |slice: &Value| entries(slice).contains_key(&ip);
    field.until::<NodeIPSlice>(&name, "there again", holds).await;
    assert_eq!(host.addresses("eth0"), had);
    field.agree().await;
    // Once more, under an agent that runs: the controller sees it, and has it look.
    field.force_slice_away(&name).await;
    field.until::<NodeIPSlice>(&name, "there again", holds).await;
    assert_eq!(host.addresses("eth0"), had);
    field.agree().await;
}

/// Rule 2: a slice is deleted after an address was given out of it, and before its host confirmed that: what goes confirms nothing,
/// so the host gives it up, and has another slice, without being asked for anything more.
pub(crate) async fn rule2_what_was_given_out_of_a_slice_that_goes_is_given_up(on: On) {
    let field = Field::new(on).await;
    field.pool("sliced", sliced("10.20.0.0/24", 4)).await;
    let mut host = field.machine("node01", 1);
    field.make_node("node01", "True").await;
    let client = doubles::unsliced_once(field.client_for(&host).await, field.client());
    field.start_with(&mut host, &client);
    field.policy("one", one_address("sliced")).await;
    field.until_standing(&host, "one", "Available").await;
    let own = slices_of(&field, &host).await;
    let there: BTreeSet<String> = own.iter().flat_map(held).map(|ip| format!("{ip}/24")).collect();
    assert_eq!(host.addresses("eth0").into_iter().collect::<BTreeSet<_>>(), there);
    assert!(own.iter().all(|slice| slice.metadata.deletion_timestamp.is_none()), "{:#}", json!(own));
    field.agree().await;
}

/// R115, R119: nobody leads, and thirty-two hosts claim at once, an object per address: each has its own, and none waits for
/// another.
pub(crate) async fn r115_r119_a_crowd_without_a_controller(on: On) {
    let mut field = Field::new(on).await;
    field.pool("single", sliced("10.20.0.0/26", 0)).await;
    field.until_pool("single", "ready to give", |pool| pool["status"]["rebuiltFor"].is_string()).await;
    field.lose_controller().await;
    let mut hosts = Vec::new();
    for i in 1..=32 {
        hosts.push(field.host(&format!("node{i:02}"), 1).await);
    }
    field.policy("one", at_once(one_address("single"))).await;
    let mut given = BTreeSet::new();
    for host in &hosts {
        field.until_standing(host, "one", "Available").await;
        given.extend(host.addresses("eth0"));
    }
    assert_eq!(given.len(), 32);
    let all = slices(&field).await;
    let held: BTreeSet<String> = all.iter().flat_map(held).map(|ip| format!("{ip}/26")).collect();
    assert_eq!((all.len(), &held), (32, &given));
    // How many are given is a leader's to count.
    field.agree_but(&["single: allocated is not the number of its claims: 0"]).await;
}
