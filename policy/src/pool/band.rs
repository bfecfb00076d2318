//! The static band of a range: the low addresses that dynamic claims touch last (KEP-3070).
//!
//! A band steers the choice and nothing else: no stored byte depends on it, so it may be switched at
//! any time (R54). It applies to each range by itself (R80).

/// Never fewer, where there is a band at all; also the size up to which there is none (D10).
const MIN: u128 = 16;
/// One address in sixteen.
const STEP: u128 = 16;
/// Never more: nobody hand-picks more addresses than this.
const MAX: u128 = 256;

/// `spec.staticBand`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StaticBand {
    /// KEP-3070's formula.
    #[default]
    Auto,
    /// No band: the whole range with equal probability.
    None,
    /// This many addresses, at most the whole range.
    Count(u64),
}

impl StaticBand {
    /// `Auto`, `None` or a number, as text.
    pub fn parse(text: &str) -> Option<StaticBand> {
        match text {
            "Auto" => Some(StaticBand::Auto),
            "None" => Some(StaticBand::None),
            number => number.parse().ok().map(StaticBand::Count),
        }
    }

    /// How many addresses of a range of `size` the band takes, counted from the first usable one (D11).
    pub fn of(self, size: u128) -> u128 {
        match self {
            StaticBand::None => 0,
            StaticBand::Count(n) => u128::from(n).min(size),
            StaticBand::Auto if size <= MIN => 0,
            StaticBand::Auto => (size / STEP).clamp(MIN, MAX),
        }
    }
}
