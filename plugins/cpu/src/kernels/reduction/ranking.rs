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

/// About how long an element of a row takes.
const COST_NS: f64 = 3.0;

/// Ascending, NaN below everything.
fn ascending<T: Number>(x: T, y: T) -> Ordering {
    x.partial_cmp(&y).unwrap_or_else(|| y.is_nan().cmp(&x.is_nan()))
}

/// The places of the `k` greatest elements, greatest first, the first of equal ones first.
fn greatest<T: Number>(x: &[T], k: usize, places: &mut Vec<u32>) {
    places.clear();
    places.extend(0..x.len() as u32);
    let order =
        |&a: &u32, &b: &u32| ascending(x[b as usize], x[a as usize]).then_with(|| a.cmp(&b));
    if k < x.len() && k > 0 {
        places.select_nth_unstable_by(k - 1, order);
    }
    places.truncate(k);
    places.sort_unstable_by(order);
}

struct TopK<T> {
    /// `None`: the second input says.
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
        let (values, indices) = (Parts::new(values), Parts::new(indices));
        try_units(c, count, COST_NS * len as f64, |range| {
            let mut places = growth::with_room(len)?;
            for row in range {
                let x = &x.data[row * len..][..len];
                greatest(x, k, &mut places);
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
    /// `None`: the third input says.
    k: Option<i64>,
}

impl Kernel for InTopK {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(InTopK { k: c.attr("k").ok() })
    }

    /// Ties count for the target. False where the target is no class, or a prediction is not finite.
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

    #[test]
    fn the_greatest_come_first_and_the_first_of_equal_ones() {
        let mut places = Vec::new();
        greatest(&[1.0, 3.0, f32::NAN, 3.0, -1.0], 3, &mut places);
        assert_eq!(places, [1, 3, 0]);
        greatest(&[7u8, 7, 9], 3, &mut places);
        assert_eq!(places, [2, 0, 1]);
        greatest(&[f32::NAN, 1.0], 2, &mut places);
        assert_eq!(places, [1, 0]);
    }
}
