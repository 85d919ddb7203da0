//! Tests of the passes over a step's graph, one file each. Kernels are a few lines of their own here: with real
//! ones, and with random graphs, the tests across crates go on.

mod arithmetic;
mod attention;
mod bench;
mod common_subexpressions;
mod constant_folding;
mod control_edges;
mod dead_branches;
mod driver;
mod elementwise_fusion;
mod facts;
mod growth;
mod identity;
mod layout;
mod pattern_numbers;
mod remapping;
#[path = "../graph/support.rs"]
#[allow(dead_code, reason = "shared with other tests of graphs")]
mod support;
mod unread;
