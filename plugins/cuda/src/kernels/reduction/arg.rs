//! `ArgMax`, `ArgMin`.

use super::{
    NUMBERS,
    plan::Shape,
    reducer::{Reducer, Reduction},
};
use crate::{compile::Variant, launch::Launch};
use tenon_sdk::{DType, KernelError, geometry::ArgGeometry, prelude::*, reg::Numerics};

/// Types of indices.
const INDICES: &[DType] = &[DType::INT64, DType::INT32, DType::INT16, DType::UINT16];

pub(super) fn variants() -> Vec<Variant> {
    let elements = NUMBERS.iter().chain(&[DType::BOOL]);
    let all =
        elements.flat_map(|element| INDICES.iter().map(move |index| (*element, Some(*index))));
    let each = all.flat_map(|(element, index)| {
        ["ArgMax", "ArgMin"].map(|fold| Reduction { fold, element, index }.variant().ok())
    });
    each.flatten().collect()
}

/// The index of the first of the greatest or least elements along an axis; the fold has the name of
/// the op.
struct Arg(Reducer);

impl Kernel for Arg {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (element, index) = (c.input_types()[0], c.output_types()[0]);
        Ok(Arg(Reducer::new(c, Reduction { fold: c.op(), element, index: Some(index) })?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = ArgGeometry::new(c.dims(0), c.integer(1, "dimension")?)?;
        if u32::try_from(g.len).is_err() {
            return Err(KernelError::invalid_argument(format!(
                "the dimension to search has {} elements, at most {} are supported",
                g.len,
                u32::MAX
            )));
        }
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, &g.output)?);
        self.0.run(&launch, &Shape::of_search(&g), x, y)
    }
}

/// Types of elements.
const SEARCHED: &[DType] = &[
    DType::FLOAT,
    DType::DOUBLE,
    DType::HALF,
    DType::BFLOAT16,
    DType::INT32,
    DType::INT64,
    DType::INT16,
    DType::INT8,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
    DType::BOOL,
];

register_kernel!("ArgMax" on "CUDA": Arg, types = ("T", SEARCHED),
    host_memory = &["dimension"], numerics = Numerics::EXACT);
register_kernel!("ArgMin" on "CUDA": Arg, types = ("T", SEARCHED),
    host_memory = &["dimension"], numerics = Numerics::EXACT);
