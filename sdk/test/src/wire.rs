//! What passes between a test and the command: a length of eight bytes, little-endian, then a message.
//!
//! The command speaks first: a [`Ready`] once the plugins are loaded. Then each [`Request`] gets a [`Reply`].

use prost::Message;
use std::io::{self, Read, Write};
use tenon_framework::{Code, KernelError, Tensor};
use tenon_proto::{
    NodeDef, TensorProto,
    convert::{tensor_from_proto, tensor_to_proto},
};

/// The version of these messages.
pub const VERSION: u32 = 1;
/// A message has fewer bytes.
const MOST_BYTES: u64 = 1 << 31;

/// The command is ready.
#[derive(Clone, PartialEq, Message)]
pub struct Ready {
    /// [`VERSION`].
    #[prost(uint32, tag = "1")]
    pub version: u32,
}

/// One call.
#[derive(Clone, PartialEq, Message)]
pub struct Request {
    /// Op, name, device and attributes; the attribute `_kernel` asks for a label.
    #[prost(message, optional, tag = "1")]
    pub node: Option<NodeDef>,
    /// The inputs.
    #[prost(message, repeated, tag = "2")]
    pub inputs: Vec<TensorProto>,
}

/// How a call ended.
#[derive(Clone, PartialEq, Message)]
pub struct Reply {
    /// The outputs, where it ended well.
    #[prost(message, repeated, tag = "1")]
    pub outputs: Vec<TensorProto>,
    /// Else the number of a code that is not OK.
    #[prost(int32, tag = "2")]
    pub code: i32,
    /// And a message.
    #[prost(string, tag = "3")]
    pub message: String,
}

impl Reply {
    /// The reply of a call.
    pub fn of(result: Result<Vec<Tensor>, KernelError>) -> Reply {
        let outputs = result.and_then(|outputs| tensors_to_proto(&outputs));
        match outputs {
            Ok(outputs) => Reply { outputs, ..Reply::default() },
            Err(error) => Reply { code: error.code.0, message: error.message, ..Reply::default() },
        }
    }

    /// How the call ended.
    ///
    /// # Errors
    /// What the kernel said; `INTERNAL` for outputs that cannot be read.
    pub fn result(&self) -> Result<Vec<Tensor>, KernelError> {
        match Code(self.code) {
            Code::OK => tensors_from_proto(&self.outputs),
            code => Err(KernelError::new(code, self.message.clone())),
        }
    }
}

/// Tensors as messages.
///
/// # Errors
/// `INTERNAL` for elements that have no such form.
pub fn tensors_to_proto(tensors: &[Tensor]) -> Result<Vec<TensorProto>, KernelError> {
    let protos = tensors.iter().map(tensor_to_proto);
    protos.collect::<Result<_, _>>().map_err(|error| KernelError::internal(error.to_string()))
}

/// Tensors of messages.
///
/// # Errors
/// `INTERNAL` for a message that is not a tensor.
pub fn tensors_from_proto(protos: &[TensorProto]) -> Result<Vec<Tensor>, KernelError> {
    let tensors = protos.iter().map(tensor_from_proto);
    tensors.collect::<Result<_, _>>().map_err(|error| KernelError::internal(error.to_string()))
}

/// Writes a message.
///
/// # Errors
/// Those of the pipe.
pub fn write(mut to: impl Write, message: &impl Message) -> io::Result<()> {
    let bytes = message.encode_to_vec();
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(&bytes)?;
    to.flush()
}

/// Reads a message; `None` where the other side has closed the pipe.
///
/// # Errors
/// Those of the pipe; a message that is cut off, too long, or of another kind.
pub fn read<M: Message + Default>(mut from: impl Read) -> io::Result<Option<M>> {
    let mut length = [0; 8];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u64::from_le_bytes(length);
    if length >= MOST_BYTES {
        let message = format!("expected a message of less than {MOST_BYTES} bytes, found {length}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    M::decode(&*bytes).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_round() {
        let inputs = [Tensor::from_slice(&[2], &[1.5f32, -2.0]).unwrap()];
        let node = NodeDef { op: "Relu".to_owned(), ..NodeDef::default() };
        let request = Request { node: Some(node), inputs: tensors_to_proto(&inputs).unwrap() };
        let mut bytes = Vec::new();
        write(&mut bytes, &request).unwrap();
        let mut from = &*bytes;
        assert_eq!(read::<Request>(&mut from).unwrap(), Some(request));
        assert_eq!(read::<Request>(&mut from).unwrap(), None);
    }

    #[test]
    fn a_message_that_is_cut_off_or_too_long_is_an_error() {
        let mut bytes = Vec::new();
        write(&mut bytes, &Reply { code: 3, ..Reply::default() }).unwrap();
        bytes.pop();
        assert!(read::<Reply>(&*bytes).is_err());
        let long = u64::MAX.to_le_bytes();
        let error = read::<Reply>(&long[..]).unwrap_err().to_string();
        assert!(error.contains("less than 2147483648 bytes"), "{error}");
    }

    #[test]
    fn an_error_keeps_code_and_message() {
        let error = KernelError::invalid_argument("x: expected rank 1");
        let reply = Reply::of(Err(error.clone()));
        let back = reply.result().unwrap_err();
        assert_eq!((back.code, back.message), (error.code, error.message));
    }
}
