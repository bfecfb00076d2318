//! The shapes of names and times that rules ask for. Twins of the patterns and CEL functions in the CRDs.

use std::time::Duration;

/// One DNS label: lower-case letters, digits and `-`, at most 63, beginning and ending with no `-`.
pub fn is_dns_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    text.len() <= 63 && text.bytes().all(inner) && has_plain_ends(text)
}

/// A label's value: empty, or at most 63 letters, digits, `-`, `_` and `.` with a letter or digit at both ends.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_label_name(text)
}

/// A label's key: a name, with a DNS subdomain and `/` before it or not.
pub fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_label_name(name),
        None => is_label_name(text),
    }
}

fn is_label_name(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    text.len() <= 63 && text.bytes().all(inner) && has_plain_ends(text)
}

/// A DNS subdomain, as the names of nodes are: at most 253 lower-case letters, digits, `-` and `.`, with a letter or digit
/// at both ends of every part.
pub fn is_dns_subdomain(text: &str) -> bool {
    let label = |label: &str| {
        label.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
            && has_plain_ends(label)
    };
    text.len() <= 253 && text.split('.').all(label)
}

fn has_plain_ends(text: &str) -> bool {
    let plain = |c: Option<u8>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    plain(text.bytes().next()) && plain(text.bytes().next_back())
}

/// The pool that a capture asks for: `ippool.<name>.allocate` with white space around it or not.
pub fn pool_of_capture(expression: &str) -> Option<&str> {
    let name = expression.trim().strip_prefix("ippool.")?.strip_suffix(".allocate")?;
    is_dns_label(name).then_some(name)
}

/// A duration as Go writes it, without a sign: `5m`, `1h30m`, `1.5s`. None if it is none, or has a number of more
/// than five digits before or after the dot.
pub fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let nanos_per_unit: u64 = match unit {
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60 * 1_000_000_000,
            "h" => 3_600 * 1_000_000_000,
            _ => return None,
        };
        total = total.checked_add(scaled(number, nanos_per_unit)?)?;
        rest = next;
    }
    Some(total)
}

/// `number` (digits, with a fraction or not) times a unit, without going through floating point.
fn scaled(number: &str, nanos_per_unit: u64) -> Option<Duration> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let mut nanos = whole.parse::<u64>().ok()?.checked_mul(nanos_per_unit)?;
    let mut place = nanos_per_unit;
    if [whole, fraction].iter().any(|digits| !(1..=5).contains(&digits.len())) {
        return None;
    }
    for digit in fraction.chars() {
        place /= 10;
        nanos = nanos.checked_add(u64::from(digit.to_digit(10)?) * place)?;
    }
    Some(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests;
