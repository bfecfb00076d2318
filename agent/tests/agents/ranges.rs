//! Ranges that hosts are given of: larger ones, new ones, and none.

use std::net::Ipv4Addr;
use std::time::Duration;

use agent::controller::Settings;
use crds::NodeIPPool;
use crds::names::annotation::{HOLD, RESET_POOL};
use ipnet::Ipv4Subnets;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use serde_json::{Value, json};

use crate::field::{Field, Host, address_on, one_address};
use crate::on::On;
use crate::told::{POOL, told, told_again, told_that};

/// R19: the prefix length is that of the range, not of what is given out of it.
pub(crate) async fn r19_the_prefix_length_is_the_ranges(on: On) {
    let field = Field::new(on).await;
    let range = json!({"cidr": "10.10.0.0/16", "start": "10.10.11.4", "end": "10.10.11.4"});
    field.pool("traffic-1", json!({"range": range})).await;
    let host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    let own = field.until_standing(&host, "one", "Available").await;
    assert_eq!(own["status"]["capturedStates"]["address"]["prefix-length"], 16);
    assert_eq!(host.addresses("eth0"), ["10.10.11.4/16"]);
    field.agree().await;
}

/// A range of both families: a claim has an address of each or none, in ledger, enactment, journal and kernel alike, and gives
/// both back.
pub(crate) async fn a_claim_has_an_address_of_each_family(on: On) {
    let field = Field::new(on).await;
    let range = json!({"ipv4": {"cidr": "10.10.10.0/24"}, "ipv6": {"cidr": "fd00:10::/64"}});
    field.pool("dual", json!({"range": range, "quarantine": "1s"})).await;
    let hosts = [field.host("node01", 1).await, field.host("node02", 1).await];
    let family = |family: &str| {
        let of = |part: &str| format!("{{{{ capture.address.{family}.{part} }}}}");
        json!({"enabled": true, "dhcp": false, "address": [{"ip": of("ip"), "prefix-length": of("prefix-length")}]})
    };
    let mut six = family("ipv6");
    six["autoconf"] = json!(false);
    let card = json!({"name": "eth0", "type": "veth", "state": "up", "ipv4": family("ipv4"), "ipv6": six});
    let policy = json!({"capture": {"address": "ippool.dual.allocate"}, "maxUnavailable": "100%",
        "desiredState": {"interfaces": [card]}});
    field.policy("one", policy).await;
    for host in &hosts {
        let own = field.until_standing(host, "one", "Available").await;
        let grant = &own["status"]["ippool"]["dual"]["grants"]["address"];
        let (four, six) = (&grant["ipv4"]["ip"], grant["ipv6"]["ip"].as_str().expect("an IPv6 address"));
        assert_eq!(own["status"]["ippool"]["dual"]["allocated"], json!([four, six]));
        assert_eq!(host.addresses("eth0"), [format!("{}/24", four.as_str().expect("an IPv4 address"))]);
        assert!(host.ip("-6 addr show dev eth0 scope global").contains(&format!("{six}/64")), "{six}");
    }
    field.until_pool("dual", "with two claims", |pool| pool["status"]["allocated"] == 2).await;
    field.agree().await;
    field.delete_policy("one").await;
    for host in &hosts {
        field.until_no_enactment(host, "one").await;
        assert!(host.ip("addr show dev eth0 scope global").is_empty());
    }
    field.until_pool("dual", "empty", |pool| pool["status"]["allocated"] == 0).await;
    field.agree().await;
}

/// R59: a pool that gives says how its ledger is written, one from before that was said included.
pub(crate) async fn r59_a_pool_that_gives_says_how_its_ledger_is_written(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": "10.10.10.0/24"}})).await;
    let host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let says = |pool: &Value| {
        let said = &pool["metadata"]["annotations"];
        said["nmstate.io/schema-version"] == "1" && said["nmstate.io/ledger-encoding"] == "allocations"
    };
    let pool = field.until_pool("traffic-1", "given of", |pool| pool["status"]["allocated"] == 1).await;
    assert!(says(&pool), "{pool}");
    let unsaid = json!({"nmstate.io/schema-version": null, "nmstate.io/ledger-encoding": null});
    field.patch_pool("traffic-1", json!({"metadata": {"annotations": unsaid}})).await;
    field.until_pool("traffic-1", "said again", says).await;
    field.agree().await;
}

