//! Feeds libFuzzer's bytes to the check that the crate's own tests run.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_proto::fuzzing::fuzz_graph_def(data));
