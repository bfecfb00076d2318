//! Strategic merge: lists whose items have a key are merged by it. For the fields that Node, Namespace, Event and Lease
//! have.

use serde_json::{Map, Value};

/// Lists of objects that are merged, and the key that tells their items apart. All others are replaced.
const KEYED: [(&str, &str); 3] = [("conditions", "type"), ("addresses", "type"), ("ownerReferences", "uid")];
/// Lists of plain values that are merged: a patch adds to them.
const SETS: [&str; 1] = ["finalizers"];

/// How many items a list and a patch of it may make of each other, multiplied: each is looked for among the others. No Node has
/// a hundred conditions.
const PAIRS: usize = 4 << 20;

/// Whether a list and what a patch says of it can be held against each other.
fn affordable(name: &str, list: usize, items: usize) -> Result<(), String> {
    match list.saturating_mul(items) > PAIRS {
        true => Err(format!("{name}: {items} items are too many for a list of {list}")),
        false => Ok(()),
    }
}

/// Merges a patch into an object.
pub(super) fn merge(object: &mut Value, patch: &Value) -> Result<(), String> {
    let (Value::Object(object), Value::Object(patch)) = (&mut *object, patch) else {
        *object = patch.clone();
        return Ok(());
    };
    match directive(patch)? {
        Some("replace") => {
            *object = without_directives(patch);
            return Ok(());
        }
        Some("delete") => {
            object.clear();
            return Ok(());
        }
        _ => {}
    }
    if let Some(kept) = patch.get("$retainKeys").and_then(Value::as_array) {
        affordable("$retainKeys", object.len(), kept.len())?;
        object.retain(|name, _| kept.iter().any(|kept| kept.as_str() == Some(name.as_str())));
    }
    for (name, change) in patch {
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
            let gone = change.as_array().map(Vec::as_slice).unwrap_or_default();
            if let Some(list) = object.get_mut(list).and_then(Value::as_array_mut) {
                affordable(name, list.len(), gone.len())?;
                list.retain(|item| !gone.contains(item));
            }
        } else if !name.starts_with('$') {
            field(object, name, change)?;
        }
    }
    for (name, order) in patch {
        if let Some(list) = name.strip_prefix("$setElementOrder/") {
            let order = order.as_array().map(Vec::as_slice).unwrap_or_default();
            let length = object.get(list).and_then(Value::as_array).map_or(0, Vec::len);
            affordable(list, length, order.len())?;
            sort(object.get_mut(list), order, list);
        }
    }
    Ok(())
}

/// Puts a list into the order that a patch has for it; what it doesn't name comes after.
fn sort(list: Option<&mut Value>, order: &[Value], name: &str) {
    let key = KEYED.iter().find(|(list, _)| *list == name).map(|(_, key)| *key);
    let id = |item: &Value| key.map_or_else(|| item.clone(), |key| item[key].clone());
    let place = |item: &Value| order.iter().position(|named| id(named) == id(item)).unwrap_or(order.len());
    if let Some(list) = list.and_then(Value::as_array_mut) {
        list.sort_by_cached_key(place);
    }
}

fn field(object: &mut Map<String, Value>, name: &str, change: &Value) -> Result<(), String> {
    let key = KEYED.iter().find(|(list, _)| *list == name).map(|(_, key)| *key);
    match (change, key) {
        (Value::Null, _) => {
            object.shift_remove(name);
        }
        (Value::Object(_), _) => {
            let child = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
            if !child.is_object() {
                *child = Value::Object(Map::new());
            }
            merge(child, change)?;
        }
        (Value::Array(items), Some(key)) => {
            let list = object.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            match list.as_array_mut() {
                Some(list) => keyed(list, items, key, name)?,
                None => *list = change.clone(),
            }
        }
        (Value::Array(items), None) if SETS.contains(&name) => {
            let list = object.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            if let Some(list) = list.as_array_mut() {
                affordable(name, list.len(), items.len())?;
                let fresh: Vec<Value> = items.iter().filter(|item| !list.contains(item)).cloned().collect();
                list.splice(0..0, fresh);
            }
        }
        _ => {
            object.insert(name.to_owned(), change.clone());
        }
    }
    Ok(())
}

fn keyed(list: &mut Vec<Value>, items: &[Value], key: &str, name: &str) -> Result<(), String> {
    let replaces = |item: &Value| item["$patch"] == "replace" && item.get(key).is_none();
    if items.iter().any(replaces) {
        *list = items.iter().filter(|item| !replaces(item)).cloned().collect();
        return Ok(());
    }
    affordable(name, list.len(), items.len())?;
    let mut fresh = Vec::new();
    for item in items {
        let Some(id) = item.get(key) else {
            return Err(format!("map: {item} does not contain declared merge key: {key} (in {name})"));
        };
        let place = list.iter().position(|old| old.get(key) == Some(id));
        let whole = item.as_object().map(without_directives).unwrap_or_default();
        match (place, item["$patch"].as_str()) {
            (Some(place), Some("delete")) => {
                list.remove(place);
            }
            (None, Some("delete")) => {}
            (Some(place), Some("replace")) => list[place] = Value::Object(whole),
            (Some(place), _) => merge(&mut list[place], item)?,
            (None, _) => fresh.push(Value::Object(whole)),
        }
    }
    // As kube-apiserver has it: what is new comes first.
    list.splice(0..0, fresh);
    Ok(())
}

fn directive(patch: &Map<String, Value>) -> Result<Option<&str>, String> {
    match patch.get("$patch").map(|directive| directive.as_str().unwrap_or_default()) {
        None => Ok(None),
        Some(known @ ("replace" | "delete" | "merge")) => Ok(Some(known)),
        Some(other) => Err(format!("unknown patch type: {other}")),
    }
}

fn without_directives(patch: &Map<String, Value>) -> Map<String, Value> {
    patch.iter().filter(|(name, _)| !name.starts_with('$')).map(|(k, v)| (k.clone(), v.clone())).collect()
}
