//! The context of a call of a kernel.

use crate::{
    misuse::{mismatch, no_such, read_late, taken_twice},
    slots::view,
    state::StateContext,
};
use std::{cell::Cell, slice};
use tenon_abi::{
    Call, CallServices, Code, DType, DeviceState, MemoryKind, NO_DEADLINE, Range, Slot, Str,
    Stream, slot_flags,
};
use tenon_framework::{KernelError, View, ViewMut, element::Element, shape::same_dims};

/// One call of a kernel.
///
/// A kernel may assume, and the runtime has checked: arity and element types as the op's signature says
/// for this node; `data` of every input non-null, 64-byte aligned in host memory and valid for the
/// shape; arguments in host memory if the registration says `host_memory`, else in the memory of
/// its device. It may not assume anything about shapes that the op's shape function does not check, and may
/// read an input up to its last byte and no further, wherever the input ends in its last 64 bytes.
///
/// # Floating point
/// Arithmetic on the host's threads, those of [`ComputeContext::parallel_for`] among them, rounds to nearest and
/// takes denormal operands and results for zeros of their sign, as TensorFlow's kernels do: in `w * (x * y)` a
/// product `x * y` below the smallest normal number (1.2e-38 of a float) is zero, and so is the whole expression. A
/// kernel that needs such numbers is registered with `denormals = Denormals::Keep`, and computes with them, which
/// takes the processor longer. Comparing and moving numbers flushes none.
pub struct ComputeContext<'a> {
    call: &'a Call,
    /// Outputs that were handed out for writing, as bits.
    pub(super) taken: Cell<u64>,
    /// Outputs from 64 on and below this one count as handed out.
    taken_below: Cell<usize>,
    /// Inputs that were handed out for reading, as bits; those from 64 on count as always read.
    pub(super) read: Cell<u64>,
    /// Inputs whose buffers outputs took over, as bits.
    lost: Cell<u64>,
}

/// An output that may have taken over its input's buffer.
#[derive(Debug)]
pub enum InOut<'a, T> {
    /// One buffer: the input's values, to be overwritten.
    InPlace(&'a mut [T]),
    /// Two buffers.
    Separate(&'a [T], &'a mut [T]),
}

impl<'a> ComputeContext<'a> {
    /// Wraps what the host gives.
    ///
    /// # Safety
    /// `call` is filled as its docs say for `'a`, and no other context for it hands out its outputs.
    #[inline(always)]
    pub unsafe fn new(call: &'a Call) -> ComputeContext<'a> {
        ComputeContext {
            call,
            taken: Cell::new(0),
            taken_below: Cell::new(0),
            read: Cell::new(0),
            lost: Cell::new(0),
        }
    }

    /// The raw call, for services that have no wrapper.
    pub fn raw(&self) -> &'a Call {
        self.call
    }

