//! The answer to RecvTensor, without a copy where it is sent and with one where it is received.
//!
//! The writer gives the fields of the answer and then the tensor, with type, shape and content in this order, as TensorFlow
//! does: the content is the last part of the message, and stays the tensor's own memory. The reader looks for this form in the
//! first bytes; if it finds it, it copies the content of each frame to its place in the tensor, and otherwise it collects the
//! message and reads it as any other.

use super::{PREFIX, length, prefix};
use prost::{
    Message,
    bytes::{Bytes, BytesMut},
    encoding::{self, WireType},
};
use tenon_framework::{DType, Shape, Tensor, tensor::TensorFiller};
use tenon_proto::{
    DataType, Dim, MAX_MESSAGE_BYTES, RecvTensorResponse, TensorProto, TensorShapeProto,
    convert::{dtype_from_proto, full_shape_from_proto, tensor_from_proto, tensor_to_proto},
};
use tonic::Status;

/// The fields of the answer.
const TENSOR: u32 = 1;
const IS_DEAD: u32 = 2;
const SEND_START: u32 = 3;
const REQUIRE_ACK: u32 = 5;
/// The fields of a tensor.
const DTYPE: u32 = 1;
const SHAPE: u32 = 2;
const CONTENT: u32 = 4;
/// The bytes before the content that the reader examines; a shape of 254 dimensions takes fewer.
const MOST_HEAD: usize = 16 << 10;

/// What is sent for a key.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The value; `None` for a dead one.
    pub tensor: Option<Tensor>,
    /// Whether it is dead.
    pub is_dead: bool,
    /// When it was there, in microseconds since the epoch.
    pub send_start_micros: i64,
    /// Whether the receiver has to confirm that it has the value.
    pub must_confirm: bool,
}

/// The message of an answer, with its prefix, in pieces: the last one may be the memory of the tensor.
///
/// # Errors
/// A value that has no message; a message that is too long.
pub(crate) fn answer_frames(answer: &Answer) -> Result<Vec<Bytes>, Status> {
    let refused = |error: &dyn std::fmt::Display| Status::unimplemented(error.to_string());
    let mut tensor = match &answer.tensor {
        Some(tensor) => tensor_to_proto(tensor).map_err(|error| refused(&error))?,
        None => no_value(),
    };
    let content = std::mem::take(&mut tensor.tensor_content);
    let rest = RecvTensorResponse {
        is_dead: answer.is_dead,
        send_start_micros: answer.send_start_micros,
        require_ack: answer.must_confirm,
        ..RecvTensorResponse::default()
    };
    // The content is not a field of its own yet: its tag and length come after all others of the tensor.
    let mut head = tensor.encode_to_vec();
    if !content.is_empty() {
        encoding::encode_key(CONTENT, WireType::LengthDelimited, &mut head);
        encoding::encode_varint(content.len() as u64, &mut head);
    }
    let tensor_len = head.len() + content.len();
    let mut front = rest.encode_to_vec();
    encoding::encode_key(TENSOR, WireType::LengthDelimited, &mut front);
    encoding::encode_varint(tensor_len as u64, &mut front);
    let total = front.len().saturating_add(tensor_len);
    let mut first = BytesMut::with_capacity(PREFIX + front.len() + head.len());
    first.extend_from_slice(&prefix(total)?);
    first.extend_from_slice(&front);
    first.extend_from_slice(&head);
    let mut pieces = vec![first.freeze()];
    if !content.is_empty() {
        pieces.push(content);
    }
    Ok(pieces)
}

/// What is sent for no value. TensorFlow's workers end their process where a tensor has no type.
fn no_value() -> TensorProto {
    let dim = vec![Dim { size: 0, name: String::new() }];
    let tensor_shape = Some(TensorShapeProto { dim, unknown_rank: false });
    TensorProto { dtype: DataType::Float as i32, tensor_shape, ..TensorProto::default() }
}

