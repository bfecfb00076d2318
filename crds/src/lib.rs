//! The API types (placeholder while the ground floor is laid).
