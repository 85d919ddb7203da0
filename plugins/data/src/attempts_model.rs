//! Models of attempts for loom: `RUSTFLAGS="--cfg loom" cargo test -p tenon-data --lib model`. An attempt that nobody
//! lets run, though it could, has no outcome when all threads are done; one that ends twice completes its call twice.

use super::*;
use loom::{
    sync::{Condvar, atomic::AtomicBool},
    thread::{self, JoinHandle, ThreadId},
};

type Callback = Box<dyn Fn() + Send + Sync>;

/// Where the callback of a call is.
#[derive(Default)]
enum Slot {
    /// There is none, or it has run.
    #[default]
    Empty,
    Waiting(Callback),
    /// It runs on this thread.
    Running(ThreadId),
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    slot: Mutex<Slot>,
    ran: Condvar,
    outcome: Mutex<Option<Result<(), Code>>>,
}

/// A call as the host makes it: the flag of its step is set before the callback runs, and the completion withdraws the
/// callback and waits for one that runs on another thread.
#[derive(Clone, Default)]
struct Double(Arc<Shared>);

impl Double {
    fn cancel(&self) {
        self.0.over.store(true, Ordering::SeqCst);
        let mut slot = self.0.slot.lock().unwrap();
        let Slot::Waiting(callback) = std::mem::take(&mut *slot) else { return };
        *slot = Slot::Running(thread::current().id());
        drop(slot);
        callback();
        *self.0.slot.lock().unwrap() = Slot::Empty;
        self.0.ran.notify_all();
    }

    fn outcome(&self) -> Option<Result<(), Code>> {
        *self.0.outcome.lock().unwrap()
    }
}

impl Caller for Double {
    fn on_cancel(&mut self, callback: impl Fn() + Send + Sync + 'static) {
        let mut slot = self.0.slot.lock().unwrap();
        if self.0.over.load(Ordering::SeqCst) {
            drop(slot);
            return callback();
        }
        *slot = Slot::Waiting(Box::new(callback));
    }

    fn over(&mut self) -> Option<Code> {
        self.0.over.load(Ordering::SeqCst).then_some(Code::CANCELLED)
    }

    fn complete(self, result: Result<(), KernelError>) {
        let here = thread::current().id();
        let mut slot = self.0.slot.lock().unwrap();
        while matches!(*slot, Slot::Running(thread) if thread != here) {
            slot = self.0.ran.wait(slot).unwrap();
        }
        let withdrawn = match &*slot {
            Slot::Waiting(_) => std::mem::take(&mut *slot),
            _ => Slot::Empty,
        };
        drop(slot);
        drop(withdrawn);
        let result = result.map_err(|error| error.code);
        let before = self.0.outcome.lock().unwrap().replace(result);
        assert!(before.is_none(), "completed twice");
    }
}

/// A number of things, of which there may be at most three.
type State = usize;
type Things = Arc<Attempts<State, Double>>;

/// Adds things one by one.
struct Put(usize);

impl Attempt<State, Double> for Put {
    fn run(&mut self, state: &mut State) -> Progress {
        let moved = self.0.min(3 - *state);
        *state += moved;
        self.0 -= moved;
        match (self.0, moved) {
            (0, _) => Progress::Done(Ok(())),
            (_, 0) => Progress::Stuck,
            _ => Progress::Moved,
        }
    }
}

/// Takes things one by one.
struct Take {
    wanted: usize,
    taken: usize,
    fails: bool,
}

impl Attempt<State, Double> for Take {
    fn run(&mut self, state: &mut State) -> Progress {
        let moved = (self.wanted - self.taken).min(*state);
        *state -= moved;
        self.taken += moved;
        match moved {
            _ if self.taken == self.wanted => Progress::Done(Ok(())),
            0 => Progress::Stuck,
            _ => Progress::Moved,
        }
    }

    fn finish(&mut self, _: &mut Double) -> Result<(), KernelError> {
        if self.fails { Err(KernelError::internal("no memory")) } else { Ok(()) }
    }

    fn abandon(&mut self, state: &mut State) {
        *state += std::mem::take(&mut self.taken);
    }
}

fn things(state: State) -> Things {
    Arc::new(Attempts::new("things".to_owned(), state, [Order::First, Order::First]))
}

fn put(things: &Things, number: usize) -> Double {
    let call = Double::default();
    things.start(PUT, call.clone(), Box::new(Put(number)));
    call
}

