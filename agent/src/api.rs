//! What agent and controller share in talking to the Kubernetes API: objects kept current by a watch, what an error
//! means, random ids.
//!
//! Everything goes through `kube::Client`: a cluster, `berth serve`, or the embedded API in this process are all the same
//! here. Nothing is decided here.

pub mod connection;
pub mod error;
pub mod guard;
pub mod lease;
pub mod list;
pub mod random;
pub mod rights;
pub(crate) mod slices;
pub mod task;
pub(crate) mod troubles;
pub mod watched;

pub use watched::{Change, Link, Watched};
