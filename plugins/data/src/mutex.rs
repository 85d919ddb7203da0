//! Mutexes between steps: a lock is a value of a step.
//!
//! # States
//! *free* → *held*, by the first call that waits for it → *free*, when `ConsumeMutexLock` takes the lock
//! in, and at the latest with the end of the step: a step may keep values longer than their last reader
//! needs them. A call that is cancelled while it waits leaves the list; one that was given the lock and
//! cannot return it frees the mutex.

use crate::{
    attempts::{Answer, Async, Attempt, Attempts, Begins, Begun, Order, Progress, TAKE},
    place::{Maker, Naming, Place, Shared, find_or_make, input},
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use tenon_sdk::prelude::*;

/// Whether somebody holds a mutex.
#[derive(Default)]
struct State {
    is_held: bool,
}

/// A mutex.
struct Mutex {
    place: Place,
    attempts: Arc<Attempts<State>>,
}

impl Shared for Mutex {
    const NAME: &'static str = "tenon_data.Mutex";
    const WHAT: &'static str = "mutex";

    fn place(&self) -> &Place {
        &self.place
    }
}

/// Frees a mutex, once.
struct Held {
    attempts: Arc<Attempts<State>>,
    is_free: AtomicBool,
}

impl Held {
    fn release(&self) {
        if !self.is_free.swap(true, Ordering::AcqRel) {
            self.attempts.update(|state| state.is_held = false);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

/// The lock of a mutex.
#[derive(Clone)]
struct Lock(Arc<Held>);

impl VariantValue for Lock {
    const NAME: &'static str = "tenon_data.MutexLock";
}

/// Frees a mutex with its step.
struct OfStep(Arc<Held>);

impl ResourceValue for OfStep {
    const NAME: &'static str = "tenon_data.MutexOfStep";
}

impl Drop for OfStep {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Waits for a mutex.
struct Take {
    attempts: Arc<Attempts<State>>,
    held: Option<Held>,
}

impl Attempt<State> for Take {
    fn run(&mut self, state: &mut State) -> Progress {
        if state.is_held {
            return Progress::Stuck;
        }
        state.is_held = true;
        let (attempts, is_free) = (Arc::clone(&self.attempts), AtomicBool::new(false));
        self.held = Some(Held { attempts, is_free });
        Progress::Done(Ok(()))
    }

    fn finish(&mut self, call: &mut AsyncCall) -> Result<(), KernelError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let held = self.held.take().map(Arc::new).ok_or_else(|| {
            KernelError::internal("a call that was given a mutex does not have it")
        })?;
        let (c, name) = (call.context(), NEXT.fetch_add(1, Ordering::Relaxed).to_string());
        let state = c.state();
        let of_step = || Ok(OfStep(Arc::clone(&held)));
        state.find_or_create(&state.step_container(), &name, of_step)?;
        c.set_variant(0, Variant::new(Lock(held)))
    }
}

struct TakeLock;

impl Begins for TakeLock {
    type State = State;
    type Attempt = Take;

    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(TakeLock)
    }

    fn begin(&self, c: &ComputeContext<'_>) -> Answer<State, Take> {
        let attempts = Arc::clone(&input::<Mutex>(c)?.attempts);
        let attempt = Take { attempts: Arc::clone(&attempts), held: None };
        Ok(Some(Begun { attempts, list: TAKE, attempt }))
    }
}

struct Make {
    place: Place,
    maker: Maker<Mutex>,
}

impl Kernel for Make {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Make { place: Naming::new(c)?.by_node(), maker: Maker::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let make = |place: Place| {
            let label = place.label::<Mutex>();
            let attempts = Attempts::new(label, State::default(), [Order::First, Order::First]);
            Ok(Mutex { place, attempts: Arc::new(attempts) })
        };
        self.maker.output(c, &find_or_make(c, self.place.clone(), make)?)
    }
}

fn consume(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.variant::<Lock>(0)?.0.release();
    Ok(())
}

register_kernel!("MutexV2" on "CPU": Make);
register_kernel!("MutexLock" on "CPU": Async<TakeLock>);
register_kernel!("ConsumeMutexLock" on "CPU": fn consume);
