//! How one address stands, in a word: by the pool's spec, by whose else it is, by what the ledger has. For everything that
//! shows addresses to people (the page, `berth pool`), so that all of it says the same of the same address.

use std::net::IpAddr;

use super::explain::Status;
use super::family::Family;
use super::range::Range;
use super::{Barred, Pool};

/// A standing in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    Free,
    Held,
    Quarantined,
    /// For a node that doesn't hold it.
    Reserved,
    Excluded,
    Gateway,
    /// Another pool has it too, or it is the cluster's.
    Barred,
    /// In no range of the pool.
    Outside,
}

impl Word {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Held => "held",
            Self::Quarantined => "quarantined",
            Self::Reserved => "reserved",
            Self::Excluded => "excluded",
            Self::Gateway => "gateway",
            Self::Barred => "barred",
            Self::Outside => "outside",
        }
    }
}

/// What the ledger has of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    Held,
    Quarantined,
}

/// Which part of a range an address is in, where it has two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Band {
    Static,
    Dynamic,
}

impl Band {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
        }
    }
}

/// How an address stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub word: Word,
    /// Why it is never given, whose gateway it is, who has it too; of what is held, what the spec says of it besides.
    pub why: Option<String>,
    pub reserved_for: Option<String>,
    /// Of what can be given; inside slices there are none.
    pub band: Option<Band>,
    /// It could be given, but that its range gives nothing new.
    pub draining: bool,
}

impl Pool {
    /// How an address stands of which the ledger has this, or nothing.
    pub fn standing(&self, ip: IpAddr, barred: &Barred, recorded: Option<Recorded>) -> Standing {
        let mut reserved_for = None;
        let (spec, why) = match self.explain(ip) {
            Status::OutOfRange => (Word::Outside, recorded.map(|_| "in no range of the pool".to_owned())),
            Status::Gateway { range } => (Word::Gateway, Some(format!("of range {range}"))),
            Status::Excluded(why) => (Word::Excluded, Some(why.to_string())),
            Status::Reserved { node } => {
                // Said by the word, unless somebody holds it.
                let why = recorded.map(|_| format!("for {node}"));
                reserved_for = Some(node);
                (Word::Reserved, why)
            }
            Status::StaticBand { .. } | Status::Dynamic { .. } => match barred.owner(ip) {
                Some(owner) => (Word::Barred, Some(format!("{owner} has it too, so nobody gets it"))),
                None => (Word::Free, None),
            },
        };
        let word = match recorded {
            None => spec,
            Some(Recorded::Held) => Word::Held,
            Some(Recorded::Quarantined) => Word::Quarantined,
        };
        let why = why.map(|why| match (recorded, spec) {
            // What the spec says of an address that is held all the same.
            (Some(_), Word::Gateway | Word::Excluded | Word::Reserved) => format!("{} {why}", spec.as_str()),
            _ => why,
        });
        let range = self.range_of(ip).filter(|_| !matches!(spec, Word::Gateway | Word::Excluded));
        let band = range.and_then(|range| band(range, ip));
        Standing { word, why, reserved_for, band, draining: range.is_some_and(|range| !range.gives()) }
    }
}

fn band(range: &Range, ip: IpAddr) -> Option<Band> {
    let part = range.part(Family::of(ip)).filter(|_| range.host_bits().is_none())?;
    let inside = |(first, last): (IpAddr, IpAddr)| (first..=last).contains(&ip);
    Some(if part.static_band().is_some_and(inside) { Band::Static } else { Band::Dynamic })
}
