//! Blocks of a table: entries whose keys share beginnings, and the places where they do not.

use crate::{BundleError, files::Source};
use std::ops::Range;
use tenon_proto::checksum::{extend, mask, unmask};
use tenon_sdk::growth;

/// Bytes after a block: its type and its checksum.
pub const TRAILER: u64 = 5;
/// The type of a block as it is.
pub const PLAIN: u8 = 0;
/// The type of a compressed block.
const SNAPPY: u8 = 1;
/// A compressed byte stands for at most this many: a copy of 64 bytes has 3 or 5.
const MOST_EXPANSION: usize = 32;
/// The most entries from one whole key to the next. A key is at most as long as the parts of keys that these entries have
/// of their own, so that the keys of a block have together at most this many times its bytes.
const MOST_SHARING: usize = 16;

/// Where a block is in its file, without its trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    pub offset: u64,
    pub size: u64,
}

/// Takes a number of variable length.
pub fn varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for at in 0..10u32 {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        let bits = u64::from(byte & 0x7f);
        if at == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * at);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Appends a number of variable length.
pub fn put_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

impl Handle {
    pub fn take(from: &mut &[u8]) -> Option<Handle> {
        Some(Handle { offset: varint(from)?, size: varint(from)? })
    }

    pub fn put(self, to: &mut Vec<u8>) {
        put_varint(to, self.offset);
        put_varint(to, self.size);
    }

    /// Where the trailer ends.
    pub fn end(self) -> Option<u64> {
        self.offset.checked_add(self.size)?.checked_add(TRAILER)
    }
}

/// A block in memory.
#[derive(Debug)]
pub struct Block {
    bytes: Vec<u8>,
    /// In ascending order.
    entries: Vec<(Vec<u8>, Range<usize>)>,
}

impl Block {
    /// Reads a block of a file, and checks its checksum and its form.
    pub fn read(source: &Source, handle: Handle) -> Result<Block, BundleError> {
        let damaged = |what: &str| source.damaged(handle.offset, what);
        let len = usize::try_from(handle.size).ok().and_then(|size| size.checked_add(5));
        let len = len.ok_or_else(|| damaged("a block is larger than the address space"))?;
        if handle.end().is_none_or(|end| end > source.len()) {
            return Err(damaged("a block ends after the file"));
        }
        let mut bytes = growth::filled(len, 0u8)?;
        source.read(handle.offset, &mut bytes)?;
        let (kind, stored) = match bytes[len - 5..] {
            [kind, a, b, c, d] => (kind, u32::from_le_bytes([a, b, c, d])),
            _ => return Err(damaged("a block has no trailer")),
        };
        bytes.truncate(len - 4);
        let found = mask(extend(0, &bytes));
        if found != stored {
            let what = format!(
                "block checksum mismatch: expected {:#010x}, found {:#010x}",
                unmask(stored),
                unmask(found)
            );
            return Err(damaged(&what));
        }
        bytes.truncate(len - 5);
        let bytes = match kind {
            PLAIN => bytes,
            SNAPPY => expanded(&bytes).map_err(|what| match what {
                Expanding::Wrong(what) => damaged(&what),
                Expanding::Memory(error) => error,
            })?,
            other => {
                return Err(damaged(&format!(
                    "expected a block of type 0 or 1 (snappy), found type {other}"
                )));
            }
        };
        Block::parse(bytes).map_err(|error| match error {
            Parsing::Wrong(what) => damaged(what),
            Parsing::Memory(error) => error,
        })
    }

