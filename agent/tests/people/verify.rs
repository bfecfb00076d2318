//! Ledger, enactments and interfaces compared.

use hyper::http::Method;
use serde_json::{Value, json};

use crate::field::{Claim, Field, PREFIX, held};

pub(crate) fn r34_r40_r66_r67_differences_are_named(field: &Field) {
    let pool = field.pool("traffic-1", &json!({"cidr": "10.10.10.0/24"}));
    let one = field.node("node01", false);
    let sound = (4, "10.10.10.5", held("node01", &one, "static-ip"));
    field.ledger("traffic-1", &pool, std::slice::from_ref(&sound));
    let claim = Claim { policy: "static-ip", pool: "traffic-1", pool_uid: &pool, ip: "10.10.10.5" };
    field.enactment("node01", &one, &claim);
    field.state("node01", &one, "eth1", &["10.10.10.5", "192.0.2.1"]);
    assert_eq!(field.berth("pool verify traffic-1 --live").ok(), "1 pool: no difference\n");

    // R40: a holder whose Node is gone. R34: one whose enactment doesn't list it.
    let two = field.node("node02", false);
    field.ledger(
        "traffic-1",
        &pool,
        &[
            sound,
            (5, "10.10.10.6", held("node09", "gone", "static-ip")),
            (6, "10.10.10.7", held("node02", &two, "static-ip")),
        ],
    );
    // On an interface, and nobody's; and what the ledger has for another.
    field.state("node02", &two, "br0", &["10.10.10.9", "10.10.10.5"]);
    let ran = field.berth("pool verify -o json --live");
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "error: 4 differences in 1 pool\n"), "{}", ran.stdout);
    let found: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let words: Vec<(String, String)> = found["differences"]
        .as_array()
        .expect("it is there")
        .iter()
        .map(|one| {
            (
                one["kind"].as_str().expect("it is there").to_owned(),
                one["ip"].as_str().expect("it is there").to_owned(),
            )
        })
        .collect();
    let expected = [
        ("NodeGone", "10.10.10.6"),
        ("Unlisted", "10.10.10.7"),
        ("Unrecorded", "10.10.10.9"),
        ("Elsewhere", "10.10.10.5"),
    ];
    assert_eq!(words, expected.map(|(kind, ip)| (kind.to_owned(), ip.to_owned())));
    assert_eq!(found["differences"][3]["seen"], json!({"node": "node02", "interface": "br0"}));
    assert_eq!(found["differences"][0]["holder"]["node"], "node09");
    // Interfaces only where that is asked for; a person reads address, holder and place.
    let ran = field.berth("pool verify traffic-1");
    assert_eq!(ran.stderr, "error: 2 differences in 1 pool\n");
    assert!(ran.stdout.contains("10.10.10.6"), "{}", ran.stdout);
    assert!(ran.stdout.contains("the ledger has it for node node09"), "{}", ran.stdout);

    // This host's own kernel: nothing of the pool is on it, so what node01 holds is missed.
    let ran = field.berth("pool verify traffic-1 --host --node node01 -o wide");
    assert!(ran.stdout.contains("NotThere") && ran.stdout.contains("10.10.10.5"), "{}", ran.stdout);
    let said = field.berth("pool verify --host --node node0x").failed(1);
    assert!(said.contains("there is no Node \"node0x\"; did you mean node01, node02?"), "{said}");
}

/// That all agrees can't be said of what can't be read: pools, slices, enactments.
pub(crate) fn what_cant_be_read_counts(field: &Field) {
    let pool = field.pool("traffic-1", &json!({"cidr": "10.10.10.0/24"}));
    field.pool("cut", &json!({"cidr": "10.30.0.0/24", "perNodeHostBits": 4}));
    field.pool("later", &json!({"cidr": "10.40.0.0/24"}));
    let node = field.node("node01", false);
    field.ledger("traffic-1", &pool, &[(4, "10.10.10.5", held("node01", &node, "static-ip"))]);
    let claim = Claim { policy: "static-ip", pool: "traffic-1", pool_uid: &pool, ip: "10.10.10.5" };
    field.enactment("node01", &node, &claim);
    assert_eq!(field.berth("pool verify").ok(), "3 pools: no difference\n");

    // As another version of Berth may write them.
    let encoding = json!({"metadata": {"annotations": {"nmstate.io/ledger-encoding": "of-tomorrow"}}});
    field.slice("cut", "10.30.0.16/28", "node01", &node, "10.30.0.17");
    for object in ["nodeippools/later", "nodeipslices/cut.10.30.0.16"] {
        field.ask(Method::PATCH, &format!("{PREFIX}/{object}"), &encoding);
    }
    // Whose it is nobody knows.
    let other = field.node("node02", false);
    field.enactment("node02", &other, &Claim { ip: "10.10.10.6", ..claim });
    let nobody = json!({"metadata": {"ownerReferences": null}});
    let path = format!("{PREFIX}/nodenetworkconfigurationenactments/node02.static-ip");
    field.ask(Method::PATCH, &path, &nobody);

    let ran = field.berth("pool verify -o json");
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "error: 3 objects can't be read\n"), "{}", ran.stdout);
    let found: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(found["pools"], json!(["cut", "traffic-1"]), "what was compared");
    let all = found["differences"].as_array().expect("it is there");
    let told: Vec<(&str, &str)> = all
        .iter()
        .map(|one| {
            assert_eq!(one["kind"], "Unreadable");
            let message = one["message"].as_str().expect("it is there");
            (one["pool"].as_str().unwrap_or_default(), message.split(':').next().unwrap_or_default())
        })
        .collect();
    let expected = [
        ("cut", "NodeIPSlice cut.10.30.0.16"),
        ("later", "NodeIPPool later"),
        ("traffic-1", "NodeNetworkConfigurationEnactment node02.static-ip"),
    ];
    assert_eq!(told, expected);
    let ran = field.berth("pool verify later -o wide");
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "error: 1 object can't be read\n"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("Unreadable") && ran.stdout.contains("can't be read: NodeIPPool later"),
        "{}",
        ran.stdout
    );
    // What others have is no matter of this pool's; other verbs warn.
    let ran = field.berth("pool verify cut");
    assert_eq!(ran.stderr, "error: 1 object can't be read\n", "{}", ran.stdout);
    let ran = field.berth("pool ls");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: NodeIPPool later: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: NodeIPSlice cut.10.30.0.16: "), "{}", ran.stderr);
}
