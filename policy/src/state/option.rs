//! Options of links and ports, driven by tables: each kind says once what an option is called, what it may be
//! and when the kernel takes it. Reading, printing, comparing and planning all follow from the table.

use super::kind;
use super::path::Path;
use super::scalar::Reader;
use super::{IfName, Mac};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// Options that were observed or are wanted, by name.
pub type Options = BTreeMap<OptName, OptValue>;

/// The name of an option: its path inside the kind's section (`options.stp.priority`). Only names that stand
/// in a kind's table exist, so matching on the text is matching on a closed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OptName(&'static str);

impl OptName {
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl Serialize for OptName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for OptName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let spec = kind::all_options().find(|spec| spec.path == name);
        spec.map(OptSpec::name).ok_or_else(|| D::Error::custom(format_args!("no option is called {name:?}")))
    }
}

impl fmt::Display for OptName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.strip_prefix("options.").unwrap_or(self.0))
    }
}

/// What an option is set to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OptValue {
    Bool(bool),
    Int(u64),
    /// From/to pairs, e.g. priority maps.
    Pairs(Vec<(u32, u32)>),
    /// A word of a fixed set in its canonical spelling, a MAC, an IP, a list of IPs, or a link's name.
    Text(String),
}

impl fmt::Display for OptValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptValue::Bool(b) => write!(f, "{b}"),
            OptValue::Int(n) => write!(f, "{n}"),
            OptValue::Text(s) if s.is_empty() => f.write_str("none"),
            OptValue::Text(s) => f.write_str(s),
            OptValue::Pairs(pairs) => {
                let list: Vec<_> = pairs.iter().map(|(from, to)| format!("{from}:{to}")).collect();
                f.write_str(&list.join(","))
            }
        }
    }
}

/// What an option may be.
#[derive(Clone, Copy, Debug)]
pub enum OptType {
    Bool,
    Int {
        min: u64,
        max: u64,
    },
    /// Words with the number the kernel knows them by; either is accepted.
    Word(&'static [(&'static str, u64)]),
    Mac,
    Ip,
    /// Addresses with commas between them; empty for none.
    Ips,
    /// The name of a link, empty for none.
    Link,
    Pairs {
        max_from: u32,
        max_to: u32,
    },
}

/// When the kernel takes an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Any,
    /// Only while the link is down.
    Down,
    /// Only when the link is made: another value means another link.
    Creation,
    /// Only once the ports are there (it names one of them).
    AfterPorts,
}

/// Why an option has no meaning where it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Pointless {
    #[error("it has no meaning in mode {mode}, only in {}", .modes.join(", "))]
    Mode { mode: String, modes: &'static [&'static str] },
    #[error("it has no meaning without {}", .other.strip_prefix("options.").unwrap_or(.other))]
    Without { other: &'static str },
}

/// A row of a kind's table.
#[derive(Clone, Copy, Debug)]
pub struct OptSpec {
    pub path: &'static str,
    pub alias: Option<&'static str>,
    pub ty: OptType,
    pub when: When,
    /// Values this far apart count as equal: the kernel keeps some times in ticks and rounds.
    pub slack: u64,
    /// Part of the kernel's state but not of the YAML.
    pub hidden: bool,
    /// The link's modes in which it has a meaning; elsewhere the kernel shows it but won't have it set. Empty: all.
    pub modes: &'static [&'static str],
    /// The option without which (at 0) it has none.
    pub with: Option<&'static str>,
    /// The kernel doesn't always say what it is set to. Where it doesn't, it is as it was.
    pub wavers: bool,
}

impl OptSpec {
    pub(crate) const fn new(path: &'static str, ty: OptType) -> Self {
        Self {
            path,
            alias: None,
            ty,
            when: When::Any,
            slack: 0,
            hidden: false,
            modes: &[],
            with: None,
            wavers: false,
        }
    }

    pub(crate) const fn int(path: &'static str, min: u64, max: u64) -> Self {
        Self::new(path, OptType::Int { min, max })
    }

    pub(crate) const fn alias(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }

    pub(crate) const fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    pub(crate) const fn ticks(self) -> Self {
        Self { slack: 1, ..self }
    }

    pub(crate) const fn hidden(self) -> Self {
        Self { hidden: true, ..self }
    }

