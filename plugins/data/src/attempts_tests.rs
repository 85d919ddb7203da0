//! Attempts at a state that is a list of numbers with room for three.

use super::*;

type Outcome = Arc<Mutex<Option<Result<(), Code>>>>;
type Callback = Box<dyn Fn() + Send + Sync>;

/// A call whose step a test cancels.
#[derive(Clone, Default)]
struct Double {
    outcome: Outcome,
    over: Arc<Mutex<bool>>,
    callback: Arc<Mutex<Option<Callback>>>,
}

impl Double {
    fn cancel(&self) {
        *self.over.lock().unwrap() = true;
        let callback = self.callback.lock().unwrap().take();
        if let Some(callback) = callback {
            callback();
        }
    }

    fn outcome(&self) -> Option<Result<(), Code>> {
        *self.outcome.lock().unwrap()
    }
}

impl Caller for Double {
    fn on_cancel(&mut self, callback: impl Fn() + Send + Sync + 'static) {
        match *self.over.lock().unwrap() {
            true => callback(),
            false => *self.callback.lock().unwrap() = Some(Box::new(callback)),
        }
    }

    fn over(&mut self) -> Option<Code> {
        self.over.lock().unwrap().then_some(Code::CANCELLED)
    }

    fn complete(self, result: Result<(), KernelError>) {
        self.callback.lock().unwrap().take();
        let before = self.outcome.lock().unwrap().replace(result.map_err(|error| error.code));
        assert!(before.is_none(), "completed twice");
    }
}

type State = VecDeque<u32>;

struct Put(VecDeque<u32>);

impl Attempt<State, Double> for Put {
    fn run(&mut self, state: &mut State) -> Progress {
        let mut progress = Progress::Stuck;
        while state.len() < 3 {
            let Some(number) = self.0.pop_front() else { break };
            state.push_back(number);
            progress = Progress::Moved;
        }
        if self.0.is_empty() { Progress::Done(Ok(())) } else { progress }
    }
}

#[derive(Clone, Default)]
struct Take {
    wanted: usize,
    taken: Arc<Mutex<Vec<u32>>>,
    fails: bool,
}

impl Attempt<State, Double> for Take {
    fn run(&mut self, state: &mut State) -> Progress {
        let mut taken = self.taken.lock().unwrap();
        let before = taken.len();
        while taken.len() < self.wanted {
            let Some(number) = state.pop_front() else { break };
            taken.push(number);
        }
        match taken.len() {
            len if len == self.wanted => Progress::Done(Ok(())),
            len if len > before => Progress::Moved,
            _ => Progress::Stuck,
        }
    }

    fn finish(&mut self, _: &mut Double) -> Result<(), KernelError> {
        if self.fails { Err(KernelError::internal("no memory")) } else { Ok(()) }
    }

    fn abandon(&mut self, state: &mut State) {
        self.taken.lock().unwrap().drain(..).rev().for_each(|number| state.push_front(number));
    }
}

fn attempts(order: Order) -> Arc<Attempts<State, Double>> {
    Arc::new(Attempts::new("the list".to_owned(), State::new(), [Order::First, order]))
}

fn put(attempts: &Arc<Attempts<State, Double>>, numbers: impl IntoIterator<Item = u32>) -> Double {
    let call = Double::default();
    attempts.start(PUT, call.clone(), Box::new(Put(numbers.into_iter().collect())));
    call
}

fn take(attempts: &Arc<Attempts<State, Double>>, wanted: usize) -> (Double, Take) {
    let (call, attempt) = (Double::default(), Take { wanted, ..Take::default() });
    attempts.start(TAKE, call.clone(), Box::new(attempt.clone()));
    (call, attempt)
}

#[test]
fn a_batch_that_is_larger_than_the_room_goes_through_in_parts() {
    let attempts = attempts(Order::First);
    let (call, batch) = take(&attempts, 5);
    let first = put(&attempts, 0..4);
    assert_eq!((first.outcome(), call.outcome()), (Some(Ok(())), None));
    let second = put(&attempts, 4..9);
    assert_eq!((second.outcome(), call.outcome()), (None, Some(Ok(()))));
    assert_eq!(*batch.taken.lock().unwrap(), [0, 1, 2, 3, 4]);
    assert_eq!(attempts.read(|state| state.clone()), [5, 6, 7]);
    take(&attempts, 1);
    assert_eq!(second.outcome(), Some(Ok(())));
}