    fn parse(bytes: Vec<u8>) -> Result<Block, Parsing> {
        let (end, restarts) = layout(&bytes).ok_or(Parsing::Wrong("a block has no restarts"))?;
        let mut restarts =
            restarts.iter().map(|&restart| u32::from_le_bytes(restart) as usize).peekable();
        let mut entries: Vec<(Vec<u8>, Range<usize>)> = Vec::new();
        let (mut at, mut since) = (0, 0);
        while at < end {
            let is_restart = restarts.next_if_eq(&at).is_some();
            since = if is_restart { 1 } else { since + 1 };
            let mut rest = &bytes[at..end];
            let mut number = || usize::try_from(varint(&mut rest)?).ok();
            let (Some(shared), Some(own), Some(value)) = (number(), number(), number()) else {
                return Err(Parsing::Wrong("an entry of a block has no lengths"));
            };
            let begin = end - rest.len();
            let last: &[u8] = entries.last().map_or(&[], |(key, _)| key);
            let wrong = Parsing::Wrong("an entry of a block is longer than the block");
            let Some(stop) = own.checked_add(value).and_then(|len| begin.checked_add(len)) else {
                return Err(wrong);
            };
            if stop > end || shared > last.len() {
                return Err(wrong);
            }
            if is_restart && shared > 0 || since > MOST_SHARING {
                return Err(Parsing::Wrong(
                    "expected a whole key at each restart of a block, and a restart after 16 entries at most",
                ));
            }
            let mut key = growth::with_room(shared + own).map_err(Parsing::memory)?;
            key.extend_from_slice(&last[..shared]);
            key.extend_from_slice(&bytes[begin..begin + own]);
            if !entries.is_empty() && key.as_slice() <= last {
                return Err(Parsing::Wrong("the keys of a block do not ascend"));
            }
            growth::push(&mut entries, (key, begin + own..stop)).map_err(Parsing::memory)?;
            at = stop;
        }
        // A block without entries has one restart.
        let is_over = match end {
            0 => restarts.eq([0]),
            _ => restarts.next().is_none(),
        };
        match is_over {
            true => Ok(Block { bytes, entries }),
            false => Err(Parsing::Wrong("a restart of a block is not the beginning of an entry")),
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn key(&self, at: usize) -> &[u8] {
        &self.entries[at].0
    }

    pub fn value(&self, at: usize) -> &[u8] {
        &self.bytes[self.entries[at].1.clone()]
    }

    /// Position of a key.
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        self.entries.binary_search_by(|(found, _)| found.as_slice().cmp(key)).ok()
    }
}

enum Parsing {
    Wrong(&'static str),
    Memory(BundleError),
}

impl Parsing {
    fn memory(error: tenon_sdk::KernelError) -> Parsing {
        Parsing::Memory(error.into())
    }
}

/// Where the entries of a block end, and its restarts; `None` if they are not within it.
fn layout(bytes: &[u8]) -> Option<(usize, &[[u8; 4]])> {
    let (entries, count) = bytes.split_last_chunk::<4>()?;
    let count = u32::from_le_bytes(*count) as usize;
    let end = entries.len().checked_sub(count.checked_mul(4)?)?;
    let restarts = entries[end..].as_chunks::<4>().0;
    let within = |restart: &[u8; 4]| u32::from_le_bytes(*restart) as usize <= end;
    (count > 0 && restarts.iter().all(within)).then_some((end, restarts))
}

enum Expanding {
    Wrong(String),
    Memory(BundleError),
}

fn expanded(bytes: &[u8]) -> Result<Vec<u8>, Expanding> {
    let wrong = |error: snap::Error| Expanding::Wrong(format!("a compressed block: {error}"));
    let len = snap::raw::decompress_len(bytes).map_err(wrong)?;
    if len > bytes.len().saturating_mul(MOST_EXPANSION) {
        let what = format!("a compressed block of {} bytes claims {len}", bytes.len());
        return Err(Expanding::Wrong(what));
    }
    let mut plain = growth::filled(len, 0u8).map_err(|error| Expanding::Memory(error.into()))?;
    let found = snap::raw::Decoder::new().decompress(bytes, &mut plain).map_err(wrong)?;
    plain.truncate(found);
    Ok(plain)
}

/// A block that is written.
#[derive(Debug)]
pub struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    since: usize,
    interval: usize,
    last: Vec<u8>,
}

impl BlockBuilder {
    /// A block whose keys are whole after every `interval` entries.
    pub fn new(interval: usize) -> BlockBuilder {
        BlockBuilder { bytes: Vec::new(), restarts: vec![0], since: 0, interval, last: Vec::new() }
    }

