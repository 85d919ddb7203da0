use tenon_sdk::prelude::*;

struct Same;

register_kernel!("Same": Same);

fn main() {}
