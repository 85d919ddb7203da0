//! Log messages, for a function of the program.
//!
//! # States of a receiver
//! *Current* from the call that sets it to the next one; then *retired*, when no call of it begins. The call that retires it waits for
//! those that run. A receiver's record is never freed, so that a thread that looks at a retired one reads no freed memory.

use crate::{client::status::Status, fail::Failure, status::c_text};
use std::{
    cell::Cell,
    ffi::{c_char, c_int, c_void},
    fmt::{self, Write},
    ptr,
    sync::{
        LazyLock, OnceLock,
        atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};
use tenon_framework::{Code, sync::Mutex};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::Interest,
};

/// The severity of a log message, as C passes it.
pub type LogLevel = c_int;

/// Receives a log message: its severity, the part of the library that it is from, its text, and the caller's argument. The texts stay
/// during the call. Threads of the library call it, several at once; it returns soon, and calls no function of the library.
pub type LogReceiver = unsafe extern "C" fn(
    level: LogLevel,
    target: *const c_char,
    message: *const c_char,
    argument: *mut c_void,
);

/// The most severe level that still counts everything.
const MOST: LogLevel = 5;

struct Receiver {
    call: LogReceiver,
    argument: *mut c_void,
    /// The calls that run, and the threads that are about to see that it is retired.
    busy: AtomicUsize,
}

// SAFETY: the caller gave function and argument for use by all threads, as the header says.
unsafe impl Send for Receiver {}
// SAFETY: as above.
unsafe impl Sync for Receiver {}

/// The current receiver; null for none.
static CURRENT: AtomicPtr<Receiver> = AtomicPtr::new(ptr::null_mut());
/// The least severe level that is passed on.
static LEVEL: AtomicU8 = AtomicU8::new(0);
/// All receivers.
static ALL: LazyLock<Mutex<Vec<&'static Receiver>>> = LazyLock::new(Mutex::default);

thread_local! {
    /// Whether this thread calls a receiver.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

fn number(level: &Level) -> u8 {
    match *level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        Level::TRACE => 5,
    }
}

/// The text of an event: its message, and then its fields.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

/// Makes the current receiver busy, so that the call that retires it waits.
fn hold() -> Option<&'static Receiver> {
    loop {
        let current = CURRENT.load(Ordering::SeqCst);
        // SAFETY: receivers are never freed.
        let receiver = unsafe { current.as_ref() }?;
        receiver.busy.fetch_add(1, Ordering::SeqCst);
        if ptr::eq(CURRENT.load(Ordering::SeqCst), receiver) {
            return Some(receiver);
        }
        receiver.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

struct ToReceiver {
    spans: AtomicU64,
}

impl Subscriber for ToReceiver {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && metadata.target().starts_with("tenon")
            && number(metadata.level()) <= LEVEL.load(Ordering::Relaxed)
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        // The level may change later.
        match metadata.is_event() && metadata.target().starts_with("tenon") {
            true => Interest::sometimes(),
            false => Interest::never(),
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed).max(1))
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        if INSIDE.replace(true) {
            return;
        }
        let mut text = Text::default();
        event.record(&mut text);
        let metadata = event.metadata();
        let target = c_text(&metadata.target().replace("::", "."));
        let message = c_text(&(text.message + &text.fields));
        if let Some(receiver) = hold() {
            let level = LogLevel::from(number(metadata.level()));
            // SAFETY: the caller gave the function for such texts and for this argument.
            unsafe { (receiver.call)(level, target.as_ptr(), message.as_ptr(), receiver.argument) };
            receiver.busy.fetch_sub(1, Ordering::SeqCst);
        }
        INSIDE.set(false);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Makes events come here, unless the program has a subscriber of its own.
fn subscribe() -> Result<(), Failure> {
    static SUBSCRIBED: OnceLock<bool> = OnceLock::new();
    let made = SUBSCRIBED.get_or_init(|| {
        tracing::subscriber::set_global_default(ToReceiver { spans: AtomicU64::new(1) }).is_ok()
    });
    match made {
        true => Ok(()),
        false => Err(Failure::new(
            Code::FAILED_PRECONDITION,
            "the process has a subscriber of tracing already: read the messages there",
        )),
    }
}

fn set(call: Option<LogReceiver>, argument: *mut c_void, level: LogLevel) -> Result<(), Failure> {
    let level = u8::try_from(level).ok().filter(|&level| LogLevel::from(level) <= MOST);
    let level = level.ok_or_else(|| {
        Failure::invalid("level: expected a value of tn_log_level, from TN_LOG_OFF to TN_LOG_TRACE")
    })?;
    if INSIDE.get() {
        return Err(Failure::new(
            Code::FAILED_PRECONDITION,
            "a receiver of log messages calls no function of the library: set another one elsewhere",
        ));
    }
    subscribe()?;
    let next = call.map_or(ptr::null_mut(), |call| {
        let made = Box::leak(Box::new(Receiver { call, argument, busy: AtomicUsize::new(0) }));
        ALL.lock().push(made);
        ptr::from_ref(made).cast_mut()
    });
    LEVEL.store(level, Ordering::Relaxed);
    let former = CURRENT.swap(next, Ordering::SeqCst);
    // SAFETY: receivers are never freed.
    if let Some(former) = unsafe { former.as_ref() } {
        while former.busy.load(Ordering::SeqCst) > 0 {
            thread::yield_now();
        }
    }
    Ok(())
}

api! {
    /// Sets the function of the process that receives log messages of this level and of more severe ones, in the place of a former one;
    /// null for none. When this returns, no call of the former one runs. Without a receiver, nothing is written anywhere.
    fn tn_log_set(
        receiver: Option<LogReceiver>,
        argument: *mut c_void,
        level: LogLevel,
        status: Option<&mut Status>,
    ) -> bool [status] {
        set(receiver, argument, level)?;
        Ok(true)
    }
}