/// Reads an answer from the frames of a body.
///
/// States: the *head* is collected until it is clear whether the answer has the form that the writer gives; then the *content*
/// fills a tensor, or the *whole* message is collected.
pub(crate) enum AnswerReader {
    /// The first bytes, with the prefix.
    Head(BytesMut),
    /// The content of a tensor, and what came before it.
    Content(Box<(TensorFiller, Answer)>),
    /// A message of this length.
    Whole(BytesMut, usize),
}

/// What the first bytes show.
enum Form {
    /// More of them are needed.
    Open,
    /// The content begins after so many bytes.
    Plain { head: usize, content: Box<(TensorFiller, Answer)> },
    /// Any other form.
    Other,
}

impl Default for AnswerReader {
    fn default() -> AnswerReader {
        AnswerReader::Head(BytesMut::new())
    }
}

fn broken(why: impl std::fmt::Display) -> Status {
    Status::internal(format!("the answer to RecvTensor is not its message: {why}"))
}

impl AnswerReader {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// They are not those of an answer.
    pub fn take(&mut self, data: &Bytes) -> Result<(), Status> {
        match self {
            AnswerReader::Content(content) => content.0.put(data).map_err(broken),
            AnswerReader::Whole(bytes, _) => {
                bytes.extend_from_slice(data);
                Ok(())
            }
            AnswerReader::Head(head) if head.is_empty() => self.examine(data),
            AnswerReader::Head(head) => {
                head.extend_from_slice(data);
                let data = std::mem::take(head).freeze();
                self.examine(&data)
            }
        }
    }

    /// Looks at the first bytes.
    fn examine(&mut self, data: &[u8]) -> Result<(), Status> {
        let head = |data: &[u8]| AnswerReader::Head(BytesMut::from(data));
        let Some((front, message)) = data.split_first_chunk::<PREFIX>() else {
            *self = head(data);
            return Ok(());
        };
        let total = length(*front)?;
        if total > MAX_MESSAGE_BYTES {
            return Err(broken(format!("it has {total} bytes")));
        }
        *self = match form(message, total) {
            Form::Open if message.len() < total && message.len() < MOST_HEAD => head(data),
            Form::Plain { head, mut content } => {
                content.0.put(&message[head..]).map_err(broken)?;
                AnswerReader::Content(content)
            }
            Form::Open | Form::Other => AnswerReader::Whole(BytesMut::from(message), total),
        };
        Ok(())
    }

    /// The answer, when all bytes have come.
    ///
    /// # Errors
    /// Bytes are missing, or are too many; they are not those of an answer.
    pub fn finish(self) -> Result<Answer, Status> {
        let (bytes, total) = match self {
            AnswerReader::Content(content) => {
                let (tensor, answer) = *content;
                let tensor = Some(tensor.finish().map_err(broken)?);
                return Ok(Answer { tensor, ..answer });
            }
            AnswerReader::Whole(bytes, total) => (bytes, total),
            AnswerReader::Head(bytes) => match bytes.split_first_chunk::<PREFIX>() {
                Some((front, message)) => (BytesMut::from(message), length(*front)?),
                None => return Err(broken("it ends before its first byte")),
            },
        };
        if bytes.len() != total {
            let found = bytes.len();
            return Err(broken(format!("expected {total} bytes, found {found}")));
        }
        let message = RecvTensorResponse::decode(bytes.freeze()).map_err(broken)?;
        let tensor = message.tensor.filter(|_| !message.is_dead);
        let tensor = tensor.as_ref().map(tensor_from_proto).transpose().map_err(broken)?;
        let (is_dead, send_start_micros) = (message.is_dead, message.send_start_micros);
        Ok(Answer { tensor, is_dead, send_start_micros, must_confirm: message.require_ack })
    }
}

