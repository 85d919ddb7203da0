//! Support for Tenon's benchmarks.
