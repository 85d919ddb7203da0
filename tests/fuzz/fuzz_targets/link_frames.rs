//! Feeds libFuzzer's bytes to a link of the data plane as frames of its peer.

#![no_main]

use tenon_cluster::rogue::frames;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(fault) = frames(data) {
        panic!("{fault}");
    }
});
