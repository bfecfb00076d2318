//! The table of `crds/cases`, read for tests against servers.
