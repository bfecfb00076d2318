//! What a person reads when it isn't Berth's fault; and names that no document could say.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use crate::dump::assert_same;
use crate::ground::{Ground, berth, run};

#[test]
fn a_hostname_or_a_resolver_that_a_namespace_has_not() {
    let (ground, _far) = Ground::with_cards(1);
    let before = ground.dump();
    let document = "{hostname: {config: node01}, interfaces: [{name: eth0, mtu: 1400}]}";
    for args in [&["apply", "-f", "-"][..], &["apply", "-f", "-", "--dry-run"], &["plan", "-f", "-"]] {
        let said = ground.berth(args, document).fails_with("hostname: a network namespace has no hostname");
        assert!(said.contains("can't be applied") && said.contains("without --netns"), "{said}");
    }
    // By its path it has no resolver either; with whatever else is wrong, all at once.
    let path = format!("/run/../run/netns/{}", ground.name);
    let wrong = "{hostname: {config: node01}, dns-resolver: {config: {server: [10.0.0.53]}}, \
                 interfaces: [{name: nope0, mtu: 1400}]}";
    for verb in ["apply", "plan"] {
        let mut command = Command::new(berth());
        command.args([verb, "-f", "-", "--netns", &path, "--state-dir"]).arg(&ground.state_dir);
        let said = run(&mut command, wrong).fails_with("interfaces[0].name: there is no interface nope0");
        for part in ["hostname: a network namespace has", "dns-resolver: a network namespace without a name"]
        {
            assert!(said.contains(part), "{part} is not in {said}");
        }
    }
    assert_same(&before, &ground.dump(), "refused");
    assert_eq!(ground.checkpoints(), 0);
    // What is shown there is no-op all the same.
    let by_path = |args: &[&str], stdin: &str| {
        let mut command = Command::new(berth());
        command.args(args).args(["--netns", &path, "--state-dir"]).arg(&ground.state_dir);
        run(&mut command, stdin).ok()
    };
    let shown = by_path(&["show"], "");
    assert_eq!(by_path(&["apply", "-f", "-"], &shown), "nothing to do\n");
}

#[test]
fn a_gateway_that_is_this_host() {
    let (ground, _far) = Ground::with_cards(2);
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    ground.ip("addr add fd00::1/64 dev eth0 nodad");
    ground.ip("addr add fd00::2/128 dev eth1 nodad");
    for (via, on) in [("10.0.0.1", "eth0"), ("fd00::1", "eth0"), ("fd00::2", "eth1")] {
        let to = if via.contains(':') { "'fd09::/32'" } else { "10.9.0.0/16" };
        let route = format!(
            "routes: {{config: [{{destination: {to}, next-hop-interface: eth0, next-hop-address: '{via}'}}]}}"
        );
        let said = format!("routes.config[0].next-hop-address: {via} is this host's own address, on {on}");
        ground.apply(&route).fails_with(&said);
    }
    // Of IPv6 the kernel wouldn't have it either; of IPv4 it would, as a route without a gateway: shown, it may stay.
    let ran = ground.try_ip("-6 route add fd09::/32 via fd00::2 dev eth0");
    assert!(ran.code != 0 && ran.stderr.contains("local address"), "{ran:?}");
    ground.ip("route add 10.9.0.0/16 via 10.0.0.1 dev eth0");
    ground.shows_what_holds();
}

#[test]
fn a_veth_without_its_other_end() {
    let ground = Ground::new();
    ground
        .apply("interfaces: [{name: v0, type: veth, state: up}]")
        .fails_with("interfaces[0].veth.peer: is missing; a new veth needs it");
}

#[test]
fn what_is_no_namespace() {
    let folder = std::env::temp_dir();
    for path in ["/etc/passwd", "/proc/self/ns/mnt", folder.to_str().unwrap()] {
        let ran = run(Command::new(berth()).args(["show", "--netns", path]), "");
        let said = ran.fails_with(&format!("{path} is not a network namespace"));
        assert!(!said.contains("CAP_SYS_ADMIN"), "{said}");
    }
    run(Command::new(berth()).args(["show", "--netns", "/nowhere/at-all"]), "")
        .fails_with("can't open the network namespace /nowhere/at-all");
}

/// The kernel takes nearly any bytes for a name. They are shown escaped and left alone; all else works beside them.
#[test]
fn names_that_are_no_text() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    let odd: [&[u8]; 3] =
        [b"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6\xf5\xf4\xf3\xf2\xf1", b"a\x01b", b"caf\xe9"];
    for (n, name) in odd.iter().enumerate() {
        let mut ip = Command::new("ip");
        ip.args(["-n", &ground.name, "link", "add"]).arg(OsStr::from_bytes(name));
        run(ip.args(["type", "veth", "peer", "name", &format!("peer{n}")]), "").ok();
        let mut ip = Command::new("ip");
        run(ip.args(["-n", &ground.name, "link", "set"]).arg(OsStr::from_bytes(name)).arg("up"), "").ok();
        let mut ip = Command::new("ip");
        ip.args(["-n", &ground.name, "addr", "add", &format!("10.{}.0.1/24", n + 1), "dev"]);
        run(ip.arg(OsStr::from_bytes(name)), "").ok();
        ground.ip(&format!("route add 10.10{n}.0.0/16 via 10.{}.0.254", n + 1));
    }
    let state = ground.berth(&["show", "-o", "json"], "");
    assert_eq!(state.stderr, "");
    let state: serde_json::Value = serde_json::from_str(&state.ok()).unwrap();
    let links = state["interfaces"].as_array().unwrap();
    for name in [r"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6\xf5\xf4\xf3\xf2\xf1", r"a\x01b", r"caf\xe9"] {
        let link =
            links.iter().find(|link| link["name"] == name).unwrap_or_else(|| panic!("{name}: {state:#}"));
        assert_eq!(link["state"], "ignore");
    }
    ground.shows_what_holds();
    let before = crate::dump::without(&ground.dump(), &["eth0"]);
    let document = "interfaces: [{name: eth0, mtu: 1400, ipv4: {enabled: true, address: [{ip: 10.0.0.2, prefix-length: 24}]}}]";
    ground.apply(document).ok();
    ground.is_settled(document);
    assert_same(&before, &crate::dump::without(&ground.dump(), &["eth0"]), "beside them");
}
