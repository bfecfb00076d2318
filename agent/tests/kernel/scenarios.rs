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

/// How it ended, or what the kernel made of it; nothing, if this machine's kernel hasn't the kinds it needs.
fn play(seed: u64) -> Option<Result<End, String>> {
    let scenario = scenario(&bytes(seed));
    let (mut host, mut document) = (scenario.host.to_value(), scenario.document);
    // The hostname and the resolver are not the namespace's.
    for section in ["hostname", "dns-resolver"] {
        host.as_object_mut().unwrap().shift_remove(section);
        document.as_object_mut().unwrap().shift_remove(section);
    }
    // Its cards have link-local addresses of their own.
    for link in host["interfaces"].as_array_mut().unwrap() {
        if let Some(list) = link["ipv6"]["address"].as_array_mut() {
            list.retain(|address| !address["ip"].as_str().unwrap().starts_with("fe80"));
        }
    }
    if !(crate::guest::is_here() || is_plain(&host) && is_plain(&document)) {
        return None;
    }
    let fault = |what: &str, said: &str| {
        Some(Err(format!("seed {seed}: {what}: {said}\nof {host:#}\nasked for {document:#}")))
    };
    let (ground, _far) = Ground::with_cards(CARDS.len());
    let told = ground.apply(&host.to_string());
    if is_refusal(&told) {
        return Some(Ok(End::Refused));
    }
    if told.code != 0 {
        return fault("the host", &told.stderr);
    }
    let before = ground.dump();
    let told = ground.apply(&document.to_string());
    if is_refusal(&told) {
        let untouched = ground.dump() == before;
        return if untouched { Some(Ok(End::Refused)) } else { fault("refused, yet changed", &told.stderr) };
    }
    if told.code != 0 {
        return fault("the document", &told.stderr);
    }
    let shown = ground.berth(&["show"], "").ok();
    for (what, text) in [("asked again", &document.to_string()), ("asked for what is shown", &shown)] {
        let told = ground.apply(text);
        if told.stdout != "nothing to do\n" {
            return fault(what, &format!("{}{}", told.stdout, told.stderr));
        }
    }
    Some(Ok(End::Applied))
}

/// Plays from this seed on until enough of them have come to something, and says all that went wrong.
/// `BERTH_SEED` and `BERTH_SCENARIOS` look elsewhere, and further.
pub(crate) fn all(seed: u64, least: u64) {
    let number =
        |variable: &str, default| std::env::var(variable).map_or(default, |text| text.parse().unwrap());
    let (seed, least) = (number("BERTH_SEED", seed), number("BERTH_SCENARIOS", least));
    let (mut applied, mut refused) = (0, 0);
    let mut faults = Vec::new();
    for end in (seed..seed + 40 * least).filter_map(play) {
        match end {
            Ok(End::Applied) => applied += 1,
            Ok(End::Refused) => refused += 1,
            Err(fault) => faults.push(fault),
        }
        if applied == least {
            break;
        }
    }
    println!("{applied} applied, {refused} refused");
    assert!(faults.is_empty(), "{} went wrong:\n{}", faults.len(), faults.join("\n\n"));
    assert!(applied >= least, "only {applied} applied, {refused} refused");
}

#[test]
fn generated_hosts_and_documents() {
    all(0, 12);
}
