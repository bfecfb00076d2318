//! The print of a state: 128 bits that stand for all of it, made in one pass.
//!
//! A search spends much of its time here, and nobody picks states to make two prints collide, so this is not the standard
//! library's hasher (which is made against people who do, and gives half as many bits): two lanes, each of which multiplies to 128
//! bits and folds, so that every bit of what went in reaches every bit of what comes out.

use std::hash::{BuildHasherDefault, Hash, Hasher};

pub(super) type Print = u128;

/// Sets of prints: they are hashes already, and half of one is as good as another.
pub(super) type Printed = BuildHasherDefault<Half>;

/// Odd, and with no pattern: digits of √2 and of π.
const LANES: [u64; 2] = [0x6a09_e667_f3bc_c909, 0x243f_6a88_85a3_08d3];
const MIX: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03];

pub(super) fn print(thing: &impl Hash) -> Print {
    let mut printer = Printer(LANES);
    thing.hash(&mut printer);
    printer.print()
}

pub(super) fn print_bytes(bytes: &[u8]) -> Print {
    let mut printer = Printer(LANES);
    printer.write(bytes);
    printer.print()
}

struct Printer([u64; 2]);

impl Printer {
    fn word(&mut self, word: u64) {
        let [one, other] = &mut self.0;
        *one = folded(*one ^ word, MIX[0]).wrapping_add(word.rotate_left(32));
        *other = folded(other.rotate_left(23) ^ word, MIX[1]) ^ word;
    }

    fn print(mut self) -> Print {
        // What went in last has been through one multiplication only.
        self.word(LANES[1]);
        self.word(LANES[0]);
        u128::from(self.0[0]) << 64 | u128::from(self.0[1])
    }
}

fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

impl Hasher for Printer {
    fn finish(&self) -> u64 {
        self.0[0]
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        // With its length, so that trailing zeros count.
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        last[7] = rest.len() as u8;
        self.word(u64::from_le_bytes(last));
    }

    fn write_u8(&mut self, number: u8) {
        self.word(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.word(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.word(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.word(number as u64);
    }
}

#[derive(Default)]
pub(super) struct Half(u64);

impl Hasher for Half {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u128(&mut self, print: u128) {
        self.0 = print as u64;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only prints are hashed");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn what_differs_in_a_bit_has_another_print() {
        let mut prints: HashSet<Print, Printed> = HashSet::default();
        for length in 0..40 {
            let zeros = vec![0; length];
            assert!(prints.insert(print_bytes(&zeros)), "{length} zeros");
            for bit in 0..8 * length {
                let mut one = zeros.clone();
                one[bit / 8] |= 1 << (bit % 8);
                assert!(prints.insert(print_bytes(&one)), "{length} bytes, bit {bit}");
            }
        }
    }

    /// A hundred thousand numbers in a row: each bit of a print is set in about half of them, and no half of a print comes twice.
    #[test]
    fn prints_are_spread() {
        const MANY: u64 = 100_000;
        let prints: Vec<Print> = (0..MANY).map(|number| print(&number)).collect();
        for bit in 0..128 {
            let set = prints.iter().filter(|print| **print >> bit & 1 == 1).count() as u64;
            assert!((MANY * 49 / 100..MANY * 51 / 100).contains(&set), "bit {bit}: {set}");
        }
        for shift in [0, 64] {
            let halves: HashSet<u64> = prints.iter().map(|print| (print >> shift) as u64).collect();
            assert_eq!(halves.len() as u64, MANY);
        }
    }
}
