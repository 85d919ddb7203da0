//! What keeps the tree in the shape that the design gives it: crates and modules import one way, two crates are named in
//! one place each, unsafe code stays where it is expected, files and functions stay short.
//!
//! The tests read manifests (`cargo metadata`) and sources; they build and run nothing. Each rule has its
//! table beside it; an exception is a row with a reason, and a row that no longer excuses anything fails too.

mod externals;
mod growth;
mod imports;
mod layers;
mod modules;
mod op_names;
mod sizes;
mod text;
mod tree;
mod unsafe_code;
