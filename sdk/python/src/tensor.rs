//! `tenon.Tensor`: a value in host memory.

use crate::{
    arrays::{
        Converted, Copying, copied, from_array, from_bytes, from_other, is_array, to_array,
        type_name,
    },
    dlpack,
    dtypes::{DTypeArg, buffer_format, dtype_object},
    fail::Fail,
};
use pyo3::{
    exceptions::PyBufferError,
    ffi,
    prelude::*,
    types::{PyBytes, PyTuple},
};
use std::{
    ffi::{c_int, c_void},
    ptr,
};
use tenon_framework::{DType, Shape, Tensor, tensor::host_memory};

/// A value: elements of one type, dense and in row-major order, in host memory.
///
/// Tensor(value, dtype=None, *, copy=None) takes an array of NumPy, an object with `__dlpack__` or the buffer protocol, a number, a
/// string, or nested lists of these. The memory of the object is used where its layout allows it, and the object is kept alive;
/// `copy=True` copies in any case, and with `copy=False` a copy that is needed is an error.
#[pyclass(frozen, name = "Tensor", module = "tenon", weakref)]
pub(crate) struct PyTensor {
    pub(crate) tensor: Tensor,
    /// Whether whoever else sees the memory allows it to be written.
    writable: bool,
}

impl PyTensor {
    /// A value of a step. It is read-only if a feed has the same memory.
    pub fn of_step(tensor: Tensor, writable: bool) -> PyTensor {
        PyTensor { tensor, writable }
    }

    /// Whether Python may write the elements: no other tensor has them.
    pub fn is_writable(&self) -> bool {
        self.writable && self.tensor.buffer().is_unique()
    }

    fn of(converted: Converted) -> PyTensor {
        PyTensor { tensor: converted.tensor, writable: converted.writable }
    }
}

/// A tensor of any object.
///
/// # Errors
/// The object has no elements of a type that tensors have.
pub(crate) fn convert(
    object: &Bound<'_, PyAny>,
    dtype: Option<DType>,
    copying: Copying,
) -> Result<Converted, Fail> {
    if is_array(object) {
        return from_array(object, dtype, copying);
    }
    if let Ok(own) = object.cast::<PyTensor>() {
        let own = own.get();
        let fits = dtype.is_none_or(|dtype| dtype == own.tensor.dtype());
        if fits && copying != Copying::Always {
            return Ok(Converted { tensor: own.tensor.clone(), writable: own.writable });
        }
        let array = to_array(object.cast::<PyTensor>().map_err(PyErr::from)?)?;
        return from_array(&array, dtype, copying);
    }
    if object.hasattr("__dlpack__")? {
        let found = dlpack::import(object, copying)?;
        return match dtype {
            Some(dtype) if dtype != found.tensor.dtype() => {
                let found = Bound::new(object.py(), PyTensor::of(found))?;
                from_array(&to_array(&found)?, Some(dtype), copying)
            }
            _ => Ok(found),
        };
    }
    let has_memory = object.hasattr("__array_interface__")? || object.hasattr("__array__")?;
    // SAFETY: the object is live, and this thread has Python's lock.
    let is_buffer = unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0;
    if copying == Copying::Never && !has_memory && !is_buffer {
        return Err(Fail::invalid(format!(
            "a value of type {} needs a copy: expected copy=None, or an object with the buffer protocol",
            type_name(object)
        )));
    }
    from_other(object, dtype)
}

fn copying(copy: Option<bool>) -> Copying {
    match copy {
        None => Copying::IfNeeded,
        Some(true) => Copying::Always,
        Some(false) => Copying::Never,
    }
}

#[pymethods]
impl PyTensor {
    #[new]
    #[pyo3(signature = (value, dtype=None, *, copy=None))]
    fn new(
        value: &Bound<'_, PyAny>,
        dtype: Option<DTypeArg>,
        copy: Option<bool>,
    ) -> Result<PyTensor, Fail> {
        convert(value, dtype.map(|dtype| dtype.0), copying(copy)).map(PyTensor::of)
    }

