//! Copies tensors in host memory, for every element type.

use crate::sink::MessageSink;
use std::{ffi::c_void, sync::Arc};
use tenon_abi::{DType, ResourceElement, Slot, Str, StringElement, VariantElement, slot_flags};
use tenon_framework::{
    KernelError, Shape, Tensor,
    resource::ResourceRef,
    tensor::{Memory, set_string},
};

/// Copies a tensor to `memory`, which the host addresses. Strings and variants are cloned; of
/// resources, the references are.
///
/// # Errors
/// Out of memory; a tensor on a device; the error of a variant's own `clone`.
pub fn copy_on_host(tensor: &Tensor, memory: &Arc<dyn Memory>) -> Result<Tensor, KernelError> {
    if !tensor.is_on_host() || !memory.kind().is_host_address() {
        return Err(KernelError::internal("a copy on the host was asked for memory of a device"));
    }
    // SAFETY: the tensor is on the host and holds its elements.
    unsafe { copy_elements(tensor.buffer().data(), tensor.dtype(), *tensor.shape(), memory) }
}

/// A tensor with copies of the elements that a slot without a buffer shows.
///
/// # Errors
/// `INVALID_ARGUMENT` for a slot that shows no elements in host memory; as [`copy_on_host`].
///
/// # Safety
/// - The slot is empty, or shows initialised elements and their dimensions.
pub unsafe fn copy_of_slot(slot: &Slot, memory: &Arc<dyn Memory>) -> Result<Tensor, KernelError> {
    let refers = slot.flags & slot_flags::REF != 0;
    if slot.data.is_null() || refers || !slot.memory.is_host_address() {
        return Err(KernelError::invalid_argument("the slot shows no elements in host memory"));
    }
    // SAFETY: a slot that is not empty shows its dimensions.
    let shape = Shape::new(unsafe { slot.shape() })
        .map_err(|error| KernelError::new(error.code(), error.to_string()))?;
    // SAFETY: it shows as many initialised elements.
    unsafe { copy_elements(slot.data, slot.dtype, shape, memory) }
}

/// # Safety
/// - `from` shows as many initialised elements of this type as the shape has.
unsafe fn copy_elements(
    from: *const c_void,
    dtype: DType,
    shape: Shape,
    memory: &Arc<dyn Memory>,
) -> Result<Tensor, KernelError> {
    let copy = Tensor::allocate(memory, dtype, shape)?;
    let (to, count) = (copy.buffer().data(), copy.elements());
    // SAFETY: both hold `count` elements of this type; those of the copy are empty or undefined,
    // and nothing else uses them.
    unsafe {
        match dtype.base() {
            DType::STRING => copy_strings(from.cast(), to.cast(), count)?,
            DType::RESOURCE => copy_resources(from.cast(), to.cast(), count),
            DType::VARIANT => copy_variants(from.cast(), to.cast(), count)?,
            _ => std::ptr::copy_nonoverlapping::<u8>(from.cast(), to.cast(), copy.byte_len()),
        }
    }
    Ok(copy)
}

/// # Safety
/// - `from` and `to` point to `count` initialised elements each.
/// - They do not overlap.
unsafe fn copy_strings(
    from: *const StringElement,
    to: *mut StringElement,
    count: usize,
) -> Result<(), KernelError> {
    for at in 0..count {
        // SAFETY: the caller guarantees `count` initialised elements at `from` and at `to`, without
        // overlap.
        let code = unsafe {
            let element = &*from.add(at);
            let value = Str { ptr: element.data, len: element.len as usize };
            set_string(to.add(at), value.bytes())
        };
        if !code.is_ok() {
            return Err(KernelError::new(code, "no memory for the value of a string"));
        }
    }
    Ok(())
}

/// # Safety
/// - `from` and `to` point to `count` initialised elements each; those at `to` are empty.
unsafe fn copy_resources(from: *const ResourceElement, to: *mut ResourceElement, count: usize) {
    for at in 0..count {
        // SAFETY: the caller guarantees `count` initialised elements at each; one that is not null
        // is a live reference.
        unsafe {
            if let Some(resource) = ResourceRef::clone_raw((*from.add(at)).resource) {
                (*to.add(at)).resource = resource.into_raw();
            }
        }
    }
}

/// # Safety
/// - `from` and `to` point to `count` initialised elements each; those at `to` are empty.
unsafe fn copy_variants(
    from: *const VariantElement,
    to: *mut VariantElement,
    count: usize,
) -> Result<(), KernelError> {
    for at in 0..count {
        // SAFETY: the caller guarantees `count` initialised elements at each; a value's table lives
        // as long as its library.
        unsafe {
            let element = *from.add(at);
            if element.value.is_null() {
                continue;
            }
            let entry = element.table.as_ref().and_then(|table| table.clone).ok_or_else(|| {
                KernelError::unimplemented("a variant's type has no `clone`: it cannot be copied")
            })?;
            let sink = MessageSink::new();
            let mut value = std::ptr::null_mut();
            sink.check(entry(element.value, &mut value, sink.as_sink()))?;
            *to.add(at) = VariantElement { value, table: element.table };
        }
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use tenon_framework::tensor::host_memory;

    #[test]
    fn elements_of_every_kind_are_copied_and_the_copy_stands_alone() {
        let numbers = Tensor::from_slice(&[3], &[1i16, 2, 3]).unwrap();
        let copy = copy_on_host(&numbers, host_memory()).unwrap();
        assert_eq!(copy.as_slice::<i16>().unwrap(), &[1, 2, 3]);
        assert_ne!(copy.buffer().data(), numbers.buffer().data());
        let strings = Tensor::from_strings(&[2, 1], &["a", ""]).unwrap();
        let copy = copy_on_host(&strings, host_memory()).unwrap();
        drop(strings);
        assert_eq!(copy.as_strings().unwrap(), [&b"a"[..], b""]);
        assert_eq!(copy.shape().dims(), &[2, 1]);
    }
}
