//! What a link is set to and nothing else hangs on. The kernel refuses none of it.

use super::MemoryError;
use crate::state::{AcceptRa, Attributes, Family, Link, Options, PortVlan, VlanEntry};

type Done = Result<(), MemoryError>;

/// Empty: none.
pub(super) fn alias(link: &mut Link, alias: &str) -> Done {
    link.alias = Some(alias.to_owned()).filter(|a| !a.is_empty());
    Ok(())
}

pub(super) fn promiscuous(link: &mut Link, on: bool) -> Done {
    link.promiscuous = on;
    Ok(())
}

pub(super) fn alt_name(link: &mut Link, name: &str, there: bool) -> Done {
    if there {
        link.alt_names.insert(name.to_owned());
    } else {
        link.alt_names.remove(name);
    }
    Ok(())
}

pub(super) fn port_options(link: &mut Link, options: &Options) -> Done {
    link.port.options.extend(options.iter().map(|(k, v)| (*k, v.clone())));
    Ok(())
}

pub(super) fn attributes(link: &mut Link, own: &Attributes, of_kind: &Attributes) -> Done {
    link.attributes.clone_from(own);
    link.kind_attributes.clone_from(of_kind);
    Ok(())
}

pub(super) fn port_attributes(link: &mut Link, attributes: &Attributes) -> Done {
    link.port.attributes.clone_from(attributes);
    Ok(())
}

pub(super) fn port_vlans(link: &mut Link, vlan: &PortVlan, all: Option<&Vec<VlanEntry>>) -> Done {
    link.port.vlan = vlan.clone();
    link.vlans = all.cloned();
    Ok(())
}

pub(super) fn accept_ra(link: &mut Link, accept: AcceptRa) -> Done {
    link.ipv6.accept_ra = Some(accept);
    link.ipv6.autoconf &= accept != AcceptRa::Off;
    Ok(())
}

pub(super) fn forwarding(link: &mut Link, family: Family, on: bool) -> Done {
    link.ip_mut(family).forwarding = Some(on);
    Ok(())
}