/// The form of a message of `total` bytes that begins like this.
fn form(message: &[u8], total: usize) -> Form {
    let mut answer =
        Answer { tensor: None, is_dead: false, send_start_micros: 0, must_confirm: false };
    let mut rest = message;
    loop {
        let Some((field, wire)) = key(&mut rest) else { return Form::Open };
        match (field, wire) {
            (IS_DEAD | SEND_START | REQUIRE_ACK, WireType::Varint) => {
                let Some(value) = varint(&mut rest) else { return Form::Open };
                match field {
                    IS_DEAD => answer.is_dead = value != 0,
                    SEND_START => answer.send_start_micros = value.cast_signed(),
                    _ => answer.must_confirm = value != 0,
                }
            }
            (TENSOR, WireType::LengthDelimited) if !answer.is_dead => {
                let Some(len) = varint(&mut rest) else { return Form::Open };
                let at = message.len() - rest.len();
                // The tensor is the last field, so that its content is the last part of the message.
                if u64::try_from(total - at) != Ok(len) {
                    return Form::Other;
                }
                return tensor(message, rest, total, answer);
            }
            _ => return Form::Other,
        }
    }
}

/// The form of a message whose last field is a tensor that begins with `rest`.
fn tensor(message: &[u8], mut rest: &[u8], total: usize, answer: Answer) -> Form {
    let (mut dtype, mut shape) = (0, None);
    loop {
        let Some((field, wire)) = key(&mut rest) else { return Form::Open };
        match (field, wire) {
            (DTYPE, WireType::Varint) => {
                let Some(value) = varint(&mut rest) else { return Form::Open };
                dtype = i32::try_from(value).unwrap_or(0);
            }
            (SHAPE, WireType::LengthDelimited) => {
                let Some(len) = varint(&mut rest) else { return Form::Open };
                let Some(len) = usize::try_from(len).ok().filter(|len| *len < MOST_HEAD) else {
                    return Form::Other;
                };
                let Some((bytes, after)) = rest.split_at_checked(len) else { return Form::Open };
                let Ok(read) = TensorShapeProto::decode(bytes) else { return Form::Other };
                (shape, rest) = (Some(read), after);
            }
            (CONTENT, WireType::LengthDelimited) => {
                let Some(len) = varint(&mut rest) else { return Form::Open };
                let head = message.len() - rest.len();
                if u64::try_from(total - head) != Ok(len) {
                    return Form::Other;
                }
                let Some(tensor) = place(dtype, shape.as_ref(), total - head) else {
                    return Form::Other;
                };
                return Form::Plain { head, content: Box::new((tensor, answer)) };
            }
            _ => return Form::Other,
        }
    }
}

/// The tensor for a content of this length, if that is its length.
fn place(dtype: i32, shape: Option<&TensorShapeProto>, content: usize) -> Option<TensorFiller> {
    let dtype: DType = dtype_from_proto(dtype).ok().filter(|dtype| !dtype.is_ref())?;
    let shape: Shape = full_shape_from_proto(shape).ok()?;
    let size = dtype.size().filter(|_| !dtype.needs_drop() && !dtype.is_reserved())?;
    let fits = shape.elements().checked_mul(size) == Some(content);
    fits.then(|| TensorFiller::new(dtype, shape.dims()).ok())?
}

/// The next key; `None` where the bytes end.
fn key(rest: &mut &[u8]) -> Option<(u32, WireType)> {
    let mut at = *rest;
    let (field, wire) = encoding::decode_key(&mut at).ok()?;
    *rest = at;
    Some((field, wire))
}

