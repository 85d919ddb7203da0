//! Models of a session's closing for loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p tenon-runtime --lib model`. A step that no cancellation
//! reaches, or a `close` that is never signalled, is a deadlock, which loom reports.

use super::Gate;
use loom::thread;
use std::sync::Arc;
use tenon_framework::sync::{
    Condvar, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// A step, as closing sees it.
#[derive(Default)]
struct Step {
    armed: AtomicBool,
    cancelled: Mutex<bool>,
    changed: Condvar,
}

impl Step {
    /// Like `StepShared::cancel_running`: a step that has not started is not cancelled.
    fn cancel(&self) {
        if self.armed.load(Ordering::Relaxed) {
            *self.cancelled.lock() = true;
            self.changed.notify_all();
        }
    }

    fn wait(&self) {
        let mut cancelled = self.cancelled.lock();
        while !*cancelled {
            cancelled = self.changed.wait(cancelled);
        }
    }
}

#[test]
fn a_step_is_refused_or_cancelled() {
    loom::model(|| {
        let (gate, step) = (Arc::new(Gate::default()), Arc::new(Step::default()));
        let running = {
            let (gate, step) = (Arc::clone(&gate), Arc::clone(&step));
            thread::spawn(move || {
                step.armed.store(true, Ordering::Relaxed);
                if let Some(_inside) = gate.enter() {
                    step.wait();
                }
            })
        };
        gate.close(|| step.cancel());
        assert!(gate.enter().is_none());
        // A step that arrives now is counted until it finds the gate closed.
        running.join().unwrap();
        assert_eq!(gate.inside(), 0);
    });
}

#[test]
fn the_last_of_several_steps_ends_the_wait() {
    loom::model(|| {
        let (gate, left) = (Arc::new(Gate::default()), Arc::new(AtomicUsize::new(0)));
        let steps = [0, 1].map(|_| {
            let (gate, left) = (Arc::clone(&gate), Arc::clone(&left));
            thread::spawn(move || {
                let entered = gate.enter();
                if entered.is_some() {
                    left.fetch_add(1, Ordering::Relaxed);
                }
                drop(entered);
                left.load(Ordering::Relaxed)
            })
        });
        gate.close(|| ());
        let after = left.load(Ordering::Relaxed);
        for step in steps {
            step.join().unwrap();
        }
        assert_eq!(left.load(Ordering::Relaxed), after, "no step runs after the end");
    });
}
