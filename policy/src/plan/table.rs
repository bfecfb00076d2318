//! A plan as a table for people.

use super::Plan;
use std::fmt;

/// What a terminal has at least, these days.
const WIDTH: usize = 100;
const VERB: usize = 16;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return write!(f, "nothing to do");
        }
        let names = self
            .steps
            .iter()
            .filter_map(|s| s.link())
            .map(|n| n.as_str().chars().count());
        let name = names.max().unwrap_or(0).max("INTERFACE".len());
        let number = self.len().to_string().len().max("STEP".len());
        let left = number + 2 + VERB + 2 + name + 2;
        write!(
            f,
            "{:>number$}  {:VERB$}  {:name$}  WHAT",
            "STEP", "VERB", "INTERFACE"
        )?;
        for (i, step) in self.steps.iter().enumerate() {
            let link = step.link().map_or("-", |n| n.as_str());
            let mut row = format!("{:>number$}  {:VERB$}  {link:name$}  ", i + 1, step.verb());
            for (i, line) in wrap(&step.what(), WIDTH.saturating_sub(left).max(20))
                .iter()
                .enumerate()
            {
                if i > 0 {
                    row.push_str(&format!("\n{:left$}", ""));
                }
                row.push_str(line);
            }
            for line in row.lines() {
                write!(f, "\n{}", line.trim_end())?;
            }
        }
        Ok(())
    }
}

/// Breaks a text between words; a longer word stays whole.
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
