//! Element types: Tenon's numbers, NumPy's and DLPack's.

use crate::fail::Fail;
use numpy::npyffi::{NPY_TYPES, PY_ARRAY_API, PyArray_Descr};
use pyo3::{ffi, prelude::*, sync::PyOnceLock, types::PyString};
use std::ffi::c_int;
use tenon_framework::DType;

/// An element type as an argument: a name, a number, or whatever `tenon.dtypes.as_dtype` understands.
pub(crate) struct DTypeArg(pub DType);

impl<'py> FromPyObject<'_, 'py> for DTypeArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<DTypeArg> {
        let named = object.cast::<PyString>().ok();
        let named = named.and_then(|name| DType::from_name(&name.to_string_lossy()));
        if let Some(dtype) = named {
            return Ok(DTypeArg(dtype));
        }
        let number = match object.extract::<u32>() {
            Ok(number) => number,
            Err(_) => {
                let module = object.py().import("tenon.dtypes")?;
                let dtype = module.getattr("as_dtype")?.call1((object,))?;
                dtype.getattr("number")?.extract()?
            }
        };
        let dtype = DType(number);
        if !dtype.is_valid() {
            return Err(
                Fail::invalid(format!("{number} is not the number of an element type")).into()
            );
        }
        Ok(DTypeArg(dtype))
    }
}

/// The object of `tenon.dtypes` for an element type.
pub(crate) fn dtype_object<'py>(py: Python<'py>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    static TABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let table = TABLE.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("tenon.dtypes")?.getattr("by_number")?.unbind())
    })?;
    table.bind(py).call1((dtype.0,))
}

/// The type whose elements NumPy's numbered type has; `None` for types that NumPy does not define itself.
pub(crate) fn of_numpy(number: c_int) -> Option<DType> {
    const LONG_BITS: u32 = std::ffi::c_long::BITS;
    let (long, ulong) = match LONG_BITS {
        64 => (DType::INT64, DType::UINT64),
        _ => (DType::INT32, DType::UINT32),
    };
    let table = [
        (NPY_TYPES::NPY_BOOL, DType::BOOL),
        (NPY_TYPES::NPY_BYTE, DType::INT8),
        (NPY_TYPES::NPY_UBYTE, DType::UINT8),
        (NPY_TYPES::NPY_SHORT, DType::INT16),
        (NPY_TYPES::NPY_USHORT, DType::UINT16),
        (NPY_TYPES::NPY_INT, DType::INT32),
        (NPY_TYPES::NPY_UINT, DType::UINT32),
        (NPY_TYPES::NPY_LONG, long),
        (NPY_TYPES::NPY_ULONG, ulong),
        (NPY_TYPES::NPY_LONGLONG, DType::INT64),
        (NPY_TYPES::NPY_ULONGLONG, DType::UINT64),
        (NPY_TYPES::NPY_FLOAT, DType::FLOAT),
        (NPY_TYPES::NPY_DOUBLE, DType::DOUBLE),
        (NPY_TYPES::NPY_CFLOAT, DType::COMPLEX64),
        (NPY_TYPES::NPY_CDOUBLE, DType::COMPLEX128),
        (NPY_TYPES::NPY_HALF, DType::HALF),
    ];
    table.iter().find(|(npy, _)| *npy as c_int == number).map(|(_, dtype)| *dtype)
}

/// The NumPy type whose elements a type has; `None` for types that need another package, and for those without plain elements.
/// Quantised types are integers in NumPy.
fn numpy_number(dtype: DType) -> Option<NPY_TYPES> {
    Some(match dtype.base() {
        DType::BOOL => NPY_TYPES::NPY_BOOL,
        DType::INT8 | DType::QINT8 => NPY_TYPES::NPY_BYTE,
        DType::UINT8 | DType::QUINT8 => NPY_TYPES::NPY_UBYTE,
        DType::INT16 | DType::QINT16 => NPY_TYPES::NPY_SHORT,
        DType::UINT16 | DType::QUINT16 => NPY_TYPES::NPY_USHORT,
        DType::INT32 | DType::QINT32 => NPY_TYPES::NPY_INT,
        DType::UINT32 => NPY_TYPES::NPY_UINT,
        DType::INT64 if size_of::<std::ffi::c_long>() == 8 => NPY_TYPES::NPY_LONG,
        DType::INT64 => NPY_TYPES::NPY_LONGLONG,
        DType::UINT64 if size_of::<std::ffi::c_long>() == 8 => NPY_TYPES::NPY_ULONG,
        DType::UINT64 => NPY_TYPES::NPY_ULONGLONG,
        DType::HALF => NPY_TYPES::NPY_HALF,
        DType::FLOAT => NPY_TYPES::NPY_FLOAT,
        DType::DOUBLE => NPY_TYPES::NPY_DOUBLE,
        DType::COMPLEX64 => NPY_TYPES::NPY_CFLOAT,
        DType::COMPLEX128 => NPY_TYPES::NPY_CDOUBLE,
        _ => return None,
    })
}

