//! A tensor as the head and the content of frames.
//!
//! | bytes of a head | content |
//! |---|---|
//! | 0 | form of the content: 0 for none, 1 for elements, 2 for a `TensorProto` |
//! | 1 | whether the value is dead |
//! | 2 | number of dimensions |
//! | 3 | zero |
//! | 4..8 | element type |
//! | 8..16 | bytes of the content |
//! | 16..24 | when the value was there, in microseconds since the epoch |
//! | from 24 on | dimensions, eight bytes each |

use crate::wire::Answer;
use prost::{Message, bytes::Bytes};
use tenon_framework::{DType, Shape, tensor::TensorFiller};
use tenon_proto::{
    MAX_MESSAGE_BYTES, TensorProto,
    convert::{tensor_from_proto, tensor_to_proto},
};

const FIXED: usize = 24;

const NONE: u8 = 0;
const ELEMENTS: u8 = 1;
const MESSAGE: u8 = 2;

/// An answer, ready to be sent.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    pub head: Vec<u8>,
    /// The memory of the tensor itself, or its message.
    pub content: Bytes,
}

impl Outgoing {
    /// # Errors
    /// A value that has no message.
    pub fn of(answer: &Answer) -> Result<Outgoing, String> {
        let mut head = vec![0; FIXED];
        head[1] = answer.is_dead.into();
        head[16..24].copy_from_slice(&answer.send_start_micros.to_le_bytes());
        let Some(tensor) = answer.tensor.as_ref().filter(|_| !answer.is_dead) else {
            return Ok(Outgoing { head, content: Bytes::new() });
        };
        let mut proto = tensor_to_proto(tensor).map_err(|error| error.to_string())?;
        let is_plain = is_plain(tensor.dtype());
        head[0] = if is_plain { ELEMENTS } else { MESSAGE };
        let content = match is_plain {
            true => std::mem::take(&mut proto.tensor_content),
            false => proto.encode_to_vec().into(),
        };
        let dims = tensor.shape().dims();
        head[2] = u8::try_from(dims.len()).map_err(|_| "too many dimensions".to_owned())?;
        head[4..8].copy_from_slice(&tensor.dtype().0.to_le_bytes());
        head[8..16].copy_from_slice(&(content.len() as u64).to_le_bytes());
        dims.iter().for_each(|dim| head.extend_from_slice(&dim.to_le_bytes()));
        Ok(Outgoing { head, content })
    }
}

fn is_plain(dtype: DType) -> bool {
    !dtype.needs_drop() && !dtype.is_ref() && dtype.size().is_some_and(|size| size > 0)
}

/// A value that comes in.
pub(super) struct Incoming {
    answer: Answer,
    content: Content,
    /// Bytes of the content that have not come.
    pub missing: u64,
}

enum Content {
    None,
    Elements(TensorFiller),
    Message(Vec<u8>),
}

/// Why the head of a value is not taken.
#[derive(Debug)]
pub(super) enum HeadError {
    /// It is not one: the other side breaks the rules.
    Wrong(String),
    /// There is no memory for it. The bytes of its content come all the same: `at` of them with the head, `left` after it.
    NoMemory { why: String, at: u64, left: u64 },
}

