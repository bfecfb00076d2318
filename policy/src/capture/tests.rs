//! Tests of the capture language; `rows` is what kubernetes-nmstate answers, row by row.

mod change;
mod diagnostics;
mod memory;
mod order;
mod pools;
mod properties;
mod rows;
mod rules;
mod syntax;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Bindings, Cached, Captures, Diagnostics, Grants, Problem};

/// State S of the table: two NICs, three running routes, one configured, a resolver.
pub(crate) fn state() -> Value {
    json!({
        "dns-resolver": {"running": {"server": ["8.8.8.8", "1.1.1.1"], "search": ["example.org"]}, "config": {}},
        "routes": {
            "running": [
                {"destination": "0.0.0.0/0", "next-hop-interface": "eth1", "next-hop-address": "10.244.0.254", "table-id": 254, "metric": 100},
                {"destination": "1.1.1.0/24", "next-hop-interface": "eth1", "next-hop-address": "10.244.0.254", "table-id": 254},
                {"destination": "2.2.2.0/24", "next-hop-interface": "eth2", "next-hop-address": "10.245.0.254", "table-id": 254},
            ],
            "config": [
                {"destination": "0.0.0.0/0", "next-hop-interface": "eth1", "next-hop-address": "10.244.0.254", "table-id": 254},
            ],
        },
        "route-rules": {"config": [{"priority": 1000, "route-table": 100, "ip-from": "10.244.0.0/24"}]},
        "interfaces": [
            {"name": "eth1", "type": "ethernet", "state": "up", "mtu": 1500, "mac-address": "00:00:5E:00:00:01",
             "ipv4": {"enabled": true, "dhcp": false, "address": [
                {"ip": "10.244.0.1", "prefix-length": 24}, {"ip": "169.254.1.0", "prefix-length": 16}]},
             "ipv6": {"enabled": false}},
            {"name": "eth2", "type": "ethernet", "state": "down", "mtu": 9000, "mac-address": "00:00:5E:00:00:02",
             "ipv4": {"enabled": false}, "ipv6": {"enabled": false}},
        ],
    })
}

pub(crate) fn lines(captures: &[(&str, &str)]) -> BTreeMap<String, String> {
    captures.iter().map(|(name, line)| ((*name).to_owned(), (*line).to_owned())).collect()
}

/// Parses and evaluates on state S, with no memory and no grants.
pub(crate) fn eval(captures: &[(&str, &str)]) -> Result<Bindings, Diagnostics> {
    Captures::parse(&lines(captures))?.eval(&state(), &Cached::new(), &Grants::new())
}

/// The value of the last capture.
fn value(captures: &[(&str, &str)]) -> Value {
    let name = captures.last().unwrap().0;
    match eval(captures) {
        Ok(bindings) => bindings.get(name).unwrap().clone(),
        Err(wrong) => panic!("{wrong}"),
    }
}

/// The value of one line.
fn one(line: &str) -> Value {
    value(&[("x", line)])
}

/// The only problem of some captures.
fn problem_of(captures: &[(&str, &str)]) -> Problem {
    let wrong = eval(captures).expect_err("expected an error");
    assert_eq!(wrong.iter().count(), 1, "{wrong}");
    wrong.iter().next().unwrap().problem.clone()
}

/// The only problem of one line, with its column.
fn problem(line: &str) -> (usize, Problem) {
    let wrong = eval(&[("x", line)]).expect_err("expected an error");
    assert_eq!(wrong.iter().count(), 1, "{wrong}");
    let one = wrong.iter().next().unwrap().clone();
    (one.spot.unwrap().column, one.problem)
}

fn names(state: &Value) -> Vec<&str> {
    state["interfaces"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

fn destinations(state: &Value) -> Vec<&str> {
    state["routes"]["running"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["destination"].as_str().unwrap())
        .collect()
}

fn keys(state: &Value) -> Vec<&str> {
    state.as_object().unwrap().keys().map(String::as_str).collect()
}
