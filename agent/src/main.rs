//! The one binary, `berth`.
fn main() {}
