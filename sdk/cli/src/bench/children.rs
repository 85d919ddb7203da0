//! Measuring in several processes: the addresses of memory, and so its speed, differ between them.

use super::{BenchArgs, Plan, measured};
use crate::{args::Global, error::CliError, output::complain, progress::progress};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};
use tenon_benchkit::{record::Report, run::merge};
use tenon_runtime::host::files::write_bytes;

/// Measures, and leaves the report for the process that gathers.
///
/// # Errors
/// As measuring; the report cannot be written.
pub fn be_one(
    global: &Global,
    args: &BenchArgs,
    plan: &Plan,
    file: &Path,
) -> Result<ExitCode, CliError> {
    let report = measured(global, args, plan)?;
    let written = serde_json::to_vec(&report).map_err(std::io::Error::from);
    let written = written.and_then(|bytes| write_bytes(file, bytes));
    written.map_err(|source| CliError::File { file: file.to_owned(), done: "written", source })?;
    Ok(ExitCode::SUCCESS)
}

/// Measures in their own processes, one after the other, and puts their samples together.
///
/// # Errors
/// One of them fails: what it says.
pub fn gather(plan: &Plan, count: usize) -> Result<Report, CliError> {
    let bar = progress(count as u64, "processes");
    let mut reports = Vec::with_capacity(count);
    for process in 0..count {
        bar.set_position(process as u64);
        reports.push(child(process)?);
    }
    bar.finish_and_clear();
    let merged =
        merge(reports).ok_or(CliError::Child { said: "no process measured".to_owned() })?;
    let mut report = merged;
    report.run.command.clone_from(&plan.options.command);
    Ok(report)
}

/// The report of one process.
fn child(process: usize) -> Result<Report, CliError> {
    let file = Scratch::new(process);
    let lost = |source| CliError::File { file: file.path.clone(), done: "read", source };
    let executable = env::current_exe().map_err(lost)?;
    let output = Command::new(executable)
        .args(env::args_os().skip(1))
        .arg("--child")
        .arg(process.to_string())
        .arg("--child-report")
        .arg(&file.path)
        .stdin(Stdio::null())
        .output()
        .map_err(lost)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(CliError::Child { said: said.trim().to_owned() });
    }
    if process == 0 && !said.trim().is_empty() {
        complain(said.trim());
    }
    let bytes = fs::read(&file.path).map_err(lost)?;
    serde_json::from_slice(&bytes).map_err(|error| lost(error.into()))
}

/// A file that goes with this value.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new(process: usize) -> Scratch {
        let name = format!("tenon-bench-{}-{process}.json", std::process::id());
        Scratch { path: env::temp_dir().join(name) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A file that was never written is not there.
        let _ = fs::remove_file(&self.path);
    }
}
