//! What the tests of the table share.

pub(crate) mod cel;
