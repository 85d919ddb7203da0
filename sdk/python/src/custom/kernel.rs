//! Kernels in Python.

use super::{Custom, answer, dict, find, read_attrs};
use crate::{
    arrays::{Copying, to_array},
    fail::Fail,
    lend::of_kept,
    tensor::{PyTensor, convert},
};
use pyo3::{prelude::*, types::PyList};
use tenon_author::{
    ComputeContext, CreateContext, Kernel, Mode, Optional, WithoutPrepack, WithoutSupports,
    type_table,
};
use tenon_framework::{
    DType, KernelError, Tensor,
    abi::{AttrKind, KernelTable},
    attr::{AttrList, AttrValue},
    tensor::TensorError,
};

static TABLE: KernelTable = type_table::<PythonKernel>(
    Optional::<PythonKernel>::PREPACK,
    Optional::<PythonKernel>::SUPPORTS,
);

/// The entries of all kernels in Python.
pub(super) fn table() -> &'static KernelTable {
    &TABLE
}

/// The kernel of a node.
struct PythonKernel {
    op: String,
    attrs: Vec<(String, AttrValue)>,
    outputs: Vec<DType>,
}

impl Kernel for PythonKernel {
    // It waits for Python's lock.
    const MODE: Mode = Mode::Blocking;

    fn new(c: &CreateContext<'_>) -> Result<PythonKernel, KernelError> {
        let op = c.op().to_owned();
        let attrs = read_attrs!(c, &find(&op)?.def.attrs);
        Ok(PythonKernel { op, attrs, outputs: c.output_types().to_vec() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let custom = find(&self.op)?;
        let made = answer(&self.op, |py| self.call(py, &custom, c))?;
        for (at, tensor) in made.iter().enumerate() {
            give(c, at, tensor)?;
        }
        Ok(())
    }
}

impl PythonKernel {
    /// Calls the function with the inputs, and takes what it returns as tensors.
    fn call(
        &self,
        py: Python<'_>,
        custom: &Custom,
        c: &ComputeContext<'_>,
    ) -> Result<Vec<Tensor>, Fail> {
        let inputs = (0..c.input_count()).map(|at| input(py, c, at));
        let inputs: Vec<Bound<'_, PyAny>> = inputs.collect::<Result<_, Fail>>()?;
        let attrs = dict(py, self.attrs.iter().map(|(name, value)| (name.as_str(), value)))?;
        let count = self.outputs.len();
        let arguments = (PyList::new(py, inputs)?, attrs, count);
        let made = custom.object.bind(py).call_method1("_compute", arguments)?;
        let made: Vec<Bound<'_, PyAny>> = made.extract()?;
        let tensors = made.iter().zip(&self.outputs).enumerate().map(|(at, (value, &dtype))| {
            let made = convert(value, Some(dtype), Copying::IfNeeded).map_err(|fail| match fail {
                Fail::Tenon { code, message, .. } => {
                    Fail::new(code, format!("output {at} of op '{}': {message}", self.op))
                }
                other => other,
            });
            Ok(made?.tensor)
        });
        tensors.collect()
    }
}

/// An input as a read-only array in the memory of the tensor, which it keeps.
fn input<'py>(
    py: Python<'py>,
    c: &ComputeContext<'_>,
    at: usize,
) -> Result<Bound<'py, PyAny>, Fail> {
    let tensor = match c.slot(at)?.dtype {
        DType::STRING => Tensor::from_strings(c.dims(at), &c.strings(at)?)?,
        _ => of_kept(c.keep(at)?)?,
    };
    to_array(&Bound::new(py, PyTensor::of_step(tensor, false))?)
}

/// Writes an output.
fn give(c: &ComputeContext<'_>, at: usize, tensor: &Tensor) -> Result<(), KernelError> {
    let failed = |error: TensorError| KernelError::new(error.code(), error.to_string());
    let dims = tensor.shape().dims();
    if tensor.dtype() == DType::STRING {
        let values = tensor.as_strings().map_err(failed)?;
        return c.set_strings(at, dims, values.into_iter());
    }
    c.output_bytes(at, dims)?.copy_from_slice(tensor.as_bytes().map_err(failed)?);
    Ok(())
}
