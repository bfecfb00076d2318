//! Addresses.

use std::net::IpAddr;

use policy::state::{Address, IfName};

use super::{EncodeError, Encoder, family_number};
use crate::netlink::decode::address::{
    FOREVER, HEADER, IFA_ADDRESS, IFA_BROADCAST, IFA_CACHEINFO, IFA_LOCAL, IFA_PROTO, SCOPE, usual_scope,
};
use crate::netlink::wire::Message;

pub(super) const RTM_NEWADDR: u16 = 20;
pub(super) const RTM_DELADDR: u16 = 21;

impl Encoder<'_> {
    pub(super) fn address(
        &self,
        kind: u16,
        flags: u16,
        link: &IfName,
        address: &Address,
    ) -> Result<Message, EncodeError> {
        let index = self.index(link)?.to_ne_bytes();
        let family = family_number(address.family());
        let kept =
            address.raw.0.iter().find(|(number, _)| *number == SCOPE).and_then(|(_, bytes)| bytes.first());
        let scope = kept.copied().unwrap_or(usual_scope(address.ip));
        let mut message = Message::new(kind, flags);
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&[family, address.prefix, 0, scope]);
        header[4..].copy_from_slice(&index);
        let peer = address.raw.0.iter().find(|(number, _)| *number == IFA_ADDRESS);
        message.raw(&header).ip(IFA_LOCAL, address.ip);
        match peer {
            Some((number, bytes)) => message.attr(*number, bytes),
            None => message.ip(IFA_ADDRESS, address.ip),
        };
        if kind == RTM_DELADDR {
            return Ok(message);
        }
        for (number, bytes) in
            address.raw.0.iter().filter(|(number, _)| ![IFA_ADDRESS, IFA_CACHEINFO, SCOPE].contains(number))
        {
            message.attr(*number, bytes);
        }
        // A new one gets the broadcast address that people expect; one that is put back has what it had.
        if let (IpAddr::V4(_), 1..=30, true) = (address.ip, address.prefix, address.raw.is_empty())
            && let ipnet::IpNet::V4(net) = address.subnet()
        {
            message.ip(IFA_BROADCAST, net.broadcast().into());
        }
        if let Some(protocol) = address.protocol {
            message.u8(IFA_PROTO, protocol.0);
        }
        let deprecated = address.raw.0.iter().any(|(number, _)| *number == IFA_CACHEINFO);
        let forever = if deprecated { 0 } else { FOREVER };
        let (preferred, valid) = address.lifetime.map_or((forever, FOREVER), |l| (l.preferred, l.valid));
        let mut info = [0; 16];
        info[..4].copy_from_slice(&preferred.to_ne_bytes());
        info[4..8].copy_from_slice(&valid.to_ne_bytes());
        message.attr(IFA_CACHEINFO, &info);
        Ok(message)
    }
}
