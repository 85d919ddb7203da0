//! Values of variables that a step on streams has read.
//!
//! A step on streams keeps what it has read until the streams are done, since work on them may still
//! read it. An update of the same step needs no copy of such a value if it comes after that work: then
//! nobody else will read it.

use super::{partition::PartitionState, propagate::Propagate};
use tenon_framework::{KernelError, tensor::Buffer};
use tenon_host::call::CallFrame;

/// Whether all references to a buffer, but for that of its variable, are those of outputs whose readers
/// are done; then the streams of the step are joined in that of the call ([`tenon_host::call::AreRead`]).
///
/// # Errors
/// The error of the device.
///
/// # Safety
/// - `frame` must be one of a settled [`PartitionState`] of this form, and one of its calls runs, under the
///   exclusive lock of the variable.
pub(super) unsafe fn are_read<P: Propagate>(
    frame: *const CallFrame,
    buffer: &Buffer,
) -> Result<bool, KernelError> {
    // SAFETY: the caller guarantees a frame of such a state, which is its owner and lives longer.
    let (state, index) = unsafe {
        let frame = &*frame;
        (&*frame.owner.cast_const().cast::<PartitionState<P>>(), frame.index)
    };
    let Some(streams) = state.lanes.streams() else { return Ok(false) };
    // Iterations of a loop share streams, but not what they keep.
    if state.plan.frame.is_some() || state.lanes.stream_of(index) != Some(streams.first()) {
        return Ok(false);
    }
    let mut count = 1;
    for &at in &state.plan.of_state {
        // SAFETY: the plan lists outputs whose readers are counted, on a device with streams.
        count += usize::from(unsafe { state.slots.is_read(at, buffer) });
    }
    // A reference more is another step's, a fetch's or a copy's.
    if !buffer.has_references(count) {
        return Ok(false);
    }
    streams.gather()?;
    Ok(true)
}
