//! Addresses for a policy's captures: what a server of claims would answer, from what the files say.
//!
//! The answers are those of [`policy::claim::serve`], the code that serves claims in a cluster; owned here is how files
//! become what it reads, and its answers grants. In a sliced pool it is asked twice: for the node's slices, and for the
//! next slice that the node would take where they are full. Literal addresses are claimed first ([`mod@super::literals`]).

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use policy::capture::{Granted, GrantedAddress, Grants, Place};
use policy::claim::{
    Asked, Enactment, Entry, Lease, Ledger, NodeUid, Refusal as Refused, RefusalReason, Reply, Request,
    RequestId, Slot, SlotKey, serve,
};
use policy::pool::{
    Barred, Family, Holder, NoAddress, NodeView, NotASlice, Pool, SliceView, TakenSlices, Want, choose_slice,
};
use policy::template::Literal;
use thiserror::Error;

use super::captured::Captured;
use super::literals::Holds;
use crate::cli::UsageError;
use crate::ledger::claims::{NO_TIME, NotGiving, node_uid};
use crate::pools::{KnownPool, Pools};

/// Who asks.
pub(super) struct Asker<'a> {
    pub(super) node: Option<&'a str>,
    pub(super) labels: &'a BTreeMap<String, String>,
    /// Empty for a bare document.
    pub(super) policy: &'a str,
}

pub(super) enum Failure {
    Usage(UsageError),
    Refused(Refusals),
}

/// Every capture and literal that gets no address: all at once, for all of them must get one or none does.
#[derive(Debug)]
pub(super) struct Refusals(Vec<Refusal>);

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, refusal) in self.0.iter().enumerate() {
            write!(f, "{}{refusal}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusals {}

#[derive(Debug, Error)]
#[error("{place}: {why}")]
struct Refusal {
    place: Place,
    why: Why,
}

#[derive(Debug, Clone, Error)]
pub(super) enum Why {
    #[error("unknown pool {pool:?}; {}", Known(.known))]
    UnknownPool { pool: String, known: Vec<String> },
    #[error("pool {pool} gives nothing now: {why}")]
    NotGiving { pool: String, why: NotGiving },
    #[error("the enactment holds what pool {pool} gave to another: {}", .refused.message)]
    HeldByAnother { pool: String, refused: Refused },
    #[error("{}", .0.message)]
    Refused(Refused),
    #[error("it holds {ip}, which no range of pool {pool} has: nothing says its prefix length")]
    OutOfRange { ip: IpAddr, pool: String },
    #[error("{ip} of pool {pool} is {holder}")]
    Taken { ip: IpAddr, pool: String, holder: Holds },
    #[error("slice {cidr} of pool {pool}, where {ip} lies, belongs to node {node}")]
    SliceOf { ip: IpAddr, pool: String, cidr: IpNet, node: String },
    #[error(transparent)]
    NoAddress(#[from] NoAddress),
    #[error(transparent)]
    NotASlice(#[from] NotASlice),
}

struct Known<'a>(&'a [String]);

impl fmt::Display for Known<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => write!(f, "no pool is given: name its file with --pool"),
            known => write!(f, "known: {}", known.join(", ")),
        }
    }
}

/// An address for each capture (capture → pool), once the literals are claimed.
pub(super) fn grants(
    wanted: &BTreeMap<String, String>,
    literals: &[Literal],
    pools: &Pools,
    captured: &Captured,
    asker: &Asker<'_>,
) -> Result<Grants, Failure> {
    let mut grants = Grants::new();
    let mut refused: BTreeMap<Place, Why> = BTreeMap::new();
    let mut claims: BTreeMap<&str, Claims<'_>> = BTreeMap::new();
    let of_pool = |known, node, pool: &str| Claims {
        known,
        barred: pools.barred_for(pool),
        node: NodeView { name: node, labels: asker.labels },
        policy: asker.policy,
        literals: literals.iter().filter(|literal| literal.pool == pool).collect(),
        wishes: Vec::new(),
    };
    for literal in literals {
        let Literal { ip, pool, path } = literal;
        let Some(node) = asker.node else {
            let (path, pool) = (path.clone(), pool.clone());
            return Err(Failure::Usage(UsageError::NodeOfLiteral { path, ip: *ip, pool }));
        };
        if let Some(known) = pools.get(pool) {
            claims.entry(pool).or_insert_with(|| of_pool(known, node, pool));
        }
    }
    for (capture, pool) in wanted {
        let held = captured.held(pool, capture);
        match (asker.node, pools.get(pool), held) {
            (Some(node), Some(known), _) => {
                let claims = claims.entry(pool).or_insert_with(|| of_pool(known, node, pool));
                claims.wishes.push(Wish { capture, held });
            }
            // No ledger to ask, or nobody to ask for: the enactment's word is all there is.
            (_, _, Some(held)) => drop(grants.insert(capture.clone(), held.clone())),
            (None, _, None) => {
                let unproven = captured.unproven(pool, capture).map(str::to_owned);
                let (capture, pool) = (capture.clone(), pool.clone());
                return Err(Failure::Usage(UsageError::NodeMissing { capture, pool, unproven }));
            }
            (Some(_), None, None) => {
                let why = Why::UnknownPool { pool: pool.clone(), known: pools.names() };
                refused.insert(Place::Capture(capture.clone()), why);
            }
        }
    }
    for claims in claims.values() {
        let mut ledger = claims.ledger();
        let slices = claims.claim_literals(&mut ledger, &mut refused);
        for (capture, answer) in claims.answers(ledger, &slices) {
            match answer {
                Ok(granted) => drop(grants.insert(capture.to_owned(), granted)),
                Err(why) => drop(refused.insert(Place::Capture(capture.to_owned()), why)),
            }
        }
    }
    if refused.is_empty() {
        return Ok(grants);
    }
    let refusal = |(place, why): (Place, Why)| Refusal { place, why };
    Err(Failure::Refused(Refusals(refused.into_iter().map(refusal).collect())))
}

