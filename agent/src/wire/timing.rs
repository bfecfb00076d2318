//! How long the wire is asked for an address before it is used.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Of RFC 5227: two may be lost.
const PROBES: u32 = 3;

/// A tenth of a second. Who has an address answers in its kernel, within a millisecond on a wire and within tens on a
/// machine that is overrun; a probe that is lost is made up for by the next, 25 ms later, and the last is waited for 50
/// ms. RFC 5227 itself waits for four to seven seconds, for the networks of 1982; NetworkManager 200 ms for its three.
/// Longer is safer where a switch takes its time to forward for a port that has just come up.
const DEFAULT: Duration = Duration::from_millis(100);
/// A host works on nothing else meanwhile.
const LONGEST: Duration = Duration::from_secs(10);

/// For how long, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timing(Option<Duration>);

/// Words that are none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no time to probe the wire for; wanted is 100ms, say, or 2s, at most 10s, or off")]
pub struct NoTiming(String);

impl Default for Timing {
    fn default() -> Self {
        Self(Some(DEFAULT))
    }
}

impl Timing {
    pub const OFF: Self = Self(None);

    pub(super) fn within(self) -> Option<Duration> {
        self.0
    }
}

impl FromStr for Timing {
    type Err = NoTiming;

    fn from_str(text: &str) -> Result<Self, NoTiming> {
        let wrong = || NoTiming(text.to_owned());
        let text = text.trim();
        if text == "off" {
            return Ok(Self::OFF);
        }
        let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
            (Some(number), _) => (number, 1),
            (None, Some(number)) => (number, 1000),
            (None, None) => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let time = Duration::from_millis(number.checked_mul(unit).ok_or_else(wrong)?);
        if time.is_zero() || time > LONGEST { Err(wrong()) } else { Ok(Self(Some(time))) }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("off"),
            Some(time) => write!(f, "{}ms", time.as_millis()),
        }
    }
}

/// When each probe is sent: in the first half, so that the last has as long to be answered as all of them took. Not put
/// off at random, as RFC 5227 has it for hosts that boot together: three small broadcasts of a thousand hosts are no storm.
pub(super) fn probes(within: Duration) -> Vec<Duration> {
    (0..PROBES).map(|number| within / 2 * number / (PROBES - 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_and_written() {
        for (text, shown) in [("off", "off"), ("100ms", "100ms"), (" 2s ", "2000ms"), ("10s", "10000ms")] {
            assert_eq!(text.parse::<Timing>().unwrap().to_string(), shown);
        }
        assert_eq!(Timing::default().to_string(), "100ms");
        for text in [
            "",
            "on",
            "0ms",
            "0s",
            "11s",
            "100",
            "-1ms",
            "1m",
            "99999999999999999999s",
            "18446744073709551615s",
        ] {
            let wrong = text.parse::<Timing>().unwrap_err().to_string();
            assert!(wrong.contains("100ms"), "{wrong}");
        }
    }

    #[test]
    fn three_probes_in_the_first_half() {
        let times: Vec<u128> = probes(Duration::from_millis(100)).iter().map(Duration::as_millis).collect();
        assert_eq!(times, [0, 25, 50]);
    }
}
