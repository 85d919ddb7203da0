//! Ops whose indices name rows.

use super::{
    combine::{Add, Combine, Divide, Larger, Multiply, Smaller, Subtract, Write},
    places::Places,
};
use crate::update::check_there;
use tenon_sdk::prelude::*;

fn of_handle<T: Element, C: Combine<T>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_variable(0)?;
    let variables = [&variable];
    let updates = c.input::<T>(2)?.data;
    C::check(updates, true)?;
    let shared = state.share_for_update(&variables)?;
    check_there(shared.read(0).is_ok())?;
    let value = shared.cells_mut::<T>(0)?;
    Places::rows(c, value.dims())?.update_shared::<T, C>(&value, updates)
}

fn of_reference<T: Element, C: Combine<T>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_ref(0)?;
    let variables = [&variable];
    let updates = c.input::<T>(2)?.data;
    C::check(updates, false)?;
    let mut locked = state.lock(&variables)?;
    let value = locked.view_mut::<T>(0)?;
    Places::rows(c, value.dims)?.update::<T, C>(value.data, updates)?;
    drop(locked);
    state.output_ref(&variable, 0)
}

fn strings_of_handle(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_variable(0)?;
    let variables = [&variable];
    let mut locked = state.lock(&variables)?;
    let dims = locked.dims(0);
    check_there(dims.is_some())?;
    Places::rows(c, &dims.unwrap_or_default())?.write_strings(c, &mut locked)
}

fn strings_of_reference(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_ref(0)?;
    let variables = [&variable];
    let mut locked = state.lock(&variables)?;
    let dims = locked.dims(0).unwrap_or_default();
    Places::rows(c, &dims)?.write_strings(c, &mut locked)?;
    drop(locked);
    state.output_ref(&variable, 0)
}

/// Registers a way to combine for handles and references, for element types that the bound allows.
macro_rules! rows {
    ($($way:ident $module:ident $bound:path: $handle:literal, $reference:literal, $types:tt;)*) => {$(
        mod $module {
            use super::*;

            fn handle<T: $bound>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
                of_handle::<T, $way>(c)
            }

            fn reference<T: $bound>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
                of_reference::<T, $way>(c)
            }

            register_kernel!($handle on "CPU": fn handle<T> for "dtype" in $types);
            register_kernel!($reference on "CPU": fn reference<T> for "T" in $types);
        }
    )*};
}

rows! {
    Write write Element: "ResourceScatterUpdate", "ScatterUpdate",
        [bool, f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64];
    Add add crate::update::Sum: "ResourceScatterAdd", "ScatterAdd",
        [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64];
    Subtract subtract crate::update::Sum: "ResourceScatterSub", "ScatterSub",
        [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64];
    Multiply multiply super::super::combine::Product: "ResourceScatterMul", "ScatterMul",
        [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64];
    Divide divide super::super::combine::Product: "ResourceScatterDiv", "ScatterDiv",
        [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64];
}

/// As `rows`, for ops of references that take fewer types.
macro_rules! ordered_rows {
    ($($way:ident $module:ident: $handle:literal, $reference:literal;)*) => {$(
        mod $module {
            use super::*;

            fn handle<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
                of_handle::<T, $way>(c)
            }

            fn reference<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
                of_reference::<T, $way>(c)
            }

            register_kernel!($handle on "CPU": fn handle<T> for "dtype" in
                [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64]);
            register_kernel!($reference on "CPU": fn reference<T> for "T" in
                [f16, bf16, f32, f64, i32, i64]);
        }
    )*};
}

ordered_rows! {
    Smaller smaller: "ResourceScatterMin", "ScatterMin";
    Larger larger: "ResourceScatterMax", "ScatterMax";
}

register_kernel!("ResourceScatterUpdate" on "CPU": fn strings_of_handle,
    types = ("dtype", &[DType::STRING]));
register_kernel!("ScatterUpdate" on "CPU": fn strings_of_reference,
    types = ("T", &[DType::STRING]));
