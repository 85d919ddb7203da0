//! Host tensors that are filled in order, as the bytes of a message arrive.

use super::{Tensor, TensorError, host_memory, value::check_bools};
use crate::{DType, Shape};
use std::mem::MaybeUninit;

/// A host tensor of plain elements of which a first part is filled. The bytes are written where they stay.
///
/// ```
/// use tenon_framework::{DType, tensor::TensorFiller};
///
/// let mut filler = TensorFiller::new(DType::UINT8, &[3])?;
/// filler.put(&[1, 2])?;
/// filler.put(&[3])?;
/// assert_eq!(filler.finish()?.as_slice::<u8>()?, [1, 2, 3]);
/// # Ok::<(), tenon_framework::tensor::TensorError>(())
/// ```
pub struct TensorFiller {
    /// Nothing else refers to its buffer.
    tensor: Tensor,
    filled: usize,
}

impl TensorFiller {
    /// A tensor of this type and shape, of which nothing is filled.
    ///
    /// # Errors
    /// As [`Tensor::allocate`]; types whose elements are not plain bytes.
    pub fn new(dtype: DType, dims: &[i64]) -> Result<TensorFiller, TensorError> {
        if dtype.needs_drop() {
            return Err(TensorError::Unsupported { dtype });
        }
        let tensor = Tensor::allocate(host_memory(), dtype, Shape::new(dims)?)?;
        Ok(TensorFiller { tensor, filled: 0 })
    }

    /// The number of bytes that are not filled.
    pub fn missing(&self) -> usize {
        self.tensor.byte_len() - self.filled
    }

    /// Fills the next bytes.
    ///
    /// # Errors
    /// More bytes than are missing; nothing is written then.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), TensorError> {
        if bytes.len() > self.missing() {
            return Err(self.count(self.filled.saturating_add(bytes.len())));
        }
        // SAFETY: `filled + bytes.len()` is at most the length of the buffer, which is host memory that this value alone
        // refers to, so that `bytes` is other memory.
        unsafe {
            let next = self.tensor.buffer().data().cast::<u8>().add(self.filled);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), next, bytes.len());
        }
        self.filled += bytes.len();
        Ok(())
    }

    /// The memory that is not filled, for a source that writes bytes itself; [`TensorFiller::advance`] then counts them.
    pub fn spare(&mut self) -> &mut [MaybeUninit<u8>] {
        let missing = self.missing();
        if missing == 0 {
            return &mut [];
        }
        // SAFETY: `filled + missing` is the length of the buffer, which is host memory that this value alone refers to; it
        // stays borrowed while the slice is used.
        unsafe {
            let next = self.tensor.buffer().data().cast::<MaybeUninit<u8>>().add(self.filled);
            std::slice::from_raw_parts_mut(next, missing)
        }
    }

    /// Counts bytes that were written to the beginning of [`TensorFiller::spare`].
    ///
    /// # Safety
    /// The caller has written that many bytes there, which are not more than were missing.
    pub unsafe fn advance(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.missing());
        self.filled += bytes;
    }

    /// The bytes that are filled.
    pub fn filled(&self) -> &[u8] {
        if self.filled == 0 {
            return &[];
        }
        // SAFETY: the first `filled` bytes of the buffer are written, and change only through `&mut self`.
        unsafe {
            let first = self.tensor.buffer().data().cast::<u8>().cast_const();
            std::slice::from_raw_parts(first, self.filled)
        }
    }

    /// The tensor.
    ///
    /// # Errors
    /// Bytes are missing; bools that are neither 0 nor 1.
    pub fn finish(self) -> Result<Tensor, TensorError> {
        if self.missing() > 0 {
            return Err(self.count(self.filled));
        }
        if self.tensor.dtype() == DType::BOOL {
            check_bools(self.tensor.as_bytes()?)?;
        }
        Ok(self.tensor)
    }

    fn count(&self, bytes: usize) -> TensorError {
        let size = self.tensor.dtype().size().unwrap_or(1);
        TensorError::Count {
            expected: self.tensor.elements(),
            found: bytes / size,
            shape: Box::new(*self.tensor.shape()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_and_too_many_bytes_are_refused() {
        let mut filler = TensorFiller::new(DType::INT32, &[2]).unwrap();
        filler.put(&[0; 5]).unwrap();
        assert_eq!(filler.missing(), 3);
        assert!(matches!(
            filler.put(&[0; 4]),
            Err(TensorError::Count { expected: 2, found: 2, .. })
        ));
        assert!(matches!(filler.finish(), Err(TensorError::Count { expected: 2, found: 1, .. })));
        assert!(TensorFiller::new(DType::STRING, &[1]).is_err());
        let mut spare = TensorFiller::new(DType::UINT8, &[3]).unwrap();
        spare.put(&[1]).unwrap();
        assert_eq!(spare.spare().len(), 2);
        spare.spare()[0].write(2);
        // SAFETY: one byte was written.
        unsafe { spare.advance(1) };
        assert_eq!((spare.filled(), spare.missing()), (&[1, 2][..], 1));
        spare.put(&[3]).unwrap();
        assert!(spare.spare().is_empty());
        assert_eq!(spare.finish().unwrap().as_slice::<u8>().unwrap(), [1, 2, 3]);
        let mut bools = TensorFiller::new(DType::BOOL, &[1]).unwrap();
        bools.put(&[2]).unwrap();
        assert!(bools.finish().is_err());
    }
}
