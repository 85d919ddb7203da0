//! Outputs that consist of elements of kept tensors of any type.

use crate::{
    ComputeContext, Kept,
    misuse::mismatch,
    resource::state_table,
    variant::{VariantRef, destroy_element},
};
use std::{ops::Range, ptr};
use tenon_abi::{
    Code, DType, ResourceElement, Slot, Str, StringElement, StringTable, VariantElement,
};
use tenon_framework::{KernelError, plugin::host};

/// The number of pieces after which a kernel looks again at whether the step needs the results.
const LOOK: usize = 1024;

/// Elements of a kept tensor that are one after the other, and their place in an output.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'k> {
    /// The tensor.
    pub from: &'k Kept,
    /// Its first element that is taken.
    pub start: usize,
    /// The number of elements.
    pub len: usize,
    /// The element of the output that becomes the first.
    pub to: usize,
}

impl Piece<'_> {
    fn fits(&self, slot: &Slot) -> bool {
        let from = self.from.slot();
        let within = |start: usize, elements: u64| {
            start.checked_add(self.len).is_some_and(|end| end as u64 <= elements)
        };
        from.dtype == slot.dtype
            && from.memory.is_host_address()
            && within(self.start, from.elements)
            && within(self.to, slot.elements)
    }
}

impl ComputeContext<'_> {
    /// Writes an output from pieces, which are copied. An element that no piece writes is zero, an empty string, or
    /// no value. No two pieces write one element.
    ///
    /// ```
    /// use tenon_author::{ComputeContext, Piece};
    /// use tenon_framework::KernelError;
    ///
    /// /// The second half of x, then zeros.
    /// fn second_half(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    ///     let x = c.keep(0)?;
    ///     let elements = x.dims().iter().product::<i64>() as usize;
    ///     let start = elements / 2;
    ///     let piece = Piece { from: &x, start, len: elements - start, to: 0 };
    ///     c.output_pieces(0, c.dims(0), [piece])
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`ComputeContext::prepare`]; `INTERNAL` for a piece of another type or one that reaches beyond a tensor; the
    /// error of copying a variant; `CANCELLED` or `DEADLINE_EXCEEDED` when the step no longer needs the output.
    pub fn output_pieces<'k>(
        &self,
        output: usize,
        dims: &[i64],
        pieces: impl IntoIterator<Item = Piece<'k>>,
    ) -> Result<(), KernelError> {
        let slot = *self.prepare(output, dims)?;
        if !slot.memory.is_host_address() {
            return Err(mismatch("output", output, slot.dtype, &slot));
        }
        self.take(output)?;
        let (watch, mut reached) = (self.watch(), 0);
        for (at, piece) in pieces.into_iter().enumerate() {
            if at.is_multiple_of(LOOK) {
                watch.check()?;
            }
            if !piece.fits(&slot) {
                return Err(mismatch("output", output, piece.from.dtype(), &slot));
            }
            // SAFETY: the piece fits both tensors, which are of one type and are in host memory; the output belongs to
            // this call and shares nothing with a kept tensor.
            unsafe {
                clear(&slot, reached..piece.to);
                copy(&piece, &slot)?;
            }
            reached = reached.max(piece.to + piece.len);
        }
        // SAFETY: the output is in host memory and belongs to this call.
        unsafe { clear(&slot, reached..slot.elements as usize) };
        Ok(())
    }
}

