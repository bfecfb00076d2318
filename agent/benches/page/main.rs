//! The page with a large pool: a /16 cut into slices, 20,000 addresses of it held. `make bench BENCH=page`; with
//! `BERTH=target/release/berth` of the program that people run. Needs chromium and its driver (`make setup-tests`).
//!
//! `berth serve` is a process, and so is the browser. Of each row: when there is something to see (first contentful paint), when
//! the grid is drawn, both from the moment at which the address is opened; what the browser takes, all its processes (PSS), and
//! its scripts; what the server takes. First nobody has looked; then everything is known already; then a block is looked into.

#[allow(dead_code, reason = "the tests' own; of it this takes what it needs")]
#[path = "../../tests/operate/page/browser.rs"]
mod browser;
#[path = "../../tests/common/folder.rs"]
#[allow(dead_code, reason = "the tests' own; of it this takes what it needs")]
mod folder;
#[allow(dead_code, reason = "the tests' own; of it this takes what it needs")]
#[path = "../../tests/operate/support.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use browser::Browser;
use folder::Folder;
use support::{Berth, post, send};

/// Blocks of sixteen, and how many addresses of each are held: 20,000 in all.
const SLICES: usize = 4_000;
const HELD: usize = 5;

fn main() {
    // Cargo adds `--bench`; a name that isn't this table's is for another program.
    if std::env::args().skip(1).any(|arg| !arg.starts_with('-') && arg != "page") {
        return;
    }
    let folder = Folder::new();
    let listen = ["serve", "--in-memory", "--listen", "127.0.0.1:0", "--page-address", "127.0.0.1:0"];
    let program = std::env::var_os("BERTH").unwrap_or_else(|| env!("CARGO_BIN_EXE_berth").into());
    let mut server = Berth::start_as(Command::new(program), folder.path(), &listen);
    let after = |line: &str| line.rsplit('/').next().expect("an address").to_owned();
    let address = after(&server.until_says("listening on http://"));
    let page = after(&server.until_says("a page to look at on http://"));
    populate(&address);
    let before = resident(server.pid());
    println!(
        "a /16, {SLICES} slices, {} addresses held; the server before anybody looks: {before:.0} MiB",
        SLICES * HELD
    );
    println!(
        "{:<26}  {:>11}  {:>10}  {:>11}  {:>9}  {:>9}",
        "", "first paint", "grid drawn", "the browser", "scripts", "server"
    );
    let browser = Browser::start(folder.path());
    let whole = format!("http://{page}/#pool=wide");
    let near = format!("http://{page}/#pool=wide&range=default&family=4&from=0&bits=0");
    for (name, url) in
        [("nobody has looked before", &whole), ("looked at again", &whole), ("1,024 addresses of it", &near)]
    {
        // From nothing: what was open before is gone.
        browser.open("about:blank");
        browser.open(url);
        browser.until("document.querySelectorAll('#grid .cell').length", &json!(1024));
        let number = |script: &str| browser.eval(script).as_f64().unwrap_or(f64::NAN);
        let paint = number("performance.getEntriesByName('first-contentful-paint')[0]?.startTime");
        let drawn = number("performance.getEntriesByName('drawn')[0]?.startTime");
        let scripts = number("performance.memory.usedJSHeapSize") / f64::from(1 << 20);
        println!(
            "{name:<26}  {paint:>8.0} ms  {drawn:>7.0} ms  {:>7.0} MiB  {scripts:>5.1} MiB  {:>5.0} MiB",
            share(&folder.path().join("browser")),
            resident(server.pid())
        );
    }
}

fn populate(address: &str) {
    let api = "/apis/nmstate.io/v1";
    let spec = json!({"range": {"cidr": "10.20.0.0/16", "perNodeHostBits": 4}});
    let pool = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "metadata": {"name": "wide"}, "spec": spec});
    post(address, &format!("{api}/nodeippools"), &pool);
    for number in 0..SLICES {
        let first = number * 16;
        let at = |offset: usize| format!("10.20.{}.{}", (first + offset) / 256, (first + offset) % 256);
        let (name, node) = (format!("wide.{}", at(0)), format!("node{number:05}"));
        let spec = json!({"pool": "wide", "cidr": format!("{}/28", at(0)), "node": node, "nodeUID": node});
        let slice = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPSlice", "metadata": {"name": name}, "spec": spec});
        post(address, &format!("{api}/nodeipslices"), &slice);
        let entry = |offset: usize| {
            json!({"node": node, "nodeUID": node, "policy": "static-ip", "capture": format!("address-{offset}"),
                "request": format!("{node}-{offset}"), "sequence": 1, "since": "2026-01-01T00:00:00Z"})
        };
        let allocations: BTreeMap<String, Value> =
            (1..=HELD).map(|offset| (at(offset), entry(offset))).collect();
        let status = json!({"status": {"sequence": 1, "allocations": allocations}});
        let path = format!("{api}/nodeipslices/{name}/status");
        let answer = send(address, "PATCH", &path, "application/merge-patch+json", &status);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

/// What a process has in memory, in MiB.
fn resident(pid: u32) -> f64 {
    kib(&format!("/proc/{pid}/status"), "VmRSS:") / 1024.0
}

fn kib(file: &str, field: &str) -> f64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0.0)
}

/// What all processes of the browser with this profile have in memory, what they share counted once; in MiB.
fn share(profile: &Path) -> f64 {
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids: Vec<u32> = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let line = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let wanted = format!("--user-data-dir={}", profile.display());
    let mut own: Vec<u32> =
        pids.iter().copied().filter(|pid| line(*pid).split('\0').any(|word| word == wanted)).collect();
    // And whoever they started, and whoever those did.
    let mut at = 0;
    while let Some(parent) = own.get(at).copied() {
        let child = |pid: &u32| kib(&format!("/proc/{pid}/status"), "PPid:") as u32 == parent;
        let more: Vec<u32> = pids.iter().copied().filter(|pid| child(pid) && !own.contains(pid)).collect();
        own.extend(more);
        at += 1;
    }
    own.iter().map(|pid| kib(&format!("/proc/{pid}/smaps_rollup"), "Pss:")).sum::<f64>() / 1024.0
}
