//! The entries that a shape function calls.

use super::context::InferenceContext;
use crate::KernelError;
use std::{mem::size_of, ptr, slice};
use tenon_abi::{Attrs, Code, DType, DimId, ShapeCall, ShapeId, ShapeTable, Slot, Str};

/// The table behind `Host::shapes`. Its entries take the run that [`super::infer`] lends.
pub static SHAPE_TABLE: ShapeTable = ShapeTable {
    struct_size: size_of::<ShapeTable>() as u32,
    reserved: 0,
    attrs: Some(attrs),
    input_count: Some(input_count),
    output_count: Some(output_count),
    input: Some(input),
    constant: Some(constant),
    constant_as_shape: Some(constant_as_shape),
    rank: Some(rank),
    dim: Some(dim),
    value: Some(value),
    make_dim: Some(make_dim),
    make_shape: Some(make_shape),
    unknown_shape: Some(unknown_shape),
    merge: Some(merge),
    merge_dim: Some(merge_dim),
    with_rank: Some(with_rank),
    set_output: Some(set_output),
    input_handle: Some(input_handle),
    add_output_handle: Some(add_output_handle),
    fail: Some(fail),
};

/// The run behind a handle.
///
/// # Safety
/// `call` is what `infer` gave to the shape function that is running, and no other borrow of it lives.
unsafe fn context<'a>(call: *mut ShapeCall) -> &'a mut InferenceContext {
    // SAFETY: the caller passes on the context that `infer` gave as a handle, and has no other borrow of it.
    unsafe { &mut *call.cast::<InferenceContext>() }
}

/// Writes a result, or keeps the message of the error.
///
/// # Safety
/// `result` is null or may be written.
unsafe fn give<T>(
    context: &mut InferenceContext,
    outcome: Result<T, KernelError>,
    result: *mut T,
) -> Code {
    match outcome {
        Ok(_) if result.is_null() => {
            context.keep(KernelError::internal("expected a place for the result, found null"))
        }
        Ok(value) => {
            // SAFETY: `result` is not null, and the caller lets it be written.
            unsafe { result.write(value) };
            Code::OK
        }
        Err(error) => context.keep(error),
    }
}

fn done(context: &mut InferenceContext, outcome: Result<(), KernelError>) -> Code {
    outcome.map_or_else(|error| context.keep(error), |()| Code::OK)
}

unsafe extern "C" fn attrs(call: *mut ShapeCall) -> *const Attrs {
    // SAFETY: a shape function gives the run that it was lent; so below.
    unsafe { context(call) }.attrs()
}

unsafe extern "C" fn input_count(call: *mut ShapeCall) -> u32 {
    // SAFETY: as in `attrs`.
    unsafe { context(call) }.input_count()
}

unsafe extern "C" fn output_count(call: *mut ShapeCall) -> u32 {
    // SAFETY: as in `attrs`.
    unsafe { context(call) }.output_count()
}

unsafe extern "C" fn input(call: *mut ShapeCall, input: u32) -> ShapeId {
    // SAFETY: as in `attrs`.
    unsafe { context(call) }.input(input)
}

unsafe extern "C" fn constant(call: *mut ShapeCall, input: u32) -> *const Slot {
    // SAFETY: as in `attrs`.
    unsafe { context(call) }.constant(input).map_or(ptr::null(), ptr::from_ref)
}

unsafe extern "C" fn constant_as_shape(
    call: *mut ShapeCall,
    input: u32,
    result: *mut ShapeId,
) -> Code {
    // SAFETY: as in `attrs`; `result` is the shape function's own.
    unsafe {
        let context = context(call);
        let shape = context.constant_as_shape(input);
        give(context, shape, result)
    }
}

unsafe extern "C" fn rank(call: *mut ShapeCall, shape: ShapeId) -> i32 {
    // SAFETY: as in `attrs`.
    unsafe { context(call) }.rank(shape)
}

