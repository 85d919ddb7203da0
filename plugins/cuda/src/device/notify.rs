//! Calls that a device owes: exactly once each, whatever happens.
//!
//! A call is *owed* from [`owe`] on, under a number, until whoever takes it out of the table first makes it: the
//! driver's thread, when the stream gets there ([`paid`]); who could not enqueue it ([`Ticket::settle`]);
//! or, when the device is lost, [`settle`], for a lost context runs no host functions any more.
//!
//! The driver's thread may not call the driver, and what the host does when it is told may lead there: so the calls
//! for the host are made by the device's own thread ([`Errand::Host`]). What only touches memory is done in
//! place ([`Errand::Memory`]). While calls are owed that thread also asks the device for errors now and then,
//! because nobody else may be asking. It ends when the device is closed and nothing is owed any more.

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
        let mut queue = self.desk.queue();
        queue.owed -= 1;
        match self.errand {
            Errand::Host(call) => {
                queue.due.push_back((call, code));
                drop(queue);
                self.desk.turn.notify_one();
            }
            Errand::Memory(call) => {
                drop(queue);
                call(code);
            }
        }
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
pub(super) fn owe(context: &Context, errand: Errand) -> Ticket {
    let desk = Arc::clone(context.desk());
    desk.queue().owed += 1;
    // The thread's next look is soon.
    desk.turn.notify_one();
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
        let own = Arc::clone(&desk);
        let thread = spawn(&name, move || serve(&own, &weak)).map_err(|error| {
            KernelError::new(Code::RESOURCE_EXHAUSTED, format!("no thread for {name}: {error}"))
        })?;
        Ok(Clerk { desk, thread: Some(thread) })
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        self.desk.queue().closed = true;
        self.desk.turn.notify_all();
        let own = std::thread::current().id();
        // A call may have let go of the device last: the thread cannot wait for itself, and ends behind that call.
        if let Some(thread) = self.thread.take().filter(|it| it.thread().id() != own) {
            // What it panicked with has been logged.
            let _ = thread.join();
        }
    }
}

fn serve(desk: &Desk, context: &Weak<Context>) {
    while let Ok(due) = desk.next() {
        match due {
            Some((call, code)) => call(code),
            None => {
                if let Some(context) = context.upgrade() {
                    context.look();
                }
            }
        }
    }
}
