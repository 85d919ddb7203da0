//! Tests of what is committed beside the tables: the C header and the table of sizes and offsets.
//!
//! They read files and start compilers, which Miri does not.
#![cfg(not(miri))]

mod compile;
mod header;
mod layout;
mod support;
