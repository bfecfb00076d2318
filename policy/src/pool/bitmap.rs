//! Offsets as a bitmap in base64: the seed's compact form of `allocated-offsets` (R10).
//!
//! A codec for export and import; choosing never touches it, for a bitmap grows with its highest offset.
//! Offset `n` is bit `n % 8` of byte `n / 8`, lowest bit first, without zero bytes at the end: a set has
//! exactly one text. Base64 is RFC 4648's, with padding, and strict.

use std::collections::BTreeSet;

/// Offsets must be below this: 128 KiB of bits, 171 KiB of text, a fraction of what an object may hold.
const LIMIT: u128 = 1 << 20;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A set of offsets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bitmap {
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BitmapError {
    #[error("offset {offset} is too large for a bitmap; at most {}", LIMIT - 1)]
    TooLarge { offset: u128 },
    #[error("{length} characters are no base64: the length must be a multiple of four")]
    Length { length: usize },
    #[error("character {character:?} at {at} is not base64")]
    Character { character: char, at: usize },
    #[error("the last characters carry bits beyond the last byte")]
    LooseBits,
}

impl Bitmap {
    pub fn of(offsets: impl IntoIterator<Item = u128>) -> Result<Bitmap, BitmapError> {
        let mut bytes: Vec<u8> = Vec::new();
        for offset in offsets {
            if offset >= LIMIT {
                return Err(BitmapError::TooLarge { offset });
            }
            let at = (offset / 8) as usize;
            if bytes.len() <= at {
                bytes.resize(at + 1, 0);
            }
            if let Some(byte) = bytes.get_mut(at) {
                *byte |= 1 << (offset % 8);
            }
        }
        Ok(Bitmap { bytes })
    }

    pub fn contains(&self, offset: u128) -> bool {
        let byte = usize::try_from(offset / 8).ok().and_then(|at| self.bytes.get(at));
        byte.is_some_and(|byte| byte & (1 << (offset % 8)) != 0)
    }

    /// In order.
    pub fn offsets(&self) -> BTreeSet<u128> {
        let bits = self.bytes.iter().enumerate();
        bits.flat_map(|(at, byte)| {
            (0..8).filter(move |bit| byte & (1 << bit) != 0).map(move |bit| at as u128 * 8 + bit)
        })
        .collect()
    }

    pub fn to_base64(&self) -> String {
        let mut text = String::with_capacity(self.bytes.len().div_ceil(3) * 4);
        for chunk in self.bytes.chunks(3) {
            let byte = |i: usize| chunk.get(i).copied().map_or(0, u32::from);
            let group = byte(0) << 16 | byte(1) << 8 | byte(2);
            for i in 0..4 {
                let sextet = (group >> (18 - 6 * i)) & 63;
                let used = i <= chunk.len();
                text.push(if used { char::from(ALPHABET[sextet as usize]) } else { '=' });
            }
        }
        text
    }

    pub fn from_base64(text: &str) -> Result<Bitmap, BitmapError> {
        let length = text.chars().count();
        if !length.is_multiple_of(4) {
            return Err(BitmapError::Length { length });
        }
        let body = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
        let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0_u32);
        for (at, character) in body.chars().enumerate() {
            let sextet = ALPHABET.iter().position(|c| char::from(*c) == character);
            let sextet = sextet.ok_or(BitmapError::Character { character, at })?;
            bits = (bits << 6 | sextet as u32) & 0xffff;
            held += 6;
            if held >= 8 {
                held -= 8;
                bytes.push((bits >> held) as u8);
            }
        }
        // What is held back must be the zero padding of the last byte, and no whole character.
        if held >= 6 || bits & ((1 << held) - 1) != 0 {
            return Err(BitmapError::LooseBits);
        }
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
        bytes.truncate(used);
        match bytes.len() as u128 * 8 {
            bits if bits > LIMIT => Err(BitmapError::TooLarge { offset: bits - 1 }),
            _ => Ok(Bitmap { bytes }),
        }
    }
}
