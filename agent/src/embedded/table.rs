//! Tables: what `kubectl get` shows, where a client asks for `as=Table`.

use serde_json::Value;

use super::Resource;

/// How a client wants its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// `includeObject`: `Metadata` (the default), `Object`, `None`.
    pub include: String,
}

/// The table that an `Accept` header asks for, if any of what it lists first is one.
pub fn wanted(_accept: &str, _include: Option<&str>) -> Option<Table> {
    None
}

/// Objects as a Table. `metadata` is that of the list (or holds the one object's resourceVersion); `columns` says
/// whether column definitions go with it (a watch sends them once).
pub fn render(
    _table: &Table,
    _resource: &Resource,
    _version: usize,
    _objects: &[Value],
    _metadata: &Value,
    _columns: bool,
) -> Value {
    Value::Null
}
