//! Bytes as what the process of an isolated plugin says and writes: see `tenon_host::isolate::rogue`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tenon_host::isolate::rogue::play(bytes));
