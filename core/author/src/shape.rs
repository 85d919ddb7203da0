//! The context of a shape function.

use crate::attrs::AttrReader;
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_abi::{
    Code, DType, DimId, Host, ShapeCall, ShapeFn, ShapeId, ShapeTable, Slot, Str, UNKNOWN_DIM,
};
use tenon_framework::{
    KernelError,
    attr::FromAttr,
    element::Element,
    plugin::{guard, host},
};

/// A shape of one run of a shape function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShapeHandle(ShapeId);

/// A dimension of one run. Unknown dimensions have an identity: equal handles are equal sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dim(DimId);

/// The result of a shape function.
pub type ShapeResult = Result<(), KernelError>;

/// One run of a shape function.
pub struct ShapeContext<'a> {
    call: *mut ShapeCall,
    table: &'a ShapeTable,
    lent: PhantomData<&'a mut ShapeCall>,
}

macro_rules! entry {
    ($context:expr, $name:ident $(, $arg:expr)*) => {{
        let entry = $context.table.$name.expect("the host fills every entry");
        // SAFETY: an entry of the host's table with the run that it lent.
        unsafe { entry($context.call $(, $arg)*) }
    }};
}

impl<'a> ShapeContext<'a> {
    /// Wraps what the host gives.
    ///
    /// # Safety
    /// `call` is valid for `'a`, and every entry of the host's tables is filled.
    pub unsafe fn new(call: *mut ShapeCall) -> ShapeContext<'a> {
        // SAFETY: the host's table lives as long as the process.
        let table = unsafe { &*host().shapes };
        ShapeContext { call, table, lent: PhantomData }
    }

    /// The value of an attribute.
    ///
    /// # Errors
    /// As [`AttrReader::get`].
    pub fn attr<T: FromAttr<'a>>(&self, name: &str) -> Result<T, KernelError> {
        let attrs = entry!(self, attrs);
        // SAFETY: the attributes are lent for as long as the run.
        unsafe { AttrReader::new(attrs) }.get(name)
    }

    /// Number of inputs.
    pub fn input_count(&self) -> usize {
        entry!(self, input_count) as usize
    }

    /// Number of outputs.
    pub fn output_count(&self) -> usize {
        entry!(self, output_count) as usize
    }

    /// Shape of an input.
    pub fn input(&self, input: usize) -> ShapeHandle {
        ShapeHandle(entry!(self, input, input as u32))
    }

    /// Rank, when known.
    pub fn rank(&self, shape: ShapeHandle) -> Option<usize> {
        usize::try_from(entry!(self, rank, shape.0)).ok()
    }

    /// Dimension `index` of a shape of known rank; a fresh unknown one otherwise.
    pub fn dim(&self, shape: ShapeHandle, index: usize) -> Dim {
        Dim(entry!(self, dim, shape.0, index as u32))
    }

    /// Size, when known.
    pub fn value(&self, dim: Dim) -> Option<i64> {
        let value = entry!(self, value, dim.0);
        (value >= 0).then_some(value)
    }

    /// The dimensions as numbers, [`UNKNOWN_DIM`] where unknown; `None` when the rank is unknown.
    pub fn dims(&self, shape: ShapeHandle) -> Option<Vec<i64>> {
        let rank = self.rank(shape)?;
        Some((0..rank).map(|at| self.value(self.dim(shape, at)).unwrap_or(UNKNOWN_DIM)).collect())
    }

    /// A dimension of this size; `None` is a fresh unknown one.
    pub fn make_dim(&self, value: Option<i64>) -> Dim {
        Dim(entry!(self, make_dim, value.unwrap_or(UNKNOWN_DIM)))
    }

    /// A shape of these dimensions.
    pub fn make_shape(&self, dims: &[Dim]) -> ShapeHandle {
        let ids: Vec<DimId> = dims.iter().map(|dim| dim.0).collect();
        ShapeHandle(entry!(self, make_shape, ids.as_ptr(), ids.len() as u32))
    }

    /// A shape of these sizes, [`UNKNOWN_DIM`] where unknown.
    pub fn shape_of(&self, dims: &[i64]) -> ShapeHandle {
        let dims: Vec<Dim> = dims.iter().map(|&d| self.make_dim((d >= 0).then_some(d))).collect();
        self.make_shape(&dims)
    }

    /// The shape of a scalar.
    pub fn scalar(&self) -> ShapeHandle {
        self.make_shape(&[])
    }

    /// The shape of unknown rank.
    pub fn unknown(&self) -> ShapeHandle {
        ShapeHandle(entry!(self, unknown_shape))
    }

    /// A shape of known rank with unknown dimensions.
    pub fn unknown_of_rank(&self, rank: usize) -> ShapeHandle {
        self.shape_of(&vec![UNKNOWN_DIM; rank])
    }

    /// Merges what is known of two shapes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when they contradict each other.
    pub fn merge(&self, a: ShapeHandle, b: ShapeHandle) -> Result<ShapeHandle, KernelError> {
        let mut result = a.0;
        let code = entry!(self, merge, a.0, b.0, &mut result);
        self.done(code, ShapeHandle(result))
    }

    /// Merges what is known of two dimensions.
    ///
    /// # Errors
    /// As [`ShapeContext::merge`].
    pub fn merge_dim(&self, a: Dim, b: Dim) -> Result<Dim, KernelError> {
        let mut result = a.0;
        let code = entry!(self, merge_dim, a.0, b.0, &mut result);
        self.done(code, Dim(result))
    }

    /// The shape, which must have this rank.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it has another.
    pub fn with_rank(&self, shape: ShapeHandle, rank: usize) -> Result<ShapeHandle, KernelError> {
        let mut result = shape.0;
        let code = entry!(self, with_rank, shape.0, rank as u32, &mut result);
        self.done(code, ShapeHandle(result))
    }

    /// The value of an input that is constant, in host memory.
    pub fn constant(&self, input: usize) -> Option<&'a Slot> {
        let slot: *const Slot = entry!(self, constant, input as u32);
        // SAFETY: null or a slot that the host lends for the run.
        unsafe { slot.as_ref() }
    }

    /// The values of a constant integer input (int8, int16, int32 or int64), widened.
    pub fn constant_integers(&self, input: usize) -> Option<Vec<i64>> {
        integers(self.constant(input)?)
    }

    /// The one value of a constant input of a float type, widened.
    pub fn constant_float(&self, input: usize) -> Option<f64> {
        let slot = self.constant(input)?;
        match slot.dtype {
            DType::HALF => one::<f16>(slot).map(f64::from),
            DType::BFLOAT16 => one::<bf16>(slot).map(f64::from),
            DType::FLOAT => one::<f32>(slot).map(f64::from),
            DType::DOUBLE => one::<f64>(slot),
            _ => None,
        }
    }

    /// An input that holds a shape, as far as its values are known.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it is not a vector or its values are not those of a shape.
    pub fn constant_as_shape(&self, input: usize) -> Result<ShapeHandle, KernelError> {
        let mut result = self.unknown().0;
        let code = entry!(self, constant_as_shape, input as u32, &mut result);
        self.done(code, ShapeHandle(result))
    }

    /// Sets the shape of an output.
    ///
    /// # Errors
    /// `INTERNAL` when there is no such output.
    pub fn set_output(&self, output: usize, shape: ShapeHandle) -> ShapeResult {
        let code = entry!(self, set_output, output as u32, shape.0);
        self.done(code, ())
    }

    /// What is known of the value behind resource input `input`: its parts' types and shapes.
    pub fn input_handle(&self, input: usize) -> Vec<(DType, ShapeHandle)> {
        let mut parts = Vec::new();
        loop {
            let (mut dtype, mut shape) = (DType::INVALID, ShapeId(0));
            let part = parts.len() as u32;
            let known = entry!(self, input_handle, input as u32, part, &mut dtype, &mut shape);
            if part >= known {
                return parts;
            }
            parts.push((dtype, ShapeHandle(shape)));
        }
    }

    /// Adds a part to what is known of the value behind resource output `output`.
    ///
    /// # Errors
    /// `INTERNAL` when there is no such output.
    pub fn add_output_handle(
        &self,
        output: usize,
        dtype: DType,
        shape: ShapeHandle,
    ) -> ShapeResult {
        let code = entry!(self, add_output_handle, output as u32, dtype, shape.0);
        self.done(code, ())
    }

    /// The host has kept its own message with the code; this one only says that it did.
    fn done<T>(&self, code: Code, value: T) -> Result<T, KernelError> {
        if code.is_ok() { Ok(value) } else { Err(KernelError::new(code, String::new())) }
    }
}

