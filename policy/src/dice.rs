//! How often property tests throw their dice.

use proptest::prelude::ProptestConfig;

/// What proptest takes where nobody says how many.
const UNSAID: u32 = 256;

/// As many cases as this, unless `PROPTEST_CASES` says otherwise (`make test-long`).
pub(crate) fn thrown(cases: u32) -> ProptestConfig {
    let said = ProptestConfig::default();
    let cases = if said.cases == UNSAID { cases } else { said.cases };
    ProptestConfig { cases, failure_persistence: None, ..said }
}
