//! Names at the border: interface names and MAC addresses. Text becomes one of these once, then no strings.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The kernel's `IFNAMSIZ` is 16 with the terminating zero.
const IF_NAME_MAX: usize = 15;
/// `ALTIFNAMSIZ` is 128 with the terminating zero.
const ALT_NAME_MAX: usize = 127;

/// The name of a link, as the kernel would accept it. A reference in a document may also be an alternative
/// name, which is longer; the plan resolves those.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IfName(String);

/// Why a text is not a name or a MAC address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("an interface name is 1 to {max} bytes long, {name:?} has {len}")]
    Length { name: String, len: usize, max: usize },
    #[error("an interface name can't be {name:?}")]
    Reserved { name: String },
    #[error("an interface name can't contain {found:?} (in {name:?})")]
    Character { name: String, found: char },
    #[error("expected a MAC address like 02:00:5E:10:00:01, found {text:?}")]
    Mac { text: String },
}

impl IfName {
    pub fn new(name: &str) -> Result<Self, NameError> {
        Self::checked(name, IF_NAME_MAX)
    }

    /// A name or an alternative name.
    pub fn reference(name: &str) -> Result<Self, NameError> {
        Self::checked(name, ALT_NAME_MAX)
    }

    /// Short enough to be a link's own name.
    pub fn is_kernel_name(&self) -> bool {
        self.0.len() <= IF_NAME_MAX
    }

    fn checked(name: &str, max: usize) -> Result<Self, NameError> {
        if name.is_empty() || name.len() > max {
            return Err(NameError::Length { name: name.into(), len: name.len(), max });
        }
        if name == "." || name == ".." {
            return Err(NameError::Reserved { name: name.into() });
        }
        // The kernel's dev_valid_name: no slash, no colon, no white space. And no percent sign: `br%d` would become
        // the first of br0, br1… that is free.
        let wrong = |c: &char| matches!(c, '/' | ':' | '%') || c.is_whitespace() || c.is_control();
        if let Some(found) = name.chars().find(wrong) {
            return Err(NameError::Character { name: name.into(), found });
        }
        Ok(Self(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for IfName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IfName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for IfName {
    type Error = NameError;
    fn try_from(name: String) -> Result<Self, NameError> {
        Self::reference(&name)
    }
}

impl From<IfName> for String {
    fn from(name: IfName) -> Self {
        name.0
    }
}

/// A MAC address; prints in upper case, as nmstate does, and compares by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mac(pub [u8; 6]);

impl FromStr for Mac {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let wrong = || NameError::Mac { text: text.into() };
        let mut bytes = [0; 6];
        let mut parts = text.split([':', '-']);
        for byte in &mut bytes {
            let part = parts.next().ok_or_else(wrong)?;
            if part.len() != 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(wrong());
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
        }
        if parts.next().is_some() { Err(wrong()) } else { Ok(Self(bytes)) }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02X}:{b:02X}:{c:02X}:{d:02X}:{e:02X}:{g:02X}")
    }
}

impl TryFrom<String> for Mac {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<Mac> for String {
    fn from(mac: Mac) -> Self {
        mac.to_string()
    }
}