/// R33, R66, R75, R76, R97, R99: a pool re-created. What the new range has stays its holder's; what it hasn't stays on the card, is in no
/// ledger, also when the pool was on hold, and is moved by nobody.
pub(crate) async fn r33_r66_r97_r99_a_pool_made_anew_takes_back_what_it_has(on: On) {
    let field = Field::told(on, Settings { remind: Duration::from_secs(1), ..Settings::default() }).await;
    let range = |end: &str| json!({"range": {"cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": end}, "quarantine": "1s", "staticBand": "None"});
    field.pool("traffic-1", range("10.10.10.2")).await;
    let hosts = [field.host("node01", 1).await, field.host("node02", 1).await];
    let mut policy = one_address("traffic-1");
    policy["maxUnavailable"] = json!("100%");
    field.policy("one", policy).await;
    for host in &hosts {
        field.until_standing(host, "one", "Available").await;
    }
    let had = hosts.each_ref().map(|host| host.addresses("eth0"));
    let holders = |pool: &Value| -> Vec<(String, Value)> {
        let all = pool["status"]["allocations"].as_object().cloned().unwrap_or_default();
        all.into_iter().map(|(ip, entry)| (ip, entry["node"].clone())).collect()
    };
    let both = |pool: &Value| pool["status"]["allocated"] == 2;
    let before = field.until_pool("traffic-1", "held", both).await;
    // Larger: as it was.
    field.force_pool_away("traffic-1").await;
    field.pool("traffic-1", range("10.10.10.9")).await;
    let after = field.until_pool("traffic-1", "taken in", both).await;
    assert_eq!(holders(&after), holders(&before));
    // Smaller: one is outside, and stays where it is.
    field.force_pool_away("traffic-1").await;
    field.pool("traffic-1", range("10.10.10.1")).await;
    let after = field.until_pool("traffic-1", "taken in", |pool| pool["status"]["allocated"] == 1).await;
    assert_eq!(holders(&after), holders(&before)[..1]);
    assert_eq!(hosts.each_ref().map(|host| host.addresses("eth0")), had);
    let outside = told(&field, POOL, "AddressInNoRange").await;
    assert_eq!(outside.type_.as_deref(), Some("Warning"));
    let message = outside.message.unwrap_or_default();
    assert!(message.starts_with("10.10.10.2 (node node0"), "{message}");
    assert!(message.contains("held, but not within any range of this pool"), "{message}");
    // R66: as long as it is so, that is said again.
    told_again(&field, POOL, "AddressInNoRange").await;
    // On hold, holders say again what they have: what is outside is no more the pool's than before.
    let is_held = |pool: &Value| !pool["status"]["hold"].is_null();
    field.annotate_pool("traffic-1", HOLD, json!("by hand")).await;
    field.until_pool("traffic-1", "on hold", is_held).await;
    field.annotate_pool("traffic-1", HOLD, Value::Null).await;
    let resumed = field.until_pool("traffic-1", "resumed", |pool| !is_held(pool)).await;
    assert_eq!(holders(&resumed), holders(&before)[..1]);
    assert_eq!(hosts.each_ref().map(|host| host.addresses("eth0")), had);
    // Whoever has it keeps it, and that is known to all but the ledger.
    let at = hosts.iter().find(|host| host.addresses("eth0") == ["10.10.10.2/24"]).expect("one has it");
    let name = &at.name;
    field
        .agree_but(&[
            &format!("enactment {name}.one: traffic-1: no entry is [\"10.10.10.2\"]"),
            &format!("{name}: journalled and in no ledger"),
            &format!("{name}: 10.10.10.2 is on a card and in no ledger"),
        ])
        .await;
}

/// R100: an enactment claims what another host holds (copied by hand, say). Whoever holds it keeps it when the ledger is put
/// together anew, and that there were two is told.
pub(crate) async fn r100_of_two_claims_to_one_address_the_holders_counts(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": "10.10.10.0/24"}})).await;
    let host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    let own = field.until_standing(&host, "one", "Available").await;
    let had = host.addresses("eth0");
    let ip = had[0].split('/').next().expect("an address");
    // No policy of this name: nothing is asked for, and nobody lets go. The Node isn't Ready, so that it isn't given another
    // address before the ledger is put together.
    field.make_node("node02", "False").await;
    let mut claims = own["status"]["ippool"].clone();
    claims["traffic-1"]["requests"]["address"]["id"] = json!("copied");
    claims["traffic-1"]["requests"]["address"].as_object_mut().expect("a request").remove("holds");
    claims["traffic-1"]["grants"]["address"]["id"] = json!("copied");
    field.copy_enactment("node02", "copied", claims).await;
    field.annotate_pool("traffic-1", RESET_POOL, json!("traffic-1")).await;
    let event = told(&field, POOL, "AddressHeldByAnother").await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    let message = event.message.unwrap_or_default();
    assert!(message.starts_with(&format!("{ip}: held by one host and claimed by another")), "{message}");
    let pool = field
        .until_pool("traffic-1", "put together", |pool| pool["metadata"]["annotations"][RESET_POOL].is_null())
        .await;
    assert_eq!(pool["status"]["allocations"][ip]["node"], "node01");
    assert_eq!(host.addresses("eth0"), had);
    // What somebody copied is still there.
    field.agree_but(&["enactment node02.copied"]).await;
}

