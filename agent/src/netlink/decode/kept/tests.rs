//! Bytes that are kept are those that came, but for what isn't theirs.

use super::{pieces, read_next_hop, renumbered};
use crate::netlink::wire::Message;

#[test]
fn the_same_object_is_the_same_bytes_whatever_its_link_is_numbered() {
    let next_hop = |index: u32, flags: u32| {
        let mut message = Message::attributes();
        let mut header = [2, 253, 3, 0, 0, 0, 0, 0];
        header[4..].copy_from_slice(&flags.to_ne_bytes());
        message.raw(&header).u32(1, 7).u32(5, index).ip(6, "10.0.0.254".parse().unwrap());
        read_next_hop(&message.into_attributes()).unwrap().unwrap()
    };
    // Dead and its link without a carrier: the kernel's own words.
    let (one, other) = (next_hop(3, 0), next_hop(9, 0x11));
    assert_eq!(one.payload, other.payload);
    assert_eq!((one.object, one.hops[0].index, other.hops[0].index), (Some(7), 3, 9));
}

#[test]
fn a_group_names_its_members() {
    let mut message = Message::attributes();
    message.raw(&[0; 8]).u32(1, 10).attr(2, &[7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 4, 0, 0, 0]);
    let seen = read_next_hop(&message.into_attributes()).unwrap().unwrap();
    assert_eq!((seen.members, seen.lead.as_str()), (vec![(7, 1), (8, 5)], "10 group 7 8"));
    assert_eq!(seen.family, None);
}

#[test]
fn every_hop_of_a_list_is_renumbered_and_what_is_cut_off_is_left() {
    let hop = |index: u8| [8, 0, 0x15, 0, index, 0, 0, 0];
    let list = [hop(3), hop(4)].concat();
    let fresh = renumbered(&list, |place| 70 + u32::try_from(place).unwrap());
    assert_eq!(fresh, [[8, 0, 4, 0, 70, 0, 0, 0], [8, 0, 4, 0, 71, 0, 0, 0]].concat());
    assert_eq!(renumbered(&list[..5], |_| 9), list[..5]);
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..120)) {
        let _ = (read_next_hop(&bytes), pieces(&bytes, 8).len(), renumbered(&bytes, |_| 1));
        let _ = (super::super::route::read(&bytes), super::super::rule::read(&bytes));
    }
}
