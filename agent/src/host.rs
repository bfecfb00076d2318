//! What of a host's state is in files: the resolver's configuration and the hostname.
//!
//! Neither is the kernel's network, and neither follows a network namespace by itself: a namespace of `ip netns` has
//! its own resolver under `/etc/netns`, any other has none, and none has a hostname of its own.

pub(crate) mod file;
mod resolver;

use std::io;

use policy::plan::Step;
use policy::state::Observed;

use crate::netlink::StepCause;
use crate::netns::Namespace;

pub use resolver::Resolver;

/// The files that belong to a namespace.
#[derive(Clone, Debug)]
pub struct Host {
    resolver: Option<Resolver>,
    own: bool,
}

impl Host {
    pub fn of(namespace: &Namespace) -> Self {
        let resolver = match namespace {
            Namespace::Own => Some(Resolver::at("/etc/resolv.conf".into())),
            Namespace::Named(name) => Some(Resolver::at(format!("/etc/netns/{name}/resolv.conf").into())),
            Namespace::At(_) => None,
        };
        Self { resolver, own: *namespace == Namespace::Own }
    }

    /// Adds what the files say to what the kernel said.
    pub fn observe(&self, state: &mut Observed) -> io::Result<()> {
        if let Some(resolver) = &self.resolver {
            (state.dns, state.running_dns) = resolver.observe()?;
        }
        if self.own {
            let name = nix::unistd::gethostname()?;
            state.hostname = Some(name.to_string_lossy().into_owned()).filter(|name| !name.is_empty());
        }
        Ok(())
    }

    /// The steps that are about files.
    pub fn apply(&self, step: &Step) -> Result<(), StepCause> {
        let impossible = |reason: &str| StepCause::Impossible { reason: reason.to_owned() };
        match (step, &self.resolver) {
            (Step::SetDns { dns }, Some(resolver)) => {
                resolver.set(dns).map_err(|source| StepCause::Dns { source })
            }
            (Step::SetDns { .. }, None) => {
                Err(impossible("a network namespace without a name has no resolver of its own"))
            }
            (Step::SetHostname { .. }, _) if !self.own => {
                Err(impossible("the hostname is the host's: a network namespace has none of its own"))
            }
            (Step::SetHostname { hostname }, _) => {
                set_hostname(hostname).map_err(|source| StepCause::Hostname { source })
            }
            _ => Err(impossible("not a step that is about files")),
        }
    }
}

/// Now and at the next boot.
fn set_hostname(hostname: &str) -> io::Result<()> {
    nix::unistd::sethostname(hostname)?;
    file::replace("/etc/hostname".as_ref(), &format!("{hostname}\n"))
}
