//! What a caller may do. Asked before every answer, and again for the old and the new object inside each write.
//!
//! A first version: everybody may do everything.

use serde_json::Value;

use super::{Caller, Resource, Status};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

/// A request about one resource, before any object was looked at.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub caller: &'a Caller,
    pub verb: Verb,
    pub resource: &'static Resource,
    pub namespace: &'a str,
    /// Empty for a list, a watch, and a create (whose object has it).
    pub name: &'a str,
    /// `status`, or nothing.
    pub subresource: &'a str,
}

/// Whether the caller may ask this at all.
pub fn may_ask(_asked: &Asked<'_>) -> Result<(), Status> {
    Ok(())
}

/// Whether the caller may make this of that: `old` is absent where an object is created, `new` where one goes.
/// Both are in the stored version. Called inside the writer, so what it sees is what is changed.
pub fn may_write(_asked: &Asked<'_>, _old: Option<&Value>, _new: Option<&Value>) -> Result<(), Status> {
    Ok(())
}