impl Kept {
    /// A tensor that is put together from pieces, which are copied; what no piece writes is zero, an empty string, or no
    /// value. Where pieces write one element, the last one counts.
    ///
    /// ```no_run
    /// use tenon_author::{Kept, Piece};
    /// use tenon_framework::KernelError;
    ///
    /// /// The same tensor twice, one below the other.
    /// fn twice(x: &Kept) -> Result<Kept, KernelError> {
    ///     let dims: Vec<i64> = std::iter::once(2).chain(x.dims().iter().copied()).collect();
    ///     let len = x.dims().iter().product::<i64>() as usize;
    ///     let pieces = [0, len].map(|to| Piece { from: x, start: 0, len, to });
    ///     Kept::from_pieces(x.dtype(), &dims, pieces)
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Kept::zeros`]; `INTERNAL` for a piece of another type or one that reaches beyond a tensor; the error of copying
    /// a variant.
    pub fn from_pieces<'k>(
        dtype: DType,
        dims: &[i64],
        pieces: impl IntoIterator<Item = Piece<'k>>,
    ) -> Result<Kept, KernelError> {
        let made = Kept::zeros(dtype, dims)?;
        for piece in pieces {
            if !piece.fits(made.slot()) {
                return Err(mismatch("kept tensor", 0, piece.from.dtype(), made.slot()));
            }
            // SAFETY: the piece fits both tensors, which are of one type and lie in host memory. The host has just made
            // this one, whose memory nobody else holds before it is returned.
            unsafe { copy(&piece, made.slot())? };
        }
        Ok(made)
    }

    /// A tensor of strings.
    ///
    /// # Errors
    /// As [`Kept::zeros`]; `INVALID_ARGUMENT` when their number is not that of the dimensions.
    pub fn from_strings<S: AsRef<[u8]>>(dims: &[i64], values: &[S]) -> Result<Kept, KernelError> {
        let made = Kept::zeros(DType::STRING, dims)?;
        let slot = made.slot();
        if slot.elements != values.len() as u64 {
            return Err(KernelError::invalid_argument(format!(
                "a tensor {dims:?}: expected {} strings, found {}",
                slot.elements,
                values.len()
            )));
        }
        // SAFETY: the host fills the table, which lives as long as the process.
        let table: &StringTable = unsafe { &*host().strings };
        let set = table.set.expect("the host fills every entry");
        for (at, value) in values.iter().enumerate() {
            let to = slot.data.cast::<StringElement>();
            // SAFETY: an element of a tensor of strings that the host has just made, and nobody else holds yet.
            written(unsafe { set(to.add(at), Str::from_bytes(value.as_ref())) })?;
        }
        Ok(made)
    }
}

/// Zeros a range of elements of fixed size, or nothing where it ends before it starts. Other elements are empty in a
/// fresh buffer.
///
/// # Safety
/// The range is within the slot, which is in host memory and belongs to the caller.
unsafe fn clear(slot: &Slot, range: Range<usize>) {
    if !slot.dtype.needs_drop()
        && !range.is_empty()
        && let Some(size) = slot.dtype.size()
    {
        // SAFETY: the range is within the slot, as the caller promises.
        unsafe {
            let from = slot.data.cast::<u8>().add(range.start * size);
            ptr::write_bytes(from, 0, range.len() * size);
        }
    }
}

/// # Safety
/// The piece fits its tensor and the slot, which are of one type and are in host memory; the slot is an output that
/// belongs to the caller and shares no memory with the tensor.
unsafe fn copy(piece: &Piece<'_>, slot: &Slot) -> Result<(), KernelError> {
    let from = piece.from.slot();
    let each = |write: &mut dyn FnMut(usize, usize) -> Result<(), KernelError>| {
        (0..piece.len).try_for_each(|at| write(piece.start + at, piece.to + at))
    };
    match slot.dtype {
        DType::STRING => {
            // SAFETY: the host fills the table, which lives as long as the process.
            let table: &StringTable = unsafe { &*host().strings };
            let set = table.set.expect("the host fills every entry");
            each(&mut |source, target| {
                // SAFETY: elements of string tensors, of which the second belongs to the caller.
                let code = unsafe {
                    let value = *from.data.cast::<StringElement>().add(source);
                    let value = Str { ptr: value.data, len: value.len as usize };
                    set(slot.data.cast::<StringElement>().add(target), value)
                };
                written(code)
            })
        }
        DType::RESOURCE => each(&mut |source, target| {
            let (state, to) = (state_table(), slot.data.cast::<ResourceElement>());
            // SAFETY: elements of resource tensors; the output owns a reference of its own, and gives back what it had.
            unsafe {
                let element = *from.data.cast::<ResourceElement>().add(source);
                state.retain_resource.expect("the host fills every entry")(element.resource);
                let before = to.add(target).replace(element);
                state.release_resource.expect("the host fills every entry")(before.resource);
            }
            Ok(())
        }),
        DType::VARIANT => each(&mut |source, target| {
            // SAFETY: an element of a variant tensor that is kept.
            let value = unsafe { VariantRef::new(*from.data.cast::<VariantElement>().add(source)) };
            if !value.is_none() {
                let copy = value.to_owned()?.into_element();
                let to = slot.data.cast::<VariantElement>();
                // SAFETY: an element of a variant output that belongs to the caller; the value before goes.
                unsafe { destroy_element(to.add(target).replace(copy)) };
            }
            Ok(())
        }),
        dtype => {
            let size = dtype.size().ok_or_else(|| {
                KernelError::unimplemented(format!("elements of {dtype} cannot be copied"))
            })?;
            // SAFETY: both ranges are within their tensors, which are different ones.
            unsafe {
                let source = from.data.cast::<u8>().cast_const().add(piece.start * size);
                let target = slot.data.cast::<u8>().add(piece.to * size);
                ptr::copy_nonoverlapping(source, target, piece.len * size);
            }
            Ok(())
        }
    }
}

fn written(code: Code) -> Result<(), KernelError> {
    if code.is_ok() { Ok(()) } else { Err(KernelError::new(code, "no memory for a string")) }
}
