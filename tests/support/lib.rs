//! Support for the tests across crates: builds fixtures, finds plugins.
