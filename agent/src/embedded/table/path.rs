//! The part of JSONPath that printer columns use: fields, and a filter `[?(@.field=="text")]`.

use serde_json::Value;

/// A way to a value in an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Path(Vec<Step>);

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Where {
        field: String,
        is: String,
    },
    /// Something else: it leads nowhere. A test holds every column of ours against this.
    Unknown,
}

impl Path {
    /// Reads `.a.b[?(@.type=="X")].c`.
    pub(super) fn parse(text: &str) -> Self {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some((filter, after)) = rest.strip_prefix("[?(@.").and_then(|rest| rest.split_once(")]")) {
                let pair = filter.split_once("==").and_then(|(field, is)| {
                    Some((field.trim(), is.trim().strip_prefix('"')?.strip_suffix('"')?))
                });
                steps.push(pair.map_or(Step::Unknown, |(field, is)| Step::Where {
                    field: field.to_owned(),
                    is: is.to_owned(),
                }));
                rest = after;
            } else if let Some(field) = rest.strip_prefix('.') {
                let end = field.find(['.', '[']).unwrap_or(field.len());
                steps.push(Step::Field(field[..end].to_owned()));
                rest = &field[end..];
            } else {
                steps.push(Step::Unknown);
                break;
            }
        }
        Self(steps)
    }

    #[cfg(test)]
    pub(super) fn is_known(&self) -> bool {
        !self.0.contains(&Step::Unknown)
    }

    /// The first value that it leads to.
    pub(super) fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let mut found = vec![object];
        for step in &self.0 {
            found = match step {
                Step::Field(name) => found.into_iter().filter_map(|value| value.get(name)).collect(),
                Step::Where { field, is } => {
                    let items = found.into_iter().filter_map(Value::as_array).flatten();
                    items.filter(|item| item[field.as_str()] == *is.as_str()).collect()
                }
                Step::Unknown => Vec::new(),
            };
        }
        found.into_iter().next()
    }
}
