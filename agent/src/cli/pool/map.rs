//! A pool drawn as a map of its addresses: a sign each, or, where there are more than fit, a sign for many.
//!
//! Drawn from the runs that `rows` walks, so a range of 2⁶⁴ addresses costs what its edges cost. Signs tell it all; colours,
//! on a terminal that has them, only say it again.

use std::net::IpAddr;

use policy::pool::{Part, Range, RangeState, Word};

use super::rows::{self, Standing, View};

/// Lines of a range's map, at most: what a screen has beside everything else.
const LINES: u128 = 16;
/// Signs in a line, at most: a line of 64 can still be counted in.
const LONGEST: u128 = 64;
const SHORTEST: u128 = 8;
const INDENT: &str = "  ";

/// How addresses stand, in the order of the legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Free,
    Static,
    Slice,
    Held,
    Quarantined,
    Reserved,
    Excluded,
    Gateway,
    Barred,
}

const SIGNS: [Sign; 9] = [
    Sign::Free,
    Sign::Static,
    Sign::Slice,
    Sign::Held,
    Sign::Quarantined,
    Sign::Reserved,
    Sign::Excluded,
    Sign::Gateway,
    Sign::Barred,
];

impl Sign {
    fn of(standing: &Standing) -> Self {
        match standing.status {
            Word::Held => Self::Held,
            Word::Quarantined => Self::Quarantined,
            Word::Reserved => Self::Reserved,
            Word::Excluded | Word::Outside => Self::Excluded,
            Word::Gateway => Self::Gateway,
            Word::Barred => Self::Barred,
            Word::Free if standing.slice.is_some() => Self::Slice,
            Word::Free if standing.band == Some("static") => Self::Static,
            Word::Free => Self::Free,
        }
    }

    fn mark(self) -> char {
        match self {
            Self::Free => '.',
            Self::Static => 's',
            Self::Slice => 'o',
            Self::Held => '#',
            Self::Quarantined => 'q',
            Self::Reserved => 'R',
            Self::Excluded => 'x',
            Self::Gateway => 'G',
            Self::Barred => '!',
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Static => "free, static band",
            Self::Slice => "in a node's slice",
            Self::Held => "held",
            Self::Quarantined => "quarantined",
            Self::Reserved => "reserved",
            Self::Excluded => "excluded",
            Self::Gateway => "gateway",
            Self::Barred => "another's too",
        }
    }

    /// As terminals number them.
    fn colour(self) -> u8 {
        match self {
            Self::Free | Self::Slice => 32,
            Self::Static => 36,
            Self::Held => 34,
            Self::Quarantined => 33,
            Self::Reserved => 35,
            Self::Excluded | Self::Gateway => 90,
            Self::Barred => 31,
        }
    }
}

/// How many addresses of a cell stand how.
#[derive(Debug, Clone, Copy, Default)]
struct Cell([u128; SIGNS.len()]);

impl Cell {
    fn count(&self, sign: Sign) -> u128 {
        self.0[sign as usize]
    }

    /// The sign of a cell and how it is drawn: of many addresses, the share that is held in tenths.
    fn drawn(&self) -> (Sign, char) {
        let never = [Sign::Excluded, Sign::Gateway, Sign::Barred].map(|sign| self.count(sign)).iter().sum();
        let all: u128 = self.0.iter().sum();
        let (usable, held): (u128, u128) = (all.saturating_sub(never), self.count(Sign::Held));
        if held > 0 && held < usable {
            let tenths = (held.saturating_mul(10) / usable).clamp(1, 9);
            let digit = u32::try_from(tenths).ok().and_then(|tenths| char::from_digit(tenths, 10));
            return (Sign::Held, digit.unwrap_or('#'));
        }
        let notable = [Sign::Held, Sign::Quarantined, Sign::Reserved, Sign::Slice];
        let notable = notable.into_iter().find(|sign| self.count(*sign) > 0);
        let most = || SIGNS.into_iter().max_by_key(|sign| (self.count(*sign), usize::MAX - *sign as usize));
        let sign = notable.or_else(most).unwrap_or(Sign::Free);
        (sign, sign.mark())
    }
}

