//! Memory that a kernel requests: scratch, and outputs in memory of another kind than their own.

use crate::compute::ComputeContext;
use std::{ffi::c_void, slice};
use tenon_abi::{Code, HOST_ALIGNMENT, MemoryKind, Slot, slot_flags};
use tenon_framework::{KernelError, ViewMut, element::Element};

impl<'a> ComputeContext<'a> {
    /// As [`ComputeContext::prepare`], in memory of this kind, whatever the output's own kind.
    /// Readers of the output find it there: a kernel on the device sees the kind in the slot.
    ///
    /// # Errors
    /// As [`ComputeContext::prepare`]; `INVALID_ARGUMENT` when the device has no memory of this kind.
    pub fn prepare_in(
        &self,
        output: usize,
        dims: &[i64],
        memory: MemoryKind,
    ) -> Result<&Slot, KernelError> {
        let slot = self.output_slot(output)?;
        // SAFETY: a planned slot has its dimensions filled.
        let planned = slot.flags & slot_flags::PLANNED != 0 && unsafe { slot.shape() } == dims;
        if !planned || slot.memory != memory {
            self.allocate(output, dims, memory)?;
        }
        self.output_slot(output)
    }

    /// As [`ComputeContext::output`], in memory of this kind, such as pinned or shared memory of a device without
    /// streams. On a stream, use [`ComputeContext::prepare_in`] and a command that writes.
    ///
    /// ```
    /// use tenon_author::ComputeContext;
    /// use tenon_framework::{KernelError, abi::MemoryKind};
    ///
    /// /// A copy that the device's copy engine can fetch.
    /// fn pinned(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    ///     let x = c.input::<f32>(0)?;
    ///     let y = c.output_in::<f32>(0, x.dims, MemoryKind::PINNED)?;
    ///     y.data.copy_from_slice(x.data);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`ComputeContext::output`] and [`ComputeContext::prepare_in`]; `INVALID_ARGUMENT` for memory that the
    /// host cannot address, and on a stream for all but the host's own.
    pub fn output_in<T: Element>(
        &self,
        output: usize,
        dims: &[i64],
        memory: MemoryKind,
    ) -> Result<ViewMut<'a, T>, KernelError> {
        self.written_at_once(memory)?;
        let slot = *self.prepare_in(output, dims, memory)?;
        self.hand_out(output, &slot)
    }

    /// On a stream, memory that the device uses is reused in the stream's order: only enqueued commands may
    /// write it.
    fn written_at_once(&self, memory: MemoryKind) -> Result<(), KernelError> {
        let problem = if !memory.is_host_address() {
            "which the host cannot address"
        } else if memory != MemoryKind::HOST && !self.stream().is_null() {
            "which on a stream is written by what is enqueued"
        } else {
            return Ok(());
        };
        Err(KernelError::invalid_argument(format!(
            "asked for a slice in memory kind {}, {problem}: use `prepare_in` or `scratch`",
            memory.0
        )))
    }

    /// Memory for the time of this call, aligned to 64 bytes; contents are undefined. In memory of a device
    /// the result is the device's handle.
    ///
    /// # Errors
    /// There is no memory left, or the device has no memory of this kind.
    pub fn scratch(&self, bytes: usize, memory: MemoryKind) -> Result<*mut c_void, KernelError> {
        let entry = self.services().scratch.expect("the host fills every entry");
        let (align, mut result) = (HOST_ALIGNMENT as u64, std::ptr::null_mut());
        // SAFETY: an entry of the host's table with the record of this call.
        let code = unsafe { entry(self.raw().record, bytes as u64, align, memory, &mut result) };
        self.check(code, "cannot lend scratch memory")?;
        Ok(result)
    }

    /// Host memory for `count` elements for the time of this call, all zero.
    ///
    /// # Errors
    /// No memory.
    pub fn scratch_slice<T: Element>(&self, count: usize) -> Result<&'a mut [T], KernelError> {
        self.scratch_slice_in(count, MemoryKind::HOST)
    }

    /// As [`ComputeContext::scratch_slice`], in memory of this kind.
    ///
    /// # Errors
    /// As [`ComputeContext::scratch`]; `INVALID_ARGUMENT` as for [`ComputeContext::output_in`].
    pub fn scratch_slice_in<T: Element>(
        &self,
        count: usize,
        memory: MemoryKind,
    ) -> Result<&'a mut [T], KernelError> {
        self.written_at_once(memory)?;
        let bytes = count
            .checked_mul(size_of::<T>())
            .ok_or_else(|| KernelError::new(Code::RESOURCE_EXHAUSTED, "scratch size overflows"))?;
        let data = self.scratch(bytes, memory)?.cast::<T>();
        // SAFETY: fresh memory for `count` elements that the host can address, ours until the call completes;
        // all zero bits are a value of every element type.
        unsafe {
            data.write_bytes(0, count);
            Ok(slice::from_raw_parts_mut(data, count))
        }
    }
}
