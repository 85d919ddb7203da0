//! Reductions of the rows of a segment to one row: `Segment*` and `SparseSegment*`, whose ids are
//! sorted, and `UnsortedSegment*`.

use super::{Averaged, Fold, Mean, Prod, RootMean, Sum, rounding_kernels};
use crate::lane::Compute;
use half::{bf16, f16};
use num_complex::Complex;
use tenon_reference::LowestFinite;
use tenon_sdk::{
    KernelError,
    author::ComputeContext,
    element::{Element, Number},
    geometry::SegmentPlan,
    growth,
    reg::Numerics,
    register_kernel,
};

/// The number of rows between checks whether the step was cancelled.
const LOOK: usize = 1 << 10;

/// The largest element, of equal ones the last. As in TensorFlow, a NaN is kept only if it is the
/// last element: the next element replaces it, whatever came before.
struct Max;
/// The smallest element, of equal ones the last; NaN as in [`Max`].
struct Min;

/// Defines folds that keep their state where it is beyond the next element, and else take the
/// element.
macro_rules! latest {
    ($($fold:ty: $start:ident, $beyond:tt;)*) => {$(
        impl<T: Compute> Fold<T> for $fold {
            type State = T::Wide;
            const START: T::Wide = T::Wide::$start;
            #[inline(always)]
            fn take(state: T::Wide, x: T) -> T::Wide {
                <$fold as Fold<T>>::merge(state, x.up())
            }
            #[inline(always)]
            fn merge(a: T::Wide, b: T::Wide) -> T::Wide {
                if a $beyond b { a } else { b }
            }
            #[inline(always)]
            fn finish(state: T::Wide, _count: usize) -> T {
                T::down(state)
            }
        }
    )*};
}

latest! {
    Max: LOWEST, >;
    Min: HIGHEST, <;
}

/// Reduces rows with sorted ids, one for each of the rows that `row` finds, to an output whose
/// missing segments are `gap`.
fn sorted<T: Element, F: Fold<T>>(
    c: &ComputeContext<'_>,
    plan: &SegmentPlan,
    ids: &[i64],
    gap: T,
    row: impl Fn(usize) -> usize,
) -> Result<(), KernelError> {
    let x = c.input::<T>(0)?;
    let inner = plan.inner;
    let y = c.output::<T>(0, &plan.output)?.data;
    y.fill(gap);
    match inner {
        1 => return sorted_columns::<T, F, 1>(c, x.data, ids, y, row),
        2 => return sorted_columns::<T, F, 2>(c, x.data, ids, y, row),
        _ => {}
    }
    let mut states = growth::filled(inner, F::START)?;
    let mut first = 0;
    for same in ids.chunk_by(|a, b| a == b) {
        c.watch().check()?;
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

/// [`sorted`] for rows of `N` elements, whose states are kept in registers.
fn sorted_columns<T: Element, F: Fold<T>, const N: usize>(
    c: &ComputeContext<'_>,
    x: &[T],
    ids: &[i64],
    y: &mut [T],
    row: impl Fn(usize) -> usize,
) -> Result<(), KernelError> {
    let (mut first, mut since_look) = (0, 0);
    for same in ids.chunk_by(|a, b| a == b) {
        since_look += same.len();
        if since_look >= LOOK {
            c.watch().check()?;
            since_look = 0;
        }
        let states = fold_rows::<T, F, N>(x, (first..first + same.len()).map(&row));
        let to = same[0] as usize * N;
        for (y, state) in y[to..to + N].iter_mut().zip(states) {
            *y = F::finish(state, same.len());
        }
        first += same.len();
    }
    Ok(())
}

/// The states of the columns of these rows, taken in order.
#[inline(always)]
fn fold_rows<T: Element, F: Fold<T>, const N: usize>(
    x: &[T],
    rows: impl Iterator<Item = usize>,
) -> [F::State; N] {
    rows.fold([F::START; N], |mut states, row| {
        let x = &x[row * N..][..N];
        states.iter_mut().zip(x).for_each(|(state, &x)| *state = F::take(*state, x));
        states
    })
}

/// `SegmentSum` and similar ops.
fn segment<T: Element, F: Fold<T>>(c: &ComputeContext<'_>, gap: T) -> Result<(), KernelError> {
    let ids = c.integers(1)?;
    let plan = SegmentPlan::sorted(c.dims(0), c.dims(1), &ids)?;
    sorted::<T, F>(c, &plan, &ids, gap, |at| at)
}

/// `SparseSegmentSum` and similar ops.
fn sparse_segment<T: Element, F: Fold<T>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (indices, ids) = (c.integers(1)?, c.integers(2)?);
    let plan = SegmentPlan::picked(c.dims(0), (c.dims(1), &indices), (c.dims(2), &ids))?;
    sorted::<T, F>(c, &plan, &ids, T::default(), |at| indices[at] as usize)
}

/// `SparseSegmentSumWithNumSegments` and similar ops.
fn counted_segment<T: Element, F: Fold<T>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (indices, ids) = (c.integers(1)?, c.integers(2)?);
    let plan = SegmentPlan::picked(c.dims(0), (c.dims(1), &indices), (c.dims(2), &ids))?;
    let plan = plan.with_segments(c.integer(3, "num_segments")?)?;
    sorted::<T, F>(c, &plan, &ids, T::default(), |at| indices[at] as usize)
}

