use tenon_sdk::prelude::*;

register_op!("Same", inputs = "x: float");

fn main() {}
