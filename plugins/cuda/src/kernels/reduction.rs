//! Reductions over axes; searches and scans along one.
//!
//! | file | what |
//! |---|---|
//! | `plan.rs` | the layout of a reduction on a GPU, by its shape |
//! | `reducer.rs` | the launches of `reduce.cu` |
//! | `arg.rs` | `ArgMax`, `ArgMin` |
//! | `counting.rs` | `Bincount`, `HistogramFixedWidth` |
//! | `ranking.rs` | `InTopK`, `InTopKV2`, `NthElement` |
//! | `top.rs` | `TopK`, `TopKV2` |
//! | `scan.rs` | `Cumsum`, `Cumprod`, `CumulativeLogsumexp` |
//! | `segment.rs` | `Segment*`, `SparseSegment*`, `UnsortedSegment*` |
//! | `sort.rs` | sorts rows by their segments |
//!
//! Sums of 16-bit floats are kept in float, means of integers in 64 bits. Results are the same from
//! run to run on GPUs with the same number of multiprocessors: nothing is added atomically.

mod arg;
mod counting;
mod plan;
mod ranking;
mod reducer;
mod scan;
mod segment;
mod sort;
mod top;

use crate::{compile::Variant, launch::Launch};
pub(super) use plan::Shape;
pub(super) use reducer::{Reducer, Reduction};
use tenon_sdk::{DType, KernelError, geometry::ReducePlan, prelude::*, reg::Numerics};

/// Types that are added and multiplied.
const NUMBERS: &[DType] = &[
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
];
/// Those of [`NUMBERS`] that round.
const FLOATS: &[DType] = &[DType::FLOAT, DType::DOUBLE, DType::HALF, DType::BFLOAT16];

pub(super) fn variants() -> Vec<Variant> {
    let of = |folds: &'static [&'static str], types: &'static [DType]| {
        let pairs =
            folds.iter().flat_map(move |fold| types.iter().map(move |element| (fold, element)));
        pairs.map(|(fold, element)| Reduction { fold, element: *element, index: None })
    };
    let all = of(&["Sum", "Mean", "Prod", "EuclideanNorm", "Max", "Min"], NUMBERS)
        .chain(of(&["L2Loss"], FLOATS))
        // For batch normalisation.
        .chain(of(&["Moments"], &[DType::FLOAT, DType::HALF, DType::BFLOAT16]))
        .chain(of(&["All", "Any"], &[DType::BOOL]));
    // Every type here has a name.
    let mut variants: Vec<Variant> = all.filter_map(|reduction| reduction.variant().ok()).collect();
    variants.extend(arg::variants());
    variants.extend(counting::variants());
    variants.extend(ranking::variants());
    variants.extend(scan::variants());
    variants.extend(segment::variants());
    variants.extend(sort::variants());
    variants.extend(top::variants());
    variants
}

/// A reduction over the axes in the second input; the fold has the name of the op.
struct Reduce {
    keep_dims: bool,
    reducer: Reducer,
}

impl Kernel for Reduce {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let element = c.input_types()[0];
        let reducer = Reducer::new(c, Reduction { fold: c.op(), element, index: None })?;
        Ok(Reduce { keep_dims: c.attr("keep_dims")?, reducer })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let axes = c.integer_list(1, "reduction_indices")?;
        let plan = ReducePlan::new(c.dims(0), &axes, self.keep_dims)?;
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, plan.output_dims())?);
        self.reducer.run(&launch, &Shape::of(&plan), x, y)
    }
}

/// `L2Loss`: over all axes.
struct L2Loss(Reducer);

impl Kernel for L2Loss {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let element = c.input_types()[0];
        Ok(L2Loss(Reducer::new(c, Reduction { fold: c.op(), element, index: None })?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let axes: Vec<i64> = (0..c.dims(0).len() as i64).collect();
        let plan = ReducePlan::new(c.dims(0), &axes, false)?;
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, plan.output_dims())?);
        self.0.run(&launch, &Shape::of(&plan), x, y)
    }
}

/// Bounds relative to the sum of the absolute terms: the errors of a thread's sum, and of merging
/// the threads' sums.
const FLOAT: Numerics = Numerics::relative(1e-30, 1e-5).accumulation(DType::FLOAT);
/// As [`FLOAT`].
const DOUBLE: Numerics = Numerics::relative(1e-300, 1e-13).accumulation(DType::DOUBLE);
/// As [`FLOAT`], and rounded to half once.
const HALF: Numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT);
/// As [`FLOAT`], and rounded to bfloat16 once.
const BFLOAT16: Numerics = Numerics::relative(1e-30, 1.6e-2).accumulation(DType::FLOAT);
/// Types whose sums are exact, or wrap.
const INTEGERS: &[DType] = &[
    DType::INT32,
    DType::INT64,
    DType::INT16,
    DType::INT8,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
];

/// Registers a kernel of an op that sums or multiplies floats, with the bounds of each type.
macro_rules! rounding_kernels {
    ($($op:literal: $kernel:ty $(, $option:ident = $value:expr)*;)*) => {$(
        register_kernel!($op on "CUDA": $kernel, types = ("T", &[DType::FLOAT]),
            numerics = $crate::kernels::reduction::FLOAT $(, $option = $value)*);
        register_kernel!($op on "CUDA": $kernel, types = ("T", &[DType::DOUBLE]),
            numerics = $crate::kernels::reduction::DOUBLE $(, $option = $value)*);
        register_kernel!($op on "CUDA": $kernel, types = ("T", &[DType::HALF]),
            numerics = $crate::kernels::reduction::HALF $(, $option = $value)*);
        register_kernel!($op on "CUDA": $kernel, types = ("T", &[DType::BFLOAT16]),
            numerics = $crate::kernels::reduction::BFLOAT16 $(, $option = $value)*);
    )*};
}

/// Registers, for some types, a kernel of an op that yields the same bits in any order.
macro_rules! exact_kernels {
    ($($op:literal: $kernel:ty, $types:expr;)*) => {$(
        register_kernel!($op on "CUDA": $kernel, types = ("T", $types),
            host_memory = &["reduction_indices"], numerics = Numerics::EXACT);
    )*};
}

use rounding_kernels;

rounding_kernels! {
    "Sum": Reduce, host_memory = &["reduction_indices"];
    "Mean": Reduce, host_memory = &["reduction_indices"];
    "Prod": Reduce, host_memory = &["reduction_indices"];
    "EuclideanNorm": Reduce, host_memory = &["reduction_indices"];
    "L2Loss": L2Loss;
}

exact_kernels! {
    "Sum": Reduce, INTEGERS;
    "Mean": Reduce, INTEGERS;
    "Prod": Reduce, INTEGERS;
    "EuclideanNorm": Reduce, INTEGERS;
    "Max": Reduce, NUMBERS;
    "Min": Reduce, NUMBERS;
}

register_kernel!("All" on "CUDA": Reduce,
    host_memory = &["reduction_indices"], numerics = Numerics::EXACT);
register_kernel!("Any" on "CUDA": Reduce,
    host_memory = &["reduction_indices"], numerics = Numerics::EXACT);
