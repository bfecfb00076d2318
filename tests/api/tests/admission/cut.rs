//! A slice is one that its pool would cut, by both servers.

use api_tests::RUNTIME;
use api_tests::server::paths::{POOLS, SLICES, at};
use api_tests::wait::until;
use hyper::Method;
use serde_json::{Value, json};

use super::ground::{Asker, Ground, HOST};

/// A pool's spec, the slices that it is cut into, and such as it is not.
fn table() -> Vec<(&'static str, Value, &'static [&'static str], &'static [&'static str])> {
    let range = |range: Value| json!({"range": range});
    vec![
        (
            "whole",
            range(json!({"cidr": "10.0.0.0/24", "perNodeHostBits": 4})),
            &["10.0.0.0/28", "10.0.0.16/28", "10.0.0.240/28"],
            &["10.0.0.0/24", "10.0.0.0/29", "10.0.1.0/28"],
        ),
        (
            "part",
            range(
                json!({"cidr": "10.0.0.0/24", "start": "10.0.0.20", "end": "10.0.0.100", "perNodeHostBits": 4}),
            ),
            &["10.0.0.32/28", "10.0.0.80/28"],
            &["10.0.0.0/28", "10.0.0.16/28", "10.0.0.96/28", "10.0.0.112/28"],
        ),
        // The first and the last that a host may have are as good as the network's ends.
        (
            "usable",
            range(
                json!({"cidr": "10.0.0.0/24", "start": "10.0.0.1", "end": "10.0.0.254", "perNodeHostBits": 4}),
            ),
            &["10.0.0.0/28", "10.0.0.240/28"],
            &["10.0.1.0/28"],
        ),
        (
            "single",
            range(json!({"cidr": "10.0.0.0/24", "perNodeHostBits": 0})),
            &["10.0.0.1/32", "10.0.0.254/32"],
            &["10.0.0.0/32", "10.0.0.255/32"],
        ),
        (
            "six",
            range(
                json!({"cidr": "2001:db8::/64", "start": "2001:db8::1", "end": "2001:db8::ffff", "perNodeHostBits": 8}),
            ),
            &["2001:db8::/120", "2001:db8::ff00/120"],
            &["2001:db8::1:0/120", "2001:db8::/112"],
        ),
        (
            "dual",
            json!({"ranges": [
                {"name": "a", "ipv4": {"cidr": "10.1.0.0/16"}, "ipv6": {"cidr": "fd00::/64"}, "perNodeHostBits": 8},
            ]}),
            &["10.1.3.0/24", "fd00::300/120"],
            &["10.2.0.0/24", "fd00:1::/120"],
        ),
        ("shared", range(json!({"cidr": "10.0.0.0/24"})), &[], &["10.0.0.0/28"]),
    ]
}

fn slice(pool: &str, cidr: &str, uid: &str) -> Value {
    let first = cidr.split('/').next().unwrap_or_default();
    let end = if first.ends_with(':') { "0" } else { "" };
    let name = format!("{pool}.{first}{end}").replace(':', "-");
    json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeIPSlice", "metadata": {"name": name},
        "spec": {"pool": pool, "cidr": cidr, "node": HOST, "nodeUID": uid},
    })
}

/// What the server says of a slice: nothing, or why not.
async fn ask(ground: &Ground, who: &Asker, pool: &str, cidr: &str) -> Result<(), String> {
    let path = format!("{SLICES}?dryRun=All");
    let slice = slice(pool, cidr, &ground.uids.node01);
    let answer = who.ask(Method::POST, &path, "application/json", &slice).await;
    if answer.code == 201 {
        return Ok(());
    }
    assert_eq!(answer.code, 403, "{}", answer.text);
    let message = answer.body["message"].as_str().unwrap_or_default();
    let words = message.rsplit(" denied request: ").next().unwrap_or_default();
    Err(words.rsplit(" is forbidden: ").next().unwrap_or_default().to_owned())
}

async fn check(ground: &Ground) {
    let who = ground.unbridled.as_ref().map_or(&ground.agent, |(agent, _)| agent);
    for (pool, spec, cut, foreign) in table() {
        let object = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "metadata": {"name": pool}, "spec": spec});
        ground.admin.post(POOLS, &object).await.created();
        // A real server evaluates policies on what it has heard of pools: a moment ago.
        until(&format!("pool {pool} heard of"), || async {
            match ask(ground, who, pool, foreign[0]).await {
                Ok(()) => Err("no pool".to_owned()),
                Err(_) => Ok(()),
            }
        })
        .await;
        for cidr in cut {
            assert_eq!(ask(ground, who, pool, cidr).await, Ok(()), "{pool} {cidr}");
        }
        for cidr in foreign {
            let told = format!("{cidr} is not a slice of pool {pool}: none of its ranges is cut that way");
            assert_eq!(ask(ground, who, pool, cidr).await, Err(told), "{pool} {cidr}");
        }
        if let Some(cidr) = cut.first() {
            stopped(ground, who, pool, cidr).await;
        }
        ground.admin.delete(&at(POOLS, pool)).await.ok();
    }
}

/// What is free by the word of a pool that went back in time may be in use.
async fn stopped(ground: &Ground, who: &Asker, pool: &str, cidr: &str) {
    for (annotation, why) in
        [("nmstate.io/hold", "it is on hold"), ("nmstate.io/reset-ippool", "its ledger is to be rebuilt")]
    {
        let mark = |value: Value| json!({"metadata": {"annotations": {annotation: value}}});
        ground.admin.merge(&at(POOLS, pool), &mark("".into())).await.ok();
        let told = Err(format!("the pool gives nothing: {why}"));
        until(&format!("pool {pool} stopped"), || async {
            let said = ask(ground, who, pool, cidr).await;
            if said == told { Ok(()) } else { Err(format!("{said:?}")) }
        })
        .await;
        ground.admin.merge(&at(POOLS, pool), &mark(Value::Null)).await.ok();
        until(&format!("pool {pool} going on"), || async { ask(ground, who, pool, cidr).await }).await;
    }
}

#[test]
fn the_embedded_api_knows_how_pools_are_cut() {
    let ground = Ground::embedded();
    RUNTIME.block_on(check(&ground));
}

#[test]
fn a_policy_knows_how_pools_are_cut() {
    RUNTIME.block_on(check(Ground::real()));
}
