//! Bodies in protobuf, as Go clients with types of their own send them for built-in kinds: `kubectl create namespace`, leader
//! election, event recorders. Read into the JSON value that the same object would be; answers are JSON, which they read.
//!
//! Owns the envelope and the reading of the wire; which number is which field is in [`tables`]. Called by [`super`]. Fields
//! that no table has are skipped, as protobuf wants it. Must never take more than the body has: every length is held
//! against what is left. Cost: linear in the body; nesting is bounded by the tables.

mod tables;
#[cfg(test)]
mod tests;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value};

use crate::embedded::resource::Form;

/// What a client calls it.
pub(super) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// Every body begins with it.
const MAGIC: &[u8] = b"k8s\0";

/// How a field is written, and what it is in JSON. Go writes fields that aren't set as empty ones, unless they are pointers:
/// empty is nothing but for those.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    /// A pointer to a number: zero is a number.
    MaybeNumber,
    /// A pointer in all messages here.
    Bool,
    /// Seconds.
    Time,
    /// With microseconds.
    MicroTime,
    /// Texts by text.
    Map,
    Message(Table),
}

/// A field: its number, its name in JSON, and whether there may be many.
struct Field {
    number: u64,
    name: &'static str,
    kind: Kind,
    many: bool,
}

type Table = &'static [Field];

/// An object of a built-in kind, with what it says of its type. Nothing for kinds that have no table.
pub(super) fn object(form: Form, body: &[u8]) -> Option<Result<Value, String>> {
    let table = match form {
        Form::Namespace => tables::NAMESPACE,
        Form::Lease => tables::LEASE,
        Form::CoreEvent => tables::CORE_EVENT,
        Form::NewEvent => tables::NEW_EVENT,
        Form::Node | Form::Ours(_) => return None,
    };
    Some(unpack(body, table))
}

/// `DeleteOptions`.
pub(super) fn delete_options(body: &[u8]) -> Result<Value, String> {
    unpack(body, tables::DELETE_OPTIONS)
}

/// Takes the envelope off.
fn unpack(body: &[u8], table: Table) -> Result<Value, String> {
    let text = body.strip_prefix(MAGIC).ok_or("it does not begin as Kubernetes' protobuf does")?;
    let (mut about, mut raw) = (Map::new(), &[][..]);
    let mut wire = Wire(text);
    while let Some((number, piece)) = wire.next()? {
        match (number, piece) {
            (1, Piece::Bytes(bytes)) => about = message(tables::TYPE, bytes)?,
            (2, Piece::Bytes(bytes)) => raw = bytes,
            (3, Piece::Bytes(encoding)) if !encoding.is_empty() => {
                return Err("it is encoded once more".to_owned());
            }
            _ => {}
        }
    }
    about.extend(message(table, raw)?);
    Ok(Value::Object(about))
}

fn message(table: Table, bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let mut found = Map::new();
    let mut wire = Wire(bytes);
    while let Some((number, piece)) = wire.next()? {
        let Some(field) = table.iter().find(|field| field.number == number) else { continue };
        let name = field.name;
        let wrong = |why: &str| format!("{name}: {why}");
        if let (Kind::Map, Piece::Bytes(bytes)) = (field.kind, &piece) {
            let entry = message(tables::ENTRY, bytes)?;
            let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let map = found.entry(name).or_insert_with(|| Value::Object(Map::new()));
            map[text("key")] = text("value").into();
            continue;
        }
        let value = value(field.kind, &piece).map_err(|why| wrong(&why))?;
        if field.many {
            let list = found.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            // An empty item is one all the same.
            list.as_array_mut().into_iter().for_each(|list| list.push(value.clone().unwrap_or("".into())));
        } else if let Some(value) = value {
            found.insert(name.to_owned(), value);
        }
    }
    Ok(found)
}

/// A field's value; nothing where it isn't set.
fn value(kind: Kind, piece: &Piece<'_>) -> Result<Option<Value>, String> {
    Ok(match (kind, piece) {
        (Kind::Text, Piece::Bytes(bytes)) => {
            let text = std::str::from_utf8(bytes).map_err(|_| "it is not valid UTF-8".to_owned())?;
            (!text.is_empty()).then(|| text.into())
        }
        // Negative numbers are written as what they are in 64 bits.
        (Kind::Number, Piece::Number(0)) => None,
        (Kind::Number | Kind::MaybeNumber, Piece::Number(number)) => Some(number.cast_signed().into()),
        (Kind::Bool, Piece::Number(number)) => Some((*number != 0).into()),
        (Kind::Time | Kind::MicroTime, Piece::Bytes([])) => None,
        (Kind::Time | Kind::MicroTime, Piece::Bytes(bytes)) => {
            let parts = message(tables::TIME, bytes)?;
            let part = |name: &str| parts.get(name).and_then(Value::as_i64).unwrap_or_default();
            let nanos = i32::try_from(part("nanos")).map_err(|_| "it is no time".to_owned())?;
            let time = Timestamp::new(part("seconds"), nanos).map_err(|_| "it is no time".to_owned())?;
            let format =
                if matches!(kind, Kind::Time) { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S.%6fZ" };
            Some(time.strftime(format).to_string().into())
        }
        (Kind::Message(table), Piece::Bytes(bytes)) => Some(Value::Object(message(table, bytes)?)),
        _ => return Err("it is written in another form than such a field has".to_owned()),
    })
}

/// What a field was written as.
enum Piece<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// In four or eight bytes: no field here is.
    Fixed,
}

/// What is still to be read.
struct Wire<'a>(&'a [u8]);

impl<'a> Wire<'a> {
    /// The next field, until there is none.
    fn next(&mut self) -> Result<Option<(u64, Piece<'a>)>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let piece = match tag & 7 {
            0 => Piece::Number(self.varint()?),
            1 => self.take(8).map(|_| Piece::Fixed)?,
            2 => {
                let length = self.varint()?;
                Piece::Bytes(self.take(usize::try_from(length).unwrap_or(usize::MAX))?)
            }
            5 => self.take(4).map(|_| Piece::Fixed)?,
            _ => return Err("it has a field of a form that isn't known".to_owned()),
        };
        Ok(Some((tag >> 3, piece)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or("it is cut off")?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("it has a number that is too long".to_owned())
    }
}
