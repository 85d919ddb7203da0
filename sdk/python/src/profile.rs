//! Traces of the steps that run while one is taken.

use crate::{blocking::blocking, fail::Fail};
use pyo3::prelude::*;
use std::{
    fs::File,
    io::BufWriter,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tenon_framework::Code;
use tenon_runtime::trace::ChromeTrace;

static TAKEN: AtomicBool = AtomicBool::new(false);
static TRACE: Mutex<Option<Arc<ChromeTrace>>> = Mutex::new(None);

/// The trace that is taken at present.
pub(crate) fn current() -> Option<Arc<ChromeTrace>> {
    match TAKEN.load(Ordering::Relaxed) {
        false => None,
        true => TRACE.lock().unwrap_or_else(PoisonError::into_inner).clone(),
    }
}

/// Begins a trace of all steps of this process.
#[pyfunction]
pub(crate) fn begin_trace() -> Result<(), Fail> {
    let mut trace = TRACE.lock().unwrap_or_else(PoisonError::into_inner);
    if trace.is_some() {
        return Err(Fail::precondition("a trace is taken already: end it first"));
    }
    *trace = Some(Arc::new(ChromeTrace::new()));
    TAKEN.store(true, Ordering::Relaxed);
    Ok(())
}

/// Ends the trace and writes it; returns the number of spans.
#[pyfunction]
pub(crate) fn end_trace(py: Python<'_>, path: PathBuf) -> Result<usize, Fail> {
    TAKEN.store(false, Ordering::Relaxed);
    let trace = TRACE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let trace = trace.ok_or_else(|| Fail::precondition("no trace is taken"))?;
    blocking(py, || {
        let written = File::create(&path).and_then(|file| trace.write(BufWriter::new(file)));
        written.map_err(|error| {
            Fail::new(
                Code::FAILED_PRECONDITION,
                format!("{}: {error}; expected a file that can be written", path.display()),
            )
        })?;
        Ok(trace.len())
    })
}