    /// Appends an entry; keys ascend.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), BundleError> {
        growth::reserve(&mut self.bytes, key.len() + value.len() + 30)?;
        let mut shared = 0;
        if self.since < self.interval {
            shared = key.iter().zip(&self.last).take_while(|(a, b)| a == b).count();
        } else {
            let at = u32::try_from(self.bytes.len());
            self.restarts.push(at.map_err(|_| {
                BundleError::Argument("the index of a checkpoint would exceed 4 GiB".to_owned())
            })?);
            self.since = 0;
        }
        put_varint(&mut self.bytes, shared as u64);
        put_varint(&mut self.bytes, (key.len() - shared) as u64);
        put_varint(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
        self.since += 1;
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Size of the block.
    pub fn size(&self) -> usize {
        self.bytes.len() + 4 * self.restarts.len() + 4
    }

    /// The bytes of the block with its trailer; the builder is empty afterwards.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        for restart in &self.restarts {
            bytes.extend_from_slice(&restart.to_le_bytes());
        }
        bytes.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        *self = BlockBuilder::new(self.interval);
        sealed(bytes, PLAIN)
    }
}

/// A block with its trailer.
pub fn sealed(mut bytes: Vec<u8>, kind: u8) -> Vec<u8> {
    bytes.push(kind);
    let sum = mask(extend(0, &bytes));
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of entries without values: what each shares with the one before, and its own part of the key.
    fn block(entries: &[(u8, &[u8])], restarts: &[u32]) -> Result<Block, &'static str> {
        let mut bytes = Vec::new();
        for (shared, own) in entries {
            bytes.extend_from_slice(&[*shared, own.len() as u8, 0]);
            bytes.extend_from_slice(own);
        }
        restarts.iter().for_each(|restart| bytes.extend_from_slice(&restart.to_le_bytes()));
        bytes.extend_from_slice(&(restarts.len() as u32).to_le_bytes());
        Block::parse(bytes).map_err(|error| match error {
            Parsing::Wrong(what) => what,
            Parsing::Memory(_) => "memory",
        })
    }

    #[test]
    fn keys_are_whole_at_restarts() {
        let entries: [(u8, &[u8]); 2] = [(0, b"a"), (1, b"b")];
        let found = block(&entries, &[0]).unwrap();
        assert_eq!((found.key(0), found.key(1)), (&b"a"[..], &b"ab"[..]));
        let whole = "expected a whole key at each restart of a block, and a restart after 16 entries at most";
        assert_eq!(block(&entries, &[0, 4]).unwrap_err(), whole);
        assert_eq!(block(&[(0, b"a"), (0, b"b")], &[0, 4]).unwrap().len(), 2);
        let stray = "a restart of a block is not the beginning of an entry";
        for restarts in [&[0, 3][..], &[0, 8], &[0, 4, 4], &[4, 0]] {
            let found = block(&[(0, b"a"), (0, b"b")], restarts);
            assert_eq!(found.err(), Some(stray), "{restarts:?}");
        }
        assert_eq!(block(&[], &[0]).unwrap().len(), 0);
        assert_eq!(block(&[], &[0, 0]).unwrap_err(), stray);
    }

    #[test]
    fn a_key_is_whole_after_sixteen_entries() {
        let long: Vec<(u8, &[u8])> = (0..17).map(|at| (at, &b"x"[..])).collect();
        assert_eq!(block(&long[..16], &[0]).unwrap().key(15), [b'x'; 16]);
        assert!(block(&long, &[0]).unwrap_err().contains("after 16 entries"));
    }
}
