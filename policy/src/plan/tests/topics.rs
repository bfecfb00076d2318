//! (topics)
