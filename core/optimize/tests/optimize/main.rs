//! Tests of the passes over a step's graph, one file each. The kernels here are a few lines; the
//! tests across crates use real ones, and random graphs.

mod arithmetic;
mod attention;
mod backward;
mod bench;
mod common_subexpressions;
mod constant_folding;
mod control_edges;
mod dead_branches;
mod driver;
mod elementwise_fusion;
mod facts;
mod gates;
mod growth;
mod identity;
mod layout;
mod pattern_numbers;
mod pooling;
mod recompute;
mod remapping;
mod support;
mod unread;
