//! `Const` and `Placeholder`.

use super::COST;
use crate::{
    call::{CallFrame, Value},
    devices::{copy_tensor, device_of},
};
use std::sync::OnceLock;
use tenon_abi::{KeptTensor, Slot};
use tenon_author::{ComputeContext, CreateContext, Kernel, reg::Numerics, register_kernel};
use tenon_framework::{DType, KernelError, PartialShape, Tensor, device::base::LocalDevice};

/// Returns one tensor, without a copy per call. On a device with its own memory the first call
/// copies it there.
struct Const {
    value: Tensor,
    on_device: OnceLock<Tensor>,
}

impl Kernel for Const {
    fn new(context: &CreateContext<'_>) -> Result<Const, KernelError> {
        let slot: Slot = context.attr("value")?;
        let expected: DType = context.attr("dtype")?;
        if slot.dtype != expected {
            return Err(KernelError::invalid_argument(format!(
                "attribute value: expected a tensor of {expected} as attribute dtype says, found {}",
                slot.dtype
            )));
        }
        let value = Value::tensor(&slot)
            .ok_or_else(|| KernelError::internal("attribute value: its tensor has no buffer"))?;
        Ok(Const { value, on_device: OnceLock::new() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let call = c.raw();
        // SAFETY: a kernel of the host's own: the record is one of the host's, and the call runs.
        let frame = unsafe { CallFrame::from_raw(call.record) }
            .ok_or_else(|| KernelError::internal("the call is over"))?;
        let value = match frame.node().outputs.first() {
            Some(spec) if spec.memory.device() != 0 => self.placed(frame)?,
            _ => &self.value,
        };
        // SAFETY: the host fills services and entries; a kept tensor is a tensor of the host's.
        let code = unsafe {
            let output = (*call.services).output_kept.ok_or_else(no_entry)?;
            output(call.record, 0, std::ptr::from_ref(value).cast::<KeptTensor>())
        };
        if code.is_ok() { Ok(()) } else { Err(frame.take_error(code)) }
    }
}

fn no_entry() -> KernelError {
    KernelError::internal("the host's table lacks `output_kept`")
}

impl Const {
    /// The value in the device's memory.
    fn placed(&self, frame: &CallFrame) -> Result<&Tensor, KernelError> {
        if let Some(value) = self.on_device.get() {
            return Ok(value);
        }
        // SAFETY: the device of a running call is open.
        let device = unsafe { device_of(frame.call().device) }
            .ok_or_else(|| KernelError::internal("the call names no device of the host"))?;
        let memory = device.ordinary_memory();
        let copy = copy_tensor(&self.value, None, &memory, Some(&*device as &dyn LocalDevice))?;
        // If two threads make the first call, one copy is kept.
        Ok(self.on_device.get_or_init(|| copy))
    }
}

/// Represents a value that every step feeds: it never computes.
struct Placeholder {
    node: String,
    dtype: DType,
    shape: PartialShape,
}

impl Kernel for Placeholder {
    fn new(context: &CreateContext<'_>) -> Result<Placeholder, KernelError> {
        let shape = context.attr("shape").unwrap_or(PartialShape::UNKNOWN);
        Ok(Placeholder { node: context.node().to_owned(), dtype: context.attr("dtype")?, shape })
    }

    fn compute(&self, _: &ComputeContext<'_>) -> Result<(), KernelError> {
        Err(KernelError::invalid_argument(format!(
            "placeholder '{}' must be fed with a tensor of {} and shape {}",
            self.node, self.dtype, self.shape
        )))
    }
}

register_kernel!("Const" on "DEFAULT": Const, cost = COST, numerics = Numerics::EXACT);
register_kernel!("Placeholder" on "DEFAULT": Placeholder, cost = COST, numerics = Numerics::EXACT);
register_kernel!("PlaceholderV2" on "DEFAULT": Placeholder, cost = COST, numerics = Numerics::EXACT);
