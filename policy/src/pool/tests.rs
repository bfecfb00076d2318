//! Tests of the pool, by topic; requirement numbers in names or comments.

mod allocator;
mod bands;
mod change;
mod choosing;
mod codec;
mod offsets;
mod properties;
mod ranks;
mod sets;
mod slices;
mod speak;
mod specs;
mod standing;
mod tally;

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::Value;

use super::*;

/// The spec that stands under `spec:` in a manifest of pool `traffic-1`.
fn spec(yaml: &str) -> PoolSpec {
    let value: Value = serde_saphyr::from_str(yaml).expect("test YAML");
    PoolSpec::from_spec("traffic-1", &value).unwrap_or_else(|e| panic!("{e}"))
}

fn pool(yaml: &str) -> Pool {
    Pool::new(&spec(yaml)).unwrap_or_else(|e| panic!("{e}"))
}

/// Every error of a spec, as a person sees them.
fn errors(yaml: &str) -> Vec<String> {
    let value: Value = serde_saphyr::from_str(yaml).expect("test YAML");
    let read = PoolSpec::from_spec("traffic-1", &value).and_then(|spec| Pool::new(&spec));
    read.expect_err("must be refused").0.iter().map(ToString::to_string).collect()
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("test address")
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

/// What node `name` gets next.
fn next(pool: &Pool, taken: &Taken, name: &str) -> Result<Choice, NoAddress> {
    next_of(pool, taken, &Barred::default(), name, Want::Any)
}

fn next_of(pool: &Pool, taken: &Taken, barred: &Barred, name: &str, want: Want) -> Result<Choice, NoAddress> {
    let none = BTreeMap::new();
    let holder = Holder { node: name, capture: "address", declined: &[], want };
    choose(&PoolView { pool, taken, barred }, &holder, &NodeView { name, labels: &none })
}

fn address(choice: &Choice) -> IpAddr {
    choice.given().next().expect("an address").ip
}

/// Gives to node after node until there is nothing left; the addresses in the order given.
fn drain(pool: &Pool, taken: &mut Taken) -> Vec<IpAddr> {
    let mut given = Vec::new();
    for i in 0.. {
        match next(pool, taken, &format!("node{i}")) {
            Ok(choice) => {
                for one in choice.given() {
                    assert!(taken.insert(one.ip), "{} given twice", one.ip);
                    given.push(one.ip);
                }
            }
            Err(NoAddress::Exhausted { .. }) => return given,
            Err(other) => panic!("{other}"),
        }
    }
    given
}
