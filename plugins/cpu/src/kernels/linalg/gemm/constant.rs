//! Constant right factors, which are packed once.

use super::{
    super::product::{Factor, Operand},
    isa::{Isa, chosen},
    right::{PackedRight, Right},
};
use crate::{lane::Compute, panels::uninitialised};
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Packed},
};

/// Index of a kernel's right factor among its inputs.
pub const RIGHT: usize = 1;

/// Bytes of a matrix from which on packing costs more memory than it is worth: the few rows by
/// which such a matrix is usually multiplied wait for memory, and read it as fast in place.
const LARGE: usize = 64 << 20;

/// The right factor of a kernel whose elements are `T`.
pub struct RightFactor<T: Compute> {
    isa: Option<&'static Isa<T::Wide>>,
    packed: Option<Packed>,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Factor>> RightFactor<T> {
    /// A factor that is not packed yet.
    ///
    /// # Errors
    /// The knob `isa` names an unknown instruction set.
    pub fn new(c: &CreateContext<'_>) -> Result<RightFactor<T>, KernelError> {
        Ok(RightFactor { isa: chosen(c.knobs())?, packed: None, element: PhantomData })
    }

    /// The instruction set of the products; `None` for integers.
    pub fn isa(&self) -> Option<&'static Isa<T::Wide>> {
        self.isa
    }

    /// Packs a constant, if the input is the right factor, as the matrix that `matrix` makes of its
    /// dimensions and elements; `None` if there is nothing to pack.
    pub fn prepack(
        &self,
        input: usize,
        view: &Slot,
        matrix: impl for<'v> FnOnce(&[i64], &'v [T]) -> Option<Operand<'v, T>>,
    ) -> Option<Packed> {
        let isa = self.isa.filter(|_| input == RIGHT)?;
        if !view.memory.is_host_address() || view.bytes == 0 || view.dtype != T::DTYPE {
            return None;
        }
        // SAFETY: the host passes a filled slot for this call, with valid dimensions, and host
        // memory of `elements` elements of the type.
        let (dims, data) = unsafe {
            let data = view.data.cast_const().cast::<T>();
            (view.shape(), std::slice::from_raw_parts(data, view.elements as usize))
        };
        let matrix = matrix(dims, data)?;
        let is_readable = matrix.itself().is_some() && matrix.strides[1] == 1;
        if is_readable && view.bytes as usize > LARGE {
            return None;
        }
        let packed = PackedRight::new(isa, &matrix)?;
        let bytes = packed.bytes() as u64;
        Some(Packed::new(packed, bytes))
    }

    /// Receives the packed form of an input.
    pub fn attach(&mut self, input: usize, packed: &Packed) {
        if input == RIGHT {
            self.packed = Some(packed.clone());
        }
    }

    /// The packed form, if there is one; the input itself may be gone then.
    pub fn packed(&self) -> Option<Right<'_, T::Wide>> {
        self.form().map(PackedRight::view)
    }

    /// The matrix from its packed form.
    ///
    /// # Errors
    /// Out of memory.
    pub fn unpacked<'a>(
        &self,
        c: &ComputeContext<'a>,
    ) -> Result<Option<Operand<'a, T::Wide>>, KernelError> {
        let Some(form) = self.form() else { return Ok(None) };
        let [depth, columns] = form.size();
        let matrix = uninitialised::<T::Wide>(c, depth * columns)?;
        form.unpack(matrix);
        Ok(Some(Operand::dense(matrix, depth, columns)))
    }

    fn form(&self) -> Option<&PackedRight<T::Wide>> {
        self.packed.as_ref()?.get()
    }
}