/// R86, R101, R104: no range is for this host: said so, and asked on; a range is added, and nobody starts anything again.
pub(crate) async fn r101_r104_a_range_more_serves_who_waits(on: On) {
    let field = Field::new(on).await;
    let selector = |rack: &str| json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": [rack]}]}]});
    let first = json!({"name": "rack-1", "cidr": "10.10.10.0/24", "nodeSelector": selector("one")});
    let second = json!({"name": "rack-2", "cidr": "10.10.20.0/24", "nodeSelector": selector("two")});
    field.pool("racks", json!({"ranges": [first]})).await;
    let here = field.host("node01", 1).await;
    field.label(&here, "rack", "one").await;
    let there = field.host("node02", 1).await;
    field.label(&there, "rack", "two").await;
    field.policy("one", one_address("racks")).await;
    field.until_standing(&here, "one", "Available").await;
    let own = field.until_standing(&there, "one", "Failing").await;
    assert_eq!(own["status"]["ippool"]["racks"]["refused"]["address"]["reason"], "NoAddress");
    assert!(there.addresses("eth0").is_empty());
    field.patch_pool("racks", json!({"spec": {"ranges": [first, second]}})).await;
    let own = field.until_standing(&there, "one", "Available").await;
    assert_eq!(own["status"]["capturedStates"]["address"]["range"], "rack-2");
    assert!(there.addresses("eth0")[0].starts_with("10.10.20."));
    field.agree().await;
}

/// R60, R74, R101, R109 (add range): a full pool grows by a range, also by one that overlaps with the first; `range` becomes `ranges`; who has
/// an address keeps it, and nobody starts anything again.
pub(crate) async fn r60_r74_r109_a_full_pool_grows(on: On) {
    let field = Field::new(on).await;
    let one = json!({"cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.1"});
    field.pool("racks", json!({"range": one, "quarantine": "1s", "staticBand": "None"})).await;
    let mut policy = one_address("racks");
    policy["maxUnavailable"] = json!("100%");
    field.policy("one", policy).await;
    let first = field.host("node01", 1).await;
    field.until_standing(&first, "one", "Available").await;
    let second = field.host("node02", 1).await;
    field.until_standing(&second, "one", "Failing").await;
    let named = |name: &str, mut range: Value| {
        range["name"] = json!(name);
        range
    };
    let old = named("old", one.clone());
    let wide = json!({"name": "wide", "cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.2"});
    field.patch_pool("racks", json!({"spec": {"range": null, "ranges": [old, wide]}})).await;
    field.until_standing(&second, "one", "Available").await;
    assert_eq!(first.addresses("eth0"), ["10.10.10.1/24"]);
    assert_eq!(second.addresses("eth0"), ["10.10.10.2/24"]);
    // R63: each address counts once, whichever ranges have it.
    let pool = field.until_pool("racks", "full", |pool| pool["status"]["available"] == 0).await;
    assert_eq!(pool["status"]["allocated"], 2);
    field.agree().await;
}

