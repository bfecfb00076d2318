//! Netlink's bytes: messages out, frames and attributes in. Pure: no socket is touched here.
//!
//! Everything is in the host's byte order and padded to four bytes; what the kernel wants in network order is said
//! where it is written. A message that can't be read is [`Malformed`], never half-read.

use std::net::IpAddr;

/// Set by the sender of an attribute that holds attributes.
const NESTED: u16 = 1 << 15;
/// What of an attribute's type is its number; the rest are flags.
const NUMBER: u16 = 0x3fff;
const HEADER: usize = 16;

/// Bytes that are not what their length says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message ends in the middle")]
pub struct Malformed;

fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// A request being written.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// With the flags of `nlmsghdr`; the socket fills in the sequence number.
    pub(crate) fn new(kind: u16, flags: u16) -> Self {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend_from_slice(&0u32.to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&[0; 8]);
        Self { bytes }
    }

    /// A fixed header, or the inside of one.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(padded(self.bytes.len()), 0);
        self
    }

    pub(crate) fn attr(&mut self, number: u16, payload: &[u8]) -> &mut Self {
        // Longest is a list of VLANs: 4094 times eight bytes, which fits.
        let length = u16::try_from(payload.len() + 4).unwrap_or(u16::MAX);
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&number.to_ne_bytes());
        self.raw(payload)
    }

    pub(crate) fn u8(&mut self, number: u16, value: u8) -> &mut Self {
        self.attr(number, &[value])
    }

    pub(crate) fn u16(&mut self, number: u16, value: u16) -> &mut Self {
        self.attr(number, &value.to_ne_bytes())
    }

    pub(crate) fn u32(&mut self, number: u16, value: u32) -> &mut Self {
        self.attr(number, &value.to_ne_bytes())
    }

    pub(crate) fn ip(&mut self, number: u16, ip: IpAddr) -> &mut Self {
        match ip {
            IpAddr::V4(ip) => self.attr(number, &ip.octets()),
            IpAddr::V6(ip) => self.attr(number, &ip.octets()),
        }
    }

    /// With the zero at its end that the kernel expects.
    pub(crate) fn text(&mut self, number: u16, text: &str) -> &mut Self {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.attr(number, &bytes)
    }

    /// An attribute that holds what `inside` writes.
    pub(crate) fn nest(&mut self, number: u16, inside: impl FnOnce(&mut Self)) -> &mut Self {
        let at = self.bytes.len();
        self.attr(number | NESTED, &[]);
        inside(self);
        let length = u16::try_from(self.bytes.len() - at).unwrap_or(u16::MAX);
        self.bytes[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    /// Bytes so far, the header among them.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Attributes alone, to be put into a payload by hand.
    pub(crate) fn attributes() -> Self {
        Self { bytes: Vec::new() }
    }

    pub(crate) fn into_attributes(self) -> Vec<u8> {
        self.bytes
    }

    /// Ready to be sent.
    pub(crate) fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

/// A message of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) sequence: u32,
    pub(crate) payload: &'a [u8],
}

/// All messages of a datagram, in order; a broken one ends it.
pub(crate) fn frames(datagram: &[u8]) -> impl Iterator<Item = Result<Frame<'_>, Malformed>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let whole = read_u32(rest, 0).map(|length| length as usize);
        let frame = whole.filter(|length| (HEADER..=rest.len()).contains(length)).and_then(|length| {
            Some(Frame {
                kind: read_u16(rest, 4)?,
                flags: read_u16(rest, 6)?,
                sequence: read_u32(rest, 8)?,
                payload: rest.get(HEADER..length)?,
            })
        });
        let used = frame.as_ref().map_or(rest.len(), |f| padded(f.payload.len() + HEADER));
        rest = rest.get(used..).unwrap_or_default();
        Some(frame.ok_or(Malformed))
    })
}

/// The attributes behind a fixed header of `header` bytes, by number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attrs<'a>(&'a [u8]);

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attr<'a> {
    pub(crate) number: u16,
    pub(crate) payload: &'a [u8],
}

impl<'a> Attrs<'a> {
    /// Reads them all once, so that none is half-read later.
    pub(crate) fn after(payload: &'a [u8], header: usize) -> Result<Self, Malformed> {
        let attrs = Self(payload.get(padded(header)..).ok_or(Malformed)?);
        let mut at = 0;
        while at < attrs.0.len() {
            let length = usize::from(read_u16(attrs.0, at).ok_or(Malformed)?);
            if length < 4 || at + length > attrs.0.len() {
                return Err(Malformed);
            }
            at += padded(length);
        }
        Ok(attrs)
    }

