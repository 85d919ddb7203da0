//! Saves on a thread of their own.
//!
//! # States
//! *Idle*: no save is under way. *Under way*: a thread writes the values that the session holds for it. `begin` and `wait`
//! lead from the second state to the first by the end of the thread, whose error they return; `begin` leads to the second.
//! The lock is held meanwhile, so that callers on several threads come one after the other.

use super::{CopyNames, Ledger, write};
use crate::TrainError;
use std::{
    sync::Arc,
    thread::{self, JoinHandle},
};
use tenon_framework::{
    Code,
    sync::{Mutex, rank},
};
use tenon_runtime::{AnySession, SessionError};

/// The name of the thread.
const THREAD: &str = "tenon-saver";

/// The save that is under way, if there is one.
pub(super) struct UnderWay(Mutex<Option<JoinHandle<Result<(), TrainError>>>>);

impl Default for UnderWay {
    fn default() -> UnderWay {
        UnderWay(Mutex::ranked(rank::SAVER, None))
    }
}

impl UnderWay {
    /// Waits for the former save, takes the values of all variables, and starts the thread that writes them.
    pub fn begin(
        &self,
        session: Arc<dyn AnySession>,
        names: &CopyNames,
        ledger: &Ledger,
        prefix: &str,
    ) -> Result<(), TrainError> {
        let mut thread = self.0.lock();
        ended(thread.take())?;
        let (names, ledger, prefix) = (names.clone(), ledger.clone(), prefix.to_owned());
        if let Err(error) = session.run_step(&[], &[], &[&names.take], None) {
            release(&*session, &names);
            return Err(error.into());
        }
        let body = move || {
            let written = write(&*session, &names.filename, &names.save, &prefix);
            release(&*session, &names);
            written.and_then(|()| ledger.add(&prefix))
        };
        let started = thread::Builder::new().name(THREAD.to_owned()).spawn(body);
        let failed = |source| TrainError::Thread { name: THREAD.to_owned(), source };
        *thread = Some(started.map_err(failed)?);
        Ok(())
    }

    /// Waits for the save.
    pub fn wait(&self) -> Result<(), TrainError> {
        ended(self.0.lock().take())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Err(error) = self.wait() {
            tracing::warn!("a save in the background failed: {error}");
        }
    }
}

fn ended(thread: Option<JoinHandle<Result<(), TrainError>>>) -> Result<(), TrainError> {
    let Some(thread) = thread else { return Ok(()) };
    thread.join().unwrap_or_else(|_| {
        let message = "the thread of a save in the background panicked";
        Err(SessionError::new(Code::INTERNAL, message).into())
    })
}

/// Lets the session forget the values. If it cannot, the next save replaces them.
fn release(session: &dyn AnySession, names: &CopyNames) {
    if let Err(error) = session.run_step(&[], &[], &[&names.release], None) {
        tracing::debug!("the values of a save in the background are still held: {error}");
    }
}
