//! NumPy's arrays: as tensors, and tensors as arrays.
//!
//! A C-contiguous array in native byte order whose memory is aligned as kernels expect becomes a tensor in the same memory,
//! which the tensor keeps alive. Others are copied. Arrays that are not plain (objects, texts, other byte orders) are first made
//! plain by `tenon._arrays`.

use crate::{
    dtypes::{numpy_descr, of_descr},
    fail::Fail,
    lend::{is_aligned, lend},
    tensor::PyTensor,
};
use numpy::npyffi::{
    NPY_ARRAY_ALIGNED, NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_WRITEABLE, PY_ARRAY_API, PyArray_Check,
    PyArrayObject, npy_intp,
};
use pyo3::{ffi, prelude::*, types::PyBytes};
use std::{
    ffi::{c_char, c_void},
    ptr::{self, NonNull},
    slice,
};
use tenon_framework::{
    DType, Shape, Tensor,
    abi::MAX_RANK,
    tensor::{TensorError, host_memory},
};

/// Copies of more bytes than this are made without Python's lock.
const LARGE: usize = 1 << 20;

/// A value that was converted, and whether its memory may be written through other views of it.
pub(crate) struct Converted {
    pub tensor: Tensor,
    pub writable: bool,
}

impl Converted {
    fn fresh(tensor: Tensor) -> Converted {
        Converted { tensor, writable: true }
    }
}

/// Whether a conversion copies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copying {
    /// Where the memory cannot be used.
    IfNeeded,
    /// In any case.
    Always,
    /// An error where the memory cannot be used.
    Never,
}

/// The plain parts of an array.
struct Plain {
    data: *mut c_char,
    dtype: DType,
    shape: Shape,
    writable: bool,
}

/// What an array is.
enum Found {
    Plain(Plain),
    /// Anything that `tenon._arrays.plain` makes plain.
    Other,
}

/// Whether an object is one of NumPy's arrays.
pub(crate) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is live, and this thread has Python's lock.
    unsafe { PyArray_Check(object.py(), object.as_ptr()) != 0 }
}

fn look(array: &Bound<'_, PyAny>) -> Result<Found, Fail> {
    // SAFETY: the caller has checked that this is an array; its fields are read under Python's lock.
    let fields = unsafe { &(*array.as_ptr().cast::<PyArrayObject>()).fields };
    // SAFETY: an array has a live descriptor.
    let (dtype, order) =
        unsafe { (of_descr(array.py(), fields.descr), (*fields.descr).fields.byteorder as u8) };
    let contiguous = fields.flags & NPY_ARRAY_C_CONTIGUOUS != 0;
    let foreign_order = match cfg!(target_endian = "little") {
        true => order == b'>',
        false => order == b'<',
    };
    let (Some(dtype), true, false) = (dtype, contiguous, foreign_order) else {
        return Ok(Found::Other);
    };
    let rank = fields.nd as usize;
    if rank > MAX_RANK {
        return Err(Fail::invalid(format!(
            "an array of {rank} dimensions: expected {MAX_RANK} at most"
        )));
    }
    let mut dims = [0i64; MAX_RANK];
    for (at, dim) in dims[..rank].iter_mut().enumerate() {
        // SAFETY: an array of `nd` dimensions has as many sizes.
        *dim = unsafe { *fields.dimensions.add(at) } as i64;
    }
    let shape = Shape::new(&dims[..rank])?;
    let writable = fields.flags & NPY_ARRAY_WRITEABLE != 0;
    Ok(Found::Plain(Plain { data: fields.data, dtype, shape, writable }))
}

/// A tensor of an array.
///
/// # Errors
/// The array has elements without a type here, or needs a copy that is not allowed.
pub(crate) fn from_array(
    array: &Bound<'_, PyAny>,
    dtype: Option<DType>,
    copying: Copying,
) -> Result<Converted, Fail> {
    match look(array)? {
        Found::Plain(plain) if dtype.is_none_or(|dtype| same_bits(dtype, plain.dtype)) => {
            let dtype = dtype.unwrap_or(plain.dtype);
            from_plain(array, Plain { dtype, ..plain }, copying)
        }
        _ if copying == Copying::Never => Err(Fail::invalid(
            "the array needs a copy, since its element type, byte order or layout is another one: expected copy=None, or \
             a C-contiguous array in native byte order",
        )),
        _ => from_other(array, dtype),
    }
}

/// Whether elements of one type are elements of the other, as integers are of quantised types.
fn same_bits(to: DType, from: DType) -> bool {
    let plain = match to {
        DType::QINT8 => DType::INT8,
        DType::QUINT8 => DType::UINT8,
        DType::QINT16 => DType::INT16,
        DType::QUINT16 => DType::UINT16,
        DType::QINT32 => DType::INT32,
        other => other,
    };
    plain == from || to == from
}