/// `UnsortedSegmentSum` and similar ops. Rows with negative ids are skipped.
fn unsorted_segment<T: Element, F: Fold<T>>(
    c: &ComputeContext<'_>,
    start: F::State,
) -> Result<(), KernelError> {
    let (x, ids) = (c.input::<T>(0)?, c.integers(1)?);
    let segments = c.integer(2, "num_segments")?;
    let plan = SegmentPlan::unsorted(x.dims, c.dims(1), segments)?;
    if let Some(at) = ids.iter().position(|&id| id >= segments) {
        return Err(KernelError::invalid_argument(format!(
            "segment_ids[{at}] = {} is not below {segments}, the number of segments",
            ids[at]
        )));
    }
    let inner = plan.inner;
    let y = c.output::<T>(0, &plan.output)?.data;
    let mut states = growth::filled(y.len(), start)?;
    for (at, &id) in ids.iter().enumerate().filter(|&(_, &id)| id >= 0) {
        if at.is_multiple_of(LOOK) {
            c.watch().check()?;
        }
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
    sparse_root<T: Compute>: |c| sparse_segment::<T, RootMean>(c);
    counted_sum<T: Compute>: |c| counted_segment::<T, Sum>(c);
    counted_mean<T: Averaged>: |c| counted_segment::<T, Mean>(c);
    counted_root<T: Compute>: |c| counted_segment::<T, RootMean>(c);
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
register_kernel!("SparseSegmentSumWithNumSegments" on "CPU": fn counted_sum<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64],
    host_memory = &["num_segments"], numerics = Numerics::EXACT);

/// Registers the kernels of picked rows of floats.
macro_rules! of_floats {
    ($($op:literal $kernel:ident$(, host_memory = $host:expr)?;)*) => {$(
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [f32],
            $(host_memory = $host,)? numerics = super::FLOAT);
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [f64],
            $(host_memory = $host,)? numerics = super::DOUBLE);
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [f16],
            $(host_memory = $host,)? numerics = super::HALF);
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [bf16],
            $(host_memory = $host,)? numerics = super::BFLOAT16);
    )*};
}
pub(super) use of_floats;

of_floats! {
    "SparseSegmentSum" sparse_sum;
    "SparseSegmentMean" sparse_mean;
    "SparseSegmentSqrtN" sparse_root;
    "SparseSegmentSumWithNumSegments" counted_sum, host_memory = &["num_segments"];
    "SparseSegmentMeanWithNumSegments" counted_mean, host_memory = &["num_segments"];
    "SparseSegmentSqrtNWithNumSegments" counted_root, host_memory = &["num_segments"];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::values;

    fn check<T: Compute, F: Fold<T>>() {
        let x: Vec<T> = values(60, 3);
        let rows = [4, 4, 0, 19, 7];
        let found = fold_rows::<T, F, 3>(&x, rows.into_iter());
        for (column, found) in found.into_iter().enumerate() {
            let elements = rows.map(|row| x[row * 3 + column]);
            let expected = elements.into_iter().fold(F::START, F::take);
            let finish = |state| F::finish(state, rows.len());
            assert_eq!(finish(found).to_f64(), finish(expected).to_f64());
        }
        let none = fold_rows::<T, F, 1>(&x, std::iter::empty());
        // The mean of nothing is NaN.
        let (found, expected) = (F::finish(none[0], 0).to_f64(), F::finish(F::START, 0).to_f64());
        assert!(found == expected || found.is_nan() && expected.is_nan(), "{found} {expected}");
    }

    #[test]
    fn columns_of_few_are_folded_one_by_one() {
        check::<f32, Sum>();
        check::<f16, Sum>();
        check::<f64, Prod>();
        check::<i32, Max>();
        check::<f32, Min>();
        check::<bf16, RootMean>();
    }
}
