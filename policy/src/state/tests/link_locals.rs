//! Which link-local address is the kernel's own.

use crate::state::{Address, AddressProtocol, IfName, Link, LinkKind, LinkLocal, Observed};

const OF_MAC: &str = "fe80::ff:fe00:1";

fn address(ip: &str, protocol: Option<AddressProtocol>) -> Address {
    Address { protocol, ..Address::new(ip.parse().expect("an address"), 64) }
}

/// eth0 with these addresses, beside a loopback whose address has this mark.
fn host(addresses: &[Address], mark: Option<AddressProtocol>) -> Observed {
    let mut host = Observed::default();
    let mut lo = Link::new(IfName::new("lo").expect("a name"), LinkKind::Loopback);
    lo.ipv6.addresses.push(address("::1", mark));
    let mut eth0 = Link::new(IfName::new("eth0").expect("a name"), LinkKind::Ethernet);
    eth0.mac = "02:00:00:00:00:01".parse().ok();
    eth0.ipv6.addresses = addresses.to_vec();
    host.insert(lo);
    host.insert(eth0);
    host
}

fn told(host: &mut Observed, way: Option<LinkLocal>) -> Vec<bool> {
    host.tell_link_locals(|_| way);
    host.links["eth0"].ipv6.addresses.iter().map(Address::is_kernel_link_local).collect()
}

#[test]
fn a_kernel_that_marks_its_own_has_the_word() {
    let own = Some(AddressProtocol::KERNEL_LINK_LOCAL);
    let list = [address("fe80::1", None), address(OF_MAC, own), address("fd00::1", None)];
    for way in [LinkLocal::FromMac, LinkLocal::Never, LinkLocal::Hidden] {
        assert_eq!(told(&mut host(&list, None), Some(way)), [false, true, false]);
    }
    // A loopback's mark is as good, and one of the kernel's making that isn't marked is somebody's.
    let list = [address("fe80::1", None), address(OF_MAC, None)];
    let marked = Some(AddressProtocol::KERNEL_LOOPBACK);
    assert_eq!(told(&mut host(&list, marked), Some(LinkLocal::FromMac)), [false, false]);
}

#[test]
fn a_kernel_that_marks_nothing_is_known_by_the_mac() {
    let list = [address("fe80::1", None), address(OF_MAC, None)];
    assert_eq!(told(&mut host(&list, None), Some(LinkLocal::FromMac)), [false, true]);
    assert_eq!(told(&mut host(&list, None), Some(LinkLocal::Never)), [false, false]);
    // Nobody can tell: none is taken for somebody's.
    assert_eq!(told(&mut host(&list, None), Some(LinkLocal::Hidden)), [true, true]);
    assert_eq!(told(&mut host(&list, None), None), [true, true]);
    let mut bare = host(&list, None);
    bare.links.get_mut("eth0").expect("it is there").mac = None;
    assert_eq!(told(&mut bare, Some(LinkLocal::FromMac)), [true, true]);
}

/// Shown and read again it is the same: no word is said of what is nobody's in particular.
#[test]
fn what_is_shown_tells_as_much() {
    let own = Some(AddressProtocol::KERNEL_LINK_LOCAL);
    let mut seen = host(&[address("fe80::1", None), address(OF_MAC, own)], None);
    assert_eq!(told(&mut seen, None), [false, true]);
    let shown = seen.to_value();
    assert!(!shown.to_string().contains(r#""protocol":"0""#), "{shown}");
    let again = Observed::from_value(&shown).expect("it was shown");
    assert_eq!(again.links["eth0"].ipv6.addresses, seen.links["eth0"].ipv6.addresses);
}
