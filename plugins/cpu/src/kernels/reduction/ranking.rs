//! `TopK`, `TopKV2`, `InTopK`, `InTopKV2`, `NthElement`: the order of the elements of rows.

use crate::split::{Parts, try_rows, try_units};
use half::{bf16, f16};
use std::{cmp::Ordering, marker::PhantomData};
use tenon_reference::reduction::IndexElement;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::RankedRows,
    growth,
    reg::Numerics,
    register_kernel,
};

/// Approximate nanoseconds of an element of a row.
pub(super) const COST_NS: f64 = 3.0;

/// Ascending order, with NaN below everything.
fn ascending<T: Number>(x: T, y: T) -> Ordering {
    x.partial_cmp(&y).unwrap_or_else(|| y.is_nan().cmp(&x.is_nan()))
}

/// Up to this many greatest elements are found by comparing each element with the least of them.
const FEW: usize = 4;

/// The number of positions that are sorted at once; between runs, the op checks whether the step
/// was cancelled.
const RUN: usize = 1 << 16;

/// The positions of the `k` greatest elements, greatest first, equal ones in order. `places` has
/// room for all positions.
pub(super) fn greatest<T: Number>(
    check: impl Fn() -> Result<(), KernelError>,
    x: &[T],
    k: usize,
    places: &mut Vec<u32>,
) -> Result<(), KernelError> {
    places.clear();
    if k <= FEW {
        return few_greatest(check, x, k, places);
    }
    places.extend(0..x.len() as u32);
    let order =
        |&a: &u32, &b: &u32| ascending(x[b as usize], x[a as usize]).then_with(|| a.cmp(&b));
    if k < x.len() {
        places.select_nth_unstable_by(k - 1, order);
    }
    places.truncate(k);
    for run in places.chunks_mut(RUN) {
        check()?;
        run.sort_unstable_by(order);
    }
    let mut merged = growth::filled(if places.len() > RUN { places.len() } else { 0 }, 0)?;
    let mut run = RUN;
    while run < places.len() {
        for (from, to) in places.chunks(2 * run).zip(merged.chunks_mut(2 * run)) {
            check()?;
            merge(from.split_at(run.min(from.len())), to, order);
        }
        std::mem::swap(places, &mut merged);
        run *= 2;
    }
    Ok(())
}

/// [`greatest`] of a few, which are kept in order while the others are compared with the least one.
fn few_greatest<T: Number>(
    check: impl Fn() -> Result<(), KernelError>,
    x: &[T],
    k: usize,
    places: &mut Vec<u32>,
) -> Result<(), KernelError> {
    let Some(most) = k.checked_sub(1) else { return Ok(()) };
    for (run, x_run) in x.chunks(RUN).enumerate() {
        check()?;
        let mut least = places.get(most).map(|&place| x[place as usize]);
        for (at, &value) in x_run.iter().enumerate() {
            // Where one is NaN, they do not compare; most are lower.
            if least.is_some_and(|least| value <= least || ascending(least, value).is_ge()) {
                continue;
            }
            let above = |&place: &u32| ascending(x[place as usize], value).is_ge();
            let to = places.partition_point(above);
            places.truncate(most);
            places.insert(to, (run * RUN + at) as u32);
            least = places.get(most).map(|&place| x[place as usize]);
        }
    }
    Ok(())
}

/// Merges two sorted runs in order.
fn merge<T: Copy>((mut a, mut b): (&[T], &[T]), to: &mut [T], order: impl Fn(&T, &T) -> Ordering) {
    for to in to {
        let first_of_a = match (a.first(), b.first()) {
            (Some(x), Some(y)) => order(x, y) != Ordering::Greater,
            (x, _) => x.is_some(),
        };
        let from = if first_of_a { &mut a } else { &mut b };
        *to = from[0];
        *from = &from[1..];
    }
}

struct TopK<T> {
    /// The number of elements; `None` if the second input gives it.
    k: Option<i64>,
    index: DType,
    element: PhantomData<fn(T)>,
}

impl<T: Number> TopK<T> {
    fn write<I: IndexElement>(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let k = self.k.map_or_else(|| c.integer(1, "k"), Ok)?;
        let x = c.input::<T>(0)?;
        let (RankedRows { len, count }, dims) = RankedRows::greatest(x.dims, k)?;
        let values = c.output::<T>(0, &dims)?.data;
        let indices = c.output::<I>(1, &dims)?.data;
        let k = k as usize;
        if k == 0 {
            return Ok(());
        }
        let (values, indices, watch) = (Parts::new(values), Parts::new(indices), c.watch());
        try_units(c, count, COST_NS * len as f64, |range| {
            let mut places = growth::with_room(len)?;
            for row in range {
                let x = &x.data[row * len..][..len];
                greatest(|| watch.check(), x, k, &mut places)?;
                // SAFETY: each row has a part of its own.
                let (values, indices) = unsafe {
                    (values.part(row * k..row * k + k), indices.part(row * k..row * k + k))
                };
                for ((value, index), &place) in values.iter_mut().zip(indices).zip(&places) {
                    *value = x[place as usize];
                    *index = I::from_index(place as usize);
                }
            }
            Ok(())
        })
    }
}

impl<T: Number> Kernel for TopK<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(TopK {
            k: c.attr("k").ok(),
            index: c.attr("index_type").unwrap_or(DType::INT32),
            element: PhantomData,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        match self.index {
            DType::INT16 => self.write::<i16>(c),
            DType::INT64 => self.write::<i64>(c),
            _ => self.write::<i32>(c),
        }
    }
}

