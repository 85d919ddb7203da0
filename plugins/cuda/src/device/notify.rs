//! Calls that a device owes: exactly once each, whatever happens.
//!
//! A call is *owed* from [`owe`] on, under a number, until whoever takes it out of the table first makes it: the
//! driver's thread, when the stream gets there ([`paid`]); who could not enqueue it ([`Ticket::settle`]);
//! or, when the device is lost, [`settle`], for a lost context runs no host functions any more.
//!
//! The driver's thread may not call the driver, and what the host does when it is told may lead there: so the calls
//! for the host are made by the device's own thread ([`Errand::Host`]). What only touches memory is done in
//! place ([`Errand::Memory`]), and is owed until it is over and what it held is dropped: so the device is still there
//! then, and dropping never calls the driver from its own thread. While calls are owed that thread also asks the device for errors now and then,
//! because nobody else may be asking. It ends when the device is closed and nothing is owed any more.
//!
//! Once a device is lost the driver no longer says when a call that it had begun is over: who waits for a stream then
//! also waits until nothing is owed ([`Desk::wait_until_paid`]), since a call may be about to write to its memory.

use super::context::Context;
use std::{
    collections::{HashMap, VecDeque},
    ffi::c_void,
    sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, Weak},
    thread::JoinHandle,
    time::Duration,
};
use tenon_sdk::{Code, KernelError, author::spawn};

/// How often a device is asked for errors while calls are owed.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A call.
pub(super) type Call = Box<dyn FnOnce(Code) + Send>;

/// What a call does, and so who may make it.
pub(super) enum Errand {
    /// Moves bytes in host memory and calls nobody.
    Memory(Call),
    /// Tells the host.
    Host(Call),
}

struct Owed {
    desk: Arc<Desk>,
    errand: Errand,
}

impl Owed {
    fn pay(self, code: Code) {
        let Owed { desk, errand } = self;
        let due = match errand {
            Errand::Host(call) => Some((call, code)),
            Errand::Memory(call) => {
                call(code);
                None
            }
        };
        let mut queue = desk.queue();
        queue.owed -= 1;
        queue.due.extend(due);
        drop(queue);
        desk.turn.notify_all();
    }
}

#[derive(Default)]
struct Table {
    next: usize,
    owed: HashMap<usize, Owed>,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that is owed.
pub(super) struct Ticket(usize);

/// Puts a call into the table.
pub(super) fn owe(desk: &Arc<Desk>, errand: Errand) -> Ticket {
    let desk = Arc::clone(desk);
    desk.queue().owed += 1;
    // The thread's next look is soon.
    desk.turn.notify_all();
    let mut table = table();
    table.next += 1;
    let number = table.next;
    table.owed.insert(number, Owed { desk, errand });
    Ticket(number)
}

impl Ticket {
    /// What the driver hands to [`paid`].
    pub fn as_pointer(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.0)
    }

    /// Makes the call, unless it has been made.
    pub fn settle(&self, code: Code) {
        take(self.0, code);
    }
}

fn take(number: usize, code: Code) {
    let owed = table().owed.remove(&number);
    if let Some(owed) = owed {
        owed.pay(code);
    }
}

/// The host function: the stream has come to the call of this number.
///
/// # Safety
/// `data` is a [`Ticket::as_pointer`].
pub(super) unsafe extern "C" fn paid(data: *mut c_void) {
    take(data.addr(), Code::OK);
}

/// Makes every call that a lost device owes.
pub(super) fn settle(desk: &Arc<Desk>) {
    let lost: Vec<Owed> = {
        let mut table = table();
        let of_desk =
            |(number, owed): (&usize, &Owed)| Arc::ptr_eq(&owed.desk, desk).then_some(*number);
        let numbers: Vec<usize> = table.owed.iter().filter_map(of_desk).collect();
        numbers.iter().filter_map(|number| table.owed.remove(number)).collect()
    };
    lost.into_iter().for_each(|owed| owed.pay(Code::UNAVAILABLE));
}

/// Where calls for the host wait for the device's thread.
#[derive(Default)]
pub(super) struct Desk {
    queue: Mutex<Queue>,
    turn: Condvar,
}

#[derive(Default)]
struct Queue {
    due: VecDeque<(Call, Code)>,
    /// Calls in the table.
    owed: usize,
    closed: bool,
}

