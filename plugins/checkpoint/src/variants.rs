//! Variants as the messages that checkpoints have: TensorFlow's `VariantTensorDataProto`. The plugin that owns a variant's type
//! gives its bytes and tensors, and makes it of them.
//!
//! The tensors within have the form of TensorFlow's `Tensor::AsProtoField`, so that equal variants give equal files.

mod lists;

use lists::listed;
use prost::Message;
use tenon_bundle::{BundleError, Strings};
use tenon_proto::{
    TensorProto, VariantTensorDataProto,
    convert::{
        dtype_from_proto, dtype_to_proto, full_shape_from_proto, shape_to_proto, tensor_from_proto,
    },
};
use tenon_sdk::{
    author::{EncodedVariant, Kept, VariantRef},
    growth,
    prelude::*,
};

/// How deep variants may be in each other.
const DEEPEST: usize = 100;

/// The messages of a variant input.
///
/// # Errors
/// What the types of the variants say; a variant holds a resource; variants are in each other too deep.
pub fn messages(c: &ComputeContext<'_>, input: usize) -> Result<Vec<Vec<u8>>, KernelError> {
    let elements = c.variants(input)?;
    growth::try_collected(elements.iter().map(|one| Ok(message(c, one, 0)?.encode_to_vec())))
}

fn message(
    c: &ComputeContext<'_>,
    variant: &VariantRef<'_>,
    depth: usize,
) -> Result<VariantTensorDataProto, KernelError> {
    if depth == DEEPEST {
        return Err(too_deep());
    }
    if variant.is_none() {
        return Ok(VariantTensorDataProto::default());
    }
    let EncodedVariant { type_name, bytes, tensors } = c.encode_variant(variant)?;
    let tensors = tensors.iter().map(|tensor| tensor_message(c, tensor, depth));
    let tensors = growth::try_collected(tensors)?;
    Ok(VariantTensorDataProto { type_name, metadata: bytes, tensors })
}

fn too_deep() -> KernelError {
    KernelError::invalid_argument(format!(
        "variants are in each other to a depth of more than {DEEPEST}: save what they hold"
    ))
}

fn tensor_message(
    c: &ComputeContext<'_>,
    tensor: &Kept,
    depth: usize,
) -> Result<TensorProto, KernelError> {
    let shape = Shape::new(tensor.dims()).map_err(wrong)?;
    let proto = TensorProto {
        dtype: dtype_to_proto(tensor.dtype()),
        tensor_shape: Some(shape_to_proto(&shape.into())),
        ..TensorProto::default()
    };
    match tensor.dtype() {
        DType::VARIANT => {
            let variants = tensor.variants()?;
            let variants = variants.iter().map(|one| message(c, one, depth + 1));
            Ok(TensorProto { variant_val: growth::try_collected(variants)?, ..proto })
        }
        DType::RESOURCE => Err(KernelError::invalid_argument(
            "a variant with a resource cannot be saved: save what the resource holds",
        )),
        _ => listed(tensor, proto),
    }
}

/// Writes a variant output of the messages of a checkpoint.
///
/// # Errors
/// A message is damaged; no plugin has registered the type of a variant; what the types say.
pub fn set(
    c: &ComputeContext<'_>,
    output: usize,
    dims: &[i64],
    messages: &Strings,
) -> Result<(), BundleError> {
    let variants = messages.iter().map(|message| {
        let message = VariantTensorDataProto::decode(message).map_err(wrong)?;
        value(c, &message, 0)
    });
    let mut variants = growth::try_collected(variants)?.into_iter();
    Ok(c.make_variants(output, dims, |_| Ok(variants.next().flatten()))?)
}

fn value(
    c: &ComputeContext<'_>,
    message: &VariantTensorDataProto,
    depth: usize,
) -> Result<Option<tenon_sdk::author::Variant>, KernelError> {
    if depth == DEEPEST {
        return Err(too_deep());
    }
    let tensors = message.tensors.iter().map(|tensor| kept(c, tensor, depth));
    c.decode_variant(&EncodedVariant {
        tensors: growth::try_collected(tensors)?,
        type_name: message.type_name.clone(),
        bytes: growth::copied(&message.metadata)?,
    })
}

/// The tensor of a message.
fn kept(c: &ComputeContext<'_>, proto: &TensorProto, depth: usize) -> Result<Kept, KernelError> {
    let dtype = dtype_from_proto(proto.dtype).map_err(wrong)?;
    if dtype == DType::VARIANT {
        let shape = full_shape_from_proto(proto.tensor_shape.as_ref()).map_err(wrong)?;
        let variants = proto.variant_val.iter().map(|one| value(c, one, depth + 1));
        let variants = growth::try_collected(variants)?;
        return Kept::from_optional_variants(shape.dims(), &variants);
    }
    let tensor = tensor_from_proto(proto).map_err(wrong)?;
    let dims = tensor.shape().dims();
    match tensor.dtype() {
        DType::STRING => Kept::from_strings(dims, &tensor.as_strings().map_err(wrong)?),
        dtype => Kept::from_bytes(dtype, dims, tensor.as_bytes().map_err(wrong)?),
    }
}

/// The error of a message that is no variant.
fn wrong(error: impl std::fmt::Display) -> KernelError {
    KernelError::new(Code::DATA_LOSS, format!("the message of a variant: {error}"))
}
