tenon_sdk::export_plugin!();
tenon_sdk::export_plugin!();

fn main() {}
