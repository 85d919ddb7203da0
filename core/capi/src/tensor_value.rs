//! Tensors of C as tensors of the runtime, and back.

use crate::{
    fail::Failure,
    tensor::{TF_Tensor, elements},
    tstring::TF_TString,
};
use std::slice;
use tenon_framework::{DType, Shape, Tensor};

impl TF_Tensor {
    /// The value, in the same memory; strings are copied.
    ///
    /// # Errors
    /// A shape of too many dimensions, or of more elements than there are; a type without kernels; a bool that is neither 0 nor
    /// 1.
    pub fn value(&self) -> Result<Tensor, Failure> {
        if self.dtype == DType::STRING {
            return self.string_value();
        }
        let shape = Shape::new(&self.dims)?;
        // SAFETY: every bit pattern is a value of types of a fixed size, and bools are checked below. The elements of resources
        // and variants came from the runtime, or are zeros.
        let value = unsafe { Tensor::from_parts(self.buffer.clone(), self.dtype, shape) }?;
        value.validate()?;
        Ok(value)
    }

    fn string_value(&self) -> Result<Tensor, Failure> {
        let count = elements(&self.dims).unwrap_or(usize::MAX);
        if count > self.bytes / size_of::<TF_TString>() {
            return Err(Failure::invalid(format!(
                "a tensor of strings of shape {:?}: expected {count} elements, found memory for {}",
                self.dims,
                self.bytes / size_of::<TF_TString>()
            )));
        }
        // SAFETY: the user initialised as many elements, which the buffer keeps.
        let found =
            unsafe { slice::from_raw_parts(self.buffer.data().cast::<TF_TString>(), count) };
        let values: Vec<&[u8]> = found.iter().map(TF_TString::bytes).collect();
        Ok(Tensor::from_strings(&self.dims, &values)?)
    }

    /// A copy of the value, which later changes of the tensor do not reach.
    ///
    /// # Errors
    /// As [`TF_Tensor::value`]; resources and variants.
    pub fn copied_value(&self) -> Result<Tensor, Failure> {
        if self.dtype == DType::STRING {
            return self.string_value();
        }
        let value = self.value()?;
        Ok(Tensor::from_bytes(self.dtype, &self.dims, value.as_bytes()?)?)
    }

    /// A tensor of C with this value, in the same memory; strings are copied.
    ///
    /// # Errors
    /// The value is on a device, or memory ran out.
    pub fn of(value: &Tensor) -> Result<TF_Tensor, Failure> {
        let dims = value.shape().dims();
        if value.dtype().base() == DType::STRING {
            return TF_Tensor::of_strings(dims, &value.as_strings()?);
        }
        if !value.is_on_host() {
            return Err(tenon_framework::tensor::TensorError::NotOnHost.into());
        }
        Ok(TF_Tensor {
            dtype: value.dtype().base(),
            dims: dims.to_vec(),
            buffer: value.buffer().clone(),
            bytes: value.byte_len(),
            owns: true,
        })
    }
}
