//! Everything a namespace has, as lines that can be compared: the one way in which tests say that nothing changed.
//!
//! A line is one object, whole, so that those of a link can be told from the rest. What changes by itself (clocks, probes,
//! carriers) is left out.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use agent::netns::Namespace;
use serde_json::Value;

use crate::ground::{Ground, run};

/// Words that go along with the one after them: clocks, and what follows from the carrier.
const CHANGING: [&str; 11] = [
    "valid_lft",
    "preferred_lft",
    "expires",
    "hello_timer",
    "tcn_timer",
    "topology_change_timer",
    "forward_delay_timer",
    "hold_timer",
    "message_age_timer",
    "gc_timer",
    "state",
];

impl Ground {
    /// Links, addresses, routes of all tables, rules, what is set of neighbours, forwarding and next hops, the switches that
    /// documents know, and the resolver's file.
    #[track_caller]
    pub(crate) fn dump(&self) -> String {
        let parts = ["-d link", "addr", "route show table all", "-6 route show table all", "rule", "-6 rule"];
        let text: String = parts.iter().map(|part| self.ip(&format!("-o {part}"))).collect();
        let known = |name: &str| ["disable_ipv6", "forwarding", "accept_ra"].contains(&name);
        let mut lines = settled(&text);
        lines.extend(self.lasting_entries());
        lines.extend(self.switches(known));
        lines.extend(settled(&std::fs::read_to_string(self.resolv_conf()).unwrap_or_default()));
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// What somebody set for good of neighbours and of what bridges and tunnels forward, and next hop objects.
    fn lasting_entries(&self) -> Vec<String> {
        let neighbours = self.ip("-o neigh show nud permanent")
            + &self.ip("-o -6 neigh show nud permanent")
            + &self.ip("-o neigh show proxy")
            + &self.ip("-o -6 neigh show proxy");
        let objects = self.try_ip("-o nexthop").stdout;
        let forwarded = run(Command::new("bridge").args(["-n", &self.name, "fdb", "show"]), "").ok();
        // Groups are joined as addresses come, cards' filters are nobody's words, and links' own addresses are the kernel's.
        let links = self.ip("-o link");
        let set = |line: &&str| {
            let own =
                || line.split(' ').next().is_some_and(|mac| links.contains(&format!("link/ether {mac} ")));
            let of_bridge = || line.contains(" master ") && line.contains(" permanent") && !own();
            line.contains(" static") || line.contains(" dst ") || of_bridge()
        };
        let groups = run(Command::new("bridge").args(["-n", &self.name, "-d", "mdb", "show"]), "").stdout;
        let vlans = run(Command::new("bridge").args(["-n", &self.name, "-j", "vlan", "show"]), "").stdout;
        let vlans: Vec<Value> = serde_json::from_str(&vlans).unwrap_or_default();
        let mut lines: Vec<String> = neighbours.lines().chain(objects.lines()).map(settled_line).collect();
        lines.extend(forwarded.lines().filter(set).map(settled_line));
        lines.extend(groups.lines().filter(|line| line.contains(" permanent")).map(settled_line));
        lines.extend(vlans.iter().map(|port| format!("vlans of {}: {}", port["ifname"], port["vlans"])));
        lines.sort();
        lines.dedup();
        lines
    }

    /// Waits for the link-local addresses that were there then: the kernel brings its own back when it has noticed the carrier.
    #[track_caller]
    pub(crate) fn await_link_locals(&self, before: &str) {
        let own = |line: &&str| line.contains(" inet6 fe80") && line.contains("ff:fe");
        let wanted: Vec<&str> = before
            .lines()
            .filter(own)
            .flat_map(|line| line.split(' ').find(|word| word.starts_with("fe80")))
            .collect();
        let there = || self.ip("-6 -o addr");
        self.wait_until("link-local addresses are back", || {
            let there = there();
            wanted.iter().all(|address| there.contains(address))
        });
    }

    /// As it was then, or the test is over.
    #[track_caller]
    pub(crate) fn is_as(&self, before: &str) {
        self.await_link_locals(before);
        assert_same(before, &self.dump(), "in the end");
    }

    /// All that lasts is as it was then, or the test is over; `bare` says what of a dump that is. The kernel routes multicast over
    /// a link that it was given back when it has noticed the carrier.
    #[track_caller]
    pub(crate) fn is_still(&self, before: &str, bare: fn(&str) -> String, when: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let after = bare(&self.dump());
            if after == before || Instant::now() >= end {
                return assert_same(before, &after, when);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// All of that, every switch of every link, and what bridges know by heart.
    #[track_caller]
    pub(crate) fn dump_whole(&self) -> String {
        let mut text = self.dump();
        let bridge = |args: &[&str]| {
            let ran = run(Command::new("bridge").args(["-n", &self.name]).args(args), "");
            // This machine's kernel may have no VLANs on bridges, and then there are none.
            if ran.stderr.contains("Operation not supported") { String::new() } else { ran.ok() }
        };
        let learned = bridge(&["fdb", "show"]);
        // Groups are joined as addresses come, and what is learned is traffic.
        let kept = |line: &&str| {
            let joined = ["33:33:", "01:00:5e:"].iter().any(|group| line.starts_with(group));
            !joined && ["permanent", "static"].iter().any(|word| line.contains(word))
        };
        let mut lines: Vec<String> = learned.lines().filter(kept).map(str::to_owned).collect();
        lines.extend(bridge(&["-o", "-d", "vlan", "show"]).lines().map(str::to_owned));
        lines.extend(self.switches(|_| true));
        lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
        text
    }

    /// `/proc/sys/net/ipv{4,6}/conf`, a line each.
    fn switches(&self, wanted: impl Fn(&str) -> bool + Sync) -> Vec<String> {
        let read = || {
            let mut lines = Vec::new();
            for family in ["ipv4", "ipv6"] {
                let folder = Path::new("/proc/sys/net").join(family).join("conf");
                for link in list(&folder) {
                    for name in list(&folder.join(&link)).into_iter().filter(|name| wanted(name)) {
                        // One that was never set can't be read.
                        let value = std::fs::read_to_string(folder.join(&link).join(&name));
                        lines.push(format!("{family} {link} {name} = {}", value.unwrap_or_default().trim()));
                    }
                }
            }
            lines
        };
        Namespace::Named(self.name.clone()).inside(read).unwrap()
    }
}

fn list(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Without what comes about by itself.
fn settled(text: &str) -> Vec<String> {
    let own = |line: &&str| !["local fe80", "anycast fe80"].iter().any(|word| line.contains(word));
    text.lines().filter(own).map(settled_line).collect()
}

fn settled_line(line: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut words = line.split([' ', '\t', '\\']).filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        if CHANGING.contains(&word) {
            words.next();
        } else if word.starts_with('<') && word.ends_with('>') {
            let flags = word.trim_matches(['<', '>']).split(',');
            let set = flags.filter(|flag| !["NO-CARRIER", "LOWER_UP", "M-DOWN"].contains(flag));
            out.push(format!("<{}>", set.collect::<Vec<_>>().join(",")));
        } else if !["tentative", "linkdown"].contains(&word) {
            out.push(word.to_owned());
        }
    }
    out.join(" ")
}

/// Without what concerns these links.
pub(crate) fn without(dump: &str, links: &[&str]) -> String {
    let concerns = |line: &str| line.split([' ', ':', '@']).any(|word| links.contains(&word));
    dump.lines().filter(|line| !concerns(line)).map(|line| format!("{line}\n")).collect()
}

/// Without what a link that was made anew has by chance, its index and so the order; and without its link-local address.
pub(crate) fn lasting(dump: &str) -> String {
    let is_index = |word: &str| word.strip_suffix(':').is_some_and(|number| number.parse::<u32>().is_ok());
    let bare = |line: &str| -> String {
        match line.split_once(' ') {
            Some((first, rest)) if is_index(first) => rest.to_owned(),
            _ => line.to_owned(),
        }
    };
    let mut lines: Vec<String> = dump.lines().filter(|line| !line.contains("fe80")).map(bare).collect();
    lines.sort();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Where a link that was made anew can't have the MAC it had; nor what the kernel makes of it, nor a place among the lines by it.
pub(crate) fn without_macs(dump: &str) -> String {
    let is_mac = |word: &str| word.matches(':').count() == 5;
    let bare = |line: &str| line.split(' ').filter(|word| !is_mac(word)).collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = dump.lines().map(bare).collect();
    lines.sort();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The same, or the test is over with what is gone and what is new.
#[track_caller]
pub(crate) fn assert_same(before: &str, after: &str, when: &str) {
    let times = |text: &str, line: &str| text.lines().filter(|one| *one == line).count();
    let only = |these: &str, those: &str| -> Vec<String> {
        these.lines().filter(|line| times(these, line) > times(those, line)).map(str::to_owned).collect()
    };
    let differ = || match (only(before, after), only(after, before)) {
        (gone, new) if gone.is_empty() && new.is_empty() => {
            format!("in another order:\n{before}---\n{after}")
        }
        (gone, new) => format!("gone: {gone:#?}\nnew: {new:#?}"),
    };
    assert!(before == after, "{when}: not as it was:\n{}", differ());
}
