//! Starting the runtime as the command line says.

use crate::{args::Global, error::CliError, output::complain};
use std::{fs::File, io::BufReader, path::Path};
use tenon_runtime::{
    Runtime, RuntimeOptions, Session,
    host::{LoadError, LoadReport, Rejected, Step, search::Origin},
    proto::{GraphDef, read_graph_def},
};

/// Starts the runtime with the plugins that are named and those that are found. Refused plugins are reported.
///
/// # Errors
/// Settings that are wrong.
pub fn start(global: &Global, threads: Option<usize>) -> Result<(Runtime, LoadReport), CliError> {
    start_with(global, RuntimeOptions { threads, ..RuntimeOptions::default() })
}

/// As [`start`], with options that the command line does not have for all commands.
fn start_with(
    global: &Global,
    mut options: RuntimeOptions,
) -> Result<(Runtime, LoadReport), CliError> {
    // What the command line says comes after what an option of one command says.
    options.settings.set.extend(global.settings()?);
    let (plugins, isolate) = (global.plugins.clone(), global.isolate.clone());
    let options = RuntimeOptions { plugins, isolate, search: true, ..options };
    let (runtime, report) = Runtime::new(options)?;
    let server = tenon_monitor::serve_as_set(&runtime)?;
    tell_refused(&report);
    for warning in &report.warnings {
        complain(&format!("warning: {warning}"));
    }
    if let Some(server) = server {
        let address = server.address();
        complain(&format!(
            "figures of this process: tenon top {address}, or http://{address}/metrics"
        ));
        runtime.attach(server);
    }
    Ok((runtime, report))
}

/// What was refused: a line for each, and one for all that were merely found and are not trusted.
fn tell_refused(report: &LoadReport) {
    let (untrusted, others): (Vec<_>, Vec<_>) = report
        .rejected
        .iter()
        .partition(|rejected| !rejected.candidate.named && rejected.error.step() == Step::Trust);
    for rejected in others {
        let (step, error) = (rejected.error.step(), &rejected.error);
        complain(&format!("plugin refused at step {step}: {error}"));
    }
    match untrusted.as_slice() {
        [] => {}
        [only] => complain(&format!("plugin refused at step trust: {}", only.error)),
        [first, ..] => complain(&not_trusted(first, untrusted.len())),
    }
}

/// One line for several plugins that search found, of which this is the first.
fn not_trusted(first: &Rejected, count: usize) -> String {
    match &first.error {
        LoadError::Digest { trust_file: Some(file), .. } => {
            let file = file.display();
            format!(
                "{count} plugins that were found are not on the list {file} and not loaded: `tenon trust list --file \
                 {file}` shows them, `tenon trust add --found --file {file}` adds them"
            )
        }
        error => format!(
            "{count} plugins that were found are refused at step trust, the first because of this: {error}"
        ),
    }
}

/// As [`start`], where a named plugin that is refused is an error.
///
/// # Errors
/// As [`start`]; a plugin named by `--plugin` is refused.
pub fn start_whole(
    global: &Global,
    threads: Option<usize>,
) -> Result<(Runtime, LoadReport), CliError> {
    start_whole_with(global, RuntimeOptions { threads, ..RuntimeOptions::default() })
}

/// As [`start_whole`], with options that the command line does not have for all commands.
///
/// # Errors
/// As [`start_whole`].
pub fn start_whole_with(
    global: &Global,
    options: RuntimeOptions,
) -> Result<(Runtime, LoadReport), CliError> {
    let (runtime, report) = start_with(global, options)?;
    check_named(&report)?;
    Ok((runtime, report))
}

/// Whether every plugin that the command line names is in use.
///
/// # Errors
/// One is refused.
pub fn check_named(report: &LoadReport) -> Result<(), CliError> {
    let named = |origin| origin == Origin::Explicit;
    match report.rejected.iter().filter(|rejected| named(rejected.candidate.origin)).count() {
        0 => Ok(()),
        count => Err(CliError::Refused { count }),
    }
}

/// Reads a graph.
///
/// # Errors
/// The file cannot be read, or is not a binary `GraphDef`.
pub fn read_graph(path: &Path) -> Result<GraphDef, CliError> {
    let file = || path.to_owned();
    let read = File::open(path).and_then(|open| read_graph_def(BufReader::new(open)));
    let decoded = read.map_err(|source| CliError::File { file: file(), done: "read", source })?;
    decoded.map_err(|source| CliError::Graph { file: file(), source })
}

/// Warns of attributes of the session's graph that mean nothing here.
pub fn warn_of_ignored(session: &Session) {
    if let Some(warning) = session.graph().ignored_attrs_warning(0..u32::MAX) {
        complain(&format!("warning: {warning}"));
    }
}