    /// The element type.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype_object(py, self.tensor.dtype())
    }

    /// The sizes of the dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor.shape().dims())
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.tensor.shape().rank()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.tensor.elements()
    }

    /// The number of bytes of the elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.tensor.byte_len()
    }

    /// Whether arrays of this memory are writable: nothing else has it, and it did not come from a read-only object.
    #[getter]
    fn writable(&self) -> bool {
        self.is_writable()
    }

    /// The elements as an array of NumPy in the same memory. The array is read-only unless the tensor is `writable`. Strings
    /// become an array of `bytes` objects.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>, Fail> {
        to_array(slf)
    }

    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>, Fail> {
        let array = to_array(slf)?;
        let convert = slf.py().import("tenon._arrays")?.getattr("as_asked")?;
        Ok(convert.call1((array, dtype, copy))?)
    }

    /// The elements as Python numbers or `bytes`, in nested lists.
    fn tolist<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>, Fail> {
        Ok(to_array(slf)?.call_method0("tolist")?)
    }

    /// The only element, as a number or `bytes`.
    fn item<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>, Fail> {
        Ok(to_array(slf)?.call_method0("item")?)
    }

    /// The elements as bytes, in native order.
    fn tobytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Fail> {
        Ok(PyBytes::new(py, self.tensor.as_bytes()?))
    }

    /// A tensor with a copy of the elements.
    fn copy(&self, py: Python<'_>) -> Result<PyTensor, Fail> {
        if self.tensor.dtype() == DType::STRING {
            let values = self.tensor.as_strings()?;
            let tensor = Tensor::from_strings(self.tensor.shape().dims(), &values)?;
            return Ok(PyTensor { tensor, writable: true });
        }
        let bytes = self.tensor.as_bytes()?;
        let tensor = copied(py, bytes.as_ptr(), self.tensor.dtype(), *self.tensor.shape())?;
        Ok(PyTensor { tensor, writable: true })
    }

    fn __copy__(&self) -> PyTensor {
        PyTensor { tensor: self.tensor.clone(), writable: self.writable }
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> Result<PyTensor, Fail> {
        self.copy(py)
    }

    fn __len__(&self) -> Result<usize, Fail> {
        let first = self.tensor.shape().dims().first();
        first.map(|&dim| dim as usize).ok_or_else(|| Fail::wrong_type("a scalar has no length"))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> Result<String, Fail> {
        let describe = slf.py().import("tenon._arrays")?.getattr("describe")?;
        Ok(describe.call1((slf,))?.extract()?)
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> Result<String, Fail> {
        let describe = slf.py().import("tenon._arrays")?.getattr("describe_html")?;
        Ok(describe.call1((slf,))?.extract()?)
    }

    fn __reduce_ex__<'py>(
        slf: &Bound<'py, Self>,
        protocol: i32,
    ) -> Result<Bound<'py, PyAny>, Fail> {
        Ok(slf.py().import("tenon._arrays")?.getattr("reduce")?.call1((slf, protocol))?)
    }

    /// The memory as a capsule of DLPack, as its protocol asks.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>, Fail> {
        if stream.is_some() {
            return Err(PyBufferError::new_err(
                "a tensor in host memory has no stream: expected stream=None",
            )
            .into());
        }
        if let Some(device) = dl_device.filter(|device| *device != dlpack::HOST) {
            return Err(PyBufferError::new_err(format!(
                "the tensor is in host memory, {:?}, and cannot be exported to device {device:?}",
                dlpack::HOST
            ))
            .into());
        }
        let copies = copy == Some(true);
        let own = match copies {
            true => Bound::new(slf.py(), slf.get().copy(slf.py())?)?,
            false => slf.clone(),
        };
        dlpack::export(&own, max_version, copies)
    }

    /// The device of the memory in DLPack's numbers: the host.
    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack::HOST
    }

    /// # Safety
    /// Python calls this with a view to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> Result<(), Fail> {
        // SAFETY: Python gives a view to fill, or null.
        unsafe { fill(slf, view, flags) }
    }

    /// # Safety
    /// Python calls this once with a view that `__getbuffer__` filled.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `internal` is the box that `fill` made, and Python releases a view once.
        unsafe { drop(Box::from_raw((*view).internal.cast::<Sizes>())) };
    }
}

/// What a view of the buffer protocol points to.
struct Sizes {
    shape: Vec<ffi::Py_ssize_t>,
    strides: Vec<ffi::Py_ssize_t>,
}

