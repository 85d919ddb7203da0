//! `OneHot`, with indices on the device.

use super::{
    NUMBERS,
    words::{BySize, ByWord, Divisor, Index, SIZES, element_bytes, is_short},
};
use crate::{
    Cuda,
    compile::{Source, Variant},
    launch::{Grid, Launch, device_for},
    source,
};
use tenon_sdk::{
    DType, KernelError,
    geometry::{GeometryError, element_count, one_hot_dims},
    prelude::*,
    reg::Numerics,
};

static SOURCE: Source = source!("one_hot.cu");

pub(super) fn variants() -> Vec<Variant> {
    vec![variant::<u32>(), variant::<u64>()]
}

fn variant<I: Index>() -> Variant {
    Variant::new(&SOURCE).define("Index", I::NAME)
}

/// `Hot` in the source.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Hot<I> {
    inner: Divisor<I>,
    depth: Divisor<I>,
}

impl<I: Index> Hot<I> {
    fn new(inner: u64, depth: u64) -> Self {
        Hot { inner: I::divisor(inner), depth: I::divisor(depth) }
    }
}

type Entries<I> = ByWord<(u64, u64, u32, u64, u64, I, Hot<I>), { SIZES.len() }>;

fn entries<I: Index>(device: &Cuda) -> Result<Entries<I>, KernelError> {
    let module = device.modules().get(&variant::<I>())?;
    // SAFETY: the entry takes two addresses, the kind of the indices, two addresses, a count, and
    // `Hot`.
    unsafe { ByWord::new(&module, "one_hot") }
}

/// The source's number of a type of indices.
fn kind_of(indices: DType) -> Result<u32, KernelError> {
    match indices {
        DType::UINT8 => Ok(0),
        DType::INT8 => Ok(1),
        DType::INT32 => Ok(4),
        DType::INT64 => Ok(8),
        found => Err(KernelError::internal(format!("indices of type {found}"))),
    }
}

fn check_scalar(c: &ComputeContext<'_>, input: usize, name: &str) -> Result<(), KernelError> {
    if c.dims(input).is_empty() {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "{name} must have 0 dimensions, found shape {:?}",
        c.dims(input)
    )))
}

struct OneHot {
    axis: i64,
    entries: BySize<Entries<u32>, Entries<u64>>,
}

impl Kernel for OneHot {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(OneHot { axis: c.attr("axis")?, entries: BySize::new(entries(device_for(c)?)?) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        for (input, name) in [(1, "depth"), (2, "on_value"), (3, "off_value")] {
            check_scalar(c, input, name)?;
        }
        let (dims, depth) = (c.dims(0), c.integer(1, "depth")?);
        if depth < 0 {
            return Err(GeometryError::TooSmall { what: "depth", least: 0, found: depth }.into());
        }
        let output = one_hot_dims(dims, depth, self.axis)?;
        let place = if self.axis == -1 { dims.len() } else { self.axis as usize };
        let inner = element_count(&dims[place..])? as u64;
        let launch = Launch::new(c)?;
        let [indices, on, off] = [launch.input(0)?, launch.input(2)?, launch.input(3)?];
        let y = launch.output(0, &output)?;
        if y.elements == 0 {
            return Ok(());
        }
        let (count, size, kind) = (y.elements, element_bytes(&y)?, kind_of(indices.dtype)?);
        let (indices, on, off, depth) = (indices.address, on.address, off.address, depth as u64);
        let grid = Grid::stride((count * size).div_ceil(16), launch.facts());
        // SAFETY: the output has `depth` elements for each index, an index for each `inner`.
        unsafe {
            if is_short(count) {
                let call =
                    (y.address, indices, kind, on, off, count as u32, Hot::new(inner, depth));
                launch.run(self.entries.short().of(size), grid, call)
            } else {
                let long = self.entries.long(|| entries(launch.device()))?;
                let call = (y.address, indices, kind, on, off, count, Hot::new(inner, depth));
                launch.run(long.of(size), grid, call)
            }
        }
    }
}

register_kernel!("OneHot" on "CUDA": OneHot, types = ("T", NUMBERS), host_memory = &["depth"],
    numerics = Numerics::EXACT);
