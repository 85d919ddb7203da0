//! Ops that return their input with another shape.

use super::{COST, wrong};
use tenon_author::{ComputeContext, CreateContext, Kernel, reg::Numerics, register_kernel};
use tenon_framework::{DType, KernelError};
use tenon_geometry::{Dims, expand_dims, reshape_dims, squeeze_dims};

/// The values of an int32 or int64 input that holds a shape or an axis: a scalar or a vector. They
/// are stored inline, so that a step allocates nothing.
fn values(c: &ComputeContext<'_>, input: usize, what: &str) -> Result<Dims, KernelError> {
    let slot = c.slot(input)?;
    if slot.rank > 1 {
        return Err(KernelError::invalid_argument(format!(
            "{what} must be a scalar or a vector, found rank {}",
            slot.rank
        )));
    }
    let mut values = Dims::EMPTY;
    if slot.dtype == DType::INT64 {
        for &value in c.input::<i64>(input)?.data {
            values.push(value).map_err(wrong)?;
        }
    } else {
        for &value in c.input::<i32>(input)?.data {
            values.push(value.into()).map_err(wrong)?;
        }
    }
    Ok(values)
}

fn reshape(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let wanted = values(c, 1, "shape")?;
    let dims = reshape_dims(c.dims(0), &wanted).map_err(wrong)?;
    c.share(0, 0, &dims)
}

fn expand(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let axis = values(c, 1, "dim")?;
    let &[axis] = &axis[..] else {
        return Err(KernelError::invalid_argument(format!(
            "dim must hold 1 value, found {}",
            axis.len()
        )));
    };
    let dims = expand_dims(c.dims(0), axis).map_err(wrong)?;
    c.share(0, 0, &dims)
}

struct Squeeze {
    axes: Vec<i64>,
}

impl Kernel for Squeeze {
    fn new(context: &CreateContext<'_>) -> Result<Squeeze, KernelError> {
        Ok(Squeeze { axes: context.attr("squeeze_dims")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = squeeze_dims(c.dims(0), &self.axes).map_err(wrong)?;
        let dims = dims.ok_or_else(|| KernelError::internal("a dimension is not known"))?;
        c.share(0, 0, &dims)
    }
}

register_kernel!("Reshape" on "DEFAULT": fn reshape,
    host_memory = &["shape"], cost = COST, numerics = Numerics::EXACT);
register_kernel!("ExpandDims" on "DEFAULT": fn expand,
    host_memory = &["dim"], cost = COST, numerics = Numerics::EXACT);
register_kernel!("Squeeze" on "DEFAULT": Squeeze, cost = COST, numerics = Numerics::EXACT);
