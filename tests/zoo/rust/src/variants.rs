//! Variants: values of a type that only the plugin knows, handled through its table.

use std::{
    ffi::c_void,
    sync::atomic::{AtomicI64, Ordering},
};
use tenon_sdk::{
    abi::{Device, ExtHeader, MemoryKind, Sink, Str, Stream, VariantElement, VariantTable},
    author::host,
    prelude::*,
};

/// Values that are alive, so that a test sees that each is destroyed.
static LIVE: AtomicI64 = AtomicI64::new(0);

/// The value of a variant.
struct Amount(f32);

impl Amount {
    fn raw(value: f32) -> *mut c_void {
        LIVE.fetch_add(1, Ordering::Relaxed);
        Box::into_raw(Box::new(Amount(value))).cast()
    }
}

impl Drop for Amount {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// # Safety
/// `value` was made by `Amount::raw` and is alive.
unsafe fn amount(value: *const c_void) -> f32 {
    // SAFETY: the caller's promise.
    unsafe { (*value.cast::<Amount>()).0 }
}

unsafe extern "C" fn clone(value: *const c_void, copy: *mut *mut c_void, _: *mut Sink) -> Code {
    // SAFETY: the host gives a value of this table and a place for the copy.
    unsafe { *copy = Amount::raw(amount(value)) };
    Code::OK
}

unsafe extern "C" fn destroy(value: *mut c_void) {
    // SAFETY: the host gives back what `Amount::raw` made, once.
    drop(unsafe { Box::from_raw(value.cast::<Amount>()) });
}

unsafe extern "C" fn encode(value: *const c_void, sink: *mut Sink) -> Code {
    // SAFETY: a value of this table; the host fills every entry of its own.
    unsafe {
        let text = amount(value).to_string();
        host().report.expect("the host fills every entry")(sink, Str::new(&text));
    }
    Code::OK
}

unsafe extern "C" fn copy_to_device(
    value: *const c_void,
    _device: *mut Device,
    memory: MemoryKind,
    _stream: *mut Stream,
    copy: *mut *mut c_void,
    sink: *mut Sink,
) -> Code {
    // SAFETY: as in `clone`.
    unsafe {
        if memory.is_host_address() {
            return clone(value, copy, sink);
        }
        let text = "an amount holds no tensor: it lives in host memory";
        host().report.expect("the host fills every entry")(sink, Str::new(text));
    }
    Code::UNIMPLEMENTED
}

unsafe extern "C" fn zeros_like(_: *const c_void, result: *mut *mut c_void, _: *mut Sink) -> Code {
    // SAFETY: the host gives a place for the result.
    unsafe { *result = Amount::raw(0.0) };
    Code::OK
}

unsafe extern "C" fn add(
    a: *const c_void,
    b: *const c_void,
    result: *mut *mut c_void,
    _: *mut Sink,
) -> Code {
    // SAFETY: two values of this table, and a place for the result.
    unsafe { *result = Amount::raw(amount(a) + amount(b)) };
    Code::OK
}

static AMOUNT: VariantTable = VariantTable {
    struct_size: size_of::<VariantTable>() as u32,
    reserved: 0,
    type_name: Str::new("zoo.Amount"),
    clone: Some(clone),
    destroy: Some(destroy),
    encode: Some(encode),
    copy_to_device: Some(copy_to_device),
    zeros_like: Some(zeros_like),
    add: Some(add),
    ext: std::ptr::null::<ExtHeader>(),
};

/// Element 0 of a variant input.
fn element(c: &ComputeContext<'_>, input: usize) -> Result<VariantElement, KernelError> {
    let slot = c.slot(input)?;
    if slot.dtype != DType::VARIANT || slot.elements == 0 {
        return Err(KernelError::invalid_argument(format!("input {input}: expected a variant")));
    }
    // SAFETY: a variant slot holds variant elements.
    let element = unsafe { *slot.data.cast::<VariantElement>() };
    if !std::ptr::eq(element.table, &AMOUNT) || element.value.is_null() {
        return Err(KernelError::invalid_argument(format!(
            "input {input}: expected a variant of type zoo.Amount"
        )));
    }
    Ok(element)
}

/// Makes output 0 a scalar variant with the value that `make` writes.
fn give(
    c: &ComputeContext<'_>,
    make: impl FnOnce(*mut *mut c_void) -> Code,
) -> Result<(), KernelError> {
    let slot = c.prepare(0, &[])?;
    let mut value = std::ptr::null_mut();
    let code = make(&mut value);
    if !code.is_ok() {
        return Err(KernelError::new(code, "cannot make a variant"));
    }
    // SAFETY: one element of the output, empty before: a fresh buffer of variants is all zero.
    unsafe { *slot.data.cast::<VariantElement>() = VariantElement { value, table: &AMOUNT } };
    Ok(())
}

fn scalar(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.scalar())
}

