//! Options of links and ports, when the kernel takes them.

use super::Walk;
use crate::plan::memory::fits_base;
use crate::plan::step::Step;
use crate::state::kind::{PortStyle, VLAN_FILTERING};
use crate::state::option::{OptSpec, OptValue, Options, When};
use crate::state::{Link, LinkKind, Observed, PortVlan, VlanEntry, VlanRange};

/// Options that go with the making of a link.
pub(super) fn at_creation(wanted: &Link) -> Options {
    let spec = wanted.kind.spec();
    let early = |path: &str| spec.option(path).is_some_and(|s| s.when != When::AfterPorts && !s.hidden);
    wanted.options.iter().filter(|(name, _)| early(name.as_str())).map(|(n, v)| (*n, v.clone())).collect()
}

/// Options that differ, as far as they are wanted.
fn differing(table: &[OptSpec], wanted: &Options, now: &Options, fits: impl Fn(&OptSpec) -> bool) -> Options {
    let mut out = Options::new();
    for spec in table.iter().filter(|s| fits(s)) {
        let Some(value) = wanted.get(&spec.name()) else {
            continue;
        };
        if !spec.holds(value, now.get(&spec.name())) {
            out.insert(spec.name(), value.clone());
        }
    }
    out
}

/// Whether an option differs that only a new link can have. One that isn't known now is not known to differ.
pub(super) fn need_another(now: &Link, wanted: &Link) -> bool {
    let fixed = |s: &OptSpec| s.when == When::Creation && now.options.contains_key(&s.name());
    !differing(wanted.kind.spec().options, &wanted.options, &now.options, fixed).is_empty()
}

impl Walk<'_> {
    /// Options of a link that exists; those that name ports and VLAN filtering come after the ports.
    pub(super) fn link_options(&mut self, wanted: &Link, now: &Link) {
        let table = wanted.kind.spec().options;
        let kind = wanted.kind.clone();
        let link = &wanted.name;
        let down = differing(table, &wanted.options, &now.options, |s| s.when == When::Down);
        let any = differing(table, &wanted.options, &now.options, |s| s.when == When::Any && !s.hidden);
        if !down.is_empty() {
            if self.work.links.get(link).is_some_and(|l| l.up) {
                self.step(Step::SetDown { link: link.clone() });
            }
            self.step(Step::SetOptions { link: link.clone(), kind: kind.clone(), options: down });
        }
        if !any.is_empty() {
            self.step(Step::SetOptions { link: link.clone(), kind, options: any });
        }
    }

    /// What needs ports to be in place: options that name one, the ports' own, VLANs.
    pub(super) fn after_ports(&mut self, wanted: &Link, to: &Observed) {
        let Some(now) = self.work.links.get(&wanted.name).cloned() else {
            return;
        };
        if now.ignored && now.controller.is_none() {
            return;
        }
        // A bridge took the smallest of its ports' unless somebody had set it, and what sits on it shrank along.
        let adapts = now.kind == LinkKind::LinuxBridge || fits_base(&now);
        if let Some(mtu) = wanted.mtu.filter(|mtu| adapts && now.mtu != Some(*mtu)) {
            self.step(Step::SetMtu { link: wanted.name.clone(), mtu });
        }
        let table = wanted.kind.spec().options;
        let late = differing(table, &wanted.options, &now.options, |s| s.when == When::AfterPorts);
        if !late.is_empty() {
            let kind = wanted.kind.clone();
            self.step(Step::SetOptions { link: wanted.name.clone(), kind, options: late });
        }
        if wanted.kind == LinkKind::LinuxBridge {
            self.restore_vlans(wanted, &now, wanted.default_pvid());
        }
        let Some(controller) = wanted.controller.as_ref().and_then(|c| to.links.get(c)) else {
            self.filtering(wanted, &now);
            return;
        };
        let table = controller.kind.spec().port_options;
        let options = differing(table, &wanted.port.options, &now.port.options, |_| true);
        if !options.is_empty() {
            let kind = controller.kind.clone();
            self.step(Step::SetPortOptions { link: wanted.name.clone(), kind, options });
        }
        // Attached anew it has the kernel's defaults; nobody else asks for any of it.
        let flags = &wanted.port.attributes;
        if !flags.is_empty() && *flags != now.port.attributes {
            let (link, kind) = (wanted.name.clone(), controller.kind.clone());
            self.step(Step::RestorePort { link, kind, attributes: flags.clone() });
        }
        let bridged = controller.kind.spec().ports == PortStyle::Bridge;
        if bridged && wanted.vlans.is_some() {
            self.restore_vlans(wanted, &now, controller.default_pvid());
        } else if bridged && wanted.port.vlan != now.port.vlan {
            let default = controller.default_pvid();
            let (remove, add) = vlan_change(&carried(&now, default), entries(&wanted.port.vlan, default));
            let vlan = wanted.port.vlan.clone();
            self.step(Step::SetPortVlans { link: wanted.name.clone(), vlan, remove, add });
        }
        self.filtering(wanted, &now);
    }

    /// As the kernel had them, whatever a document could say of it.
    fn restore_vlans(&mut self, wanted: &Link, now: &Link, default: u16) {
        let Some(all) = wanted.vlans.clone() else { return };
        let (remove, add) = vlan_change(&carried(now, default), all.clone());
        if remove.is_empty() && add.is_empty() {
            return;
        }
        let (link, vlan) = (wanted.name.clone(), wanted.port.vlan.clone());
        let own = wanted.kind == LinkKind::LinuxBridge;
        self.step(Step::RestoreVlans { link, own, vlan, all, remove, add });
    }

    /// Filtering goes on when all ports have their VLANs (controllers come after their ports), so that no frame
    /// is lost on the way.
    fn filtering(&mut self, wanted: &Link, now: &Link) {
        let name = VLAN_FILTERING.name();
        let on = |link: &Link| link.options.get(&name) == Some(&OptValue::Bool(true));
        if wanted.kind == LinkKind::LinuxBridge && on(wanted) != on(now) {
            let options = Options::from([(name, OptValue::Bool(on(wanted)))]);
            let kind = wanted.kind.clone();
            self.step(Step::SetOptions { link: wanted.name.clone(), kind, options });
        }
    }
}

