//! The enactment's part of the claim protocol: the agent writes requests, whoever serves claims writes
//! grants and refusals.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Claims of one pool, by the name of the capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolClaims {
    /// What the agent wants.
    #[serde(default)]
    pub requests: BTreeMap<String, Request>,
    /// What it was given.
    #[serde(default)]
    pub grants: BTreeMap<String, Grant>,
    /// What it was refused.
    #[serde(default)]
    pub refused: BTreeMap<String, Refusal>,
    /// The addresses given, as a list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocated: Vec<String>,
}

/// A wish for an address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Random, made once: the holder's identity.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// False: it is being given back, for good.
    pub want: bool,
    /// What the agent's journal says it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<Holds>,
    /// Addresses that somebody else answered for on the wire.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declined: Vec<Declined>,
    /// The very address that is wanted: the policy names it, and it falls into the pool's range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 39))]
    pub literal: Option<String>,
}

/// An address that the agent asserts to hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Holds {
    #[schemars(length(max = 39))]
    pub ip: String,
    /// Dual stack: the IPv6 address held with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 39))]
    pub ipv6: Option<String>,
    /// The ledger's sequence when it was given.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub sequence: i64,
    /// UID of the pool that gave it.
    #[serde(default, rename = "poolUID", skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub pool_uid: String,
}

/// An address that was in use by somebody else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Declined {
    #[schemars(length(max = 39))]
    pub ip: String,
    /// The hardware address that answered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub mac: String,
    /// The interface on which it was heard.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub interface: String,
}

/// An address given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    /// The request it answers.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    #[serde(flatten)]
    pub address: Address,
    /// Name of the range it is from; default in a pool with a single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<String>,
    /// The range's attributes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// Dual stack: the IPv4 address; ip, prefix-length and gateway say the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<Address>,
    /// Dual stack: the IPv6 address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<Address>,
    /// The ledger's sequence when it was given.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub sequence: i64,
    /// UID of the pool that gave it.
    #[serde(default, rename = "poolUID", skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub pool_uid: String,
}

/// An address with what is needed to use it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Address {
    #[schemars(length(max = 39))]
    pub ip: String,
    /// That of the range, also in a slice.
    #[serde(rename = "prefix-length")]
    #[schemars(range(min = 0, max = 128))]
    pub prefix_length: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 39))]
    pub gateway: Option<String>,
}

/// Why there is no address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// The request it answers.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// One word for programs.
    pub reason: RefusalReason,
    /// The same for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Why there is no address, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RefusalReason {
    /// It was let go, and the ledger no longer has it: the end of a release.
    Released,
    /// The address that the request says it holds is another's.
    HeldByAnother,
    /// Nothing is free now; served as soon as there is room.
    NoAddress,
    /// No pool has that name.
    NoSuchPool,
}