/// R85 to R91, R105, R109 (TieBreak): of the ranges that a node may have of, the one that names it most closely gives, with its gateway and
/// attributes; full, the next; one without a selector last.
pub(crate) async fn r85_r87_r90_r105_r109_ties_are_broken(on: On) {
    let field = Field::new(on).await;
    let selector = |labels: &[(&str, &str)]| {
        let all: Vec<Value> = labels
            .iter()
            .map(|(key, value)| json!({"key": key, "operator": "In", "values": [value]}))
            .collect();
        json!({"nodeSelectorTerms": [{"matchExpressions": all}]})
    };
    let any = json!({"name": "any", "cidr": "10.10.30.0/24", "gateway": "10.10.30.254"});
    let rack = json!({"name": "rack", "cidr": "10.10.20.0/24", "start": "10.10.20.1", "end": "10.10.20.1",
        "nodeSelector": selector(&[("rack", "one")])});
    let closest = json!({"name": "closest", "cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.1",
        "gateway": "10.10.10.254", "attributes": {"vlan": "120"},
        "nodeSelector": selector(&[("rack", "one"), ("type", "medium")])});
    field.pool("racks", json!({"ranges": [any, rack, closest]})).await;
    field.policy("one", one_address("racks")).await;
    let mut given = Vec::new();
    for name in ["node01", "node02", "node03"] {
        field.make_node(name, "True").await;
        let mut host = field.machine(name, 1);
        field.label(&host, "rack", "one").await;
        field.label(&host, "type", "medium").await;
        field.start(&mut host).await;
        let own = field.until_standing(&host, "one", "Available").await;
        given.push((own["status"]["capturedStates"]["address"].clone(), host));
    }
    let names: Vec<&Value> = given.iter().map(|(capture, _)| &capture["range"]).collect();
    assert_eq!(names, ["closest", "rack", "any"]);
    let (capture, host) = &given[0];
    assert_eq!(capture["gateway"], "10.10.10.254");
    assert_eq!(capture["attributes"], json!({"vlan": "120"}));
    assert_eq!(host.addresses("eth0"), ["10.10.10.1/24"]);
    assert_eq!(given[2].0["gateway"], "10.10.30.254");
    assert!(given[1].0["gateway"].is_null());
    field.agree().await;
}

/// R19, R63, R64, R85, R87: where ranges overlap, an address comes with prefix length, gateway and attributes of the range that gave
/// it, wherever that stands in the spec: the one for the node's rack before one for all, the one that gives before one that
/// drains. Whether the controller serves or a host itself.
pub(crate) async fn r19_r63_r64_r85_the_range_that_gave_an_address_speaks_for_it(on: On) {
    let mut field = Field::new(on).await;
    let terms = json!([{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["one"]}]}]);
    let any = json!({"name": "any", "cidr": "10.10.0.0/16", "gateway": "10.10.0.1"});
    let rack = json!({"name": "rack", "cidr": "10.10.1.0/24", "gateway": "10.10.1.1", "attributes": {"vlan": "120"},
        "nodeSelector": {"nodeSelectorTerms": terms}});
    field.pool("racks", json!({"ranges": [any, rack]})).await;
    let wide = json!({"name": "wide", "cidr": "10.20.10.0/23", "gateway": "10.20.11.1", "state": "Draining"});
    let narrow = json!({"name": "narrow", "cidr": "10.20.10.0/24", "gateway": "10.20.10.1"});
    field.pool("shrunk", json!({"ranges": [wide, narrow]})).await;
    field.policy("racked", address_on("racks", "eth0")).await;
    field.policy("moved", address_on("shrunk", "eth1")).await;
    let given = async |field: &Field, host: &Host, policy: &str, pool: &str| -> [Value; 4] {
        let own = field.until_standing(host, policy, "Available").await;
        let mut capture = own["status"]["capturedStates"]["address"].clone();
        let grant = &own["status"]["ippool"][pool]["grants"]["address"];
        for part in ["ip", "range", "prefix-length", "gateway"] {
            assert_eq!(capture[part], grant[part], "{part}");
        }
        let on_card = format!("{}/{}", grant["ip"].as_str().expect("an address"), grant["prefix-length"]);
        assert_eq!(host.addresses(if pool == "racks" { "eth0" } else { "eth1" }), [on_card]);
        ["range", "prefix-length", "gateway", "attributes"].map(|part| capture[part].take())
    };
    let of_rack = [json!("rack"), json!(24), json!("10.10.1.1"), json!({"vlan": "120"})];
    let mut hosts = Vec::new();
    for (name, racked) in [("node01", true), ("node02", false), ("node03", true)] {
        if name == "node03" {
            field.lose_controller().await;
        }
        field.make_node(name, "True").await;
        let mut host = field.machine(name, 2);
        if racked {
            field.label(&host, "rack", "one").await;
        }
        field.start(&mut host).await;
        let of_racks = given(&field, &host, "racked", "racks").await;
        match racked {
            true => assert_eq!(of_racks, of_rack),
            false => assert_eq!(of_racks, [json!("any"), json!(16), json!("10.10.0.1"), json!({})]),
        }
        let of_shrunk = given(&field, &host, "moved", "shrunk").await;
        assert_eq!(of_shrunk, [json!("narrow"), json!(24), json!("10.20.10.1"), json!({})]);
        hosts.push(host);
    }
    // Of another rack now: what is written and on the card stays.
    field.label(&hosts[0], "rack", "two").await;
    field.find_controller();
    field.agree().await;
    assert_eq!(given(&field, &hosts[0], "racked", "racks").await, of_rack);
}

