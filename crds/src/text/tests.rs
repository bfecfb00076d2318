use super::*;

#[test]
fn durations_read_as_go_reads_them() {
    let cases = [
        ("5m", Some(300_000)),
        ("1h30m", Some(5_400_000)),
        ("1.5s", Some(1_500)),
        ("250ms", Some(250)),
        ("0s", Some(0)),
        ("", None),
        ("5", None),
        ("m", None),
        ("5 m", None),
        ("1.s", None),
        ("1.2.3s", None),
        ("5d", None),
        ("-5m", None),
        ("99999999999999999999h", None),
        ("99999h", Some(359_996_400_000)),
        ("100000h", None),
        ("1.000001s", None),
        (".5s", None),
        ("0.99999s0.00001s", Some(1_000)),
        ("30m1h1m", Some(5_460_000)),
    ];
    for (text, millis) in cases {
        assert_eq!(duration(text), millis.map(Duration::from_millis), "{text:?}");
    }
}

#[test]
fn names_have_their_shape() {
    for good in ["a", "traffic-1", "0", &"a".repeat(63)] {
        assert!(is_dns_label(good), "{good:?}");
    }
    for bad in ["", "-a", "a-", "a.b", "A", "a_b", "é", &"a".repeat(64)] {
        assert!(!is_dns_label(bad), "{bad:?}");
    }
    for good in ["kubernetes.io/hostname", "a", "A_b.c", "x.y/Z-1"] {
        assert!(is_qualified_name(good), "{good:?}");
    }
    for bad in ["", "/a", "a/", "a/b/c", "A.io/x", "a..b/x", "-a", "a b"] {
        assert!(!is_qualified_name(bad), "{bad:?}");
    }
    assert!(is_label_value("") && is_label_value("rack_1.A"));
    assert!(!is_label_value("-rack") && !is_label_value("a b") && !is_label_value(&"a".repeat(64)));
}

#[test]
fn a_pool_capture_names_its_pool() {
    // R18
    assert_eq!(pool_of_capture("ippool.traffic-1.allocate"), Some("traffic-1"));
    assert_eq!(pool_of_capture(" ippool.traffic-1.allocate\n"), Some("traffic-1"));
    for other in ["ippool.a.b.allocate", "ippool.traffic-1", "ippool..allocate", "interfaces.name"] {
        assert_eq!(pool_of_capture(other), None, "{other:?}");
    }
}
