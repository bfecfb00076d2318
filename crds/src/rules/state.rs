//! Rules of `NodeNetworkState`.

use super::{Placed, place, pool};

pub(super) fn rules() -> Vec<Placed> {
    place("status.pooledAddresses[]", vec![pool::canonical_ip()]).collect()
}