/// R45 to R48, R50, R54: the static band that KEP-3070's formula makes of a /26, a /22 and a /16. Of each, all is excluded but its
/// last two addresses and the one above them. Who comes first has the one above, and only then the band is given of. It is
/// turned off, for who comes next, and on again: nothing changes of what is held, nor of the offsets.
pub(crate) async fn r45_r46_r47_r48_r50_r54_the_static_band_is_given_last(on: On) {
    let field = Field::new(on).await;
    let pools: [(&str, &str, Ipv4Addr, u32, u8); 3] = [
        ("small", "eth0", Ipv4Addr::new(10, 48, 0, 0), 16, 26),
        ("middle", "eth1", Ipv4Addr::new(10, 47, 0, 0), 64, 22),
        ("large", "eth2", Ipv4Addr::new(10, 46, 0, 0), 256, 16),
    ];
    for (name, card, net, band, length) in pools {
        let at = |host: u32| Ipv4Addr::from(u32::from(net) + host);
        let below = Ipv4Subnets::new(at(1), at(band - 2), 0);
        let above = Ipv4Subnets::new(at(band + 2), at((1 << (32 - length)) - 2), 0);
        let exclude: Vec<String> = below.chain(above).map(|net| net.to_string()).collect();
        field.pool(name, json!({"range": {"cidr": format!("{net}/{length}"), "exclude": exclude}})).await;
        field.until_pool(name, "counted", |pool| pool["status"]["available"] == 3).await;
        let mut policy = address_on(name, card);
        policy["maxUnavailable"] = json!("100%");
        field.policy(name, policy).await;
    }
    // By pool, how far above the band's last address.
    let given = async |field: &Field, host: &Host| -> Vec<i64> {
        let mut found = Vec::new();
        for (name, card, net, band, _) in pools {
            field.until_standing(host, name, "Available").await;
            let on_card = host.addresses(card).concat();
            let ip: Ipv4Addr = on_card.split('/').next().and_then(|ip| ip.parse().ok()).expect("an address");
            found.push(i64::from(u32::from(ip)) - i64::from(u32::from(net)) - i64::from(band));
        }
        found
    };
    let first = field.host("node01", 3).await;
    assert_eq!(given(&field, &first).await, [1; 3], "the dynamic band");
    let second = field.host("node02", 3).await;
    let had = given(&field, &second).await;
    assert!(had.iter().all(|above| [0, -1].contains(above)), "the static band: {had:?}");
    let held = async |field: &Field, held: u64| -> Vec<Value> {
        let mut all = Vec::new();
        for (name, ..) in pools {
            let mut pool = field.until_pool(name, "held", |pool| pool["status"]["allocated"] == held).await;
            all.push(json!([
                pool["status"]["allocations"].take(),
                pool["status"]["allocated-offsets"].take()
            ]));
        }
        all
    };
    let of_two = held(&field, 2).await;
    let say = async |field: &Field, band: &str| {
        for (name, ..) in pools {
            field.patch_pool(name, json!({"spec": {"staticBand": band}})).await;
        }
    };
    say(&field, "None").await;
    assert_eq!(held(&field, 2).await, of_two);
    let third = field.host("node03", 3).await;
    let rest: Vec<i64> = had.iter().map(|above| -1 - above).collect();
    assert_eq!(given(&field, &third).await, rest);
    let of_three = held(&field, 3).await;
    say(&field, "Auto").await;
    field.agree().await;
    assert_eq!(held(&field, 3).await, of_three);
    for (two, three) in of_two.iter().zip(&of_three) {
        let (two, three) = (two[0].as_object().expect("holders"), three[0].as_object().expect("holders"));
        assert!(two.iter().all(|(ip, entry)| three.get(ip) == Some(entry)), "{two:?} {three:?}");
    }
    assert_eq!((given(&field, &first).await, given(&field, &second).await), (vec![1; 3], had));
    field.agree().await;
}

