//! The resolver's configuration: `resolv.conf`, or systemd-resolved where it owns that file.
//!
//! From inside a container what the host has configured is below a root of its own. Where systemd-resolved has it, what is in
//! effect is read from the container's own file, which the kubelet wrote from the host's: `/run` of a host, with the sockets in
//! it, is nothing to give to a container.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use policy::state::Dns;

use super::file;

/// What systemd-resolved reads besides its own configuration.
const DROP_IN: &str = "etc/systemd/resolved.conf.d/90-berth.conf";
/// That of this process, wherever the host's is.
const OWN: &str = "/etc/resolv.conf";
/// `resolv.conf` leads to one of these where systemd-resolved has it: it writes the first, and ships the others.
const RESOLVED: [&str; 3] =
    ["/run/systemd/resolve", "/usr/lib/systemd/resolv.conf", "/lib/systemd/resolv.conf"];
/// How long systemd-resolved may take to read its configuration anew.
const RELOAD: Duration = Duration::from_secs(10);

/// Where the configuration is kept.
#[derive(Clone, Debug)]
pub struct Resolver {
    path: PathBuf,
    root: PathBuf,
}

impl Resolver {
    pub fn at(path: PathBuf) -> Self {
        Self { path, root: "/".into() }
    }

    /// The same file of the host whose root is mounted there.
    pub(super) fn seen_at(self, root: &Path) -> Self {
        let path = root.join(self.path.strip_prefix("/").unwrap_or(&self.path));
        Self { path, root: root.to_owned() }
    }

    fn is_elsewhere(&self) -> bool {
        self.root != Path::new("/")
    }

    fn is_resolved(&self) -> bool {
        let leads = file::followed_below(&self.root, &self.path);
        let leads = Path::new("/").join(leads.strip_prefix(&self.root).unwrap_or(&leads));
        RESOLVED.iter().any(|place| leads.starts_with(place))
    }

    /// Whether it is somebody's who can't be told from here.
    pub(super) fn is_out_of_reach(&self) -> bool {
        self.is_elsewhere() && self.is_resolved()
    }

    fn drop_in(&self) -> PathBuf {
        self.root.join(DROP_IN)
    }

    /// What was configured, and what is in effect.
    pub(super) fn observe(&self) -> io::Result<(Dns, Dns)> {
        let path = match self.is_out_of_reach() {
            true => Path::new(OWN).to_owned(),
            false if self.is_elsewhere() => file::followed_below(&self.root, &self.path),
            false => self.path.clone(),
        };
        let read = file::read_if_there(&path).map_err(|error| at(&path, &error))?;
        let running = parse(&String::from_utf8_lossy(read.as_deref().unwrap_or_default()));
        let configured = if self.is_resolved() {
            let path = self.drop_in();
            let read = file::read_if_there(&path).map_err(|error| at(&path, &error))?;
            let dns = parse_drop_in(&String::from_utf8_lossy(read.as_deref().unwrap_or_default()));
            Dns { text: letters(read), ..dns }
        } else {
            Dns { text: letters(read), ..running.clone() }
        };
        Ok((configured, running))
    }

    /// The file it came from, to the letter, where that is known: a change is undone. Else what is there, with other lists.
    pub(super) fn set(&self, dns: &Dns) -> io::Result<()> {
        if !self.is_resolved() {
            // Links of a host that is seen from elsewhere lead elsewhere too; of this one `file` follows them.
            let path = match self.is_elsewhere() {
                true => file::followed_below(&self.root, &self.path),
                false => self.path.clone(),
            };
            let replaced = match &dns.text {
                Some(text) => file::replace(&path, text),
                None => file::read(&path).map(|read| merged(&read, dns)).and_then(|text| {
                    match self.is_elsewhere() {
                        // A node: without the file its kubelet starts no pod, and with nothing in it all is well.
                        true => file::replace(&path, text),
                        false => file::replace_or_remove(&path, &text),
                    }
                }),
            };
            return replaced.map_err(|error| at(&path, &error));
        }
        let path = self.drop_in();
        let changed = match &dns.text {
            Some(text) => file::replace(&path, text),
            None if *dns == Dns::default() => file::remove(&path),
            None => file::replace(&path, drop_in(dns)),
        };
        changed.map_err(|error| at(&path, &error))?;
        reload()
    }
}

/// To the letter, where these are letters. Where they aren't, what is put back is the lists, among the lines that were there.
fn letters(read: Option<Vec<u8>>) -> Option<String> {
    String::from_utf8(read?).ok()
}