/// The values of an integer slot in host memory, widened; `None` for other types.
pub(crate) fn integers(slot: &Slot) -> Option<Vec<i64>> {
    fn read<T: Copy + Into<i64>>(slot: &Slot) -> Vec<i64> {
        if slot.elements == 0 {
            return Vec::new();
        }
        // SAFETY: a slot in host memory holds `elements` values of its type.
        let values = unsafe {
            std::slice::from_raw_parts(slot.data.cast_const().cast::<T>(), slot.elements as usize)
        };
        values.iter().map(|&x| x.into()).collect()
    }
    if slot.data.is_null() || !slot.memory.is_host_address() {
        return None;
    }
    match slot.dtype {
        DType::INT8 => Some(read::<i8>(slot)),
        DType::INT16 => Some(read::<i16>(slot)),
        DType::INT32 => Some(read::<i32>(slot)),
        DType::INT64 => Some(read::<i64>(slot)),
        _ => None,
    }
}

/// The one value of a slot of this type in host memory.
fn one<T: Element>(slot: &Slot) -> Option<T> {
    if slot.elements != 1 || slot.data.is_null() || !slot.memory.is_host_address() {
        return None;
    }
    // SAFETY: a slot in host memory holds `elements` values of its type, which the caller has asked for.
    Some(unsafe { *slot.data.cast_const().cast::<T>() })
}

/// A function that is a shape function.
pub trait ShapeFunction: Fn(&ShapeContext<'_>) -> ShapeResult + Copy + 'static {}
impl<F: Fn(&ShapeContext<'_>) -> ShapeResult + Copy + 'static> ShapeFunction for F {}

unsafe extern "C" fn run<F: ShapeFunction>(host: *const Host, call: *mut ShapeCall) -> Code {
    // SAFETY: `F` has no size (checked where the pointer is made), so that any aligned pointer is one; the
    // host lends the run.
    unsafe {
        let body = &*std::ptr::NonNull::<F>::dangling().as_ptr();
        let error = match guard(|| body(&ShapeContext::new(call))) {
            Ok(Ok(())) => return Code::OK,
            Ok(Err(error)) => error,
            Err(panic) => KernelError::internal(format!("the shape function panicked: {panic}")),
        };
        if error.message.is_empty() {
            return error.code;
        }
        let fail = (*(*host).shapes).fail.expect("the host fills every entry");
        fail(call, error.code, Str::new(&error.message))
    }
}

/// The entry of a shape function.
///
/// # Panics
/// When the function has a size: a pointer to one, or a closure that captures. In a constant that is a
/// compile error, at the caller.
#[track_caller]
pub const fn shape_entry<F: ShapeFunction>(_function: F) -> ShapeFn {
    assert!(size_of::<F>() == 0, "a shape function captures nothing");
    ShapeFn { run: Some(run::<F>) }
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