register_op!(
    "ZooVariantMake",
    inputs = &["value: float"],
    outputs = &["v: variant"],
    shape = scalar,
    summary = "A variant that holds one float.",
);

fn make(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let value =
        *c.input::<f32>(0)?.data.first().ok_or_else(|| {
            KernelError::invalid_argument("value: expected one element, found none")
        })?;
    give(c, |result| {
        // SAFETY: a place for the result.
        unsafe { *result = Amount::raw(value) };
        Code::OK
    })
}

register_kernel!("ZooVariantMake" on "CPU": fn make);

register_op!(
    "ZooVariantRead",
    inputs = &["v: variant"],
    outputs = &["value: float"],
    shape = scalar,
    summary = "The float of a variant.",
);

fn read(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let v = element(c, 0)?;
    // SAFETY: a live value of this table.
    c.output::<f32>(0, &[])?.data[0] = unsafe { amount(v.value) };
    Ok(())
}

register_kernel!("ZooVariantRead" on "CPU": fn read);

register_op!(
    "ZooVariantClone",
    inputs = &["v: variant"],
    outputs = &["copy: variant"],
    shape = scalar,
    summary = "A copy of a variant, by its table.",
);

fn copy(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let v = element(c, 0)?;
    // SAFETY: the value belongs to the table, whose entries this plugin fills.
    give(c, |result| unsafe {
        (*v.table).clone.expect("filled above")(v.value, result, std::ptr::null_mut())
    })
}

register_kernel!("ZooVariantClone" on "CPU": fn copy);

register_op!(
    "ZooVariantZeros",
    inputs = &["v: variant"],
    outputs = &["zeros: variant"],
    shape = scalar,
    summary = "Zeros of a variant's form, by its table.",
);

fn zeros(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let v = element(c, 0)?;
    // SAFETY: as in `copy`.
    give(c, |result| unsafe {
        (*v.table).zeros_like.expect("filled above")(v.value, result, std::ptr::null_mut())
    })
}

register_kernel!("ZooVariantZeros" on "CPU": fn zeros);

register_op!(
    "ZooVariantAdd",
    inputs = &["a: variant", "b: variant"],
    outputs = &["sum: variant"],
    commutative = true,
    shape = scalar,
    summary = "The sum of two variants, by their table.",
);

fn sum(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (a, b) = (element(c, 0)?, element(c, 1)?);
    // SAFETY: as in `copy`.
    give(c, |result| unsafe {
        (*a.table).add.expect("filled above")(a.value, b.value, result, std::ptr::null_mut())
    })
}

register_kernel!("ZooVariantAdd" on "CPU": fn sum);

register_op!(
    "ZooVariantLive",
    outputs = &["count: int64"],
    stateful = true,
    shape = scalar,
    summary = "How many values of variants are alive.",
);

fn live(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.output::<i64>(0, &[])?.data[0] = LIVE.load(Ordering::Relaxed);
    Ok(())
}

register_kernel!("ZooVariantLive" on "CPU": fn live);
