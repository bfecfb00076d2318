//! Shared by the integration tests.
