//! vxlan. Everything but the id's companions is settled when the link is made.

use super::{BARE, KindSpec};
use crate::state::option::{
    OptSpec,
    OptType::{Bool, Ip},
    When,
};

pub(super) static SPEC: KindSpec = KindSpec {
    sections: &["vxlan"],
    // A vxlan may do without a base interface; the plan asks for an id only.
    base: true,
    required: &["id"],
    options: &[
        OptSpec::int("id", 0, 0x00ff_ffff).when(When::Creation),
        OptSpec::new("learning", Bool),
        OptSpec::new("local", Ip).when(When::Creation),
        OptSpec::new("remote", Ip).when(When::Creation),
        OptSpec::int("destination-port", 1, 65535).when(When::Creation),
    ],
    ..BARE
};
