//! Tensors that messages hold.

use crate::{buffer::TF_Buffer, fail::Failure, status::TF_Status, tensor::TF_Tensor};
use tenon_proto::{TensorProto, convert::tensor_from_proto};

api! {
    /// Makes `to` the tensor of a `TensorProto`. Nothing changes if the message is refused.
    fn TF_TensorFromProto(
        from: Option<&TF_Buffer>,
        to: Option<&mut TF_Tensor>,
        status: Option<&mut TF_Status>,
    ) [status] {
        let from = from.ok_or_else(|| Failure::null("the buffer with the message"))?;
        let to = to.ok_or_else(|| Failure::null("the tensor for the result"))?;
        let message: TensorProto = from.message()?;
        *to = TF_Tensor::of(&tensor_from_proto(&message)?)?;
        Ok(())
    }
}
