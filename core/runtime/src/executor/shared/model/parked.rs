//! Models of a call that is parked and resumed. A call that is never resumed does not end; one that two threads drive
//! at once finds that out.

use super::{
    super::{Parked, StepShared, Wait},
    error, node, shared, with,
};
use crate::executor::callee::Progress;
use loom::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use std::{sync::Arc, time::Instant};
use tenon_framework::Code;

/// What is left of a call when it has ended.
#[derive(Default)]
struct Ended {
    /// How often it ended.
    times: AtomicUsize,
    /// Whether a thread drives it.
    driven: AtomicBool,
    /// The nodes that became ready.
    nodes: Mutex<Vec<u32>>,
}

impl Ended {
    fn times(&self) -> usize {
        self.times.load(Ordering::Relaxed)
    }

    fn nodes(&self) -> Vec<u32> {
        let mut nodes = self.nodes.lock().unwrap().clone();
        nodes.sort_unstable();
        nodes
    }
}

/// A call of a function, as far as its shared part has to do with it.
struct Call {
    shared: Arc<StepShared>,
    ended: Arc<Ended>,
    /// Receivers whose values never come. They end when the call sees that it is stopped.
    receivers: usize,
}

impl Call {
    /// As `StepState::advance`.
    fn advance(&mut self) -> Progress {
        assert!(!self.ended.driven.swap(true, Ordering::Relaxed), "two threads drive it");
        let mut inbox = Vec::new();
        let progress = loop {
            if self.shared.is_stopped() {
                (0..std::mem::take(&mut self.receivers)).for_each(|_| self.shared.lower(None));
            }
            match self.shared.wait(&mut inbox, Some(Instant::now())) {
                Wait::Idle => break Progress::Done,
                Wait::Ready => {
                    let ready = inbox.drain(..).map(|ready| ready.node);
                    self.ended.nodes.lock().unwrap().extend(ready);
                }
                Wait::TimedOut => break Progress::Pending,
            }
        };
        self.ended.driven.store(false, Ordering::Relaxed);
        progress
    }

    fn go(self: Box<Self>) {
        let shared = Arc::clone(&self.shared);
        if let Some(call) = shared.drive_or_park(self, Call::advance) {
            call.ended.times.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Parked for Call {
    /// Drives the call on the thread that completed something.
    fn resume(self: Box<Self>) {
        self.go();
    }
}

/// A call with this many pieces of outstanding work, which is not driven yet.
fn call(outstanding: usize, receivers: usize) -> (Arc<StepShared>, Arc<Ended>, Box<Call>) {
    let (shared, ended) = (shared(), Arc::<Ended>::default());
    shared.begin(1);
    (0..outstanding).for_each(|_| shared.raise());
    let call = Call { shared: Arc::clone(&shared), ended: Arc::clone(&ended), receivers };
    (shared, ended, Box::new(call))
}

/// Work is completed while the call is parked: the call sees it, and ends once.
#[test]
fn a_completion_resumes_a_call_once() {
    loom::model(|| {
        let (shared, ended, call) = call(2, 0);
        let first = with(&shared, |shared| shared.lower(Some(node(1))));
        let second = with(&shared, |shared| shared.lower(Some(node(2))));
        call.go();
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(ended.times(), 1);
        assert_eq!(ended.nodes(), [1, 2]);
    });
}

/// The last work of a call has no result: its end alone lets the call go on.
#[test]
fn an_end_without_a_result_resumes_a_call() {
    loom::model(|| {
        let (shared, ended, call) = call(1, 0);
        let work = with(&shared, |shared| shared.lower(None));
        call.go();
        work.join().unwrap();
        assert_eq!((ended.times(), ended.nodes()), (1, Vec::new()));
    });
}

/// A call waits for a value that never comes: cancelling its step ends it, also when it happens while the call is
/// parked.
#[test]
fn cancelling_ends_a_parked_call() {
    loom::model(|| {
        let (shared, ended, call) = call(1, 1);
        let canceller = with(&shared, |shared| shared.cancel_running());
        call.go();
        canceller.join().unwrap();
        assert_eq!((ended.times(), ended.nodes()), (1, Vec::new()));
    });
}

/// A call is cancelled while a kernel of it runs and a value does not come: it ends once, and only after the kernel.
#[test]
fn a_cancelled_call_waits_for_its_kernels() {
    loom::model(|| {
        let (shared, ended, call) = call(2, 1);
        let canceller = with(&shared, |shared| shared.cancel_running());
        let kernel = {
            let ended = Arc::clone(&ended);
            with(&shared, move |shared| {
                assert_eq!(ended.times(), 0, "the kernel still runs");
                shared.lower(Some(node(1)));
            })
        };
        call.go();
        canceller.join().unwrap();
        kernel.join().unwrap();
        assert_eq!((ended.times(), ended.nodes()), (1, vec![1]));
    });
}

/// Two kernels fail while the call is parked or about to be: it ends once, with one of the errors.
#[test]
fn errors_resume_a_call_once() {
    loom::model(|| {
        let (shared, ended, call) = call(2, 0);
        let fail = |shared: &Arc<StepShared>| {
            shared.fail(error(Code::INTERNAL));
            shared.lower(None);
        };
        let kernels = [with(&shared, fail), with(&shared, fail)];
        call.go();
        kernels.into_iter().for_each(|kernel| kernel.join().unwrap());
        assert_eq!(ended.times(), 1);
        assert!(shared.error().is_some());
    });
}
