//! VLANs of bridge ports: `RTM_NEWLINK` of family `AF_BRIDGE`.

use policy::state::{VlanEntry, VlanRange};

use super::link::{HEADER, IFLA_AF_SPEC};
use crate::netlink::wire::{Attrs, Malformed, read_u16, read_u32};

pub(in crate::netlink) const VLAN_INFO: u16 = 2;
pub(in crate::netlink) const PVID: u16 = 2;
pub(in crate::netlink) const UNTAGGED: u16 = 4;
pub(in crate::netlink) const RANGE_BEGIN: u16 = 8;
pub(in crate::netlink) const RANGE_END: u16 = 16;

/// What a port carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::netlink) struct SeenVlans {
    pub(in crate::netlink) index: u32,
    /// Frames without a tag belong to it.
    pub(in crate::netlink) pvid: Option<u16>,
    pub(in crate::netlink) tagged: Vec<VlanRange>,
    /// All of it.
    pub(in crate::netlink) all: Vec<VlanEntry>,
}

/// Ids that go out untagged without being the port's own are not among the tagged: documents have no word for them, and a
/// plan that wants such an id tagged sets it so.
pub(in crate::netlink) fn read(payload: &[u8]) -> Result<Option<SeenVlans>, Malformed> {
    let attrs = Attrs::after(payload, HEADER)?;
    let mut seen = SeenVlans { index: read_u32(payload, 4).ok_or(Malformed)?, ..SeenVlans::default() };
    let Some(list) = attrs.nested(IFLA_AF_SPEC)? else { return Ok(Some(seen)) };
    let mut begin = None;
    for attr in list.iter().filter(|attr| attr.number == VLAN_INFO) {
        let (flags, id) =
            (read_u16(attr.payload, 0).ok_or(Malformed)?, read_u16(attr.payload, 2).ok_or(Malformed)?);
        if flags & RANGE_BEGIN != 0 {
            begin = Some(id);
            continue;
        }
        let min = begin.take().unwrap_or(id);
        let (pvid, untagged) = (flags & PVID != 0, flags & UNTAGGED != 0);
        seen.all.push(VlanEntry { range: VlanRange { min, max: id }, pvid, untagged });
        if flags & PVID != 0 {
            seen.pvid = Some(id);
        }
        if flags & UNTAGGED == 0 {
            seen.tagged.push(VlanRange { min, max: id });
        }
    }
    Ok(Some(seen))
}
