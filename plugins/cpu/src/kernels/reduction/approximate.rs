//! `ApproxTopK`: the greatest or the least elements along any dimension. They are found exactly, so that
//! any recall is reached.

use super::ranking::{COST_NS, greatest};
use crate::split::{Parts, try_units};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::{Dims, RankedRows, element_count, normalize_axis},
    growth,
    reg::Numerics,
    register_kernel,
};

struct ApproxTopK<T> {
    k: i64,
    axis: i64,
    /// Whether the greatest elements are wanted, and not the least.
    greatest: bool,
    element: PhantomData<fn(T)>,
}

impl<T: Number> ApproxTopK<T> {
    /// An element as it is ordered: the greatest of these are wanted, NaN last.
    fn ordered(&self, x: T) -> T {
        if self.greatest { x } else { x.neg() }
    }
}

impl<T: Number> Kernel for ApproxTopK<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ApproxTopK {
            k: c.attr("k")?,
            axis: c.attr("reduction_dimension")?,
            greatest: c.attr("is_max_k")?,
            element: PhantomData,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let axis = normalize_axis("reduction_dimension", self.axis, x.dims.len())?;
        let (RankedRows { len, .. }, _) = RankedRows::greatest(&x.dims[axis..=axis], self.k)?;
        let mut dims = Dims::from_slice(x.dims)?;
        dims[axis] = self.k;
        let (values, indices) = (c.output::<T>(0, &dims)?.data, c.output::<i32>(1, &dims)?.data);
        if values.is_empty() {
            return Ok(());
        }
        let (outer, inner) = (element_count(&x.dims[..axis])?, element_count(&x.dims[axis + 1..])?);
        let (values, indices, watch) = (Parts::new(values), Parts::new(indices), c.watch());
        try_units(c, outer * inner, COST_NS * len as f64, |range| {
            let (mut places, mut row) = (growth::with_room(len)?, growth::with_room(len)?);
            for number in range {
                let (outer, within) = (number / inner, number % inner);
                let element = |at: usize| x.data[(outer * len + at) * inner + within];
                row.clear();
                row.extend((0..len).map(|at| self.ordered(element(at))));
                greatest(|| watch.check(), &row, self.k as usize, &mut places)?;
                for (at, &place) in places.iter().enumerate() {
                    let to = (outer * self.k as usize + at) * inner + within;
                    // SAFETY: each element of the output belongs to one row.
                    unsafe {
                        values.part(to..to + 1)[0] = element(place as usize);
                        indices.part(to..to + 1)[0] = place as i32;
                    }
                }
            }
            Ok(())
        })
    }
}

register_kernel!("ApproxTopK" on "CPU": ApproxTopK<T> for "T" in [f16, bf16, f32],
    numerics = Numerics::EXACT);
