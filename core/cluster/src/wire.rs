//! gRPC's framing, where tonic's own would copy tensors: a message is five bytes (whether it is compressed, and its length)
//! and then its content, over any number of frames of HTTP/2.

mod recv_tensor;

pub(crate) use recv_tensor::{Answer, AnswerReader, answer_frames};

use http_body::{Body as HttpBody, Frame, SizeHint};
use prost::{Message, bytes::Bytes};
use std::{
    collections::VecDeque,
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};
use tonic::{Status, body::Body};

/// The bytes before a message.
pub(crate) const PREFIX: usize = 5;
/// The type of content of requests and answers.
pub(crate) const CONTENT_TYPE: &str = "application/grpc";

/// The prefix of a message of this length.
///
/// # Errors
/// More bytes than a message may have.
pub(crate) fn prefix(length: usize) -> Result<[u8; PREFIX], Status> {
    let most = tenon_proto::MAX_MESSAGE_BYTES;
    let written = u32::try_from(length).ok().filter(|_| length <= most).ok_or_else(|| {
        Status::resource_exhausted(format!(
            "a message has at most {most} bytes, found {length}: split the tensor, for example as a partitioned variable"
        ))
    })?;
    let [a, b, c, d] = written.to_be_bytes();
    Ok([0, a, b, c, d])
}

/// The length that the prefix of a message says.
///
/// # Errors
/// A compressed message.
pub(crate) fn length(prefix: [u8; PREFIX]) -> Result<usize, Status> {
    let [compressed, a, b, c, d] = prefix;
    match compressed {
        0 => Ok(u32::from_be_bytes([a, b, c, d]) as usize),
        _ => Err(Status::unimplemented("expected a message that is not compressed")),
    }
}

/// A body of frames that are there already.
pub(crate) struct Frames(VecDeque<Frame<Bytes>>);

impl HttpBody for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let bytes = self.0.iter().filter_map(Frame::data_ref).map(|data| data.len() as u64).sum();
        SizeHint::with_exact(bytes)
    }
}

/// The body of a request that has this message.
///
/// # Errors
/// The message is too long.
pub(crate) fn request_body(message: &impl Message) -> Result<Body, Status> {
    let mut bytes = prefix(message.encoded_len())?.to_vec();
    message.encode(&mut bytes).map_err(|error| Status::internal(error.to_string()))?;
    Ok(Body::new(Frames(VecDeque::from([Frame::data(Bytes::from(bytes))]))))
}

/// The pieces of an answer that has this message.
///
/// # Errors
/// The message is too long.
pub(crate) fn message_frames(message: &impl Message) -> Result<Vec<Bytes>, Status> {
    let mut bytes = prefix(message.encoded_len())?.to_vec();
    message.encode(&mut bytes).map_err(|error| Status::internal(error.to_string()))?;
    Ok(vec![Bytes::from(bytes)])
}

/// An answer of these pieces of one message, which are sent as they are, and an end without an error.
pub(crate) fn answered(pieces: Vec<Bytes>) -> http::Response<Body> {
    let mut frames: VecDeque<Frame<Bytes>> = pieces.into_iter().map(Frame::data).collect();
    let mut end = http::HeaderMap::new();
    end.insert("grpc-status", http::HeaderValue::from_static("0"));
    frames.push_back(Frame::trailers(end));
    let mut response = http::Response::new(Body::new(Frames(frames)));
    let content = http::HeaderValue::from_static(CONTENT_TYPE);
    response.headers_mut().insert(http::header::CONTENT_TYPE, content);
    response
}

/// The next frame of a body.
pub(crate) async fn next_frame(body: &mut Body) -> Option<Result<Frame<Bytes>, Status>> {
    poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}

/// Reads a body that has one short message.
///
/// # Errors
/// The connection breaks; the message is longer than `most` bytes, or is not the expected one.
pub(crate) async fn read_message<M: Message + Default>(
    body: &mut Body,
    most: usize,
) -> Result<M, Status> {
    let mut bytes = Vec::new();
    while let Some(frame) = next_frame(body).await {
        let Ok(data) = frame?.into_data() else { continue };
        bytes.extend_from_slice(&data);
        if bytes.len() > most + PREFIX {
            return Err(Status::resource_exhausted(format!(
                "the request has at most {most} bytes, found more"
            )));
        }
    }
    let wrong = |why: String| {
        Status::invalid_argument(format!(
            "the request is not the message that the method takes: {why}"
        ))
    };
    let (head, message) =
        bytes.split_first_chunk::<PREFIX>().ok_or_else(|| wrong("it has no prefix".to_owned()))?;
    if length(*head)? != message.len() {
        let (expected, found) = (length(*head)?, message.len());
        return Err(wrong(format!("expected {expected} bytes, found {found}")));
    }
    M::decode(message).map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_says_the_length() {
        assert_eq!(length(prefix(70_000).unwrap()).unwrap(), 70_000);
        assert!(prefix(tenon_proto::MAX_MESSAGE_BYTES + 1).is_err());
        assert!(length([1, 0, 0, 0, 1]).is_err());
    }
}
