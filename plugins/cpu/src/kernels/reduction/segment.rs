//! Rows of one segment to one row: `Segment*` and `SparseSegment*`, whose ids are sorted, and
//! `UnsortedSegment*`.

use super::{Averaged, Fold, Max, Mean, Min, Prod, Sum, rounding_kernels};
use crate::lane::Compute;
use half::{bf16, f16};
use num_complex::Complex;
use tenon_reference::LowestFinite;
use tenon_sdk::{
    Code, KernelError,
    author::ComputeContext,
    element::Element,
    geometry::{Dims, element_count},
    reg::Numerics,
    register_kernel,
};

/// So many states, without ending the process where there is no memory for them.
fn states<S: Copy>(start: S, count: usize) -> Result<Vec<S>, KernelError> {
    let mut states = Vec::new();
    states.try_reserve_exact(count).map_err(|_| {
        KernelError::new(
            Code::RESOURCE_EXHAUSTED,
            format!("no memory for the sums of {count} elements"),
        )
    })?;
    states.resize(count, start);
    Ok(states)
}

/// The dimensions of the output: `rows`, and those of the data after its first `dropped`.
fn output_dims(rows: i64, data: &[i64], dropped: usize) -> Result<Dims, KernelError> {
    let mut dims = Dims::EMPTY;
    dims.push(rows)?;
    data[dropped..].iter().try_for_each(|&dim| dims.push(dim))?;
    Ok(dims)
}

fn data_is_scalar() -> KernelError {
    KernelError::invalid_argument("data must have at least 1 dimensions, got 0")
}

fn wrong_length(what: &str, expected: usize, found: &[i64]) -> KernelError {
    KernelError::invalid_argument(format!("{what} must be a vector of {expected}, got {found:?}"))
}

/// Sorted ids, one for each of the rows that `row` finds, to an output whose missing segments are `gap`.
fn sorted<T: Element, F: Fold<T>>(
    c: &ComputeContext<'_>,
    ids: &[i64],
    gap: T,
    row: impl Fn(usize) -> usize,
) -> Result<(), KernelError> {
    let x = c.input::<T>(0)?;
    check_sorted(ids)?;
    let segments = ids.last().map_or(Some(0), |last| last.checked_add(1));
    let segments = segments.ok_or_else(|| {
        KernelError::invalid_argument(format!("segment id {} is too large", i64::MAX))
    })?;
    let dims = output_dims(segments, x.dims, 1)?;
    let inner = element_count(&x.dims[1..])?;
    let y = c.output::<T>(0, &dims)?.data;
    y.fill(gap);
    let mut states = states(F::START, inner)?;
    let mut first = 0;
    for same in ids.chunk_by(|a, b| a == b) {
        states.fill(F::START);
        for at in first..first + same.len() {
            let from = row(at) * inner;
            for (state, &x) in states.iter_mut().zip(&x.data[from..from + inner]) {
                *state = F::take(*state, x);
            }
        }
        let to = same[0] as usize * inner;
        for (y, &state) in y[to..to + inner].iter_mut().zip(&states) {
            *y = F::finish(state, same.len());
        }
        first += same.len();
    }
    Ok(())
}

fn check_sorted(ids: &[i64]) -> Result<(), KernelError> {
    if let Some(&first) = ids.first().filter(|&&first| first < 0) {
        return Err(KernelError::invalid_argument(format!(
            "segment ids must be at least 0: segment_ids[0] is {first}"
        )));
    }
    match ids.windows(2).position(|pair| pair[0] > pair[1]) {
        None => Ok(()),
        Some(at) => Err(KernelError::invalid_argument(format!(
            "segment ids are not increasing: segment_ids[{}] is {}, after {}",
            at + 1,
            ids[at + 1],
            ids[at]
        ))),
    }
}

/// `SegmentSum` and its kin.
fn segment<T: Element, F: Fold<T>>(c: &ComputeContext<'_>, gap: T) -> Result<(), KernelError> {
    let &rows = c.dims(0).first().ok_or_else(data_is_scalar)?;
    if c.dims(1) != [rows] {
        return Err(wrong_length("segment_ids", rows as usize, c.dims(1)));
    }
    sorted::<T, F>(c, &c.integers(1)?, gap, |at| at)
}

/// `SparseSegmentSum` and its kin.
fn sparse_segment<T: Element, F: Fold<T>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let &rows = c.dims(0).first().ok_or_else(data_is_scalar)?;
    let indices = c.integers(1)?;
    if c.dims(1).len() != 1 || c.dims(2) != c.dims(1) {
        return Err(wrong_length("segment_ids", indices.len(), c.dims(2)));
    }
    if let Some(at) = indices.iter().position(|index| !(0..rows).contains(index)) {
        return Err(KernelError::invalid_argument(format!(
            "indices[{at}] = {} is not in [0, {rows})",
            indices[at]
        )));
    }
    sorted::<T, F>(c, &c.integers(2)?, T::default(), |at| indices[at] as usize)
}

