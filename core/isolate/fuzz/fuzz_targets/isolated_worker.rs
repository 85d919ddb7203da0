//! Bytes as what the process of an isolated plugin says and writes: see `tenon_isolate::rogue`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tenon_isolate::rogue::play(bytes));
