//! Hosts and documents out of a generator, on the real kernel: the same that the pure plan's properties run on.
//!
//! A namespace is brought to what the generated host is, then the generated document is applied. What the plan takes,
//! the kernel must take: a step that it refuses is a hole in the model, though everything is put back.

use policy::plan::testing::{CARDS, scenario};
use serde_json::Value;

use crate::ground::{Ground, Ran};

/// Bytes that look random and are always the same.
fn bytes(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    std::iter::repeat_with(byte).take(400).collect()
}

/// Whether a document asks only for what this machine's kernel has.
fn is_plain(document: &Value) -> bool {
    let links = document["interfaces"].as_array().map_or(&[][..], Vec::as_slice);
    let plain = |link: &Value| {
        let kind = link["type"].as_str().unwrap_or("ethernet");
        let ports = link["bridge"]["port"].as_array().map_or(&[][..], Vec::as_slice);
        ["ethernet", "loopback", "veth", "linux-bridge", "mac-vlan"].contains(&kind)
            && ports.iter().all(|port| port.get("vlan").is_none_or(|vlan| vlan.get("mode").is_none()))
    };
    links.iter().all(plain)
}

/// How a scenario ended.
enum End {
    /// Asks for what can't be; said so, and nothing was touched.
    Refused,
    Applied,
}

fn is_refusal(ran: &Ran) -> bool {
    ran.code == 1 && ran.stderr.contains("can't be applied")
}

fn play(seed: u64) -> Option<End> {
    let scenario = scenario(&bytes(seed));
    let mut host = scenario.host.to_value();
    // The hostname and the resolver are not the namespace's.
    for section in ["hostname", "dns-resolver"] {
        host.as_object_mut().unwrap().shift_remove(section);
    }
    if !(crate::guest::is_here() || is_plain(&host) && is_plain(&scenario.document)) {
        return None;
    }
    let (ground, _far) = Ground::with_cards(CARDS.len());
    let told = ground.apply(&host.to_string());
    if is_refusal(&told) {
        return Some(End::Refused);
    }
    told.ok();
    let before = ground.dump();
    let mut document = scenario.document;
    for section in ["hostname", "dns-resolver"] {
        document.as_object_mut().unwrap().shift_remove(section);
    }
    let told = ground.apply(&document.to_string());
    if is_refusal(&told) {
        assert_eq!(ground.dump(), before);
        return Some(End::Refused);
    }
    assert_eq!(told.code, 0, "seed {seed}: {}\nof {host:#}\nasked for {document:#}", told.stderr);
    ground.is_settled(&document.to_string());
    Some(End::Applied)
}

/// Plays these until enough of them have come to something.
pub(crate) fn all(seeds: std::ops::Range<u64>, least: usize) {
    let (mut applied, mut refused) = (0, 0);
    for end in seeds.filter_map(play) {
        if applied == least {
            break;
        }
        match end {
            End::Applied => applied += 1,
            End::Refused => refused += 1,
        }
    }
    println!("{applied} applied, {refused} refused");
    assert!(applied >= least, "only {applied} applied, {refused} refused");
}

#[test]
fn generated_hosts_and_documents() {
    let begin = std::env::var("BERTH_SEED").map_or(0, |seed| seed.parse().unwrap());
    all(begin..begin + 400, 12);
}