/// R78, R92: a range of both families gives one of each, or none: what is left of one family alone serves nobody.
pub(crate) async fn r78_r92_both_families_or_none(on: On) {
    let field = Field::new(on).await;
    let range = json!({
        "ipv4": {"cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.9"},
        "ipv6": {"cidr": "fd00:10::/64", "start": "fd00:10::1", "end": "fd00:10::1"},
    });
    field.pool("dual", json!({"range": range, "quarantine": "1s", "staticBand": "None"})).await;
    let first = field.host("node01", 1).await;
    field.policy("one", one_address("dual")).await;
    let own = field.until_standing(&first, "one", "Available").await;
    let capture = &own["status"]["capturedStates"]["address"];
    assert_eq!(capture["ipv6"]["ip"], "fd00:10::1");
    assert_eq!(capture["ipv6"]["prefix-length"], 64);
    assert_eq!(capture["ipv4"]["ip"], capture["ip"]);
    let second = field.host("node02", 1).await;
    let own = field.until_standing(&second, "one", "Failing").await;
    assert_eq!(own["status"]["ippool"]["dual"]["refused"]["address"]["reason"], "NoAddress");
    let pool = field.until_pool("dual", "full", |pool| pool["status"]["available"] == 0).await;
    assert_eq!(pool["status"]["allocations"].as_object().map(serde_json::Map::len), Some(2));
    assert!(second.addresses("eth0").is_empty());
    // The policy puts one of them on the card.
    field.agree_but(&["dual: fd00:10::1: the kernel doesn't have it"]).await;
}

/// R102: what the settings name is never given, by the controller or by a host that serves itself; nor are Service CIDRs,
/// where the API has them, from the moment at which they are there.
pub(crate) async fn r102_networks_of_the_cluster_are_never_given(on: On) {
    let exclude = vec!["10.99.77.0/30".parse().expect("a network")];
    let mut field = Field::told(on, Settings { exclude: exclude.clone(), ..Settings::default() }).await;
    let range = json!({"cidr": "10.99.77.0/24", "start": "10.99.77.1", "end": "10.99.77.5"});
    field.pool("traffic-1", json!({"range": range, "staticBand": "None"})).await;
    field.until_pool("traffic-1", "counted", |pool| pool["status"]["available"] == 2).await;
    let first = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&first, "one", "Available").await;
    let given = first.addresses("eth0");
    assert!(["10.99.77.4/24", "10.99.77.5/24"].contains(&given[0].as_str()), "{given:?}");
    let rest = if given[0] == "10.99.77.4/24" { "10.99.77.5" } else { "10.99.77.4" };
    if matches!(on, On::Real(_)) {
        let cidrs = json!([format!("{rest}/32")]);
        let object = json!({"metadata": {"name": "more"}, "spec": {"cidrs": cidrs}});
        field.create::<ServiceCIDR>(object).await;
        field.until_pool("traffic-1", "counted again", |pool| pool["status"]["available"] == 0).await;
    }
    field.lose_controller().await;
    let mut second = field.machine("node02", 1);
    second.exclude = exclude;
    field.make_node("node02", "True").await;
    field.start(&mut second).await;
    match on {
        On::Real(_) => {
            let own = field.until_standing(&second, "one", "Failing").await;
            let message = own["status"]["ippool"]["traffic-1"]["refused"]["address"]["message"].to_string();
            assert!(message.contains("Service CIDR"), "{message}");
            field.delete::<ServiceCIDR>("more").await;
        }
        On::Embedded => {
            field.until_standing(&second, "one", "Available").await;
            assert_eq!(second.addresses("eth0"), [format!("{rest}/24")]);
        }
    }
    field.agree().await;
}

