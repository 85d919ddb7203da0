//! `SparseReduceSum`, `SparseReduceMax` and `SparseSoftmax`.

use super::places::Places;
use crate::update::Sum;
use num_complex::Complex;
use std::{collections::HashMap, marker::PhantomData};
use tenon_sdk::{
    geometry::{GeometryError, byte_size},
    growth,
    prelude::*,
};

/// How values of one place are reduced.
trait Way<T>: 'static {
    fn of(so_far: T, value: T) -> T;
}

struct Add;

impl<T: Sum> Way<T> for Add {
    fn of(so_far: T, value: T) -> T {
        so_far.plus(value)
    }
}

struct Greatest;

impl<T: Number> Way<T> for Greatest {
    fn of(so_far: T, value: T) -> T {
        if value > so_far { value } else { so_far }
    }
}

struct Reduce<W, T> {
    keeps: bool,
    of: PhantomData<fn() -> (W, T)>,
}

/// Which dimensions are reduced.
fn reduced(c: &ComputeContext<'_>, rank: usize) -> Result<Vec<bool>, KernelError> {
    let mut reduced = growth::filled(rank, false)?;
    for axis in c.integer_list(3, "reduction_axes")? {
        let high = rank as i64;
        let at = if axis < 0 { axis + high } else { axis };
        if !(0..high).contains(&at) {
            let what = "reduction_axes";
            return Err(GeometryError::Axis { what, low: -high, high, axis }.into());
        }
        reduced[at as usize] = true;
    }
    Ok(reduced)
}

impl<W: Way<T>, T: Element + Default> Kernel for Reduce<W, T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Reduce { keeps: c.attr("keep_dims")?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let places = Places::inside(c, [0, 1, 2])?;
        let reduced = reduced(c, places.shape.len())?;
        let mut dims = Vec::new();
        for (&size, &is_reduced) in places.shape.iter().zip(&reduced) {
            match is_reduced {
                false => growth::push(&mut dims, size)?,
                true if self.keeps => growth::push(&mut dims, 1)?,
                true => {}
            }
        }
        byte_size(&dims, 16)?;
        let values = c.input::<T>(1)?.data;
        let y = c.output::<T>(0, &dims)?.data;
        y.fill(T::default());
        let mut is_set = growth::filled(y.len(), false)?;
        for (value, &x) in values.iter().enumerate() {
            let kept = places.at(value).iter().zip(&places.shape).zip(&reduced);
            let at = kept.filter(|(_, reduced)| !**reduced);
            let at = at.fold(0, |flat, ((at, size), _)| flat * size + at) as usize;
            y[at] = if is_set[at] { W::of(y[at], x) } else { x };
            is_set[at] = true;
        }
        Ok(())
    }
}

type ReduceSum<T> = Reduce<Add, T>;
type ReduceMax<T> = Reduce<Greatest, T>;

/// The softmax of the values of each row of the last dimension.
fn softmax<T: Float>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let places = Places::inside(c, [0, 1, 2])?;
    let Some(last) = places.shape.len().checked_sub(1).filter(|&last| last > 0) else {
        let (what, found) = ("sp_shape", places.shape.len());
        return Err(GeometryError::RankTooSmall { what, expected: 2, found }.into());
    };
    let values = c.input::<T>(1)?;
    let mut rows: HashMap<&[i64], Vec<usize>> = HashMap::new();
    growth::reserve_entries(&mut rows, places.count)?;
    for value in 0..places.count {
        growth::push(rows.entry(&places.at(value)[..last]).or_default(), value)?;
    }
    let y = c.output::<T>(0, values.dims)?.data;
    for row in rows.values() {
        let of_row = || row.iter().map(|&value| values.data[value].to_f64());
        let most = of_row().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = of_row().map(|x| (x - most).exp()).sum();
        for (&value, x) in row.iter().zip(of_row()) {
            y[value] = T::from_f64((x - most).exp() / sum);
        }
    }
    Ok(())
}

register_kernel!("SparseReduceSum" on "CPU": ReduceSum<T> for "T" in [
    i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>],
    host_memory = &["input_shape", "reduction_axes"]);
register_kernel!("SparseReduceMax" on "CPU": ReduceMax<T> for "T" in [
    i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    host_memory = &["input_shape", "reduction_axes"]);
register_kernel!("SparseSoftmax" on "CPU": fn softmax<T> for "T" in [f16, f32, f64],
    host_memory = &["sp_shape"], numerics = tenon_sdk::reg::Numerics::ulps(16.0));
