//! Bytes taken as archives of NumPy, or as arrays of archives whose checksums are right.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::{path::PathBuf, sync::LazyLock};

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("tenon-fuzz-{}.npz", std::process::id())));

fuzz_target!(|bytes: &[u8]| {
    tenon_testkit::npz::fuzzing::judge(bytes, &FILE);
});