/// Has systemd-resolved read its configuration anew; one that hangs is not waited for.
fn reload() -> io::Result<()> {
    let mut systemctl =
        Command::new("systemctl").args(["try-reload-or-restart", "systemd-resolved"]).spawn()?;
    let until = Instant::now() + RELOAD;
    let told = loop {
        match systemctl.try_wait()? {
            Some(told) => break told,
            None if Instant::now() >= until => {
                systemctl.kill()?;
                systemctl.wait()?;
                let seconds = RELOAD.as_secs();
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("systemctl has not reloaded systemd-resolved within {seconds} s"),
                ));
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    match told.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("systemctl could not reload systemd-resolved: {told}"))),
    }
}

/// The same error, with the file it is about.
fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// As resolv.conf(5): of several `search` or `domain` lines the last one counts.
fn parse(text: &str) -> Dns {
    let mut dns = Dns::default();
    for line in text.lines() {
        let mut words = line.split_whitespace().map(str::to_owned);
        match words.next().as_deref() {
            Some("nameserver") => dns.servers.extend(words.next()),
            Some("search") => dns.search = words.collect(),
            Some("domain") => dns.search = words.take(1).collect(),
            Some("options") => dns.options.extend(words),
            _ => {}
        }
    }
    dns
}

/// The file with this configuration: comments and what Berth doesn't know stay, to the byte.
fn merged(old: &[u8], dns: &Dns) -> Vec<u8> {
    let ours = ["nameserver", "search", "domain", "options"];
    let is_ours = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        line.split_whitespace().next().is_some_and(|word| ours.contains(&word))
    };
    let lines = old.split_inclusive(|byte| *byte == b'\n');
    let mut text: Vec<u8> = Vec::new();
    for line in lines.filter(|line| !is_ours(line)) {
        text.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
    for (word, list) in [("search", &dns.search), ("options", &dns.options)] {
        if !list.is_empty() {
            text.extend_from_slice(format!("{word} {}\n", list.join(" ")).as_bytes());
        }
    }
    dns.servers.iter().for_each(|server| text.extend_from_slice(format!("nameserver {server}\n").as_bytes()));
    text
}

fn drop_in(dns: &Dns) -> String {
    let mut text = "# Written by Berth.\n[Resolve]\n".to_owned();
    for (word, list) in [("DNS", &dns.servers), ("Domains", &dns.search)] {
        if !list.is_empty() {
            text.push_str(&format!("{word}={}\n", list.join(" ")));
        }
    }
    // Its own options are others; these are kept for whoever looks.
    if !dns.options.is_empty() {
        text.push_str(&format!("# options {}\n", dns.options.join(" ")));
    }
    text
}

fn parse_drop_in(text: &str) -> Dns {
    let list = |word: &str| -> Vec<String> {
        let values = text.lines().filter_map(|line| line.strip_prefix(word));
        values.flat_map(str::split_whitespace).map(str::to_owned).collect()
    };
    Dns { servers: list("DNS="), search: list("Domains="), options: list("# options "), text: None }
}

#[cfg(test)]
mod tests {
    use super::{drop_in, merged, parse, parse_drop_in};
    use policy::state::Dns;

    fn dns() -> Dns {
        let list = |text: &str| text.split(' ').map(str::to_owned).collect();
        Dns {
            servers: list("10.0.0.1 fd00::1"),
            search: list("a.example b.example"),
            options: list("ndots:2"),
            text: None,
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_comments_stay() {
        let old = "# by hand\nnameserver 9.9.9.9\nsortlist 10.0.0.0\ndomain old.example\n";
        let text = |old: &str, dns: &Dns| String::from_utf8(merged(old.as_bytes(), dns)).unwrap();
        let once = text(old, &dns());
        assert!(once.starts_with("# by hand\nsortlist 10.0.0.0\n"), "{once}");
        assert_eq!(parse(&once), dns());
        assert_eq!(text(&once, &dns()), once);
        assert_eq!(parse(&text(&once, &Dns::default())), Dns::default());
        assert_eq!(parse_drop_in(&drop_in(&dns())), dns());
    }

    #[test]
    fn the_last_search_counts() {
        let dns = parse("search a b\ndomain c\nnameserver 1.1.1.1 # note\n");
        assert_eq!((dns.search, dns.servers), (vec!["c".to_owned()], vec!["1.1.1.1".to_owned()]));
    }
}
