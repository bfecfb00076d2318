//! Any input gives an answer or a diagnostic, and the same input the same one.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::dice::thrown;
use crate::template::{fill, ipam_pools};

/// Text made of the language's own words, so that it comes close to being right, and of junk.
fn source() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        8 => prop::sample::select(vec![
            "interfaces", "routes", "running", "config", "route-rules", "dns-resolver", "capture", "ippool", "allocate",
            "name", "mtu", "ipv4", "address", "ip", "0", "1", "99999999999999999999", "null", "eth1", "a", "b", "c",
            ".", ".", ".", ".", "==", "!=", ":=", "|", "=", "!", ":", " ", "\n", "\t", "\u{a0}", "\"", "'", "{{", "}}", "{", "}",
            "interfaces.name==eth1", "capture.a", "capture.b.interfaces.0.name", "capture.a | ", "routes.running.metric:=",
            "interfaces.ipv4.address.0.ip", "{{ capture.a.interfaces.0.name }}",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => "\\PC{0,4}",
    ];
    prop::collection::vec(word, 0..9).prop_map(|words| words.concat())
}

fn policy() -> impl Strategy<Value = BTreeMap<String, String>> {
    prop::collection::btree_map("[abc]", source(), 0..4)
}

proptest! {
    #![proptest_config(thrown(2_000))]

    #[test]
    fn nothing_panics_and_carets_are_inside(captures in policy(), template in source(), key in "\\PC{0,3}") {
        let diagnostics = match Captures::parse(&captures) {
            Err(wrong) => Some(wrong),
            Ok(parsed) => {
                let first = parsed.eval(&state(), &Cached::new(), &Grants::new());
                prop_assert_eq!(&first, &parsed.eval(&state(), &Cached::new(), &Grants::new()));
                match first {
                    Err(wrong) => Some(wrong),
                    Ok(bindings) => fill(&json!({"interfaces": [{"name": template, key: [template]}]}), &bindings).err(),
                }
            }
        };
        for one in diagnostics.iter().flatten() {
            let spot = one.spot.as_ref().expect("all of these are about text");
            prop_assert!(spot.line >= 1 && spot.column >= 1);
            prop_assert!(spot.column <= spot.text.chars().count() + 2, "{}", one);
            prop_assert!(!one.to_string().is_empty());
        }
    }

    #[test]
    fn the_order_of_the_document_does_not_matter(names in Just(vec!["a", "b", "c", "d", "e"]).prop_shuffle(), rotate in 0..5usize) {
        // The same chain under shuffled names: what is evaluated first changes, the answer doesn't.
        let n: Vec<&str> = names;
        let rules = [
            (n[0], "routes.running.metric==100".to_owned()),
            (n[1], format!("interfaces.name==capture.{}.routes.running.0.next-hop-interface", n[0])),
            (n[2], format!("capture.{} | interfaces.mtu:=1400", n[1])),
            (n[3], format!("capture.{}.routes.running.next-hop-interface:=capture.{}.interfaces.0.name", n[0], n[2])),
            (n[4], format!("capture.{} | interfaces.mtu==capture.{}.interfaces.0.mtu", n[2], n[2])),
        ];
        let mut rotated = rules.clone();
        rotated.rotate_left(rotate);
        let map: BTreeMap<String, String> = rotated.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        let bindings = Captures::parse(&map).unwrap().eval(&state(), &Cached::new(), &Grants::new()).unwrap();
        prop_assert_eq!(&bindings.get(n[4]).unwrap()["interfaces"][0]["mtu"], &json!(1400));
        prop_assert_eq!(&bindings.get(n[3]).unwrap()["routes"]["running"][0]["next-hop-interface"], "eth1");
    }

    #[test]
    fn templates_of_any_shape(text in source(), depth in 0..6usize) {
        let mut document = json!(text);
        for level in 0..depth {
            document = match level % 3 {
                0 => json!({"ipam": document, "address": [{"ipam": {"pool": text}}]}),
                1 => json!([document]),
                _ => json!({"interfaces": document, "ipv4": {"address": [{"ipam": text}]}}),
            };
        }
        let bindings = eval(&[("a", "interfaces.name==eth1")]).unwrap();
        let once = fill(&document, &bindings);
        prop_assert_eq!(&once, &fill(&document, &bindings));
        prop_assert_eq!(ipam_pools(&document), ipam_pools(&document));
    }
}
