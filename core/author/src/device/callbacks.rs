//! Pending callbacks of a device's streams: each runs exactly once, even if the device is lost.
//!
//! This is for drivers that call a host function when a stream reaches it, on a thread that must not
//! call the driver, as those of CUDA and OpenCL do.
//!
//! # States
//! A callback is *pending* from [`register`] on, under a number. It is completed by the first to
//! take it out of the table: the driver's thread, when the stream gets there ([`stream_reached`]);
//! the caller that failed to enqueue it ([`Registration::complete`]); or, when the device is lost,
//! [`complete_all`], because a lost context runs no host functions any more.
//!
//! The driver's thread must not call the driver, and a call to the host may lead there, so the
//! device's own thread makes the calls to the host ([`Callback::Host`]). A callback that only
//! touches memory runs in place ([`Callback::Memory`]), and stays pending until it has returned and
//! its captures are dropped: the device still exists then, and the drop never calls the driver from
//! the driver's own thread. While callbacks are pending the device's thread also polls the device
//! for errors, because nothing else may be doing so. It ends when the device is closed and no
//! callback is pending.
//!
//! Once a device is lost the driver no longer says when a callback that it has started is over. A
//! wait for a stream then also waits until none is pending ([`CallbackQueue::wait_until_empty`]),
//! since a callback may still be about to write to the waiter's memory.

use std::{
    collections::{HashMap, VecDeque},
    ffi::c_void,
    sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};
use tenon_abi::Code;
use tenon_framework::{KernelError, plugin::spawn};

/// How often a device is polled for errors while callbacks are pending.
const POLL_EVERY: Duration = Duration::from_millis(10);

/// The function of a callback, which receives the result: `OK`, or `UNAVAILABLE` on a lost device.
pub type Call = Box<dyn FnOnce(Code) + Send>;

/// A callback, by the thread that may run it.
pub enum Callback {
    /// Moves bytes in host memory and calls nothing: runs on any thread.
    Memory(Call),
    /// Calls the host: runs on the device's thread.
    Host(Call),
}

struct Pending {
    callbacks: Arc<CallbackQueue>,
    callback: Callback,
}

impl Pending {
    fn run(self, code: Code) {
        let Pending { callbacks, callback } = self;
        let ready = match callback {
            Callback::Host(call) => Some((call, code)),
            Callback::Memory(call) => {
                call(code);
                None
            }
        };
        let mut queue = callbacks.queue();
        queue.pending -= 1;
        queue.ready.extend(ready);
        drop(queue);
        callbacks.changed.notify_all();
    }
}

#[derive(Default)]
struct Table {
    next: usize,
    pending: HashMap<usize, Pending>,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of a registered callback.
pub struct Registration(usize);

/// Adds a callback to the pending ones of a device.
pub fn register(callbacks: &Arc<CallbackQueue>, callback: Callback) -> Registration {
    let callbacks = Arc::clone(callbacks);
    callbacks.queue().pending += 1;
    // Wakes the thread, which polls from now on.
    callbacks.changed.notify_all();
    let mut table = table();
    table.next += 1;
    let number = table.next;
    table.pending.insert(number, Pending { callbacks, callback });
    Registration(number)
}

impl Registration {
    /// The argument that the driver passes to [`stream_reached`].
    pub fn as_pointer(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.0)
    }

    /// Completes the callback, unless it is completed already.
    pub fn complete(&self, code: Code) {
        take(self.0, code);
    }
}

fn take(number: usize, code: Code) {
    let pending = table().pending.remove(&number);
    if let Some(pending) = pending {
        pending.run(code);
    }
}

/// The host function that the driver gets: completes a callback when the stream reaches it.
///
/// # Safety
/// - `data` is a [`Registration::as_pointer`].
pub unsafe extern "C" fn stream_reached(data: *mut c_void) {
    take(data.addr(), Code::OK);
}

/// Completes every pending callback of a lost device.
pub fn complete_all(callbacks: &Arc<CallbackQueue>) {
    let lost: Vec<Pending> = {
        let mut table = table();
        let of_queue = |(number, pending): (&usize, &Pending)| {
            Arc::ptr_eq(&pending.callbacks, callbacks).then_some(*number)
        };
        let numbers: Vec<usize> = table.pending.iter().filter_map(of_queue).collect();
        numbers.iter().filter_map(|number| table.pending.remove(number)).collect()
    };
    lost.into_iter().for_each(|pending| pending.run(Code::UNAVAILABLE));
}

/// The callbacks of a device: how many are pending, and those that its thread has still to run.
#[derive(Default)]
pub struct CallbackQueue {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    ready: VecDeque<(Call, Code)>,
    /// Number of callbacks in the table.
    pending: usize,
    closed: bool,
}

