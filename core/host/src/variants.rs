//! Variants as bytes and tensors, by the names of their types, for storing them or sending them to
//! another process.

use crate::{call::Value, memory::HostMemory, sink::MessageSink};
use std::{ffi::c_void, ptr, sync::Arc};
use tenon_abi::{Code, DType, Slot, Str, TensorGive, VariantElement, VariantParts, VariantTable};
use tenon_framework::{KernelError, Shape, Tensor, registry::Registry, tensor::Memory};

/// An encoded variant: TensorFlow's `VariantTensorDataProto`. Without a type it is an element
/// without a value.
#[derive(Debug, Clone, Default)]
pub struct EncodedVariant {
    /// Name of the type.
    pub type_name: String,
    /// Bytes in the type's own format.
    pub metadata: Vec<u8>,
    /// Tensors, in host memory.
    pub tensors: Vec<Tensor>,
}

/// Receives a tensor of a value that is being encoded.
///
/// # Safety
/// - `parts` is the list that [`encode_value`] passed.
/// - `tensor` is a filled slot.
unsafe extern "C" fn take(parts: *mut VariantParts, tensor: *const Slot) -> Code {
    // SAFETY: `encode_value` passed the list, which outlives the type's entry; the type passes a
    // filled slot.
    unsafe {
        let Some(tensor) = tensor.as_ref().and_then(Value::tensor) else {
            return Code::INVALID_ARGUMENT;
        };
        if !tensor.is_on_host() {
            return Code::UNIMPLEMENTED;
        }
        (*parts.cast::<Vec<Tensor>>()).push(tensor);
    }
    Code::OK
}

/// Encodes the elements of a variant tensor.
///
/// # Errors
/// `INVALID_ARGUMENT` for a tensor of another type; `UNIMPLEMENTED` if a type cannot encode, or its
/// tensors are in memory of a device; a type's own error.
pub fn encode(tensor: &Tensor) -> Result<Vec<EncodedVariant>, KernelError> {
    if tensor.dtype() != DType::VARIANT || !tensor.is_on_host() {
        return Err(KernelError::invalid_argument(format!(
            "expected a tensor of variants in host memory, found {}",
            tensor.dtype()
        )));
    }
    let slot = tensor.slot();
    let first = slot.data.cast_const().cast::<VariantElement>();
    // SAFETY: a tensor of variants has `elements` elements, whose values live as long as the
    // tensor.
    (0..slot.elements as usize).map(|at| unsafe { encode_value(*first.add(at)) }).collect()
}

/// # Safety
/// - The element is empty, or has a live value of its table.
pub(crate) unsafe fn encode_value(element: VariantElement) -> Result<EncodedVariant, KernelError> {
    // SAFETY: the caller guarantees an element of a live tensor, whose table is null or filled;
    // tables live as long as the process.
    let table = unsafe { element.table.as_ref() }.filter(|_| !element.value.is_null());
    let Some(table) = table else { return Ok(EncodedVariant::default()) };
    // SAFETY: the table's name lives as long as it does.
    let type_name = unsafe { table.type_name.text() }.unwrap_or_default().to_owned();
    let entry = table.encode.ok_or_else(|| cannot(&type_name, "encoded"))?;
    let (mut tensors, sink) = (Vec::<Tensor>::new(), MessageSink::new());
    let parts = (&raw mut tensors).cast();
    // SAFETY: the type's own entry with a live value, a list for `take`, and a sink.
    let code =
        unsafe { entry(element.value, parts, TensorGive { run: Some(take) }, sink.as_sink()) };
    if !code.is_ok() {
        return Err(sink.check(code).err().unwrap_or_else(|| cannot(&type_name, "encoded")));
    }
    let metadata = sink.take_bytes().unwrap_or_default();
    Ok(EncodedVariant { type_name, metadata, tensors })
}

/// Decodes a tensor of variants of this shape; their types must be registered in the registry.
///
/// # Errors
/// `INVALID_ARGUMENT` if the number of values is not the number of elements; `NOT_FOUND` for a type
/// that is not registered; a type's own error.
pub fn decode(
    registry: &Registry,
    shape: Shape,
    values: &[EncodedVariant],
) -> Result<Tensor, KernelError> {
    if values.len() != shape.elements() {
        return Err(KernelError::invalid_argument(format!(
            "expected {} variants for shape {shape}, found {}",
            shape.elements(),
            values.len()
        )));
    }
    let memory: Arc<dyn Memory> = HostMemory::shared().clone();
    let tensor = Tensor::allocate(&memory, DType::VARIANT, shape)?;
    let first = tensor.slot().data.cast::<VariantElement>();
    for (at, value) in values.iter().enumerate() {
        let slots: Vec<Slot> = value.tensors.iter().map(Tensor::slot).collect();
        // SAFETY: the slots are of tensors that `value` holds.
        let element = unsafe { decode_value(registry, &value.type_name, &value.metadata, &slots)? };
        if let Some(element) = element {
            // SAFETY: a new tensor with this many empty elements, which nothing else has; it drops
            // its values.
            unsafe { first.add(at).write(element) };
        }
    }
    Ok(tensor)
}

/// Makes an element of its encoded form; `None` for one without a value.
///
/// # Safety
/// - The slots are filled, and show tensors in host memory that live during the call.
pub(crate) unsafe fn decode_value(
    registry: &Registry,
    type_name: &str,
    metadata: &[u8],
    tensors: &[Slot],
) -> Result<Option<VariantElement>, KernelError> {
    if type_name.is_empty() {
        return Ok(None);
    }
    let def = registry.variant(type_name).ok_or_else(|| {
        KernelError::new(
            Code::NOT_FOUND,
            format!(
                "no plugin has registered the type of variants '{type_name}': load the one that makes its values"
            ),
        )
    })?;
    let table: &'static VariantTable = def.table;
    let entry = table.decode.ok_or_else(|| cannot(&def.name, "decoded"))?;
    let (mut made, sink): (*mut c_void, _) = (ptr::null_mut(), MessageSink::new());
    // SAFETY: the type's own entry with bytes and slots that are valid during the call, a valid
    // result pointer and a sink.
    let code = unsafe {
        entry(Str::from_bytes(metadata), tensors.as_ptr(), tensors.len(), &mut made, sink.as_sink())
    };
    sink.check(code)?;
    if made.is_null() {
        return Err(KernelError::internal(format!(
            "a variant of type {}: its type said OK and made no value",
            def.name
        )));
    }
    Ok(Some(VariantElement { value: made, table }))
}

fn cannot(type_name: &str, what: &str) -> KernelError {
    KernelError::unimplemented(format!("a variant of type {type_name} cannot be {what}"))
}
