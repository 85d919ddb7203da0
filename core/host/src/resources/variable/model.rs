//! Models of the lock of variables for loom: `RUSTFLAGS="--cfg loom" cargo test -p tenon-host --lib
//! variable::model`. A call that is never woken is a deadlock, which loom reports.

use super::{Access, Variable, lock_variables, unlock_variables};
use crate::cancel::Cancellation;
use loom::{cell::UnsafeCell, thread};
use std::sync::Arc;
use tenon_framework::{Code, DType, KernelError, Tensor};

/// A variable, and what its lock protects.
struct Locked {
    variable: Variable,
    /// loom reports a write that is not ordered with the other uses, and a read that is not ordered with the writes.
    value: UnsafeCell<u32>,
}

impl Locked {
    fn new() -> Arc<Locked> {
        let variable = Variable::new("v", DType::FLOAT);
        Arc::new(Locked { variable, value: UnsafeCell::new(0) })
    }

    fn lock(&self, access: Access, cancellation: &Cancellation) -> Result<(), KernelError> {
        lock(&[&self.variable], access, cancellation)
    }

    fn unlock(&self) {
        unlock_variables(&[&self.variable]);
    }

    /// Adds 1 under the exclusive lock.
    fn add(&self, cancellation: &Cancellation) -> Result<(), KernelError> {
        self.lock(Access::Exclusive, cancellation)?;
        // SAFETY: loom fails the model when another thread uses the value.
        self.value.with_mut(|value| unsafe { *value += 1 });
        self.unlock();
        Ok(())
    }

    /// The value, read under the shared lock.
    fn read(&self, cancellation: &Cancellation) -> Result<u32, KernelError> {
        self.lock(Access::Shared, cancellation)?;
        // SAFETY: loom fails the model when another thread writes the value.
        let value = self.value.with(|value| unsafe { *value });
        self.unlock();
        Ok(value)
    }
}

fn lock(
    variables: &[&Variable],
    access: Access,
    cancellation: &Cancellation,
) -> Result<(), KernelError> {
    lock_variables(variables, access, cancellation, |tensor: &Tensor| Ok(tensor.clone()))
}

fn with<R: 'static>(
    locked: &Arc<Locked>,
    run: impl FnOnce(&Locked) -> R + 'static,
) -> thread::JoinHandle<R> {
    let locked = Arc::clone(locked);
    thread::spawn(move || run(&locked))
}

/// Two calls write and one reads: each gets its turn, and none sees another's work in part.
#[test]
fn writers_exclude_each_other_and_readers() {
    loom::model(|| {
        let locked = Locked::new();
        let write = |locked: &Locked| locked.add(&Cancellation::new()).unwrap();
        let writers = [with(&locked, write), with(&locked, write)];
        let read = locked.read(&Cancellation::new()).unwrap();
        assert!(read <= 2);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(locked.read(&Cancellation::new()).unwrap(), 2);
    });
}

/// A call that waits for the exclusive lock gets it after the last of those that share the lock.
#[test]
fn the_last_sharer_wakes_a_writer() {
    loom::model(|| {
        let locked = Locked::new();
        let cancellation = Cancellation::new();
        locked.lock(Access::Shared, &cancellation).unwrap();
        let writer = with(&locked, |locked| locked.add(&Cancellation::new()).unwrap());
        let reader = with(&locked, |locked| locked.read(&Cancellation::new()).unwrap());
        locked.unlock();
        writer.join().unwrap();
        assert!(reader.join().unwrap() <= 1);
        assert_eq!(locked.read(&cancellation).unwrap(), 1);
    });
}

/// While the lock is shared, a writer waits, and a later reader waits for the writer. The writer's step is cancelled:
/// the writer ends, and the reader gets the lock, which nobody unlocks meanwhile.
#[test]
fn a_cancelled_writer_lets_readers_go_on() {
    loom::model(|| {
        let locked = Locked::new();
        let cancellation = Arc::new(Cancellation::new());
        locked.lock(Access::Shared, &cancellation).unwrap();
        let writer = {
            let cancellation = Arc::clone(&cancellation);
            with(&locked, move |locked| locked.add(&cancellation))
        };
        let reader = with(&locked, |locked| locked.read(&Cancellation::new()).unwrap());
        cancellation.cancel();
        assert_eq!(reader.join().unwrap(), 0);
        assert_eq!(writer.join().unwrap().unwrap_err().code, Code::CANCELLED);
        locked.unlock();
        locked.add(&Cancellation::new()).unwrap();
    });
}

/// A waiting call is cancelled while the lock becomes free: it has the lock, or it does not, and says which; the lock is
/// free afterwards.
#[test]
fn a_cancellation_races_with_an_unlock() {
    loom::model(|| {
        let locked = Locked::new();
        let cancellation = Arc::new(Cancellation::new());
        locked.lock(Access::Exclusive, &cancellation).unwrap();
        let waiting = {
            let cancellation = Arc::clone(&cancellation);
            with(&locked, move |locked| locked.add(&cancellation))
        };
        let canceller = thread::spawn(move || cancellation.cancel());
        locked.unlock();
        let added = match waiting.join().unwrap() {
            Ok(()) => 1,
            Err(error) => {
                assert_eq!(error.code, Code::CANCELLED);
                0
            }
        };
        canceller.join().unwrap();
        assert_eq!(locked.read(&Cancellation::new()).unwrap(), added);
        assert!(!locked.variable.is_awaited());
        locked.add(&Cancellation::new()).unwrap();
    });
}

/// Two calls lock two variables, listed in either order: neither waits for the other's.
#[test]
fn two_variables_are_locked_in_one_order() {
    loom::model(|| {
        let both = Arc::new([Variable::new("a", DType::FLOAT), Variable::new("b", DType::FLOAT)]);
        let other = {
            let both = Arc::clone(&both);
            thread::spawn(move || {
                let list = [&both[1], &both[0]];
                lock(&list, Access::Exclusive, &Cancellation::new()).unwrap();
                unlock_variables(&list);
            })
        };
        let list = [&both[0], &both[1]];
        lock(&list, Access::Exclusive, &Cancellation::new()).unwrap();
        unlock_variables(&list);
        other.join().unwrap();
    });
}