fn from_plain(array: &Bound<'_, PyAny>, plain: Plain, copying: Copying) -> Result<Converted, Fail> {
    let Plain { data, dtype, shape, writable } = plain;
    if dtype.is_reserved() {
        return Err(TensorError::Unsupported { dtype }.into());
    }
    let aligned = is_aligned(data.cast()) && shape.elements() > 0;
    if let (true, true, Some(data)) =
        (aligned, copying != Copying::Always, NonNull::new(data.cast::<c_void>()))
    {
        // SAFETY: the array is C-contiguous and has this shape and type; it keeps its memory while it is referred to, since
        // NumPy does not resize arrays that are.
        let tensor = unsafe { lend(data, dtype, shape, array.clone().unbind()) }?;
        return Ok(Converted { tensor, writable });
    }
    if copying == Copying::Never && shape.elements() > 0 {
        return Err(Fail::invalid(format!(
            "the array's memory is not aligned to 64 bytes and needs a copy (address {data:p}): expected copy=None, or an \
             array that tenon.empty made"
        )));
    }
    copied(array.py(), data.cast(), dtype, shape).map(Converted::fresh)
}

/// A tensor with a copy of contiguous elements.
pub(crate) fn copied(
    py: Python<'_>,
    data: *const u8,
    dtype: DType,
    shape: Shape,
) -> Result<Tensor, Fail> {
    let tensor = Tensor::allocate(host_memory(), dtype, shape)?;
    let (from, to, bytes) = (data as usize, tensor.buffer().data() as usize, tensor.byte_len());
    // SAFETY: `from` has as many elements, which their owner keeps; `to` is fresh memory for them.
    let copy = move || unsafe {
        ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes);
    };
    match bytes {
        0 => {}
        bytes if bytes > LARGE => py.detach(copy),
        _ => copy(),
    }
    tensor.validate()?;
    Ok(tensor)
}

/// A tensor of anything that `tenon._arrays.plain` makes a plain array, or a list of strings.
///
/// # Errors
/// The object has no elements of a type that tensors have.
pub(crate) fn from_other(
    object: &Bound<'_, PyAny>,
    dtype: Option<DType>,
) -> Result<Converted, Fail> {
    let py = object.py();
    let number = dtype.map(|dtype| dtype.0);
    let made = py.import("tenon._arrays")?.getattr("plain")?.call1((object, number))?;
    if is_array(&made) {
        let Found::Plain(plain) = look(&made)? else {
            return Err(Fail::wrong_type(format!(
                "an array of {}: expected elements of a number, a bool or a string",
                made.getattr("dtype")?
            )));
        };
        let dtype = dtype.unwrap_or(plain.dtype);
        // NumPy made the array for this call, unless it is the object itself.
        let copying = Copying::IfNeeded;
        return from_plain(&made, Plain { dtype, ..plain }, copying);
    }
    let (dims, values): (Vec<i64>, Vec<Bound<'_, PyBytes>>) = made.extract()?;
    let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    Ok(Converted::fresh(Tensor::from_strings(&dims, &values)?))
}

/// An array in the memory of a tensor, which it keeps alive; strings are copied to an array of objects.
///
/// # Errors
/// The tensor is on a device, or has elements that Python does not have.
pub(crate) fn to_array<'py>(tensor: &Bound<'py, PyTensor>) -> Result<Bound<'py, PyAny>, Fail> {
    let py = tensor.py();
    let own = tensor.get();
    let (value, dims) = (&own.tensor, own.tensor.shape().dims());
    match value.dtype().base() {
        DType::STRING => {
            let values = value.as_strings()?;
            let values: Vec<_> = values.iter().map(|value| PyBytes::new(py, value)).collect();
            let make = py.import("tenon._arrays")?.getattr("strings")?;
            return Ok(make.call1((dims.to_vec(), values))?);
        }
        dtype @ (DType::RESOURCE | DType::VARIANT) => {
            return Err(Fail::wrong_type(format!(
                "a tensor of {dtype} has no elements in Python: fetch what reads it"
            )));
        }
        _ if !value.is_on_host() => return Err(TensorError::NotOnHost.into()),
        _ => {}
    }
    let descr = numpy_descr(py, value.dtype())?;
    let mut sizes = [0 as npy_intp; MAX_RANK];
    for (size, dim) in sizes.iter_mut().zip(dims) {
        *size = *dim as npy_intp;
    }
    let mut flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
    if own.is_writable() {
        flags |= NPY_ARRAY_WRITEABLE;
    }
    // SAFETY: the descriptor is a new reference, which the call takes; the sizes are those of the tensor's memory, which the
    // base keeps alive. A reference to the tensor goes to the array.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            numpy::npyffi::get_type_object(py, numpy::npyffi::NpyTypes::PyArray_Type),
            descr,
            dims.len() as i32,
            sizes.as_mut_ptr(),
            ptr::null_mut(),
            value.buffer().data(),
            flags,
            ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        let base = tensor.clone().into_any().into_ptr();
        if PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), base) != 0 {
            return Err(PyErr::fetch(py).into());
        }
        Ok(array)
    }
}

