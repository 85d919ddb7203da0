//! Ops whose index vectors name slices.

use super::{
    combine::{Add, Combine, Larger, Smaller, Subtract, Write},
    places::{BadIndices, Places},
};
use crate::update::{Sum, check_there};
use std::marker::PhantomData;
use tenon_sdk::prelude::*;

/// Combines slices of the variable behind a handle.
struct OfHandle<T, C> {
    policy: BadIndices,
    use_locking: bool,
    of: PhantomData<fn(T, C)>,
}

impl<T: Element, C: Combine<T>> Kernel for OfHandle<T, C> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (policy, use_locking) = (BadIndices::new(c)?, c.attr("use_locking")?);
        Ok(OfHandle { policy, use_locking, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let variable = state.input_variable(0)?;
        let variables = [&variable];
        let updates = c.input::<T>(2)?.data;
        if self.use_locking {
            let mut locked = state.lock(&variables)?;
            check_there(locked.has_value(0))?;
            let value = locked.view_mut::<T>(0)?;
            return Places::slices(c, value.dims, self.policy)?.update::<T, C>(value.data, updates);
        }
        let shared = state.share_for_update(&variables)?;
        check_there(shared.read(0).is_ok())?;
        let value = shared.cells_mut::<T>(0)?;
        Places::slices(c, value.dims(), self.policy)?.update_shared::<T, C>(&value, updates)
    }
}

/// Combines slices of the variable behind a reference.
struct OfReference<T, C> {
    policy: BadIndices,
    of: PhantomData<fn(T, C)>,
}

impl<T: Element, C: Combine<T>> Kernel for OfReference<T, C> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(OfReference { policy: BadIndices::new(c)?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let variable = state.input_ref(0)?;
        let variables = [&variable];
        let updates = c.input::<T>(2)?.data;
        let mut locked = state.lock(&variables)?;
        let value = locked.view_mut::<T>(0)?;
        Places::slices(c, value.dims, self.policy)?.update::<T, C>(value.data, updates)?;
        drop(locked);
        state.output_ref(&variable, 0)
    }
}

/// Writes strings behind a handle.
struct StringsOfHandle(BadIndices);

impl Kernel for StringsOfHandle {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        BadIndices::new(c).map(StringsOfHandle)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let variable = state.input_variable(0)?;
        let variables = [&variable];
        let mut locked = state.lock(&variables)?;
        let dims = locked.dims(0);
        check_there(dims.is_some())?;
        Places::slices(c, &dims.unwrap_or_default(), self.0)?.write_strings(c, &mut locked)
    }
}

/// Writes strings behind a reference.
struct StringsOfReference(BadIndices);

impl Kernel for StringsOfReference {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        BadIndices::new(c).map(StringsOfReference)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let variable = state.input_ref(0)?;
        let variables = [&variable];
        let mut locked = state.lock(&variables)?;
        let dims = locked.dims(0).unwrap_or_default();
        Places::slices(c, &dims, self.0)?.write_strings(c, &mut locked)?;
        drop(locked);
        state.output_ref(&variable, 0)
    }
}

/// Registers a way to combine for handles and references.
macro_rules! slices {
    ($($way:ident $module:ident: $handle:literal $handle_types:tt,
        $reference:literal $reference_types:tt;)*) => {$(
        mod $module {
            use super::*;

            type Handle<T> = OfHandle<T, $way>;
            type Reference<T> = OfReference<T, $way>;

            register_kernel!($handle on "CPU": Handle<T> for "T" in $handle_types);
            register_kernel!($reference on "CPU": Reference<T> for "T" in $reference_types);
        }
    )*};
}

slices! {
    Write write:
        "ResourceScatterNdUpdate"
            [bool, f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64],
        "ScatterNdUpdate"
            [bool, f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64];
    Add add:
        "ResourceScatterNdAdd"
            [bool, f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64],
        "ScatterNdAdd"
            [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64];
    Subtract subtract:
        "ResourceScatterNdSub"
            [bool, f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64],
        "ScatterNdSub"
            [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64];
    Larger larger:
        "ResourceScatterNdMax" [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64],
        "ScatterNdMax" [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64];
    Smaller smaller:
        "ResourceScatterNdMin" [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64],
        "ScatterNdMin" [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64];
}

register_kernel!("ResourceScatterNdUpdate" on "CPU": StringsOfHandle,
    types = ("T", &[DType::STRING]));
register_kernel!("ScatterNdUpdate" on "CPU": StringsOfReference, types = ("T", &[DType::STRING]));

/// The input with updates added.
struct NonAliasingAdd<T> {
    policy: BadIndices,
    of: PhantomData<fn(T)>,
}

impl<T: Sum> Kernel for NonAliasingAdd<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(NonAliasingAdd { policy: BadIndices::new(c)?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (input, updates) = (c.input::<T>(0)?, c.input::<T>(2)?.data);
        let places = Places::slices(c, input.dims, self.policy)?;
        let output = c.output::<T>(0, input.dims)?.data;
        output.copy_from_slice(input.data);
        places.update::<T, Add>(output, updates)
    }
}

register_kernel!("ScatterNdNonAliasingAdd" on "CPU": NonAliasingAdd<T> for "T" in
    [bool, f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64],
    numerics = Numerics::EXACT);
