//! Datasets whose elements are made before they are asked for, by a thread of each walk.
//!
//! # States of a walk
//! *new* → *running*, when the first element is asked for: the thread makes elements as long as the buffer
//! has room → *left*, when the walk is dropped: the thread's work is cancelled, and it ends by itself. The
//! thread stops at the end of the input.
//!
//! The library stays mapped as long as the process lives, so that nobody waits for the thread.

use super::{
    Cardinality, Context, Dataset, Element, Elements, Input, Next, Shared,
    context::Heard,
    helper,
    make::{Build, Make, count_or, dataset_in},
    task::{block_on, caught},
};
use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};
use tenon_sdk::{author::spawn as spawn_thread, prelude::*};

/// The size of the buffer where the runtime is to choose it.
pub const CHOSEN: usize = 8;

struct Prefetch {
    input: Shared,
    room: usize,
}

struct MakePrefetch;

impl Build for MakePrefetch {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MakePrefetch)
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let input = Arc::clone(&dataset_in(c, 0)?.dataset);
        let room = count_or(c, 1, "buffer_size", CHOSEN)?;
        Ok(if room == 0 { input } else { Arc::new(Prefetch { input, room }) })
    }
}

impl Dataset for Prefetch {
    fn elements(&self) -> Box<dyn Elements> {
        Box::new(Prefetched::new(Input::of(&self.input), self.room))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn batch_size(&self) -> Option<usize> {
        self.input.batch_size()
    }
}

/// Starts a walk over a dataset whose elements a thread makes from now on, as long as there is room for them.
///
/// # Errors
/// `RESOURCE_EXHAUSTED` when there is no thread.
pub fn ahead(
    dataset: &Shared,
    room: usize,
    context: &Context,
) -> Result<Box<dyn Elements>, KernelError> {
    let mut elements = Prefetched::new(Input::of(dataset), room.max(1));
    elements.start(context)?;
    Ok(Box::new(elements))
}

type Made = Result<Option<Element>, KernelError>;

/// What the thread and the walk share.
#[derive(Default)]
struct Buffer {
    state: Mutex<State>,
    /// Says that there is room, or that the walk was left.
    change: Condvar,
}

#[derive(Default)]
struct State {
    made: VecDeque<Made>,
    waker: Option<Waker>,
    is_left: bool,
    is_at_end: bool,
}

impl Buffer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room; whether the walk still wants elements.
    fn wait(&self, room: usize) -> bool {
        let state = self.lock();
        let is_full = |state: &mut State| state.made.len() >= room && !state.is_left;
        let state = self.change.wait_while(state, is_full);
        !state.unwrap_or_else(PoisonError::into_inner).is_left
    }

    fn add(&self, made: Made) {
        let mut state = self.lock();
        state.is_at_end |= matches!(made, Ok(None));
        state.made.push_back(made);
        let waker = state.waker.take();
        drop(state);
        // The walk goes on elsewhere, so that this thread makes the next element meanwhile.
        if let Some(waker) = waker {
            helper::run(move || waker.wake());
        }
    }
}

struct Prefetched {
    /// Until the thread has it.
    input: Option<Input>,
    room: usize,
    shared: Arc<Buffer>,
    /// The thread's context, once there is one.
    part: Option<(Context, Heard)>,
}

impl Prefetched {
    fn new(input: Input, room: usize) -> Prefetched {
        Prefetched { input: Some(input), room, shared: Arc::default(), part: None }
    }

    fn start(&mut self, context: &Context) -> Result<(), KernelError> {
        let Some(mut input) = self.input.take() else { return Ok(()) };
        let (part, heard) = context.part();
        let (own, shared, room) = (part.clone(), Arc::clone(&self.shared), self.room);
        self.part = Some((part, heard));
        let work = move || {
            while shared.wait(room) {
                let made = block_on(caught("making an element ahead", input.next(&own)));
                let is_end = matches!(made, Ok(None));
                shared.add(made);
                if is_end {
                    break;
                }
            }
        };
        let thread = spawn_thread("tenon-prefetch", work);
        thread.map(drop).map_err(|error| {
            let message = format!("no thread to make elements ahead: {error}");
            KernelError::new(Code::RESOURCE_EXHAUSTED, message)
        })
    }
}

impl Elements for Prefetched {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            self.start(context)?;
            poll_fn(|polled| {
                let mut state = self.shared.lock();
                if let Some(made) = state.made.pop_front() {
                    drop(state);
                    self.shared.change.notify_one();
                    return Poll::Ready(made);
                }
                if state.is_at_end {
                    return Poll::Ready(Ok(None));
                }
                let before = state.waker.replace(polled.waker().clone());
                drop(state);
                drop(before);
                Poll::Pending
            })
            .await
        })
    }
}

impl Drop for Prefetched {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_left = true;
        let made = std::mem::take(&mut state.made);
        drop(state);
        drop(made);
        self.shared.change.notify_one();
        if let Some((part, _)) = &self.part {
            part.end();
        }
    }
}

register_kernel!("PrefetchDataset" on "CPU": Make<MakePrefetch>);

#[cfg(test)]
#[path = "prefetch_tests.rs"]
mod tests;