struct InTopK {
    /// The number of elements; `None` if the third input gives it.
    k: Option<i64>,
}

impl Kernel for InTopK {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(InTopK { k: c.attr("k").ok() })
    }

    /// Ties count in favour of the target. The result is false where the target is not a class, or
    /// a prediction is not finite.
    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let predictions = c.input::<f32>(0)?;
        let RankedRows { len: classes, .. } =
            RankedRows::of_predictions(predictions.dims, c.dims(1))?;
        let k = self.k.map_or_else(|| c.integer(2, "k"), Ok)?;
        let targets = c.integers(1)?;
        let precision = c.output::<bool>(0, c.dims(1))?.data;
        for (at, (precision, &target)) in precision.iter_mut().zip(&targets).enumerate() {
            let row = &predictions.data[at * classes..][..classes];
            let target = usize::try_from(target).ok().and_then(|target| row.get(target));
            *precision = target.is_some_and(|target| {
                let above = row.iter().filter(|&x| x > target).count() as i64;
                row.iter().all(|x| x.is_finite()) && above < k
            });
        }
        Ok(())
    }
}

struct NthElement<T> {
    reverse: bool,
    element: PhantomData<fn(T)>,
}

impl<T: Number> Kernel for NthElement<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(NthElement { reverse: c.attr("reverse")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let n = c.integer(1, "n")?;
        let x = c.input::<T>(0)?;
        let RankedRows { len, .. } = RankedRows::with_place(x.dims, n)?;
        let n = if self.reverse { len - 1 - n as usize } else { n as usize };
        let y = c.output::<T>(0, &x.dims[..x.dims.len() - 1])?.data;
        try_rows(c, y, 1, COST_NS * len as f64, |first, y| {
            let mut row = growth::with_room(len)?;
            for (at, y) in y.iter_mut().enumerate() {
                row.clear();
                row.extend_from_slice(&x.data[(first + at) * len..][..len]);
                *y = *row.select_nth_unstable_by(n, |&a, &b| ascending(a, b)).1;
            }
            Ok(())
        })
    }
}

register_kernel!("TopK" on "CPU": TopK<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    numerics = Numerics::EXACT);
register_kernel!("TopKV2" on "CPU": TopK<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    host_memory = &["k"], numerics = Numerics::EXACT);
register_kernel!("InTopK" on "CPU": InTopK, numerics = Numerics::EXACT);
register_kernel!("InTopKV2" on "CPU": InTopK, host_memory = &["k"], numerics = Numerics::EXACT);
register_kernel!("NthElement" on "CPU": NthElement<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    host_memory = &["n"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    fn greatest_of<T: Number>(x: &[T], k: usize) -> Vec<u32> {
        let mut places = Vec::new();
        greatest(|| Ok(()), x, k, &mut places).unwrap();
        places
    }

    #[test]
    fn the_greatest_come_first_and_the_first_of_equal_ones() {
        assert_eq!(greatest_of(&[1.0, 3.0, f32::NAN, 3.0, -1.0], 3), [1, 3, 0]);
        assert_eq!(greatest_of(&[7u8, 7, 9], 3), [2, 0, 1]);
        assert_eq!(greatest_of(&[f32::NAN, 1.0], 2), [1, 0]);
    }

    #[test]
    fn few_are_found_as_many_are() {
        for len in [1, 5, 100, RUN + 9] {
            let hash = |at: u32| at.wrapping_mul(2_654_435_761) >> 24;
            let x: Vec<f32> = (0..len as u32)
                .map(|at| if hash(at) == 7 { f32::NAN } else { hash(at) as f32 })
                .collect();
            for x in [x.clone(), (0..len).map(|at| at as f32).collect(), vec![2.0; len]] {
                let mut expected: Vec<u32> = (0..len as u32).collect();
                expected.sort_by(|&a, &b| ascending(x[b as usize], x[a as usize]));
                for k in [0, 1, 2, FEW, FEW + 1].map(|k| k.min(len)) {
                    assert_eq!(greatest_of(&x, k), expected[..k], "{k} of {len}");
                }
            }
        }
    }

    #[test]
    fn many_are_merged_from_runs_in_the_same_order() {
        for len in [RUN, RUN + 1, 2 * RUN, 3 * RUN + 7] {
            let x: Vec<u32> =
                (0..len as u32).map(|at| at.wrapping_mul(2_654_435_761) >> 20).collect();
            let mut expected: Vec<u32> = (0..len as u32).collect();
            expected.sort_by(|&a, &b| x[b as usize].cmp(&x[a as usize]));
            assert_eq!(greatest_of(&x, len), expected, "{len}");
            assert_eq!(greatest_of(&x, len - 5), expected[..len - 5]);
        }
    }

    #[test]
    fn who_does_not_want_the_order_any_more_is_asked_between_runs() {
        let asked = std::cell::Cell::new(0);
        let check = || {
            asked.set(asked.get() + 1);
            if asked.get() < 3 { Ok(()) } else { Err(KernelError::internal("no more")) }
        };
        let error = greatest(check, &vec![0u8; 8 * RUN], 8 * RUN, &mut Vec::new()).unwrap_err();
        assert_eq!((error.message.as_str(), asked.get()), ("no more", 3));
    }

    #[test]
    fn nan_is_below_everything() {
        assert_eq!(ascending(f32::NAN, f32::NEG_INFINITY), Ordering::Less);
        assert_eq!(ascending(1.0, f32::NAN), Ordering::Greater);
        assert_eq!(ascending(f32::NAN, f32::NAN), Ordering::Equal);
        assert_eq!(ascending(-0.0, 0.0), Ordering::Equal);
    }
}
