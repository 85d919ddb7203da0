//! Attributes of nodes: Python's values as an op's definition asks for them, and back.

use crate::{
    arrays::{Copying, type_name},
    dtypes::{DTypeArg, dtype_object},
    fail::Fail,
    tensor::{PyTensor, convert},
};
use pyo3::{
    IntoPyObjectExt,
    prelude::*,
    types::{PyBool, PyBytes, PyFloat, PyList, PyString},
};
use tenon_framework::{
    DType, PartialShape,
    abi::AttrKind,
    attr::{AttrList, AttrType, AttrValue, FuncValue},
};

/// A shape of Python's: `None` for any, else a list whose unknown sizes are `None` or -1.
pub(crate) fn shape_of(object: &Bound<'_, PyAny>) -> Result<PartialShape, Fail> {
    if object.is_none() {
        return Ok(PartialShape::UNKNOWN);
    }
    let dims: Vec<Option<i64>> = object.extract().map_err(|_| {
        Fail::wrong_type(format!(
            "expected a shape, which is None or a list of sizes, found {}",
            type_name(object)
        ))
    })?;
    let dims: Vec<i64> = dims.into_iter().map(|dim| dim.unwrap_or(-1)).collect();
    Ok(PartialShape::new(&dims)?)
}

/// A shape as Python has it.
pub(crate) fn shape_object(shape: &PartialShape) -> Option<Vec<Option<i64>>> {
    let dims = shape.dims()?;
    Some(dims.iter().map(|&dim| (dim >= 0).then_some(dim)).collect())
}

fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    match object.cast::<PyString>() {
        Ok(text) => Ok(text.to_string_lossy().into_owned().into_bytes()),
        Err(_) => Ok(object.cast::<PyBytes>()?.as_bytes().to_vec()),
    }
}

fn function_of(object: &Bound<'_, PyAny>) -> PyResult<FuncValue> {
    let name = match object.extract::<String>() {
        Ok(name) => name,
        Err(_) => object.getattr("name")?.extract()?,
    };
    Ok(FuncValue { name, ..FuncValue::default() })
}

fn dtype_of(object: &Bound<'_, PyAny>) -> PyResult<DType> {
    Ok(object.extract::<DTypeArg>()?.0)
}

fn bool_of(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.cast::<PyBool>()?.is_true())
}

/// A value for an attribute of this type.
///
/// # Errors
/// The value is of another type.
pub(crate) fn attr_value(
    name: &str,
    ty: AttrType,
    object: &Bound<'_, PyAny>,
) -> Result<AttrValue, Fail> {
    let made = match ty.is_list {
        true => list_of(ty.kind, object).map(AttrValue::List),
        false => one_of(ty.kind, object),
    };
    made.map_err(|fail| match fail {
        Fail::Python(error) => Fail::wrong_type(format!(
            "attribute '{name}': expected {ty}, found {}: {error}",
            type_name(object)
        )),
        fail => fail,
    })
}

fn one_of(kind: AttrKind, object: &Bound<'_, PyAny>) -> Result<AttrValue, Fail> {
    Ok(match kind {
        AttrKind::INT => AttrValue::Int(object.extract()?),
        AttrKind::FLOAT => AttrValue::Float(object.extract()?),
        AttrKind::BOOL => AttrValue::Bool(bool_of(object)?),
        AttrKind::STRING => AttrValue::String(bytes_of(object)?),
        AttrKind::TYPE => AttrValue::Type(dtype_of(object)?),
        AttrKind::SHAPE => AttrValue::Shape(shape_of(object)?),
        // A graph keeps its constants: later changes of an array do not reach them.
        AttrKind::TENSOR => AttrValue::Tensor(convert(object, None, Copying::Always)?.tensor),
        AttrKind::FUNC => AttrValue::Func(function_of(object)?),
        _ => return Err(Fail::invalid("an attribute of an unknown kind")),
    })
}

