//! Links: what goes along with what.

use super::{MemoryError, get, kept, route};
use crate::state::kind::{PortStyle, VLAN_FILTERING};
use crate::state::option::{OptValue, Options, When};
use crate::state::{Attributes, IfName, Link, LinkKind, Mac, Observed, Port};

/// What sits on a link.
fn uppers(state: &Observed, name: &IfName) -> Vec<IfName> {
    state.links.values().filter(|l| l.sits_on() == Some(name)).map(|l| l.name.clone()).collect()
}

/// A vlan follows its base up and down, unless it is bound loosely.
fn followers(state: &Observed, name: &IfName) -> Vec<IfName> {
    let vlans = state.links.values().filter(|l| l.base.as_ref() == Some(name) && follows(l));
    vlans.map(|l| l.name.clone()).collect()
}

pub(in crate::plan) fn follows(link: &Link) -> bool {
    link.kind == LinkKind::Vlan && !is_loose(link)
}

/// Vlans and macvlans are never larger than what they sit on, and shrink with it.
pub(in crate::plan) fn fits_base(link: &Link) -> bool {
    matches!(link.kind, LinkKind::Vlan | LinkKind::MacVlan)
}

fn is_loose(link: &Link) -> bool {
    link.options
        .iter()
        .any(|(name, value)| name.as_str() == "loose-binding" && *value == OptValue::Bool(true))
}

pub(super) fn create(
    state: &mut Observed,
    mut link: Link,
    peer_attributes: &Attributes,
) -> Result<(), MemoryError> {
    let both = [Some(&link.name), link.peer.as_ref()];
    for name in both.into_iter().flatten() {
        if state.links.contains_key(name) {
            return Err(MemoryError::LinkExists { link: name.clone() });
        }
    }
    link.ipv6.enabled = !state.new_links_lack_ipv6;
    if let Some(base) = &link.base {
        // It starts with the MTU of what it sits on.
        link.mtu = get(state, base)?.mtu;
    }
    if link.kind == LinkKind::LinuxBridge {
        link.options.entry(VLAN_FILTERING.name()).or_insert(OptValue::Bool(false));
    }
    if let (LinkKind::Veth, Some(peer)) = (&link.kind, &link.peer) {
        let mut other = Link::new(peer.clone(), LinkKind::Veth);
        other.peer = Some(link.name.clone());
        other.attributes.clone_from(peer_attributes);
        other.ipv6.enabled = !state.new_links_lack_ipv6;
        state.insert(other);
    }
    state.insert(link);
    Ok(())
}

pub(super) fn delete(state: &mut Observed, name: &IfName) -> Result<(), MemoryError> {
    if !get(state, name)?.kind.is_virtual() {
        return Err(MemoryError::NotVirtual { link: name.clone() });
    }
    let mut going = vec![name.clone()];
    while let Some(name) = going.pop() {
        going.extend(uppers(state, &name));
        let ports: Vec<_> = state
            .links
            .values()
            .filter(|l| l.controller.as_ref() == Some(&name))
            .map(|l| l.name.clone())
            .collect();
        for port in ports {
            detach(state, &port, &name)?;
        }
        let Some(link) = state.links.remove(&name) else {
            continue;
        };
        if link.kind == LinkKind::Veth {
            going.extend(link.peer.filter(|p| state.links.contains_key(p)));
        }
        route::drop_link(state, &name);
        for address in link.ipv4.addresses.iter().chain(&link.ipv6.addresses) {
            route::drop_source(state, address.ip);
        }
    }
    Ok(())
}

/// No loopback can be a port, and no bridge of a bridge.
pub(in crate::plan) fn can_be_port(style: PortStyle, kind: &LinkKind) -> bool {
    let bridges = style == PortStyle::Bridge && *kind == LinkKind::LinuxBridge;
    !bridges && *kind != LinkKind::Loopback
}

