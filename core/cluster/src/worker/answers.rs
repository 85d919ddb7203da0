//! The answers to requests for tensors, so that a request which the transport sends again gets the same answer.
//!
//! While the first request of a number waits for its value, others of this number wait with it. Afterwards its answer is kept
//! if a session asked for that (`ConfigProto.rpc_options.cache_rpc_response`), until the receiver confirms that it has it
//! (MarkRecvFinished), or the step is cleaned up. The value of a key is taken once, however often it is asked for.

use super::{Answered, WorkerService};
use crate::{call::Call, refusal::Refusal, wire::Answer};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tenon_framework::{
    Code,
    sync::{Mutex, rank},
};
use tenon_proto::{MarkRecvFinishedRequest, MarkRecvFinishedResponse};
use tokio::sync::oneshot;

/// Answers that are kept, at most: later ones are not, until some are confirmed.
const MOST: usize = 100_000;

/// A request that came before.
enum Earlier {
    /// It waits for its value, and these others with it.
    Waiting(Vec<oneshot::Sender<Answered<Answer>>>),
    /// Its step, and what it was given.
    Answered(i64, Answer),
}

/// The answers, by the numbers of their requests.
pub(super) struct Answers {
    earlier: Mutex<HashMap<i64, Earlier>>,
    /// Sessions that want answers to be kept.
    keepers: AtomicUsize,
}

/// A session that wants answers to be kept, until this is dropped.
pub(super) struct Keeper(Arc<Answers>);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.keepers.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How a request begins.
pub(super) enum Begun {
    /// It is the first one of its number.
    First(First),
    /// It waits with the first one.
    Waits(oneshot::Receiver<Answered<Answer>>),
    /// It has the answer of the first one.
    Again(Answer),
}

/// The first request of a number. If it is dropped without an answer, those that wait with it are refused.
pub(super) struct First {
    answers: Arc<Answers>,
    request: i64,
    step: i64,
}

impl Answers {
    pub fn new() -> Arc<Answers> {
        let earlier = Mutex::ranked(rank::LEAF, HashMap::new());
        Arc::new(Answers { earlier, keepers: AtomicUsize::new(0) })
    }

    pub fn keeper(self: &Arc<Self>) -> Keeper {
        self.keepers.fetch_add(1, Ordering::AcqRel);
        Keeper(Arc::clone(self))
    }

    pub fn are_kept(&self) -> bool {
        self.keepers.load(Ordering::Acquire) > 0
    }

    /// Begins a request of a step; 0 is the number of requests that have none.
    pub fn begin(self: &Arc<Self>, request: i64, step: i64) -> Begun {
        let first = || Begun::First(First { answers: Arc::clone(self), request, step });
        if request == 0 {
            return first();
        }
        let mut earlier = self.earlier.lock();
        match earlier.get_mut(&request) {
            None => {
                earlier.insert(request, Earlier::Waiting(Vec::new()));
                first()
            }
            Some(Earlier::Waiting(others)) => {
                let (sender, receiver) = oneshot::channel();
                others.push(sender);
                Begun::Waits(receiver)
            }
            Some(Earlier::Answered(_, answer)) => Begun::Again(answer.clone()),
        }
    }

    /// Forgets an answer that has arrived.
    fn forget(&self, request: i64) {
        let mut earlier = self.earlier.lock();
        if matches!(earlier.get(&request), Some(Earlier::Answered(..))) {
            earlier.remove(&request);
        }
    }

    /// Forgets the answers of a step.
    pub fn end_step(&self, step: i64) {
        let is_of =
            |it: &Earlier| matches!(it, Earlier::Answered(answered, _) if *answered == step);
        let mut earlier = self.earlier.lock();
        let gone: Vec<i64> =
            earlier.iter().filter(|(_, it)| is_of(it)).map(|(&number, _)| number).collect();
        let gone: Vec<_> = gone.iter().filter_map(|number| earlier.remove(number)).collect();
        drop(earlier);
        drop(gone);
    }
}

impl First {
    /// Answers the request, and those that wait with it.
    pub fn answer(self, answer: Answered<Answer>) -> Answered<Answer> {
        let mut kept = None;
        let answer = answer.map(|answer| {
            let must_confirm = self.request != 0 && self.answers.are_kept();
            let answer = Answer { must_confirm, ..answer };
            kept = must_confirm.then(|| answer.clone());
            answer
        });
        for other in self.end(kept) {
            // One whose client is gone does not take it.
            let _ = other.send(answer.clone());
        }
        answer
    }

    /// Ends the wait for the value; those that wait with it.
    fn end(&self, kept: Option<Answer>) -> Vec<oneshot::Sender<Answered<Answer>>> {
        let mut earlier = self.answers.earlier.lock();
        let others = match earlier.remove(&self.request) {
            Some(Earlier::Waiting(others)) => others,
            Some(Earlier::Answered(step, answer)) => {
                earlier.insert(self.request, Earlier::Answered(step, answer));
                return Vec::new();
            }
            None => return Vec::new(),
        };
        if let Some(answer) = kept.filter(|_| earlier.len() < MOST) {
            earlier.insert(self.request, Earlier::Answered(self.step, answer));
        }
        others
    }
}

impl Drop for First {
    fn drop(&mut self) {
        let given_up =
            || Refusal::new(Code::CANCELLED, "the first request for the tensor was given up");
        self.end(None).into_iter().for_each(|other| drop(other.send(Err(given_up()))));
    }
}

impl WorkerService {
    /// Forgets the answer to a request for a tensor: its receiver has it.
    pub fn mark_recv_finished(
        &self,
        call: Call<MarkRecvFinishedRequest>,
    ) -> Answered<MarkRecvFinishedResponse> {
        self.steps.answers.forget(call.request.request_id);
        Ok(MarkRecvFinishedResponse {})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Answer {
        Answer { tensor: None, is_dead: true, send_start_micros: 7, must_confirm: false }
    }

    fn first(answers: &Arc<Answers>, request: i64) -> First {
        match answers.begin(request, 1) {
            Begun::First(first) => first,
            _ => panic!("request {request} came before"),
        }
    }

    #[test]
    fn a_request_that_comes_again_has_the_answer_of_the_first_one() {
        let answers = Answers::new();
        let one = first(&answers, 5);
        let Begun::Waits(mut second) = answers.begin(5, 1) else { panic!("it waits") };
        let given = one.answer(Ok(answer())).unwrap();
        assert!(!given.must_confirm, "nobody wants answers to be kept");
        assert_eq!(second.try_recv().unwrap().unwrap().send_start_micros, 7);
        assert!(answers.earlier.lock().is_empty());
        let _keeper = answers.keeper();
        assert!(first(&answers, 6).answer(Ok(answer())).unwrap().must_confirm);
        assert!(matches!(answers.begin(6, 1), Begun::Again(again) if again.send_start_micros == 7));
        answers.forget(6);
        assert!(first(&answers, 7).answer(Ok(answer())).is_ok());
        answers.end_step(2);
        assert!(matches!(answers.begin(7, 1), Begun::Again(_)));
        answers.end_step(1);
        assert!(answers.earlier.lock().is_empty());
    }

    #[test]
    fn who_waits_with_a_request_that_is_given_up_is_refused() {
        let answers = Answers::new();
        let one = first(&answers, 5);
        let Begun::Waits(mut second) = answers.begin(5, 1) else { panic!("it waits") };
        drop(one);
        assert_eq!(second.try_recv().unwrap().unwrap_err().code, Code::CANCELLED);
        drop(first(&answers, 0));
        assert!(answers.earlier.lock().is_empty());
    }
}
