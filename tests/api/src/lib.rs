//! What tests of the API share.
