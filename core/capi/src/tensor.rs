//! Tensors.
//!
//! A tensor of C is an element type, a shape and a counted buffer in host memory. Its elements are those of the runtime, except
//! for strings, whose elements are [`TF_TString`]; `tensor_value` converts between both.

use crate::{fail::Failure, raw::Array, tstring::TF_TString};
use std::{
    ffi::{c_int, c_void},
    ptr::{self, NonNull},
    slice,
    sync::Arc,
};
use tenon_framework::{
    DType, KernelError,
    abi::MemoryKind,
    tensor::{Buffer, Memory, host_memory},
};

/// The alignment of tensors that the library allocates, in bytes. Others are copied before they are used.
pub const ALIGNMENT: usize = 64;

/// Frees the memory of a tensor: its address, its size and a value of the user's.
pub type Deallocator = unsafe extern "C" fn(*mut c_void, usize, *mut c_void);

/// A tensor.
pub struct TF_Tensor {
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<i64>,
    pub(crate) buffer: Buffer,
    /// Bytes of the buffer that the user asked for.
    pub(crate) bytes: usize,
    /// Whether the memory is the library's own.
    pub(crate) owns: bool,
}

/// Memory of a user, for one buffer.
struct Lent {
    data: *mut c_void,
    length: usize,
    deallocator: Option<Deallocator>,
    argument: *mut c_void,
}

// SAFETY: the user lends the memory to a library that uses tensors on several threads, as TensorFlow does.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

// SAFETY: the buffer that is made of it is the only one, and no shorter than it asks for.
unsafe impl Memory for Lent {
    fn kind(&self) -> MemoryKind {
        MemoryKind::HOST
    }

    fn device(&self) -> u64 {
        0
    }

    fn allocate(&self, _: usize) -> Result<NonNull<c_void>, KernelError> {
        // A tensor without elements may have no address.
        Ok(NonNull::new(self.data).unwrap_or(NonNull::<Aligned>::dangling().cast()))
    }

    unsafe fn deallocate(&self, _: NonNull<c_void>, _: usize) {
        self.free();
    }
}

#[repr(align(64))]
struct Aligned;

impl Lent {
    /// Calls the user's deallocator.
    fn free(&self) {
        if let Some(deallocate) = self.deallocator {
            // SAFETY: the user gave the deallocator for this memory; the library no longer uses it, and calls it once.
            unsafe { deallocate(self.data, self.length, self.argument) };
        }
    }
}

/// Memory of string elements whose values the library owns.
struct Strings;

// SAFETY: it passes on what the host's memory gives.
unsafe impl Memory for Strings {
    fn kind(&self) -> MemoryKind {
        MemoryKind::HOST
    }

    fn device(&self) -> u64 {
        0
    }

    fn allocate(&self, bytes: usize) -> Result<NonNull<c_void>, KernelError> {
        let data = host_memory().allocate(bytes)?;
        // SAFETY: fresh memory of as many bytes; zeros are empty elements.
        unsafe { data.as_ptr().cast::<u8>().write_bytes(0, bytes) };
        Ok(data)
    }

    unsafe fn deallocate(&self, data: NonNull<c_void>, bytes: usize) {
        let count = bytes / size_of::<TF_TString>();
        // SAFETY: as many initialised elements, which no other code has.
        let elements =
            unsafe { slice::from_raw_parts_mut(data.as_ptr().cast::<TF_TString>(), count) };
        elements.iter_mut().for_each(TF_TString::clear);
        // SAFETY: `data` came from this memory with this size.
        unsafe { host_memory().deallocate(data, bytes) };
    }
}

/// The size of an element as users count it; 0 for strings, resources and variants.
pub fn element_size(dtype: DType) -> usize {
    match dtype {
        DType::STRING | DType::RESOURCE | DType::VARIANT => 0,
        _ if dtype.is_ref() => 0,
        _ => (dtype.bits() as usize).div_ceil(8),
    }
}

/// The number of elements of a shape; `None` if it overflows or a size is negative.
pub fn elements(dims: &[i64]) -> Option<usize> {
    let sizes = dims.iter().map(|&size| usize::try_from(size).ok());
    sizes.into_iter().try_fold(1usize, |product, size| product.checked_mul(size?))
}

/// The bytes that the elements of a shape take in memory.
fn needed(dtype: DType, dims: &[i64]) -> Option<usize> {
    let size = if dtype == DType::STRING { size_of::<TF_TString>() } else { element_size(dtype) };
    elements(dims)?.checked_mul(size)
}

/// Whether only the library makes elements of this type.
fn is_opaque(dtype: DType) -> bool {
    matches!(dtype, DType::RESOURCE | DType::VARIANT)
}

