//! The stream whose work may still write the value of a variable.
//!
//! A kernel of a device enqueues its update and gives the lock up before the update is done. What
//! follows on the same stream comes after it; a call with another stream, which is of another step
//! or of another partition, waits here until the work is done.
//!
//! # States
//! There is *none*, or *one*: the stream of the last call that wrote the value. [`Writer::set`] is
//! called under the exclusive lock of the variable, before the work is enqueued, by a call that has
//! waited for the stream that was there before. The end of the step takes it away, once the stream
//! is done and before it is destroyed; a call that waits holds the mutex, so that it waits for a
//! stream that is there.

use super::Variable;
use std::sync::Arc;
use tenon_abi::Stream;
use tenon_framework::{
    KernelError,
    device::base::{LocalDevice, StreamId},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
        rank,
    },
};

impl Variable {
    /// Notes that work on this stream is about to write the value; returns false if it was noted
    /// before. The caller must hold the lock.
    pub fn written_by(&self, device: Arc<dyn LocalDevice>, stream: StreamId) -> bool {
        self.writer.set(device, stream)
    }

    /// Waits for the work that writes the value, unless it is on this stream, which is null for none.
    /// The caller must hold the lock or a reference to the value.
    ///
    /// # Errors
    /// The first error of the stream that writes.
    #[inline(always)]
    pub fn await_writer(&self, own: *mut Stream) -> Result<(), KernelError> {
        self.writer.wait(own)
    }

    /// Forgets a stream that may have been noted as the writer: it is done.
    pub fn forget_writer(&self, stream: StreamId) {
        self.writer.forget(stream);
    }
}

/// A stream of a device.
type OfDevice = (Arc<dyn LocalDevice>, StreamId);

/// The stream that writes the value of a variable.
pub(super) struct Writer {
    /// Whether there is one. It changes under the mutex.
    is_there: AtomicBool,
    stream: Mutex<Option<OfDevice>>,
}

impl Writer {
    pub fn new() -> Writer {
        Writer { is_there: AtomicBool::new(false), stream: Mutex::ranked(rank::WRITER, None) }
    }

    /// Sets the stream; returns false if it was this one.
    pub fn set(&self, device: Arc<dyn LocalDevice>, stream: StreamId) -> bool {
        let mut writer = self.stream.lock();
        if writer.as_ref().is_some_and(|(_, before)| *before == stream) {
            return false;
        }
        *writer = Some((device, stream));
        self.is_there.store(true, Ordering::Release);
        true
    }

    /// Waits until the work is done, unless it is on this stream.
    ///
    /// # Errors
    /// The first error of the stream.
    #[inline(always)]
    pub fn wait(&self, own: *mut Stream) -> Result<(), KernelError> {
        match self.is_there.load(Ordering::Acquire) {
            true => self.wait_for_it(own),
            false => Ok(()),
        }
    }

    #[cold]
    fn wait_for_it(&self, own: *mut Stream) -> Result<(), KernelError> {
        let writer = self.stream.lock();
        match &*writer {
            Some((device, stream)) if stream.as_raw() != own => device.synchronize_stream(*stream),
            _ => Ok(()),
        }
    }

    /// Takes a stream away, whose work is done.
    pub fn forget(&self, stream: StreamId) {
        let mut writer = self.stream.lock();
        if writer.as_ref().is_some_and(|(_, there)| *there == stream) {
            let gone = writer.take();
            self.is_there.store(false, Ordering::Release);
            drop(writer);
            // The last reference to a device closes it, which takes other locks.
            drop(gone);
        }
    }
}