fn list_of(kind: AttrKind, object: &Bound<'_, PyAny>) -> Result<AttrList, Fail> {
    let items: Vec<Bound<'_, PyAny>> =
        object.try_iter()?.collect::<PyResult<_>>().map_err(Fail::from)?;
    fn all<'py, T>(
        items: &[Bound<'py, PyAny>],
        one: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> PyResult<Vec<T>> {
        items.iter().map(one).collect()
    }
    Ok(match kind {
        AttrKind::INT => AttrList::Int(all(&items, |item| item.extract())?),
        AttrKind::FLOAT => AttrList::Float(all(&items, |item| item.extract())?),
        AttrKind::BOOL => AttrList::Bool(all(&items, bool_of)?),
        AttrKind::STRING => AttrList::String(all(&items, bytes_of)?),
        AttrKind::TYPE => AttrList::Type(all(&items, dtype_of)?),
        AttrKind::SHAPE => {
            AttrList::Shape(items.iter().map(shape_of).collect::<Result<_, Fail>>()?)
        }
        AttrKind::TENSOR => {
            let one = |item| Ok(convert(item, None, Copying::Always)?.tensor);
            AttrList::Tensor(items.iter().map(one).collect::<Result<_, Fail>>()?)
        }
        AttrKind::FUNC => AttrList::Func(all(&items, function_of)?),
        _ => return Err(Fail::invalid("an attribute of an unknown kind")),
    })
}

/// An attribute as Python has it.
pub(crate) fn attr_object<'py>(
    py: Python<'py>,
    value: &AttrValue,
) -> Result<Bound<'py, PyAny>, Fail> {
    Ok(match value {
        AttrValue::Int(value) => value.into_bound_py_any(py)?,
        AttrValue::Float(value) => PyFloat::new(py, f64::from(*value)).into_any(),
        AttrValue::Bool(value) => value.into_bound_py_any(py)?,
        AttrValue::String(bytes) => text_object(py, bytes),
        AttrValue::Type(dtype) => dtype_object(py, *dtype)?,
        AttrValue::Shape(shape) => shape_object(shape).into_bound_py_any(py)?,
        AttrValue::Tensor(tensor) => {
            Bound::new(py, PyTensor::of_step(tensor.clone(), false))?.into_any()
        }
        AttrValue::Func(function) => PyString::new(py, &function.name).into_any(),
        AttrValue::List(list) => list_object(py, list)?.into_any(),
    })
}

/// Text where the bytes are some, and the bytes where they are not.
fn text_object<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyAny> {
    match std::str::from_utf8(bytes) {
        Ok(text) => PyString::new(py, text).into_any(),
        Err(_) => PyBytes::new(py, bytes).into_any(),
    }
}

fn list_object<'py>(py: Python<'py>, list: &AttrList) -> Result<Bound<'py, PyList>, Fail> {
    let made: Vec<Bound<'py, PyAny>> = match list {
        AttrList::Int(items) => return Ok(PyList::new(py, items)?),
        AttrList::Float(items) => return Ok(PyList::new(py, items)?),
        AttrList::Bool(items) => return Ok(PyList::new(py, items)?),
        AttrList::Shape(items) => return Ok(PyList::new(py, items.iter().map(shape_object))?),
        AttrList::String(items) => items.iter().map(|item| text_object(py, item)).collect(),
        AttrList::Type(items) => {
            items.iter().map(|&item| dtype_object(py, item)).collect::<PyResult<_>>()?
        }
        AttrList::Tensor(items) => {
            let one = |item: &tenon_framework::Tensor| {
                Ok(Bound::new(py, PyTensor::of_step(item.clone(), false))?.into_any())
            };
            items.iter().map(one).collect::<PyResult<_>>()?
        }
        AttrList::Func(items) => {
            items.iter().map(|item| PyString::new(py, &item.name).into_any()).collect()
        }
    };
    Ok(PyList::new(py, made)?)
}
