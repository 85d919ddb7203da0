//! Two records beside each other: what changed from one commit to another.

use super::{BenchArgs, read_records, tell, verdict, write_pages};
use crate::{args::Global, error::CliError};
use std::{path::Path, process::ExitCode};
use tenon_benchkit::{
    compare::{Against, against_baseline},
    record::Report,
    run::complete,
};

/// Compares a record with an earlier one; nothing is measured.
///
/// # Errors
/// A file that cannot be read or written.
pub fn compare(
    global: &Global,
    args: &BenchArgs,
    before: &Path,
    after: &Path,
) -> Result<ExitCode, CliError> {
    let (earlier, mut report) = (read_records(before)?, read_records(after)?);
    complete(&mut report, &Against::Chosen, args.threshold);
    let mut found = against_baseline(&report, &earlier, args.threshold);
    found.notes.insert(0, format!("before: {}", described(before, &earlier)));
    found.notes.insert(1, format!("after: {}", described(after, &report)));
    write_pages(args, &report, Some(&found))?;
    tell(global, &report, Some(&found))?;
    Ok(verdict(&report, Some(&found)))
}

/// `before.jsonl, 2026-11-21, commit 0123456789ab, tenon-cpu 0.1.0 abcdef`
fn described(file: &Path, report: &Report) -> String {
    let run = &report.run;
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    let commit = run.commit.as_ref().map(|commit| format!("commit {commit}"));
    let mut measured: Vec<String> = Vec::new();
    for record in &report.records {
        let variant = &record.variant;
        let digest = variant.digest.get(..6).unwrap_or_default();
        let plugin = format!("{} {} {digest}", variant.plugin, variant.plugin_version);
        let plugin = plugin.trim_end().to_owned();
        if !measured.contains(&plugin) {
            measured.push(plugin);
        }
    }
    let parts = [Some(name), Some(run.date.clone()), commit].into_iter().flatten();
    parts.chain(measured).collect::<Vec<_>>().join(", ")
}