impl CallbackQueue {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no callback is pending: each has run, or is queued for the device's thread. A
    /// callback must not call it.
    pub fn wait_until_empty(&self) {
        let mut queue = self.queue();
        while queue.pending > 0 {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Like [`CallbackQueue::wait_until_empty`], and calls `look` at intervals.
    fn wait_polling(&self, look: impl Fn()) {
        let mut queue = self.queue();
        while queue.pending > 0 {
            let (back, waited) = self
                .changed
                .wait_timeout(queue, POLL_EVERY)
                .unwrap_or_else(PoisonError::into_inner);
            queue = back;
            if waited.timed_out() && queue.pending > 0 {
                drop(queue);
                look();
                queue = self.queue();
            }
        }
    }

    /// Waits for a callback to run. `Ok(None)`: it is time to poll the device; `Err`: the queue is
    /// closed and none is pending.
    fn next(&self) -> Result<Option<(Call, Code)>, ()> {
        let mut queue = self.queue();
        loop {
            if let Some(ready) = queue.ready.pop_front() {
                return Ok(Some(ready));
            }
            if queue.pending == 0 {
                if queue.closed {
                    return Err(());
                }
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (back, waited) = self
                .changed
                .wait_timeout(queue, POLL_EVERY)
                .unwrap_or_else(PoisonError::into_inner);
            queue = back;
            if waited.timed_out() && queue.ready.is_empty() {
                return Ok(None);
            }
        }
    }
}

/// Polls a device for errors.
type Poll = Arc<dyn Fn() + Send + Sync>;

/// The thread of a device that runs its callbacks to the host.
pub struct CallbackThread {
    callbacks: Arc<CallbackQueue>,
    poll: Poll,
    thread: Option<JoinHandle<()>>,
}

impl CallbackThread {
    /// Starts the thread of the device that `name` names. `poll` is called at intervals while
    /// callbacks are pending, since nothing else may ask the device for errors then.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when the system creates no thread.
    pub fn start(
        name: &str,
        callbacks: &Arc<CallbackQueue>,
        poll: impl Fn() + Send + Sync + 'static,
    ) -> Result<CallbackThread, KernelError> {
        let (callbacks, poll): (_, Poll) = (Arc::clone(callbacks), Arc::new(poll));
        let (own, polled) = (Arc::clone(&callbacks), Arc::clone(&poll));
        let thread = spawn(name, move || serve(&own, &polled)).map_err(|error| {
            KernelError::new(Code::RESOURCE_EXHAUSTED, format!("no thread for {name}: {error}"))
        })?;
        Ok(CallbackThread { callbacks, poll, thread: Some(thread) })
    }
}

impl Drop for CallbackThread {
    fn drop(&mut self) {
        self.callbacks.queue().closed = true;
        self.callbacks.changed.notify_all();
        let own = std::thread::current().id();
        match self.thread.take() {
            // A callback dropped the last reference to the device: the thread cannot join itself,
            // and ends after that callback.
            Some(thread) if thread.thread().id() == own => {
                self.callbacks.wait_polling(&*self.poll);
            }
            // A panic of the thread has been logged already.
            Some(thread) => drop(thread.join()),
            None => {}
        }
    }
}

fn serve(callbacks: &CallbackQueue, poll: &Poll) {
    while let Ok(ready) = callbacks.next() {
        match ready {
            Some((call, code)) => call(code),
            None => poll(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::{
            atomic::{AtomicBool, Ordering},
            mpsc::channel,
        },
        thread,
    };

    /// Sets the flag when dropped.
    struct Held(Arc<AtomicBool>);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }

    #[test]
    fn a_callback_is_pending_until_it_has_returned_and_dropped_its_captures() {
        let (callbacks, gone) = (Arc::<CallbackQueue>::default(), Arc::<AtomicBool>::default());
        let (begun, begins) = channel();
        let (go, may_go) = channel::<()>();
        let held = Held(Arc::clone(&gone));
        let call = move |_| {
            begun.send(()).expect("the test listens");
            may_go.recv().expect("the test says go");
            let _ = &held;
        };
        let registration = register(&callbacks, Callback::Memory(Box::new(call)));
        let number = registration.as_pointer().addr();
        // SAFETY: the pointer of a registration.
        let driver = thread::spawn(move || unsafe {
            stream_reached(std::ptr::without_provenance_mut::<c_void>(number));
        });
        begins.recv().expect("the call has begun");
        // A lost device completes its callbacks: this one is already taken, and still running.
        complete_all(&callbacks);
        assert_eq!(callbacks.queue().pending, 1);
        let waiting = {
            let (callbacks, gone) = (Arc::clone(&callbacks), Arc::clone(&gone));
            thread::spawn(move || {
                callbacks.wait_until_empty();
                gone.load(Ordering::Acquire)
            })
        };
        go.send(()).expect("the call listens");
        assert!(waiting.join().expect("it waits"), "the wait ended before the callback did");
        driver.join().expect("the call returns");
    }

    #[test]
    fn a_callback_to_the_host_is_complete_once_queued_for_the_thread() {
        let callbacks = Arc::<CallbackQueue>::default();
        let registration = register(&callbacks, Callback::Host(Box::new(|_| ())));
        registration.complete(Code::UNAVAILABLE);
        callbacks.wait_until_empty();
        let (_, code) = callbacks.next().expect("it is open").expect("there is a call");
        assert_eq!(code, Code::UNAVAILABLE);
        // A second completion has no effect.
        registration.complete(Code::OK);
        assert_eq!(callbacks.queue().ready.len(), 0);
    }
}
