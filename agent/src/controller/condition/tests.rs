use super::*;

/// A ledger that has grown too large for one object says so, and goes on giving.
#[test]
fn a_large_ledger_says_so() {
    for (held, said) in [(2_000, names::MESSAGE_RECONCILED), (2_001, names::MESSAGE_LARGE)] {
        let mut ledger = Ledger::new("p".into());
        ledger.rebuilt_for = Some("p".into());
        for number in 0..held {
            let ip = IpAddr::from(std::net::Ipv4Addr::from_bits(0x0a00_0001 + number));
            ledger.allocations.insert(ip, crate::ledger::claims::nobodys());
        }
        let (word, reason, message) = verdict(&ledger, &NodeIPPoolStatus::default(), &Around::default());
        assert_eq!((word, reason, message.as_str()), (TRUE, names::RECONCILED, said), "{held}");
    }
}
