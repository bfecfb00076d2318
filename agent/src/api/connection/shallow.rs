//! Answers no deeper than they can be read: what is nested deeper than [`DEEPEST`] levels is `null` to whoever reads.
//!
//! A real API server takes objects of any depth; `serde_json` reads 128 levels, and nothing of a list in which one object has
//! more. So whoever may write one object, with the token of one node, could keep everybody from reading any. Nothing that
//! Berth reads has more than some twenty levels. Cost: a look at each byte of an answer, a nanosecond or two; nothing is copied
//! where nothing is left out.

use bytes::Bytes;

/// As many as `berth serve` takes.
const DEEPEST: usize = 100;

/// Where in an answer, or in a watch that goes on for ever, its reader is.
#[derive(Default)]
pub(super) struct Shallow {
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl Shallow {
    /// The next part of an answer without what is too deep.
    pub(super) fn part(&mut self, part: Bytes) -> Bytes {
        let mut kept: Vec<u8> = Vec::new();
        // Where what is kept begins, after what was left out.
        let mut from = (self.depth <= DEEPEST).then_some(0);
        for (at, byte) in part.iter().enumerate() {
            if self.in_text {
                self.in_text = self.escaped || *byte != b'"';
                self.escaped = !self.escaped && *byte == b'\\';
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'{' | b'[' => {
                    self.depth += 1;
                    if let Some(begin) = from.filter(|_| self.depth > DEEPEST) {
                        kept.extend_from_slice(&part[begin..at]);
                        kept.extend_from_slice(b"null");
                        from = None;
                    }
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if from.is_none() && self.depth <= DEEPEST {
                        from = Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        match from {
            Some(0) => part,
            Some(begin) => {
                kept.extend_from_slice(&part[begin..]);
                kept.into()
            }
            None => kept.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// In parts of so many bytes.
    fn through(text: &str, size: usize) -> String {
        let mut shallow = Shallow::default();
        let parts = text.as_bytes().chunks(size).map(|part| shallow.part(Bytes::copy_from_slice(part)));
        String::from_utf8(parts.collect::<Vec<_>>().concat()).unwrap()
    }

    fn nested(levels: usize) -> String {
        format!("{}\"}}]\\\"{{\"{}", "{\"a\":[".repeat(levels / 2), "]}".repeat(levels / 2))
    }

    #[test]
    fn what_is_too_deep_is_null_and_the_rest_stays() {
        let beside = json!({"name": "n\\\"{[", "list": [1, [2], {"x": "]}"}]});
        let text = format!("[{beside},{},{beside}]\n{{\"next\":{}}}\n", nested(200), nested(90));
        for size in [1, 2, 3, 7, text.len()] {
            let read = through(&text, size);
            let lines: Vec<Value> = read.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!((&lines[0][0], &lines[0][2]), (&beside, &beside));
            // One level is the list around it.
            let mut deep = &lines[0][1];
            for _ in 0..49 {
                deep = &deep["a"][0];
            }
            assert_eq!(*deep, json!({"a": null}));
            assert_eq!(lines[1], serde_json::from_str::<Value>(text.lines().last().unwrap()).unwrap());
        }
    }

    proptest! {
        #[test]
        fn what_can_be_read_stays_as_it_is(text in "[\\[\\]{}\",:\\\\a ]{0,60}", size in 1usize..9) {
            prop_assert_eq!(through(&text, size), text);
        }
    }
}
