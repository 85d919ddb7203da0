//! Tensors that a plugin keeps beyond a call, such as elements of its queues.
//!
//! A [`KeptTensor`] is a boxed [`Tensor`]: one counted reference to the buffer, and the shape.
//! [`keep_entry`] creates it, [`view_entry`] shows it, and [`release_entry`] drops it.

use crate::{
    call::Value,
    memory::{HostMemory, copy_of_slot},
};
use std::sync::Arc;
use tenon_abi::{KeptTensor, Slot};
use tenon_framework::{Tensor, tensor::Memory};

/// `Host::keep`: null for a slot that shows nothing, or without memory for a copy.
///
/// # Safety
/// - `slot` is null or a filled slot: of a running call, of a kept tensor, of a locked variable, or
///   of elements of the caller's own.
pub unsafe extern "C" fn keep_entry(slot: *const Slot) -> *mut KeptTensor {
    // SAFETY: the kernel passes null or a filled slot, which is valid during the call.
    let Some(slot) = (unsafe { slot.as_ref() }) else { return std::ptr::null_mut() };
    let tensor = Value::tensor(slot).or_else(|| {
        let memory: Arc<dyn Memory> = HostMemory::shared().clone();
        // SAFETY: a slot without a buffer shows elements of the caller's own.
        slot.buffer.is_null().then(|| unsafe { copy_of_slot(slot, &memory) }.ok()).flatten()
    });
    match tensor {
        Some(tensor) => Box::into_raw(Box::new(tensor)).cast(),
        None => std::ptr::null_mut(),
    }
}

/// `Host::view`: fills a slot that is valid while the tensor is kept; the empty slot for null.
///
/// # Safety
/// - `kept` is null or came from [`keep_entry`] and has not been released.
/// - `result` is null or valid for writes.
pub unsafe extern "C" fn view_entry(kept: *const KeptTensor, result: *mut Slot) {
    if result.is_null() {
        return;
    }
    // SAFETY: the kernel passes null or a tensor from `keep_entry` that it has not released, and a
    // valid `result`.
    unsafe {
        let tensor = kept.cast::<Tensor>().as_ref();
        result.write(tensor.map_or(Slot::EMPTY, Tensor::slot));
    }
}

/// `Host::release`: null is allowed.
///
/// # Safety
/// - `kept` is null or came from [`keep_entry`].
/// - It is not used any more.
pub unsafe extern "C" fn release_entry(kept: *mut KeptTensor) {
    if !kept.is_null() {
        // SAFETY: the kernel returns what it got from `keep_entry`, and does not use it any more.
        drop(unsafe { Box::from_raw(kept.cast::<Tensor>()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_tensor_outlives_the_one_it_came_from() {
        let tensor = Tensor::from_slice(&[2], &[1.5f32, 2.5]).unwrap();
        let slot = tensor.slot();
        // SAFETY: a filled slot; the kept tensor is released once.
        unsafe {
            let kept = keep_entry(&slot);
            assert!(!kept.is_null());
            assert!(!tensor.buffer().is_unique());
            drop(tensor);
            let mut view = Slot::EMPTY;
            view_entry(kept, &mut view);
            assert_eq!(view.shape(), &[2]);
            assert_eq!(*view.data.cast::<[f32; 2]>(), [1.5, 2.5]);
            release_entry(kept);
        }
    }

    #[test]
    fn elements_of_a_plugin_s_own_are_copied() {
        let tensor = Tensor::from_strings(&[2], &["a", "bc"]).unwrap();
        // SAFETY: one initialised string, with dimensions that live; the kept tensor is released once.
        unsafe {
            let dims = [1i64, 1];
            let mut slot = Slot { buffer: std::ptr::null_mut(), ..tensor.slot() };
            slot.data = slot.data.cast::<tenon_abi::StringElement>().add(1).cast();
            (slot.dims, slot.rank, slot.elements) = (dims.as_ptr(), 2, 1);
            let kept = keep_entry(&slot);
            drop(tensor);
            let copy = &*kept.cast::<Tensor>();
            assert_eq!(copy.as_strings().unwrap(), [b"bc"]);
            assert_eq!(copy.shape().dims(), [1, 1]);
            release_entry(kept);
        }
    }

    #[test]
    fn nothing_is_kept_of_a_slot_that_shows_nothing() {
        // SAFETY: null and empty slots are allowed.
        unsafe {
            assert!(keep_entry(&Slot::EMPTY).is_null());
            assert!(keep_entry(std::ptr::null()).is_null());
            let mut view = Tensor::scalar(1i32).unwrap().slot();
            view_entry(std::ptr::null(), &mut view);
            assert!(view.data.is_null());
            release_entry(std::ptr::null_mut());
        }
    }
}
