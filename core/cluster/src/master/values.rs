//! Tensors in requests and answers.

use crate::refusal::Refusal;
use std::collections::HashSet;
use tenon_framework::Tensor;
use tenon_proto::{
    NamedTensorProto, TensorProto,
    convert::{tensor_from_proto, tensor_to_proto},
};

/// The feeds of a request, in its order.
pub(super) fn read(feeds: Vec<NamedTensorProto>) -> Result<Vec<(String, Tensor)>, Refusal> {
    let one = |feed: NamedTensorProto| {
        let tensor = read_one(&feed.tensor.unwrap_or_default());
        let tensor = tensor.map_err(|refusal| Refusal {
            message: format!("the value of '{}': {}", feed.name, refusal.message),
            ..refusal
        })?;
        Ok((feed.name, tensor))
    };
    feeds.into_iter().map(one).collect()
}

/// A value that is fed.
pub(super) fn read_one(proto: &TensorProto) -> Result<Tensor, Refusal> {
    Ok(tensor_from_proto(proto)?)
}

/// The fetched tensors, under the requested names.
pub(super) fn write(
    names: Vec<String>,
    tensors: &[Tensor],
) -> Result<Vec<NamedTensorProto>, Refusal> {
    let one = |(name, tensor): (String, &Tensor)| {
        let tensor = tensor_to_proto(tensor).map_err(|error| {
            let refusal = Refusal::from(error);
            Refusal { message: format!("the value of '{name}': {}", refusal.message), ..refusal }
        })?;
        Ok(NamedTensorProto { name, tensor: Some(tensor) })
    };
    names.into_iter().zip(tensors).map(one).collect()
}

/// Checks that no tensor is named twice: TensorFlow's servers refuse that.
pub(super) fn check_once<'n>(
    names: impl IntoIterator<Item = &'n str>,
    done: &str,
) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    for name in names {
        // `x` is `x:0`.
        let name = name.strip_suffix(":0").unwrap_or(name);
        if !seen.insert(name) {
            return Err(Refusal::invalid(format!(
                "tensor '{name}' is {done} more than once: name it once, and use its value where it is needed"
            )));
        }
    }
    Ok(())
}
