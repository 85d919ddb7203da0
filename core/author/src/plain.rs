//! Plain calls, which are most calls of most kernels, are recognised at once.

use crate::compute::ComputeContext;
use std::slice;
use tenon_abi::{Slot, slot_flags};
use tenon_framework::{element::Element, shape::same_dims};

fn holds<T: Element>(slot: &Slot) -> bool {
    slot.dtype == T::DTYPE && slot.memory.is_host_address()
}

impl<'a> ComputeContext<'a> {
    /// The elements of all `N` inputs and of output 0, to be written, if the call is a plain one for an
    /// elementwise kernel: one shape, one element type, host memory, and an output that has its buffer already.
    /// They are as many on every side.
    ///
    /// `None` in all other cases, and then nothing is handed out: what is wrong, or only different, is for
    /// [`ComputeContext::input`] and [`ComputeContext::output`] to say.
    #[inline(always)]
    pub fn elementwise<T: Element, const N: usize>(&self) -> Option<([&'a [T]; N], &'a mut [T])> {
        let call = self.raw();
        let untouched = self.taken.get() == 0 && self.read.get() == 0;
        if call.input_count as usize != N || call.output_count == 0 || !untouched {
            return None;
        }
        // SAFETY: there is an output; the host writes its slot only inside services.
        let output = unsafe { &*call.outputs };
        if output.flags & slot_flags::PLANNED == 0 || !holds::<T>(output) {
            return None;
        }
        let mut inputs: [&'a [T]; N] = [&[]; N];
        for (at, input) in inputs.iter_mut().enumerate() {
            // SAFETY: `N` pointers to filled slots, with dimensions that live as long as the call.
            let (slot, dims) = unsafe {
                let slot: &Slot = &**call.inputs.add(at);
                (slot, slot.shape())
            };
            // SAFETY: as above.
            if !holds::<T>(slot) || !same_dims(dims, unsafe { output.shape() }) {
                return None;
            }
            // SAFETY: host memory of as many elements as the output has, since the shapes are equal; not
            // written during the call.
            *input = unsafe { slice::from_raw_parts(slot.data.cast(), output.elements as usize) };
        }
        self.taken.set(1);
        self.read.set(u64::MAX >> (64 - N));
        // SAFETY: host memory that no other code reads or writes during the call; handed out once.
        let output =
            unsafe { slice::from_raw_parts_mut(output.data.cast(), output.elements as usize) };
        Some((inputs, output))
    }
}
