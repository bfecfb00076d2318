//! No input makes the rules panic: every value of every manifest in the table is replaced by one of another shape.

use crds::testing::cases;
use crds::{Kind, validate, warnings};
use serde_json::{Value, json};

/// Paths, as JSON pointers, of everything in a value.
fn pointers(value: &Value, here: &str, found: &mut Vec<String>) {
    found.push(here.to_owned());
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                pointers(child, &format!("{here}/{key}"), found);
            }
        }
        Value::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(index, child)| pointers(child, &format!("{here}/{index}"), found));
        }
        _ => {}
    }
}

#[test]
fn any_value_anywhere_gets_an_answer() {
    let odd = [json!(null), json!(-1.5), json!("\u{0}é/::%"), json!([[]]), json!({"": {}}), json!(u64::MAX)];
    let mut refused = 0;
    for kind in Kind::ALL {
        for case in cases(kind) {
            let (before, after) = (case.old, case.new);
            let mut all = Vec::new();
            pointers(&after, "", &mut all);
            // Two of the six at each place: all six meet every field somewhere in the table.
            let pairs =
                all.iter().enumerate().flat_map(|(i, pointer)| [(pointer, i % 6), (pointer, (i + 3) % 6)]);
            for (pointer, which) in pairs {
                let mut changed = after.clone();
                *changed.pointer_mut(pointer).expect(pointer) = odd[which].clone();
                refused += usize::from(!validate(kind, before.as_ref(), &changed).is_empty());
                refused += usize::from(!validate(kind, Some(&changed), &after).is_empty());
                warnings(kind, &changed);
            }
        }
    }
    assert!(refused > 5_000, "only {refused} refused");
}
