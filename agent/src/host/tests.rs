//! A host whose files are below a root of its own, as a container sees it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use policy::plan::Step;
use policy::state::{AcceptRa, Dns, Family, Hostname, IfName, Observed};

use super::{Host, file};
use crate::netns::Namespace;

struct Root(PathBuf);

impl Root {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("berth-root-{}-{name}", std::process::id()));
        fs::create_dir_all(path.join("etc")).unwrap();
        Self(path)
    }

    fn host(&self) -> Host {
        Host::of(&Namespace::Own).seen_at(&self.0)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn dns(server: &str) -> Step {
    Step::SetDns { dns: Dns { servers: vec![server.to_owned()], ..Dns::default() } }
}

fn link() -> IfName {
    IfName::new("eth1").unwrap()
}

#[test]
fn the_hosts_resolver_is_read_and_written_below_its_root() {
    let root = Root::new("resolver");
    fs::write(root.at("etc/resolv.conf"), "# by hand\nnameserver 10.0.0.1\n").unwrap();
    fs::write(root.at("etc/hostname"), "node01\n").unwrap();
    let mut state = Observed::default();
    root.host().observe(&mut state).unwrap();
    assert_eq!((state.dns.servers, state.hostname.config), (vec!["10.0.0.1".into()], Some("node01".into())));
    assert_eq!(root.host().refuses(&dns("10.0.0.2")), None);
    root.host().apply(&dns("10.0.0.2")).unwrap();
    let written = fs::read_to_string(root.at("etc/resolv.conf")).unwrap();
    assert_eq!(written, "# by hand\nnameserver 10.0.0.2\n");
}

/// A kubelet whose node has no such file starts no pod.
#[test]
fn a_resolver_without_servers_is_a_file_with_nothing_in_it() {
    let root = Root::new("cleared");
    fs::write(root.at("etc/resolv.conf"), "nameserver 192.0.2.1\n").unwrap();
    root.host().apply(&Step::SetDns { dns: Dns::default() }).unwrap();
    assert_eq!(fs::read_to_string(root.at("etc/resolv.conf")).unwrap(), "");
}

/// The link stays, and what it leads to on the host is what is written.
#[test]
fn links_lead_where_they_lead_on_the_host() {
    let root = Root::new("links");
    fs::create_dir_all(root.at("etc/resolvconf")).unwrap();
    symlink("/etc/resolvconf/resolv.conf", root.at("etc/resolv.conf")).unwrap();
    root.host().apply(&dns("10.0.0.2")).unwrap();
    assert_eq!(fs::read_to_string(root.at("etc/resolvconf/resolv.conf")).unwrap(), "nameserver 10.0.0.2\n");
    assert!(root.at("etc/resolv.conf").is_symlink());
    symlink("../../../../../run/x", root.at("etc/out")).unwrap();
    assert_eq!(file::followed_below(&root.0, &root.at("etc/out")), root.at("run/x"));
    symlink("loop", root.at("etc/loop")).unwrap();
    assert_eq!(file::followed_below(&root.0, &root.at("etc/loop")), root.at("etc/loop"));
}

/// What is in effect is then in the container's own file; what is to be set is refused when it is planned, in words.
#[test]
fn systemd_resolved_is_out_of_reach_and_so_is_the_hostname() {
    let root = Root::new("resolved");
    for link in ["../run/systemd/resolve/stub-resolv.conf", "/run/systemd/resolve/resolv.conf"] {
        fs::remove_file(root.at("etc/resolv.conf")).ok();
        symlink(link, root.at("etc/resolv.conf")).unwrap();
        let mut state = Observed::default();
        root.host().observe(&mut state).unwrap();
        assert_eq!(state.dns, Dns::default());
        let (path, why) = root.host().refuses(&dns("10.0.0.2")).expect(link);
        assert_eq!(path, "dns-resolver");
        assert!(why.starts_with("systemd-resolved has this host's resolver, and can't be told"), "{why}");
    }
    let step = Step::SetHostname { hostname: Hostname { running: Some("a".into()), config: None } };
    let (path, why) = root.host().refuses(&step).expect("no right");
    assert_eq!(path, "hostname");
    assert!(why.starts_with("a container has no right to give its host a name"), "{why}");
}

#[test]
fn switches_are_turned_below_the_root() {
    let root = Root::new("switches");
    let six = root.at("proc/sys/net/ipv6/conf/eth1");
    let four = root.at("proc/sys/net/ipv4/conf/eth1");
    fs::create_dir_all(&six).unwrap();
    fs::create_dir_all(&four).unwrap();
    let steps = [
        Step::SetIpv6 { link: link(), on: false },
        Step::SetAcceptRa { link: link(), accept: AcceptRa::Always },
        Step::SetForwarding { link: link(), family: Family::Ipv4, on: true },
    ];
    for step in steps {
        root.host().apply(&step).unwrap();
    }
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let turned =
        [six.join("disable_ipv6"), six.join("accept_ra"), four.join("forwarding")].map(|path| read(&path));
    assert_eq!(turned, ["1", "2", "1"]);
}