pub(super) fn attach(state: &mut Observed, name: &IfName, controller: &IfName) -> Result<(), MemoryError> {
    let style = get(state, controller)?.kind.spec().ports;
    let link = get(state, name)?;
    if let Some(old) = &link.controller {
        return Err(MemoryError::IsPort { link: name.clone(), controller: old.clone() });
    }
    let kind = link.kind.clone();
    if style == PortStyle::None || !can_be_port(style, &kind) || rests_on(state, name, controller) {
        return Err(MemoryError::Loop { link: name.clone(), controller: controller.clone() });
    }
    let link = get(state, name)?;
    if style == PortStyle::Bond && link.up {
        return Err(MemoryError::PortUp { link: name.clone() });
    }
    let base = link.base.clone().filter(|_| follows(link));
    if style == PortStyle::Bond
        && let Some(base) = base.and_then(|b| state.links.get(&b)).filter(|b| !b.up && !b.ignored)
    {
        // The bond opens its ports itself, and this one can't be.
        return Err(MemoryError::LinkDown { link: base.name.clone() });
    }
    let link = get(state, name)?;
    link.controller = Some(controller.clone());
    link.port = Port::default();
    forget_vlans(link, style);
    match style {
        PortStyle::Bond => link.up = true,
        PortStyle::Vrf => cycle(state, name),
        PortStyle::Bridge => shrink(state, controller),
        PortStyle::None => {}
    }
    Ok(())
}

pub(in crate::plan) fn least_of_ports(state: &Observed, bridge: &IfName) -> Option<u32> {
    let ports = state.links.values().filter(|l| l.controller.as_ref() == Some(bridge));
    ports.filter_map(|port| port.mtu).min()
}

/// A bridge whose MTU nobody set has that of its smallest port. Whether somebody did can't be seen: a plan that wants it
/// otherwise sets it, which does no harm.
fn shrink(state: &mut Observed, bridge: &IfName) {
    if let Some(least) = least_of_ports(state, bridge) {
        // A port may be too large for it: then it stays.
        let _ = set_mtu(state, bridge, least);
    }
}

/// Whether `upper` is, or rests on, `lower`: through what it sits on, or its ports.
fn rests_on(state: &Observed, upper: &IfName, lower: &IfName) -> bool {
    let mut below = vec![upper.clone()];
    let mut seen = std::collections::BTreeSet::new();
    while let Some(name) = below.pop() {
        if name == *lower {
            return true;
        }
        let Some(link) = state.links.get(&name).filter(|_| seen.insert(name.clone())) else {
            continue;
        };
        below.extend(link.base.clone());
        if link.kind.spec().ports != PortStyle::None {
            let ports = state.links.values().filter(|l| l.controller.as_ref() == Some(&name));
            below.extend(ports.map(|l| l.name.clone()));
        }
    }
    false
}

pub(super) fn detach(state: &mut Observed, name: &IfName, controller: &IfName) -> Result<(), MemoryError> {
    let style = get(state, controller)?.kind.spec().ports;
    let link = get(state, name)?;
    if link.controller.as_ref() != Some(controller) {
        return Err(MemoryError::NotPort { link: name.clone(), controller: controller.clone() });
    }
    link.controller = None;
    link.port = Port::default();
    forget_vlans(link, style);
    kept::drop_port(state, name, controller);
    match style {
        PortStyle::Bond => set_down(state, name)?,
        PortStyle::Vrf => cycle(state, name),
        PortStyle::Bridge => shrink(state, controller),
        PortStyle::None => {}
    }
    Ok(())
}

/// A new port has the bridge's default VLAN, which is nobody's word; one that was has none.
fn forget_vlans(link: &mut Link, style: PortStyle) {
    if style == PortStyle::Bridge {
        link.vlans = None;
    }
}

/// A change of vrf takes the link down and up again: what lives in routing tables is lost.
fn cycle(state: &mut Observed, name: &IfName) {
    if state.links.get(name).is_some_and(|l| l.up) {
        lose(state, name);
    }
}

