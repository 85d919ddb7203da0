//! `Bincount` and `HistogramFixedWidth`.
//!
//! Counts are added by integer atomics, whose order does not matter. Sums of float weights are
//! computed as sums of segments, because atomics would add them in a different order each time.

use super::{segment::SegmentReducer, sort::Sorter};
use crate::{
    compile::{Entry, Module, Source, Variant},
    kernels::dtype::name_of,
    launch::{Grid, Launch, Operand, device_for},
    source,
};
use std::sync::Arc;
use tenon_sdk::{
    Code, DType, KernelError,
    element::Number,
    geometry::{HistogramRange, check_bincount},
    prelude::*,
    reg::Numerics,
};

static BINCOUNT: Source = source!("bincount.cu");
static HISTOGRAM: Source = source!("histogram.cu");

/// Types of weights, and of values.
const COUNTED: &[DType] = &[DType::INT32, DType::INT64, DType::FLOAT, DType::DOUBLE];
/// Types of counts.
const COUNTS: &[DType] = &[DType::INT32, DType::INT64];

pub(super) fn variants() -> Vec<Variant> {
    let bincounts = COUNTED.iter().map(|element| bincount(*element));
    let pairs = COUNTED.iter().flat_map(|element| COUNTS.iter().map(|count| (*element, *count)));
    bincounts.chain(pairs.map(|(element, count)| histogram(element, count))).flatten().collect()
}

fn bincount(element: DType) -> Result<Variant, KernelError> {
    Ok(Variant::new(&BINCOUNT).define("DTYPE", name_of(element)?))
}

fn histogram(element: DType, count: DType) -> Result<Variant, KernelError> {
    let variant = Variant::new(&HISTOGRAM).define("DTYPE", name_of(element)?);
    Ok(variant.define("COUNT", name_of(count)?).define("QUOTIENT", "f64"))
}

/// Bytes of shared memory that every block may use.
const SHARED: u64 = 48 << 10;

/// The bytes of shared memory for `bins` bins of `width` bytes; 0 where they do not fit.
fn shared_for(bins: u64, width: u64) -> u32 {
    let bytes = bins.saturating_mul(width);
    if bytes <= SHARED { bytes as u32 } else { 0 }
}

/// A grid for a loop over items, where each block has bins in shared memory to clear and to add to
/// the result: fewer blocks where there are few items.
fn grid(launch: &Launch<'_>, items: u64, bins: u64, shared: u32) -> Grid {
    let items = if shared > 0 { items.min(items / bins.max(1) * 256 + 1) } else { items };
    Grid::stride(items, launch.facts()).shared(shared)
}

struct Bincount {
    /// Bytes of a bin.
    width: u64,
    clear: Entry<(u64, u64)>,
    count: Entry<(u64, u64, u64, u64, u64, u32)>,
    write: Entry<(u64, u64, u64)>,
    /// For float weights: their sums.
    sums: Option<(Sorter, SegmentReducer)>,
}

impl Bincount {
    /// Sums the weights by the numbers in `arr`.
    fn sum(
        &self,
        (sorter, reducer): &(Sorter, SegmentReducer),
        launch: &Launch<'_>,
        [arr, weights, y]: [Operand; 3],
    ) -> Result<(), KernelError> {
        let order = sorter.run(launch, arr, y.elements)?;
        // SAFETY: the order has as many rows as there are numbers, and as many weights.
        unsafe { reducer.run(launch, [weights, y], [y.elements, 1], &order) }
    }

    fn count(
        &self,
        launch: &Launch<'_>,
        [arr, weights, y]: [Operand; 3],
    ) -> Result<(), KernelError> {
        let is_float = self.sums.is_some();
        let bytes = y.elements.checked_mul(self.width).and_then(|it| usize::try_from(it).ok());
        let bytes = bytes.ok_or_else(|| {
            KernelError::new(Code::RESOURCE_EXHAUSTED, format!("no memory for {} bins", y.elements))
        })?;
        let bins = if is_float { launch.scratch(bytes)? } else { y.address };
        let shared = shared_for(y.elements, self.width);
        let stride = Grid::stride(y.elements, launch.facts());
        let weights = if weights.elements > 0 { weights.address } else { 0 };
        let grid = grid(launch, arr.elements, y.elements, shared);
        let in_shared = u32::from(shared > 0);
        // SAFETY: there are as many bins as the output has elements, of the width in the source,
        // and as many weights as numbers, or none.
        unsafe {
            launch.run(&self.clear, stride, (bins, y.elements))?;
            let numbers = (arr.elements, y.elements, in_shared);
            let arguments = (bins, arr.address, weights, numbers.0, numbers.1, numbers.2);
            launch.run(&self.count, grid, arguments)?;
            if is_float {
                launch.run(&self.write, stride, (y.address, bins, y.elements))?;
            }
        }
        Ok(())
    }
}

