//! vlan (802.1q and 802.1ad).

use super::bridge::ETHERTYPE;
use super::{BARE, KindSpec};
use crate::state::option::{
    OptSpec,
    OptType::{Bool, Pairs, Word},
    When,
};

const REGISTRATION: &[(&str, u64)] = &[("none", 0), ("gvrp", 1), ("mvrp", 2)];
const MAX: u32 = u32::MAX;

pub(super) static SPEC: KindSpec = KindSpec {
    sections: &["vlan"],
    base: true,
    required: &["id"],
    options: &[
        OptSpec::int("id", 0, 4094).when(When::Creation),
        OptSpec::new("protocol", Word(ETHERTYPE)).when(When::Creation),
        OptSpec::new("registration-protocol", Word(REGISTRATION)),
        OptSpec::new("reorder-headers", Bool),
        OptSpec::new("loose-binding", Bool),
        OptSpec::new("ingress-qos-map", Pairs { max_from: 7, max_to: MAX }),
        OptSpec::new("egress-qos-map", Pairs { max_from: MAX, max_to: 7 }),
    ],
    ..BARE
};
