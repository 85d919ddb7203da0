//! Tensors in requests and answers.

use super::session::MasterSession;
use crate::refusal::Refusal;
use std::collections::HashSet;
use tenon_framework::Tensor;
use tenon_proto::NamedTensorProto;

/// The feeds of a request, in its order.
pub(super) fn read(
    session: &MasterSession,
    feeds: Vec<NamedTensorProto>,
) -> Result<Vec<(String, Tensor)>, Refusal> {
    let one = |feed: NamedTensorProto| {
        let tensor = session.read_tensor(&feed.tensor.unwrap_or_default());
        let tensor = tensor.map_err(|refusal| of_value(&feed.name, refusal))?;
        Ok((feed.name, tensor))
    };
    feeds.into_iter().map(one).collect()
}

/// The fetched tensors, under the requested names.
pub(super) fn write(
    session: &MasterSession,
    names: Vec<String>,
    tensors: &[Tensor],
) -> Result<Vec<NamedTensorProto>, Refusal> {
    let one = |(name, tensor): (String, &Tensor)| {
        let tensor = session.write_tensor(tensor);
        let tensor = tensor.map_err(|refusal| of_value(&name, refusal))?;
        Ok(NamedTensorProto { name, tensor: Some(tensor) })
    };
    names.into_iter().zip(tensors).map(one).collect()
}

fn of_value(name: &str, refusal: Refusal) -> Refusal {
    Refusal { message: format!("the value of '{name}': {}", refusal.message), ..refusal }
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
