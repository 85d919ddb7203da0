//! Tensors of handles, for programs that send handles elsewhere and get them back.

use crate::memory::HostMemory;
use std::sync::Arc;
use tenon_abi::ResourceElement;
use tenon_framework::{DType, KernelError, Shape, Tensor, resource::ResourceRef, tensor::Memory};

/// The resources behind the elements of a tensor of handles; `None` for a handle of nothing.
///
/// # Errors
/// `INVALID_ARGUMENT` for a tensor of another type, or in memory of a device.
pub fn handles_in(tensor: &Tensor) -> Result<Vec<Option<ResourceRef>>, KernelError> {
    if tensor.dtype() != DType::RESOURCE || !tensor.is_on_host() {
        return Err(KernelError::invalid_argument(format!(
            "expected a tensor of handles in host memory, found {}",
            tensor.dtype()
        )));
    }
    let slot = tensor.slot();
    let first = slot.data.cast_const().cast::<ResourceElement>();
    // SAFETY: a tensor of handles has `elements` elements, each null or a reference that lives as long as the tensor.
    let one = |at| unsafe { ResourceRef::clone_raw((*first.add(at)).resource) };
    Ok((0..slot.elements as usize).map(one).collect())
}

/// A tensor of handles of these resources.
///
/// # Errors
/// `INVALID_ARGUMENT` if their number is not that of the elements; `RESOURCE_EXHAUSTED` without memory.
pub fn tensor_of_handles(
    shape: Shape,
    resources: Vec<Option<ResourceRef>>,
) -> Result<Tensor, KernelError> {
    if resources.len() != shape.elements() {
        return Err(KernelError::invalid_argument(format!(
            "expected {} handles for shape {shape}, found {}",
            shape.elements(),
            resources.len()
        )));
    }
    let memory: Arc<dyn Memory> = HostMemory::shared().clone();
    let tensor = Tensor::allocate(&memory, DType::RESOURCE, shape)?;
    let first = tensor.slot().data.cast::<ResourceElement>();
    for (at, resource) in resources.into_iter().enumerate() {
        if let Some(resource) = resource {
            // SAFETY: a new tensor with this many handles of nothing, which nothing else has; it releases the references.
            unsafe { (*first.add(at)).resource = resource.into_raw() };
        }
    }
    Ok(tensor)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::resources::Variable;

    #[test]
    fn handles_come_back_and_are_counted() {
        let resource = ResourceRef::new(Variable::new("v", DType::FLOAT));
        let shape = Shape::new(&[2]).unwrap();
        let tensor = tensor_of_handles(shape, vec![Some(resource.clone()), None]).unwrap();
        let found = handles_in(&tensor).unwrap();
        assert!(found[0].as_ref().is_some_and(|found| found.is(&resource)) && found[1].is_none());
        drop(tensor);
        assert!(found[0].as_ref().is_some_and(|found| Variable::of(found).is_some()));
        let error = tensor_of_handles(shape, vec![None]).unwrap_err();
        assert!(error.message.contains("expected 2 handles"), "{}", error.message);
        let floats = Tensor::scalar(1f32).unwrap();
        assert!(handles_in(&floats).err().unwrap().message.contains("found float"));
    }
}
