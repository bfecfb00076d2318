//! Label and field selectors: which objects a list or a watch is about.
//!
//! Parsed once per request, asked of an object's [`Facts`] without reading its text. Pure.

use super::resource::{Form, Resource};
use super::status::Status;
use super::store::{Facts, Key};

mod label;

#[cfg(test)]
mod tests;

pub use label::Labels;

/// Both kinds of selector together.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    labels: Labels,
    fields: Vec<Field>,
}

/// `name=value`, or `name!=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    name: String,
    value: String,
    equal: bool,
}

impl Selector {
    /// Reads `labelSelector` and `fieldSelector` of a request about a resource.
    pub fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, Status> {
        let labels = Labels::parse(labels).map_err(Status::bad_request)?;
        let fields = parse_fields(fields).map_err(Status::bad_request)?;
        let fields = fields.into_iter().map(|field| known(resource, field)).collect::<Result<_, _>>()?;
        Ok(Self { labels, fields })
    }

    /// The same, and this name only.
    pub fn named(mut self, name: &str) -> Self {
        self.fields.push(Field { name: "metadata.name".to_owned(), value: name.to_owned(), equal: true });
        self
    }

    /// Whether it lets everything through.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The one name that it can let through, if it names one.
    pub fn name(&self) -> Option<&str> {
        let name = self.fields.iter().find(|field| field.equal && field.name == "metadata.name")?;
        Some(&name.value)
    }

    pub fn matches(&self, key: &Key, facts: &Facts) -> bool {
        let holds = |field: &Field| {
            let value = match field.name.as_str() {
                "metadata.name" => &*key.name,
                "metadata.namespace" => &*key.namespace,
                name => facts.fields.get(name).map(String::as_str).unwrap_or_default(),
            };
            (value == field.value) == field.equal
        };
        self.fields.iter().all(holds) && self.labels.match_all(&facts.labels)
    }
}

/// Reads `a=b,c!=d`. A comma, an equals sign or a backslash in a value stands behind a backslash.
fn parse_fields(text: &str) -> Result<Vec<Field>, String> {
    let mut fields = Vec::new();
    for term in split(text) {
        if term.trim().is_empty() {
            continue;
        }
        let found = [("!=", false), ("==", true), ("=", true)]
            .iter()
            .filter_map(|(sign, equal)| Some((term.find(sign)?, *sign, *equal)))
            .min_by_key(|(at, sign, _)| (*at, std::cmp::Reverse(sign.len())));
        let Some((at, sign, equal)) = found else {
            return Err(format!("invalid selector: '{text}'; can't understand '{term}'"));
        };
        let value = unescape(&term[at + sign.len()..]).ok_or_else(|| {
            format!("invalid field selector: {term:?}: a backslash stands before , = or \\ only")
        })?;
        fields.push(Field { name: term[..at].trim().to_owned(), value, equal });
    }
    Ok(fields)
}

fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

fn unescape(text: &str) -> Option<String> {
    let mut value = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => value.push(chars.next().filter(|c| matches!(c, '\\' | ',' | '='))?),
            c => value.push(c),
        }
    }
    Some(value)
}

/// The field under the name that [`Facts`] has for it; refused where a selector can't name it.
fn known(resource: &Resource, field: Field) -> Result<Field, Status> {
    let involved = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];
    let of_event = |prefix: &str, component: &str, name: &str| match name {
        "reason" | "type" => Some(name.to_owned()),
        "source" if prefix == "involvedObject" => Some(name.to_owned()),
        name if name == component => Some("reportingComponent".to_owned()),
        name => {
            let part = name.strip_prefix(prefix)?.strip_prefix('.')?;
            involved.contains(&part).then(|| format!("involvedObject.{part}"))
        }
    };
    let name = match (resource.form, field.name.as_str()) {
        (_, "metadata.name") => Some(field.name.clone()),
        (_, "metadata.namespace") if resource.namespaced || resource.ours.is_some() => {
            Some(field.name.clone())
        }
        (Form::Node, "spec.unschedulable") | (Form::Namespace, "status.phase") => Some(field.name.clone()),
        (Form::Namespace, "name") => Some("metadata.name".to_owned()),
        (Form::CoreEvent, name) => of_event("involvedObject", "reportingComponent", name),
        (Form::NewEvent, name) => of_event("regarding", "reportingController", name),
        _ => None,
    };
    match name {
        Some(name) => Ok(Field { name, ..field }),
        None => Err(Status::bad_request(format!("field label not supported: {}", field.name))),
    }
}
