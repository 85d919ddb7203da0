//! Tensors.

use crate::{
    client::{
        handle::Handle,
        info::{TypeNumber, ValueInfo, dims as dimensions, dtype as dtype_of},
        status::Status,
        text::Buffer,
        versioned::Filled,
    },
    fail::Failure,
    raw::{Array, Out, c_count},
    status::c_text,
    tensor::ALIGNMENT,
};
use std::{
    ffi::{CString, c_char, c_int, c_void},
    ptr::{self, NonNull},
    sync::{Arc, LazyLock, OnceLock},
};
use tenon_framework::{
    Code, DType, KernelError, PartialShape, Shape, Tensor as Value,
    abi::MemoryKind,
    element::invalid_bool,
    tensor::{Buffer as Memory, Memory as Source, host_memory},
};
use tenon_proto::convert::tensor_to_proto;

/// A tensor.
pub struct Tensor {
    /// The elements, in host memory.
    pub value: Value,
    /// The elements of a tensor of strings, found at the first question: address and length.
    strings: OnceLock<Vec<(usize, usize)>>,
}

kept! { Tensor => "a tensor" }

/// Frees memory that a caller lent: is called once, with the address, the size in bytes, and the caller's argument. Any thread of
/// the library may call it. It must not call functions of the library.
pub type Release = unsafe extern "C" fn(data: *mut c_void, bytes: usize, argument: *mut c_void);

/// Memory of a caller, for one tensor.
pub struct Lent {
    data: NonNull<c_void>,
    bytes: usize,
    release: Option<Release>,
    argument: *mut c_void,
}

impl Lent {
    /// Memory that `release` ends, with `argument`.
    pub fn new(
        data: NonNull<c_void>,
        bytes: usize,
        release: Release,
        argument: *mut c_void,
    ) -> Lent {
        Lent { data, bytes, release: Some(release), argument }
    }
}

// SAFETY: the caller lends the memory to all threads of the library, as the header says.
unsafe impl Send for Lent {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for Lent {}

// SAFETY: `lend` makes one buffer of it, which is no longer than the memory; `deallocate` is called once, after the last use.
unsafe impl Source for Lent {
    fn kind(&self) -> MemoryKind {
        MemoryKind::HOST
    }

    fn device(&self) -> u64 {
        0
    }

    fn allocate(&self, _: usize) -> Result<NonNull<c_void>, KernelError> {
        Ok(self.data)
    }

    unsafe fn deallocate(&self, _: NonNull<c_void>, _: usize) {
        if let Some(release) = self.release {
            // SAFETY: the caller gave the function for this memory, which the library no longer uses.
            unsafe { release(self.data.as_ptr(), self.bytes, self.argument) };
        }
    }
}

impl Tensor {
    /// A handle for a value.
    ///
    /// # Errors
    /// The value is not in host memory.
    pub fn of(value: Value) -> Result<Handle<Tensor>, Failure> {
        if !value.is_on_host() {
            return Err(tenon_framework::tensor::TensorError::NotOnHost.into());
        }
        Ok(Handle::new(Tensor { value, strings: OnceLock::new() }))
    }

