//! What a pool gave: the value of an `ippool.<name>.allocate` capture.
//!
//! Made by whoever holds a grant (the agent from its enactment, the command line from a pool file).

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Map, Value, json};

/// Grants by the name of the capture that asked.
pub type Grants = BTreeMap<String, Granted>;

/// One claim's addresses: one, or for a dual-stack range one of each family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    pub address: GrantedAddress,
    /// The other family's, for a dual-stack range.
    pub second: Option<GrantedAddress>,
    /// The name of the range it came from.
    pub range: String,
    /// The range's free strings.
    pub attributes: BTreeMap<String, String>,
}

/// An address with the prefix length of its range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedAddress {
    /// The address itself (host bits and all) and the range's prefix length.
    pub address: IpNet,
    pub gateway: Option<IpAddr>,
}

impl GrantedAddress {
    /// `cidr` is the range's network, as in a pool's spec; the address with its prefix is `{{ …ip }}/{{ …prefix-length }}`.
    fn fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("ip".into(), json!(self.address.addr().to_string()));
        fields.insert("prefix-length".into(), json!(self.address.prefix_len()));
        fields.insert("cidr".into(), json!(self.address.trunc().to_string()));
        if let Some(gateway) = self.gateway {
            fields.insert("gateway".into(), json!(gateway.to_string()));
        }
        fields
    }
}

impl Granted {
    /// A grant of one address from an unnamed range.
    pub fn single(address: IpNet) -> Self {
        Self {
            address: GrantedAddress { address, gateway: None },
            second: None,
            range: String::new(),
            attributes: BTreeMap::new(),
        }
    }

    /// What the capture yields (R19): `ip` and `prefix-length`, `cidr`, `gateway` if there is one, `range`,
    /// `attributes`; for dual stack the same of each family under `ipv4` and `ipv6`.
    pub fn to_value(&self) -> Value {
        let mut fields = self.address.fields();
        fields.insert("range".into(), json!(self.range));
        fields.insert("attributes".into(), json!(self.attributes));
        if let Some(second) = &self.second {
            let mut both = [&self.address, second];
            both.sort_by_key(|one| one.address.addr().is_ipv6());
            for one in both {
                let family = if one.address.addr().is_ipv4() { "ipv4" } else { "ipv6" };
                fields.insert(family.into(), Value::Object(one.fields()));
            }
        }
        Value::Object(fields)
    }
}
