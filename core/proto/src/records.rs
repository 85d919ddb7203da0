//! Records of TFRecord and event files: a length with its checksum, the bytes, and their checksum.
//!
//! What it is: the frame around one record, for writers and readers of any kind of file. A frame has 8 bytes of length,
//! 4 of its checksum, the record, and 4 of the record's checksum; numbers are little endian, checksums
//! [masked](crate::checksum::mask).
//!
//! ```
//! use tenon_proto::records::{length, is_intact, write};
//!
//! let mut file = Vec::new();
//! write(&mut file, b"hello")?;
//! let (head, rest) = file.split_first_chunk().unwrap();
//! assert_eq!(length(head), Some(5));
//! assert!(is_intact(&rest[..5], rest.last_chunk().unwrap()));
//! # Ok::<(), std::io::Error>(())
//! ```

use crate::checksum::{extend, mask};
use std::io::{self, Write};

/// The number of bytes before a record.
pub const HEAD: usize = 12;
/// The number of bytes after a record.
pub const TAIL: usize = 4;

/// The masked checksum of these bytes, as files hold it.
fn sum(bytes: &[u8]) -> [u8; TAIL] {
    mask(extend(0, bytes)).to_le_bytes()
}

/// Writes a record.
///
/// # Errors
/// The writer's.
pub fn write(to: &mut impl Write, record: &[u8]) -> io::Result<()> {
    let length = (record.len() as u64).to_le_bytes();
    to.write_all(&length)?;
    to.write_all(&sum(&length))?;
    to.write_all(record)?;
    to.write_all(&sum(record))
}

/// The length of the record after this head; `None` if the checksum does not fit.
pub fn length(head: &[u8; HEAD]) -> Option<u64> {
    let (length, found) = head.split_first_chunk()?;
    (sum(length) == *found).then(|| u64::from_le_bytes(*length))
}

/// Whether a record has the checksum that follows it.
pub fn is_intact(record: &[u8], tail: &[u8; TAIL]) -> bool {
    sum(record) == *tail
}
