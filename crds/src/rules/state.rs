//! Rules of `NodeNetworkState`.

use super::{Placed, place, rule, text};
use crate::address;

pub(super) fn rules() -> Vec<Placed> {
    let canonical = rule(
        "ip must be an address in canonical form",
        "isIP(self.ip) && ip.isCanonical(self.ip)",
        |new, _| text(new, "ip").is_some_and(address::is_canonical),
    );
    place("status.pooledAddresses[]", vec![canonical.at(".ip")]).collect()
}
