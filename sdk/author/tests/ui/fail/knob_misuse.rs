use tenon_sdk::prelude::*;

register_knob!("limit": NUMBER = "8", "There is no such kind.");
register_knob!("limit": INT = 8, "The default is a text.");

fn main() {}
