//! The states of kernels that the host created here, by number.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tenon_abi::{KernelState, KernelTable, Packed, Slot};
use tenon_framework::{KernelError, sync::Mutex};
use tenon_host::sink::MessageSink;

/// A kernel's state. Dropping it destroys the state, then its packed inputs.
pub(super) struct Made {
    pub table: &'static KernelTable,
    pub state: *mut KernelState,
    /// Name of the node.
    pub node: String,
    packed: Vec<*mut Packed>,
}

// SAFETY: the contract of kernel tables says that calls for one state run on any thread, also at
// the same time.
unsafe impl Send for Made {}
// SAFETY: as for `Send`.
unsafe impl Sync for Made {}

impl Made {
    pub fn new(table: &'static KernelTable, state: *mut KernelState, node: &str) -> Made {
        Made { table, state, node: node.to_owned(), packed: Vec::new() }
    }

    /// Asks the kernel to pack a constant input.
    ///
    /// # Safety
    /// - `constant` is a set slot whose memory lives as long as the state.
    pub unsafe fn prepack(&mut self, input: u32, constant: &Slot) -> Result<(), KernelError> {
        let (Some(prepack), Some(attach), Some(_)) =
            (self.table.prepack, self.table.attach_packed, self.table.release_packed)
        else {
            return Ok(());
        };
        let sink = MessageSink::new();
        let (mut packed, mut bytes) = (std::ptr::null_mut(), 0);
        // SAFETY: the kernel's own entry and state, a filled view, and two pointers that are valid
        // for writes.
        let code = unsafe {
            prepack(self.state, input, constant, &mut packed, &mut bytes, sink.as_sink())
        };
        sink.check(code)?;
        if !packed.is_null() {
            // SAFETY: no call has begun, and the packed form lives until the state is destroyed.
            unsafe { attach(self.state, input, packed) };
            self.packed.push(packed);
        }
        Ok(())
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(destroy) = self.table.destroy {
            // SAFETY: the state that `create` made; nothing calls the kernel any more.
            unsafe { destroy(self.state) }
        }
        for packed in self.packed.drain(..) {
            if let Some(release) = self.table.release_packed {
                // SAFETY: the kernel gave this form away, and nothing uses it any more.
                unsafe { release(packed) }
            }
        }
    }
}

/// All states of the process.
#[derive(Default)]
pub(super) struct States {
    made: Mutex<HashMap<u64, Arc<Made>>>,
    last: AtomicU64,
}

impl States {
    /// Stores a state; returns its number.
    pub fn keep(&self, made: Made) -> u64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.made.lock().insert(number, Arc::new(made));
        number
    }

    /// The state with a number.
    pub fn get(&self, number: u64) -> Result<Arc<Made>, KernelError> {
        let made = self.made.lock().get(&number).cloned();
        made.ok_or_else(|| KernelError::internal(format!("there is no kernel of number {number}")))
    }

    /// Removes a state, which is destroyed when its last call is over.
    pub fn remove(&self, number: u64) {
        let made = self.made.lock().remove(&number);
        drop(made);
    }
}
