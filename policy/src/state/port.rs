//! What a link is as a port of a controller: its options there, and its VLANs on a bridge.

use super::error::Reason;
use super::path::Path;
use super::scalar::Reader;
use super::{Attributes, Options};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;

/// The largest VLAN id; 4095 is reserved.
pub(crate) const VLAN_MAX: u16 = 4094;

/// A port's side of being one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    pub options: Options,
    pub vlan: PortVlan,
    /// What the model has no word for: isolation, flooding, guards.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub attributes: Attributes,
}

/// First and last id, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VlanRange {
    pub min: u16,
    pub max: u16,
}

impl fmt::Display for VlanRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max { write!(f, "{}", self.min) } else { write!(f, "{}-{}", self.min, self.max) }
    }
}

/// VLANs of a bridge or its port as the kernel has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlanEntry {
    #[serde(flatten)]
    pub range: VlanRange,
    /// Untagged frames that come in belong to it.
    pub pvid: bool,
    /// Frames of it go out without a tag.
    pub untagged: bool,
}

/// The VLANs of a bridge port.
///
/// `native: None` means the bridge's default VLAN, which the kernel gives every port and nmstate never shows;
/// so the default value is a port that nothing was asked of (`vlan: {}`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortVlan {
    /// Untagged frames belong to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<u16>,
    /// Carried with a tag; sorted, merged, without overlap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tagged: Vec<VlanRange>,
}

impl PortVlan {
    /// Sorts and merges the ranges; the native one is not tagged as well.
    pub fn new(native: Option<u16>, mut ranges: Vec<VlanRange>) -> Self {
        ranges.sort_unstable();
        let mut tagged: Vec<VlanRange> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match tagged.last_mut() {
                Some(last) if range.min <= last.max.saturating_add(1) => last.max = last.max.max(range.max),
                _ => tagged.push(range),
            }
        }
        Self { native, tagged }
    }

    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut map = Map::new();
        match (self.native, self.tagged.is_empty()) {
            (None, true) => {}
            (Some(tag), true) => {
                map.insert("mode".into(), json!("access"));
                map.insert("tag".into(), json!(tag));
            }
            (native, false) => {
                map.insert("mode".into(), json!("trunk"));
                if let Some(tag) = native {
                    map.insert("enable-native".into(), json!(true));
                    map.insert("tag".into(), json!(tag));
                }
                let tags = self.tagged.iter().map(|r| match r.min == r.max {
                    true => json!({"id": r.min}),
                    false => json!({"id-range": {"min": r.min, "max": r.max}}),
                });
                map.insert("trunk-tags".into(), tags.collect());
            }
        }
        Value::Object(map)
    }

    pub(crate) fn read(r: &mut Reader, path: &Path<'_>, value: &Value) -> Self {
        let (mut trunk, mut tag, mut native, mut ranges) = (None, None, None, Vec::new());
        for (key, value) in r.fields(path, value) {
            let at = path.key(key);
            match key {
                "mode" => trunk = r.word(&at, value, &[("trunk", true), ("access", false)]),
                "tag" => tag = r.u16(&at, value, 0, VLAN_MAX),
                "enable-native" => native = r.boolean(&at, value),
                "trunk-tags" => {
                    for (i, item) in r.list(&at, value).iter().enumerate() {
                        ranges.extend(read_tag(r, &at.index(i), item));
                    }
                }
                _ => r.unread(&at, false, value),
            }
        }
        // As nmstate: a tag of 0 is no tag.
        let tag = tag.filter(|t| *t != 0);
        match trunk {
            Some(true) => {
                if tag.is_some() && native != Some(true) {
                    r.find(&path.key("tag"), Reason::Needs { other: "enable-native: true on a trunk port" });
                }
                if tag.is_none() && native == Some(true) {
                    r.find(&path.key("enable-native"), Reason::Needs { other: "tag" });
                }
                Self::new(tag, ranges)
            }
            _ => {
                if !ranges.is_empty() {
                    r.find(&path.key("trunk-tags"), Reason::Needs { other: "mode: trunk" });
                }
                if native == Some(true) {
                    r.find(&path.key("enable-native"), Reason::Needs { other: "mode: trunk" });
                }
                Self::new(tag, Vec::new())
            }
        }
    }
}

fn read_tag(r: &mut Reader, path: &Path<'_>, value: &Value) -> Option<VlanRange> {
    let (mut min, mut max) = (None, None);
    for (key, value) in r.fields(path, value) {
        let at = path.key(key);
        match key {
            "id" => {
                min = r.u16(&at, value, 1, VLAN_MAX);
                max = min;
            }
            "id-range" => {
                for (key, value) in r.fields(&at, value) {
                    let at = at.key(key);
                    match key {
                        "min" => min = r.u16(&at, value, 1, VLAN_MAX),
                        "max" => max = r.u16(&at, value, 1, VLAN_MAX),
                        _ => r.unread(&at, false, value),
                    }
                }
            }
            _ => r.unread(&at, false, value),
        }
    }
    match (min, max) {
        (Some(min), Some(max)) if min <= max => Some(VlanRange { min, max }),
        (Some(_), Some(_)) => {
            r.find(
                path,
                Reason::Expected { wanted: "min not above max", found: super::scalar::shown(value) },
            );
            None
        }
        _ => None,
    }
}

impl fmt::Display for PortVlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tags: Vec<_> = self.tagged.iter().map(ToString::to_string).collect();
        match (self.native, tags.is_empty()) {
            (None, true) => f.write_str("default"),
            (Some(tag), true) => write!(f, "access {tag}"),
            (None, false) => write!(f, "trunk {}", tags.join(",")),
            (Some(tag), false) => write!(f, "trunk {} native {tag}", tags.join(",")),
        }
    }
}
