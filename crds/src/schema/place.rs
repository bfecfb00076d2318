//! Places in a schema, such as `spec.ranges[].ipv4`, and the values that stand there in an object.

use serde_json::Value;

/// The schema node at a place: properties by name, `[]` for the items of a list, `{}` for the values of a map.
pub fn schema_at<'a>(schema: &'a Value, place: &str) -> Option<&'a Value> {
    steps(place).try_fold(schema, |node, step| match step {
        "[]" => node.get("items"),
        "{}" => node.get("additionalProperties"),
        name => node.get("properties")?.get(name),
    })
}

/// As [`schema_at`], to write.
pub fn schema_at_mut<'a>(schema: &'a mut Value, place: &str) -> Option<&'a mut Value> {
    steps(place).try_fold(schema, |node, step| match step {
        "[]" => node.get_mut("items"),
        "{}" => node.get_mut("additionalProperties"),
        name => node.get_mut("properties")?.get_mut(name),
    })
}

/// A value at a place, its predecessor if there is one, and its path in the object.
#[derive(Clone, Debug, PartialEq)]
pub struct Spot<'a> {
    pub new: &'a Value,
    pub old: Option<&'a Value>,
    pub path: String,
}

/// Every value that stands at `place`. An item of a list finds its predecessor by the list's map keys, and
/// has none where the list has no keys: so does the API server correlate them.
pub fn spots<'a>(schema: &Value, place: &str, new: &'a Value, old: Option<&'a Value>) -> Vec<Spot<'a>> {
    let root = Spot { new, old, path: String::new() };
    let mut node = Some(schema);
    let mut found = vec![root];
    for step in steps(place) {
        let Some(here) = node else { return Vec::new() };
        (found, node) = match step {
            "[]" => (found.iter().flat_map(|spot| items(here, spot)).collect(), here.get("items")),
            "{}" => (found.iter().flat_map(values).collect(), here.get("additionalProperties")),
            name => {
                let child = here.get("properties").and_then(|properties| properties.get(name));
                (found.iter().filter_map(|spot| property(spot, name)).collect(), child)
            }
        };
    }
    found
}

fn steps(place: &str) -> impl Iterator<Item = &str> {
    place.split('.').flat_map(|part| {
        let each = ["[]", "{}"].into_iter().find(|each| part.ends_with(each));
        let name = &part[..part.len() - each.map_or(0, str::len)];
        [Some(name).filter(|name| !name.is_empty()), each].into_iter().flatten()
    })
}

fn property<'a>(spot: &Spot<'a>, name: &str) -> Option<Spot<'a>> {
    let path = join(&spot.path, name);
    Some(Spot { new: spot.new.get(name)?, old: spot.old.and_then(|old| old.get(name)), path })
}

/// The API server's rules name an entry of a map by its key in brackets; its schemas join it with a dot.
fn values<'a>(spot: &Spot<'a>) -> Vec<Spot<'a>> {
    let entries = spot.new.as_object().into_iter().flatten();
    let value = |(key, new): (&String, &'a Value)| Spot {
        new,
        old: spot.old.and_then(|old| old.get(key)),
        path: format!("{}[{key}]", spot.path),
    };
    entries.map(value).collect()
}

fn items<'a>(list: &Value, spot: &Spot<'a>) -> Vec<Spot<'a>> {
    let items = spot.new.as_array().map(Vec::as_slice).unwrap_or_default();
    let item = |(index, new): (usize, &'a Value)| Spot {
        new,
        old: predecessor(list, new, spot.old),
        path: format!("{}[{index}]", spot.path),
    };
    items.iter().enumerate().map(item).collect()
}

/// The item of the old list that has the same map keys.
pub(crate) fn predecessor<'a>(list: &Value, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
    let keys = list.get("x-kubernetes-list-map-keys")?.as_array()?;
    let same = |old: &&Value| {
        keys.iter()
            .filter_map(Value::as_str)
            .all(|key| item.get(key).is_some() && item.get(key) == old.get(key))
    };
    old?.as_array()?.iter().find(same)
}

/// `path.name`, or the name alone at the root.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
