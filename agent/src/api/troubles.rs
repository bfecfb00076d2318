//! What goes wrong again and again: said once for each reason, and tried ever more slowly, never all at once.

use std::time::Duration;

use super::random;
use crate::telemetry::warn;

/// The first pause, and the longest.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// One thing that is tried until it works.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    failures: u32,
    said: String,
}

impl Troubles {
    /// It worked.
    pub(crate) fn over(&mut self) {
        *self = Self::default();
    }

    /// Says what is wrong, unless that was the last that was said.
    pub(crate) fn say(&mut self, why: &str) {
        if why != self.said {
            warn(why);
            self.said = why.to_owned();
        }
    }

    /// It failed: how long to leave it alone. The first pause is as it is; then they double, with a random half.
    pub(crate) fn again(&mut self, why: &str) -> Duration {
        self.say(&format!("{why}; trying again"));
        let most = FIRST.saturating_mul(1 << self.failures.min(10)).min(LONGEST);
        self.failures += 1;
        if most == FIRST { FIRST } else { most / 2 + random::up_to(most / 2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_begin_anew() {
        let mut troubles = Troubles::default();
        assert_eq!(troubles.again("away"), FIRST);
        let pauses: Vec<Duration> = (0..20).map(|_| troubles.again("away")).collect();
        assert!(pauses[0] >= FIRST && pauses[0] <= FIRST * 2, "{pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= LONGEST) && pauses[19] >= LONGEST / 2, "{pauses:?}");
        troubles.over();
        assert_eq!(troubles.again("away"), FIRST);
    }
}
