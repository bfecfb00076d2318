//! A plan as text for people: a table of its steps, and under it what is lost besides.

use super::{Loss, Plan, Step};
use crate::table::{self, Column, Table};
use std::fmt;

/// The longest verb is `set port options`: all plans have their columns in the same places.
const VERB: usize = 16;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing to do");
        }
        let number = Column::from("STEP").right();
        let mut table =
            Table::new([number, Column::from("VERB").at_least(VERB), "INTERFACE".into(), "WHAT".into()]);
        for (i, step) in self.steps.iter().enumerate() {
            table.row(cells(i + 1, step));
        }
        f.write_str(table.to_string().trim_end())?;
        for (i, loss) in self.losses.iter().enumerate() {
            let gap = if i == 0 { "\n\n" } else { "\n" };
            write!(f, "{gap}{}", table::hang(head(loss), &loss.to_string()))?;
        }
        Ok(())
    }
}

fn cells(number: usize, step: &Step) -> Vec<String> {
    let link = step.link().map_or("-", |name| name.as_str());
    vec![number.to_string(), step.verb().into(), link.into(), step.what()]
}

fn head(loss: &Loss) -> &'static str {
    match loss {
        Loss::Address { .. } | Loss::Route { .. } | Loss::Kept { .. } => "also lost: ",
        // Whoever is about to cut themselves off shall not overlook it.
        Loss::Link { .. } | Loss::Without { .. } | Loss::LastDefaultRoute { .. } => "WARNING: ",
    }
}