fn take_by(call: &Double, things: &Things, wanted: usize, fails: bool) {
    things.start(TAKE, call.clone(), Box::new(Take { wanted, taken: 0, fails }));
}

fn take(things: &Things, wanted: usize) -> Double {
    let call = Double::default();
    take_by(&call, things, wanted, false);
    call
}

fn with<R: 'static>(things: &Things, run: impl FnOnce(&Things) -> R + 'static) -> JoinHandle<R> {
    let things = Arc::clone(things);
    thread::spawn(move || run(&things))
}

const OK: Option<Result<(), Code>> = Some(Ok(()));
const CANCELLED: Option<Result<(), Code>> = Some(Err(Code::CANCELLED));

/// What is put reaches the call that waits for it, whichever comes first.
#[test]
fn whoever_comes_second_completes_both() {
    loom::model(|| {
        let things = things(0);
        let put = with(&things, |things| put(things, 4));
        let other = with(&things, |things| take(things, 3));
        let here = take(&things, 1);
        let (put, other) = (put.join().unwrap(), other.join().unwrap());
        assert_eq!([put.outcome(), other.outcome(), here.outcome()], [OK; 3]);
        assert_eq!(things.read(|state| *state), 0);
    });
}

/// A step is cancelled while its attempt starts: the attempt ends, and takes nothing.
#[test]
fn a_cancellation_races_with_a_start() {
    loom::model(|| {
        let (things, call) = (things(1), Double::default());
        let canceller = {
            let call = call.clone();
            thread::spawn(move || call.cancel())
        };
        take_by(&call, &things, 2, false);
        canceller.join().unwrap();
        assert_eq!(call.outcome(), CANCELLED);
        assert_eq!(things.read(|state| *state), 1, "what it took is back");
    });
}

/// A step is cancelled while what its attempt waits for comes: it has the thing, or the thing is still there.
#[test]
fn a_cancellation_races_with_a_completion() {
    loom::model(|| {
        let things = things(0);
        let call = take(&things, 1);
        let canceller = {
            let call = call.clone();
            thread::spawn(move || call.cancel())
        };
        let put = put(&things, 1);
        canceller.join().unwrap();
        assert_eq!(put.outcome(), OK);
        let left = things.read(|state| *state);
        assert!(matches!((call.outcome(), left), (OK, 0) | (CANCELLED, 1)), "left {left}");
    });
}

/// A large attempt holds up a small one, and is cancelled while things come: the small one ends.
#[test]
fn a_cancelled_attempt_lets_the_next_one_run() {
    loom::model(|| {
        let things = things(0);
        let (large, small) = (take(&things, 3), take(&things, 1));
        let canceller = {
            let large = large.clone();
            thread::spawn(move || large.cancel())
        };
        let put = put(&things, 1);
        canceller.join().unwrap();
        assert_eq!([put.outcome(), large.outcome(), small.outcome()], [OK, CANCELLED, OK]);
        assert_eq!(things.read(|state| *state), 0);
    });
}

/// The list is closed while one of its attempts is cancelled and another starts: each ends once, and nothing is lost.
#[test]
fn closing_races_with_a_cancellation() {
    loom::model(|| {
        let things = things(0);
        let waiting = take(&things, 2);
        put(&things, 1);
        let canceller = {
            let waiting = waiting.clone();
            thread::spawn(move || waiting.cancel())
        };
        let closer = with(&things, |things| {
            things.fail_all(TAKE, |_| (), || KernelError::new(Code::OUT_OF_RANGE, "closed"));
        });
        canceller.join().unwrap();
        closer.join().unwrap();
        let closed = Some(Err(Code::OUT_OF_RANGE));
        assert!(waiting.outcome() == CANCELLED || waiting.outcome() == closed);
        assert_eq!(things.read(|state| *state), 1);
    });
}

/// The outputs of an attempt cannot be written: what it took goes to the next one, also when that one starts meanwhile.
#[test]
fn what_a_failed_attempt_gives_back_reaches_the_next_one() {
    loom::model(|| {
        let things = things(1);
        let failing = with(&things, |things| {
            let call = Double::default();
            take_by(&call, things, 1, true);
            call
        });
        let next = take(&things, 1);
        let put = put(&things, 1);
        let failing = failing.join().unwrap();
        assert_eq!(failing.outcome(), Some(Err(Code::INTERNAL)));
        assert_eq!([next.outcome(), put.outcome()], [OK; 2]);
        assert_eq!(things.read(|state| *state), 1);
    });
}
