//! `SparseReduceSum`, `SparseReduceMax`, their forms with sparse results, and `SparseSoftmax`.

use super::places::{Places, write_numbers};
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

/// The numbers of the dimensions that are not reduced, with another in the place of the others, if there is one.
fn kept_or(numbers: &[i64], reduced: &[bool], other: Option<i64>) -> Result<Vec<i64>, KernelError> {
    let all = numbers.iter().zip(reduced);
    growth::collected(
        all.filter_map(|(&number, reduced)| if *reduced { other } else { Some(number) }),
    )
}

impl<W: Way<T>, T: Element + Default> Kernel for Reduce<W, T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Reduce { keeps: c.attr("keep_dims")?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let places = Places::inside(c, [0, 1, 2])?;
        let reduced = reduced(c, places.shape.len())?;
        let dims = kept_or(&places.shape, &reduced, self.keeps.then_some(1))?;
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

/// The reductions whose results have values where there are some.
struct ReduceSparse<W, T>(Reduce<W, T>);

impl<W: Way<T>, T: Element + Default> Kernel for ReduceSparse<W, T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Reduce::new(c).map(ReduceSparse)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let places = Places::inside(c, [0, 1, 2])?;
        let reduced = reduced(c, places.shape.len())?;
        let keeps = self.0.keeps;
        let key = |value: usize| {
            let of_place = places.at(value).iter().zip(&reduced);
            of_place.filter(|(_, reduced)| !**reduced).map(|(at, _)| *at)
        };
        let mut order = growth::collected(0..places.count)?;
        order.sort_by(|&a, &b| key(a).cmp(key(b)));
        let values = c.input::<T>(1)?.data;
        let (mut indices, mut results) = (Vec::new(), Vec::new());
        for own in order.chunk_by(|&a, &b| key(a).eq(key(b))) {
            let of_one = own.iter().map(|&value| values[value]).reduce(W::of);
            growth::push(&mut results, of_one.unwrap_or_default())?;
            let place = kept_or(places.at(own[0]), &reduced, keeps.then_some(0))?;
            growth::append(&mut indices, &place)?;
        }
        let shape = kept_or(&places.shape, &reduced, keeps.then_some(1))?;
        let dims = [results.len() as i64, shape.len() as i64];
        c.output::<i64>(0, &dims)?.data.copy_from_slice(&indices);
        c.output::<T>(1, &dims[..1])?.data.copy_from_slice(&results);
        write_numbers(c, 2, &shape)
    }
}

type ReduceSumSparse<T> = ReduceSparse<Add, T>;
type ReduceMaxSparse<T> = ReduceSparse<Greatest, T>;
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
register_kernel!("SparseReduceSumSparse" on "CPU": ReduceSumSparse<T> for "T" in [
    i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>],
    host_memory = &["input_shape", "reduction_axes"]);
register_kernel!("SparseReduceMaxSparse" on "CPU": ReduceMaxSparse<T> for "T" in [
    i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    host_memory = &["input_shape", "reduction_axes"]);
register_kernel!("SparseSoftmax" on "CPU": fn softmax<T> for "T" in [f16, f32, f64],
    host_memory = &["sp_shape"], numerics = tenon_sdk::reg::Numerics::ulps(16.0));