/// Copies a value into an array of the caller.
///
/// # Errors
/// The array has another type or shape, or is read-only.
pub(crate) fn copy_into(value: &Tensor, array: &Bound<'_, PyAny>, what: &str) -> Result<(), Fail> {
    if !is_array(array) {
        return Err(Fail::wrong_type(format!(
            "{what}: expected an array of NumPy's, found {}",
            array.get_type().name()?
        )));
    }
    let found = match look(array)? {
        Found::Plain(plain) if plain.writable => plain,
        Found::Plain(_) => return Err(Fail::invalid(format!("{what}: the array is read-only"))),
        Found::Other => {
            return Err(Fail::invalid(format!(
                "{what}: expected a C-contiguous array of numbers in native byte order"
            )));
        }
    };
    if found.dtype != value.dtype() || found.shape.dims() != value.shape().dims() {
        return Err(Fail::invalid(format!(
            "{what}: expected an array of {} {}, found one of {} {}",
            value.dtype(),
            value.shape(),
            found.dtype,
            found.shape
        )));
    }
    let from = value.as_bytes()?;
    if from.as_ptr() == found.data.cast() {
        return Ok(());
    }
    // SAFETY: the array is contiguous, writable and as long; this thread has Python's lock, which keeps NumPy's code from
    // changing it. The memory may overlap where the value is a view of the array.
    unsafe { ptr::copy(from.as_ptr(), found.data.cast::<u8>(), from.len()) };
    Ok(())
}

/// The bytes of a C-contiguous array.
///
/// # Errors
/// The object is not such an array.
pub(crate) fn bytes_of<'a>(array: &'a Bound<'_, PyAny>) -> Result<&'a [u8], Fail> {
    match is_array(array).then(|| look(array)).transpose()? {
        Some(Found::Plain(plain)) if plain.shape.elements() > 0 => {
            let size = plain.dtype.size().unwrap_or(0);
            // SAFETY: the array is contiguous and has as many elements; the borrow keeps it alive.
            let bytes = unsafe {
                slice::from_raw_parts(plain.data.cast::<u8>(), plain.shape.elements() * size)
            };
            Ok(bytes)
        }
        Some(Found::Plain(_)) => Ok(&[]),
        _ => Err(Fail::wrong_type("expected a C-contiguous array of bytes")),
    }
}

/// A tensor of these bytes, in the memory of the array where it is aligned.
///
/// # Errors
/// The number of bytes is not that of the shape.
pub(crate) fn from_bytes(
    array: &Bound<'_, PyAny>,
    dtype: DType,
    dims: &[i64],
) -> Result<Converted, Fail> {
    let bytes = bytes_of(array)?;
    let shape = Shape::new(dims)?;
    let expected = shape.elements().checked_mul(dtype.size().unwrap_or(0));
    let lends = is_aligned(bytes.as_ptr().cast()) && expected == Some(bytes.len());
    let data = NonNull::new(bytes.as_ptr().cast_mut().cast::<c_void>());
    if let (true, false, Some(data)) = (lends && !bytes.is_empty(), dtype.needs_drop(), data) {
        if dtype.is_reserved() {
            return Err(TensorError::Unsupported { dtype }.into());
        }
        // SAFETY: the array has as many bytes, and keeps them while it is referred to.
        let tensor = unsafe { lend(data, dtype, shape, array.clone().unbind()) }?;
        // SAFETY: the object is an array.
        let flags = unsafe { (*array.as_ptr().cast::<PyArrayObject>()).fields.flags };
        return Ok(Converted { tensor, writable: flags & NPY_ARRAY_WRITEABLE != 0 });
    }
    Ok(Converted::fresh(Tensor::from_bytes(dtype, dims, bytes)?))
}

/// A name for the type of an object, for messages.
pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    // SAFETY: the object is live and has a type; the borrow ends here.
    let of = unsafe { Bound::from_borrowed_ptr(object.py(), ffi::Py_TYPE(object.as_ptr()).cast()) };
    of.getattr("__name__").and_then(|name| name.extract()).unwrap_or_else(|_| "object".to_owned())
}