/// R81, R103: a pool that the controller's configuration lists is made, and made again when it is gone; one that says
/// otherwise is left as it is, and that is told with what to do.
pub(crate) async fn r81_r103_pools_of_the_configuration_are_there(on: On) {
    let spec = json!({"ranges": [{"name": "a", "cidr": "10.10.10.0/24"}]});
    let listed: NodeIPPool =
        serde_json::from_value(json!({"metadata": {"name": "default"}, "spec": spec})).expect("a pool");
    let listing = |pool: &NodeIPPool| Settings {
        ensure: [("default".to_owned(), pool.clone())].into(),
        grace: Duration::from_secs(1),
        ..Settings::default()
    };
    let mut field = Field::told(on, listing(&listed)).await;
    let label = |pool: &Value| pool["metadata"]["labels"]["nmstate.io/from-configuration"].clone();
    let up_to_date = |pool: &Value| pool["status"]["conditions"][0]["status"] == "True";
    let made = field.until_pool("default", "up to date", up_to_date).await;
    assert_eq!(label(&made), "true");
    field.delete::<NodeIPPool>("default").await;
    let is_another = |pool: &Value| pool["metadata"]["uid"] != made["metadata"]["uid"] && up_to_date(pool);
    let again = field.until_pool("default", "made again", is_another).await;
    // Somebody appends a range: theirs to do, and no difference.
    let more = json!({"name": "b", "cidr": "10.10.20.0/24"});
    let first = again["spec"]["ranges"][0].clone();
    field.patch_pool("default", json!({"spec": {"ranges": [first, more]}})).await;
    // And the configuration gets one that the pool lacks: told, and left.
    let mut other = listed.clone();
    other.spec.ranges =
        serde_json::from_value(json!([{"name": "c", "cidr": "10.10.40.0/24"}])).expect("ranges");
    field.lose_controller().await;
    field.tell(listing(&other));
    field.find_controller();
    let event = told_that(&field, POOL, "ConfigurationDiffers", "range c").await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    let pool = field.until_pool("default", "left alone", |_| true).await;
    assert_eq!(pool["spec"]["ranges"].as_array().map(Vec::len), Some(2));
    field.agree().await;
}

fn graced(seconds: u64) -> Settings {
    Settings { grace: Duration::from_secs(seconds), ..Settings::default() }
}

/// The grace is for those who use a pool: one that nobody uses goes at once, whether nobody ever did or the last has let go. One
/// that is in use stays.
pub(crate) async fn a_pool_that_nobody_uses_goes_at_once(on: On) {
    let field = Field::told(on, graced(3600)).await;
    let range = |net: u8| json!({"range": {"cidr": format!("10.10.{net}.0/24")}});
    let is_proven = |pool: &Value| pool["status"]["rebuiltFor"] == pool["metadata"]["uid"];
    for (name, net) in [("used", 10), ("idle", 20)] {
        field.pool(name, range(net)).await;
        field.until_pool(name, "proven", is_proven).await;
    }
    field.policy("one", one_address("used")).await;
    let host = field.host("node01", 1).await;
    field.until_standing(&host, "one", "Available").await;

    field.delete::<NodeIPPool>("used").await;
    field.delete::<NodeIPPool>("idle").await;
    field.until_gone::<NodeIPPool>("idle").await;
    // What came before that was looked at before that.
    let used =
        field.until_pool("used", "going", |pool| !pool["metadata"]["deletionTimestamp"].is_null()).await;
    assert_eq!(used["status"]["allocated"], 1);
    field.delete_policy("one").await;
    field.until_no_enactment(&host, "one").await;
    assert_eq!(host.addresses("eth0"), Vec::<String>::new());
    field.until_gone::<NodeIPPool>("used").await;
    field.agree().await;
}

