//! Tasks: futures that run on the threads that wake them.
//!
//! # States of a task
//! *idle* → *ready*, by a wake → *polled* → *idle* again when its future waits, or *done*. A wake during
//! the poll makes the task *woken*: it is ready again as soon as the poll ends.
//!
//! A thread has a list of its ready tasks. The outermost call that makes a task ready polls the tasks of
//! the list until the list is empty; a call inside of a poll only adds to the list, so that polls do not
//! nest.
//!
//! A call that makes a task ready may be of a thread that has other things to do, such as the one that
//! drives a step. After [`BUDGET`] elements the tasks of such a call go on on a thread of `helper`
//! ([`pace`]).
//!
//! # Invariants
//! - A task is in at most one list, once, and one thread at a time polls it.
//! - A task drops its future when it is done, or when a poll panics.
//! - Wakers are called without a lock of this module.

use super::helper;
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};
use tenon_sdk::{author::guard, prelude::*};

/// A future on the heap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

const IDLE: u8 = 0;
const READY: u8 = 1;
const POLLED: u8 = 2;
const WOKEN: u8 = 3;
const DONE: u8 = 4;

/// A future, and its place among the states.
struct Task {
    state: AtomicU8,
    future: Mutex<Option<BoxFuture<'static, ()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a future: here as far as it goes, then on the threads that wake it.
pub fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    let future: BoxFuture<'static, ()> = Box::pin(future);
    run(Arc::new(Task { state: AtomicU8::new(READY), future: Mutex::new(Some(future)) }));
}

/// How many elements a call makes on a thread that is not for tasks.
const BUDGET: u32 = 1000;

thread_local! {
    /// How many elements are left to the call that polls the tasks of the thread; `None` where it may
    /// go on for as long as it likes.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    /// The ready tasks of the thread; `None` while no call polls them.
    static LIST: RefCell<Option<VecDeque<Arc<Task>>>> = const { RefCell::new(None) };
}

/// Polls a ready task and all that become ready meanwhile on this thread, or leaves it to a call further
/// out that does so.
fn run(task: Arc<Task>) {
    match LEFT.get() {
        Some(0) => helper::run(move || run_here(task)),
        _ => run_here(task),
    }
}

fn run_here(task: Arc<Task>) {
    let is_outermost = LIST.with_borrow_mut(|list| match list {
        Some(list) => {
            list.push_back(task);
            false
        }
        None => {
            *list = Some(VecDeque::from([task]));
            true
        }
    });
    if !is_outermost {
        return;
    }
    LEFT.set((!helper::is_helper()).then_some(BUDGET));
    while let Some(task) = LIST.with_borrow_mut(|list| list.as_mut()?.pop_front()) {
        task.poll();
    }
    LIST.set(None);
    LEFT.set(None);
}

/// Counts an element, and leaves the thread when the call has made enough of them.
pub async fn pace() {
    let mut has_left = false;
    poll_fn(|polled| match LEFT.get() {
        Some(0) if !has_left => {
            has_left = true;
            // The task is ready again as soon as this poll ends, and then goes to another thread.
            polled.waker().wake_by_ref();
            Poll::Pending
        }
        Some(left) => {
            LEFT.set(Some(left.saturating_sub(1)));
            Poll::Ready(())
        }
        None => Poll::Ready(()),
    })
    .await;
}

/// Leaves the thread, unless it is for tasks.
pub async fn leave() {
    if LEFT.get().is_some() {
        LEFT.set(Some(0));
    }
    pace().await;
}

impl Task {
    fn poll(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        self.state.store(POLLED, Ordering::Release);
        let mut future = lock(&self.future);
        let Some(running) = &mut *future else { return };
        let polled = guard(|| running.as_mut().poll(&mut Context::from_waker(&waker)));
        if let Ok(Poll::Pending) = polled {
            drop(future);
            let idle = (POLLED, IDLE, Ordering::AcqRel, Ordering::Acquire);
            if self.state.compare_exchange(idle.0, idle.1, idle.2, idle.3).is_err() {
                self.state.store(READY, Ordering::Release);
                run(self);
            }
            return;
        }
        self.state.store(DONE, Ordering::Release);
        let ended = future.take();
        drop(future);
        // A future that panicked may panic again when it is dropped.
        let _ = guard(|| drop(ended));
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let change = |state| match state {
            IDLE => Some(READY),
            POLLED => Some(WOKEN),
            _ => None,
        };
        if self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, change) == Ok(IDLE) {
            run(self);
        }
    }
}

/// Wakes a thread that waits for its own future.
struct Parked {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Runs a future on this thread, which waits for it.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let parked = Arc::new(Parked { thread: thread::current(), is_woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&parked));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while !parked.is_woken.swap(false, Ordering::AcqRel) {
            thread::park();
        }
    }
}

/// The future's result, or an error in place of a panic. `what` names the work.
pub async fn caught<T>(
    what: &str,
    future: impl Future<Output = Result<T, KernelError>>,
) -> Result<T, KernelError> {
    let mut future = pin!(future);
    poll_fn(|context| {
        guard(|| future.as_mut().poll(context)).unwrap_or_else(|panic| {
            Poll::Ready(Err(KernelError::internal(format!("{what} panicked: {panic}"))))
        })
    })
    .await
}

/// A value that comes later.
struct Place<T> {
    value: Option<T>,
    waker: Option<Waker>,
    is_left: bool,
}

/// Gives a value, once. The receiver learns of it when the sender is dropped without one.
pub struct Sender<T>(Arc<Mutex<Place<T>>>);

/// Waits for a value: `None` when there will be none.
pub struct Receiver<T>(Arc<Mutex<Place<T>>>);

/// A way for one value.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let place = Arc::new(Mutex::new(Place { value: None, waker: None, is_left: false }));
    (Sender(Arc::clone(&place)), Receiver(place))
}

impl<T> Sender<T> {
    /// Gives the value.
    pub fn send(self, value: T) {
        lock(&self.0).value = Some(value);
    }
}

impl<T> Receiver<T> {
    /// Whether the value is there, or it is known that there will be none.
    pub fn is_ready(&self) -> bool {
        lock(&self.0).is_left
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut place = lock(&self.0);
        place.is_left = true;
        let waker = place.waker.take();
        drop(place);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl<T> Future for Receiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut place = lock(&self.0);
        if place.is_left {
            return Poll::Ready(place.value.take());
        }
        let before = place.waker.replace(context.waker().clone());
        drop(place);
        drop(before);
        Poll::Pending
    }
}

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;
