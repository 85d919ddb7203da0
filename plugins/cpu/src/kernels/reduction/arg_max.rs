//! `ArgMax`.

use crate::{
    arch::vectorised,
    split::{Parts, for_units},
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_reference::{LowestFinite, reduction::IndexElement};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::ArgGeometry,
    reg::Numerics,
    register_kernel,
};

/// Columns that are searched side by side.
const COLUMNS: usize = 64;

vectorised! {
    /// The index of the first of the largest elements of a row; NaN is never the largest.
    ///
    /// Two passes, both without branches: the largest value, then its place. 0 where nothing is above the
    /// lowest finite value.
    fn row[T: LowestFinite](x: &[T]) -> usize {
        let mut lanes = [T::LOWEST_FINITE; 32];
        let mut wide = x.chunks_exact(32);
        for x in &mut wide {
            for (lane, &x) in lanes.iter_mut().zip(x) {
                *lane = if x > *lane { x } else { *lane };
            }
        }
        let best = lanes
            .iter()
            .chain(wide.remainder())
            .fold(T::LOWEST_FINITE, |best, &x| if x > best { x } else { best });
        if best > T::LOWEST_FINITE { x.iter().position(|&x| x == best).unwrap_or(0) } else { 0 }
    }
}

vectorised! {
    /// [`row`] for each of at most [`COLUMNS`] columns of `len` rows that are `stride` apart.
    fn columns[T: LowestFinite](x: &[T], len: usize, stride: usize, indices: &mut [u32]) {
        let mut best = [T::LOWEST_FINITE; COLUMNS];
        indices.fill(0);
        for i in 0..len {
            let row = &x[i * stride..i * stride + indices.len()];
            for ((best, index), &x) in best.iter_mut().zip(indices.iter_mut()).zip(row) {
                let above = x > *best;
                *best = if above { x } else { *best };
                *index = if above { i as u32 } else { *index };
            }
        }
    }
}

/// Writes the indices of a geometry with `outer` of `range`.
fn search<T: LowestFinite, I: IndexElement>(
    g: &ArgGeometry,
    range: std::ops::Range<usize>,
    x: &[T],
    y: &mut [I],
) {
    for (outer, y) in range.zip(y.chunks_exact_mut(g.inner)) {
        let x = &x[outer * g.len * g.inner..][..g.len * g.inner];
        if g.inner == 1 {
            y[0] = I::from_index(row(x));
            continue;
        }
        for (block, y) in y.chunks_mut(COLUMNS).enumerate() {
            let mut indices = [0; COLUMNS];
            let indices = &mut indices[..y.len()];
            columns(&x[block * COLUMNS..], g.len, g.inner, indices);
            for (y, &index) in y.iter_mut().zip(&*indices) {
                *y = I::from_index(index as usize);
            }
        }
    }
}

/// The dimension of a call.
pub fn scalar_dimension(c: &ComputeContext<'_>) -> Result<i64, KernelError> {
    match (&c.integers(1)?[..], c.dims(1)) {
        (&[dimension], []) => Ok(dimension),
        (_, dims) => Err(KernelError::invalid_argument(format!(
            "dimension must be a scalar, found shape {dims:?}"
        ))),
    }
}

struct ArgMax<T> {
    output: DType,
    element: PhantomData<T>,
}

impl<T: LowestFinite> ArgMax<T> {
    fn write<I: IndexElement>(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let g = ArgGeometry::new(x.dims, scalar_dimension(c)?)?;
        if u32::try_from(g.len).is_err() {
            return Err(KernelError::invalid_argument(format!(
                "the dimension to search has {} elements, at most {} are supported",
                g.len,
                u32::MAX
            )));
        }
        let y = c.output::<I>(0, &g.output)?.data;
        if y.is_empty() {
            return Ok(());
        }
        let y = Parts::new(y);
        for_units(c, g.outer, 0.3 * (g.len * g.inner) as f64 + 5.0, |range| {
            // SAFETY: ranges of one split are disjoint.
            let y = unsafe { y.part(range.start * g.inner..range.end * g.inner) };
            search(&g, range, x.data, y);
        })
    }
}

impl<T: LowestFinite> Kernel for ArgMax<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ArgMax { output: c.attr("output_type")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        match self.output {
            DType::INT16 => self.write::<i16>(c),
            DType::UINT16 => self.write::<u16>(c),
            DType::INT32 => self.write::<i32>(c),
            _ => self.write::<i64>(c),
        }
    }
}

register_kernel!("ArgMax" on "CPU": ArgMax<T>
    for "T" in [bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    host_memory = &["dimension"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{lane::Compute, testing::values};
    use tenon_reference::reduction::arg_max;

    fn check<T: Compute + LowestFinite>() {
        for (dims, axis) in [(&[7i64, 150][..], 1), (&[33, 100], 0), (&[4, 6, 70], 1), (&[5], 0)] {
            let g = ArgGeometry::new(dims, axis).unwrap();
            let mut x = values::<T>(dims.iter().product::<i64>() as usize, 9);
            x[2] = T::from_f64(f64::NAN);
            let len = g.outer * g.inner;
            let (mut expected, mut found) = (vec![0i64; len], vec![-1i64; len]);
            arg_max(&g, &x, &mut expected);
            search(&g, 0..g.outer, &x, &mut found);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn indices_are_those_of_the_reference() {
        check::<f32>();
        check::<f16>();
        check::<u8>();
        check::<i64>();
        assert_eq!(row(&[f32::NAN, f32::NEG_INFINITY]), 0);
    }
}