/// Fills a view of the buffer protocol.
///
/// # Safety
/// `view` is null or may be written.
unsafe fn fill(
    slf: Bound<'_, PyTensor>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> Result<(), Fail> {
    let refused = |message: String| Fail::Python(PyBufferError::new_err(message));
    if view.is_null() {
        return Err(refused("there is no view to fill".to_owned()));
    }
    // SAFETY: the caller may write the view.
    unsafe { (*view).obj = ptr::null_mut() };
    let own = slf.get();
    let dtype = own.tensor.dtype();
    let (Some(format), Some(size), true) =
        (buffer_format(dtype), dtype.size(), own.tensor.is_on_host())
    else {
        return Err(refused(format!(
            "elements of {dtype} have no format in the buffer protocol: use numpy() or __dlpack__"
        )));
    };
    let writable = own.is_writable();
    if flags & ffi::PyBUF_WRITABLE != 0 && !writable {
        return Err(refused("the tensor is read-only: copy it to write".to_owned()));
    }
    let dims = own.tensor.shape().dims();
    let shape: Vec<ffi::Py_ssize_t> = dims.iter().map(|&dim| dim as ffi::Py_ssize_t).collect();
    let mut strides = vec![size as ffi::Py_ssize_t; dims.len()];
    for at in (1..dims.len()).rev() {
        strides[at - 1] = strides[at] * shape[at].max(1);
    }
    let (buf, len) = (own.tensor.buffer().data(), own.tensor.byte_len() as ffi::Py_ssize_t);
    let rank = dims.len() as c_int;
    let mut sizes = Box::new(Sizes { shape, strides });
    let asked = |flag: c_int| flags & flag == flag;
    // SAFETY: the caller may write the view. What it points to is in the box, which `__releasebuffer__` frees, and in the
    // tensor, a reference to which goes to the view.
    unsafe {
        (*view).buf = buf;
        (*view).len = len;
        (*view).readonly = c_int::from(!writable);
        (*view).itemsize = size as ffi::Py_ssize_t;
        (*view).format =
            if asked(ffi::PyBUF_FORMAT) { format.as_ptr().cast_mut() } else { ptr::null_mut() };
        (*view).ndim = rank;
        (*view).shape =
            if asked(ffi::PyBUF_ND) { sizes.shape.as_mut_ptr() } else { ptr::null_mut() };
        (*view).strides =
            if asked(ffi::PyBUF_STRIDES) { sizes.strides.as_mut_ptr() } else { ptr::null_mut() };
        (*view).suboffsets = ptr::null_mut();
        (*view).internal = Box::into_raw(sizes).cast::<c_void>();
        (*view).obj = slf.into_any().into_ptr();
    }
    Ok(())
}

/// A tensor of the object behind DLPack's protocol, or of a capsule.
#[pyfunction]
#[pyo3(signature = (value, *, copy=None))]
pub(crate) fn from_dlpack(value: &Bound<'_, PyAny>, copy: Option<bool>) -> Result<PyTensor, Fail> {
    dlpack::import(value, copying(copy)).map(PyTensor::of)
}

/// An array of undefined contents in memory that kernels read and write without a copy.
#[pyfunction]
pub(crate) fn empty<'py>(
    py: Python<'py>,
    dims: Vec<i64>,
    dtype: DTypeArg,
) -> Result<Bound<'py, PyAny>, Fail> {
    let tensor = Tensor::allocate(host_memory(), dtype.0, Shape::new(&dims)?)?;
    if dtype.0 == DType::BOOL {
        // SAFETY: fresh memory of as many bytes; a bool is 0 or 1.
        unsafe { tensor.buffer().data().cast::<u8>().write_bytes(0, tensor.byte_len()) };
    }
    to_array(&Bound::new(py, PyTensor { tensor, writable: true })?)
}

/// A tensor of the bytes of an array.
#[pyfunction]
pub(crate) fn tensor_from_bytes(
    array: &Bound<'_, PyAny>,
    dtype: DTypeArg,
    dims: Vec<i64>,
) -> Result<PyTensor, Fail> {
    from_bytes(array, dtype.0, &dims).map(PyTensor::of)
}

/// The elements of a tensor as an array of bytes in the same memory.
#[pyfunction]
pub(crate) fn tensor_bytes<'py>(tensor: &Bound<'py, PyTensor>) -> Result<Bound<'py, PyAny>, Fail> {
    let own = tensor.get();
    let bytes = own.tensor.as_bytes()?.len() as i64;
    // SAFETY: every byte of initialised elements is an element of uint8, and there are as many.
    let flat = unsafe {
        Tensor::from_parts(own.tensor.buffer().clone(), DType::UINT8, Shape::new(&[bytes])?)
    }?;
    to_array(&Bound::new(tensor.py(), PyTensor { tensor: flat, writable: false })?)
}
