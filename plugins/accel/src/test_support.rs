//! What the unit tests share.

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

/// What commands did, in the order in which they did it.
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

unsafe extern "C" fn send(data: *mut c_void, code: Code) {
    // SAFETY: the box of `notification`, once.
    let sender = unsafe { Box::from_raw(data.cast::<mpsc::Sender<Code>>()) };
    let _ = sender.send(code);
}

/// A notification, and where its code arrives.
pub(crate) fn notification() -> (Notification, mpsc::Receiver<Code>) {
    let (sender, receiver) = mpsc::channel();
    let data = Box::into_raw(Box::new(sender)).cast();
    // SAFETY: `send` takes the box from any thread.
    (unsafe { Notification::new(Notify { run: Some(send) }, data) }, receiver)
}

/// Long enough for any machine; a test that waits so long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
