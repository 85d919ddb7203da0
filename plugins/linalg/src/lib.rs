//! Decompositions, solvers and inverses of matrices on the CPU.

tenon_sdk::export_plugin!();
