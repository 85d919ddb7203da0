//! Models of a step's shared state for loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p tenon-runtime --lib model`. A driver that is never woken
//! is a deadlock, which loom reports.

use super::{Ready, StepShared, Wait};
use crate::error::StepError;
use loom::thread;
use std::sync::Arc;
use tenon_framework::Code;
use tenon_host::call::Cancellation;

mod parked;

fn shared() -> Arc<StepShared> {
    Arc::new(StepShared::new(Arc::new(Cancellation::new()), None))
}

fn with(
    shared: &Arc<StepShared>,
    run: impl FnOnce(&Arc<StepShared>) + 'static,
) -> thread::JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || run(&shared))
}

fn node(node: u32) -> Ready {
    Ready { partition: 0, node }
}

fn error(code: Code) -> StepError {
    StepError::step(code, "as asked for")
}

/// Waits like the driver, without a deadline, until nothing is outstanding; returns the nodes that
/// became ready.
fn drive(shared: &StepShared) -> Vec<u32> {
    let mut ready = Vec::new();
    while shared.wait(&mut ready, None) != Wait::Idle {}
    ready.iter().map(|ready| ready.node).collect()
}

#[test]
fn the_driver_gets_what_was_outstanding() {
    loom::model(|| {
        let shared = shared();
        shared.begin(1);
        shared.raise();
        shared.raise();
        let first = with(&shared, |shared| shared.lower(Some(node(1))));
        let second = with(&shared, |shared| shared.lower(Some(node(2))));
        let mut nodes = drive(&shared);
        nodes.sort_unstable();
        assert_eq!(nodes, [1, 2]);
        first.join().unwrap();
        second.join().unwrap();
        assert!(!shared.is_untouched());
        shared.reset();
        assert!(shared.is_untouched());
    });
}

/// Work that hands over more work raises the count before it lowers it, so the driver never takes
/// the gap for the end.
#[test]
fn the_step_goes_on_while_work_hands_over_more() {
    loom::model(|| {
        let shared = shared();
        shared.raise();
        let chain = with(&shared, |shared| {
            shared.raise();
            shared.lower(Some(node(1)));
            shared.lower(None);
        });
        assert!(!shared.is_untouched());
        assert_eq!(drive(&shared), [1]);
        chain.join().unwrap();
        assert!(drive(&shared).is_empty());
    });
}

/// Two calls fail: the driver ends after both and sees one of the errors, which stays.
#[test]
fn the_first_error_stays_and_the_driver_ends() {
    loom::model(|| {
        let shared = shared();
        shared.raise();
        shared.raise();
        let first = with(&shared, |shared| {
            shared.fail(error(Code::INTERNAL));
            shared.lower(None);
        });
        let second = with(&shared, |shared| {
            shared.fail(error(Code::UNAVAILABLE));
            shared.lower(None);
        });
        assert!(drive(&shared).is_empty());
        assert!(shared.is_stopped());
        let seen = shared.error().unwrap().code;
        assert!(seen == Code::INTERNAL || seen == Code::UNAVAILABLE);
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(shared.error().unwrap().code, seen);
    });
}

/// Outstanding work that only the driver ends, such as a receiver without a sender: a stop from
/// another thread must reach the waiting driver.
fn stopped_from_elsewhere(stop: fn(&Arc<StepShared>)) {
    loom::model(move || {
        let shared = shared();
        shared.begin(1);
        shared.raise();
        let stopper = with(&shared, stop);
        let mut ready = Vec::new();
        while !shared.is_stopped() {
            assert_eq!(shared.wait(&mut ready, None), Wait::Ready);
        }
        shared.lower(None);
        assert!(drive(&shared).is_empty());
        stopper.join().unwrap();
    });
}

#[test]
fn an_error_from_elsewhere_reaches_a_waiting_driver() {
    stopped_from_elsewhere(|shared| shared.fail(error(Code::INTERNAL)));
}

#[test]
fn cancelling_reaches_a_waiting_driver() {
    stopped_from_elsewhere(|shared| shared.cancel_running());
}

/// A step is cancelled while it ends: it ends, and after a reset no trace of it is left. A late
/// cancellation may stop the next step over the state, but no more.
#[test]
fn cancelling_races_with_the_end() {
    loom::model(|| {
        let shared = shared();
        shared.begin(1);
        shared.raise();
        let canceller = with(&shared, |shared| shared.cancel_running());
        let call = with(&shared, |shared| shared.lower(Some(node(1))));
        assert_eq!(drive(&shared), [1]);
        call.join().unwrap();
        canceller.join().unwrap();
        assert!(shared.is_stopped() && shared.error().is_none());
        shared.reset();
        assert!(!shared.is_stopped() && shared.is_untouched());
        shared.cancel_running();
        assert!(!shared.is_stopped(), "no step runs");
    });
}

/// A call completes a second time while its step ends: either the step fails, or the second
/// completion is refused; the next step over the state is not affected.
#[test]
fn a_late_failure_is_of_its_step_or_of_none() {
    loom::model(|| {
        let shared = shared();
        shared.begin(1);
        shared.raise();
        let call = with(&shared, |shared| shared.lower(Some(node(1))));
        let late = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.fail_step(1, error(Code::INTERNAL)))
        };
        assert_eq!(drive(&shared), [1]);
        let failed = shared.is_stopped();
        if !failed {
            shared.reset();
            shared.begin(2);
            shared.raise();
            shared.lower(None);
            assert!(drive(&shared).is_empty());
            assert!(!shared.is_stopped(), "the next step goes well");
        }
        call.join().unwrap();
        assert_eq!(late.join().unwrap(), failed);
    });
}
