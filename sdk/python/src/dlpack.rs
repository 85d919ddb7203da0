//! DLPack: memory that is shared with other libraries.
//!
//! An exported tensor is kept alive by the capsule's manager, which its consumer ends. An imported capsule is consumed at once, and
//! its manager is ended under Python's lock when the last tensor with its memory is gone, since managers of Python libraries
//! need the lock.

use crate::{
    arrays::{Converted, Copying, copied, type_name},
    dtypes::{of_dlpack, to_dlpack},
    fail::Fail,
    lend::{is_aligned, lend},
    tensor::PyTensor,
};
use pyo3::{exceptions::PyBufferError, ffi, prelude::*, types::PyDict};
use std::{
    ffi::{CStr, c_void},
    ptr::{self, NonNull},
    slice,
};
use tenon_framework::{Code, DType, Shape, Tensor, abi::MAX_RANK, tensor::host_memory};

/// DLPack's number of host memory, with that of the device.
pub(crate) const HOST: (i32, i32) = (1, 0);
/// Host memory that a GPU reads directly.
const PINNED: i32 = 3;
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;
/// The version that is written.
const VERSION: (u32, u32) = (1, 0);

const VERSIONED: &CStr = c"dltensor_versioned";
const PLAIN: &CStr = c"dltensor";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
const USED_PLAIN: &CStr = c"used_dltensor";
/// A capsule that ends a manager when it is dropped.
const OWNER: &CStr = c"tenon_dlpack_owner";

/// `DLTensor`.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: (i32, i32),
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct ManagedVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// What an exported tensor points to.
struct Exported {
    _tensor: Tensor,
    sizes: Vec<i64>,
    strides: Vec<i64>,
}

unsafe extern "C" fn delete_plain(managed: *mut Managed) {
    // SAFETY: a consumer calls this once with what `export` made.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: the context is the box that `export` made for it.
    drop(unsafe { Box::from_raw(managed.context.cast::<Exported>()) });
}

unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as in `delete_plain`.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: as in `delete_plain`.
    drop(unsafe { Box::from_raw(managed.context.cast::<Exported>()) });
}

/// Ends what nobody consumed.
unsafe extern "C" fn drop_plain(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with a live capsule; one that was consumed has another name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, PLAIN.as_ptr()) != 0 {
            delete_plain(ffi::PyCapsule_GetPointer(capsule, PLAIN.as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as in `drop_plain`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

fn refused(message: impl Into<String>) -> Fail {
    Fail::Python(PyBufferError::new_err(message.into()))
}

/// A capsule with the memory of a tensor.
///
/// # Errors
/// The elements have no type in DLPack; the tensor is read-only, which a consumer of the first version does not understand.
pub(crate) fn export<'py>(
    tensor: &Bound<'py, PyTensor>,
    max_version: Option<(u32, u32)>,
    copied: bool,
) -> Result<Bound<'py, PyAny>, Fail> {
    let (py, own) = (tensor.py(), tensor.get());
    let value = &own.tensor;
    let Some((code, bits)) = to_dlpack(value.dtype()) else {
        return Err(refused(format!("elements of {} have no type in DLPack", value.dtype())));
    };
    let versioned = max_version.is_some_and(|(major, _)| major >= 1);
    let writable = own.is_writable();
    if !versioned && !writable {
        return Err(refused(
            "the tensor is read-only, which only DLPack 1.0 and later can say: ask with max_version=(1, 0), or export a \
             copy (copy=True)",
        ));
    }
    let sizes = value.shape().dims().to_vec();
    let mut strides = vec![1i64; sizes.len()];
    for at in (1..sizes.len()).rev() {
        strides[at - 1] = strides[at] * sizes[at].max(1);
    }
    let mut exported = Box::new(Exported { _tensor: value.clone(), sizes, strides });
    let shown = DlTensor {
        data: value.buffer().data(),
        device: HOST,
        ndim: exported.sizes.len() as i32,
        code,
        bits,
        lanes: 1,
        shape: exported.sizes.as_mut_ptr(),
        strides: exported.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let context = Box::into_raw(exported).cast::<c_void>();
    let (pointer, name, destructor): (*mut c_void, _, ffi::PyCapsule_Destructor) = if versioned {
        let flags = if writable { 0 } else { READ_ONLY } | if copied { IS_COPIED } else { 0 };
        let managed = ManagedVersioned {
            major: VERSION.0,
            minor: VERSION.1,
            context,
            deleter: Some(delete_versioned),
            flags,
            tensor: shown,
        };
        (Box::into_raw(Box::new(managed)).cast(), VERSIONED, drop_versioned)
    } else {
        let managed = Managed { tensor: shown, context, deleter: Some(delete_plain) };
        (Box::into_raw(Box::new(managed)).cast(), PLAIN, drop_plain)
    };
    // SAFETY: the pointer is not null, the name is a constant, and the destructor knows what the pointer is.
    let capsule = unsafe { ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destructor)) };
    // SAFETY: a new reference, or null with an exception.
    Ok(unsafe { Bound::from_owned_ptr_or_err(py, capsule) }?)
}