#[test]
fn a_cancelled_attempt_gives_back_and_lets_the_next_one_run() {
    let attempts = attempts(Order::First);
    let (large, _) = take(&attempts, 3);
    let (small, got) = take(&attempts, 1);
    put(&attempts, [1, 2]);
    assert_eq!((large.outcome(), small.outcome()), (None, None));
    large.cancel();
    assert_eq!((large.outcome(), small.outcome()), (Some(Err(Code::CANCELLED)), Some(Ok(()))));
    assert_eq!(*got.taken.lock().unwrap(), [1]);
    assert_eq!(attempts.read(|state| state.clone()), [2]);
}

#[test]
fn a_step_that_is_cancelled_before_its_attempt_takes_nothing() {
    let attempts = attempts(Order::First);
    put(&attempts, [1]);
    let call = Double::default();
    call.cancel();
    attempts.start(TAKE, call.clone(), Box::new(Take { wanted: 1, ..Take::default() }));
    assert_eq!(call.outcome(), Some(Err(Code::CANCELLED)));
    assert_eq!(attempts.read(|state| state.clone()), [1]);
}

#[test]
fn outputs_that_cannot_be_written_lose_nothing() {
    let attempts = attempts(Order::First);
    let call = Double::default();
    let attempt = Take { wanted: 2, fails: true, ..Take::default() };
    attempts.start(TAKE, call.clone(), Box::new(attempt));
    let (next, got) = take(&attempts, 1);
    put(&attempts, [1, 2]);
    assert_eq!((call.outcome(), next.outcome()), (Some(Err(Code::INTERNAL)), Some(Ok(()))));
    assert_eq!(*got.taken.lock().unwrap(), [1]);
    assert_eq!(attempts.read(|state| state.clone()), [2]);
}

#[test]
fn where_any_may_run_a_later_attempt_overtakes() {
    let attempts = attempts(Order::Any);
    let (large, _) = take(&attempts, 9);
    large.cancel();
    let (first, _) = take(&attempts, 2);
    let (second, _) = take(&attempts, 1);
    put(&attempts, [1]);
    assert_eq!((first.outcome(), second.outcome()), (None, None), "the first took it");
    put(&attempts, [2, 3]);
    assert_eq!((first.outcome(), second.outcome()), (Some(Ok(())), Some(Ok(()))));
}

#[test]
fn all_of_a_list_fail_and_the_other_list_goes_on() {
    let attempts = attempts(Order::First);
    let first = put(&attempts, 0..4);
    let second = put(&attempts, [9]);
    attempts.fail_all(PUT, |_| (), || KernelError::new(Code::CANCELLED, "closed"));
    let cancelled = Some(Err(Code::CANCELLED));
    assert_eq!((first.outcome(), second.outcome()), (cancelled, cancelled));
    assert_eq!(attempts.read(|state| state.clone()), [0, 1, 2], "what was put stays");
    assert_eq!(take(&attempts, 3).0.outcome(), Some(Ok(())));
}

#[test]
fn calls_of_many_threads_all_end() {
    let attempts = attempts(Order::First);
    let calls: Vec<Double> = std::thread::scope(|scope| {
        let put_all = scope.spawn(|| (0..200).map(|n| put(&attempts, [n, n])).collect::<Vec<_>>());
        let take_all = scope.spawn(|| (0..200).map(|_| take(&attempts, 2).0).collect::<Vec<_>>());
        let cancelled = scope.spawn(|| {
            let calls: Vec<Double> = (0..100).map(|_| take(&attempts, 1000).0).collect();
            calls.iter().for_each(Double::cancel);
            calls
        });
        [put_all, take_all, cancelled].into_iter().flat_map(|calls| calls.join().unwrap()).collect()
    });
    assert!(calls.iter().all(|call| call.outcome().is_some()));
    assert_eq!(attempts.read(|state| state.len()), 0);
}
