//! Tables for people: columns in capitals, two spaces between them, as `kubectl` prints them.
//!
//! Plans print themselves with it, and so does the command line whatever else it shows. It knows nothing of what is in
//! its cells. Cost: linear in the text.

use std::fmt;

/// What a terminal has at least, these days; wider data makes a wider table.
const WIDTH: usize = 100;
/// The last column is wrapped, but never narrower than this.
const NARROWEST: usize = 24;
const GAP: usize = 2;

/// A column's title, and how its cells stand.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    title: &'static str,
    width: usize,
    right: bool,
}

impl From<&'static str> for Column {
    fn from(title: &'static str) -> Self {
        Self { title, width: title.chars().count(), right: false }
    }
}

impl Column {
    /// Numbers line up at their end.
    #[must_use]
    pub fn right(self) -> Self {
        Self { right: true, ..self }
    }

    /// As wide as that even where its cells are shorter, so that tables of one kind look alike.
    #[must_use]
    pub fn at_least(self, width: usize) -> Self {
        Self { width: self.width.max(width), ..self }
    }

    fn pad(self, cell: &str) -> String {
        let width = self.width;
        if self.right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    }
}

/// Rows under a header. Prints each line with its end.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    width: usize,
}

impl Table {
    pub fn new<C: Into<Column>>(columns: impl IntoIterator<Item = C>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new(), width: WIDTH }
    }

    /// To be as wide as that, where its last column can make it so.
    #[must_use]
    pub fn within(self, width: usize) -> Self {
        Self { width, ..self }
    }

    /// Has it rows?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One cell per column.
    pub fn row(&mut self, cells: Vec<String>) {
        for (column, cell) in self.columns.iter_mut().zip(&cells) {
            *column = column.at_least(cell.chars().count());
        }
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    /// A last column that doesn't fit goes on in further lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.columns.len().saturating_sub(1);
        let left: usize = self.columns.iter().take(last).map(|column| column.width + GAP).sum();
        let room = self.width.saturating_sub(left).max(NARROWEST);
        let header = self.columns.iter().map(|column| column.title.to_owned()).collect();
        for cells in std::iter::once(&header).chain(&self.rows) {
            let mut line = String::new();
            for (cell, column) in cells.iter().zip(&self.columns).take(last) {
                line.push_str(&column.pad(cell));
                line.push_str(&" ".repeat(GAP));
            }
            for part in wrap(cells.last().map_or("", String::as_str), room) {
                line.push_str(&part);
                writeln!(f, "{}", line.trim_end())?;
                line = " ".repeat(left);
            }
        }
        Ok(())
    }
}

/// A text after a word that opens it; what doesn't fit goes on below the text.
pub(crate) fn hang(head: &str, text: &str) -> String {
    let left = head.chars().count();
    let lines = wrap(text, WIDTH.saturating_sub(left).max(NARROWEST));
    format!("{head}{}", lines.join(&format!("\n{:left$}", "")))
}

/// Breaks a text between words; a longer word stays whole. At least one line.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{Column, Table};

    #[test]
    fn columns_line_up_and_the_last_one_wraps() {
        let mut table = Table::new(["OFFSET", "ADDRESS", "DETAIL"]);
        table.row(vec!["0".into(), "10.0.0.1".into(), String::new()]);
        table.row(vec!["1".into(), "fd00::1".into(), "word ".repeat(20)]);
        let lines: Vec<String> = table.to_string().lines().map(str::to_owned).collect();
        assert_eq!(lines[0], "OFFSET  ADDRESS   DETAIL");
        assert_eq!(lines[1], "0       10.0.0.1");
        assert_eq!(lines[2], format!("1       fd00::1   {}", ["word"; 16].join(" ")));
        assert_eq!(lines[3], format!("{:18}{}", "", ["word"; 4].join(" ")));
        assert!(lines.iter().all(|line| line.len() <= 100));
    }

    #[test]
    fn a_table_is_as_wide_as_the_terminal() {
        let mut table = Table::new(["NAME", "RANGES"]).within(40);
        table.row(vec!["traffic-1".into(), "10.0.0.1-10.0.0.9, ".repeat(4)]);
        let text = table.to_string();
        assert!(text.lines().count() > 2 && text.lines().all(|line| line.chars().count() <= 40), "{text}");
    }

    #[test]
    fn a_column_may_stand_at_the_right_and_have_a_width_of_its_own() {
        let mut table =
            Table::new([Column::from("N").right(), Column::from("VERB").at_least(6), "WHAT".into()]);
        table.row(vec!["9".into(), "set".into(), "a".into()]);
        table.row(vec!["10".into(), "delete".into(), "b".into()]);
        assert_eq!(table.to_string(), " N  VERB    WHAT\n 9  set     a\n10  delete  b\n");
    }
}