    pub(crate) const fn modes(self, modes: &'static [&'static str]) -> Self {
        Self { modes, ..self }
    }

    pub(crate) const fn with(self, other: &'static str) -> Self {
        Self { with: Some(other), ..self }
    }

    pub(crate) const fn wavers(self) -> Self {
        Self { wavers: true, ..self }
    }

    pub fn name(&self) -> OptName {
        OptName(self.path)
    }

    /// What else it is called, if anything: the last word of that path.
    pub(crate) fn other_name(&self, name: &str) -> Option<&'static str> {
        let other = if name == self.path { self.alias? } else { self.path };
        other.rsplit('.').next()
    }

    /// Why it has no meaning on a link (for a port: under a controller) with these options; `None` if it has.
    pub fn pointless(&self, link: &Options) -> Option<Pointless> {
        let get = |path: &str| link.iter().find(|(name, _)| name.as_str() == path).map(|(_, value)| value);
        match get("mode") {
            Some(OptValue::Text(mode)) if !self.modes.is_empty() && !self.modes.contains(&mode.as_str()) => {
                return Some(Pointless::Mode { mode: mode.clone(), modes: self.modes });
            }
            _ => {}
        }
        let other = self.with?;
        (get(other) == Some(&OptValue::Int(0))).then_some(Pointless::Without { other })
    }

    /// Whether `found` is as good as `wanted`.
    pub fn same(&self, wanted: &OptValue, found: &OptValue) -> bool {
        match (wanted, found) {
            (OptValue::Int(a), OptValue::Int(b)) => a.abs_diff(*b) <= self.slack,
            (a, b) => a == b,
        }
    }

    /// The same where the kernel may not say: then nobody can tell that it isn't.
    pub fn holds(&self, wanted: &OptValue, found: Option<&OptValue>) -> bool {
        found.map_or(self.wavers, |found| self.same(wanted, found))
    }

    pub(crate) fn read(&self, r: &mut Reader, path: &Path<'_>, value: &Value) -> Option<OptValue> {
        match self.ty {
            OptType::Bool => r.boolean(path, value).map(OptValue::Bool),
            OptType::Int { min, max } => r.int(path, value, min, max).map(OptValue::Int),
            OptType::Word(words) => read_word(r, path, value, words),
            OptType::Mac => r.mac(path, value).map(|m: Mac| OptValue::Text(m.to_string())),
            OptType::Ip => match value {
                Value::String(s) if s.is_empty() => Some(OptValue::Text(String::new())),
                other => r.ip(path, other).map(|ip| OptValue::Text(ip.to_string())),
            },
            OptType::Ips => read_ips(r, path, value),
            OptType::Link => match value {
                Value::String(s) if s.is_empty() => Some(OptValue::Text(String::new())),
                other => r.if_name(path, other).map(|n: IfName| OptValue::Text(n.into())),
            },
            OptType::Pairs { max_from, max_to } => Some(read_pairs(r, path, value, max_from, max_to)),
        }
    }
}

fn read_word(
    r: &mut Reader,
    path: &Path<'_>,
    value: &Value,
    words: &'static [(&'static str, u64)],
) -> Option<OptValue> {
    // `multicast-router: 1` and `multicast-router: auto` are the same; so is a quoted true for an on/off word.
    let number = match value {
        Value::Number(n) => n.as_u64(),
        Value::Bool(b) => Some(u64::from(*b)),
        Value::String(s) => s.trim().parse().ok(),
        _ => None,
    };
    if let Some((word, _)) = words.iter().find(|(_, n)| Some(*n) == number) {
        return Some(OptValue::Text((*word).into()));
    }
    let choices: Vec<_> = words.iter().map(|(word, _)| (*word, *word)).collect();
    r.word(path, value, &choices).map(|word| OptValue::Text(word.into()))
}

fn read_ips(r: &mut Reader, path: &Path<'_>, value: &Value) -> Option<OptValue> {
    let text = match value {
        Value::Array(list) => {
            let items: Vec<_> = list
                .iter()
                .enumerate()
                .filter_map(|(i, v)| r.ip(&path.index(i), v))
                .map(|ip| ip.to_string())
                .collect();
            return Some(OptValue::Text(items.join(",")));
        }
        other => r.text(path, other)?,
    };
    let mut ips = Vec::new();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        ips.push(r.ip(path, &Value::String(part.into()))?.to_string());
    }
    Some(OptValue::Text(ips.join(",")))
}

fn read_pairs(r: &mut Reader, path: &Path<'_>, value: &Value, max_from: u32, max_to: u32) -> OptValue {
    let mut pairs = Vec::new();
    for (i, item) in r.list(path, value).iter().enumerate() {
        let at = path.index(i);
        let (mut from, mut to) = (None, None);
        for (key, value) in r.fields(&at, item) {
            let here = at.key(key);
            match key {
                "from" => from = r.int(&here, value, 0, max_from.into()),
                "to" => to = r.int(&here, value, 0, max_to.into()),
                _ => r.unread(&here, false, value),
            }
        }
        if let (Some(from), Some(to)) = (from, to) {
            pairs.push((u32::try_from(from).unwrap_or(0), u32::try_from(to).unwrap_or(0)));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    OptValue::Pairs(pairs)
}

/// Puts the options back into a kind's section, nested as their paths say.
pub(crate) fn write(options: &Options, table: &[OptSpec], section: &mut Map<String, Value>) {
    for spec in table.iter().filter(|s| !s.hidden) {
        let Some(value) = options.get(&spec.name()) else {
            continue;
        };
        let value = match value {
            OptValue::Bool(b) => json!(b),
            OptValue::Int(n) => json!(n),
            OptValue::Text(s) => json!(s),
            OptValue::Pairs(pairs) => {
                pairs.iter().map(|(from, to)| json!({"from": from, "to": to})).collect()
            }
        };
        let mut parts = spec.path.split('.').peekable();
        let mut into = &mut *section;
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                into.insert(part.to_owned(), value);
                break;
            }
            let next = into.entry(part).or_insert_with(|| Value::Object(Map::new()));
            match next {
                Value::Object(map) => into = map,
                _ => break,
            }
        }
    }
}
