//! Berth's API: the `nmstate.io` types, their CRDs, and the rules that hold for them.
//!
//! Owns the five kinds ([`Kind`]), the YAML generated from them (`crds/yaml`), every name that is part of
//! the API ([`names`]) and what may be written ([`validate()`]). Each rule stands once, in [`rules`], as CEL
//! and as a Rust function side by side: the CRDs take the CEL, [`validate()`] takes the function, and one
//! table of manifests (`crds/cases`) is run against both.
//!
//! `cargo run -p crds --example generate` writes the YAML anew; a test fails while it is stale.
//!
//! The agent, the controller, the embedded API and the CLI call it. It does no I/O, and knows nothing of
//! `policy`: only `agent` converts between the two.

pub mod address;
pub mod definition;
pub mod enactment;
mod kind;
pub mod meta;
pub mod names;
pub mod policy;
pub mod pool;
pub mod rules;
pub mod schema;
pub mod slice;
pub mod state;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
pub mod validate;
mod warnings;
mod yaml;

pub use enactment::{NodeNetworkConfigurationEnactment, NodeNetworkConfigurationEnactmentStatus};
pub use kind::Kind;
pub use meta::{Condition, MetaInfo};
pub use policy::{
    NodeNetworkConfigurationPolicy, NodeNetworkConfigurationPolicySpec, NodeNetworkConfigurationPolicyStatus,
};
pub use pool::{NodeIPPool, NodeIPPoolSpec, NodeIPPoolStatus};
pub use slice::{NodeIPSlice, NodeIPSliceSpec, NodeIPSliceStatus};
pub use state::{NodeNetworkState, NodeNetworkStateStatus};
pub use validate::{Reason, Violation, validate};
pub use warnings::{Warning, warnings};
pub use yaml::{YamlError, yaml};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Every CRD, complete with rules, in the order in which [`Kind::ALL`] has them.
pub fn all() -> Vec<CustomResourceDefinition> {
    Kind::ALL.iter().map(|kind| kind.definition().crd.clone()).collect()
}