impl Incoming {
    /// Reads a head from the beginning of some bytes; the rest of them is the beginning of the content.
    pub fn begin(bytes: &[u8]) -> Result<(Incoming, &[u8]), HeadError> {
        let wrong = |why: &str| HeadError::Wrong(format!("the head of a value: {why}"));
        let (fixed, rest) = bytes.split_at_checked(FIXED).ok_or_else(|| wrong("it is cut off"))?;
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| fixed[at + i]));
        let (form, dead, rank) = (fixed[0], fixed[1], usize::from(fixed[2]));
        let (dims, rest) = rest.split_at_checked(rank * 8).ok_or_else(|| wrong("it is cut off"))?;
        let dims: Vec<i64> = dims
            .chunks_exact(8)
            .map(|dim| i64::from_le_bytes(std::array::from_fn(|i| dim[i])))
            .collect();
        let dtype = DType(u32::from_le_bytes(std::array::from_fn(|i| fixed[4 + i])));
        let total = long(8);
        let answer = Answer {
            tensor: None,
            is_dead: dead != 0,
            send_start_micros: long(16).cast_signed(),
            must_confirm: false,
        };
        let content = match form {
            NONE if total == 0 => Content::None,
            ELEMENTS => Content::Elements(elements(dtype, &dims, total, rest.len() as u64)?),
            MESSAGE if total <= MAX_MESSAGE_BYTES as u64 => Content::Message(Vec::new()),
            MESSAGE => return Err(wrong("its message is too long")),
            _ => return Err(wrong("its form is not known")),
        };
        Ok((Incoming { answer, content, missing: total }, rest))
    }

    /// Whether the content is elements.
    pub fn has_elements(&self) -> bool {
        matches!(self.content, Content::Elements(_))
    }

    /// The memory for the elements that have not come, if the value has elements.
    pub fn filler(&mut self) -> Option<&mut TensorFiller> {
        match &mut self.content {
            Content::Elements(filler) => Some(filler),
            Content::None | Content::Message(_) => None,
        }
    }

    /// Counts bytes that were put into the [filler](Incoming::filler).
    pub fn filled(&mut self, bytes: usize) {
        self.missing = self.missing.saturating_sub(bytes as u64);
    }

    /// Takes the next bytes.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), String> {
        let more = || "a value has more bytes than its head says".to_owned();
        self.missing = self.missing.checked_sub(bytes.len() as u64).ok_or_else(more)?;
        match &mut self.content {
            Content::None => Ok(()),
            Content::Elements(filler) => filler.put(bytes).map_err(|error| error.to_string()),
            Content::Message(message) => {
                message.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// The value, when all bytes have come.
    pub fn finish(self) -> Result<Answer, String> {
        let tensor = match self.content {
            Content::None => None,
            Content::Elements(filler) => Some(filler.finish().map_err(|error| error.to_string())?),
            Content::Message(message) => {
                let proto = TensorProto::decode(&*message).map_err(|error| error.to_string())?;
                Some(tensor_from_proto(&proto).map_err(|error| error.to_string())?)
            }
        };
        Ok(Answer { tensor, ..self.answer })
    }
}

/// The tensor for elements of so many bytes, of which some come with the head.
fn elements(dtype: DType, dims: &[i64], total: u64, at: u64) -> Result<TensorFiller, HeadError> {
    let wrong = |why: String| HeadError::Wrong(format!("the head of a value: {why}"));
    let size = dtype.size().filter(|_| is_plain(dtype) && !dtype.is_reserved());
    let size = size.ok_or_else(|| wrong(format!("{dtype} does not have plain elements")))?;
    let shape = Shape::new(dims).map_err(|error| wrong(error.to_string()))?;
    let bytes = shape.elements().checked_mul(size);
    if bytes.and_then(|bytes| u64::try_from(bytes).ok()) != Some(total) {
        return Err(wrong(format!("{dtype} {dims:?} does not have {total} bytes")));
    }
    let left = total.checked_sub(at).ok_or_else(|| wrong("more bytes follow".to_owned()))?;
    TensorFiller::new(dtype, dims).map_err(|error| HeadError::NoMemory {
        why: error.to_string(),
        at,
        left,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_framework::Tensor;

    fn back(answer: &Answer, chunk: usize) -> Answer {
        let out = Outgoing::of(answer).unwrap();
        let (mut incoming, rest) = Incoming::begin(&out.head).unwrap();
        assert!(rest.is_empty());
        out.content.chunks(chunk).for_each(|part| incoming.put(part).unwrap());
        assert_eq!(incoming.missing, 0);
        assert!(incoming.put(&[0]).is_err());
        incoming.finish().unwrap()
    }

    fn of(tensor: Option<Tensor>, is_dead: bool) -> Answer {
        Answer { tensor, is_dead, send_start_micros: -7, must_confirm: false }
    }

    #[test]
    fn values_of_each_form_come_back() {
        let floats = Tensor::from_slice(&[2, 3], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let found = back(&of(Some(floats.clone()), false), 5);
        let tensor = found.tensor.unwrap();
        assert_eq!((tensor.shape().dims(), found.send_start_micros), (&[2i64, 3][..], -7));
        assert_eq!(tensor.as_bytes().unwrap(), floats.as_bytes().unwrap());
        let texts = Tensor::from_strings(&[2], &["a", "longer"]).unwrap();
        let found = back(&of(Some(texts), false), 3).tensor.unwrap();
        assert_eq!(found.as_strings().unwrap(), [b"a".as_slice(), b"longer"]);
        let empty = Tensor::from_slice::<i64>(&[0, 4], &[]).unwrap();
        assert_eq!(back(&of(Some(empty), false), 1).tensor.unwrap().shape().dims(), [0, 4]);
        assert!(back(&of(None, true), 1).is_dead);
        assert!(back(&of(None, false), 1).tensor.is_none());
    }

    #[test]
    fn heads_that_lie_are_refused() {
        let tensor = Tensor::from_slice(&[4], &[1f32; 4]).unwrap();
        let head = Outgoing::of(&of(Some(tensor), false)).unwrap().head;
        for end in 0..head.len() {
            assert!(matches!(Incoming::begin(&head[..end]), Err(HeadError::Wrong(_))), "{end}");
        }
        for (at, value) in [(0, 3), (4, 7), (4, 200), (8, 15), (24, 5), (31, 0x80)] {
            let mut wrong = head.clone();
            wrong[at] = value;
            assert!(matches!(Incoming::begin(&wrong), Err(HeadError::Wrong(_))), "{at}");
        }
        // A tensor that no machine has memory for is refused without ending the link.
        let mut vast = head;
        vast[8..16].copy_from_slice(&(1u64 << 60).to_le_bytes());
        vast[24..32].copy_from_slice(&(1i64 << 58).to_le_bytes());
        let found = Incoming::begin(&vast).err();
        assert!(matches!(found, Some(HeadError::NoMemory { .. } | HeadError::Wrong(_))));
    }
}