/// The map of every range, with a legend of the signs in it.
pub(super) fn draw(view: &View<'_>, width: usize, colours: bool) -> String {
    let mut text = String::new();
    let mut legend = Legend::default();
    for range in view.known.pool.ranges() {
        for part in range.parts() {
            text += &title(range, part);
            text += &drawn(view, range, part, width, colours, &mut legend);
            text.push('\n');
        }
    }
    text + &legend.to_text(width, colours)
}

fn title(range: &Range, part: &Part) -> String {
    let drains = if range.state() == RangeState::Draining { ", drains" } else { "" };
    let (name, cidr) = (range.name(), part.cidr());
    let size = part.last_offset().saturating_add(1);
    let s = if size == 1 { "" } else { "es" };
    format!("range {name}: {} - {} of {cidr}, {size} address{s}{drains}\n", part.start(), part.end())
}

fn drawn(
    view: &View<'_>,
    range: &Range,
    part: &Part,
    width: usize,
    colours: bool,
    legend: &mut Legend,
) -> String {
    let size = part.last_offset().saturating_add(1);
    let label = part.start().to_string().len().max(part.end().to_string().len());
    let room = width.saturating_sub(INDENT.len() * 2 + label) as u128;
    let line = power_below(room).clamp(SHORTEST, LONGEST);
    let each = power_above(size.div_ceil(line * LINES));
    let mut cells = vec![Cell::default(); usize::try_from(size.div_ceil(each)).unwrap_or_default()];
    for row in rows::walk(view, range, part) {
        let Some((first, last)) = row.offsets else { continue };
        let sign = Sign::of(&row.standing);
        legend.noted[sign as usize] = true;
        for at in first / each..=last / each {
            let (from, to) = (first.max(at * each), last.min(at * each + (each - 1)));
            if let Some(cell) = usize::try_from(at).ok().and_then(|at| cells.get_mut(at)) {
                cell.0[sign as usize] += to - from + 1;
            }
        }
    }
    legend.largest = legend.largest.max(each);
    let mut text = String::new();
    let lines = cells.chunks(usize::try_from(line).unwrap_or(1));
    for (n, line_of) in lines.enumerate() {
        let first: Option<IpAddr> = part.address_at(n as u128 * line * each);
        let first = first.map(|ip| ip.to_string()).unwrap_or_default();
        text += &format!("{INDENT}{first:<label$}{INDENT}{}\n", signs(line_of, colours));
    }
    if each > 1 {
        text += &format!("{INDENT}each sign is {each} addresses\n");
    }
    text
}

/// A line of cells; one colour for neighbours that have the same.
fn signs(cells: &[Cell], colours: bool) -> String {
    let mut text = String::new();
    let mut colour = None;
    for (sign, mark) in cells.iter().map(Cell::drawn) {
        if colours && colour != Some(sign.colour()) {
            text += &format!("\x1b[{}m", sign.colour());
            colour = Some(sign.colour());
        }
        text.push(mark);
    }
    if colour.is_some() {
        text += "\x1b[0m";
    }
    text
}

/// What the signs mean, of those that are there.
#[derive(Default)]
struct Legend {
    noted: [bool; SIGNS.len()],
    /// The most addresses that one sign stands for.
    largest: u128,
}

impl Legend {
    fn to_text(&self, width: usize, colours: bool) -> String {
        let there = SIGNS.into_iter().filter(|sign| self.noted[*sign as usize]);
        let coloured = |sign: Sign| match colours {
            true => format!("\x1b[{}m{}\x1b[0m", sign.colour(), sign.mark()),
            false => sign.mark().to_string(),
        };
        let mut words: Vec<(usize, String)> = there
            .map(|sign| (sign.word().len() + 2, format!("{} {}", coloured(sign), sign.word())))
            .collect();
        if self.largest > 1 && self.noted[Sign::Held as usize] {
            let tenths = "1-9 tenths of them held".to_owned();
            words.push((tenths.len(), tenths));
        }
        let mut text = String::new();
        let mut at = 0;
        for (long, word) in words {
            if at > 0 && at + 3 + long > width {
                text.push('\n');
                at = 0;
            }
            if at > 0 {
                text += "   ";
                at += 3;
            }
            text += &word;
            at += long;
        }
        text.push('\n');
        text
    }
}

fn power_below(number: u128) -> u128 {
    number.checked_ilog2().map_or(1, |power| 1 << power)
}

fn power_above(number: u128) -> u128 {
    number.max(1).checked_next_power_of_two().unwrap_or(1 << 127)
}
