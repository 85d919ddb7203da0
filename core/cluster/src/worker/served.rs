//! What the task at the other end of a link gets.

use super::{
    Answered, WorkerService,
    transfer::{Awaited, answer},
};
use crate::{
    keys::task_of,
    plane::{Hold, Serve},
    refusal::Refusal,
    transport::{Done, Pusher, Withdraw},
    wire::Answer,
};
use std::sync::Arc;
use tenon_framework::sync::Mutex;
use tenon_proto::{RecvBufRequest, RecvTensorRequest};
use tenon_runtime::rendezvous::Parcel;

/// A callback that is called once, by whoever comes first.
#[derive(Clone)]
pub(super) struct Once(Arc<Mutex<Option<Done>>>);

impl Once {
    pub fn new(done: Done) -> Once {
        Once(Arc::new(Mutex::new(Some(done))))
    }

    pub fn call(&self, answer: Result<Answer, Refusal>) {
        let done = self.0.lock().take();
        if let Some(done) = done {
            done(answer);
        }
    }

    /// The way to withdraw what is awaited, or the end by a refusal.
    pub fn awaits(&self, awaited: Answered<Awaited>) -> Withdraw {
        match awaited {
            Ok(awaited) => Box::new(move |end| awaited.end(end)),
            Err(refusal) => {
                self.call(Err(refusal));
                Box::new(|_| ())
            }
        }
    }
}

impl Serve for WorkerService {
    fn tensor(&self, request: RecvTensorRequest, done: Done) -> Withdraw {
        let done = Once::new(done);
        let later = done.clone();
        done.awaits(self.await_tensor(&request, move |value| later.call(value)))
    }

    fn buffer(&self, request: RecvBufRequest, done: Done) -> Withdraw {
        let done = Once::new(done);
        let later = done.clone();
        let given = move |tensor: Result<tenon_framework::Tensor, Refusal>| {
            let parcel = |tensor| answer(Parcel { tensor: Some(tensor), is_dead: false });
            later.call(tensor.map(parcel));
        };
        match self.await_buffer(&request, given) {
            Ok(step) => {
                let collectives = Arc::clone(&self.collectives);
                Box::new(move |_| collectives.abort_step(step, &super::collective::given_up()))
            }
            Err(refusal) => {
                done.call(Err(refusal));
                Box::new(|_| ())
            }
        }
    }

    fn asked(&self, step: i64, key: &str, by: &Arc<dyn Pusher>) {
        let receiver = key.split(';').nth(2).unwrap_or_default();
        self.steps.asked_by(step, task_of(receiver), by);
    }

    fn pushed(&self, step: i64, key: String, answer: Answer, hold: Hold) {
        self.steps.pushed(step, key, answer, hold);
    }

    fn lost(&self, steps: &[i64], why: &Refusal) {
        self.steps.lost(steps, why);
    }
}