/// Ends the manager of an imported capsule.
unsafe extern "C" fn drop_owner(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this once, with a capsule that `consume` made; its context says which kind of manager it has.
    unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule, OWNER.as_ptr());
        let versioned = !ffi::PyCapsule_GetContext(capsule).is_null();
        if pointer.is_null() {
            ffi::PyErr_Clear();
        } else if versioned {
            let managed = pointer.cast::<ManagedVersioned>();
            if let Some(delete) = (*managed).deleter {
                delete(managed);
            }
        } else if let Some(delete) = (*pointer.cast::<Managed>()).deleter {
            delete(pointer.cast());
        }
    }
}

/// A tensor of an object with `__dlpack__`, or of a capsule.
///
/// # Errors
/// The memory is on a device, the elements have no type here, the capsule was consumed before, or a copy is needed that is not
/// allowed.
pub(crate) fn import(object: &Bound<'_, PyAny>, copying: Copying) -> Result<Converted, Fail> {
    let capsule = capsule_of(object)?;
    let (owner, shown, flags) = consume(&capsule)?;
    // SAFETY: the owner keeps the manager, and so what it points to.
    let shown = unsafe { &*shown };
    let (dtype, shape) = described(shown)?;
    let writable = flags & READ_ONLY == 0;
    let offset = usize::try_from(shown.byte_offset)
        .map_err(|_| Fail::invalid("the offset of the capsule's memory is too large"))?;
    let data = shown.data.cast::<u8>().wrapping_add(offset);
    if shape.elements() == 0 {
        return Ok(Converted {
            tensor: Tensor::allocate(host_memory(), dtype, shape)?,
            writable: true,
        });
    }
    if shown.data.is_null() {
        return Err(Fail::invalid("the capsule has elements, and no memory"));
    }
    let strides = strides_of(shown, &shape)?;
    if is_dense(&shape, &strides) {
        if let (true, true, Some(data)) = (
            is_aligned(data.cast()),
            copying != Copying::Always,
            NonNull::new(data.cast::<c_void>()),
        ) {
            // SAFETY: the producer says that the memory has this type and shape, and keeps it until its manager ends.
            let tensor = unsafe { lend(data, dtype, shape, owner.unbind()) }?;
            return Ok(Converted { tensor, writable });
        }
        if copying != Copying::Never {
            let tensor = copied(object.py(), data, dtype, shape)?;
            return Ok(Converted { tensor, writable: true });
        }
    } else if copying != Copying::Never {
        // SAFETY: the producer says that the memory has elements at these places.
        let tensor = unsafe { gathered(data, dtype, shape, &strides) }?;
        return Ok(Converted { tensor, writable: true });
    }
    Err(Fail::invalid(
        "the memory is not dense, or not aligned to 64 bytes, and needs a copy: expected copy=None",
    ))
}

fn capsule_of<'py>(object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Fail> {
    // SAFETY: the object is live, and this thread has Python's lock.
    if unsafe { ffi::PyCapsule_CheckExact(object.as_ptr()) } != 0 {
        return Ok(object.clone());
    }
    if !object.hasattr("__dlpack__")? || !object.hasattr("__dlpack_device__")? {
        return Err(Fail::wrong_type(format!(
            "expected an object with __dlpack__ and __dlpack_device__, or a capsule, found {}",
            type_name(object)
        )));
    }
    let (kind, _): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
    if kind != HOST.0 && kind != PINNED {
        return Err(Fail::new(
            Code::UNIMPLEMENTED,
            format!("the memory is on a device (DLPack's type {kind}): copy it to the host first"),
        ));
    }
    let asked = PyDict::new(object.py());
    asked.set_item("max_version", VERSION)?;
    match object.call_method("__dlpack__", (), Some(&asked)) {
        // A producer of the first version of the protocol has no such argument.
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyTypeError>(object.py()) => {
            Ok(object.call_method0("__dlpack__")?)
        }
        made => Ok(made?),
    }
}

