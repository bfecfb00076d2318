//! From a JSON value to a `PoolSpec`, with a path for everything that is not as it should be.
//!
//! Serde's derive would stop at the first error and know no path; a person fixing a manifest wants all
//! of them. `null` counts as absent, as it does for the API server.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{BlockSpec, PoolSpec, RangeSpec, RangeState, Reservation};
use crate::pool::band::StaticBand;
use crate::pool::error::{Findings, PoolErrors, Problem};
use crate::pool::selector::{NodeSelector, Requirement, Term};

const SPEC: &[&str] = &["range", "ranges", "staticBand", "reservations", "quarantine"];
const BLOCK: &[&str] = &["cidr", "start", "end", "exclude", "gateway"];
const RANGE: &[&str] = &[
    "name",
    "cidr",
    "start",
    "end",
    "exclude",
    "gateway",
    "ipv4",
    "ipv6",
    "skipOctetEnds",
    "perNodeHostBits",
    "nodeSelector",
    "attributes",
    "state",
];

pub(super) fn manifest(manifest: &Value) -> Result<PoolSpec, PoolErrors> {
    let mut reader = Reader::default();
    if let Some(kind) = manifest.get("kind").and_then(Value::as_str)
        && kind != "NodeIPPool"
    {
        reader.0.error("kind", Problem::WrongKind { found: kind.to_owned() });
    }
    let name = manifest.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() {
        reader.0.error("metadata.name", Problem::Missing);
    }
    let spec = match manifest.get("spec") {
        Some(value) => reader.spec(name, value),
        None => {
            reader.0.error("spec", Problem::Missing);
            PoolSpec::default()
        }
    };
    reader.0.done(spec)
}

pub(super) fn spec(name: &str, spec: &Value) -> Result<PoolSpec, PoolErrors> {
    let mut reader = Reader::default();
    let spec = reader.spec(name, spec);
    reader.0.done(spec)
}

#[derive(Default)]
struct Reader(Findings);

impl Reader {
    fn spec(&mut self, name: &str, value: &Value) -> PoolSpec {
        let mut spec = PoolSpec { name: name.to_owned(), ..PoolSpec::default() };
        let Some(map) = self.object("spec", value, SPEC) else {
            return spec;
        };
        spec.range = get(map, "range").map(|v| self.range("spec.range", v));
        spec.ranges = self.list("spec", map, "ranges", Self::range);
        spec.reservations = self.list("spec", map, "reservations", Self::reservation).unwrap_or_default();
        spec.quarantine = self.string("spec", map, "quarantine");
        if let Some(band) = get(map, "staticBand") {
            spec.static_band = self.band(band);
        }
        spec
    }

    fn band(&mut self, value: &Value) -> StaticBand {
        let read = match value {
            Value::String(text) => StaticBand::parse(text),
            Value::Number(number) => number.as_u64().map(StaticBand::Count),
            _ => None,
        };
        read.unwrap_or_else(|| {
            self.0.error("spec.staticBand", Problem::NotABand { text: value.to_string() });
            StaticBand::Auto
        })
    }

    fn reservation(&mut self, path: &str, value: &Value) -> Reservation {
        let Some(map) = self.object(path, value, &["node", "ip"]) else {
            return Reservation::default();
        };
        Reservation { node: self.required(path, map, "node"), ip: self.required(path, map, "ip") }
    }

    fn range(&mut self, path: &str, value: &Value) -> RangeSpec {
        let Some(map) = self.object(path, value, RANGE) else {
            return RangeSpec::default();
        };
        let direct = BLOCK.iter().any(|key| get(map, key).is_some());
        let under = |key| (format!("{path}.{key}"), get(map, key));
        let (path4, ipv4) = under("ipv4");
        let (path6, ipv6) = under("ipv6");
        RangeSpec {
            name: self.string(path, map, "name").unwrap_or_default(),
            block: direct.then(|| self.block(path, map)),
            ipv4: ipv4.map(|v| self.family(&path4, v)),
            ipv6: ipv6.map(|v| self.family(&path6, v)),
            skip_octet_ends: self.boolean(path, map, "skipOctetEnds"),
            per_node_host_bits: self.small(path, map, "perNodeHostBits"),
            node_selector: get(map, "nodeSelector")
                .map(|v| self.selector(&format!("{path}.nodeSelector"), v)),
            attributes: self.attributes(path, map),
            state: self.state(path, map),
        }
    }

    fn family(&mut self, path: &str, value: &Value) -> BlockSpec {
        match self.object(path, value, BLOCK) {
            Some(map) => self.block(path, map),
            None => BlockSpec::default(),
        }
    }

    fn block(&mut self, path: &str, map: &Map<String, Value>) -> BlockSpec {
        BlockSpec {
            cidr: self.required(path, map, "cidr"),
            start: self.string(path, map, "start"),
            end: self.string(path, map, "end"),
            exclude: self.list(path, map, "exclude", Self::text).unwrap_or_default(),
            gateway: self.string(path, map, "gateway"),
        }
    }

