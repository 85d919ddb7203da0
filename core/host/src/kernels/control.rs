//! Kernels around control flow: `NoOp` and `ControlTrigger`, which only have control edges, the
//! truth value of a condition, and the value that stands for an output which a branch lacks.

use super::COST;
use tenon_author::{ComputeContext, CreateContext, Kernel, reg::Numerics, register_kernel};
use tenon_framework::{DType, KernelError, PartialShape, element::Element};

fn nothing(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    Ok(())
}

/// Whether a scalar number is not 0, a scalar string is not empty, or another tensor has elements.
fn to_bool(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    fn is_set<T: Element>(
        c: &ComputeContext<'_>,
        is_zero: impl Fn(T) -> bool,
    ) -> Result<bool, KernelError> {
        Ok(!is_zero(c.input::<T>(0)?.data[0]))
    }
    let slot = c.slot(0)?;
    let holds = match slot.dtype {
        _ if slot.rank != 0 => slot.elements > 0,
        DType::BOOL => is_set::<bool>(c, |x| !x)?,
        DType::FLOAT => is_set::<f32>(c, |x| x == 0.0)?,
        DType::DOUBLE => is_set::<f64>(c, |x| x == 0.0)?,
        DType::STRING => c.strings(0)?.first().is_some_and(|text| !text.is_empty()),
        DType::INT8 | DType::INT16 | DType::INT32 | DType::INT64 | DType::UINT8 => {
            c.input_bytes(0)?.iter().any(|&byte| byte != 0)
        }
        found => {
            return Err(KernelError::invalid_argument(format!(
                "input: expected a scalar bool, number or string as a condition, found a scalar of {found}"
            )));
        }
    };
    c.output::<bool>(0, &[])?.data[0] = holds;
    Ok(())
}

/// Zeros in the place of an output that a branch does not compute. Nothing reads it.
struct FakeParam {
    dims: Vec<i64>,
    dtype: DType,
}

impl Kernel for FakeParam {
    fn new(c: &CreateContext<'_>) -> Result<FakeParam, KernelError> {
        let shape: PartialShape = c.attr("shape")?;
        let dims = shape.dims().unwrap_or_default().iter().map(|&dim| dim.max(0)).collect();
        Ok(FakeParam { dims, dtype: c.attr("dtype")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if self.dtype.needs_drop() {
            // Elements of such types begin as empty ones.
            return c.prepare(0, &self.dims).map(drop);
        }
        c.output_bytes(0, &self.dims)?.fill(0);
        Ok(())
    }
}

register_kernel!("NoOp" on "DEFAULT": fn nothing, cost = COST, numerics = Numerics::EXACT);
register_kernel!("ControlTrigger" on "DEFAULT": fn nothing, cost = COST, numerics = Numerics::EXACT);
register_kernel!("ToBool" on "DEFAULT": fn to_bool,
    host_memory = &["input", "output"], cost = COST, numerics = Numerics::EXACT);
register_kernel!("FakeParam" on "DEFAULT": FakeParam,
    host_memory = &["output"], cost = COST, numerics = Numerics::EXACT);
