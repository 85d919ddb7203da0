use tenon_sdk::prelude::*;

fn same(x: f32) -> f32 {
    x
}

register_kernel!("Same" on "CPU": fn same);

fn main() {}
