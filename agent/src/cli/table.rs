//! Tables for people: columns in capitals, two spaces between them, as `kubectl` prints them.

/// What a terminal has at least, these days; wider data makes a wider table.
const WIDTH: usize = 100;
/// The last column is wrapped, but never narrower than this.
const NARROWEST: usize = 24;
const GAP: usize = 2;

#[derive(Debug)]
pub(super) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(header: Vec<&'static str>) -> Self {
        Self {
            header,
            rows: Vec::new(),
        }
    }

    /// One cell per column.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table, each line with its end. A last column that doesn't fit goes on in further lines.
    pub(super) fn print(&self) -> String {
        let widths: Vec<usize> = (0..self.header.len()).map(|at| self.width(at)).collect();
        let last = widths.len().saturating_sub(1);
        let left: usize = widths.iter().take(last).map(|width| width + GAP).sum();
        let room = WIDTH.saturating_sub(left).max(NARROWEST);
        let header = self.header.iter().map(|cell| (*cell).to_owned()).collect();
        let mut text = String::new();
        for cells in std::iter::once(&header).chain(&self.rows) {
            let mut line = String::new();
            for (cell, width) in cells.iter().zip(&widths).take(last) {
                line.push_str(&format!("{cell:<width$}", width = width + GAP));
            }
            for part in wrap(cells.last().map_or("", String::as_str), room) {
                line.push_str(&part);
                text.push_str(line.trim_end());
                text.push('\n');
                line = " ".repeat(left);
            }
        }
        text
    }

    fn width(&self, at: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(at));
        let header = self.header.get(at).map_or(0, |cell| cell.len());
        cells.map(|cell| cell.chars().count()).fold(header, usize::max)
    }
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
    use super::Table;

    #[test]
    fn columns_line_up_and_the_last_one_wraps() {
        let mut table = Table::new(vec!["OFFSET", "ADDRESS", "DETAIL"]);
        table.row(vec!["0".into(), "10.0.0.1".into(), String::new()]);
        table.row(vec!["1".into(), "fd00::1".into(), "word ".repeat(20)]);
        let lines: Vec<String> = table.print().lines().map(str::to_owned).collect();
        assert_eq!(lines[0], "OFFSET  ADDRESS   DETAIL");
        assert_eq!(lines[1], "0       10.0.0.1");
        assert_eq!(lines[2], format!("1       fd00::1   {}", ["word"; 16].join(" ")));
        assert_eq!(lines[3], format!("{:18}{}", "", ["word"; 4].join(" ")));
        assert!(lines.iter().all(|line| line.len() <= 100));
    }
}
