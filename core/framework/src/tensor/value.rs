//! The tensor.

use super::{
    buffer::{Buffer, Memory},
    host_memory,
    string::set_string,
};
use crate::{
    KernelError,
    element::{Complex, Element, bf16, f16, invalid_bool},
    shape::Shape,
    shape::ShapeError,
};
use std::{fmt, sync::Arc};
use tenon_abi::{Code, DType, MemoryKind, Slot, StringElement};
use thiserror::Error;

/// Why a tensor cannot be made or read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TensorError {
    /// Wrong dimensions.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The type has no elements of whole bytes, or is only numbered.
    #[error("tensors of {dtype} are not supported: only its number is reserved")]
    Unsupported {
        /// The type.
        dtype: DType,
    },
    /// The number of values is not that of the shape.
    #[error("shape {shape} has {expected} elements, found {found}")]
    Count {
        /// The shape.
        shape: Box<Shape>,
        /// Its elements.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// A number of a type that has none.
    #[error("{dtype} has no numbers: expected a floating, complex or integer type")]
    NoNumber {
        /// The type.
        dtype: DType,
    },
    /// Read as another type than it has.
    #[error("the tensor holds {found}, read as {expected}")]
    Type {
        /// The requested type.
        expected: DType,
        /// The type of the tensor.
        found: DType,
    },
    /// Read on the host while it is on a device.
    #[error("the tensor is in memory of a device: copy it to the host first")]
    NotOnHost,
    /// A byte of a bool tensor that is neither 0 nor 1.
    #[error("a bool is 0 or 1, found {value} as element {index}")]
    Bool {
        /// Position.
        index: usize,
        /// The byte.
        value: u8,
    },
    /// Memory ran out.
    #[error("{0}")]
    Memory(KernelError),
}

impl TensorError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            TensorError::Memory(error) => error.code,
            TensorError::Unsupported { .. } => Code::UNIMPLEMENTED,
            TensorError::NotOnHost => Code::FAILED_PRECONDITION,
            _ => Code::INVALID_ARGUMENT,
        }
    }
}

impl From<TensorError> for KernelError {
    fn from(error: TensorError) -> KernelError {
        KernelError::new(error.code(), error.to_string())
    }
}

/// A tensor: reference-counted buffer, element type, shape. Clones share the buffer.
#[derive(Clone)]
pub struct Tensor {
    buffer: Buffer,
    dtype: DType,
    shape: Shape,
}

#[inline]
fn byte_len(dtype: DType, shape: &Shape) -> Result<usize, TensorError> {
    let size = match dtype.size() {
        Some(size) if !dtype.is_reserved() => size,
        _ => return Err(TensorError::Unsupported { dtype }),
    };
    let overflow = || ShapeError::Overflow { dims: shape.dims().to_vec() };
    let bytes = shape.elements().checked_mul(size).ok_or_else(overflow)?;
    if bytes > isize::MAX as usize {
        return Err(overflow().into());
    }
    Ok(bytes)
}

impl Tensor {
    /// A tensor of undefined contents (strings are empty) in `memory`.
    ///
    /// # Errors
    /// Unsupported type, sizes that overflow, no memory.
    pub fn allocate(
        memory: &Arc<dyn Memory>,
        dtype: DType,
        shape: Shape,
    ) -> Result<Tensor, TensorError> {
        let bytes = byte_len(dtype, &shape)?;
        let buffer = Buffer::allocate(memory, dtype, shape.elements(), bytes)
            .map_err(TensorError::Memory)?;
        Ok(Tensor { buffer, dtype, shape })
    }

    /// A host tensor of these values.
    ///
    /// # Errors
    /// As [`Tensor::allocate`]; the number of values is not that of the shape.
    pub fn from_slice<T: Element>(dims: &[i64], values: &[T]) -> Result<Tensor, TensorError> {
        let shape = Shape::new(dims)?;
        check_count(&shape, values.len())?;
        let tensor = Tensor::allocate(host_memory(), T::DTYPE, shape)?;
        // SAFETY: fresh host memory for as many elements of this type.
        unsafe {
            std::ptr::copy_nonoverlapping(
                values.as_ptr(),
                tensor.buffer.data().cast::<T>(),
                values.len(),
            );
        }
        Ok(tensor)
    }