/// R62, R64, R65, R82, R95, R96, R109 (Delete, Terminate, delete a range in use): renumbering. A new range, the old one drains: it gives nothing new, and can't go while it holds
/// something, nor before its grace is over; who claims anew gets of the new one. A holder who had not been heard of says so in
/// that time: told, and it has to wait on. Then it goes, and nobody's address changes by that.
pub(crate) async fn r62_r64_r65_r82_r95_r96_a_range_drains_and_goes(on: On) {
    let mut field = Field::told(on, graced(3600)).await;
    let old = json!({"name": "old", "cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.9"});
    field.pool("racks", json!({"ranges": [old], "quarantine": "1s", "staticBand": "None"})).await;
    let mut policy = one_address("racks");
    policy["maxUnavailable"] = json!("100%");
    field.policy("one", policy.clone()).await;
    let first = field.host("node01", 1).await;
    let holds = |own: &Value| !own["status"]["ippool"]["racks"]["requests"]["address"]["holds"].is_null();
    field.until_standing(&first, "one", "Available").await;
    let held = field.until_enactment(&first, "one", "held", holds).await;
    let kept = |pool: &Value| pool["metadata"]["finalizers"].to_string().contains("nmstate.io/range-in-use");
    field.until_pool("racks", "kept by a finalizer", kept).await;

    let mut draining = old.clone();
    draining["state"] = json!("Draining");
    let new = json!({"name": "new", "cidr": "10.10.20.0/24"});
    field.patch_pool("racks", json!({"spec": {"ranges": [draining, new]}})).await;
    let second = field.host("node02", 1).await;
    field.until_standing(&second, "one", "Available").await;
    assert!(second.addresses("eth0")[0].starts_with("10.10.20."), "a draining range gives nothing new");
    let only_new = json!({"spec": {"ranges": [new]}});
    let refused =
        field.try_patch_pool("racks", only_new.clone()).await.expect_err("it is in use").to_string();
    assert!(refused.contains("a range that holds addresses can't be removed"), "{refused}");

    field.delete_policy("one").await;
    field.until_no_enactment(&first, "one").await;
    field.policy("one", policy).await;
    field.until_standing(&first, "one", "Available").await;
    assert!(first.addresses("eth0")[0].starts_with("10.10.20."), "renumbered");
    let refused = field.try_patch_pool("racks", only_new.clone()).await.expect_err("too soon").to_string();
    assert!(refused.contains("wait until status.drained names it"), "{refused}");

    field.lose_controller().await;
    field.tell(graced(1));
    field.find_controller();
    let is_drained = |pool: &Value| pool["status"]["drained"] == json!(["old"]);
    field.until_pool("racks", "drained", is_drained).await;
    // Somebody has held an address of it all the time.
    field.make_node("node03", "False").await;
    field.copy_enactment("node03", "late", held["status"]["ippool"].clone()).await;
    told_that(&field, POOL, "RangeInUse", "range old").await;
    field.until_pool("racks", "in use", |pool| pool["status"]["drained"].is_null()).await;
    let refused =
        field.try_patch_pool("racks", only_new.clone()).await.expect_err("in use again").to_string();
    assert!(refused.contains("a range that holds addresses can't be removed"), "{refused}");
    field.delete::<Node>("node03").await;
    field.until_pool("racks", "drained again", is_drained).await;
    let had = [first.addresses("eth0"), second.addresses("eth0")];
    field.patch_pool("racks", only_new).await;
    let gone = |pool: &Value| pool["status"]["drained"].is_null() && pool["status"]["allocated"] == 2;
    field.until_pool("racks", "without it", gone).await;
    assert_eq!([first.addresses("eth0"), second.addresses("eth0")], had);
    field.agree().await;
}

/// R62, R74, R75: a full range grows to one that overlaps it, and shrinks to it again. Each time the old one drains, and goes when the
/// new one has all that it holds, though nobody gave anything back; holders keep what they have. Who turns up afterwards with
/// an address that is in neither is told of.
pub(crate) async fn r62_r74_r75_a_range_goes_when_another_has_all_it_holds(on: On) {
    let field = Field::told(on, graced(1)).await;
    let small = json!({"name": "small", "cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.2"});
    field.pool("racks", json!({"ranges": [small], "quarantine": "1s", "staticBand": "None"})).await;
    let mut policy = one_address("racks");
    policy["maxUnavailable"] = json!("100%");
    field.policy("one", policy).await;
    let hosts = [field.host("node01", 1).await, field.host("node02", 1).await];
    for host in &hosts {
        field.until_standing(host, "one", "Available").await;
    }
    let full = field.until_pool("racks", "full", |pool| pool["status"]["available"] == 0).await;
    let cards = || hosts.each_ref().map(|host| host.addresses("eth0"));
    let had = cards();
    let wide = json!({"name": "wide", "cidr": "10.10.10.0/23"});
    let narrow = json!({"name": "narrow", "cidr": "10.10.10.0/24"});
    for (mut old, new) in [(small, &wide), (wide.clone(), &narrow)] {
        let name = old["name"].clone();
        old["state"] = json!("Draining");
        field.patch_pool("racks", json!({"spec": {"ranges": [old, new]}})).await;
        field.until_pool("racks", "drained", |pool| pool["status"]["drained"] == json!([name])).await;
        field.patch_pool("racks", json!({"spec": {"ranges": [new]}})).await;
        let gone = |pool: &Value| pool["status"]["drained"].is_null() && pool["status"]["allocated"] == 2;
        let pool = field.until_pool("racks", "without it", gone).await;
        assert_eq!(pool["status"]["allocations"], full["status"]["allocations"]);
        assert_eq!(cards(), had);
    }
    let mut late = field.enactment(&hosts[0], "one").await["status"]["ippool"].clone();
    late["racks"]["requests"]["address"]["id"] = json!("late");
    late["racks"]["requests"]["address"]["holds"]["ip"] = json!("10.10.11.9");
    late["racks"].as_object_mut().expect("claims").remove("grants");
    field.make_node("node03", "False").await;
    field.copy_enactment("node03", "late", late).await;
    let event = told_that(&field, POOL, "AddressInNoRange", "10.10.11.9 (node node03)").await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(cards(), had);
    field.agree_but(&["enactment node03.late"]).await;
}
