//! Reads a graph piece by piece.
//!
//! A frozen model consists mostly of its constants. When it is read as a whole, its bytes and the
//! decoded graph are in memory at once; when it is read node by node, only one node's bytes are.

use crate::{GraphDef, MAX_MESSAGE_BYTES, NodeDef, ProtoError};
use prost::{
    Message, Name,
    bytes::Bytes,
    encoding::{WireType, decode_key, decode_varint},
};
use std::io::{self, BufRead, ErrorKind, Read};

/// The field `node` of a `GraphDef`.
const NODE: u32 = 1;
/// Most bytes of a varint.
const VARINT: usize = 10;

/// Reads a graph from its encoded form, as [`decode_graph_def`](crate::decode_graph_def) does, from
/// a file or a stream.
///
/// # Errors
/// The reader's error; or, in the inner result, an error of [`decode`](crate::decode).
///
/// ```
/// use tenon_proto::{GraphDef, NodeDef, encode, read_graph_def};
///
/// let node = NodeDef { name: "x".into(), op: "Placeholder".into(), ..NodeDef::default() };
/// let graph = GraphDef { node: vec![node], ..GraphDef::default() };
/// let bytes = encode(&graph).unwrap();
/// assert_eq!(read_graph_def(&bytes[..])?.unwrap(), graph);
/// assert!(read_graph_def(&bytes[..4])?.is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn read_graph_def(reader: impl BufRead) -> io::Result<Result<GraphDef, ProtoError>> {
    let mut pieces = Pieces { reader, read: 0, graph: GraphDef::default(), rest: Vec::new() };
    loop {
        match pieces.next() {
            Ok(true) => {}
            Ok(false) => return Ok(pieces.finish()),
            Err(Stop::Io(error)) => return Err(error),
            Err(Stop::Malformed(reason)) => return pieces.malformed(reason),
        }
        if pieces.read > MAX_MESSAGE_BYTES {
            let (message, limit, found) = (GraphDef::NAME, MAX_MESSAGE_BYTES, pieces.read);
            return Ok(Err(ProtoError::TooLarge { message, limit, found }));
        }
    }
}

/// The reason why reading stops.
enum Stop {
    Io(io::Error),
    Malformed(prost::DecodeError),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Io(error)
    }
}

impl From<prost::DecodeError> for Stop {
    fn from(reason: prost::DecodeError) -> Stop {
        Stop::Malformed(reason)
    }
}

struct Pieces<R> {
    reader: R,
    /// The number of bytes read so far.
    read: usize,
    graph: GraphDef,
    /// The fields other than nodes, as they were read.
    rest: Vec<u8>,
}

impl<R: BufRead> Pieces<R> {
    /// Reads the next field. Returns whether there was one.
    fn next(&mut self) -> Result<bool, Stop> {
        let key = self.varint()?;
        if key.is_empty() {
            return Ok(false);
        }
        let (field, wire) = decode_key(&mut &key[..])?;
        if wire != WireType::LengthDelimited {
            self.rest.extend(key);
            let value = match wire {
                WireType::Varint => self.varint()?,
                WireType::SixtyFourBit => self.bytes(8)?,
                WireType::ThirtyTwoBit => self.bytes(4)?,
                // Groups: decoding the rest gives the error for them.
                _ => return self.all_that_is_left(),
            };
            self.rest.extend(value);
            return Ok(true);
        }
        let length = self.varint()?;
        let count = decode_varint(&mut &length[..])?;
        let value = self.bytes(count)?;
        if field == NODE {
            // As `Bytes` a tensor's content is copied once, not twice.
            self.graph.node.push(NodeDef::decode(Bytes::from(value))?);
        } else {
            self.rest.extend([key, length, value].concat());
        }
        Ok(true)
    }

    fn all_that_is_left(&mut self) -> Result<bool, Stop> {
        let limit = MAX_MESSAGE_BYTES as u64 + 1;
        self.read += self.reader.by_ref().take(limit).read_to_end(&mut self.rest)?;
        Ok(false)
    }

    /// Reads the bytes of a varint; none at the end of the data.
    fn varint(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(VARINT);
        while bytes.len() < VARINT && bytes.last().is_none_or(|last| last & 0x80 != 0) {
            let mut byte = [0];
            match self.reader.read_exact(&mut byte) {
                Ok(()) => bytes.extend(byte),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
        }
        self.read += bytes.len();
        Ok(bytes)
    }

    /// Reads `count` bytes, or fewer at the end of the data. A wrong length allocates nothing.
    fn bytes(&mut self, count: u64) -> Result<Vec<u8>, Stop> {
        let mut bytes = Vec::new();
        if count <= MAX_MESSAGE_BYTES as u64 {
            self.reader.by_ref().take(count).read_to_end(&mut bytes)?;
        }
        self.read += bytes.len();
        if (bytes.len() as u64) < count {
            return Err(Stop::Malformed(cut()));
        }
        Ok(bytes)
    }

    fn finish(mut self) -> Result<GraphDef, ProtoError> {
        let length = self.read;
        let mut rest = &self.rest[..];
        self.graph.merge(&mut rest).map_err(|reason| {
            let offset = length - rest.len();
            ProtoError::Malformed { message: GraphDef::NAME, offset, length, reason }
        })?;
        Ok(self.graph)
    }

    fn malformed(mut self, reason: prost::DecodeError) -> io::Result<Result<GraphDef, ProtoError>> {
        let left = io::copy(&mut self.reader, &mut io::sink())?;
        let (offset, length) = (self.read, self.read + left as usize);
        Ok(Err(ProtoError::Malformed { message: GraphDef::NAME, offset, length, reason }))
    }
}

/// The decoder's error for data that ends before its length.
fn cut() -> prost::DecodeError {
    NodeDef::decode_length_delimited(&[1][..]).expect_err("a byte is missing")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FunctionDefLibrary, VersionDef, decode_graph_def, encode};
    use proptest::prelude::*;

    fn graph() -> GraphDef {
        let node = |name: &str| NodeDef { name: name.to_owned(), ..NodeDef::default() };
        GraphDef {
            node: vec![node("a"), node("b"), NodeDef::default()],
            library: Some(FunctionDefLibrary::default()),
            version: 21,
            versions: Some(VersionDef { producer: 1987, ..VersionDef::default() }),
            debug_info: Some(vec![1, 2, 3]),
        }
    }

    #[test]
    fn a_graph_is_read_as_it_was_written() {
        let bytes = encode(&graph()).unwrap();
        assert_eq!(read_graph_def(&bytes[..]).unwrap().unwrap(), graph());
        assert_eq!(read_graph_def(&[][..]).unwrap().unwrap(), GraphDef::default());
    }

    #[test]
    fn every_part_of_a_file_is_an_error_or_the_same_graph_as_the_whole_decoder_reads() {
        let bytes = encode(&graph()).unwrap();
        for end in 0..bytes.len() {
            let found = read_graph_def(&bytes[..end]).unwrap().ok();
            assert_eq!(found, decode_graph_def(&bytes[..end]).ok(), "{end} bytes");
        }
    }

    #[test]
    fn a_length_that_lies_takes_no_memory_and_is_told() {
        let lies = [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 2];
        let error = read_graph_def(&lies[..]).unwrap().unwrap_err().to_string();
        assert!(error.contains("at or before byte 10 of 12"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_as_the_whole_decoder_reads_them(bytes: Vec<u8>) {
            let found = read_graph_def(&bytes[..]).unwrap().ok();
            prop_assert_eq!(found, decode_graph_def(&bytes).ok());
        }
    }
}
