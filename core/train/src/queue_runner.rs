//! Threads that fill a queue.

use crate::{Coordinator, TrainError, coordinator::is_clean_end};
use std::sync::Arc;
use tenon_framework::{
    Code,
    sync::atomic::{AtomicUsize, Ordering},
};
use tenon_proto::QueueRunnerDef;
use tenon_runtime::{AnySession, SessionError};

/// Fills a queue from threads, one for each node that enqueues.
///
/// Each thread runs its node until the input ends, which is an error with one of the codes in `closed_codes`. The last one
/// to end runs `close`. Another thread waits for the coordinator's stop, and then runs `cancel`, so that no enqueue waits
/// for room any longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRunner {
    /// The name of the queue.
    pub queue: String,
    /// The nodes that enqueue.
    pub enqueue: Vec<String>,
    /// The node that closes the queue; empty for none.
    pub close: String,
    /// The node that closes the queue and cancels the enqueues that wait; empty for none.
    pub cancel: String,
    /// The codes of errors with which the input ends.
    pub closed_codes: Vec<Code>,
}

impl QueueRunner {
    /// From the message that TensorFlow's collection `queue_runners` has.
    ///
    /// # Errors
    /// The message names no queue or no node that enqueues.
    pub fn from_def(def: &QueueRunnerDef) -> Result<QueueRunner, TrainError> {
        if def.queue_name.is_empty() || def.enqueue_op_name.is_empty() {
            let expected = "the name of a queue and at least one node that enqueues";
            let found = format!("queue '{}', {} nodes", def.queue_name, def.enqueue_op_name.len());
            return Err(TrainError::argument("a QueueRunnerDef", expected, found));
        }
        let codes = def.queue_closed_exception_types.iter().map(|code| Code(*code));
        let mut closed_codes: Vec<Code> = codes.collect();
        if closed_codes.is_empty() {
            closed_codes.push(Code::OUT_OF_RANGE);
        }
        Ok(QueueRunner {
            queue: def.queue_name.clone(),
            enqueue: def.enqueue_op_name.clone(),
            close: def.close_op_name.clone(),
            cancel: def.cancel_op_name.clone(),
            closed_codes,
        })
    }

    /// The message.
    pub fn to_def(&self) -> QueueRunnerDef {
        QueueRunnerDef {
            queue_name: self.queue.clone(),
            enqueue_op_name: self.enqueue.clone(),
            close_op_name: self.close.clone(),
            cancel_op_name: self.cancel.clone(),
            queue_closed_exception_types: self.closed_codes.iter().map(|code| code.0).collect(),
        }
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// The system has no thread left; those that were started end with the coordinator.
    pub fn start(
        &self,
        session: &Arc<dyn AnySession>,
        coordinator: &Coordinator,
    ) -> Result<(), TrainError> {
        let filling = Arc::new(AtomicUsize::new(self.enqueue.len()));
        for node in &self.enqueue {
            let (runner, session, node) = (self.clone(), Arc::clone(session), node.clone());
            let filling = Arc::clone(&filling);
            let name = format!("{}: {node}", self.queue);
            coordinator.spawn(&name, move |coordinator| {
                let is_over = runner.fill(&*session, &node, coordinator);
                let is_last = filling.fetch_sub(1, Ordering::AcqRel) == 1;
                if is_over? && is_last && !runner.close.is_empty() {
                    session.run_step(&[], &[], &[&runner.close], None)?;
                }
                Ok(())
            })?;
        }
        if self.cancel.is_empty() {
            return Ok(());
        }
        let (cancel, session) = (self.cancel.clone(), Arc::clone(session));
        coordinator.spawn(&format!("{}: {cancel}", self.queue), move |coordinator| {
            let is_over = || filling.load(Ordering::Acquire) == 0;
            if coordinator.wait_for_stop_or(is_over) {
                // A queue that is closed already needs no cancellation.
                if let Err(error) = session.run_step(&[], &[], &[&cancel], None) {
                    tracing::debug!("'{cancel}' after the stop: {error}");
                }
            }
            Ok(())
        })
    }

    /// Enqueues until the input ends or the coordinator stops. Returns whether the input ended.
    fn fill(
        &self,
        session: &dyn AnySession,
        node: &str,
        coordinator: &Coordinator,
    ) -> Result<bool, SessionError> {
        while !coordinator.should_stop() {
            match session.run_step(&[], &[], &[node], None) {
                Ok(_) => {}
                Err(error) if self.closed_codes.contains(&error.code) => return Ok(true),
                Err(error) if is_clean_end(&error) && coordinator.should_stop() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}
