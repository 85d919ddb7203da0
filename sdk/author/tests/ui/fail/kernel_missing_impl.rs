use tenon_sdk::prelude::*;

struct Same;

register_kernel!("Same" on "CPU": Same);

fn main() {}