/// The next number; `None` where the bytes end.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut at = *rest;
    let value = encoding::decode_varint(&mut at).ok()?;
    *rest = at;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::bytes::Buf;

    fn read(pieces: &[Bytes], chunk: usize) -> (bool, Answer) {
        let mut all = BytesMut::new();
        pieces.iter().for_each(|piece| all.extend_from_slice(piece));
        let mut all = all.freeze();
        let mut reader = AnswerReader::default();
        while all.has_remaining() {
            let next = all.split_to(chunk.min(all.len()));
            reader.take(&next).unwrap();
        }
        let is_fast = matches!(reader, AnswerReader::Content(..));
        (is_fast, reader.finish().unwrap())
    }

    #[test]
    fn numbers_are_read_into_place_however_the_bytes_are_cut() {
        let values: Vec<f32> = (0..5000).map(|at| at as f32).collect();
        let tensor = Tensor::from_slice(&[50, 100], &values).unwrap();
        let sent = Answer {
            tensor: Some(tensor.clone()),
            is_dead: false,
            send_start_micros: 77,
            must_confirm: true,
        };
        let pieces = answer_frames(&sent).unwrap();
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces[1].as_ptr(), tensor.as_bytes().unwrap().as_ptr(), "it is not copied");
        for chunk in [1, 2, 3, 7, 1000, 1 << 20] {
            let (is_fast, found) = read(&pieces, chunk);
            assert!(is_fast && found.must_confirm, "{chunk}");
            let found_tensor = found.tensor.unwrap();
            assert_eq!(found_tensor.as_slice::<f32>().unwrap(), values);
            assert_eq!(
                (found_tensor.shape().dims(), found.send_start_micros),
                (&[50, 100][..], 77)
            );
        }
    }

    #[test]
    fn all_other_answers_are_read_as_messages() {
        let strings = Tensor::from_strings(&[2], &["a", "bc"]).unwrap();
        let empty = Tensor::from_slice::<f32>(&[0], &[]).unwrap();
        let dead = answer_frames(&Answer {
            tensor: None,
            is_dead: true,
            send_start_micros: 0,
            must_confirm: false,
        });
        let dead = RecvTensorResponse::decode(&dead.unwrap()[0][PREFIX..]).unwrap();
        assert_eq!(dead.tensor.unwrap().dtype, DataType::Float as i32);
        for tensor in [Some(strings), Some(empty), None] {
            let is_dead = tensor.is_none();
            let sent = Answer { tensor, is_dead, send_start_micros: 0, must_confirm: false };
            for chunk in [1, 5, 1000] {
                let (is_fast, found) = read(&answer_frames(&sent).unwrap(), chunk);
                assert!(!is_fast);
                assert_eq!(found.is_dead, is_dead);
                let shown =
                    |answer: &Answer| answer.tensor.as_ref().map(|it| it.shape().dims().to_vec());
                assert_eq!(shown(&found), shown(&sent));
            }
        }
    }

    #[test]
    fn fields_in_another_order_are_read() {
        // The tensor comes first, and in it the content comes before the shape.
        let tensor = Tensor::from_slice(&[2], &[1i64, -1]).unwrap();
        let proto = tensor_to_proto(&tensor).unwrap();
        let part = |proto: TensorProto| proto.encode_to_vec();
        let content =
            TensorProto { tensor_content: proto.tensor_content, ..TensorProto::default() };
        let mut inner = part(content);
        inner.extend(part(TensorProto { tensor_content: Bytes::new(), ..proto }));
        let mut message = Vec::new();
        encoding::encode_key(TENSOR, WireType::LengthDelimited, &mut message);
        encoding::encode_varint(inner.len() as u64, &mut message);
        message.extend(inner);
        encoding::encode_key(SEND_START, WireType::Varint, &mut message);
        encoding::encode_varint(5, &mut message);
        let mut bytes = prefix(message.len()).unwrap().to_vec();
        bytes.extend(message);
        let (is_fast, found) = read(&[Bytes::from(bytes)], 4);
        assert!(!is_fast);
        assert_eq!(found.tensor.unwrap().as_slice::<i64>().unwrap(), [1, -1]);
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let tensor = Tensor::from_slice(&[300], &[1f32; 300]).unwrap();
        let sent = Answer {
            tensor: Some(tensor),
            is_dead: false,
            send_start_micros: 0,
            must_confirm: false,
        };
        let all: Vec<u8> = answer_frames(&sent).unwrap().concat();
        for end in 0..all.len() {
            let mut reader = AnswerReader::default();
            reader.take(&Bytes::copy_from_slice(&all[..end])).unwrap();
            assert!(reader.finish().is_err(), "{end} bytes");
        }
        let mut reader = AnswerReader::default();
        reader.take(&Bytes::from(all)).unwrap();
        assert!(reader.take(&Bytes::from_static(b"x")).is_err());
    }
}
