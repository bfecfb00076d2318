//! The real kernel: `berth show` and `berth apply` in network namespaces that each test makes, with `ip` as a second
//! pair of eyes.
//!
//! Run as root. What this machine's kernel lacks (bond, vlan, vrf, dummy, VLANs on bridges) is in `guest`, which is run
//! inside a guest with a distribution's kernel by `guest::everything_in_a_guest`, along with all the rest.
// A test stops at what it can't have.
#![allow(clippy::unwrap_used)]

mod advertised;
mod cut_off;
mod dump;
mod edges;
mod exact;
mod files;
mod ground;
mod guest;
mod holds;
mod link_local;
mod monitor;
mod no_gap;
mod peers;
mod ports_kept;
mod recovery;
mod returned;
mod reviewed;
mod routes_kept;
mod scenarios;
mod show;
mod signals;
mod wire;
mod words;
