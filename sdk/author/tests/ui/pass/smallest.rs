#![forbid(unsafe_code)]
#![deny(warnings)]

tenon_sdk::export_plugin!();

fn main() {}
