//! Reading and writing whole messages, with limits.

use prost::Name;

use crate::{GraphDef, ProtoError};

/// Most bytes of an encoded message, 2 GiB less one: protobuf's limit, which other readers have
/// too.
pub const MAX_MESSAGE_BYTES: usize = 0x7fff_ffff;

/// Reads a message from its encoded form.
///
/// Untrusted data is safe to pass: invalid data gives an error, and messages nested more than 100
/// deep (prost's limit, and protobuf's usual one) are refused. Fields that the message does not
/// define are skipped. Memory is limited only by the length of `bytes`: a repeated empty message
/// takes two bytes on the wire and about a hundred in memory.
///
/// # Errors
/// [`ProtoError::TooLarge`] beyond [`MAX_MESSAGE_BYTES`], [`ProtoError::Malformed`] when `bytes`
/// are not such a message.
pub fn decode<M: Name + Default>(bytes: &[u8]) -> Result<M, ProtoError> {
    check_length::<M>(bytes.len())?;
    let mut message = M::default();
    let mut rest = bytes;
    match message.merge(&mut rest) {
        Ok(()) => Ok(message),
        Err(reason) => Err(ProtoError::Malformed {
            message: M::NAME,
            offset: bytes.len() - rest.len(),
            length: bytes.len(),
            reason,
        }),
    }
}

/// Reads a graph from its encoded form, as [`decode`] does.
///
/// # Errors
/// As [`decode`].
///
/// ```
/// use tenon_proto::{GraphDef, NodeDef, decode_graph_def, encode};
///
/// let mut graph = GraphDef::default();
/// graph.node.push(NodeDef { name: "x".into(), op: "Placeholder".into(), ..NodeDef::default() });
/// let bytes = encode(&graph)?;
/// assert_eq!(decode_graph_def(&bytes)?, graph);
///
/// let error = decode_graph_def(&bytes[..bytes.len() - 1]).unwrap_err();
/// assert!(error.to_string().starts_with("tensorflow.GraphDef: expected its binary protobuf form"));
/// # Ok::<(), tenon_proto::ProtoError>(())
/// ```
pub fn decode_graph_def(bytes: &[u8]) -> Result<GraphDef, ProtoError> {
    decode(bytes)
}

/// Writes a message in its encoded form; equal messages give equal bytes.
///
/// # Errors
/// [`ProtoError::TooLarge`] when the result would exceed [`MAX_MESSAGE_BYTES`].
pub fn encode<M: Name>(message: &M) -> Result<Vec<u8>, ProtoError> {
    check_length::<M>(message.encoded_len())?;
    Ok(message.encode_to_vec())
}

fn check_length<M: Name>(found: usize) -> Result<(), ProtoError> {
    if found > MAX_MESSAGE_BYTES {
        return Err(ProtoError::TooLarge { message: M::NAME, limit: MAX_MESSAGE_BYTES, found });
    }
    Ok(())
}
