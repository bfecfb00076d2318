//! (module capture)
