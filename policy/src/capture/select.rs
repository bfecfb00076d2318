//! `==` and `!=`: the items of a section whose property has a value, or another one.
//!
//! Called by `eval` only. One pass over the items; only those that match are copied. What was there instead is
//! gathered only when nothing matched.

use std::collections::BTreeSet;

use serde_json::Value;

use super::path::{Located, Path, text_of};
use super::problem::{Names, Problem, Seen};
use super::section::Section;

/// The items whose property equals `value`, or differs from it; `None` is null. An item without the property is
/// neither: as in nmpolicy, `!=` asks what a property is, not whether there is one.
pub(crate) fn select(
    section: Section,
    items: &[Value],
    property: &Path,
    equal: bool,
    value: Option<String>,
) -> Result<Value, Located> {
    let matches = |item: &&Value| {
        let found = property.walk(item).ok();
        found.and_then(|found| same(found, value.as_deref())) == Some(equal)
    };
    let kept: Vec<Value> = items.iter().filter(matches).cloned().collect();
    if kept.is_empty() {
        let problem = Problem::NotFound {
            item: section.item(),
            property: property.dotted(),
            operator: if equal { "=" } else { "!=" },
            value: value.unwrap_or_else(|| "null".into()),
            seen: seen(items, property),
        };
        return Err((property.at(), problem));
    }
    Ok(section.state_of(kept))
}

/// Whether a property has a value; compared as text. Lists and maps can't be compared, and null is what nmstate
/// writes for a property that isn't there, so these neither have it nor lack it.
fn same(found: &Value, wanted: Option<&str>) -> Option<bool> {
    match (found, wanted) {
        (Value::Array(_) | Value::Object(_), _) | (Value::Null, Some(_)) => None,
        (Value::Null, None) => Some(true),
        (_, None) => Some(false),
        (Value::String(text), Some(wanted)) => {
            Some(text == wanted || (text.eq_ignore_ascii_case(wanted) && is_mac(text)))
        }
        (other, Some(wanted)) => text_of(other).map(|text| text == wanted),
    }
}

/// Six or more pairs of hex digits (InfiniBand has twenty) with colons between them.
fn is_mac(text: &str) -> bool {
    let pair = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    text.split(':').count() >= 6 && text.split(':').all(pair)
}

/// What the items have in the place of the property.
fn seen(items: &[Value], property: &Path) -> Seen {
    let mut values = BTreeSet::new();
    let mut list = false;
    for item in items {
        match property.walk(item) {
            Ok(found) => {
                list |= found.is_array();
                values.extend(text_of(found));
            }
            Err(stop) => list |= stop.here.is_array(),
        }
    }
    match (items, list) {
        ([], _) => Seen::NoItems,
        (_, true) => Seen::List,
        _ if values.is_empty() => Seen::Nowhere,
        _ => Seen::Values(Names::of(values.iter().map(String::as_str))),
    }
}
