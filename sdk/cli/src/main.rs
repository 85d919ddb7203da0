//! The `tenon` command.
fn main() {}