impl Kernel for Bincount {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let element = c.input_types()[2];
        let module: Arc<Module> = device_for(c)?.modules().get(&bincount(element)?)?;
        let is_float = matches!(element, DType::FLOAT | DType::DOUBLE);
        let sums = match is_float {
            true => Some((Sorter::new(c)?, SegmentReducer::new(c, "SegmentSum", element)?)),
            false => None,
        };
        let width = if element == DType::INT32 { 4 } else { 8 };
        // SAFETY: the entries of these names take addresses and counts, and one flag of 32 bits.
        unsafe {
            let (clear, count) = (module.entry("clear")?, module.entry("bincount")?);
            Ok(Bincount { width, clear, count, write: module.entry("bincount_write")?, sums })
        }
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let size = c.integer(1, "size")?;
        check_bincount(size, c.dims(0), c.dims(2))?;
        let launch = Launch::new(c)?;
        let (arr, weights) = (launch.input(0)?, launch.input(2)?);
        let y = launch.output(0, &[size])?;
        match &self.sums {
            _ if y.elements == 0 => Ok(()),
            Some(sums) if weights.elements > 0 => self.sum(sums, &launch, [arr, weights, y]),
            _ => self.count(&launch, [arr, weights, y]),
        }
    }
}

/// `Range` in the source.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Range<T> {
    parts: u64,
    step: f64,
    low: T,
    reciprocal: f32,
}

impl<T: Number> Range<T> {
    fn new(range: HistogramRange<T>, parts: i64) -> Range<T> {
        let reciprocal = (1.0 / range.step) as f32;
        let reciprocal = match T::DTYPE {
            DType::FLOAT if reciprocal.is_normal() => reciprocal,
            DType::FLOAT => f32::NAN,
            // Only floats are multiplied by it.
            _ => 0.0,
        };
        Range { parts: parts as u64, step: range.step, low: range.low, reciprocal }
    }
}

struct Histogram<T> {
    clear: Entry<(u64, u64)>,
    count: Entry<(u64, u64, u64, Range<T>, u32)>,
}

impl<T: Number> Kernel for Histogram<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (element, count) = (c.input_types()[0], c.output_types()[0]);
        let module = device_for(c)?.modules().get(&histogram(element, count)?)?;
        // SAFETY: the entries take addresses and counts, a range of the element's type, whose size
        // a test compares, and a flag.
        unsafe {
            Ok(Histogram { clear: module.entry("clear")?, count: module.entry("histogram")? })
        }
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (range, parts) = (c.input::<T>(1)?, c.integer(2, "nbins")?);
        let range = Range::new(HistogramRange::new(range.data, range.dims, parts)?, parts);
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, &[parts])?);
        let shared = shared_for(y.elements, y.dtype.size().unwrap_or(8) as u64);
        let grid = grid(&launch, x.elements, y.elements, shared);
        let stride = Grid::stride(y.elements, launch.facts());
        // SAFETY: there are as many bins as parts, of the width in the source.
        unsafe {
            launch.run(&self.clear, stride, (y.address, y.elements))?;
            let in_shared = u32::from(shared > 0);
            let arguments = (y.address, x.address, x.elements, range, in_shared);
            launch.run(&self.count, grid, arguments)
        }
    }
}

register_kernel!("Bincount" on "CUDA": Bincount, types = ("T", COUNTS),
    host_memory = &["size"], numerics = Numerics::EXACT);
register_kernel!("Bincount" on "CUDA": Bincount, types = ("T", &[DType::FLOAT]),
    host_memory = &["size"], numerics = super::FLOAT);
register_kernel!("Bincount" on "CUDA": Bincount, types = ("T", &[DType::DOUBLE]),
    host_memory = &["size"], numerics = super::DOUBLE);
register_kernel!("HistogramFixedWidth" on "CUDA": Histogram<T> for "T" in [i32, i64, f32, f64],
    host_memory = &["value_range", "nbins"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_lays_ranges_out_as_the_device_does() {
        assert_eq!((size_of::<Range<f32>>(), size_of::<Range<i64>>()), (24, 32));
    }

    #[test]
    fn bins_that_fit_are_counted_in_shared_memory() {
        assert_eq!((shared_for(12288, 4), shared_for(12289, 4)), (49152, 0));
        assert_eq!(shared_for(u64::MAX, 8), 0);
    }
}