    fn state(&mut self, path: &str, map: &Map<String, Value>) -> RangeState {
        let Some(text) = self.string(path, map, "state") else {
            return RangeState::Active;
        };
        RangeState::parse(&text).unwrap_or_else(|| {
            self.0.error(format!("{path}.state"), Problem::NotAState { text });
            RangeState::Active
        })
    }

    fn attributes(&mut self, path: &str, map: &Map<String, Value>) -> BTreeMap<String, String> {
        let path = format!("{path}.attributes");
        match get(map, "attributes") {
            None => BTreeMap::new(),
            Some(Value::Object(entries)) => {
                entries.iter().map(|(key, v)| (key.clone(), self.text(&format!("{path}.{key}"), v))).collect()
            }
            Some(other) => {
                self.wrong(&path, "an object", other);
                BTreeMap::new()
            }
        }
    }

    fn selector(&mut self, path: &str, value: &Value) -> NodeSelector {
        let Some(map) = self.object(path, value, &["nodeSelectorTerms"]) else {
            return NodeSelector::default();
        };
        match self.list(path, map, "nodeSelectorTerms", Self::term) {
            Some(terms) => NodeSelector { terms },
            None => {
                self.0.error(format!("{path}.nodeSelectorTerms"), Problem::Missing);
                NodeSelector::default()
            }
        }
    }

    fn term(&mut self, path: &str, value: &Value) -> Term {
        let Some(map) = self.object(path, value, &["matchExpressions", "matchFields"]) else {
            return Term::default();
        };
        Term {
            expressions: self.list(path, map, "matchExpressions", Self::requirement).unwrap_or_default(),
            fields: self.list(path, map, "matchFields", Self::requirement).unwrap_or_default(),
        }
    }

    fn requirement(&mut self, path: &str, value: &Value) -> Requirement {
        let Some(map) = self.object(path, value, &["key", "operator", "values"]) else {
            return Requirement::default();
        };
        Requirement {
            key: self.required(path, map, "key"),
            operator: self.required(path, map, "operator"),
            values: self.list(path, map, "values", Self::text).unwrap_or_default(),
        }
    }

    fn object<'v>(&mut self, path: &str, value: &'v Value, known: &[&str]) -> Option<&'v Map<String, Value>> {
        let Value::Object(map) = value else {
            self.wrong(path, "an object", value);
            return None;
        };
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            self.0.error(format!("{path}.{key}"), Problem::UnknownField { known: known.join(", ") });
        }
        Some(map)
    }

    fn list<T>(
        &mut self,
        path: &str,
        map: &Map<String, Value>,
        key: &str,
        read: impl Fn(&mut Self, &str, &Value) -> T,
    ) -> Option<Vec<T>> {
        let path = format!("{path}.{key}");
        match get(map, key)? {
            Value::Array(items) => {
                Some(items.iter().enumerate().map(|(i, v)| read(self, &format!("{path}[{i}]"), v)).collect())
            }
            other => {
                self.wrong(&path, "a list", other);
                Some(Vec::new())
            }
        }
    }

    fn text(&mut self, path: &str, value: &Value) -> String {
        match value {
            Value::String(text) => text.clone(),
            other => {
                self.wrong(path, "a string", other);
                String::new()
            }
        }
    }

    fn string(&mut self, path: &str, map: &Map<String, Value>, key: &str) -> Option<String> {
        get(map, key).map(|v| self.text(&format!("{path}.{key}"), v))
    }

    fn required(&mut self, path: &str, map: &Map<String, Value>, key: &str) -> String {
        self.string(path, map, key).unwrap_or_else(|| {
            self.0.error(format!("{path}.{key}"), Problem::Missing);
            String::new()
        })
    }

    fn boolean(&mut self, path: &str, map: &Map<String, Value>, key: &str) -> bool {
        match get(map, key) {
            None => false,
            Some(Value::Bool(b)) => *b,
            Some(other) => {
                self.wrong(&format!("{path}.{key}"), "true or false", other);
                false
            }
        }
    }

    fn small(&mut self, path: &str, map: &Map<String, Value>, key: &str) -> Option<u32> {
        let value = get(map, key)?;
        let number = value.as_u64().and_then(|n| u32::try_from(n).ok());
        if number.is_none() {
            self.wrong(&format!("{path}.{key}"), "a whole number from 0", value);
        }
        number
    }

    fn wrong(&mut self, path: &str, wanted: &'static str, found: &Value) {
        let found = match found {
            Value::Object(_) => "an object".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::Null => "null".to_owned(),
            plain => plain.to_string(),
        };
        self.0.error(path, Problem::WrongType { wanted, found });
    }
}

fn get<'v>(map: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    map.get(key).filter(|value| !value.is_null())
}
