//! mac-vlan.

use super::{BARE, KindSpec};
use crate::state::option::{
    OptSpec,
    OptType::{Bool, Word},
    When,
};

const MODES: &[(&str, u64)] = &[("private", 1), ("vepa", 2), ("bridge", 4), ("passthru", 8), ("source", 16)];

pub(super) static SPEC: KindSpec = KindSpec {
    sections: &["mac-vlan"],
    base: true,
    required: &["mode"],
    options: &[
        // The kernel changes some modes into others and refuses the rest: a new link is the same for all.
        OptSpec::new("mode", Word(MODES)).when(When::Creation),
        OptSpec::new("promiscuous", Bool).when(When::Creation),
    ],
    ..BARE
};
