//! (goldens)
