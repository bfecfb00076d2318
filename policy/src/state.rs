//! (module state)
