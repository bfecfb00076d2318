//! What the kernel says beyond the model, kept so that it can be given back.

use serde::{Deserialize, Serialize};

/// Attributes of a link or a port that the model has no word for, each by its whole type, as they came. Unlike [`Raw`] they
/// count when two are compared: nothing but a revert sets them, and it has to see whether it did.
pub type Attributes = Vec<(u16, Vec<u8>)>;

/// Attributes of an address or a route that the model has no word for (a label, a flag, a metric), by number, as they
/// came. They are carried along when the object is put back, and are never a reason to change it: whatever they hold,
/// two objects don't differ by them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Raw(pub Vec<(u16, Vec<u8>)>);

impl Raw {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl PartialEq for Raw {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Raw {}

impl PartialOrd for Raw {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Raw {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}