    #[inline(always)]
    pub(super) fn services(&self) -> &'a CallServices {
        // SAFETY: the host fills the pointer.
        unsafe { &*self.call.services }
    }

    /// Number of inputs.
    #[inline(always)]
    pub fn input_count(&self) -> usize {
        self.call.input_count as usize
    }

    /// Number of outputs.
    #[inline(always)]
    pub fn output_count(&self) -> usize {
        self.call.output_count as usize
    }

    /// Flat positions of the named input argument number `arg`.
    pub fn input_range(&self, arg: usize) -> std::ops::Range<usize> {
        // SAFETY: `input_arg_count` ranges.
        unsafe { range(self.call.input_args, self.call.input_arg_count, arg) }
    }

    /// Flat positions of the named output argument number `arg`.
    pub fn output_range(&self, arg: usize) -> std::ops::Range<usize> {
        // SAFETY: `output_arg_count` ranges.
        unsafe { range(self.call.output_args, self.call.output_arg_count, arg) }
    }

    /// The slot of an input.
    ///
    /// # Errors
    /// `INTERNAL` when there is no such input.
    #[inline(always)]
    pub fn slot(&self, input: usize) -> Result<&'a Slot, KernelError> {
        if input >= self.call.input_count as usize {
            return Err(no_such("input", input, self.call.input_count));
        }
        // SAFETY: `input_count` pointers to filled slots.
        Ok(unsafe { &**self.call.inputs.add(input) })
    }

    /// Dimensions of an input; empty when there is no such input.
    #[inline(always)]
    pub fn dims(&self, input: usize) -> &'a [i64] {
        if input >= self.call.input_count as usize {
            return &[];
        }
        // SAFETY: `input_count` pointers to filled slots, whose dimensions live for as long as the call runs.
        unsafe { (**self.call.inputs.add(input)).shape() }
    }

    /// An input in host memory.
    ///
    /// # Errors
    /// `INTERNAL` when it is of another type, in memory of a device, or was taken over by an output.
    #[inline(always)]
    pub fn input<T: Element>(&self, input: usize) -> Result<View<'a, T>, KernelError> {
        let slot = self.slot(input)?;
        if slot.dtype != T::DTYPE || !slot.memory.is_host_address() {
            return Err(mismatch("input", input, T::DTYPE, slot));
        }
        self.mark_read(input)?;
        // SAFETY: host memory of `elements` elements of this type, not written during the call.
        Ok(unsafe { view(slot) })
    }

    /// The bytes of an input in host memory with elements of fixed size, whatever their type.
    ///
    /// # Errors
    /// As [`ComputeContext::input`].
    #[inline]
    pub fn input_bytes(&self, input: usize) -> Result<&'a [u8], KernelError> {
        let slot = self.slot(input)?;
        if slot.dtype.needs_drop() || !slot.memory.is_host_address() {
            return Err(mismatch("input", input, DType::UINT8, slot));
        }
        self.mark_read(input)?;
        // SAFETY: host memory of `bytes` bytes, not written during the call.
        Ok(unsafe { slice::from_raw_parts(slot.data.cast(), slot.bytes as usize) })
    }

    #[inline(always)]
    pub(super) fn mark_read(&self, input: usize) -> Result<(), KernelError> {
        if input < 64 {
            let bit = 1 << input;
            if self.lost.get() & bit != 0 {
                return Err(read_late(input));
            }
            self.read.set(self.read.get() | bit);
        }
        Ok(())
    }

    /// The slot of an output, for inspection.
    ///
    /// # Errors
    /// `INTERNAL` when there is no such output.
    #[inline(always)]
    pub fn output_slot(&self, output: usize) -> Result<&Slot, KernelError> {
        if output >= self.call.output_count as usize {
            return Err(no_such("output", output, self.call.output_count));
        }
        // SAFETY: `output_count` slots; the host writes them only inside services that this object calls.
        Ok(unsafe { &*self.call.outputs.add(output) })
    }

    /// Makes sure that an output has a buffer of this shape: the planned one, or a fresh one.
    ///
    /// # Errors
    /// No such output, no memory, a shape that overflows.
    #[inline(always)]
    pub fn prepare(&self, output: usize, dims: &[i64]) -> Result<&Slot, KernelError> {
        let slot = self.output_slot(output)?;
        // SAFETY: a planned slot has its dimensions filled.
        if slot.flags & slot_flags::PLANNED != 0 && same_dims(unsafe { slot.shape() }, dims) {
            return Ok(slot);
        }
        self.allocate(output, dims, MemoryKind::ORDINARY)?;
        self.output_slot(output)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn allocate(
        &self,
        output: usize,
        dims: &[i64],
        memory: MemoryKind,
    ) -> Result<(), KernelError> {
        let entry = self.services().allocate.expect("the host fills every entry");
        // SAFETY: an entry of the host's table with the record of this call.
        let code = unsafe {
            entry(self.call.record, output as u32, dims.as_ptr(), dims.len() as u32, memory)
        };
        self.check(code, "cannot allocate an output")
    }

    #[inline(always)]
    pub(super) fn take(&self, output: usize) -> Result<(), KernelError> {
        if output >= 64 {
            return self.take_late(output);
        }
        let bit = 1u64 << output;
        if self.taken.get() & bit != 0 {
            return Err(taken_twice(output));
        }
        self.taken.set(self.taken.get() | bit);
        Ok(())
    }

    /// Outputs that have no bit are taken in ascending order: each at most once.
    #[cold]
    #[inline(never)]
    fn take_late(&self, output: usize) -> Result<(), KernelError> {
        if output < self.taken_below.get() {
            return Err(taken_twice(output));
        }
        self.taken_below.set(output + 1);
        Ok(())
    }

    /// An output in host memory, to be written: the planned buffer, or a fresh one. Its contents are
    /// undefined: write every element. At most once per output; outputs from number 64 on in ascending order.
    ///
    /// # Errors
    /// As [`ComputeContext::prepare`]; `INTERNAL` when it is of another type, in memory of a device, or
    /// already handed out.
    #[inline(always)]
    pub fn output<T: Element>(
        &self,
        output: usize,
        dims: &[i64],
    ) -> Result<ViewMut<'a, T>, KernelError> {
        let slot = self.prepare(output, dims)?;
        self.hand_out(output, slot)
    }

    /// Hands the slot of an output out for writing, once.
    #[inline(always)]
    pub(super) fn hand_out<T: Element>(
        &self,
        output: usize,
        slot: &Slot,
    ) -> Result<ViewMut<'a, T>, KernelError> {
        if slot.dtype != T::DTYPE || !slot.memory.is_host_address() {
            return Err(mismatch("output", output, T::DTYPE, slot));
        }
        self.take(output)?;
        // SAFETY: host memory for `elements` elements that no other code reads or writes during the call; it is
        // handed out once. The slot's dimensions live as long as the call.
        Ok(unsafe {
            ViewMut {
                dims: slot.shape(),
                data: slice::from_raw_parts_mut(slot.data.cast(), slot.elements as usize),
            }
        })
    }

    /// The bytes of an output in host memory with elements of fixed size, whatever their type.
    ///
    /// # Errors
    /// As [`ComputeContext::output`].
    #[inline]
    pub fn output_bytes(&self, output: usize, dims: &[i64]) -> Result<&'a mut [u8], KernelError> {
        let slot = self.prepare(output, dims)?;
        if slot.dtype.needs_drop() || !slot.memory.is_host_address() {
            return Err(mismatch("output", output, DType::UINT8, slot));
        }
        self.take(output)?;
        // SAFETY: as in `output`.
        Ok(unsafe { slice::from_raw_parts_mut(slot.data.cast(), slot.bytes as usize) })
    }

    /// An output that takes over the buffer of an input if nothing else holds it, as the registration's
    /// `in_place` pair allows; else separate buffers. Call this before reading the input in another way.
    ///
    /// # Errors
    /// As [`ComputeContext::input`] and [`ComputeContext::output`].
    pub fn in_place<T: Element>(
        &self,
        input: usize,
        output: usize,
        dims: &[i64],
    ) -> Result<InOut<'a, T>, KernelError> {
        let unread = input < 64 && self.read.get() & (1 << input) == 0;
        let planned = self.output_slot(output)?.flags & slot_flags::PLANNED != 0;
        if !planned && unread && self.forward(input, output, dims)? {
            self.lose(input);
            let slot = *self.output_slot(output)?;
            if slot.dtype != T::DTYPE || !slot.memory.is_host_address() {
                return Err(mismatch("output", output, T::DTYPE, &slot));
            }
            self.take(output)?;
            // SAFETY: the buffer belongs to this output alone now; neither side was handed out before.
            return Ok(InOut::InPlace(unsafe {
                slice::from_raw_parts_mut(slot.data.cast(), slot.elements as usize)
            }));
        }
        let source = self.input::<T>(input)?;
        let target = self.output::<T>(output, dims)?;
        Ok(InOut::Separate(source.data, target.data))
    }

    /// Notes that an output took the buffer of an input over.
    pub(super) fn lose(&self, input: usize) {
        if input < 64 {
            self.read.set(self.read.get() | (1 << input));
            self.lost.set(self.lost.get() | (1 << input));
        }
    }

    /// Whether an output took the buffer of an input over.
    pub(super) fn is_lost(&self, input: usize) -> bool {
        input < 64 && self.lost.get() & (1 << input) != 0
    }

    pub(super) fn forward(
        &self,
        input: usize,
        output: usize,
        dims: &[i64],
    ) -> Result<bool, KernelError> {
        self.slot(input)?;
        let entry = self.services().forward.expect("the host fills every entry");
        // SAFETY: an entry of the host's table with the record of this call; positions are in range.
        let taken = unsafe {
            entry(self.call.record, input as u32, output as u32, dims.as_ptr(), dims.len() as u32)
        };
        Ok(taken != 0)
    }

    /// Returns an input's buffer as an output under another shape: nothing is copied.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the shape has another number of elements.
    pub fn share(&self, input: usize, output: usize, dims: &[i64]) -> Result<(), KernelError> {
        self.slot(input)?;
        self.output_slot(output)?;
        let entry = self.services().share.expect("the host fills every entry");
        // SAFETY: as in `forward`.
        let code = unsafe {
            entry(self.call.record, input as u32, output as u32, dims.as_ptr(), dims.len() as u32)
        };
        self.check(code, "cannot return an input under this shape")
    }

    /// The step's deadline on the clock of [`ComputeContext::now_ns`].
    pub fn deadline_ns(&self) -> Option<u64> {
        // SAFETY: the host fills the step for as long as the call runs.
        let deadline = unsafe { (*self.call.step).deadline_ns };
        (deadline != NO_DEADLINE).then_some(deadline)
    }

    /// Name of the node, for messages. The names of the op and of its arguments are known when the kernel is
    /// created: [`CreateContext::op`](crate::CreateContext::op),
    /// [`CreateContext::input_named`](crate::CreateContext::input_named).
    pub fn node(&self) -> &'a str {
        let entry = self.services().node.expect("the host fills every entry");
        // SAFETY: an entry of the host's table with the record of this call; the name lives as long as the call.
        unsafe { entry(self.call.record).text() }.unwrap_or("")
    }

    /// Number of the step, unique in the process.
    pub fn step_id(&self) -> u64 {
        // SAFETY: the host fills the step for as long as the call runs.
        unsafe { (*self.call.step).step_id }
    }

    /// Control-flow frame and iteration; both 0 outside all loops.
    pub fn frame_iteration(&self) -> (u64, u64) {
        (self.call.frame, self.call.iteration)
    }

    /// Nanoseconds of a monotonic clock.
    pub fn now_ns(&self) -> u64 {
        // SAFETY: an entry of the host's table.
        unsafe { self.services().now_ns.expect("the host fills every entry")() }
    }

    /// Runs `body`, and adds it as a span to the step's trace when one is taken.
    pub fn traced<R>(&self, name: &str, body: impl FnOnce() -> R) -> R {
        if self.call.tracing == 0 {
            return body();
        }
        let begin = self.now_ns();
        let result = body();
        let entry = self.services().trace.expect("the host fills every entry");
        // SAFETY: an entry of the host's table with the record of this call.
        unsafe { entry(self.call.record, Str::new(name), begin, self.now_ns()) };
        result
    }

    /// State of the device, for kernels of the plugin that made it; null on the host's memory.
    pub fn device_state(&self) -> *mut DeviceState {
        self.call.device_state
    }

    /// The stream to enqueue on; null on a device without streams.
    pub fn stream(&self) -> *mut Stream {
        self.call.stream
    }

    /// Resources, variables and references.
    pub fn state(&self) -> StateContext<'a> {
        // SAFETY: the call lives for `'a`.
        unsafe { StateContext::new(self.call) }
    }

    /// An error from a code of the host, which has kept the message already.
    #[inline(always)]
    pub(super) fn check(&self, code: Code, what: &str) -> Result<(), KernelError> {
        if code.is_ok() { Ok(()) } else { Err(KernelError::new(code, what)) }
    }
}

unsafe fn range(first: *const Range, count: u32, arg: usize) -> std::ops::Range<usize> {
    if arg >= count as usize {
        return 0..0;
    }
    // SAFETY: the caller gives `count` ranges at `first`, and `arg` is below `count`.
    let range = unsafe { *first.add(arg) };
    range.start as usize..(range.start + range.len) as usize
}
