//! `IsotonicRegression`, by pooling adjacent violators (M. Ayer et al., "An empirical distribution
//! function for sampling with incomplete information", 1955): parts whose mean is above that of the
//! part before are joined with it, so that the means do not ascend.

use crate::{
    kernels::elementwise::any::{from_double, to_double},
    lane::Compute,
    split::{Parts, try_units},
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    growth,
    reg::Numerics,
    register_kernel,
};

/// Approximate nanoseconds of an element.
const COST_NS: f64 = 4.0;

/// Elements next to each other that share their mean.
#[derive(Debug, Clone, Copy)]
struct Part {
    sum: f64,
    count: usize,
}

impl Part {
    fn mean(self) -> f64 {
        self.sum / self.count as f64
    }
}

/// Finds the parts of a row; `parts` has room for as many as there are elements.
fn regress<T: Compute>(x: &[T], parts: &mut Vec<Part>) {
    parts.clear();
    for &x in x {
        let mut last = Part { sum: to_double(x), count: 1 };
        while let Some(before) = parts.pop_if(|before| before.mean() < last.mean()) {
            last = Part { sum: before.sum + last.sum, count: before.count + last.count };
        }
        parts.push(last);
    }
}

struct Regression<T> {
    output: DType,
    element: PhantomData<fn(T)>,
}

impl<T: Compute> Regression<T> {
    fn write<Y: Compute>(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let (y, segments) = (c.output::<Y>(0, x.dims)?.data, c.output::<i32>(1, x.dims)?.data);
        if y.is_empty() {
            return Ok(());
        }
        let len = x.dims.last().map_or(1, |&len| len as usize);
        let (y, segments) = (Parts::new(y), Parts::new(segments));
        try_units(c, x.data.len() / len, COST_NS * len as f64, |rows| {
            let mut parts = growth::with_room(len)?;
            for row in rows {
                let at = row * len..(row + 1) * len;
                regress(&x.data[at.clone()], &mut parts);
                // SAFETY: each row has a part of its own.
                let (mut y, mut segments) = unsafe { (y.part(at.clone()), segments.part(at)) };
                for (number, part) in parts.iter().enumerate() {
                    let (now, rest) = y.split_at_mut(part.count);
                    now.fill(from_double(part.mean()));
                    y = rest;
                    let (now, rest) = segments.split_at_mut(part.count);
                    now.fill(i32::try_from(number).unwrap_or(i32::MAX));
                    segments = rest;
                }
            }
            Ok(())
        })
    }
}

impl<T: Compute> Kernel for Regression<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Regression { output: c.attr("output_dtype")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        match self.output {
            DType::HALF => self.write::<f16>(c),
            DType::BFLOAT16 => self.write::<bf16>(c),
            DType::DOUBLE => self.write::<f64>(c),
            _ => self.write::<f32>(c),
        }
    }
}

register_kernel!("IsotonicRegression" on "CPU": Regression<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    numerics = Numerics::ulps(2.0).accumulation(DType::DOUBLE));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ascends_is_levelled() {
        let found = |x: &[f32]| {
            let mut parts = Vec::new();
            regress(x, &mut parts);
            parts.iter().map(|part| (part.mean(), part.count)).collect::<Vec<_>>()
        };
        assert_eq!(found(&[1.0, 5.0, 3.0, 5.0, -1.0]), [(3.5, 4), (-1.0, 1)]);
        assert_eq!(found(&[3.0, 1.0, 2.0]), [(3.0, 1), (1.5, 2)]);
        assert_eq!(found(&[]), []);
    }
}
