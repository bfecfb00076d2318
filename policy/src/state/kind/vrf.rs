//! vrf: a routing table of its own; its ports may hold addresses.

use super::{BARE, KindSpec, PortStyle};
use crate::state::option::{OptSpec, When};

pub(super) static SPEC: KindSpec = KindSpec {
    sections: &["vrf"],
    ports: PortStyle::Vrf,
    required: &["route-table-id"],
    options: &[OptSpec::int("route-table-id", 1, u32::MAX as u64).when(When::Creation)],
    ..BARE
};
