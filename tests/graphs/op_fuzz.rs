//! Calls of the standard ops that are wrong in every way, and graphs that are nearly right: none panics, ends the
//! process, hangs, takes memory without bound, is refused as anything but the caller's mistake, or without the name
//! of an argument (`tenon_testkit::fuzz`).
//!
//! The calls are made, and the graphs run, in a process of their own, which says which comes next, so that one that does
//! not return is known by its number.

mod calls;
mod graphs;
mod watch;
