//! Kernels, which run as commands on the stream of the call.
//!
//! A kernel runs in two parts. `compute` runs on the host's thread: it checks shapes, allocates the
//! outputs' buffers, and enqueues a command that captures handles, dimensions and arguments in host
//! memory, but no pointer into the call. The command runs on the device's thread in its turn,
//! possibly long after the call, and finds its operands in the device's memory.

mod gradient;
mod math;
mod nn;
mod shape;
mod state;

use crate::{
    device::{Accel, handle_of},
    memory::{Handle, Memory},
    stream::Stream,
};
use std::{marker::PhantomData, sync::Arc};
use tenon_sdk::{
    KernelError,
    abi::{MemoryKind, Slot},
    author::ComputeContext,
    device::author::{device_of, stream_of},
    element::Number,
};

/// A kernel's call, which enqueues a command.
pub struct Launch<'a> {
    context: &'a ComputeContext<'a>,
    device: &'a Accel,
    stream: &'a Stream,
}

/// A tensor in the device's memory, as a command stores it.
pub struct Operand<T> {
    handle: Handle,
    count: usize,
    element: PhantomData<fn() -> T>,
}

impl<'a> Launch<'a> {
    /// Takes device and stream from the call.
    ///
    /// # Errors
    /// `INTERNAL` when the host gives no device or no stream.
    pub fn new(context: &'a ComputeContext<'a>) -> Result<Launch<'a>, KernelError> {
        if context.device_state().is_null() {
            return Err(KernelError::internal("a kernel of ACCEL was given no device"));
        }
        // SAFETY: kernels of this crate are registered for ACCEL alone, so that the host gives them
        // an open `Accel` and one of its streams, both alive while the call runs.
        let (device, stream) = unsafe {
            (device_of::<Accel>(context.device_state()), stream_of::<Accel>(context.stream()))
        };
        let stream =
            stream.ok_or_else(|| KernelError::internal("a kernel of ACCEL was given no stream"))?;
        Ok(Launch { context, device, stream })
    }

    /// An input in the device's memory.
    ///
    /// # Errors
    /// `INTERNAL` when it has another type or is in other memory.
    pub fn input<T: Number>(&self, input: usize) -> Result<Operand<T>, KernelError> {
        Operand::new(self.context.slot(input)?)
    }

    /// An output in the device's memory: the planned buffer, or a new one.
    ///
    /// # Errors
    /// As [`Launch::input`]; out of memory.
    pub fn output<T: Number>(
        &self,
        output: usize,
        dims: &[i64],
    ) -> Result<Operand<T>, KernelError> {
        Operand::new(self.context.prepare(output, dims)?)
    }

    /// Enqueues the command.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the device is lost. The error of `body` goes to the stream.
    pub fn enqueue(
        &self,
        name: &'static str,
        body: impl FnOnce(&Memory) -> Result<(), KernelError> + Send + 'static,
    ) -> Result<(), KernelError> {
        let memory = Arc::clone(self.device.memory());
        self.stream.kernel(name, move || body(&memory))
    }
}

impl<T: Number> Operand<T> {
    fn new(slot: &Slot) -> Result<Operand<T>, KernelError> {
        if slot.memory != MemoryKind::DEVICE || slot.dtype != T::DTYPE {
            return Err(KernelError::internal(format!(
                "expected {} in memory kind {}, found {} in memory kind {}",
                T::DTYPE,
                MemoryKind::DEVICE.0,
                slot.dtype,
                slot.memory.0
            )));
        }
        let count = usize::try_from(slot.elements)
            .map_err(|_| KernelError::internal("a tensor with more elements than addresses"))?;
        Ok(Operand { handle: handle_of(slot.data), count, element: PhantomData })
    }

    /// The tensor's elements, when the command runs.
    ///
    /// # Errors
    /// As [`Memory::read`].
    pub fn read(&self, memory: &Memory) -> Result<Vec<T>, KernelError> {
        memory.read_elements(self.handle, self.count)
    }

    /// Fills the tensor with what `compute` writes, when the command runs.
    ///
    /// # Errors
    /// As [`Memory::write`].
    pub fn write(
        &self,
        memory: &Memory,
        compute: impl FnOnce(&mut [T]),
    ) -> Result<(), KernelError> {
        let mut elements = vec![T::ZERO; self.count];
        compute(&mut elements);
        memory.write_elements(self.handle, &elements)
    }
}
