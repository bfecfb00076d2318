//! Reading scalars out of a document, with what is wrong collected and not thrown.
//!
//! Numbers and booleans may be quoted. `null` means "not mentioned" and is skipped by [`Reader::fields`].

use super::error::{Reason, Refusal};
use super::path::Path;
use super::{IfName, Mac};
use serde_json::{Map, Value};
use std::net::IpAddr;

/// Collects findings while a document is read.
pub(crate) struct Reader {
    pub(crate) findings: Vec<Refusal>,
    /// An observed state may hold what the model doesn't know; a desired one may not.
    pub(crate) lenient: bool,
    /// Lenient: what nobody read, nested as it was found; whoever reads an item takes it.
    pub(crate) extra: Map<String, Value>,
}

impl Reader {
    pub(crate) fn strict() -> Self {
        Self { findings: Vec::new(), lenient: false, extra: Map::new() }
    }

    pub(crate) fn lenient() -> Self {
        Self { findings: Vec::new(), lenient: true, extra: Map::new() }
    }

    pub(crate) fn find(&mut self, path: &Path<'_>, reason: Reason) {
        self.findings.push(Refusal { path: path.to_string(), reason });
    }

    /// A field that nobody here reads: refused in a desired document, set aside in an observed one.
    pub(crate) fn unread(&mut self, path: &Path<'_>, known: bool, value: &Value) {
        if !self.lenient {
            self.find(path, if known { Reason::NotSupported } else { Reason::UnknownField });
            return;
        }
        let mut keys = Vec::new();
        path.keys_of_item(&mut keys);
        let Some((last, parents)) = keys.split_last() else {
            return;
        };
        let mut into = &mut self.extra;
        for key in parents {
            let next = into.entry(*key).or_insert_with(|| Value::Object(Map::new()));
            match next {
                Value::Object(map) => into = map,
                _ => return,
            }
        }
        into.insert((*last).to_owned(), value.clone());
    }

    fn expected<T>(&mut self, path: &Path<'_>, wanted: &'static str, value: &Value) -> Option<T> {
        self.find(path, Reason::Expected { wanted, found: shown(value) });
        None
    }

    pub(crate) fn map<'v>(&mut self, path: &Path<'_>, value: &'v Value) -> Option<&'v Map<String, Value>> {
        match value {
            Value::Object(map) => Some(map),
            other => self.expected(path, "a mapping", other),
        }
    }

