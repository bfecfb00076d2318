//! (module claim)
