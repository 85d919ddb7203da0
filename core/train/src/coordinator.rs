//! Threads that stop together.
//!
//! # States
//! A coordinator *runs* from [`Coordinator::new`] on, and is *stopped* from the first request on, for good. The first error
//! that a request gives is kept, unless it is a clean end; errors after the stop are consequences of it and are dropped.
//! Each thread is listed from [`Coordinator::spawn`] until its function has returned or panicked.
//!
//! # Invariants
//! - `stopped` changes once, under the lock, and every wait is woken by the change.
//! - A thread leaves the list whichever way it ends.

use crate::TrainError;
use std::{
    any::Any,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use tenon_framework::{
    Code,
    sync::{Condvar, Mutex},
};
use tenon_runtime::SessionError;

/// How long threads may take to end after a stop, if the caller has no other wish.
pub const GRACE: Duration = Duration::from_secs(120);

/// Whether an error is how work ends: there is no more input (`OUT_OF_RANGE`), or a queue or the session was closed
/// (`CANCELLED`).
pub fn is_clean_end(error: &SessionError) -> bool {
    matches!(error.code, Code::OUT_OF_RANGE | Code::CANCELLED)
}

/// Stops several threads together, and keeps the first error. Clones are the same coordinator.
///
/// ```
/// use std::time::Duration;
/// use tenon_framework::Code;
/// use tenon_runtime::SessionError;
/// use tenon_training::Coordinator;
///
/// let coordinator = Coordinator::new();
/// coordinator.spawn("reader", |coordinator| {
///     while !coordinator.should_stop() {
///         coordinator.wait_for_stop(Some(Duration::from_millis(1)));
///     }
///     Ok(())
/// })?;
/// coordinator.spawn("writer", |_| Err(SessionError::new(Code::DATA_LOSS, "the disk is full")))?;
/// let error = coordinator.join(Duration::from_secs(10)).unwrap_err();
/// assert_eq!(error.code(), Code::DATA_LOSS);
/// # Ok::<(), tenon_training::TrainError>(())
/// ```
#[derive(Clone, Default)]
pub struct Coordinator {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stopped: Option<Instant>,
    first: Option<SessionError>,
    /// The names of the threads that run.
    running: BTreeMap<u64, String>,
    next: u64,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared { state: Mutex::new(State::default()), changed: Condvar::new() }
    }
}

impl Coordinator {
    /// A coordinator that runs.
    pub fn new() -> Coordinator {
        Coordinator::default()
    }

    /// Whether a stop was requested.
    pub fn should_stop(&self) -> bool {
        self.shared.state.lock().stopped.is_some()
    }

    /// Requests a stop without an error.
    pub fn request_stop(&self) {
        self.stop(None);
    }

    /// Requests a stop because of an error. It is kept if it is the first one and no clean end.
    pub fn request_stop_with(&self, error: SessionError) {
        self.stop(Some(error));
    }

    fn stop(&self, error: Option<SessionError>) {
        let mut state = self.shared.state.lock();
        if state.stopped.is_none() {
            state.stopped = Some(Instant::now());
            state.first = error.filter(|error| !is_clean_end(error));
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// The error that was kept.
    pub fn error(&self) -> Option<SessionError> {
        self.shared.state.lock().first.clone()
    }

    /// Waits for a stop, at most this long. Returns whether a stop was requested.
    pub fn wait_for_stop(&self, timeout: Option<Duration>) -> bool {
        self.wait_until(timeout, |state| state.stopped.is_some())
    }

    /// Waits for a stop, or for what threads of this coordinator bring about before they end. Returns whether a stop was
    /// requested.
    pub(crate) fn wait_for_stop_or(&self, is_over: impl Fn() -> bool) -> bool {
        self.wait_until(None, |state| state.stopped.is_some() || is_over());
        self.should_stop()
    }

    /// Waits until all threads have ended, at most this long. Returns whether they have.
    pub(crate) fn wait_for_threads(&self, timeout: Duration) -> bool {
        self.wait_until(Some(timeout), |state| state.running.is_empty())
    }

    fn wait_until(&self, timeout: Option<Duration>, is_met: impl Fn(&State) -> bool) -> bool {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.shared.state.lock();
        while !is_met(&state) {
            state = match end {
                None => self.shared.changed.wait(state),
                Some(end) => {
                    let Some(left) = end.checked_duration_since(Instant::now()) else {
                        return false;
                    };
                    self.shared.changed.wait_timeout(state, left)
                }
            };
        }
        true
    }

    /// Starts a thread. An error of its function, or a panic, requests a stop.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn spawn(
        &self,
        name: &str,
        function: impl FnOnce(&Coordinator) -> Result<(), SessionError> + Send + 'static,
    ) -> Result<(), TrainError> {
        let mut state = self.shared.state.lock();
        let number = state.next;
        state.next += 1;
        state.running.insert(number, name.to_owned());
        drop(state);
        let running = Running { coordinator: self.clone(), number };
        let thread_name = name.to_owned();
        let body = move || {
            // It is dropped last, also where the function panics.
            let running = running;
            let coordinator = &running.coordinator;
            match catch_unwind(AssertUnwindSafe(|| function(coordinator))) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => coordinator.request_stop_with(error),
                Err(panic) => {
                    let message = format!("thread '{thread_name}' panicked: {}", told(&*panic));
                    coordinator.request_stop_with(SessionError::new(Code::INTERNAL, message));
                }
            }
        };
        // If the thread does not start, the closure is dropped, and the thread leaves the list.
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(body)
            .map(drop)
            .map_err(|source| TrainError::Thread { name: name.to_owned(), source })
    }