    /// A host tensor of one value, of rank 0.
    ///
    /// # Errors
    /// As [`Tensor::allocate`].
    pub fn scalar<T: Element>(value: T) -> Result<Tensor, TensorError> {
        Tensor::from_slice(&[], &[value])
    }

    /// A host tensor of one number, of rank 0, rounded to a type that is chosen at run time. Integers are cut towards zero,
    /// and to their range.
    ///
    /// # Errors
    /// As [`Tensor::allocate`]; the type is not a floating, complex or integer one.
    pub fn number(dtype: DType, value: f64) -> Result<Tensor, TensorError> {
        match dtype {
            DType::FLOAT => Tensor::scalar(value as f32),
            DType::DOUBLE => Tensor::scalar(value),
            DType::HALF => Tensor::scalar(f16::from_f64(value)),
            DType::BFLOAT16 => Tensor::scalar(bf16::from_f64(value)),
            DType::COMPLEX64 => Tensor::scalar(Complex::new(value as f32, 0.0)),
            DType::COMPLEX128 => Tensor::scalar(Complex::new(value, 0.0)),
            DType::INT8 => Tensor::scalar(value as i8),
            DType::INT16 => Tensor::scalar(value as i16),
            DType::INT32 => Tensor::scalar(value as i32),
            DType::INT64 => Tensor::scalar(value as i64),
            DType::UINT8 => Tensor::scalar(value as u8),
            DType::UINT16 => Tensor::scalar(value as u16),
            DType::UINT32 => Tensor::scalar(value as u32),
            DType::UINT64 => Tensor::scalar(value as u64),
            _ => Err(TensorError::NoNumber { dtype }),
        }
    }

