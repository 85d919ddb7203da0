//! Conformance cases, oracles and comparison.
