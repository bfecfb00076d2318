//! What documents have no words for stays where it can: through links that can be used, from addresses that are there.

use super::super::Merge;
use super::locals;
use crate::plan::reach::Direct;
use crate::state::{Family, IfName, Kept, KeptKind, NextHop, Route};

impl Merge<'_> {
    pub(super) fn keep_kept(&mut self) {
        if self.state.kept.is_empty() {
            return;
        }
        let before = Direct::of(self.observed.routes.iter().filter(|r| !r.has_gateway()));
        let direct: Vec<Route> = self.state.routes.iter().filter(|r| !r.has_gateway()).cloned().collect();
        let after = Direct::of(&direct);
        let (had, has) = (locals(self.observed), locals(&self.state));
        let reached = |hop: &NextHop| after.reaches(&self.state, hop) || !before.reaches(self.observed, hop);
        let stays = |kept: &Kept| {
            let family = kept.family.unwrap_or(Family::Ipv4);
            if kept.kind == KeptKind::Forwarding {
                return self.forwards(kept);
            }
            kept.hops.iter().all(|hop| self.usable(&hop.dev, family) && reached(hop))
                && kept.source.is_none_or(|ip| !had.contains(&ip) || has.contains(&ip))
        };
        let kept = self.state.kept.iter().filter(|kept| stays(kept)).cloned().collect();
        self.state.kept = kept;
    }

    /// What it speaks of is there, and a port still its bridge's.
    fn forwards(&self, kept: &Kept) -> bool {
        let is_port = |(port, bridge): (&IfName, &IfName)| {
            self.state.links.get(port).is_some_and(|l| l.controller.as_ref() == Some(bridge))
        };
        kept.hops.iter().all(|hop| self.state.links.contains_key(&hop.dev)) && kept.port().is_none_or(is_port)
    }
}