    /// The elements of a tensor of strings.
    fn strings(&self) -> Result<&[(usize, usize)], Failure> {
        if let Some(found) = self.strings.get() {
            return Ok(found);
        }
        let found = self.value.as_strings()?;
        let found = found.iter().map(|text| (text.as_ptr() as usize, text.len())).collect();
        Ok(self.strings.get_or_init(|| found))
    }
}

/// A type of plain bytes, whose elements a caller may write.
fn plain(dtype: DType) -> Result<DType, Failure> {
    let is_plain = dtype.size().is_some() && !dtype.needs_drop() && !dtype.is_reserved();
    match is_plain && !matches!(dtype, DType::RESOURCE | DType::VARIANT) {
        true => Ok(dtype),
        false => Err(Failure::new(
            Code::UNIMPLEMENTED,
            format!("elements of {dtype} are no plain bytes: expected a type of numbers or bools"),
        )),
    }
}

/// The shape, and the bytes that its elements take.
fn sized(dtype: DType, dims: &[i64]) -> Result<(Shape, usize), Failure> {
    let shape = Shape::new(dims)?;
    let bytes = shape.elements().checked_mul(dtype.size().unwrap_or(1));
    let bytes = bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or_else(|| {
        Failure::new(Code::RESOURCE_EXHAUSTED, format!("a tensor of shape {shape} is too large"))
    })?;
    Ok((shape, bytes))
}

/// Fails unless memory of this size has all elements.
fn check_size(dtype: DType, shape: &Shape, needed: usize, given: usize) -> Result<(), Failure> {
    if needed <= given {
        return Ok(());
    }
    Err(Failure::invalid(format!(
        "a tensor of {dtype} and shape {shape}: expected memory of {needed} bytes, found {given}"
    )))
}

/// A tensor in a caller's memory, or in a copy of it where its address is not aligned.
///
/// # Safety
/// The memory is readable and stays, until `release` of it is called.
pub unsafe fn lend(
    dtype: DType,
    shape: Shape,
    lent: Lent,
    needed: usize,
) -> Result<Value, Failure> {
    if !(lent.data.as_ptr() as usize).is_multiple_of(ALIGNMENT) && needed > 0 {
        // SAFETY: the caller gave readable memory of that size.
        let bytes = unsafe { std::slice::from_raw_parts(lent.data.as_ptr().cast::<u8>(), needed) };
        let copy = Value::from_bytes(dtype, shape.dims(), bytes)?;
        // SAFETY: the copy has been made, and no buffer has the memory.
        unsafe { lent.deallocate(lent.data, lent.bytes) };
        return Ok(copy);
    }
    let memory: Arc<dyn Source> = Arc::new(lent);
    let buffer = Memory::allocate(&memory, dtype, shape.elements(), needed)?;
    // SAFETY: the memory has as many elements; every bit pattern is one, and bools are checked below.
    let value = unsafe { Value::from_parts(buffer, dtype, shape) }?;
    value.validate()?;
    Ok(value)
}

/// What a caller lends, before the library owns it: a failure before that gives the memory back untouched.
fn borrow(
    dtype: TypeNumber,
    dims: &[i64],
    data: *mut c_void,
    bytes: usize,
) -> Result<(DType, Shape, usize, NonNull<c_void>), Failure> {
    let dtype = plain(dtype_of(dtype)?)?;
    let (shape, needed) = sized(dtype, dims)?;
    check_size(dtype, &shape, needed, bytes)?;
    let data = match NonNull::new(data) {
        Some(data) => data,
        None if needed == 0 => NonNull::<Aligned>::dangling().cast(),
        None => return Err(Failure::null("the memory of the tensor")),
    };
    check_bools(dtype, data, needed)?;
    Ok((dtype, shape, needed, data))
}

#[repr(align(64))]
struct Aligned;

/// Fails where bools are neither 0 nor 1.
pub fn check_bools(dtype: DType, data: NonNull<c_void>, bytes: usize) -> Result<(), Failure> {
    if dtype != DType::BOOL {
        return Ok(());
    }
    // SAFETY: the caller gave readable memory of that size.
    let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), bytes) };
    match invalid_bool(bytes) {
        None => Ok(()),
        Some(at) => Err(Failure::invalid(format!(
            "element {at} of a tensor of bool: expected 0 or 1, found {}",
            bytes[at]
        ))),
    }
}

fn of_strings(
    dims: &[i64],
    texts: Array<'_, Array<'_, u8>>,
    lengths: Array<'_, usize>,
    count: usize,
) -> Result<Value, Failure> {
    let texts = texts.required(count, "the strings")?;
    let lengths = lengths.required(count, "the lengths of the strings")?;
    let read = |(&text, &length): (&Array<'_, u8>, &usize)| {
        text.required(length, "a string of the tensor").map(<[u8]>::to_vec)
    };
    let values = texts.iter().zip(lengths).map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Value::from_strings(dims, &values)?)
}

