//! What of a host's state is in files: the resolver's configuration, the hostname, and switches of links.
//!
//! The first two are not the kernel's network, and don't follow a network namespace by themselves: a namespace of `ip netns`
//! has its own resolver under `/etc/netns`, any other has none, and none has a hostname of its own.
//!
//! In a container the files of the host are not where they are on the host, and some of what changes them isn't there at all:
//! [`Host::seen_at`].

pub(crate) mod file;
mod resolver;
mod switch;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use policy::plan::Step;
use policy::state::{Hostname, Observed};

use crate::netlink::StepCause;
use crate::netns::Namespace;

pub use resolver::Resolver;

/// The files that belong to a namespace.
#[derive(Clone, Debug)]
pub struct Host {
    resolver: Option<Resolver>,
    own: bool,
    root: PathBuf,
}

impl Host {
    pub fn of(namespace: &Namespace) -> Self {
        let resolver = match namespace {
            Namespace::Own => Some(Resolver::at("/etc/resolv.conf".into())),
            Namespace::Named(name) => Some(Resolver::at(format!("/etc/netns/{name}/resolv.conf").into())),
            Namespace::At(_) => None,
        };
        Self { resolver, own: *namespace == Namespace::Own, root: "/".into() }
    }

    /// The same from inside a container, where the host's `/etc` and `/proc/sys/net` are mounted below `root`.
    #[must_use]
    pub fn seen_at(self, root: &Path) -> Self {
        let resolver = self.resolver.map(|resolver| resolver.seen_at(root));
        Self { resolver, root: root.to_owned(), ..self }
    }

    fn is_elsewhere(&self) -> bool {
        self.root != Path::new("/")
    }

    /// Adds what the files say to what the kernel said.
    pub fn observe(&self, state: &mut Observed) -> io::Result<()> {
        if let Some(resolver) = &self.resolver {
            (state.dns, state.running_dns) = resolver.observe()?;
        }
        if self.own {
            state.hostname = hostname(&self.hostname_file())?;
        }
        Ok(())
    }

    /// The path of what a step is about, and why there is no such thing here.
    pub fn refuses(&self, step: &Step) -> Option<(&'static str, &'static str)> {
        match step {
            Step::SetDns { .. } if self.resolver.is_none() => Some((
                "dns-resolver",
                "a network namespace without a name has no resolver of its own; give it one ('ip netns attach NAME \
                 PID') and say --netns NAME, or leave this out",
            )),
            Step::SetDns { .. } if self.resolver.as_ref().is_some_and(Resolver::is_out_of_reach) => Some((
                "dns-resolver",
                "systemd-resolved has this host's resolver, and can't be told from inside a container; leave this out, \
                 or run the agent as a service of the host",
            )),
            Step::SetHostname { .. } if !self.own => Some((
                "hostname",
                "a network namespace has no hostname of its own; leave this out, or apply it without --netns",
            )),
            Step::SetHostname { .. } if self.is_elsewhere() => Some((
                "hostname",
                "a container has no right to give its host a name; leave this out, or run the agent as a service of \
                 the host",
            )),
            _ => None,
        }
    }

    fn hostname_file(&self) -> PathBuf {
        self.root.join(HOSTNAME)
    }

    /// The steps that are about files.
    pub fn apply(&self, step: &Step) -> Result<(), StepCause> {
        let impossible = |reason: &str| StepCause::Impossible { reason: reason.to_owned() };
        if let Some((_, why)) = self.refuses(step) {
            return Err(impossible(why));
        }
        if let Some(turned) = switch::turn(&self.root, step) {
            return turned;
        }
        match (step, &self.resolver) {
            (Step::SetDns { dns }, Some(resolver)) => {
                resolver.set(dns).map_err(|source| StepCause::Dns { source })
            }
            (Step::SetHostname { hostname }, _) => {
                set_hostname(&self.hostname_file(), hostname).map_err(|source| StepCause::Hostname { source })
            }
            _ => Err(impossible("not a step that is about files")),
        }
    }
}

/// The name a host is given at boot: the first line that is neither empty nor a comment, as hostname(5) has it.
const HOSTNAME: &str = "etc/hostname";

/// What the kernel calls this host now, if anything.
pub(crate) fn running_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

fn hostname(path: &Path) -> io::Result<Hostname> {
    let running = nix::unistd::gethostname()?.to_string_lossy().into_owned();
    let read = file::read(path)?;
    let text = String::from_utf8_lossy(&read);
    let config = text.lines().map(str::trim).find(|line| is_name(line)).map(str::to_owned);
    Ok(Hostname { running: Some(running).filter(|name| !name.is_empty()), config })
}

fn is_name(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#')
}

/// The file with this name, or none; comments stay.
fn renamed(text: &str, name: Option<&str>) -> String {
    let comments = text.lines().filter(|line| !is_name(line.trim()));
    comments.chain(name).map(|line| format!("{line}\n")).collect()
}

/// Now, and at the next boot.
fn set_hostname(path: &Path, wanted: &Hostname) -> io::Result<()> {
    let found = hostname(path)?;
    if let Some(name) = wanted.running.as_ref().filter(|_| wanted.running != found.running) {
        nix::unistd::sethostname(name)?;
    }
    if wanted.config == found.config {
        return Ok(());
    }
    let read = file::read(path)?;
    let text = renamed(&String::from_utf8_lossy(&read), wanted.config.as_deref());
    file::replace_or_remove(path, text.as_bytes())
}