    /// Waits until all threads have ended, and after a stop for at most `grace`. Threads that still run then are detached.
    ///
    /// # Errors
    /// The first error that was kept; otherwise `DEADLINE_EXCEEDED` with the names of the threads that still run.
    pub fn join(&self, grace: Duration) -> Result<(), TrainError> {
        let mut state = self.shared.state.lock();
        while !state.running.is_empty() {
            let left = match state.stopped {
                None => None,
                Some(since) => match grace.checked_sub(since.elapsed()) {
                    None => break,
                    left => left,
                },
            };
            state = match left {
                None => self.shared.changed.wait(state),
                Some(left) => self.shared.changed.wait_timeout(state, left),
            };
        }
        let threads: Vec<String> = state.running.values().cloned().collect();
        match (state.first.clone(), threads.is_empty()) {
            (None, true) => Ok(()),
            (None, false) => Err(TrainError::Threads { threads, grace }),
            (Some(error), true) => Err(error.into()),
            (Some(error), false) => {
                tracing::warn!(
                    "threads still run {grace:?} after the stop: {}",
                    threads.join(", ")
                );
                Err(error.into())
            }
        }
    }
}

/// A thread in the list of those that run.
struct Running {
    coordinator: Coordinator,
    number: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        let shared = &self.coordinator.shared;
        shared.state.lock().running.remove(&self.number);
        shared.changed.notify_all();
    }
}

/// What a panic said.
fn told(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn lost(message: &str) -> SessionError {
        SessionError::new(Code::DATA_LOSS, message)
    }

    #[test]
    fn the_first_error_is_kept() {
        let coordinator = Coordinator::new();
        coordinator.request_stop_with(lost("first"));
        coordinator.request_stop_with(lost("second"));
        assert_eq!(coordinator.join(LONG).unwrap_err().to_string(), "first");
    }

    #[test]
    fn a_clean_end_is_no_error() {
        for code in [Code::OUT_OF_RANGE, Code::CANCELLED] {
            let coordinator = Coordinator::new();
            let ended = move |_: &Coordinator| Err(SessionError::new(code, "the end"));
            coordinator.spawn("reader", ended).unwrap();
            coordinator.join(LONG).unwrap();
            assert!(coordinator.should_stop());
        }
    }

    #[test]
    fn what_follows_a_stop_is_dropped() {
        let coordinator = Coordinator::new();
        coordinator.request_stop();
        coordinator.request_stop_with(lost("late"));
        coordinator.join(LONG).unwrap();
    }

    #[test]
    fn a_panic_is_an_error_that_names_the_thread() {
        let coordinator = Coordinator::new();
        coordinator.spawn("reader", |_| panic!("no {}", "input")).unwrap();
        let error = coordinator.join(LONG).unwrap_err();
        assert_eq!(error.code(), Code::INTERNAL);
        assert_eq!(error.to_string(), "thread 'reader' panicked: no input");
    }

    #[test]
    fn threads_that_do_not_end_are_named() {
        let coordinator = Coordinator::new();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let waits = move |_: &Coordinator| {
            let _ = released.recv();
            Ok(())
        };
        coordinator.spawn("stuck", waits).unwrap();
        coordinator.spawn("quick", |_| Ok(())).unwrap();
        coordinator.request_stop();
        let error = coordinator.join(Duration::from_millis(200)).unwrap_err();
        assert_eq!(error.code(), Code::DEADLINE_EXCEEDED);
        assert!(error.to_string().contains("stuck"), "{error}");
        assert!(!error.to_string().contains("quick"), "{error}");
        drop(release);
        coordinator.join(LONG).unwrap();
    }
}
