//! The resolver and the hostname, on a host whose files, name and network are the test's own (namespaces of mounts,
//! names and network around a whole `/etc` and `/run`).

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::ground::{Ran, berth, run};

/// A host: an empty `/etc` and `/run` until the script fills them.
struct House {
    dir: PathBuf,
}

impl House {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("berth-house-{}-{name}", std::process::id()));
        fs::create_dir_all(dir.join("etc")).unwrap();
        fs::create_dir_all(dir.join("bin")).unwrap();
        Self { dir }
    }

    /// Runs a script there: `berth` is the one under test, `$HOUSE` the folder beside its `/etc`.
    #[track_caller]
    fn run(&self, script: &str) -> Ran {
        let line = format!(
            "set -e; mount --bind $HOUSE/etc /etc; mount -t tmpfs run /run; ip link set lo up\n\
             berth() {{ {} \"$@\"; }}\n{script}",
            berth().display()
        );
        let path = format!("{}:{}", self.dir.join("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("unshare");
        command.args(["--mount", "--uts", "--net", "sh", "-c", &line]);
        run(command.env("HOUSE", &self.dir).env("PATH", path), "")
    }

    /// A program of that name, first on the path.
    fn program(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.dir.join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

impl Drop for House {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.dir).ok();
    }
}

/// What systemd-resolved does when it starts.
const STUB: &str = "
mkdir -p /run/systemd/resolve
echo 'nameserver 127.0.0.53' > /run/systemd/resolve/stub-resolv.conf
ln -s ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf";

/// With systemd-resolved the stub it wrote is left alone: a file of ours is put beside its configuration, and it is told.
#[test]
fn where_systemd_resolved_runs_it_is_asked() {
    let house = House::new("resolved");
    house.program("systemctl", "echo \"$@\" >> $HOUSE/told; test ! -e $HOUSE/broken");
    let script = r#"
echo 'dns-resolver: {config: {server: [192.0.2.53], search: [a.example]}}' > $HOUSE/one
echo 'dns-resolver: {config: {server: [192.0.2.54], search: [b.example]}}' > $HOUSE/two
echo 'dns-resolver: {config: {server: [], search: []}}' > $HOUSE/none
berth apply -f $HOUSE/one > /dev/null
cat /etc/systemd/resolved.conf.d/90-berth.conf /run/systemd/resolve/stub-resolv.conf
berth apply -f $HOUSE/one
berth show | berth apply -f -
touch $HOUSE/broken
berth apply -f $HOUSE/two 2>&1 || echo failed $?
cat /etc/systemd/resolved.conf.d/90-berth.conf
rm $HOUSE/broken
berth apply -f $HOUSE/none > /dev/null
ls /etc/systemd/resolved.conf.d
"#;
    let said = house.run(&format!("{STUB}{script}")).ok();
    let ours = "# Written by Berth.\n[Resolve]\nDNS=192.0.2.53\nDomains=a.example\n";
    let begin = format!("{ours}nameserver 127.0.0.53\nnothing to do\nnothing to do\n");
    assert!(said.starts_with(&begin), "{said}");
    assert!(said.contains("systemctl could not reload systemd-resolved"), "{said}");
    assert!(said.ends_with(&format!("failed 1\n{ours}")), "{said}");
    let told = fs::read_to_string(house.dir.join("told")).unwrap();
    assert!(told.lines().all(|line| line == "try-reload-or-restart systemd-resolved"), "{told}");
}

/// systemd-resolved is another user: what it reads is readable, whatever the agent's umask; and a `systemctl` that hangs is
/// not waited for.
#[test]
fn what_systemd_resolved_reads_is_for_it_to_read() {
    let house = House::new("umask");
    house.program("systemctl", "test -e $HOUSE/told || { touch $HOUSE/told; exec sleep 1000; }");
    let script = r#"
echo 'dns-resolver: {config: {server: [192.0.2.53]}}' > $HOUSE/one
umask 077
berth apply -f $HOUSE/one 2>&1 || echo failed $?
berth apply -f $HOUSE/one > /dev/null
stat -c %a /etc/systemd /etc/systemd/resolved.conf.d /etc/systemd/resolved.conf.d/90-berth.conf
"#;
    let said = house.run(&format!("{STUB}{script}")).ok();
    assert!(said.contains("systemctl has not reloaded systemd-resolved within 10 s"), "{said}");
    assert!(said.ends_with("failed 1\n755\n755\n644\n"), "{said}");
}

/// The file that systemd-resolved ships for whoever links to it is a vendor's: ours goes beside its configuration.
#[test]
fn a_vendors_resolv_conf_is_left_alone() {
    let house = House::new("vendor");
    house.program("systemctl", "true");
    let script = r#"
mkdir -p /usr/lib/systemd && mount -t tmpfs vendor /usr/lib/systemd
echo 'nameserver 127.0.0.53' > /usr/lib/systemd/resolv.conf
ln -s ../usr/lib/systemd/resolv.conf /etc/resolv.conf
echo 'dns-resolver: {config: {server: [192.0.2.53]}}' > $HOUSE/one
berth apply -f $HOUSE/one > /dev/null
cat /usr/lib/systemd/resolv.conf; grep DNS /etc/systemd/resolved.conf.d/90-berth.conf
"#;
    assert_eq!(house.run(script).ok(), "nameserver 127.0.0.53\nDNS=192.0.2.53\n");
}

/// People write comments in other encodings: no reason to see nothing, and they stay as they are.
#[test]
fn bytes_that_are_no_text_stay() {
    let house = House::new("bytes");
    let script = r#"
printf '# caf\351\nnameserver 9.9.9.9\n' > /etc/resolv.conf
cp /etc/resolv.conf $HOUSE/before
ln -s /proc/version /etc/hostname
echo '{dns-resolver: {config: {server: [192.0.2.53]}}, hostname: {config: new}}' > $HOUSE/both
echo '{dns-resolver: {config: {server: [192.0.2.53]}}}' > $HOUSE/one
berth show | grep -c 9.9.9.9
berth apply -f $HOUSE/both 2>&1 | grep -o 'the host is as it was before'
cmp /etc/resolv.conf $HOUSE/before
berth apply -f $HOUSE/one > /dev/null
od -An -c /etc/resolv.conf | tr -d ' \n'
"#;
    let said = house.run(script).ok();
    assert!(said.contains("the host is as it was before\n#caf351\\nnameserver192.0.2.53\\n"), "{said}");
}

/// What readers had open stays whole, a link stays a link, and what Berth has no word for stays.
#[test]
fn resolv_conf_is_replaced_whole() {
    let house = House::new("resolv");
    let script = r#"
mkdir /etc/kept; printf '# by hand\nsortlist 10.0.0.0\nnameserver 9.9.9.9\n' > /etc/kept/resolv.conf
chmod 640 /etc/kept/resolv.conf
ln -s kept/resolv.conf /etc/resolv.conf
echo 'dns-resolver: {config: {server: [192.0.2.53]}}' > $HOUSE/one
exec 3< /etc/resolv.conf
berth apply -f $HOUSE/one > /dev/null
cat <&3; echo --; cat /etc/resolv.conf; readlink /etc/resolv.conf; stat -c %a /etc/kept/resolv.conf; ls /etc/kept
"#;
    let said = house.run(script).ok();
    let old = "# by hand\nsortlist 10.0.0.0\nnameserver 9.9.9.9\n";
    let new = "# by hand\nsortlist 10.0.0.0\nnameserver 192.0.2.53\nkept/resolv.conf\n640\nresolv.conf\n";
    assert_eq!(said, format!("{old}--\n{new}"));
}

/// A host that runs under another name than it boots with keeps both, whatever fails.
#[test]
fn both_names_of_a_host() {
    let house = House::new("names");
    let script = r#"
printf '# by hand\nboots-as\n' > /etc/hostname
hostname runs-as
echo 'hostname: {config: new}' > $HOUSE/new
echo 'hostname: {running: for-now}' > $HOUSE/running
names() { hostname; tail -n 1 /etc/hostname; }
berth show | sed -n '/^hostname/,/config/p'
berth show | berth apply -f -
# The resolver comes before the name; here it is the hostname that can't be written.
mount --bind -o ro /etc /etc && mount -o remount,bind,ro /etc
berth apply -f $HOUSE/new 2>&1 || echo failed $?
umount /etc; names
berth apply -f $HOUSE/running > /dev/null; names
berth apply -f $HOUSE/new > /dev/null; names; cat /etc/hostname
berth apply -f $HOUSE/new
"#;
    let said = house.run(script).ok();
    assert!(said.starts_with("hostname:\n  running: runs-as\n  config: boots-as\nnothing to do\n"), "{said}");
    assert!(said.contains("set hostname") && said.contains("the host is as it was before"), "{said}");
    let end = "failed 1\nruns-as\nboots-as\nfor-now\nboots-as\nnew\nnew\n# by hand\nnew\nnothing to do\n";
    assert!(said.ends_with(end), "{said}");
}

/// A resolver's file that wasn't there isn't there again, when the step after it fails.
#[test]
fn a_resolver_that_was_not_there() {
    let house = House::new("no-resolver");
    let script = r#"
# It can be read, and not replaced.
ln -s /proc/version /etc/hostname
hostname runs-as
echo '{dns-resolver: {config: {server: [192.0.2.53]}}, hostname: {config: new}}' > $HOUSE/both
berth apply -f $HOUSE/both 2>&1 || echo failed $?
hostname; ls /etc; readlink /etc/hostname
"#;
    let said = house.run(script).ok();
    assert!(said.contains("(set hostname") && said.contains("the host is as it was before"), "{said}");
    assert!(said.ends_with("failed 1\nruns-as\nhostname\n/proc/version\n"), "{said}");
}
