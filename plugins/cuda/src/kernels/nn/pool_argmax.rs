//! `MaxPoolWithArgmax`: the greatest element of each window, and its index.

use super::pool::Sizes;
use crate::{
    compile::{Entry, Source, Variant},
    kernels::dtype::name_of,
    launch::{Grid, Launch, device_for},
    source,
};
use tenon_sdk::{
    DType, KernelError,
    geometry::{Pool2dGeometry, PoolAttributes},
    prelude::*,
    reg::Numerics,
};

static SOURCE: Source = source!("pool_argmax.cu");

pub(super) fn variants() -> Vec<Variant> {
    let names = TYPES.iter().filter_map(|ty| name_of(*ty).ok());
    names.flat_map(|ty| ["i32", "i64"].map(|index| variant(ty, index))).collect()
}

fn variant(ty: &str, index: &str) -> Variant {
    Variant::new(&SOURCE).define("T", ty).define("INDEX", index)
}

struct MaxPoolWithArgmax {
    attributes: PoolAttributes,
    from_input: bool,
    entry: Entry<(u64, u64, u64, Sizes, u32)>,
}

impl Kernel for MaxPoolWithArgmax {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let variant = variant(name_of(c.attr("T")?)?, name_of(c.attr("Targmax")?)?);
        let module = device_for(c)?.modules().get(&variant)?;
        Ok(MaxPoolWithArgmax {
            attributes: PoolAttributes::new(c)?,
            from_input: c.attr("include_batch_in_index")?,
            // SAFETY: the entry takes three addresses, `Pooling`, whose layout is that of `Sizes`,
            // and a number.
            entry: unsafe { module.entry("pool_argmax")? },
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Pool2dGeometry::average(&self.attributes.params(c.dims(0)))?;
        let launch = Launch::new(c)?;
        let x = launch.input(0)?;
        if x.elements == 0 {
            return Err(KernelError::invalid_argument(format!(
                "input must not be empty, found shape {:?}",
                c.dims(0)
            )));
        }
        let y = launch.output(0, &g.output_dims())?;
        let indices = launch.output(1, &g.output_dims())?;
        if indices.dtype == DType::INT32 && x.elements > i32::MAX as u64 {
            return Err(KernelError::invalid_argument(format!(
                "an input of shape {:?} has more elements than indices of {} tell apart: use int64",
                c.dims(0),
                indices.dtype
            )));
        }
        if y.elements == 0 {
            return Ok(());
        }
        let sizes = Sizes::new(&g, 1)?;
        let grid = Grid::stride(sizes.items.count(), launch.facts());
        let arguments = (y.address, indices.address, x.address, sizes, u32::from(self.from_input));
        // SAFETY: the geometry is that of these shapes, so reads stay within the input, and writes
        // within the outputs.
        unsafe { launch.run(&self.entry, grid, arguments) }
    }
}

/// Element types.
const TYPES: &[DType] = &[
    DType::INT8,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
    DType::HALF,
    DType::BFLOAT16,
    DType::FLOAT,
    DType::DOUBLE,
];

register_kernel!("MaxPoolWithArgmax" on "CUDA": MaxPoolWithArgmax, types = ("T", TYPES), numerics = Numerics::EXACT);