/// What a link carries, as far as that is known: the default VLAN is nobody's word.
fn carried(now: &Link, default: u16) -> Vec<VlanEntry> {
    now.vlans.clone().unwrap_or_else(|| entries(&now.port.vlan, default))
}

/// What the kernel has to take from and give to a port.
fn vlan_change(old: &[VlanEntry], new: Vec<VlanEntry>) -> (Vec<VlanRange>, Vec<VlanEntry>) {
    let covered = |id: u16| new.iter().any(|e| e.range.min <= id && id <= e.range.max);
    let mut remove: Vec<VlanRange> = Vec::new();
    for id in old.iter().flat_map(|e| e.range.min..=e.range.max).filter(|id| !covered(*id)) {
        match remove.last_mut() {
            Some(last) if last.max + 1 == id => last.max = id,
            _ => remove.push(VlanRange { min: id, max: id }),
        }
    }
    let add = new.into_iter().filter(|e| !old.contains(e)).collect();
    (remove, add)
}

fn entries(vlan: &PortVlan, default: u16) -> Vec<VlanEntry> {
    let native = vlan.native.unwrap_or(default);
    let mut out = Vec::new();
    for range in &vlan.tagged {
        // The native one is not tagged: it splits a range that covers it.
        let tagged = |min, max| VlanEntry { range: VlanRange { min, max }, pvid: false, untagged: false };
        if native < range.min || native > range.max {
            out.push(tagged(range.min, range.max));
            continue;
        }
        if native > range.min {
            out.push(tagged(range.min, native - 1));
        }
        if native < range.max {
            out.push(tagged(native + 1, range.max));
        }
    }
    // 0 is a bridge without a default VLAN.
    if native > 0 {
        out.push(VlanEntry { range: VlanRange { min: native, max: native }, pvid: true, untagged: true });
    }
    out.sort_by_key(|e| e.range);
    out
}