/// `UnsortedSegmentSum` and its kin. Rows of negative ids are left out.
fn unsorted_segment<T: Element, F: Fold<T>>(
    c: &ComputeContext<'_>,
    start: F::State,
) -> Result<(), KernelError> {
    let (x, ids) = (c.input::<T>(0)?, c.integers(1)?);
    let segments = c.integer(2, "num_segments")?;
    if segments < 0 {
        return Err(KernelError::invalid_argument(format!(
            "num_segments must be at least 0, got {segments}"
        )));
    }
    let dropped = c.dims(1).len();
    if !x.dims.starts_with(c.dims(1)) {
        return Err(KernelError::invalid_argument(format!(
            "the shape of data must begin with that of segment_ids, which is {:?}: got {:?}",
            c.dims(1),
            x.dims
        )));
    }
    if let Some(at) = ids.iter().position(|&id| id >= segments) {
        return Err(KernelError::invalid_argument(format!(
            "segment_ids[{at}] = {} is not below {segments}, the number of segments",
            ids[at]
        )));
    }
    let dims = output_dims(segments, x.dims, dropped)?;
    let y = c.output::<T>(0, &dims)?.data;
    let inner = element_count(&x.dims[dropped..])?;
    let mut states = states(start, y.len())?;
    for (at, &id) in ids.iter().enumerate().filter(|&(_, &id)| id >= 0) {
        let to = id as usize * inner;
        let row = &x.data[at * inner..][..inner];
        for (state, &x) in states[to..to + inner].iter_mut().zip(row) {
            *state = F::take(*state, x);
        }
    }
    for (y, &state) in y.iter_mut().zip(&states) {
        *y = F::finish(state, 0);
    }
    Ok(())
}

macro_rules! segment_kernels {
    ($($function:ident<$t:ident: $bound:path> $(where $fold:ident)?: |$c:ident| $body:expr;)*) => {
        $(fn $function<$t: $bound>($c: &ComputeContext<'_>) -> Result<(), KernelError>
        $(where
            $fold: Fold<$t>,)?
        {
            $body
        })*
    };
}

segment_kernels! {
    segment_sum<T: Element> where Sum: |c| segment::<T, Sum>(c, T::default());
    segment_mean<T: Element> where Mean: |c| segment::<T, Mean>(c, T::default());
    segment_prod<T: Element> where Prod: |c| {
        segment::<T, Prod>(c, <Prod as Fold<T>>::finish(<Prod as Fold<T>>::START, 0))
    };
    segment_max<T: Compute>: |c| segment::<T, Max>(c, T::ZERO);
    segment_min<T: Compute>: |c| segment::<T, Min>(c, T::ZERO);
    sparse_sum<T: Compute>: |c| sparse_segment::<T, Sum>(c);
    sparse_mean<T: Averaged>: |c| sparse_segment::<T, Mean>(c);
    unsorted_sum<T: Element> where Sum: |c| {
        unsorted_segment::<T, Sum>(c, <Sum as Fold<T>>::START)
    };
    unsorted_prod<T: Element> where Prod: |c| {
        unsorted_segment::<T, Prod>(c, <Prod as Fold<T>>::START)
    };
    unsorted_max<T: Bounded>: |c| unsorted_segment::<T, Max>(c, T::LOWEST_FINITE.up());
    unsorted_min<T: Bounded>: |c| unsorted_segment::<T, Min>(c, highest_finite::<T>().up());
}

/// A type whose extremes are known.
trait Bounded: Compute + LowestFinite {}
impl<T: Compute + LowestFinite> Bounded for T {}

fn highest_finite<T: Bounded>() -> T {
    if T::IS_FLOAT { T::LOWEST_FINITE.neg() } else { T::HIGHEST }
}

rounding_kernels! {
    "SegmentSum": [fn segment_sum];
    "SegmentMean": [fn segment_mean];
    "SegmentProd": [fn segment_prod];
    "UnsortedSegmentSum": [fn unsorted_sum, host_memory = &["num_segments"]];
    "UnsortedSegmentProd": [fn unsorted_prod, host_memory = &["num_segments"]];
}

register_kernel!("SegmentMax" on "CPU": fn segment_max<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    numerics = Numerics::EXACT);
register_kernel!("SegmentMin" on "CPU": fn segment_min<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    numerics = Numerics::EXACT);
register_kernel!("UnsortedSegmentMax" on "CPU": fn unsorted_max<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    host_memory = &["num_segments"], numerics = Numerics::EXACT);
register_kernel!("UnsortedSegmentMin" on "CPU": fn unsorted_min<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    host_memory = &["num_segments"], numerics = Numerics::EXACT);
register_kernel!("SparseSegmentSum" on "CPU": fn sparse_sum<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64], numerics = Numerics::EXACT);
register_kernel!("SparseSegmentSum" on "CPU": fn sparse_sum<T> for "T" in [f32],
    numerics = super::FLOAT);
register_kernel!("SparseSegmentSum" on "CPU": fn sparse_sum<T> for "T" in [f64],
    numerics = super::DOUBLE);
register_kernel!("SparseSegmentSum" on "CPU": fn sparse_sum<T> for "T" in [f16],
    numerics = super::HALF);
register_kernel!("SparseSegmentSum" on "CPU": fn sparse_sum<T> for "T" in [bf16],
    numerics = super::BFLOAT16);
register_kernel!("SparseSegmentMean" on "CPU": fn sparse_mean<T> for "T" in [f32],
    numerics = super::FLOAT);
register_kernel!("SparseSegmentMean" on "CPU": fn sparse_mean<T> for "T" in [f64],
    numerics = super::DOUBLE);
register_kernel!("SparseSegmentMean" on "CPU": fn sparse_mean<T> for "T" in [f16],
    numerics = super::HALF);
register_kernel!("SparseSegmentMean" on "CPU": fn sparse_mean<T> for "T" in [bf16],
    numerics = super::BFLOAT16);