unsafe extern "C" fn dim(call: *mut ShapeCall, shape: ShapeId, index: u32) -> DimId {
    // SAFETY: as in `attrs`.
    unsafe { context(call) }.dim(shape, index)
}

unsafe extern "C" fn value(call: *mut ShapeCall, dim: DimId) -> i64 {
    // SAFETY: as in `attrs`.
    unsafe { context(call) }.value(dim)
}

unsafe extern "C" fn make_dim(call: *mut ShapeCall, value: i64) -> DimId {
    // SAFETY: as in `attrs`.
    unsafe { context(call) }.make_dim(value)
}

unsafe extern "C" fn make_shape(call: *mut ShapeCall, dims: *const DimId, rank: u32) -> ShapeId {
    // SAFETY: as in `attrs`.
    let context = unsafe { context(call) };
    if rank == 0 {
        return context.make_shape(&[]);
    }
    if dims.is_null() {
        context.mistake(format!("expected {rank} dimensions of a shape, found a null pointer"));
        return super::context::UNKNOWN;
    }
    // SAFETY: the shape function gives `rank` dimensions.
    context.make_shape(unsafe { slice::from_raw_parts(dims, rank as usize) })
}

unsafe extern "C" fn unknown_shape(_call: *mut ShapeCall) -> ShapeId {
    super::context::UNKNOWN
}

unsafe extern "C" fn merge(
    call: *mut ShapeCall,
    a: ShapeId,
    b: ShapeId,
    result: *mut ShapeId,
) -> Code {
    // SAFETY: as in `constant_as_shape`.
    unsafe {
        let context = context(call);
        let shape = context.merge(a, b);
        give(context, shape, result)
    }
}

unsafe extern "C" fn merge_dim(
    call: *mut ShapeCall,
    a: DimId,
    b: DimId,
    result: *mut DimId,
) -> Code {
    // SAFETY: as in `constant_as_shape`.
    unsafe {
        let context = context(call);
        let dim = context.merge_dim(a, b);
        give(context, dim, result)
    }
}

unsafe extern "C" fn with_rank(
    call: *mut ShapeCall,
    shape: ShapeId,
    rank: u32,
    result: *mut ShapeId,
) -> Code {
    // SAFETY: as in `constant_as_shape`.
    unsafe {
        let context = context(call);
        let shape = context.with_rank(shape, rank);
        give(context, shape, result)
    }
}

unsafe extern "C" fn set_output(call: *mut ShapeCall, output: u32, shape: ShapeId) -> Code {
    // SAFETY: as in `attrs`.
    let context = unsafe { context(call) };
    let outcome = context.set_output(output, shape);
    done(context, outcome)
}

unsafe extern "C" fn input_handle(
    call: *mut ShapeCall,
    input: u32,
    part: u32,
    dtype: *mut DType,
    shape: *mut ShapeId,
) -> u32 {
    // SAFETY: as in `attrs`.
    let parts = unsafe { context(call) }.input_handle(input);
    if let Some(&(known_dtype, known_shape)) = parts.get(part as usize) {
        // SAFETY: places of the shape function, or null.
        unsafe {
            if !dtype.is_null() {
                dtype.write(known_dtype);
            }
            if !shape.is_null() {
                shape.write(known_shape);
            }
        }
    }
    parts.len() as u32
}

unsafe extern "C" fn add_output_handle(
    call: *mut ShapeCall,
    output: u32,
    dtype: DType,
    shape: ShapeId,
) -> Code {
    // SAFETY: as in `attrs`.
    let context = unsafe { context(call) };
    let outcome = context.add_output_handle(output, dtype, shape);
    done(context, outcome)
}

unsafe extern "C" fn fail(call: *mut ShapeCall, code: Code, message: Str) -> Code {
    // SAFETY: as in `attrs`; the message is readable during the call.
    unsafe {
        let message = String::from_utf8_lossy(message.bytes()).into_owned();
        context(call).keep(KernelError::new(code, message))
    }
}
