use tenon_sdk::prelude::*;

struct Plain;

register_device!("PLAIN": Plain);

fn main() {}