api! {
    /// Makes a tensor of zeros in memory of the library's. For strings use tn_tensor_from_strings. The caller deletes it.
    fn tn_tensor_new(
        dtype: TypeNumber,
        dims: Array<'_, i64>,
        rank: c_int,
        status: Option<&mut Status>,
    ) -> Handle<Tensor> [status] {
        let dtype = plain(dtype_of(dtype)?)?;
        let (shape, bytes) = sized(dtype, dimensions(dims, rank)?)?;
        let value = Value::allocate(host_memory(), dtype, shape)?;
        // SAFETY: the fresh buffer has as many bytes; zeros are values of every plain type.
        unsafe { value.buffer().data().cast::<u8>().write_bytes(0, bytes) };
        Tensor::of(value)
    }

    /// Makes a tensor with a copy of elements, which are dense and in the order of rows. "bytes" is the size of the memory. The caller
    /// deletes the tensor.
    fn tn_tensor_copy(
        dtype: TypeNumber,
        dims: Array<'_, i64>,
        rank: c_int,
        data: *const c_void,
        bytes: usize,
        status: Option<&mut Status>,
    ) -> Handle<Tensor> [status] {
        let (dtype, shape, needed, data) = borrow(dtype, dimensions(dims, rank)?, data.cast_mut(), bytes)?;
        // SAFETY: the caller gave readable memory of that size.
        let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), needed) };
        Tensor::of(Value::from_bytes(dtype, shape.dims(), bytes)?)
    }

    /// Makes a tensor in memory of the caller's, without a copy: the memory stays, and does not change while a step or a variable may
    /// read it, until the library has called "release", which may be null. Memory whose address is not a multiple of 64 is
    /// copied, and released at once. Where the function fails, "release" is not called. The caller deletes the tensor.
    fn tn_tensor_lend(
        dtype: TypeNumber,
        dims: Array<'_, i64>,
        rank: c_int,
        data: *mut c_void,
        bytes: usize,
        release: Option<Release>,
        argument: *mut c_void,
        status: Option<&mut Status>,
    ) -> Handle<Tensor> [status] {
        let (dtype, shape, needed, data) = borrow(dtype, dimensions(dims, rank)?, data, bytes)?;
        let lent = Lent { data, bytes, release, argument };
        // SAFETY: the caller in C lends the memory, as the description says.
        Tensor::of(unsafe { lend(dtype, shape, lent, needed) }?)
    }

    /// Makes a tensor of strings, with copies of "count" texts of these lengths. The caller deletes it.
    fn tn_tensor_from_strings(
        dims: Array<'_, i64>,
        rank: c_int,
        texts: Array<'_, Array<'_, u8>>,
        lengths: Array<'_, usize>,
        count: usize,
        status: Option<&mut Status>,
    ) -> Handle<Tensor> [status] {
        Tensor::of(of_strings(dimensions(dims, rank)?, texts, lengths, count)?)
    }

    /// Another handle for the same elements, with another shape of as many elements. The caller deletes it.
    fn tn_tensor_reshape(
        tensor: Handle<Tensor>,
        dims: Array<'_, i64>,
        rank: c_int,
        status: Option<&mut Status>,
    ) -> Handle<Tensor> [status] {
        let tensor = tensor.get()?;
        Tensor::of(tensor.value.reshaped(dimensions(dims, rank)?)?)
    }

    /// Deletes a tensor. Its memory stays as long as a step, a variable or another tensor has it.
    fn tn_tensor_delete(tensor: Handle<Tensor>) -> c_int { tensor.delete() }

    /// The element type; 0 for no tensor.
    fn tn_tensor_dtype(tensor: Handle<Tensor>) -> TypeNumber {
        tensor.get().map_or(0, |tensor| tensor.value.dtype().base().0 as c_int)
    }

    /// The number of dimensions; -1 for no tensor.
    fn tn_tensor_rank(tensor: Handle<Tensor>) -> c_int {
        tensor.get().map_or(-1, |tensor| c_count(tensor.value.shape().rank()))
    }

    /// Dimension number "axis"; -1 where the tensor has none of that number.
    fn tn_tensor_dim(tensor: Handle<Tensor>, axis: c_int) -> i64 {
        let (Ok(tensor), Ok(axis)) = (tensor.get(), usize::try_from(axis)) else { return -1 };
        tensor.value.shape().dims().get(axis).copied().unwrap_or(-1)
    }

    /// Writes the element type and the shape.
    fn tn_tensor_info(
        tensor: Handle<Tensor>,
        info: Filled<'_, ValueInfo>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let tensor = tensor.get()?;
        let shape = PartialShape::new(tensor.value.shape().dims())?;
        info.set(&ValueInfo::of(Some(tensor.value.dtype()), &shape))?;
        Ok(true)
    }

    /// The number of elements; 0 for no tensor.
    fn tn_tensor_elements(tensor: Handle<Tensor>) -> usize {
        tensor.get().map_or(0, |tensor| tensor.value.elements())
    }

    /// The bytes of all elements; 0 for no tensor, and for strings.
    fn tn_tensor_bytes(tensor: Handle<Tensor>) -> usize {
        let Ok(tensor) = tensor.get() else { return 0 };
        if plain(tensor.value.dtype()).is_ok() { tensor.value.byte_len() } else { 0 }
    }

    /// The elements, to read, which stay until the tensor is deleted. Null for strings, resources and variants.
    fn tn_tensor_data(tensor: Handle<Tensor>, status: Option<&mut Status>) -> *const c_void [status] {
        let tensor = tensor.get()?;
        plain(tensor.value.dtype())?;
        Ok(tensor.value.buffer().data().cast_const())
    }

    /// The elements, to write, which stay until the tensor is deleted. TN_FAILED_PRECONDITION if a step, a variable or another
    /// tensor has the memory, too: then make a copy. No step may read the tensor while it is written.
    fn tn_tensor_mutable_data(tensor: Handle<Tensor>, status: Option<&mut Status>) -> *mut c_void [status] {
        let tensor = tensor.get()?;
        plain(tensor.value.dtype())?;
        if !tensor.value.buffer().is_unique() {
            return Err(Failure::new(
                Code::FAILED_PRECONDITION,
                "the memory of the tensor is shared with a step, a variable or another tensor: copy it by tn_tensor_copy",
            ));
        }
        Ok(tensor.value.buffer().data())
    }

    /// Element number "index" of a tensor of strings, in the order of rows: its bytes, which no zero ends, and their number. They stay
    /// until the tensor is deleted.
    fn tn_tensor_string(
        tensor: Handle<Tensor>,
        index: usize,
        length: Out<'_, usize>,
        status: Option<&mut Status>,
    ) -> *const c_char [status] {
        let tensor = tensor.get()?;
        let found = tensor.strings()?;
        let &(address, size) = found.get(index).ok_or_else(|| {
            Failure::invalid(format!("the tensor has {} elements, asked for number {index}", found.len()))
        })?;
        length.set(size);
        Ok(ptr::with_exposed_provenance(address))
    }

    /// The tensor as a TensorProto message. The caller deletes the buffer.
    fn tn_tensor_message(
        tensor: Handle<Tensor>,
        status: Option<&mut Status>,
    ) -> Handle<Buffer> [status] {
        Buffer::of_message(&tensor_to_proto(&tensor.get()?.value)?)
    }

    /// The size of an element in bytes; 0 for strings, resources, variants, and numbers that name no type.
    fn tn_dtype_size(dtype: TypeNumber) -> usize {
        let known = dtype_of(dtype).and_then(plain);
        known.ok().and_then(DType::size).unwrap_or(0)
    }

    /// The name of a type, such as "float"; null for a number that names none. It stays valid for ever.
    fn tn_dtype_name(dtype: TypeNumber) -> *const c_char {
        static NAMES: LazyLock<Vec<CString>> =
            LazyLock::new(|| (0..64).map(|number| c_text(DType(number).name())).collect());
        let known = dtype_of(dtype).ok();
        let name = known.and_then(|dtype| NAMES.get(dtype.0 as usize));
        name.map_or(ptr::null(), |name| name.as_ptr())
    }
}