/// Takes the manager out of a capsule: an object that ends it, what it shows, and its flags.
fn consume<'py>(
    capsule: &Bound<'py, PyAny>,
) -> Result<(Bound<'py, PyAny>, *const DlTensor, u64), Fail> {
    let py = capsule.py();
    let is = |name: &CStr| {
        // SAFETY: the object is live; the function accepts any object.
        unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) != 0 }
    };
    let versioned = is(VERSIONED);
    let (name, used) = match versioned {
        true => (VERSIONED, USED_VERSIONED),
        false => (PLAIN, USED_PLAIN),
    };
    if !is(name) {
        let why = match is(USED_PLAIN) || is(USED_VERSIONED) {
            true => "it was consumed before: a capsule of DLPack serves one consumer",
            false => "it is no capsule of DLPack, or has no memory",
        };
        return Err(Fail::invalid(format!(
            "expected a capsule named 'dltensor' or 'dltensor_versioned': {why}"
        )));
    }
    // SAFETY: the capsule has this name, so that its pointer is the manager that the name says. It is consumed by its new name;
    // the new capsule then ends the manager.
    unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr());
        let (shown, flags) = match versioned {
            false => (&raw const (*pointer.cast::<Managed>()).tensor, 0),
            true => {
                let managed = pointer.cast::<ManagedVersioned>();
                if (*managed).major > VERSION.0 {
                    return Err(refused(format!(
                        "the capsule is of DLPack {}.{}: expected version 1 at most",
                        (*managed).major,
                        (*managed).minor
                    )));
                }
                (&raw const (*managed).tensor, (*managed).flags)
            }
        };
        let owner = ffi::PyCapsule_New(pointer, OWNER.as_ptr(), Some(drop_owner));
        let owner = Bound::from_owned_ptr_or_err(py, owner)?;
        let mark = if versioned { pointer } else { ptr::null_mut() };
        let named = ffi::PyCapsule_SetContext(owner.as_ptr(), mark) == 0
            && ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) == 0;
        match named {
            true => Ok((owner, shown, flags)),
            // The capsule still ends its manager itself.
            false => {
                std::mem::forget(owner);
                Err(PyErr::fetch(py).into())
            }
        }
    }
}

/// The type and the shape that a producer says.
fn described(shown: &DlTensor) -> Result<(DType, Shape), Fail> {
    let (kind, _) = shown.device;
    if kind != HOST.0 && kind != PINNED {
        return Err(Fail::new(
            Code::UNIMPLEMENTED,
            format!("the memory is on a device (DLPack's type {kind}): copy it to the host first"),
        ));
    }
    let (code, bits, lanes) = (shown.code, shown.bits, shown.lanes);
    let dtype = of_dlpack(code, bits).filter(|_| lanes == 1).ok_or_else(|| {
        Fail::new(
            Code::UNIMPLEMENTED,
            format!("elements of DLPack's type (code {code}, {bits} bits, {lanes} lanes) are not supported"),
        )
    })?;
    let rank = usize::try_from(shown.ndim).ok().filter(|&rank| rank <= MAX_RANK);
    let rank = rank.ok_or_else(|| {
        Fail::invalid(format!("{} dimensions: expected {MAX_RANK} at most", shown.ndim))
    })?;
    let dims = match (rank, shown.shape.is_null()) {
        (0, _) => &[][..],
        (_, true) => return Err(Fail::invalid("the capsule has dimensions, and no sizes")),
        // SAFETY: the producer gives as many sizes as dimensions.
        (rank, false) => unsafe { slice::from_raw_parts(shown.shape, rank) },
    };
    Ok((dtype, Shape::new(dims)?))
}

/// The strides in elements; those of a dense tensor where the producer gives none.
fn strides_of(shown: &DlTensor, shape: &Shape) -> Result<Vec<i64>, Fail> {
    let rank = shape.rank();
    if !shown.strides.is_null() && rank > 0 {
        // SAFETY: the producer gives as many strides as dimensions.
        return Ok(unsafe { slice::from_raw_parts(shown.strides, rank) }.to_vec());
    }
    let mut strides = vec![1i64; rank];
    for at in (1..rank).rev() {
        let step = strides[at].checked_mul(shape.dims()[at].max(1));
        strides[at - 1] = step.ok_or_else(|| Fail::invalid("the sizes of the capsule overflow"))?;
    }
    Ok(strides)
}

fn is_dense(shape: &Shape, strides: &[i64]) -> bool {
    let mut expected = 1i64;
    shape.dims().iter().zip(strides).rev().all(|(&dim, &stride)| {
        let fits = dim == 1 || stride == expected;
        expected = expected.saturating_mul(dim);
        fits
    })
}

/// A dense copy of elements that are not.
///
/// # Safety
/// `data` has an element at every place that the shape and the strides name.
unsafe fn gathered(
    data: *const u8,
    dtype: DType,
    shape: Shape,
    strides: &[i64],
) -> Result<Tensor, Fail> {
    let tensor = Tensor::allocate(host_memory(), dtype, shape)?;
    let size = dtype.size().unwrap_or(1);
    let to = tensor.buffer().data().cast::<u8>();
    let dims = shape.dims();
    let mut at = vec![0i64; dims.len()];
    for element in 0..shape.elements() {
        let place: i64 = at.iter().zip(strides).map(|(at, stride)| at * stride).sum();
        // SAFETY: the caller says that there is an element at this place; `to` has room for all of them.
        unsafe {
            let from = data.offset(place as isize * size as isize);
            ptr::copy_nonoverlapping(from, to.add(element * size), size);
        }
        for axis in (0..dims.len()).rev() {
            at[axis] += 1;
            if at[axis] < dims[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
    tensor.validate()?;
    Ok(tensor)
}