/// NumPy's descriptor of a type, as a new reference.
///
/// # Errors
/// The type needs the package `ml_dtypes`, which is not installed, or has no elements in NumPy.
pub(crate) fn numpy_descr(py: Python<'_>, dtype: DType) -> Result<*mut PyArray_Descr, Fail> {
    if let Some(number) = numpy_number(dtype) {
        // SAFETY: this thread has Python's lock, and the number is one of NumPy's.
        let descr = unsafe { PY_ARRAY_API.PyArray_DescrFromType(py, number as c_int) };
        return Ok(descr);
    }
    let object = py.import("tenon.dtypes")?.getattr("numpy_dtype")?.call1((dtype.0,))?;
    // A descriptor is an object of `numpy.dtype`, whose reference goes to the caller.
    Ok(object.into_ptr().cast())
}

/// The type of an array with this descriptor; `None` where elements are not plain bytes of one of Tenon's types.
///
/// # Safety
/// `descr` is a live descriptor, and this thread has Python's lock.
pub(crate) unsafe fn of_descr(py: Python<'_>, descr: *mut PyArray_Descr) -> Option<DType> {
    // SAFETY: the caller gives a live descriptor.
    let number = unsafe { (*descr).fields.type_num };
    if let Some(dtype) = of_numpy(number) {
        return Some(dtype);
    }
    // Types of other packages have numbers from 256 on. Those of NumPy below that are not plain.
    if !(256..2048).contains(&number) {
        return None;
    }
    // SAFETY: a live descriptor is a Python object.
    let descr = unsafe { Bound::from_borrowed_ptr(py, descr.cast::<ffi::PyObject>()) };
    let name: String = descr.getattr("name").ok()?.extract().ok()?;
    DType::from_name(&name)
}

/// DLPack's code of a kind of elements.
const KINDS: [(u8, &[DType]); 6] = [
    (0, &[DType::INT8, DType::INT16, DType::INT32, DType::INT64]),
    (1, &[DType::UINT8, DType::UINT16, DType::UINT32, DType::UINT64]),
    (2, &[DType::HALF, DType::FLOAT, DType::DOUBLE]),
    (4, &[DType::BFLOAT16]),
    (5, &[DType::COMPLEX64, DType::COMPLEX128]),
    (6, &[DType::BOOL]),
];

/// DLPack's code and bits of a type.
pub(crate) fn to_dlpack(dtype: DType) -> Option<(u8, u8)> {
    let bits = u8::try_from(dtype.bits()).ok()?;
    KINDS.iter().find(|(_, types)| types.contains(&dtype)).map(|(code, _)| (*code, bits))
}

/// The type with DLPack's code and bits.
pub(crate) fn of_dlpack(code: u8, bits: u8) -> Option<DType> {
    let (_, types) = KINDS.iter().find(|(kind, _)| *kind == code)?;
    types.iter().copied().find(|dtype| dtype.bits() == u32::from(bits))
}

/// The format of elements in the buffer protocol.
pub(crate) fn buffer_format(dtype: DType) -> Option<&'static std::ffi::CStr> {
    Some(match dtype {
        DType::BOOL => c"?",
        DType::INT8 | DType::QINT8 => c"b",
        DType::UINT8 | DType::QUINT8 => c"B",
        DType::INT16 | DType::QINT16 => c"h",
        DType::UINT16 | DType::QUINT16 => c"H",
        DType::INT32 | DType::QINT32 => c"i",
        DType::UINT32 => c"I",
        DType::INT64 => c"q",
        DType::UINT64 => c"Q",
        DType::HALF => c"e",
        DType::FLOAT => c"f",
        DType::DOUBLE => c"d",
        DType::COMPLEX64 => c"Zf",
        DType::COMPLEX128 => c"Zd",
        _ => return None,
    })
}