    pub(crate) fn of(payload: &'a [u8]) -> Result<Self, Malformed> {
        Self::after(payload, 0)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Attr<'a>> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let length = usize::from(read_u16(rest, 0)?);
            let attr = Attr { number: read_u16(rest, 2)? & NUMBER, payload: rest.get(4..length)? };
            rest = rest.get(padded(length)..).unwrap_or_default();
            Some(attr)
        })
    }

    pub(crate) fn get(self, number: u16) -> Option<Attr<'a>> {
        self.iter().find(|attr| attr.number == number)
    }

    pub(crate) fn nested(self, number: u16) -> Result<Option<Attrs<'a>>, Malformed> {
        self.get(number).map(Attr::attrs).transpose()
    }

    pub(crate) fn u32(self, number: u16) -> Option<u32> {
        self.get(number)?.u32()
    }

    pub(crate) fn text(self, number: u16) -> Option<String> {
        Some(self.get(number)?.text())
    }

    pub(crate) fn ip(self, number: u16) -> Option<IpAddr> {
        self.get(number)?.ip()
    }
}

impl<'a> Attr<'a> {
    pub(crate) fn attrs(self) -> Result<Attrs<'a>, Malformed> {
        Attrs::of(self.payload)
    }

    pub(crate) fn u8(self) -> Option<u8> {
        self.payload.first().copied()
    }

    pub(crate) fn u16(self) -> Option<u16> {
        read_u16(self.payload, 0)
    }

    pub(crate) fn u32(self) -> Option<u32> {
        read_u32(self.payload, 0)
    }

    pub(crate) fn u64(self) -> Option<u64> {
        self.payload.get(..8)?.try_into().ok().map(u64::from_ne_bytes)
    }

    /// Up to the zero at its end, if there is one.
    pub(crate) fn text(self) -> String {
        let text = self.payload.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// By its length, as the kernel does.
    pub(crate) fn ip(self) -> Option<IpAddr> {
        match self.payload.len() {
            4 => self.payload.try_into().ok().map(|octets: [u8; 4]| octets.into()),
            16 => self.payload.try_into().ok().map(|octets: [u8; 16]| octets.into()),
            _ => None,
        }
    }
}

pub(crate) fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

pub(crate) fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::{Attrs, Malformed, Message, frames};

    #[test]
    fn what_is_written_is_read_back() {
        let mut message = Message::new(16, 5);
        message.raw(&[1, 2, 3, 4]).text(3, "eth0").nest(18, |inside| {
            inside.u8(1, 7).u16(2, 300);
        });
        message.ip(1, "10.0.0.1".parse().unwrap()).ip(2, "fd00::1".parse().unwrap());
        let bytes = message.finish(42);
        let all: Vec<_> = frames(&bytes).collect::<Result<_, _>>().unwrap();
        let [frame] = all.as_slice() else { panic!("one frame") };
        assert_eq!((frame.kind, frame.flags, frame.sequence), (16, 5, 42));
        let attrs = Attrs::after(frame.payload, 4).unwrap();
        assert_eq!(attrs.text(3).unwrap(), "eth0");
        let inside = attrs.nested(18).unwrap().unwrap();
        assert_eq!((inside.get(1).unwrap().u8(), inside.get(2).unwrap().u16()), (Some(7), Some(300)));
        assert_eq!(attrs.ip(1).unwrap().to_string(), "10.0.0.1");
        assert_eq!(attrs.ip(2).unwrap().to_string(), "fd00::1");
    }

    #[test]
    fn several_in_a_datagram_and_a_broken_one_at_the_end() {
        let mut datagram = Message::new(1, 0).finish(1);
        datagram.extend(Message::new(2, 0).finish(2));
        datagram.extend([200, 0, 0, 0, 9]);
        let kinds: Vec<_> = frames(&datagram).map(|frame| frame.map(|f| f.kind)).collect();
        assert_eq!(kinds, [Ok(1), Ok(2), Err(Malformed)]);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            for frame in frames(&bytes).flatten() {
                for attr in Attrs::after(frame.payload, 16).into_iter().flat_map(Attrs::iter) {
                    let _ = (attr.u64(), attr.text(), attr.ip(), attr.attrs().is_ok());
                }
            }
            let _ = Attrs::of(&bytes).map(|attrs| attrs.iter().count());
        }
    }
}
