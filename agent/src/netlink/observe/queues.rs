//! Numbers of queues, as far as somebody asked for them.
//!
//! A veth that nobody asked for any has as many as there may be processors, and uses one; asked for that number it would
//! use all. Nothing else tells the two apart, so that number is taken for nobody's.
//!
//! Cost: one small file where there is a veth with more than one queue, or nothing.

use policy::state::{Link, LinkKind, Observed};

use crate::netlink::decode::link::{IFLA_NUM_RX_QUEUES, IFLA_NUM_TX_QUEUES};
use crate::netlink::wire::read_u32;

const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

fn is_queues((number, bytes): &(u16, Vec<u8>)) -> bool {
    [IFLA_NUM_TX_QUEUES, IFLA_NUM_RX_QUEUES].contains(number) && read_u32(bytes, 0) != Some(1)
}

pub(super) fn settle(state: &mut Observed) {
    let has = |link: &Link| link.kind == LinkKind::Veth && link.attributes.iter().any(is_queues);
    if !state.links.values().any(has) {
        return;
    }
    let usual = std::fs::read_to_string(POSSIBLE).ok().and_then(|list| count(&list));
    for link in state.links.values_mut().filter(|link| link.kind == LinkKind::Veth) {
        // Where nobody can tell they are left to the kernel, as for a new link.
        let asked = |kept: &(u16, Vec<u8>)| usual.is_some() && read_u32(&kept.1, 0) != usual;
        link.attributes.retain(|kept| !is_queues(kept) || asked(kept));
    }
}

/// How many are in a list such as `0-3,8`.
fn count(list: &str) -> Option<u32> {
    let mut all = 0;
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        all += last.checked_sub(first)? + 1;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn a_list_of_processors_is_counted() {
        assert_eq!(
            ["0\n", "0-3", "0-3,8,10-11", "", "3-1"].map(count),
            [Some(1), Some(4), Some(7), None, None]
        );
    }
}
