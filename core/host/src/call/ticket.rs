//! Which call an asynchronous completion belongs to, and whether it may still complete it.
//!
//! A kernel completes a call by the record that it received, on any thread. A faulty kernel does so
//! twice: while its step still runs, when the frame is used for the next call, or when the frame is
//! gone. So the record of an asynchronous call does not point to its frame: it is the address of a
//! ticket, which is never freed, with the number of the call in the low bits.
//!
//! States of a ticket: *idle* → *running* ([`Ticket::begin`], by the owner of the frame) → *idle*
//! ([`Ticket::end`], by the first that completes the call with that number; later ones learn that
//! they are late). The frame exists from when it takes the ticket until it gives it back, which it
//! does only when idle.
//!
//! The low bits distinguish [`NUMBERS`] calls: a second completion is mistaken for another call's
//! only when it comes exactly a multiple of that many calls late.

use super::frame::CallFrame;
use std::{
    collections::VecDeque,
    ptr,
    sync::{Arc, LazyLock},
};
use tenon_abi::CallRecord;
use tenon_framework::sync::{
    Mutex,
    atomic::{AtomicPtr, AtomicU64, Ordering},
};

#[cfg(all(test, loom))]
mod model;

/// Calls of one ticket that a record distinguishes.
const NUMBERS: u64 = 128;
/// The low bits of a record: the number of the call, and 1 in the lowest. A frame's own address has
/// 0 there.
const LOW: usize = 2 * NUMBERS as usize - 1;
/// The lowest bit of a state.
const RUNNING: u64 = 1;

/// Is notified when a kernel completes a call that is over.
pub trait Watch: Send + Sync {
    /// The call belonged to node `index` in step `step`. Returns whether that step still ran, and
    /// fails now.
    fn completed_again(&self, index: u32, step: u64) -> bool;
}

/// The frame whose calls use the ticket.
struct Holder {
    watch: Option<Arc<dyn Watch>>,
    index: u32,
    /// Name of the node, for the log.
    node: String,
    /// Number of the holder's first call.
    first: u64,
    /// The step of the last call, and the first call in that step.
    step: u64,
    first_of_step: u64,
}

/// The state of asynchronous calls of a frame; see the module's docs.
#[repr(align(256))]
pub(super) struct Ticket {
    /// Twice the number of the last call, and whether it runs.
    state: AtomicU64,
    frame: AtomicPtr<CallFrame>,
    holder: Mutex<Holder>,
    /// The number of the last call that was completed again; 0 if none was.
    repeated: AtomicU64,
}

const _: () = assert!(align_of::<Ticket>() == LOW + 1 && align_of::<CallFrame>() > 1);

/// The result of [`Ticket::again`].
pub(super) struct Again {
    pub watch: Option<Arc<dyn Watch>>,
    pub index: u32,
    /// The step of the call; `None` for a call before the last step.
    pub step: Option<u64>,
    /// Name of the node; empty when the frame of the call is gone and another frame has the ticket.
    pub node: String,
}

/// Tickets of frames that are gone. The one unused for longest is reused first.
static FREE: LazyLock<Mutex<VecDeque<&'static Ticket>>> = LazyLock::new(Mutex::default);

impl Ticket {
    fn new() -> Ticket {
        let holder = Holder {
            watch: None,
            index: 0,
            node: String::new(),
            first: 0,
            step: 0,
            first_of_step: 0,
        };
        Ticket {
            state: AtomicU64::new(0),
            frame: AtomicPtr::new(ptr::null_mut()),
            holder: Mutex::new(holder),
            repeated: AtomicU64::new(0),
        }
    }

    /// Takes a ticket for a frame, which must not move any more.
    pub fn take(frame: &CallFrame, watch: Option<Arc<dyn Watch>>) -> &'static Ticket {
        let free = FREE.lock().pop_front();
        let ticket = free.unwrap_or_else(|| Box::leak(Box::new(Ticket::new())));
        let next = ticket.number() + 1;
        let node = format!("node '{}' ({})", frame.node().name, frame.node().op);
        let (first, index) = (next, frame.index);
        *ticket.holder.lock() = Holder { watch, index, node, first, step: 0, first_of_step: next };
        ticket.frame.store(ptr::from_ref(frame).cast_mut(), Ordering::Release);
        ticket
    }

    /// Returns the ticket; the frame is going away.
    pub fn give_back(&'static self) {
        self.frame.store(ptr::null_mut(), Ordering::Release);
        self.holder.lock().watch = None;
        FREE.lock().push_back(self);
    }

    fn number(&self) -> u64 {
        self.state.load(Ordering::Acquire) >> 1
    }

    /// The record that represents call `number`.
    fn record(&self, number: u64) -> *mut CallRecord {
        let low = ((number % NUMBERS) << 1) as usize | 1;
        ptr::from_ref(self).cast_mut().cast::<CallRecord>().map_addr(|address| address | low)
    }

    /// The ticket behind a record and the number in its low bits; `None` for a frame's own address.
    pub fn of(record: *mut CallRecord) -> Option<(&'static Ticket, u64)> {
        let low = record.addr() & LOW;
        if low & 1 == 0 {
            return None;
        }
        let ticket = record.map_addr(|address| address & !LOW).cast::<Ticket>();
        // SAFETY: a record with the lowest bit set is of `Ticket::record`, and tickets are never
        // freed.
        Some((unsafe { &*ticket }, low as u64 >> 1))
    }

    /// Begins a call in step `step` and returns its record; `None` while another call runs. Only
    /// the frame's owner begins calls.
    pub fn begin(&self, step: u64) -> Option<*mut CallRecord> {
        let state = self.state.load(Ordering::Acquire);
        if state & RUNNING != 0 {
            return None;
        }
        let number = (state >> 1) + 1;
        let mut holder = self.holder.lock();
        if holder.step != step {
            (holder.step, holder.first_of_step) = (step, number);
        }
        drop(holder);
        self.state.store(number << 1 | RUNNING, Ordering::Release);
        Some(self.record(number))
    }

    /// The frame, while the call with these low bits runs.
    pub fn frame(&self, low: u64) -> Option<*mut CallFrame> {
        let state = self.state.load(Ordering::Acquire);
        let runs = state & RUNNING != 0 && (state >> 1) % NUMBERS == low;
        runs.then(|| self.frame.load(Ordering::Acquire))
    }

    /// Ends the call with these low bits; the first caller receives the frame.
    pub fn end(&self, low: u64) -> Option<*mut CallFrame> {
        let state = self.state.load(Ordering::Acquire);
        if state & RUNNING == 0 || (state >> 1) % NUMBERS != low {
            return None;
        }
        let ended = self.state.compare_exchange(
            state,
            state & !RUNNING,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        ended.is_ok().then(|| self.frame.load(Ordering::Acquire))
    }

    /// Whether the last call was completed again by now. Calls are numbered from 1.
    pub fn was_repeated(&self) -> bool {
        self.repeated.load(Ordering::Acquire) == self.number()
    }

    /// Returns the state of a call that ended before, as far as it is known, and remembers that it was completed again.
    pub fn again(&self, low: u64) -> Again {
        let holder = self.holder.lock();
        let last = self.number();
        // The last call that has these low bits.
        let number = last - (last.wrapping_sub(low) % NUMBERS).min(last);
        let known = number >= holder.first;
        self.repeated.store(number, Ordering::Release);
        Again {
            watch: holder.watch.clone().filter(|_| known),
            index: holder.index,
            step: (known && number >= holder.first_of_step).then_some(holder.step),
            node: if known { holder.node.clone() } else { String::new() },
        }
    }
}