/// What one policy on one node wants of one pool.
pub(super) struct Claims<'a> {
    pub(super) known: &'a KnownPool,
    pub(super) barred: Barred,
    pub(super) node: NodeView<'a>,
    pub(super) policy: &'a str,
    pub(super) literals: Vec<&'a Literal>,
    pub(super) wishes: Vec<Wish<'a>>,
}

#[derive(Clone, Copy)]
pub(super) struct Wish<'a> {
    pub(super) capture: &'a str,
    /// What the enactment says is held.
    pub(super) held: Option<&'a Granted>,
}

/// Answers by capture; none where a server would say nothing now.
type Replies = BTreeMap<String, Reply>;

impl<'a> Claims<'a> {
    /// `slices` are those that the node takes for its literals.
    fn answers(&self, mut ledger: Ledger, slices: &[IpNet]) -> Vec<(&'a str, Result<Granted, Why>)> {
        let mut replies = Replies::new();
        let no_slice = match self.known.pool.is_sliced() {
            true => self.within_slices(&mut ledger, slices, &mut replies).err(),
            false => {
                replies = self.ask(&mut ledger, &self.known.pool, &self.wishes);
                None
            }
        };
        let before = self.known.ledger();
        let conclude = |wish: &Wish<'a>| match (replies.get(wish.capture), &no_slice) {
            (Some(reply), Some(why)) if is_full(reply) => Err(why.clone()),
            (reply, _) => self.conclude(&before, wish, reply),
        };
        let answers = self.wishes.iter().map(|wish| (wish.capture, conclude(wish)));
        answers.collect()
    }

    /// The pool's ledger. Of an entry without a holder's name, the enactment's word says whose it is: it is left out, and
    /// comes back as the enactment's.
    fn ledger(&self) -> Ledger {
        let mut ledger = self.known.ledger();
        for ip in self.wishes.iter().filter_map(|wish| wish.held).flat_map(ips) {
            if self.known.held.get(&ip).is_some_and(|holding| holding.by.is_none()) {
                ledger.allocations.remove(&ip);
            }
        }
        ledger
    }

    /// Asks as an agent does that has just written its requests, on a live and ready node.
    fn ask(&self, ledger: &mut Ledger, pool: &Pool, wishes: &[Wish<'_>]) -> Replies {
        let written: Vec<(Enactment, SlotKey)> =
            wishes.iter().map(|wish| self.enactment(ledger, wish)).collect();
        let asked: Vec<Asked<'_>> = written
            .iter()
            .map(|(enactment, key)| Asked {
                enactment,
                key,
                labels: self.node.labels,
                live: true,
                ready: true,
                fresh: true,
            })
            .collect();
        let served = serve(ledger, pool, &self.barred, &asked, NO_TIME);
        if let Some(after) = served.ledger {
            *ledger = after;
        }
        let answers = served.answers.into_iter();
        answers.map(|answer| (answer.key.capture.to_string(), answer.reply)).collect()
    }

    /// An enactment with this one request.
    fn enactment(&self, ledger: &Ledger, wish: &Wish<'_>) -> (Enactment, SlotKey) {
        let key = SlotKey { pool: self.known.pool.name().into(), capture: wish.capture.into() };
        let mut request = Request::new(RequestId::new(format!("render:{}", wish.capture)));
        // A lease as old as can be never says that the ledger went back in time: files are of any age.
        request.holds =
            wish.held.map(|held| Lease { ips: ips(held).collect(), sequence: 0, pool: ledger.pool.clone() });
        let slot = Slot { request: Some(request), ..Slot::default() };
        let enactment = Enactment {
            uid: "render".into(),
            node: self.node.name.into(),
            node_uid: self.node_uid(ledger, wish.capture),
            policy: self.policy.into(),
            deleting: None,
            slots: BTreeMap::from([(key.clone(), slot)]),
        };
        (enactment, key)
    }

    /// The node's UID as the ledger has it, of this very claim before others: no file says which one the node has now.
    pub(super) fn node_uid(&self, ledger: &Ledger, capture: &str) -> NodeUid {
        let entries = ledger.allocations.values();
        let rank = |entry: &&Entry| {
            let same = entry.policy.as_str() == self.policy && entry.capture.as_str() == capture;
            (same, entry.is_held(), entry.sequence)
        };
        entries
            .filter(|entry| entry.node.as_str() == self.node.name)
            .max_by_key(rank)
            .map_or_else(|| node_uid(self.node.name, ""), |entry| entry.node_uid.clone())
    }

    fn conclude(&self, ledger: &Ledger, wish: &Wish<'_>, reply: Option<&Reply>) -> Result<Granted, Why> {
        let pool = self.known.pool.name().to_owned();
        match (reply, wish.held) {
            (Some(Reply::Grant(_)), Some(held)) => Ok(held.clone()),
            (Some(Reply::Grant(grant)), None) => self.granted(&grant.lease),
            (Some(Reply::Refuse(refused)), _) if refused.reason == RefusalReason::HeldByAnother => {
                Err(Why::HeldByAnother { pool, refused: refused.clone() })
            }
            (Some(Reply::Refuse(refused)), _) => Err(Why::Refused(refused.clone())),
            // A holder keeps what it has while nobody answers, unless it is known to be another's.
            (None, Some(held)) if !self.is_anothers(ledger, held) => Ok(held.clone()),
            (None, _) => Err(Why::NotGiving { pool, why: NotGiving::of(ledger) }),
        }
    }

    fn is_anothers(&self, ledger: &Ledger, held: &Granted) -> bool {
        ips(held)
            .filter_map(|ip| ledger.allocations.get(&ip))
            .any(|entry| !["", self.node.name].contains(&entry.node.as_str()))
    }

    /// A lease with what the pool says of its addresses.
    fn granted(&self, lease: &Lease) -> Result<Granted, Why> {
        let pool = &self.known.pool;
        let outside = |ip: IpAddr| Why::OutOfRange { ip, pool: pool.name().to_owned() };
        let mut addresses = Vec::new();
        let mut first = None;
        let speakers = pool.speakers(&self.node, Want::Any, &lease.ips);
        for (ip, speaker) in lease.ips.iter().copied().zip(speakers) {
            let range = speaker.ok_or_else(|| outside(ip))?;
            let part = range.part(Family::of(ip)).ok_or_else(|| outside(ip))?;
            addresses.push(GrantedAddress {
                address: IpNet::new(ip, part.prefix_length()).map_err(|_| outside(ip))?,
                gateway: part.gateway(),
            });
            first = first.or(Some(range));
        }
        let mut addresses = addresses.into_iter();
        match (addresses.next(), first) {
            (Some(address), Some(range)) => Ok(Granted {
                address,
                second: addresses.next(),
                range: range.name().to_owned(),
                attributes: range.attributes().clone(),
            }),
            _ => Err(Why::NoAddress(NoAddress::NoRangeForNode {
                pool: pool.name().to_owned(),
                node: self.node.name.to_owned(),
            })),
        }
    }

    /// Asks the node's slices, and for what they are too full for the next slice, if there is one.
    fn within_slices(&self, ledger: &mut Ledger, taken: &[IpNet], replies: &mut Replies) -> Result<(), Why> {
        let (pool, slices) = (&self.known.pool, &self.known.slices);
        let own = slices.iter().filter(|slice| slice.node == self.node.name).map(|slice| slice.cidr);
        let own: Vec<IpNet> = own.chain(taken.iter().copied()).collect();
        replies.extend(self.ask(ledger, &pool.within(&own)?, &self.wishes));
        let full = |wish: &&Wish<'_>| replies.get(wish.capture).is_some_and(is_full);
        let left: Vec<Wish<'_>> = self.wishes.iter().filter(full).copied().collect();
        let Some(one) = left.first() else {
            return Ok(());
        };
        let all = TakenSlices::of(pool, slices.iter().map(|slice| slice.cidr).chain(taken.iter().copied()));
        let view = SliceView { pool, taken: &all, barred: &self.barred };
        let holder = Holder { node: self.node.name, capture: one.capture, declined: &[], want: Want::Any };
        let next = choose_slice(&view, &holder, &self.node)?;
        let next: Vec<IpNet> = next.v4.iter().chain(&next.v6).map(|slice| slice.cidr).collect();
        replies.extend(self.ask(ledger, &pool.within(&next)?, &left));
        Ok(())
    }
}

fn is_full(reply: &Reply) -> bool {
    matches!(reply, Reply::Refuse(refused) if refused.reason == RefusalReason::NoAddress)
}

pub(super) fn ips(held: &Granted) -> impl Iterator<Item = IpAddr> + '_ {
    let addresses = [Some(&held.address), held.second.as_ref()];
    addresses.into_iter().flatten().map(|one| one.address.addr())
}
