use tenon_sdk::prelude::*;

register_op!("Same", inputs = "x: float");
register_op!("Other", cases = "any; x: [n]");

fn main() {}
