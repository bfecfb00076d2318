//! The resolver's configuration: `resolv.conf`, or systemd-resolved where it owns that file.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use policy::state::Dns;

use super::file;

/// What systemd-resolved reads besides its own configuration.
const DROP_IN: &str = "/etc/systemd/resolved.conf.d/90-berth.conf";
/// `resolv.conf` leads here where systemd-resolved writes it.
const RESOLVED: &str = "/run/systemd/resolve";

/// Where the configuration is kept.
#[derive(Clone, Debug)]
pub struct Resolver {
    path: PathBuf,
}

impl Resolver {
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    fn is_resolved(&self) -> bool {
        file::followed(&self.path).starts_with(RESOLVED)
    }

    /// What was configured, and what is in effect.
    pub(super) fn observe(&self) -> io::Result<(Dns, Dns)> {
        let text = file::read_if_there(&self.path)?;
        let running = parse(text.as_deref().unwrap_or_default());
        let configured = if self.is_resolved() {
            let text = file::read_if_there(Path::new(DROP_IN))?;
            Dns { text: text.clone(), ..parse_drop_in(&text.unwrap_or_default()) }
        } else {
            Dns { text, ..running.clone() }
        };
        Ok((configured, running))
    }

    /// The file it came from, to the letter, where that is known: a change is undone. Else what is there, with other lists.
    pub(super) fn set(&self, dns: &Dns) -> io::Result<()> {
        if !self.is_resolved() {
            let replaced = match &dns.text {
                Some(text) => file::replace(&self.path, text),
                None => file::read(&self.path)
                    .and_then(|read| file::replace_or_remove(&self.path, &merged(&read, dns))),
            };
            return replaced.map_err(|error| at(&self.path, &error));
        }
        let path = Path::new(DROP_IN);
        let changed = match &dns.text {
            Some(text) => file::replace(path, text),
            None if *dns == Dns::default() => file::remove(path),
            None => file::replace(path, &drop_in(dns)),
        };
        changed.map_err(|error| at(path, &error))?;
        let told = Command::new("systemctl").args(["try-reload-or-restart", "systemd-resolved"]).status()?;
        match told.success() {
            true => Ok(()),
            false => Err(io::Error::other(format!("systemctl could not reload systemd-resolved: {told}"))),
        }
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

/// The file with this configuration: comments and what Berth doesn't know stay.
fn merged(old: &str, dns: &Dns) -> String {
    let ours = ["nameserver", "search", "domain", "options"];
    let kept = old.lines().filter(|line| !line.split_whitespace().next().is_some_and(|w| ours.contains(&w)));
    let mut text: String = kept.map(|line| format!("{line}\n")).collect();
    for (word, list) in [("search", &dns.search), ("options", &dns.options)] {
        if !list.is_empty() {
            text.push_str(&format!("{word} {}\n", list.join(" ")));
        }
    }
    dns.servers.iter().for_each(|server| text.push_str(&format!("nameserver {server}\n")));
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
        let text = merged(old, &dns());
        assert!(text.starts_with("# by hand\nsortlist 10.0.0.0\n"), "{text}");
        assert_eq!(parse(&text), dns());
        assert_eq!(merged(&text, &dns()), text);
        assert_eq!(parse(&merged(&text, &Dns::default())), Dns::default());
        assert_eq!(parse_drop_in(&drop_in(&dns())), dns());
    }

    #[test]
    fn the_last_search_counts() {
        let dns = parse("search a b\ndomain c\nnameserver 1.1.1.1 # note\n");
        assert_eq!((dns.search, dns.servers), (vec!["c".to_owned()], vec!["1.1.1.1".to_owned()]));
    }
}
