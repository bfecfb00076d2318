//! What must go on working while a host is changed: the default gateway, DNS, the API, the Node's readiness.
//!
//! Asked before the first write and again before a change is kept: what worked before must work after, or the change is
//! undone. What did not work before is not asked again, so a host that is cut off already can be mended. Called by
//! [`crate::transaction`], on the thread that works inside the host's network namespace.
//!
//! Cost: before, each once and all at the same time, a second or two where nobody answers; after, each once where all is
//! well.

mod dns;
mod gateway;

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::{Duration, Instant};

use policy::state::{Observed, RouteType};

/// Between two questions: who answers at once that it doesn't work is not asked a hundred times.
const PAUSE: Duration = Duration::from_millis(200);

/// How long one question may take.
const ANSWER: Duration = Duration::from_secs(1);
/// The table that everybody's routes are in.
const MAIN: u32 = 254;

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    Gateway,
    Dns,
    Api,
    Node,
}

impl Probe {
    pub const ALL: [Self; 4] = [Self::Gateway, Self::Dns, Self::Api, Self::Node];

    const fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Dns => "dns",
            Self::Api => "api",
            Self::Node => "node",
        }
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is no probe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no probe; there are gateway, dns, api and node, several with commas between them, or none")]
pub struct NoProbe(String);

/// Which are asked, and for how long what is silent afterwards is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probes {
    pub which: BTreeSet<Probe>,
    pub patience: Duration,
    /// Whether what doesn't work at once is asked again before the change: not where the change can't wait.
    pub insist: bool,
}

impl Default for Probes {
    /// A bridge with spanning tree forwards after half a minute.
    fn default() -> Self {
        Self { which: Probe::ALL.into(), patience: Duration::from_secs(60), insist: true }
    }
}

/// `gateway,dns`, or `none`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Which(pub BTreeSet<Probe>);

impl FromStr for Which {
    type Err = NoProbe;

    fn from_str(text: &str) -> Result<Self, NoProbe> {
        if text.trim() == "none" {
            return Ok(Self(BTreeSet::new()));
        }
        let one = |word: &str| {
            let word = word.trim();
            Probe::ALL.into_iter().find(|probe| probe.name() == word).ok_or_else(|| NoProbe(word.to_owned()))
        };
        text.split(',').map(one).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.0.iter().map(|probe| probe.name()).collect();
        f.write_str(if words.is_empty() { "none" } else { "" })?;
        f.write_str(&words.join(","))
    }
}

/// The API, as a thread that is not part of a runtime can ask it.
pub trait Api: Send + Sync {
    /// Does it answer?
    fn answers(&self) -> Result<(), String>;
    /// Is this host's Node Ready?
    fn node_is_ready(&self) -> Result<(), String>;
}

/// What worked and no longer does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{probe} worked before the change and no longer does: {why}")]
pub struct Silent {
    pub probe: Probe,
    pub why: String,
}

/// Probes of one change.
pub struct Watch<'a> {
    probes: Probes,
    api: &'a dyn Api,
    worked: BTreeSet<Probe>,
}

impl<'a> Watch<'a> {
    pub fn new(probes: Probes, api: &'a dyn Api) -> Self {
        Self { probes, api, worked: BTreeSet::new() }
    }

    /// Before the first write: notes what works.
    pub fn before(&mut self, seen: &Observed) {
        let until = Instant::now() + if self.probes.insist { 2 * ANSWER } else { Duration::ZERO };
        let api = self.api;
        let works = |probe: Probe| loop {
            match ask(probe, seen, api) {
                Ok(()) => break true,
                Err(_) if Instant::now() >= until => break false,
                // There is nobody to ask.
                Err(why) if why.starts_with(NONE) => break false,
                Err(_) => std::thread::sleep(PAUSE),
            }
        };
        self.worked = std::thread::scope(|scope| {
            let asked: Vec<_> =
                self.probes.which.iter().map(|probe| (*probe, scope.spawn(|| works(*probe)))).collect();
            asked.into_iter().filter_map(|(probe, asked)| asked.join().ok()?.then_some(probe)).collect()
        });
    }

    /// After the last write: does all of it still work?
    pub fn after(&self, seen: &Observed) -> Result<(), Silent> {
        for probe in &self.worked {
            ask(*probe, seen, self.api).map_err(|why| Silent { probe: *probe, why })?;
        }
        Ok(())
    }

    pub fn is_idle(&self) -> bool {
        self.worked.is_empty()
    }

    pub fn patience(&self) -> Duration {
        self.probes.patience
    }
}

/// How what can't be asked begins.
const NONE: &str = "there is no";

fn ask(probe: Probe, seen: &Observed, api: &dyn Api) -> Result<(), String> {
    match probe {
        Probe::Gateway => {
            let (ip, link) =
                default_gateway(seen).ok_or_else(|| format!("{NONE} default route with a gateway"))?;
            gateway::answers(ip, &link, ANSWER).map_err(|why| format!("{ip} on {link}: {why}"))
        }
        Probe::Dns => {
            let servers: Vec<IpAddr> = servers(seen);
            if servers.is_empty() {
                return Err(format!("{NONE} DNS server"));
            }
            let mut whys = Vec::new();
            for server in servers {
                match dns::answers(SocketAddr::new(server, 53), ANSWER) {
                    Ok(()) => return Ok(()),
                    Err(why) => whys.push(format!("{server}: {why}")),
                }
            }
            Err(whys.join(", "))
        }
        Probe::Api => api.answers(),
        Probe::Node => api.node_is_ready(),
    }
}

/// The gateway that most goes over: of the default routes the one with the lowest metric.
fn default_gateway(seen: &Observed) -> Option<(IpAddr, String)> {
    let defaults = seen.routes.iter().filter(|route| {
        route.destination.prefix_len() == 0 && route.table == MAIN && route.kind == RouteType::Unicast
    });
    let mut defaults: Vec<_> = defaults.collect();
    defaults.sort_by_key(|route| (route.destination.addr().is_ipv6(), route.metric));
    let hops = defaults.into_iter().flat_map(|route| &route.next_hops);
    hops.filter_map(|hop| Some((hop.via?, hop.dev.to_string()))).next()
}

fn servers(seen: &Observed) -> Vec<IpAddr> {
    let text = seen.running_dns.servers.iter().chain(&seen.dns.servers);
    let mut servers: Vec<IpAddr> = Vec::new();
    for server in text.filter_map(|server| server.parse().ok()) {
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    servers
}

#[cfg(test)]
mod tests;
