//! How an address stands, in a word.

use super::*;
use crate::pool::{Band, Recorded, Word};

#[test]
fn every_word() {
    let text = "ranges: [{name: a, cidr: 10.0.0.0/24, start: 10.0.0.1, end: 10.0.0.100, exclude: [10.0.0.4], gateway: 10.0.0.2},
        {name: b, cidr: 10.0.1.0/28, state: Draining}, {name: c, cidr: 10.0.2.0/24}]
reservations: [{node: node09, ip: 10.0.0.9}]";
    let pool = pool(text);
    let mut barred = Barred::default();
    barred.pool(&super::pool("range: {cidr: 10.0.2.0/24}"));
    let stands = |text: &str, recorded| pool.standing(ip(text), &barred, recorded);
    for (address, word, why, band, draining) in [
        ("10.0.0.1", Word::Free, None, Some(Band::Static), false),
        ("10.0.0.99", Word::Free, None, Some(Band::Dynamic), false),
        ("10.0.0.2", Word::Gateway, Some("of range a"), None, false),
        ("10.0.0.4", Word::Excluded, Some("range a excludes it"), None, false),
        ("10.0.0.9", Word::Reserved, None, Some(Band::Static), false),
        ("10.0.1.5", Word::Free, None, Some(Band::Dynamic), true),
        ("10.0.0.101", Word::Outside, None, None, false),
    ] {
        let found = stands(address, None);
        assert_eq!(
            (found.word, found.why.as_deref(), found.band, found.draining),
            (word, why, band, draining),
            "{address}"
        );
    }
    let both = stands("10.0.2.9", None);
    assert_eq!(both.word, Word::Barred);
    assert!(both.why.is_some_and(|why| why.ends_with("has it too, so nobody gets it")));
    // Held all the same: that is the word, and what the spec says comes after.
    for (address, why) in [
        ("10.0.0.99", None),
        ("10.0.0.4", Some("excluded range a excludes it")),
        ("10.0.0.2", Some("gateway of range a")),
        ("10.0.0.9", Some("reserved for node09")),
        ("10.0.9.9", Some("in no range of the pool")),
    ] {
        let found = stands(address, Some(Recorded::Held));
        assert_eq!((found.word, found.why.as_deref()), (Word::Held, why), "{address}");
    }
    assert_eq!(stands("10.0.0.99", Some(Recorded::Quarantined)).word, Word::Quarantined);
}

/// Inside slices there are no bands, one by one and counted alike.
#[test]
fn slices_have_no_bands() {
    let pool = pool("range: {cidr: 10.0.0.0/24, perNodeHostBits: 4}");
    let none = Barred::default();
    assert_eq!(pool.standing(ip("10.0.0.1"), &none, None).band, None);
    let part = pool.ranges()[0].parts().next().unwrap();
    assert_eq!(pool.tally(part, (0, 253), &none, []).band, 0);
}