    /// The mentioned fields of a mapping: those that are not null.
    pub(crate) fn fields<'v>(
        &mut self,
        path: &Path<'_>,
        value: &'v Value,
    ) -> impl Iterator<Item = (&'v str, &'v Value)> + use<'v> {
        let map = if value.is_null() { None } else { self.map(path, value) };
        map.into_iter().flatten().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.as_str(), v))
    }

    pub(crate) fn list<'v>(&mut self, path: &Path<'_>, value: &'v Value) -> &'v [Value] {
        match value {
            Value::Array(list) => list,
            Value::Null => &[],
            other => {
                self.expected::<()>(path, "a list", other);
                &[]
            }
        }
    }

    pub(crate) fn text<'v>(&mut self, path: &Path<'_>, value: &'v Value) -> Option<&'v str> {
        match value {
            Value::String(text) => Some(text),
            other => self.expected(path, "a text", other),
        }
    }

    pub(crate) fn boolean(&mut self, path: &Path<'_>, value: &Value) -> Option<bool> {
        match value {
            Value::Bool(b) => Some(*b),
            Value::String(text) => boolean(text).or_else(|| self.expected(path, "true or false", value)),
            Value::Number(n) if n.as_u64() == Some(1) => Some(true),
            Value::Number(n) if n.as_u64() == Some(0) => Some(false),
            other => self.expected(path, "true or false", other),
        }
    }

    /// A whole number between `min` and `max`, quoted or not; a quoted one may be hexadecimal.
    pub(crate) fn int(&mut self, path: &Path<'_>, value: &Value, min: u64, max: u64) -> Option<u64> {
        let number = match value {
            Value::Number(n) if n.is_i64() || n.is_u64() => {
                n.as_i64().map(i128::from).or(n.as_u64().map(i128::from))
            }
            Value::String(s) => match s.trim().strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok().map(i128::from),
                None => s.trim().parse().ok(),
            },
            _ => None,
        };
        let Some(number) = number else {
            return self.expected(path, "a number", value);
        };
        match u64::try_from(number) {
            Ok(n) if (min..=max).contains(&n) => Some(n),
            _ => {
                self.find(path, Reason::OutOfRange { min, max, found: shown(value) });
                None
            }
        }
    }

    pub(crate) fn u32(&mut self, path: &Path<'_>, value: &Value) -> Option<u32> {
        self.int(path, value, 0, u32::MAX.into()).and_then(|n| u32::try_from(n).ok())
    }

    pub(crate) fn u16(&mut self, path: &Path<'_>, value: &Value, min: u16, max: u16) -> Option<u16> {
        self.int(path, value, min.into(), max.into()).and_then(|n| u16::try_from(n).ok())
    }

    pub(crate) fn u8(&mut self, path: &Path<'_>, value: &Value, max: u8) -> Option<u8> {
        self.int(path, value, 0, max.into()).and_then(|n| u8::try_from(n).ok())
    }

    pub(crate) fn if_name(&mut self, path: &Path<'_>, value: &Value) -> Option<IfName> {
        self.name(path, value, IfName::new)
    }

    /// A name that may be an alternative one, which may be longer.
    pub(crate) fn reference(&mut self, path: &Path<'_>, value: &Value) -> Option<IfName> {
        self.name(path, value, IfName::reference)
    }

    fn name(
        &mut self,
        path: &Path<'_>,
        value: &Value,
        make: fn(&str) -> Result<IfName, super::NameError>,
    ) -> Option<IfName> {
        let number;
        let text = match value {
            // `name: 1234` is a number to YAML and a name to whoever wrote it.
            Value::Number(n) => {
                number = n.to_string();
                &number
            }
            other => self.text(path, other)?,
        };
        make(text).map_err(|e| self.find(path, e.into())).ok()
    }

    pub(crate) fn mac(&mut self, path: &Path<'_>, value: &Value) -> Option<Mac> {
        self.text(path, value)?.parse().map_err(|e: super::NameError| self.find(path, e.into())).ok()
    }

    pub(crate) fn ip(&mut self, path: &Path<'_>, value: &Value) -> Option<IpAddr> {
        match self.text(path, value)?.trim().parse() {
            Ok(ip) => Some(ip),
            Err(_) => self.expected(path, "an IP address", value),
        }
    }

    /// One of a fixed set of words; each may have several spellings, the first is the canonical one.
    pub(crate) fn word<T: Copy>(
        &mut self,
        path: &Path<'_>,
        value: &Value,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let found = match value {
            Value::String(s) => s.trim().to_owned(),
            Value::Number(n) => n.to_string(),
            other => return self.expected(path, "a word", other),
        };
        let hit = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(&found));
        if hit.is_none() {
            let allowed = words.iter().map(|(word, _)| *word).collect();
            self.find(path, Reason::NotOneOf { allowed, found: shown(value) });
        }
        hit.map(|(_, t)| *t)
    }
}

/// A quoted boolean: the words that nmstate takes for one.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "1" => Some(true),
        "false" | "no" | "off" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// A value as a person would recognise it in a message: short, on one line.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "a mapping".into(),
        Value::Array(_) => "a list".into(),
        Value::Null => "nothing".into(),
        Value::String(s) if s.chars().count() > 60 => {
            format!("{:?}…", s.chars().take(60).collect::<String>())
        }
        other => other.to_string(),
    }
}
