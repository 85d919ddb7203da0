//! Bytes taken as files of checkpoints, or as blocks whose checksums are right.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::{path::PathBuf, sync::LazyLock};

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("tenon-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
    folder
});

fuzz_target!(|bytes: &[u8]| {
    tenon_bundle::fuzzing::judge(bytes, &FOLDER);
});
