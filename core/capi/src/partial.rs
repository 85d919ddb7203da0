//! Steps that are fed and fetched in parts.
//!
//! The handle that C has of one is a text. It belongs to the caller; the step belongs to the session, and ends with it.

use crate::{
    fail::Failure,
    operation::{OpRef, TF_Output},
    raw::{Array, Out},
    run::{Signature, forget, read, write},
    session::{Place, TF_Session, session},
    status::TF_Status,
    tensor::TF_Tensor,
};
use std::{
    collections::{HashMap, HashSet},
    ffi::{CStr, CString, c_char, c_int},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tenon_framework::{Code, Tensor, sync::Mutex};
use tenon_runtime::{CallableOptions, PartialRun, RunOptions};

/// A step that is run in parts.
enum Run {
    Here(PartialRun),
    Server(RemoteRun),
}

/// A step on a server.
struct RemoteRun {
    /// The server's handle.
    handle: String,
    /// The feeds and the fetches that no part has had: without any, the step is done.
    left: Mutex<HashSet<String>>,
}

/// The steps of a session that are run in parts, by handle.
pub(crate) struct PartialRuns {
    runs: Mutex<HashMap<CString, Arc<Run>>>,
    next: AtomicU64,
}

impl Default for PartialRuns {
    fn default() -> PartialRuns {
        PartialRuns { runs: Mutex::new(HashMap::new()), next: AtomicU64::new(1) }
    }
}

impl PartialRuns {
    fn add(&self, run: Run) -> CString {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let handle = crate::status::c_text(&format!("partial-run-{number}"));
        self.runs.lock().insert(handle.clone(), Arc::new(run));
        handle
    }

    fn find(&self, handle: &CStr) -> Result<Arc<Run>, Failure> {
        self.runs.lock().get(handle).cloned().ok_or_else(|| {
            Failure::invalid(format!(
                "partial run {handle:?} was not set up in this session, or is complete"
            ))
        })
    }

    fn remove(&self, handle: &CStr) {
        // The step is dropped without the lock.
        let gone = self.runs.lock().remove(handle);
        drop(gone);
    }

    /// Cancels all of them.
    pub(crate) fn clear(&self) {
        let gone = std::mem::take(&mut *self.runs.lock());
        drop(gone);
    }
}

/// A handle that C passes back: null, or a text that [`TF_SessionPRunSetup`] gave.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Handle(*const c_char);

impl Handle {
    fn text(&self) -> Result<&CStr, Failure> {
        if self.0.is_null() {
            return Err(Failure::null("the handle of the partial run"));
        }
        // SAFETY: the caller in C passes back a handle that it was given and has not deleted.
        Ok(unsafe { CStr::from_ptr(self.0) })
    }
}

fn set_up(found: &TF_Session, signature: Signature<'_>) -> Result<CString, Failure> {
    found.follow()?;
    let names = signature.names(found)?;
    match &found.place {
        Place::Here(session) => {
            // As in TensorFlow, feeds have any shape.
            let names = CallableOptions { feeds_of_any_shape: true, ..names };
            let run = session.partial_run(&names)?;
            Ok(found.partial.add(Run::Here(run)))
        }
        Place::Server(session) => {
            let handle = session.set_up_partial_run(&names)?;
            let left = names.feeds.into_iter().chain(names.fetches).collect();
            Ok(found.partial.add(Run::Server(RemoteRun { handle, left: Mutex::new(left) })))
        }
    }
}

/// Runs a part of a step, and says whether the step is done.
fn run_part(
    found: &TF_Session,
    run: &Run,
    feeds: &[(&str, Tensor)],
    fetches: &[&str],
) -> Result<(Vec<Tensor>, bool), Failure> {
    match (run, &found.place) {
        (Run::Here(run), _) => {
            let fetched = run.run(feeds, fetches, &RunOptions::default())?;
            Ok((fetched, run.is_done()))
        }
        (Run::Server(run), Place::Server(session)) => {
            let fetched = session.run_part_any_shape(&run.handle, feeds, fetches, found.timeout)?;
            let mut left = run.left.lock();
            for name in feeds.iter().map(|(name, _)| name).chain(fetches) {
                left.remove(*name);
            }
            Ok((fetched, left.is_empty()))
        }
        (Run::Server(_), Place::Here(_)) => Err(Failure::new(
            Code::INTERNAL,
            "a partial run of a server in a session of this process; please report it",
        )),
    }
}

api! {
    /// Begins a step that is fed and fetched in parts, and gives its handle, which the caller deletes.
    fn TF_SessionPRunSetup(
        found: Option<&TF_Session>,
        inputs: Array<'_, TF_Output>,
        input_count: c_int,
        outputs: Array<'_, TF_Output>,
        output_count: c_int,
        targets: Array<'_, Option<OpRef>>,
        target_count: c_int,
        handle: Out<'_, *const c_char>,
        status: Option<&mut TF_Status>,
    ) [status] {
        handle.set(std::ptr::null());
        let signature = Signature {
            feeds: inputs.checked(input_count, "the feeds")?,
            fetches: outputs.checked(output_count, "the fetches")?,
            targets: targets.checked(target_count, "the targets")?,
        };
        handle.set(set_up(session(found)?, signature)?.into_raw());
        Ok(())
    }

    /// Feeds and fetches a part of a step.
    fn TF_SessionPRun(
        found: Option<&TF_Session>,
        handle: Handle,
        inputs: Array<'_, TF_Output>,
        input_values: Array<'_, Option<&TF_Tensor>>,
        input_count: c_int,
        outputs: Array<'_, TF_Output>,
        output_values: Out<'_, Option<Box<TF_Tensor>>>,
        output_count: c_int,
        targets: Array<'_, Option<OpRef>>,
        target_count: c_int,
        status: Option<&mut TF_Status>,
    ) [status] {
        let values = output_values;
        let (found, handle) = (session(found)?, handle.text()?);
        let signature = Signature {
            feeds: inputs.checked(input_count, "the feeds")?,
            fetches: outputs.checked(output_count, "the fetches")?,
            targets: targets.checked(target_count, "the targets")?,
        };
        forget(&values, signature.fetches.len());
        let run = found.partial.find(handle)?;
        let names = signature.names(found)?;
        let feeds = names.feeds.iter().map(String::as_str).zip(read(input_values, input_count)?);
        let fetches: Vec<&str> = names.fetches.iter().map(String::as_str).collect();
        let (fetched, is_done) = run_part(found, &run, &feeds.collect::<Vec<_>>(), &fetches)?;
        if is_done {
            found.partial.remove(handle);
        }
        write(&fetched, &values)
    }

    /// Deletes a handle. The step goes on until it is complete, or its session is deleted.
    fn TF_DeletePRunHandle(handle: Handle) {
        if !handle.0.is_null() {
            // SAFETY: `TF_SessionPRunSetup` gave the text by `into_raw`, and the caller uses it no longer.
            drop(unsafe { CString::from_raw(handle.0.cast_mut()) });
        }
    }
}
