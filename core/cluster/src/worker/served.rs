//! What the task at the other end of a link gets.

use super::{WorkerService, transfer::answer};
use crate::{
    plane::{Hold, Serve},
    refusal::Refusal,
    transport::{Done, Withdraw},
    wire::Answer,
};
use std::sync::Arc;
use tenon_framework::sync::Mutex;
use tenon_proto::{RecvBufRequest, RecvTensorRequest};
use tenon_runtime::{
    StepError,
    rendezvous::{Parcel, Rendezvous},
};

/// A callback that is called once, by whoever comes first.
#[derive(Clone)]
struct Once(Arc<Mutex<Option<Done>>>);

impl Once {
    fn new(done: Done) -> Once {
        Once(Arc::new(Mutex::new(Some(done))))
    }

    fn call(&self, answer: Result<Answer, Refusal>) {
        let done = self.0.lock().take();
        if let Some(done) = done {
            done(answer);
        }
    }
}

impl Serve for WorkerService {
    fn tensor(&self, request: RecvTensorRequest, done: Done) -> Withdraw {
        let done = Once::new(done);
        let later = done.clone();
        match self.await_tensor(&request, move |value| later.call(value)) {
            Ok(awaited) => Box::new(move |end| awaited.end(end)),
            Err(refusal) => {
                done.call(Err(refusal));
                Box::new(|_| ())
            }
        }
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

    fn pushed(&self, step: i64, key: String, answer: Answer, hold: Hold) {
        // A step that is over needs nothing: the sender has its credit back.
        if let Some(step) = self.steps.find(step) {
            step.rendezvous.pushed(key, answer, hold);
        }
    }

    fn lost(&self, steps: &[i64], why: &Refusal) {
        for step in steps.iter().filter_map(|&step| self.steps.there(step)) {
            step.rendezvous.abort(StepError::step(why.code, why.message.clone()));
        }
    }
}
