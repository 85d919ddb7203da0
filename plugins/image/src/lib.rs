//! Images on the CPU.

tenon_sdk::export_plugin!();
