//! Tables: what `kubectl get` shows, where a client asks for `as=Table`.
//!
//! The columns of our kinds are their CRDs' printer columns, those of built-in kinds are the ones kube-apiserver has
//! (`built_in`). Called by the verbs that read, for lists, single objects and watch events alike. Pure but for the clock:
//! ages are rendered here, as kube-apiserver does. Must never fail: a field that isn't there is an empty cell.
//!
//! Cost: linear in the objects.

mod age;
mod built_in;
mod path;
#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceColumnDefinition;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::Resource;
use super::resource::Form;
use path::Path;

/// How a client wants its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// `includeObject`: `Metadata` (the default), `Object`, `None`.
    pub include: String,
}

/// One column, and how its cell is found.
struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    description: &'static str,
    /// Above 0: only with `-o wide`.
    priority: i32,
    cell: fn(&Value, Timestamp) -> Value,
}

/// The table that an `Accept` header asks for, if any of what it lists first is one.
pub fn wanted(accept: &str, include: Option<&str>) -> Option<Table> {
    for clause in accept.split(',') {
        let mut parts = clause.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let parameter = |name: &str| {
            let found = clause.split(';').skip(1).filter_map(|part| part.trim().split_once('='));
            found.filter(|(key, _)| *key == name).map(|(_, value)| value).last()
        };
        match (media, parameter("as")) {
            // Objects as they are come before any table.
            ("application/json" | "application/yaml" | "application/*" | "*/*", None) => return None,
            ("application/json", Some("Table"))
                if parameter("g") == Some("meta.k8s.io") && parameter("v") == Some("v1") =>
            {
                let include = include.filter(|include| !include.is_empty()).unwrap_or("Metadata");
                return Some(Table { include: include.to_owned() });
            }
            // Protobuf, or a form that isn't served: the next clause may do.
            _ => {}
        }
    }
    None
}

/// Objects as a Table. `metadata` is that of the list (or holds the one object's resourceVersion); `columns` says
/// whether column definitions go with it (a watch sends them once).
pub fn render(
    table: &Table,
    resource: &Resource,
    version: usize,
    objects: &[Value],
    metadata: &Value,
    columns: bool,
) -> Value {
    render_at(table, resource, version, objects, metadata, columns, Timestamp::now())
}

fn render_at(
    table: &Table,
    resource: &Resource,
    version: usize,
    objects: &[Value],
    metadata: &Value,
    columns: bool,
    now: Timestamp,
) -> Value {
    let (definitions, cells) = match resource.form {
        Form::Ours(_) => custom(&resource.versions[version].columns, objects, now),
        form => fixed(built_in::columns(form), objects, now),
    };
    let rows: Vec<Value> =
        objects.iter().zip(cells).map(|(object, cells)| row(table, object, cells)).collect();
    let mut shown = json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
    shown["columnDefinitions"] = if columns { definitions.into() } else { Value::Null };
    shown["rows"] = rows.into();
    shown
}

fn row(table: &Table, object: &Value, cells: Vec<Value>) -> Value {
    let mut row = json!({});
    row["cells"] = cells.into();
    row["object"] = match table.include.as_str() {
        "None" => Value::Null,
        "Object" => object.clone(),
        _ => json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": object["metadata"],
        }),
    };
    row
}

/// Column definitions, and the cells of each object.
type Shown = (Vec<Value>, Vec<Vec<Value>>);

fn fixed(columns: &[Column], objects: &[Value], now: Timestamp) -> Shown {
    let definition = |column: &Column| {
        json!({"name": column.name, "type": column.kind, "format": column.format,
            "description": column.description, "priority": column.priority})
    };
    let cells = |object| columns.iter().map(|column| (column.cell)(object, now)).collect();
    (columns.iter().map(definition).collect(), objects.iter().map(cells).collect())
}

/// As a CRD's columns say; a CRD without any shows the age.
fn custom(columns: &[CustomResourceColumnDefinition], objects: &[Value], now: Timestamp) -> Shown {
    if columns.is_empty() {
        return fixed(&[built_in::NAME, built_in::AGE], objects, now);
    }
    let paths: Vec<Path> = columns.iter().map(|column| Path::parse(&column.json_path)).collect();
    let (mut definitions, _) = fixed(&[built_in::NAME], &[], now);
    definitions.extend(columns.iter().map(|column| {
        let description = column.description.clone().unwrap_or_else(|| {
            format!("Custom resource definition column (in JSONPath format): {}", column.json_path)
        });
        json!({"name": column.name, "type": column.type_, "format": column.format.as_deref().unwrap_or(""),
            "description": description, "priority": column.priority.unwrap_or_default()})
    }));
    let cells = |object: &Value| {
        let mut cells = vec![(built_in::NAME.cell)(object, now)];
        let found = paths.iter().zip(columns);
        cells.extend(found.map(|(path, column)| cell(path.first(object), &column.type_, now)));
        cells
    };
    (definitions, objects.iter().map(cells).collect())
}

/// A value in a column of this type; nothing where it isn't of that type.
fn cell(value: Option<&Value>, kind: &str, now: Timestamp) -> Value {
    match (kind, value) {
        ("date", Some(Value::String(time))) => age::since(time, now).into(),
        ("integer", Some(value)) => value.as_i64().map_or(Value::Null, Value::from),
        ("number", Some(Value::Number(number))) => number.clone().into(),
        ("boolean", Some(Value::Bool(yes))) => (*yes).into(),
        ("string", Some(Value::String(text))) => text.as_str().into(),
        ("string", Some(Value::Null) | None) => Value::Null,
        ("string", Some(value)) => value.to_string().into(),
        _ => Value::Null,
    }
}
