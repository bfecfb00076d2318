//! What a host does next about one policy: say something, wait, or apply it.
//!
//! Level-triggered: the agent looks at the policy, at its own enactment and at the kernel, asks [`next`], does that one
//! thing and looks again, so a restart needs no memory. Where claims stand is `claim`'s, how many nodes may be
//! reconfigured at once is `rollout`'s; this puts the two together. Called by the agent, policy by policy in name order.
//!
//! Cost: constant. At rest a look leads to nothing.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use crate::claim::Time;
use crate::rollout::Standing;
use crate::state::IfName;
use crate::template::address_of;

#[cfg(test)]
mod tests;

/// So long an answer may take before the enactment says that it waits for one.
const ANSWERED: Time = 10;

/// How far a policy has come on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// Its captures or its template can't be resolved here.
    Broken { message: String },
    /// It needs addresses, and not every question is answered.
    Asking { message: String },
    /// There is no address for it.
    Refused { message: String },
    /// It is known what the host should look like.
    Rendered {
        /// The host looks like that.
        met: bool,
        /// The enactment says the same.
        said: bool,
    },
}

/// What the own enactment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Of the policy's generation that it is about.
    pub generation: i64,
    pub standing: Standing,
    pub message: String,
}

/// Pooled addresses that are on a link where no policy has them any more, since one that was edited names another link, or
/// doesn't use them. `enacted`: the states that policies came to on this host, all of them.
///
/// A link may be named otherwise in a document than in the kernel (by its MAC address): where no link that has an address is
/// named with it, nothing can be told.
pub fn strays(pooled: &BTreeSet<(IfName, IpAddr)>, enacted: &[Value]) -> BTreeSet<(IfName, IpAddr)> {
    let named: BTreeSet<(IpAddr, &str)> = enacted.iter().flat_map(named).collect();
    let is_stray = |(link, ip): &&(IfName, IpAddr)| {
        let mut names = named.iter().filter(|(other, _)| other == ip).map(|(_, name)| *name).peekable();
        let unused = names.peek().is_none();
        let elsewhere =
            names.any(|name| pooled.iter().any(|(link, other)| other == ip && link.as_str() == name));
        unused || (elsewhere && !named.contains(&(*ip, link.as_str())))
    };
    pooled.iter().filter(is_stray).cloned().collect()
}

/// Every address of a state, with the name of its interface.
pub fn named(state: &Value) -> impl Iterator<Item = (IpAddr, &str)> {
    let interfaces = state["interfaces"].as_array().into_iter().flatten();
    interfaces.flat_map(|interface| {
        let name = interface["name"].as_str().unwrap_or_default();
        let lists = ["ipv4", "ipv6"].into_iter().filter_map(|family| interface[family]["address"].as_array());
        let ip = |address: &Value| address["ip"].as_str().and_then(address_of);
        lists.flatten().filter_map(ip).map(move |ip| (ip, name))
    })
}

/// All that is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub now: Time,
    pub generation: i64,
    pub prospect: Prospect,
    pub said: Option<Said>,
    /// Since when it asks, as far as the agent knows.
    pub asks_since: Option<Time>,
    /// The generation for which this node may be reconfigured, if it may.
    pub slot: Option<i64>,
    /// The generation at which too many nodes failed.
    pub aborted: Option<i64>,
    /// Since it started the agent has failed at this, and not before then tries again.
    pub retry_at: Option<Time>,
    /// The agent has given up on this very state since it started; it takes another to go on.
    pub gave_up: bool,
}

/// The one thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing until something changes, or until then.
    Rest { until: Option<Time> },
    /// Write this into the enactment.
    Say { standing: Standing, message: String },
    /// Bring it about. `repair`: the host once was as asked for, so no slot is needed.
    Apply { repair: bool },
}

/// The next thing to do about a policy.
pub fn next(view: &View) -> Next {
    match &view.prospect {
        Prospect::Broken { message } => view.say(Standing::Failing, message),
        Prospect::Asking { message } => view.asking(message),
        Prospect::Refused { message } => view.say(Standing::Refused, message),
        Prospect::Rendered { met, said } => view.rendered(*met, *said),
    }
}

impl View {
    /// That it waits is said to who would wonder: most answers come before anybody could have read it.
    fn asking(&self, message: &str) -> Next {
        match self.asks_since.map(|since| since + ANSWERED) {
            Some(until) if self.said.is_none() && self.now < until => Next::Rest { until: Some(until) },
            _ => self.say(Standing::Waiting, message),
        }
    }

    /// Does the enactment say this, and of what is rendered now?
    pub fn says(&self, standing: Standing) -> bool {
        let is_current = !matches!(self.prospect, Prospect::Rendered { said: false, .. });
        is_current && self.standing() == Some(standing)
    }

    fn rendered(&self, met: bool, said: bool) -> Next {
        let standing = self.standing().filter(|_| said);
        match standing {
            Some(Standing::Available) if met => return Next::Rest { until: None },
            Some(Standing::Available) => return self.apply(true),
            Some(Standing::Failing) if self.gave_up && !met => return Next::Rest { until: None },
            // Why it failed can be read until it is tried again; a repair that failed needs no slot either.
            Some(Standing::Retrying) if !met => return self.apply(false),
            _ => {}
        }
        // Nothing to change: nobody is the less available for it.
        if met {
            return self.say(Standing::Available, "");
        }
        if self.slot == Some(self.generation) {
            return self.apply(false);
        }
        if self.aborted == Some(self.generation) {
            return self.say(Standing::Aborted, "");
        }
        self.say(Standing::Pending, "")
    }

    /// What the enactment says of this generation.
    fn standing(&self) -> Option<Standing> {
        self.said.as_ref().filter(|said| said.generation == self.generation).map(|said| said.standing)
    }

    fn apply(&self, repair: bool) -> Next {
        match self.retry_at {
            Some(at) if at > self.now => Next::Rest { until: Some(at) },
            _ => Next::Apply { repair },
        }
    }

    /// Says it, unless it is said. An empty message is one that goes without saying.
    fn say(&self, standing: Standing, message: &str) -> Next {
        let same = |said: &Said| {
            said.generation == self.generation
                && said.standing == standing
                && (message.is_empty() || said.message == message)
        };
        // What was rendered may be news even where the standing isn't.
        let rendered = !matches!(self.prospect, Prospect::Rendered { said: false, .. });
        if rendered && self.said.as_ref().is_some_and(same) {
            return Next::Rest { until: None };
        }
        Next::Say { standing, message: message.to_owned() }
    }
}

/// How often a failing policy is tried, and how long apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    pub most: u32,
    pub first: Time,
    pub longest: Time,
}

impl Default for Retries {
    /// As kubernetes-nmstate has it.
    fn default() -> Self {
        Self { most: 5, first: 1, longest: 30 }
    }
}

impl Retries {
    /// After so many failed attempts, this one included: how long to wait for the next. `None`: it was the last.
    pub fn after(&self, attempts: u32) -> Option<Time> {
        (attempts < self.most).then(|| {
            let doubled = 1u64.checked_shl(attempts.saturating_sub(1)).unwrap_or(u64::MAX);
            self.first.saturating_mul(doubled).min(self.longest)
        })
    }
}
