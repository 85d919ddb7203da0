//! Tests in their own processes: for what a process settles once and never again.

use std::{
    env,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

const IS_ALONE: &str = "TENON_TESTS_ALONE";

/// Starts a test of this program in its own process, with these variables set.
///
/// # Panics
/// The program cannot be started.
pub fn start(test: &str, variables: &[(&str, PathBuf)]) -> Child {
    let program = env::current_exe().expect("a program knows its own path");
    let mut command = Command::new(program);
    command.args(["--exact", test, "--nocapture", "--include-ignored"]).env(IS_ALONE, "1");
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

/// Waits for what [`start`] started, which must go well.
///
/// # Panics
/// It does not, or there is no such test.
pub fn finish(test: &str, child: Child) {
    let ended = child.wait_with_output().expect("it was started");
    let said = String::from_utf8_lossy(&ended.stdout);
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{test}: {}\n{said}\n{errors}", ended.status);
    assert!(said.contains("1 passed"), "there is no test '{test}':\n{said}");
}

/// Whether this is the test's own process. If not, it is run in one, with these variables set.
///
/// # Panics
/// The test fails there.
pub fn alone(test: &str, variables: &[(&str, PathBuf)]) -> bool {
    let is_alone = env::var_os(IS_ALONE).is_some();
    if !is_alone {
        finish(test, start(test, variables));
    }
    is_alone
}