impl Desk {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing is owed: each call is over, or is the device's thread's to make. Not for calls themselves.
    pub fn wait_until_paid(&self) {
        let mut queue = self.queue();
        while queue.owed > 0 {
            queue = self.turn.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// As [`Desk::wait_until_paid`], while nobody else looks.
    fn wait_looking(&self, look: impl Fn()) {
        let mut queue = self.queue();
        while queue.owed > 0 {
            let (back, waited) =
                self.turn.wait_timeout(queue, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner);
            queue = back;
            if waited.timed_out() && queue.owed > 0 {
                drop(queue);
                look();
                queue = self.queue();
            }
        }
    }

    /// Waits for a call to make; `Ok(None)` is time for a look, `Err` the end: closed, and nothing owed.
    fn next(&self) -> Result<Option<(Call, Code)>, ()> {
        let mut queue = self.queue();
        loop {
            if let Some(due) = queue.due.pop_front() {
                return Ok(Some(due));
            }
            if queue.owed == 0 {
                if queue.closed {
                    return Err(());
                }
                queue = self.turn.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (back, waited) =
                self.turn.wait_timeout(queue, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner);
            queue = back;
            if waited.timed_out() && queue.due.is_empty() {
                return Ok(None);
            }
        }
    }
}

/// The device's thread.
pub(super) struct Clerk {
    desk: Arc<Desk>,
    context: Weak<Context>,
    thread: Option<JoinHandle<()>>,
}

impl Clerk {
    /// Starts it.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when there is no thread.
    pub fn start(context: &Arc<Context>) -> Result<Clerk, KernelError> {
        let (desk, weak) = (Arc::clone(context.desk()), Arc::downgrade(context));
        let name = format!("cuda-{}", context.facts().ordinal);
        let (own, looked_at) = (Arc::clone(&desk), Weak::clone(&weak));
        let thread = spawn(&name, move || serve(&own, &looked_at)).map_err(|error| {
            KernelError::new(Code::RESOURCE_EXHAUSTED, format!("no thread for {name}: {error}"))
        })?;
        Ok(Clerk { desk, context: weak, thread: Some(thread) })
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        self.desk.queue().closed = true;
        self.desk.turn.notify_all();
        let own = std::thread::current().id();
        match self.thread.take() {
            // A call has let go of the device last: the thread cannot wait for itself, and ends behind that call.
            Some(thread) if thread.thread().id() == own => {
                self.desk.wait_looking(|| look(&self.context));
            }
            // What it panicked with has been logged.
            Some(thread) => drop(thread.join()),
            None => {}
        }
    }
}

fn serve(desk: &Desk, context: &Weak<Context>) {
    while let Ok(due) = desk.next() {
        match due {
            Some((call, code)) => call(code),
            None => look(context),
        }
    }
}

fn look(context: &Weak<Context>) {
    if let Some(context) = context.upgrade() {
        context.look();
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

    /// Says when it is dropped.
    struct Held(Arc<AtomicBool>);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }

    #[test]
    fn a_call_is_owed_until_it_is_over_and_what_it_held_is_gone() {
        let (desk, gone) = (Arc::<Desk>::default(), Arc::<AtomicBool>::default());
        let (begun, begins) = channel();
        let (go, may_go) = channel::<()>();
        let held = Held(Arc::clone(&gone));
        let call = move |_| {
            begun.send(()).expect("the test listens");
            may_go.recv().expect("the test says go");
            let _ = &held;
        };
        let ticket = owe(&desk, Errand::Memory(Box::new(call)));
        let number = ticket.as_pointer().addr();
        // SAFETY: the ticket's own pointer.
        let driver = thread::spawn(move || unsafe {
            paid(std::ptr::without_provenance_mut::<c_void>(number));
        });
        begins.recv().expect("the call has begun");
        // A lost device settles what it owes: this call is somebody's already, and is still not over.
        settle(&desk);
        assert_eq!(desk.queue().owed, 1);
        let waiting = {
            let (desk, gone) = (Arc::clone(&desk), Arc::clone(&gone));
            thread::spawn(move || {
                desk.wait_until_paid();
                gone.load(Ordering::Acquire)
            })
        };
        go.send(()).expect("the call listens");
        assert!(waiting.join().expect("it waits"), "who waited went on before the call was over");
        driver.join().expect("the call returns");
    }

    #[test]
    fn a_call_for_the_host_is_paid_when_it_is_the_threads_to_make() {
        let desk = Arc::<Desk>::default();
        let ticket = owe(&desk, Errand::Host(Box::new(|_| ())));
        ticket.settle(Code::UNAVAILABLE);
        desk.wait_until_paid();
        let (_, code) = desk.next().expect("it is open").expect("there is a call");
        assert_eq!(code, Code::UNAVAILABLE);
        // Nobody makes it twice.
        ticket.settle(Code::OK);
        assert_eq!(desk.queue().due.len(), 0);
    }
}
