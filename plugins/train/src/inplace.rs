//! Rows of a tensor that are written: `InplaceUpdate`, `InplaceAdd`, `InplaceSub`; `DeepCopy`.
//!
//! The output takes over the memory of the input where nobody else holds it; else the input is
//! copied, and stays as it is.

use std::marker::PhantomData;
use tenon_sdk::{author::InOut, prelude::*};

/// How a row is combined with its update.
trait Way<T>: 'static {
    fn combine(before: T, update: T) -> T;
}

struct Write;
struct Plus;
struct Minus;

impl<T: Element> Way<T> for Write {
    fn combine(_: T, update: T) -> T {
        update
    }
}

macro_rules! sums {
    ($($ty:ty: $plus:expr, $minus:expr;)*) => {$(
        impl Way<$ty> for Plus {
            fn combine(before: $ty, update: $ty) -> $ty {
                $plus(before, update)
            }
        }

        impl Way<$ty> for Minus {
            fn combine(before: $ty, update: $ty) -> $ty {
                $minus(before, update)
            }
        }
    )*};
}

sums! {
    f16: Number::add, Number::sub;
    bf16: Number::add, Number::sub;
    f32: Number::add, Number::sub;
    f64: Number::add, Number::sub;
    i8: Number::add, Number::sub;
    i16: Number::add, Number::sub;
    i32: Number::add, Number::sub;
    i64: Number::add, Number::sub;
    u8: Number::add, Number::sub;
    u16: Number::add, Number::sub;
    u32: Number::add, Number::sub;
    u64: Number::add, Number::sub;
    Complex32: |x, y| x + y, |x, y| x - y;
    Complex64: |x, y| x + y, |x, y| x - y;
}

/// Checks the shapes of `x`, `i` and `v`.
fn check(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (x, i, v) = (c.dims(0), c.dims(1), c.dims(2));
    let fits = match (x, i, v) {
        ([_, row @ ..], &[count], [updates, of_update @ ..]) => {
            count == *updates && row == of_update
        }
        _ => false,
    };
    if fits {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "expected a vector i, and v with a row of x for each element of i; found x of shape {x:?}, i of {i:?}, v of {v:?}"
    )))
}

struct Inplace<T, W>(PhantomData<fn(T, W)>);

impl<T: Element, W: Way<T>> Kernel for Inplace<T, W> {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Inplace(PhantomData))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        check(c)?;
        let count = c.dims(0)[0];
        let y = match c.in_place::<T>(0, 0, c.dims(0))? {
            InOut::InPlace(y) => y,
            InOut::Separate(x, y) => {
                y.copy_from_slice(x);
                y
            }
        };
        let (i, v) = (c.input::<i32>(1)?.data, c.input::<T>(2)?.data);
        if y.is_empty() {
            return match i.first() {
                Some(&row) if count == 0 => Err(KernelError::invalid_argument(format!(
                    "i: expected no rows of a tensor without rows, found {row}"
                ))),
                _ => Ok(()),
            };
        }
        let len = y.len() / count as usize;
        for (&row, update) in i.iter().zip(v.chunks_exact(len)) {
            let first = i64::from(row).rem_euclid(count) as usize * len;
            for (y, &update) in y[first..first + len].iter_mut().zip(update) {
                *y = W::combine(*y, update);
            }
        }
        Ok(())
    }
}

type Update<T> = Inplace<T, Write>;
type Add<T> = Inplace<T, Plus>;
type Sub<T> = Inplace<T, Minus>;

register_kernel!("InplaceUpdate" on "CPU": Update<T> for "T" in
    [bool, f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("InplaceAdd" on "CPU": Add<T> for "T" in
    [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("InplaceSub" on "CPU": Sub<T> for "T" in
    [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);

fn copy<T: Element>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<T>(0)?;
    c.output::<T>(0, x.dims)?.data.copy_from_slice(x.data);
    Ok(())
}

fn copy_strings(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.set_strings(0, c.dims(0), c.strings(0)?.iter())
}

register_kernel!("DeepCopy" on "CPU": fn copy<T> for "T" in
    [bool, f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64],
    numerics = Numerics::EXACT);
register_kernel!("DeepCopy" on "CPU": fn copy_strings, types = ("T", &[DType::STRING]),
    numerics = Numerics::EXACT);
