//! Where in a document we are: a chain on the stack, made into text only when something has to be said.

use std::fmt;

/// One step deeper into a document. Costs nothing until printed.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(crate) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }

    pub(crate) fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }

    /// The keys below the outermost list item (all of them where there is no list on the way); nothing for
    /// what lies inside a deeper list.
    pub(crate) fn keys_of_item(&self, keys: &mut Vec<&'a str>) -> bool {
        match self {
            Path::Root => true,
            Path::Key(parent, key) => {
                let ok = parent.keys_of_item(keys);
                if ok {
                    keys.push(key);
                }
                ok
            }
            Path::Index(Path::Key(Path::Root, _), _) => {
                keys.clear();
                true
            }
            Path::Index(..) => {
                keys.clear();
                false
            }
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Key(Path::Root, key) => write!(f, "{key}"),
            Path::Key(parent, key) => write!(f, "{parent}.{key}"),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
