//! (module pool)
