//! How messages become bytes of a call: protobuf, with tensors copied once each way.
//!
//! A message that is read keeps the bytes of its tensors where the transport put them; the buffer of one that is written
//! has its final size from the beginning.

use prost::Message;
use std::marker::PhantomData;
use tenon_proto::MAX_MESSAGE_BYTES;
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

/// Writes messages `W` and reads messages `R`.
pub(crate) struct ProtobufCodec<W, R>(PhantomData<(W, R)>);

impl<W, R> Default for ProtobufCodec<W, R> {
    fn default() -> ProtobufCodec<W, R> {
        ProtobufCodec(PhantomData)
    }
}

impl<W, R> Codec for ProtobufCodec<W, R>
where
    W: Message + 'static,
    R: Message + Default + 'static,
{
    type Encode = W;
    type Decode = R;
    type Encoder = Writer<W>;
    type Decoder = Reader<R>;

    fn encoder(&mut self) -> Writer<W> {
        Writer(PhantomData)
    }

    fn decoder(&mut self) -> Reader<R> {
        Reader(PhantomData)
    }
}

pub(crate) struct Writer<W>(PhantomData<W>);

impl<W: Message + 'static> Encoder for Writer<W> {
    type Item = W;
    type Error = Status;

    fn encode(&mut self, message: W, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let bytes = message.encoded_len();
        if bytes > MAX_MESSAGE_BYTES {
            return Err(Status::resource_exhausted(format!(
                "a message has at most {MAX_MESSAGE_BYTES} bytes, found {bytes}: fetch less at once"
            )));
        }
        to.reserve(bytes);
        message.encode(to).map_err(|error| Status::internal(error.to_string()))
    }
}

pub(crate) struct Reader<R>(PhantomData<R>);

impl<R: Message + Default + 'static> Decoder for Reader<R> {
    type Item = R;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<R>, Status> {
        let message = R::decode(from).map_err(|error| {
            Status::invalid_argument(format!(
                "the request is not the message that the method takes: {error}"
            ))
        })?;
        Ok(Some(message))
    }
}
