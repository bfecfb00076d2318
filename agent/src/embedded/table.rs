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

/// How the rows of a table are made, one object at a time: a list of thousands is never in memory as values.
pub struct Rows<'a> {
    include: String,
    columns: Columns<'a>,
    now: Timestamp,
}

/// The columns of a kind.
enum Columns<'a> {
    Fixed(&'static [Column]),
    /// A CRD's, each with the way to its cell.
    Custom(Vec<(&'a CustomResourceColumnDefinition, Path)>),
}

/// What is shown of a kind whose CRD names no column.
const BARE: &[Column] = &[built_in::NAME, built_in::AGE];

impl<'a> Rows<'a> {
    pub fn new(table: &Table, resource: &'a Resource, version: usize) -> Self {
        Self::at(table, resource, version, Timestamp::now())
    }

    fn at(table: &Table, resource: &'a Resource, version: usize, now: Timestamp) -> Self {
        let columns = match (resource.form, resource.versions[version].columns.as_slice()) {
            (Form::Ours(_), []) => Columns::Fixed(BARE),
            (Form::Ours(_), columns) => Columns::Custom(
                columns.iter().map(|column| (column, Path::parse(&column.json_path))).collect(),
            ),
            (form, _) => Columns::Fixed(built_in::columns(form)),
        };
        Self { include: table.include.clone(), columns, now }
    }

    /// A table without its rows. `metadata` is that of the list (or holds the one object's resourceVersion); `columns` says
    /// whether column definitions go with it (a watch sends them once).
    pub fn head(&self, metadata: &Value, columns: bool) -> Value {
        let definitions = if columns { self.definitions().into() } else { Value::Null };
        json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": definitions})
    }

    /// A table of these objects.
    pub fn table(&self, objects: &[Value], metadata: &Value, columns: bool) -> Value {
        let mut table = self.head(metadata, columns);
        table["rows"] = objects.iter().map(|object| self.row(object)).collect();
        table
    }

    fn definitions(&self) -> Vec<Value> {
        match &self.columns {
            Columns::Fixed(columns) => columns.iter().map(fixed).collect(),
            Columns::Custom(columns) => {
                let custom = columns.iter().map(|(column, _)| custom(column));
                std::iter::once(fixed(&built_in::NAME)).chain(custom).collect()
            }
        }
    }

    /// An object's row.
    pub fn row(&self, object: &Value) -> Value {
        let shown = match self.include.as_str() {
            "None" => Value::Null,
            "Object" => object.clone(),
            _ => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"],
            }),
        };
        json!({"cells": self.cells(object), "object": shown})
    }

    fn cells(&self, object: &Value) -> Vec<Value> {
        match &self.columns {
            Columns::Fixed(columns) => columns.iter().map(|column| (column.cell)(object, self.now)).collect(),
            Columns::Custom(columns) => {
                let name = (built_in::NAME.cell)(object, self.now);
                let custom =
                    columns.iter().map(|(column, path)| cell(path.first(object), &column.type_, self.now));
                std::iter::once(name).chain(custom).collect()
            }
        }
    }
}

fn fixed(column: &Column) -> Value {
    json!({"name": column.name, "type": column.kind, "format": column.format,
        "description": column.description, "priority": column.priority})
}

fn custom(column: &CustomResourceColumnDefinition) -> Value {
    let description = column.description.clone().unwrap_or_else(|| {
        format!("Custom resource definition column (in JSONPath format): {}", column.json_path)
    });
    json!({"name": column.name, "type": column.type_, "format": column.format.as_deref().unwrap_or(""),
        "description": description, "priority": column.priority.unwrap_or_default()})
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
