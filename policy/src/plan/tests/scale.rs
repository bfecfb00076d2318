//! (scale)