fn known(dtype: c_int) -> Option<DType> {
    let dtype = DType(u32::try_from(dtype).ok()?);
    (dtype.is_valid() && !dtype.is_ref()).then_some(dtype)
}

impl TF_Tensor {
    /// A tensor in the library's own memory, of undefined contents; strings are empty.
    ///
    /// # Errors
    /// The shape has no size, or memory ran out.
    pub fn allocate(dtype: DType, dims: &[i64], bytes: usize) -> Result<TF_Tensor, Failure> {
        let buffer = Buffer::allocate(host_memory(), DType::UINT8, bytes, bytes)?;
        if dtype == DType::STRING {
            // SAFETY: fresh memory of as many bytes; zeros are empty elements.
            unsafe { buffer.data().cast::<u8>().write_bytes(0, bytes) };
        }
        Ok(TF_Tensor { dtype, dims: dims.to_vec(), buffer, bytes, owns: true })
    }

    /// A tensor of strings whose values are freed with it.
    ///
    /// # Errors
    /// Memory ran out.
    pub fn of_strings(dims: &[i64], values: &[&[u8]]) -> Result<TF_Tensor, Failure> {
        let memory: Arc<dyn Memory> = Arc::new(Strings);
        let bytes = values.len() * size_of::<TF_TString>();
        let buffer = Buffer::allocate(&memory, DType::UINT8, bytes, bytes)?;
        let first = buffer.data().cast::<TF_TString>();
        for (at, value) in values.iter().enumerate() {
            // SAFETY: an initialised element of the fresh buffer.
            if !unsafe { &mut *first.add(at) }.assign(value) {
                return Err(KernelError::new(
                    tenon_framework::Code::RESOURCE_EXHAUSTED,
                    format!("no memory for a string of {} bytes", value.len()),
                )
                .into());
            }
        }
        Ok(TF_Tensor { dtype: DType::STRING, dims: dims.to_vec(), buffer, bytes, owns: true })
    }

    /// A tensor of a user's memory, or of a copy of it where it is not aligned.
    fn lend(dtype: DType, dims: &[i64], lent: Lent) -> Option<TF_Tensor> {
        let fits = needed(dtype, dims).is_some_and(|needed| needed <= lent.length);
        if !fits || is_opaque(dtype) || (lent.data.is_null() && lent.length > 0) {
            lent.free();
            return None;
        }
        let (dims, bytes) = (dims.to_vec(), lent.length);
        let aligned = (lent.data as usize).is_multiple_of(ALIGNMENT);
        if aligned || dtype == DType::STRING {
            let memory: Arc<dyn Memory> = Arc::new(lent);
            let buffer = Buffer::allocate(&memory, DType::UINT8, bytes, bytes).ok()?;
            return Some(TF_Tensor { dtype, dims, buffer, bytes, owns: false });
        }
        let copy = TF_Tensor::allocate(dtype, &dims, bytes).ok();
        if let Some(copy) = &copy {
            // SAFETY: the user gave as many bytes, and the copy has room for them.
            unsafe {
                ptr::copy_nonoverlapping(lent.data.cast::<u8>(), copy.buffer.data().cast(), bytes)
            };
        }
        lent.free();
        copy
    }

    fn data(&self) -> *mut c_void {
        self.buffer.data()
    }
}

fn bitcast(from: Option<&TF_Tensor>, dtype: c_int, dims: &[i64]) -> Result<TF_Tensor, Failure> {
    let from = from.ok_or_else(|| Failure::null("the tensor to cast from"))?;
    let to = known(dtype).ok_or_else(|| Failure::invalid(format!("{dtype} is no element type")))?;
    let (old, new) = (element_size(from.dtype), element_size(to));
    if old == 0 || new == 0 {
        return Err(Failure::invalid(format!(
            "expected element types of a fixed size, found {} and {to}",
            from.dtype
        )));
    }
    let (have, wanted) = (needed(from.dtype, &from.dims), needed(to, dims));
    if have.is_none() || have != wanted {
        return Err(Failure::invalid(format!(
            "{} {:?} and {to} {dims:?} do not have the same number of bytes",
            from.dtype, from.dims
        )));
    }
    let (dims, buffer) = (dims.to_vec(), from.buffer.clone());
    Ok(TF_Tensor { dtype: to, dims, buffer, bytes: from.bytes, owns: from.owns })
}

