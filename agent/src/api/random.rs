//! Random ids and delays, from the kernel.

use std::io::Read;
use std::time::Duration;

/// 128 random bits as 32 hexadecimal digits: ids of requests, stamps of reports.
///
/// # Panics
/// If the kernel has no random numbers: an id that is not random is worse than none.
pub fn id() -> String {
    format!("{:032x}", u128::from_ne_bytes(bytes()))
}

/// Anything from nothing to this: a herd that was sent away at one moment must not come back at one.
pub fn up_to(most: Duration) -> Duration {
    let share = f64::from(u32::from_ne_bytes(bytes())) / f64::from(u32::MAX);
    most.mul_f64(share)
}

/// # Panics
/// Where the system has none to give: there is nothing sensible left to do.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.expect("/dev/urandom can be read");
    bytes
}