    /// A host tensor of any fixed-size type from its bytes in native order.
    ///
    /// # Errors
    /// As [`Tensor::allocate`]; the wrong number of bytes; bools that are neither 0 nor 1; types whose
    /// elements are not plain bytes.
    pub fn from_bytes(dtype: DType, dims: &[i64], bytes: &[u8]) -> Result<Tensor, TensorError> {
        if dtype.needs_drop() {
            return Err(TensorError::Unsupported { dtype });
        }
        let shape = Shape::new(dims)?;
        let expected = byte_len(dtype, &shape)?;
        if expected != bytes.len() {
            let size = dtype.size().unwrap_or(1);
            return Err(TensorError::Count {
                expected: shape.elements(),
                found: bytes.len() / size,
                shape: Box::new(shape),
            });
        }
        if dtype == DType::BOOL {
            check_bools(bytes)?;
        }
        let tensor = Tensor::allocate(host_memory(), dtype, shape)?;
        // SAFETY: fresh host memory of as many bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                tensor.buffer.data().cast::<u8>(),
                bytes.len(),
            );
        }
        Ok(tensor)
    }

    /// A host tensor of strings.
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    pub fn from_strings<S: AsRef<[u8]>>(dims: &[i64], values: &[S]) -> Result<Tensor, TensorError> {
        let shape = Shape::new(dims)?;
        check_count(&shape, values.len())?;
        let tensor = Tensor::allocate(host_memory(), DType::STRING, shape)?;
        let first = tensor.buffer.data().cast::<StringElement>();
        for (at, value) in values.iter().enumerate() {
            // SAFETY: elements of the fresh buffer, which start as empty strings.
            let code = unsafe { set_string(first.add(at), value.as_ref()) };
            if !code.is_ok() {
                let error = KernelError::new(code, "no memory for the value of a string");
                return Err(TensorError::Memory(error));
            }
        }
        Ok(tensor)
    }

    /// Joins parts.
    ///
    /// # Errors
    /// The buffer is smaller than the shape needs.
    ///
    /// # Safety
    /// The buffer's first elements are initialised values of `dtype`.
    #[inline]
    pub unsafe fn from_parts(
        buffer: Buffer,
        dtype: DType,
        shape: Shape,
    ) -> Result<Tensor, TensorError> {
        let bytes = byte_len(dtype, &shape)?;
        if bytes > buffer.capacity() {
            let size = dtype.size().unwrap_or(1);
            return Err(TensorError::Count {
                expected: shape.elements(),
                found: buffer.capacity() / size,
                shape: Box::new(shape),
            });
        }
        Ok(Tensor { buffer, dtype, shape })
    }

    /// The same elements under another shape.
    ///
    /// # Errors
    /// Another number of elements.
    pub fn reshaped(&self, dims: &[i64]) -> Result<Tensor, TensorError> {
        let shape = Shape::new(dims)?;
        check_count(&shape, self.shape.elements())?;
        Ok(Tensor { buffer: self.buffer.clone(), dtype: self.dtype, shape })
    }

    /// Element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape.elements()
    }

    /// The buffer.
    #[inline]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Number of bytes of the elements.
    pub fn byte_len(&self) -> usize {
        self.elements() * self.dtype.size().unwrap_or(0)
    }

    /// Whether host code may address the elements.
    pub fn is_on_host(&self) -> bool {
        self.buffer.kind().is_host_address()
    }

    /// The elements.
    ///
    /// # Errors
    /// Another element type; memory of a device.
    pub fn as_slice<T: Element>(&self) -> Result<&[T], TensorError> {
        if T::DTYPE != self.dtype {
            return Err(TensorError::Type { expected: T::DTYPE, found: self.dtype });
        }
        self.host_address()?;
        // SAFETY: host memory that holds as many elements of this type for as long as `self` lives.
        Ok(unsafe { std::slice::from_raw_parts(self.buffer.data().cast(), self.elements()) })
    }

    /// The bytes of a tensor of fixed-size elements.
    ///
    /// # Errors
    /// Elements that are not plain bytes; memory of a device.
    pub fn as_bytes(&self) -> Result<&[u8], TensorError> {
        if self.dtype.needs_drop() {
            return Err(TensorError::Unsupported { dtype: self.dtype });
        }
        self.host_address()?;
        // SAFETY: as in `as_slice`.
        Ok(unsafe { std::slice::from_raw_parts(self.buffer.data().cast(), self.byte_len()) })
    }

    /// The values of a string tensor.
    ///
    /// # Errors
    /// Another element type; memory of a device.
    pub fn as_strings(&self) -> Result<Vec<&[u8]>, TensorError> {
        if self.dtype != DType::STRING {
            return Err(TensorError::Type { expected: DType::STRING, found: self.dtype });
        }
        self.host_address()?;
        let first = self.buffer.data().cast::<StringElement>();
        Ok((0..self.elements())
            .map(|at| {
                // SAFETY: initialised elements that live as long as `self`.
                unsafe {
                    let element = &*first.add(at);
                    tenon_abi::Str { ptr: element.data, len: element.len as usize }.bytes()
                }
            })
            .collect())
    }

    fn host_address(&self) -> Result<(), TensorError> {
        if self.is_on_host() { Ok(()) } else { Err(TensorError::NotOnHost) }
    }

    /// Checks what came from outside: bools are 0 or 1.
    ///
    /// # Errors
    /// A bool byte that is neither.
    pub fn validate(&self) -> Result<(), TensorError> {
        if self.dtype == DType::BOOL && self.is_on_host() {
            // SAFETY: as in `as_slice`, read as bytes.
            let bytes = unsafe {
                std::slice::from_raw_parts(self.buffer.data().cast::<u8>(), self.elements())
            };
            return check_bools(bytes);
        }
        Ok(())
    }

    /// The slot that shows this tensor. It borrows: `self` outlives its use, and it holds no reference.
    pub fn slot(&self) -> Slot {
        Slot {
            data: self.buffer.data(),
            dims: self.shape.dims().as_ptr(),
            buffer: self.buffer.as_raw(),
            elements: self.elements() as u64,
            bytes: self.byte_len() as u64,
            dtype: self.dtype,
            rank: self.shape.rank() as u32,
            memory: self.buffer.kind(),
            alias: 0,
            flags: 0,
            reserved: 0,
        }
    }
}

