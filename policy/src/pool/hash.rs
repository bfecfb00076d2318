//! Where a holder starts to look: a hash of (node, pool, capture).
//!
//! Spread like random, so that nodes that choose at the same time seldom want the same address, and
//! the same for ever, so that a node gets its address again after a total loss of state. It is part of
//! what Berth promises: a change would move addresses. The golden values in the tests hold it still.
//!
//! FNV-1a, 128 bits, over `node 0x00 pool 0x00 capture` (names never hold a zero byte). FNV alone
//! mixes its upper bits poorly and node names differ in their last digit, so both halves then go
//! through the 64-bit finaliser of MurmurHash3, the second half folded into the first and back.

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// The hash of a holder; a start in a window of `n` addresses is `start(…) % n`.
pub fn start(node: &str, pool: &str, capture: &str) -> u128 {
    let mut hash = OFFSET;
    for (i, part) in [node, pool, capture].into_iter().enumerate() {
        if i > 0 {
            hash = feed(hash, 0);
        }
        for &byte in part.as_bytes() {
            hash = feed(hash, byte);
        }
    }
    let (high, low) = ((hash >> 64) as u64, hash as u64);
    let low = mix(low ^ high);
    let high = mix(high ^ low);
    (u128::from(high) << 64) | u128::from(low)
}

fn feed(hash: u128, byte: u8) -> u128 {
    (hash ^ u128::from(byte)).wrapping_mul(PRIME)
}

fn mix(mut n: u64) -> u64 {
    n ^= n >> 33;
    n = n.wrapping_mul(0xff51_afd7_ed55_8ccd);
    n ^= n >> 33;
    n = n.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    n ^ (n >> 33)
}