api! {
    /// The size of an element in bytes; 0 for types without a fixed size, and for numbers that do not name a type.
    fn TF_DataTypeSize(dtype: c_int) -> usize { known(dtype).map_or(0, element_size) }

    /// Makes a tensor of the user's memory, which `deallocator` frees once. Null if the memory is too small for the shape.
    fn TF_NewTensor(
        dtype: c_int,
        dims: Array<'_, i64>,
        rank: c_int,
        data: *mut c_void,
        length: usize,
        deallocator: Option<Deallocator>,
        argument: *mut c_void,
    ) -> Option<Box<TF_Tensor>> {
        let lent = Lent { data, length, deallocator, argument };
        match known(dtype) {
            Some(dtype) => TF_Tensor::lend(dtype, dims.of(rank), lent).map(Box::new),
            None => {
                lent.free();
                None
            }
        }
    }

    /// Makes a tensor in memory of the library's, of undefined contents. Null if the size is too small for the shape.
    fn TF_AllocateTensor(
        dtype: c_int,
        dims: Array<'_, i64>,
        rank: c_int,
        length: usize,
    ) -> Option<Box<TF_Tensor>> {
        let dtype = known(dtype).filter(|&dtype| !is_opaque(dtype))?;
        let dims = dims.of(rank);
        if needed(dtype, dims)? > length {
            return None;
        }
        TF_Tensor::allocate(dtype, dims, length).ok().map(Box::new)
    }

    /// Deletes a tensor. Its memory stays as long as others refer to it.
    fn TF_DeleteTensor(tensor: Option<Box<TF_Tensor>>) { drop(tensor) }

    /// The tensor itself, if the library owns its memory and nothing else refers to it; else null, and the tensor stays.
    fn TF_TensorMaybeMove(tensor: *mut TF_Tensor) -> *mut TF_Tensor {
        // SAFETY: the caller in C gave a live tensor or null.
        let found = unsafe { tensor.as_ref() };
        match found.is_some_and(|tensor| tensor.owns && tensor.buffer.is_unique()) {
            true => tensor,
            false => ptr::null_mut(),
        }
    }

    /// The element type; 0 for null.
    fn TF_TensorType(tensor: Option<&TF_Tensor>) -> c_int {
        tensor.map_or(0, |tensor| tensor.dtype.0 as c_int)
    }

    /// Gives a tensor another shape, of as many elements.
    fn TF_SetShape(tensor: Option<&mut TF_Tensor>, dims: Array<'_, i64>, rank: c_int) {
        if let Some(tensor) = tensor {
            tensor.dims = dims.of(rank).to_vec();
        }
    }

    /// The number of dimensions; -1 for null.
    fn TF_NumDims(tensor: Option<&TF_Tensor>) -> c_int {
        tensor.map_or(-1, |tensor| tensor.dims.len() as c_int)
    }

    /// The size of a dimension; -1 if the tensor does not have it.
    fn TF_Dim(tensor: Option<&TF_Tensor>, index: c_int) -> i64 {
        let size = |tensor: &TF_Tensor| tensor.dims.get(usize::try_from(index).ok()?).copied();
        tensor.and_then(size).unwrap_or(-1)
    }

    /// The number of bytes of the memory.
    fn TF_TensorByteSize(tensor: Option<&TF_Tensor>) -> usize {
        tensor.map_or(0, |tensor| tensor.bytes)
    }

    /// The address of the elements.
    fn TF_TensorData(tensor: Option<&TF_Tensor>) -> *mut c_void {
        tensor.map_or(ptr::null_mut(), TF_Tensor::data)
    }

    /// The number of elements.
    fn TF_TensorElementCount(tensor: Option<&TF_Tensor>) -> i64 {
        let count = tensor.and_then(|tensor| elements(&tensor.dims));
        count.and_then(|count| i64::try_from(count).ok()).unwrap_or(0)
    }

    /// Makes `to` a tensor of the same memory as `from`, of another element type and shape of as many bytes.
    fn TF_TensorBitcastFrom(
        from: Option<&TF_Tensor>,
        dtype: c_int,
        to: *mut TF_Tensor,
        dims: Array<'_, i64>,
        rank: c_int,
        status: Option<&mut crate::status::TF_Status>,
    ) [status] {
        let made = bitcast(from, dtype, dims.checked(rank, "the dimensions")?)?;
        // SAFETY: the caller in C gave a live tensor or null, which may be `from`; `from` is no longer used.
        let to = unsafe { to.as_mut() };
        *to.ok_or_else(|| Failure::null("the tensor to cast to"))? = made;
        Ok(())
    }

    /// The alignment of memory that tensors use without a copy, in bytes.
    fn TF_TensorDefaultAlignment() -> usize { ALIGNMENT }

    /// Whether the memory is aligned.
    fn TF_TensorIsAligned(tensor: Option<&TF_Tensor>) -> bool {
        tensor.is_some_and(|tensor| (tensor.data() as usize).is_multiple_of(ALIGNMENT))
    }
}
