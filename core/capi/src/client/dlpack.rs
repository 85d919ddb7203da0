//! DLPack: memory that is shared with other libraries.
//!
//! The structs are those of DLPack 1.0 (`dlpack.h`): the managed tensor with a version, and the older one without.

use crate::{
    client::{
        handle::Handle,
        status::Status,
        tensor::{Lent, Tensor, lend},
    },
    fail::Failure,
};
use std::{
    ffi::c_void,
    ptr::{self, NonNull},
    slice,
    sync::Arc,
};
use tenon_framework::{Code, DType, Shape, Tensor as Value, abi::MAX_RANK, tensor::host_memory};

/// DLPack's number of host memory.
const HOST: i32 = 1;
/// Host memory that a GPU reads directly.
const PINNED: i32 = 3;
/// The version that is written and understood.
const VERSION: (u32, u32) = (1, 0);
/// The flag of memory that its consumer must not write.
const READ_ONLY: u64 = 1;

/// `DLTensor`.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: (i32, i32),
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
pub struct DLManagedTensor {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
pub struct DLManagedTensorVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// What an exported tensor points to.
struct Exported {
    _tensor: Arc<Tensor>,
    sizes: Vec<i64>,
    strides: Vec<i64>,
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

unsafe extern "C" fn delete_plain(managed: *mut DLManagedTensor) {
    // SAFETY: a consumer calls this once with what `tn_tensor_to_dlpack_unversioned` made.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: the context is the box that was made for it.
    drop(unsafe { Box::from_raw(managed.context.cast::<Exported>()) });
}

unsafe extern "C" fn delete_versioned(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: a consumer calls this once with what `tn_tensor_to_dlpack` made.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: the context is the box that was made for it.
    drop(unsafe { Box::from_raw(managed.context.cast::<Exported>()) });
}

/// The description of a tensor, and what it points to.
fn export(tensor: &Arc<Tensor>) -> Result<(DlTensor, *mut c_void), Failure> {
    let value = &tensor.value;
    let dtype = value.dtype().base();
    let kind = KINDS.iter().find(|(_, types)| types.contains(&dtype));
    let Some((&(code, _), Ok(bits))) = kind.map(|kind| (kind, u8::try_from(dtype.bits()))) else {
        return Err(Failure::new(
            Code::UNIMPLEMENTED,
            format!("elements of {dtype} have no type in DLPack"),
        ));
    };
    let sizes = value.shape().dims().to_vec();
    let mut strides = vec![1i64; sizes.len()];
    for at in (1..sizes.len()).rev() {
        strides[at - 1] = strides[at].saturating_mul(sizes[at].max(1));
    }
    let mut exported = Box::new(Exported { _tensor: Arc::clone(tensor), sizes, strides });
    let shown = DlTensor {
        data: value.buffer().data(),
        device: (HOST, 0),
        ndim: exported.sizes.len() as i32,
        code,
        bits,
        lanes: 1,
        shape: exported.sizes.as_mut_ptr(),
        strides: exported.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    Ok((shown, Box::into_raw(exported).cast()))
}

/// The type and the shape that a producer says.
fn described(shown: &DlTensor) -> Result<(DType, Shape), Failure> {
    let (kind, _) = shown.device;
    if kind != HOST && kind != PINNED {
        return Err(Failure::new(
            Code::UNIMPLEMENTED,
            format!("the memory is on a device (DLPack's type {kind}): copy it to the host first"),
        ));
    }
    let (code, bits, lanes) = (shown.code, shown.bits, shown.lanes);
    let kind = KINDS.iter().find(|(kind, _)| *kind == code).filter(|_| lanes == 1);
    let dtype = kind.and_then(|(_, types)| types.iter().find(|it| it.bits() == u32::from(bits)));
    let dtype = *dtype.ok_or_else(|| {
        Failure::new(
            Code::UNIMPLEMENTED,
            format!("elements of DLPack's type (code {code}, {bits} bits, {lanes} lanes) are not supported"),
        )
    })?;
    let rank = usize::try_from(shown.ndim).ok().filter(|&rank| rank <= MAX_RANK);
    let rank = rank.ok_or_else(|| {
        Failure::invalid(format!("{} dimensions: expected {MAX_RANK} at most", shown.ndim))
    })?;
    let dims = match (rank, shown.shape.is_null()) {
        (0, _) => &[][..],
        (_, true) => return Err(Failure::null("the array of the tensor's sizes")),
        // SAFETY: the producer gives as many sizes as dimensions.
        (rank, false) => unsafe { slice::from_raw_parts(shown.shape, rank) },
    };
    Ok((dtype, Shape::new(dims)?))
}

/// Whether the elements are dense and in the order of rows.
fn is_dense(shown: &DlTensor, shape: &Shape) -> bool {
    if shown.strides.is_null() || shape.rank() == 0 {
        return true;
    }
    // SAFETY: the producer gives as many strides as dimensions.
    let strides = unsafe { slice::from_raw_parts(shown.strides, shape.rank()) };
    let mut expected = 1i64;
    shape.dims().iter().zip(strides).rev().all(|(&dim, &stride)| {
        let fits = dim == 1 || stride == expected;
        expected = expected.saturating_mul(dim);
        fits
    })
}

/// A tensor in a producer's memory. `release` ends the manager, with `argument`.
fn import(
    shown: &DlTensor,
    release: unsafe extern "C" fn(*mut c_void, usize, *mut c_void),
    argument: *mut c_void,
) -> Result<Value, Failure> {
    let (dtype, shape) = described(shown)?;
    let bytes = shape.elements().checked_mul(dtype.size().unwrap_or(1));
    let bytes = bytes.ok_or_else(|| Failure::invalid("the sizes of the tensor overflow"))?;
    let offset = usize::try_from(shown.byte_offset);
    let offset = offset.map_err(|_| Failure::invalid("the offset of the memory is too large"))?;
    if bytes == 0 {
        // SAFETY: nothing of the producer's memory is used.
        unsafe { release(ptr::null_mut(), 0, argument) };
        return Ok(Value::allocate(host_memory(), dtype, shape)?);
    }
    if !is_dense(shown, &shape) {
        return Err(Failure::new(
            Code::UNIMPLEMENTED,
            "the elements are not dense and in the order of rows: export a contiguous copy",
        ));
    }
    let Some(data) =
        NonNull::new(shown.data.wrapping_byte_add(offset)).filter(|_| !shown.data.is_null())
    else {
        return Err(Failure::null("the memory of the tensor"));
    };
    let lent = Lent::new(data, bytes, release, argument);
    crate::client::tensor::check_bools(dtype, data, bytes)?;
    // SAFETY: the producer says that the memory has this type and shape, and keeps it until its manager ends.
    unsafe { lend(dtype, shape, lent, bytes) }
}

unsafe extern "C" fn end_plain(_: *mut c_void, _: usize, managed: *mut c_void) {
    let managed = managed.cast::<DLManagedTensor>();
    // SAFETY: the manager is the producer's, and this is called once, after the last use of its memory.
    unsafe {
        if let Some(deleter) = (*managed).deleter {
            deleter(managed);
        }
    }
}

unsafe extern "C" fn end_versioned(_: *mut c_void, _: usize, managed: *mut c_void) {
    let managed = managed.cast::<DLManagedTensorVersioned>();
    // SAFETY: as in `end_plain`.
    unsafe {
        if let Some(deleter) = (*managed).deleter {
            deleter(managed);
        }
    }
}

api! {
    /// Exports a tensor as a DLManagedTensorVersioned of DLPack 1.0, without a copy. It is marked read-only. The consumer calls its
    /// deleter, before or after the tensor is deleted.
    fn tn_tensor_to_dlpack(
        tensor: Handle<Tensor>,
        status: Option<&mut Status>,
    ) -> *mut DLManagedTensorVersioned [status] {
        let (tensor, context) = export(&tensor.get()?)?;
        let (major, minor) = VERSION;
        let deleter = Some(delete_versioned as unsafe extern "C" fn(_));
        Ok(Box::into_raw(Box::new(DLManagedTensorVersioned {
            major, minor, context, deleter, flags: READ_ONLY, tensor,
        })))
    }

    /// Exports a tensor as a DLManagedTensor of older versions of DLPack, without a copy. Its consumer must not write to the memory,
    /// which these versions cannot say. The consumer calls its deleter, before or after the tensor is deleted.
    fn tn_tensor_to_dlpack_unversioned(
        tensor: Handle<Tensor>,
        status: Option<&mut Status>,
    ) -> *mut DLManagedTensor [status] {
        let (tensor, context) = export(&tensor.get()?)?;
        let deleter = Some(delete_plain as unsafe extern "C" fn(_));
        Ok(Box::into_raw(Box::new(DLManagedTensor { tensor, context, deleter })))
    }

    /// Makes a tensor of a DLManagedTensorVersioned in host memory, without a copy where its address is a multiple of 64. On success
    /// the library calls its deleter once the memory is no longer used; on failure the caller keeps it. The caller deletes the
    /// tensor.
    fn tn_tensor_from_dlpack(
        managed: *mut DLManagedTensorVersioned,
        status: Option<&mut Status>,
    ) -> Handle<Tensor> [status] {
        // SAFETY: the caller in C gave null or a live manager.
        let found = unsafe { managed.as_ref() }.ok_or_else(|| Failure::null("the managed tensor"))?;
        if found.major > VERSION.0 {
            return Err(Failure::new(Code::UNIMPLEMENTED, format!(
                "the tensor is of DLPack {}.{}: expected version {} at most", found.major, found.minor, VERSION.0
            )));
        }
        Tensor::of(import(&found.tensor, end_versioned, managed.cast())?)
    }

    /// As tn_tensor_from_dlpack, for a DLManagedTensor of older versions of DLPack.
    fn tn_tensor_from_dlpack_unversioned(
        managed: *mut DLManagedTensor,
        status: Option<&mut Status>,
    ) -> Handle<Tensor> [status] {
        // SAFETY: the caller in C gave null or a live manager.
        let found = unsafe { managed.as_ref() }.ok_or_else(|| Failure::null("the managed tensor"))?;
        Tensor::of(import(&found.tensor, end_plain, managed.cast())?)
    }
}
