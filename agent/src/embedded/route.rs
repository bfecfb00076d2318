//! What a path names. Called once per request; must never touch the store.

use super::resource::{self, Resource};
use super::status::Status;

#[cfg(test)]
mod tests;

/// Objects that a path names.
#[derive(Clone, Debug)]
pub struct Target {
    pub resource: &'static Resource,
    /// Which of its versions.
    pub version: usize,
    /// Absent where the resource has none, and for all of them at once.
    pub namespace: Option<String>,
    /// Absent for a collection.
    pub name: Option<String>,
    /// Whether only the status is meant.
    pub status: bool,
    /// Whether the path itself says that it is a watch: the old spelling.
    pub watch: bool,
}

/// Reads a path below `/api` or `/apis`.
pub fn target(path: &str) -> Result<Target, Status> {
    let segments = segments(path)?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (group, version, rest) = match segments.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Err(Status::no_such_path()),
    };
    let (watch, rest) = match rest {
        ["watch", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let found = |plural: &str| resource::find(group, version, plural).ok_or_else(Status::no_such_path);
    let target = |plural: &str, namespace: Option<&str>, name: Option<&str>, status: bool| {
        let resource = found(plural)?;
        let fits = match (resource.namespaced, namespace, name) {
            (false, namespace, _) => namespace.is_none(),
            // One object is named with its namespace.
            (true, namespace, name) => namespace.is_some() || name.is_none(),
        };
        if !fits || (status && !resource.has_status) {
            return Err(Status::no_such_path());
        }
        let version = resource.version(version).ok_or_else(Status::no_such_path)?;
        named(name)?;
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Ok(Target { resource, version, namespace: owned(namespace), name: owned(name), status, watch })
    };
    match rest {
        ["namespaces", namespace, "status"] if group.is_empty() => {
            target("namespaces", None, Some(namespace), true)
        }
        ["namespaces", namespace, plural] => target(plural, Some(namespace), None, false),
        ["namespaces", namespace, plural, name] => target(plural, Some(namespace), Some(name), false),
        ["namespaces", namespace, plural, name, "status"] => {
            target(plural, Some(namespace), Some(name), true)
        }
        [plural] => target(plural, None, None, false),
        [plural, name] => target(plural, None, Some(name), false),
        [plural, name, "status"] => target(plural, None, Some(name), true),
        _ => Err(Status::no_such_path()),
    }
}

/// The parts of a path, decoded. A part that is empty, or that would lead elsewhere, names nothing.
fn segments(path: &str) -> Result<Vec<String>, Status> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments = path.split('/').map(|part| {
        let part = decode(part, false).ok_or_else(|| Status::bad_request("the path is not valid UTF-8"))?;
        let astray = part.is_empty() || part.contains(['/', '\0']);
        if astray { Err(Status::no_such_path()) } else { Ok(part) }
    });
    segments.collect()
}

/// Whether a name may stand in a path.
fn named(name: Option<&str>) -> Result<(), Status> {
    let invalid =
        |name: &str, why| Err(Status::bad_request(format!("Name parameter invalid: {name:?}: {why}")));
    match name {
        Some(name @ ".") => invalid(name, "may not be '.'"),
        Some(name @ "..") => invalid(name, "may not be '..'"),
        Some(name) if name.contains('%') => invalid(name, "may not contain '%'"),
        _ => Ok(()),
    }
}

/// Undoes percent-encoding; nothing if what comes out is no text. In a query `+` is a space.
pub fn decode(text: &str, plus: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = code.filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        match (first, code.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            (b'+', _) if plus => {
                bytes.push(b' ');
                rest = tail;
            }
            (byte, _) => {
                bytes.push(*byte);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}
