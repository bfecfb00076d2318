//! What was probably meant by a name that nothing has.

/// So many names are suggested, or listed where none is near.
const NAMED: usize = 5;

/// The end of an error about this name: what was probably meant, else what there is.
pub(super) fn hint(name: &str, known: &[String]) -> String {
    let near = nearest(name, known);
    match (near.as_slice(), known.len()) {
        ([], 0) => "; there is none at all".to_owned(),
        ([], 1..=NAMED) => format!("; there is: {}", known.join(", ")),
        ([], more) => format!("; there is: {} and {} more", known[..NAMED].join(", "), more - NAMED),
        (near, _) => format!("; did you mean {}?", near.join(", ")),
    }
}

/// Names that are a slip of the pen away, nearest first, or that begin alike.
fn nearest<'a>(name: &str, known: &'a [String]) -> Vec<&'a str> {
    let most = (name.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = known
        .iter()
        .map(|other| (distance(name, other), other.as_str()))
        .filter(|(far, other)| *far <= most || (name.len() >= 3 && other.starts_with(name)))
        .collect();
    near.sort_unstable();
    near.into_iter().take(NAMED).map(|(_, other)| other).collect()
}

/// How many characters must be put in, taken out or changed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, hint};

    #[test]
    fn what_was_meant_is_suggested() {
        assert_eq!((distance("traffic", "trafic"), distance("", "abc"), distance("a", "a")), (1, 3, 0));
        let known = ["traffic-1", "traffic-2", "storage"].map(str::to_owned);
        assert_eq!(hint("trafic-1", &known), "; did you mean traffic-1, traffic-2?");
        assert_eq!(hint("stor", &known), "; did you mean storage?");
        assert_eq!(hint("xyz", &known), "; there is: traffic-1, traffic-2, storage");
        assert_eq!(hint("xyz", &[]), "; there is none at all");
    }
}