/// What a link loses when it goes down: routes, and IPv6 addresses but the link-local one, which comes back.
fn lose(state: &mut Observed, name: &IfName) {
    route::drop_link(state, name);
    let Some(link) = state.links.get_mut(name) else {
        return;
    };
    let (kept, gone) =
        std::mem::take(&mut link.ipv6.addresses).into_iter().partition(|a| a.is_kernel_link_local());
    link.ipv6.addresses = kept;
    for address in gone {
        route::drop_source(state, address.ip);
    }
}

pub(super) fn set_down(state: &mut Observed, name: &IfName) -> Result<(), MemoryError> {
    let link = get(state, name)?;
    if !link.up {
        return Ok(());
    }
    link.up = false;
    lose(state, name);
    for upper in followers(state, name) {
        set_down(state, &upper)?;
    }
    Ok(())
}

pub(super) fn set_up(state: &mut Observed, name: &IfName) -> Result<(), MemoryError> {
    let link = get(state, name)?;
    let base = link.base.clone().filter(|_| follows(link));
    if let Some(base) = base.and_then(|b| state.links.get(&b)).filter(|b| !b.up && !b.ignored) {
        return Err(MemoryError::LinkDown { link: base.name.clone() });
    }
    let link = get(state, name)?;
    let was_up = std::mem::replace(&mut link.up, true);
    if !was_up {
        for upper in followers(state, name) {
            set_up(state, &upper)?;
        }
    }
    Ok(())
}

pub(super) fn set_mtu(state: &mut Observed, name: &IfName, mtu: u32) -> Result<(), MemoryError> {
    let link = get(state, name)?;
    let wrong = || MemoryError::Mtu { link: name.clone(), mtu };
    if mtu < link.min_mtu.unwrap_or(0) || mtu > link.max_mtu.filter(|m| *m > 0).unwrap_or(u32::MAX) {
        return Err(wrong());
    }
    let base = link.base.clone().filter(|_| fits_base(link));
    if base.and_then(|b| state.links.get(&b)).and_then(|b| b.mtu).is_some_and(|limit| mtu > limit) {
        return Err(wrong());
    }
    let link = get(state, name)?;
    link.mtu = Some(mtu);
    let bridge = link.controller.clone();
    if let Some(bridge) =
        bridge.filter(|b| state.links.get(b).is_some_and(|l| l.kind == LinkKind::LinuxBridge))
    {
        shrink(state, &bridge);
    }
    for link in state.links.values_mut().filter(|l| l.shrinks_with.as_ref() == Some(name)) {
        link.mtu = link.mtu.map(|m| m.min(mtu));
    }
    for upper in uppers(state, name) {
        let link = get(state, &upper)?;
        if fits_base(link) && link.mtu.is_some_and(|m| m > mtu) {
            set_mtu(state, &upper, mtu)?;
        }
    }
    Ok(())
}

pub(super) fn set_mac(state: &mut Observed, name: &IfName, mac: Mac) -> Result<(), MemoryError> {
    let link = get(state, name)?;
    if link.up && link.kind == LinkKind::Ethernet {
        return Err(MemoryError::LinkUp { link: name.clone() });
    }
    link.mac = Some(mac);
    kept::drop_neighbours(state, name, |_| true);
    Ok(())
}

pub(super) fn set_options(state: &mut Observed, name: &IfName, options: &Options) -> Result<(), MemoryError> {
    let link = get(state, name)?;
    let spec = link.kind.spec();
    let needs_down =
        |o: &crate::state::OptName| spec.option(o.as_str()).is_some_and(|s| s.when == When::Down);
    if link.up && options.keys().any(needs_down) {
        return Err(MemoryError::LinkUp { link: name.clone() });
    }
    link.options.extend(options.iter().map(|(k, v)| (*k, v.clone())));
    Ok(())
}
