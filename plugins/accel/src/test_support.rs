//! Helpers of the unit tests.

use crate::{
    Settings,
    faults::{Faults, Health},
    queue::Queue,
    settings::Pace,
};
use std::{
    ffi::c_void,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};
use tenon_sdk::{
    Code,
    abi::Notify,
    device::author::{DeviceHandle, Notification},
};

/// A switch that stalls a queue.
#[derive(Clone, Default)]
pub(crate) struct Stall(Arc<AtomicBool>);

impl Stall {
    pub(crate) fn set(&self, stall: bool) {
        self.0.store(stall, Ordering::SeqCst);
    }

    pub(crate) fn settings(&self) -> Settings {
        let stall = Arc::clone(&self.0);
        let pace = move || Pace { stall: stall.load(Ordering::SeqCst), ..Pace::default() };
        Settings { pace: Arc::new(pace), ..Settings::default() }
    }
}

pub(crate) fn queue(settings: &Settings) -> Arc<Queue> {
    let health = Arc::new(Health::new(DeviceHandle::NONE));
    Arc::new(Queue::start("test-queue", settings, health).unwrap())
}

pub(crate) fn faulty(faults: Faults) -> Settings {
    Settings { faults, ..Settings::default() }
}

/// Names of the commands that ran, in the order in which they ran.
#[derive(Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn read(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Sends the code to the receiver of a notification.
///
/// # Safety
/// - `data` is the box of [`notification`], and this is its only call.
unsafe extern "C" fn send(data: *mut c_void, code: Code) {
    // SAFETY: this is the box of `notification`, taken once.
    let sender = unsafe { Box::from_raw(data.cast::<mpsc::Sender<Code>>()) };
    let _ = sender.send(code);
}

/// A notification, and a receiver for its code.
pub(crate) fn notification() -> (Notification, mpsc::Receiver<Code>) {
    let (sender, receiver) = mpsc::channel();
    let data = Box::into_raw(Box::new(sender)).cast();
    // SAFETY: `send` may take the box on any thread.
    (unsafe { Notification::new(Notify { run: Some(send) }, data) }, receiver)
}

/// Time limit of waits in tests: more than any machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
