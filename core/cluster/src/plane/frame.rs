//! The frames of a link.
//!
//! A frame is a header of 32 bytes and a body. Numbers are little-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 0..4 | length of the body |
//! | 4 | kind |
//! | 5 | flags |
//! | 6..8 | zero |
//! | 8..16 | number of the request, or a number of bytes |
//! | 16..24 | place of a chunk in its content, or the step |
//! | 24..28 | checksum of the body (CRC-32C), unless the flags say that it has none |
//! | 28..32 | checksum of the bytes before |

use std::fmt;

/// Bytes of a header.
pub(super) const HEADER: usize = 32;
/// The bytes of a large tensor in one frame.
pub(super) const CHUNK: usize = 256 << 10;
/// The longest body of any other frame.
pub(super) const MOST_BODY: usize = 128 << 10;
/// Tensors up to this size are sent in one frame.
pub(super) const SMALL: usize = 64 << 10;

/// The body has no checksum.
pub(super) const UNCHECKED: u8 = 1;
/// The request that is withdrawn got its tensor by a push.
pub(super) const SETTLED: u8 = 2;

/// What a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Asks for a tensor of a step: the body is a `RecvTensorRequest`.
    Want = 1,
    /// Asks for a tensor of a collective operation: a `RecvBufRequest`.
    WantBuffer = 2,
    /// Withdraws a request.
    Withdraw = 3,
    /// The head of an answer, with its content if that is small.
    Head = 4,
    /// The next bytes of a content.
    Chunk = 5,
    /// The answer is a refusal: its code, its mark and its message.
    Refused = 6,
    /// A tensor that was not asked for yet: its key, head and content.
    Push = 7,
    /// Gives credit for more bytes of pushes.
    Credit = 8,
    /// Asks whether the other side is there.
    Ping = 9,
    /// It is.
    Pong = 10,
    /// The reason why this side ends the link.
    Bye = 11,
}

const KINDS: [Kind; 11] = [
    Kind::Want,
    Kind::WantBuffer,
    Kind::Withdraw,
    Kind::Head,
    Kind::Chunk,
    Kind::Refused,
    Kind::Push,
    Kind::Credit,
    Kind::Ping,
    Kind::Pong,
    Kind::Bye,
];

/// What is wrong with a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FrameError {
    /// The bytes of a header are damaged, or are something else.
    HeaderSum { expected: u32, found: u32 },
    /// A kind or flags of another version.
    Kind { kind: u8, flags: u8 },
    /// A body that is too long for its kind.
    Length { kind: Kind, most: usize, found: usize },
    /// A body that was changed on its way.
    Sum { kind: Kind, id: u64, at: u64, expected: u32, found: u32 },
    /// A body without a checksum on a way that needs one.
    NoSum { kind: Kind },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::HeaderSum { expected, found } => write!(
                f,
                "the header of a frame came damaged: its checksum is {found:08x}, expected {expected:08x}"
            ),
            FrameError::Kind { kind, flags } => write!(
                f,
                "a frame has kind {kind} and flags {flags:#04x}, expected kinds 1 to {}: is the other task of another version?",
                KINDS.len()
            ),
            FrameError::Length { kind, most, found } => {
                write!(f, "a frame {kind:?} has {found} bytes, expected at most {most}")
            }
            FrameError::Sum { kind, id, at, expected, found } => write!(
                f,
                "a frame {kind:?} of request {id} came damaged (bytes from {at} on): its checksum is {found:08x}, expected \
                 {expected:08x}"
            ),
            FrameError::NoSum { kind } => {
                write!(f, "a frame {kind:?} has no checksum, which this way needs")
            }
        }
    }
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub kind: Kind,
    pub flags: u8,
    pub length: usize,
    pub id: u64,
    pub at: u64,
    pub sum: u32,
}

impl Header {
    /// The header of a body, which has a checksum if `checked`.
    pub fn of(kind: Kind, id: u64, at: u64, body: &[&[u8]], checked: bool) -> Header {
        let length = body.iter().map(|part| part.len()).sum();
        let add = |sum, part: &&[u8]| crc32c::crc32c_append(sum, part);
        let sum = if checked { body.iter().fold(0, add) } else { 0 };
        Header { kind, flags: if checked { 0 } else { UNCHECKED }, length, id, at, sum }
    }

