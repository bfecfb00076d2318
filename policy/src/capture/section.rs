//! The lists that `==`, `!=` and `:=` work on, one variant each.

use serde_json::{Map, Value};

use super::path::{Located, Path};
use super::problem::{Found, Problem};

/// A list of the network state whose items can be selected and changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Interfaces,
    RunningRoutes,
    ConfigRoutes,
    RouteRules,
}

impl Section {
    /// The section that a path starts with, and the property that follows.
    pub(crate) fn split(path: &Path) -> Result<(Self, Path), Located> {
        let section = match (path.word(0), path.word(1)) {
            (Some("interfaces"), _) => Self::Interfaces,
            (Some("routes"), Some("running")) => Self::RunningRoutes,
            (Some("routes"), Some("config")) => Self::ConfigRoutes,
            (Some("route-rules"), Some("config")) => Self::RouteRules,
            (Some(root @ ("routes" | "route-rules")), Some(other)) => {
                return Err((path.at(), Problem::UnsupportedKeyword { keyword: format!("{root}.{other}") }));
            }
            (root, _) => {
                let keyword = root.unwrap_or_default().to_owned();
                return Err((path.at(), Problem::UnsupportedKeyword { keyword }));
            }
        };
        let property = path.skip(section.keys().len());
        match property.len() {
            0 => Err((path.at(), Problem::NoProperty { section: section.name() })),
            1 => Ok((section, property)),
            _ if section == Self::Interfaces => Ok((section, property)),
            _ => {
                let problem = Problem::OneProperty { section: section.name(), property: property.dotted() };
                Err((property.at(), problem))
            }
        }
    }

    /// What one item is called in messages.
    pub(crate) fn item(self) -> &'static str {
        match self {
            Self::Interfaces => "interface",
            Self::RunningRoutes => "running route",
            Self::ConfigRoutes => "config route",
            Self::RouteRules => "route rule",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Interfaces => "interfaces",
            Self::RunningRoutes => "routes.running",
            Self::ConfigRoutes => "routes.config",
            Self::RouteRules => "route-rules.config",
        }
    }

    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Interfaces => &["interfaces"],
            Self::RunningRoutes => &["routes", "running"],
            Self::ConfigRoutes => &["routes", "config"],
            Self::RouteRules => &["route-rules", "config"],
        }
    }

    /// The items in a state; a state without this section has none.
    pub(crate) fn items(self, state: &Value) -> Result<&[Value], Problem> {
        let found = self.keys().iter().try_fold(state, |here, key| here.get(key));
        match found {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(other) => Err(Problem::NotList { section: self.name(), found: Found::of(other) }),
        }
    }

    /// A state that holds only these items.
    pub(crate) fn state_of(self, items: Vec<Value>) -> Value {
        let wrap = |value, key: &&str| Value::Object(Map::from_iter([((*key).to_owned(), value)]));
        self.keys().iter().rev().fold(Value::Array(items), wrap)
    }
}