fn check_count(shape: &Shape, found: usize) -> Result<(), TensorError> {
    let expected = shape.elements();
    if expected == found {
        return Ok(());
    }
    Err(TensorError::Count { shape: Box::new(*shape), expected, found })
}

pub(super) fn check_bools(bytes: &[u8]) -> Result<(), TensorError> {
    match invalid_bool(bytes) {
        Some(index) => Err(TensorError::Bool { index, value: bytes[index] }),
        None => Ok(()),
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.buffer.kind() == MemoryKind::HOST { "host" } else { "device" };
        write!(f, "Tensor({} {} on {place})", self.dtype, self.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_takes_the_type_that_is_asked_for() {
        let number = |dtype| Tensor::number(dtype, -2.5);
        assert_eq!(number(DType::FLOAT).unwrap().as_slice::<f32>().unwrap(), [-2.5]);
        assert_eq!(number(DType::HALF).unwrap().as_slice::<f16>().unwrap(), [f16::from_f32(-2.5)]);
        let complex = number(DType::COMPLEX128).unwrap();
        assert_eq!(complex.as_slice::<Complex<f64>>().unwrap(), [Complex::new(-2.5, 0.0)]);
        assert_eq!(number(DType::INT32).unwrap().as_slice::<i32>().unwrap(), [-2]);
        assert_eq!(number(DType::UINT8).unwrap().as_slice::<u8>().unwrap(), [0]);
        let refused = TensorError::NoNumber { dtype: DType::STRING };
        assert_eq!(number(DType::STRING).unwrap_err(), refused);
    }

    #[test]
    fn values_come_back_and_are_aligned_even_when_empty() {
        let tensor = Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(tensor.as_slice::<f32>().unwrap(), &[1.0, 2.0, 3.0, 4.0]);
        let empty = Tensor::from_slice::<f32>(&[0, 3], &[]).unwrap();
        assert!(!empty.buffer().data().is_null());
        assert_eq!(empty.buffer().data() as usize % 64, 0);
        assert_eq!(
            tensor.as_slice::<i32>().unwrap_err(),
            TensorError::Type { expected: DType::INT32, found: DType::FLOAT }
        );
    }

    #[test]
    fn strings_are_owned_and_freed_with_their_buffer() {
        let tensor = Tensor::from_strings(&[3], &["", "a", "longer"]).unwrap();
        assert_eq!(tensor.as_strings().unwrap(), vec![&b""[..], b"a", b"longer"]);
        assert!(tensor.buffer().needs_drop());
        assert!(tensor.as_bytes().is_err());
    }

    #[test]
    fn bools_from_outside_are_checked() {
        let error = Tensor::from_bytes(DType::BOOL, &[2], &[1, 2]).unwrap_err();
        assert_eq!(error.to_string(), "a bool is 0 or 1, found 2 as element 1");
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        let shape = Shape::new(&[i64::MAX / 2]).unwrap();
        let error = Tensor::allocate(host_memory(), DType::DOUBLE, shape).unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    }

    #[test]
    fn a_reshaped_tensor_shares_the_buffer() {
        let tensor = Tensor::from_slice(&[4], &[1i32, 2, 3, 4]).unwrap();
        let square = tensor.reshaped(&[2, 2]).unwrap();
        assert_eq!(square.buffer().data(), tensor.buffer().data());
        assert!(!tensor.buffer().is_unique());
        assert!(tensor.reshaped(&[3]).is_err());
    }
}