    /// Its bytes.
    pub fn bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        // Lengths are at most that of a chunk.
        bytes[0..4].copy_from_slice(&(self.length as u32).to_le_bytes());
        bytes[4] = self.kind as u8;
        bytes[5] = self.flags;
        bytes[8..16].copy_from_slice(&self.id.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.at.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.sum.to_le_bytes());
        let own = crc32c::crc32c(&bytes[..28]);
        bytes[28..32].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// Reads a header, on a way whose bodies have checksums if `checked`.
    pub fn read(bytes: &[u8; HEADER], checked: bool) -> Result<Header, FrameError> {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let (expected, found) = (word(28), crc32c::crc32c(&bytes[..28]));
        if expected != found {
            return Err(FrameError::HeaderSum { expected, found });
        }
        let (number, flags) = (bytes[4], bytes[5]);
        let kind = KINDS.into_iter().find(|kind| *kind as u8 == number);
        let kind = kind.filter(|_| flags & !(UNCHECKED | SETTLED) == 0 && bytes[6..8] == [0, 0]);
        let kind = kind.ok_or(FrameError::Kind { kind: number, flags })?;
        let length = word(0) as usize;
        let most = if kind == Kind::Chunk { CHUNK } else { MOST_BODY };
        if length > most {
            return Err(FrameError::Length { kind, most, found: length });
        }
        if checked && flags & UNCHECKED != 0 {
            return Err(FrameError::NoSum { kind });
        }
        Ok(Header { kind, flags, length, id: long(8), at: long(16), sum: word(24) })
    }

    /// Checks a body.
    pub fn check(&self, body: &[u8]) -> Result<(), FrameError> {
        if self.flags & UNCHECKED != 0 {
            return Ok(());
        }
        let found = crc32c::crc32c(body);
        if found == self.sum {
            return Ok(());
        }
        let Header { kind, id, at, sum: expected, .. } = *self;
        Err(FrameError::Sum { kind, id, at, expected, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_is_written() {
        for kind in KINDS {
            let header = Header::of(kind, 7, u64::MAX, &[b"abc", b"d"], true);
            assert_eq!(Header::read(&header.bytes(), true), Ok(header));
            assert_eq!(header.check(b"abcd"), Ok(()));
            let error = header.check(b"abce").unwrap_err();
            assert!(error.to_string().contains("request 7 came damaged"), "{error}");
        }
    }

    #[test]
    fn every_changed_bit_of_a_header_is_found() {
        let bytes = Header::of(Kind::Chunk, 1, 2, &[&[3; 100]], true).bytes();
        for bit in 0..HEADER * 8 {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::read(&changed, true).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn kinds_lengths_and_lacking_checksums_are_refused() {
        let signed = |mut bytes: [u8; HEADER]| {
            let own = crc32c::crc32c(&bytes[..28]);
            bytes[28..].copy_from_slice(&own.to_le_bytes());
            bytes
        };
        let good = Header::of(Kind::Want, 1, 0, &[], true).bytes();
        let with = |at: usize, value: u8| {
            let mut bytes = good;
            bytes[at] = value;
            Header::read(&signed(bytes), true)
        };
        assert!(matches!(with(4, 0), Err(FrameError::Kind { kind: 0, .. })));
        assert!(matches!(with(4, 12), Err(FrameError::Kind { kind: 12, .. })));
        assert!(matches!(with(5, 4), Err(FrameError::Kind { flags: 4, .. })));
        assert!(matches!(with(6, 1), Err(FrameError::Kind { .. })));
        assert!(matches!(with(2, 3), Err(FrameError::Length { most: MOST_BODY, .. })));
        assert!(matches!(with(5, UNCHECKED), Err(FrameError::NoSum { kind: Kind::Want })));
        assert!(Header::read(&Header::of(Kind::Want, 1, 0, &[], false).bytes(), false).is_ok());
    }
}
