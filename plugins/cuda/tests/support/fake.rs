//! The libraries of the fake CUDA stack.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The folder with them, built where they are not there or not of these sources.
pub fn folder() -> PathBuf {
    // The folder of the tests across crates: the first test that needs the libraries builds them for all.
    let target =
        Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target folder");
    let folder = target.join("tenon-tests/fake-cuda");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fake_cuda/build.sh");
    let built = Command::new("bash").arg(script).arg(&folder).output().expect("bash is there");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "the fake CUDA stack cannot be built: {said}");
    folder
}
