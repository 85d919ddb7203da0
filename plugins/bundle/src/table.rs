//! Sorted tables from keys to values: the form of a bundle's index and of a V1 file (LevelDB's, as TensorFlow has it).
//!
//! A table is a sequence of blocks of entries, an index block with the last key and the place of each, and a footer. Each
//! block has a checksum, which is verified whenever the block is read.

mod block;

pub use block::{put_varint, varint};

use crate::{
    BundleError,
    files::{Files, Source, Temporary},
};
use block::{Block, BlockBuilder, Handle};
use std::path::Path;
use tenon_sdk::growth;

/// The last bytes of a table.
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// Size of the footer.
const FOOTER: usize = 48;
/// Entries between whole keys.
const INTERVAL: usize = 16;
/// A block is written when it has this many bytes.
const BLOCK: usize = 1 << 18;

/// A table that is read.
#[derive(Debug)]
pub struct Table {
    source: Source,
    /// The last key of each block, or one after it and before those of the next.
    index: Vec<(Vec<u8>, Handle)>,
    cached: Option<(usize, Block)>,
}

impl Table {
    /// Opens a table and reads its index.
    ///
    /// # Errors
    /// The file cannot be read; its footer or its index is damaged.
    pub fn open(files: Files<'_>, path: &Path) -> Result<Table, BundleError> {
        let source = Source::open(files, path)?;
        let Some(at) = source.len().checked_sub(FOOTER as u64) else {
            let what = format!("expected at least {FOOTER} bytes, found {}", source.len());
            return Err(source.damaged(0, format!("too short to be a table: {what}")));
        };
        let mut footer = [0; FOOTER];
        source.read(at, &mut footer)?;
        let (handles, magic) = footer.split_at(FOOTER - 8);
        if magic != MAGIC.to_le_bytes() {
            return Err(source.damaged(at + 40, "not a table: bad magic number at its end"));
        }
        let mut rest = handles;
        let (Some(meta), Some(index)) = (Handle::take(&mut rest), Handle::take(&mut rest)) else {
            return Err(source.damaged(at, "the footer of a table has no places of blocks"));
        };
        let mut expected = Vec::with_capacity(FOOTER);
        meta.put(&mut expected);
        index.put(&mut expected);
        expected.resize(FOOTER - 8, 0);
        // No checksum is of the footer, so that it must have the one form that is written.
        if handles != expected {
            return Err(
                source.damaged(at, "the footer of a table has another form than is written")
            );
        }
        Block::read(&source, meta)?;
        let block = Block::read(&source, index)?;
        let index = places(&source, &block, index, at)?;
        Ok(Table { source, index, cached: None })
    }

    /// The file.
    pub fn name(&self) -> String {
        self.source.name()
    }

    /// Whether a path still names the file, as far as the system tells.
    pub fn is_at(&self, files: Files<'_>, path: &Path) -> bool {
        match files.identity(path) {
            Ok(found) => found == self.source.identity(),
            // The file was removed: no other one has its place.
            Err(_) => true,
        }
    }

    /// Size of the file.
    pub fn size(&self) -> u64 {
        self.source.len()
    }

    /// The error for a value that does not have its form.
    pub fn damaged(&self, what: impl Into<String>) -> BundleError {
        self.source.damaged(0, what)
    }

    fn block(&mut self, at: usize) -> Result<&Block, BundleError> {
        if self.cached.as_ref().is_none_or(|(found, _)| *found != at) {
            let (last, handle) = &self.index[at];
            let block = Block::read(&self.source, *handle)?;
            let above = at.checked_sub(1).map(|at| &self.index[at].0[..]);
            let is_right = block.len() > 0
                && block.key(block.len() - 1) <= &last[..]
                && above.is_none_or(|above| block.key(0) > above);
            if !is_right {
                let what = "a block has other keys than the index says";
                return Err(self.source.damaged(handle.offset, what));
            }
            self.cached = Some((at, block));
        }
        match &self.cached {
            Some((_, block)) => Ok(block),
            None => Err(BundleError::Internal("a block that was read is missing".to_owned())),
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// The block that would have it is damaged.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, BundleError> {
        let at = self.index.partition_point(|(last, _)| last.as_slice() < key);
        if at == self.index.len() {
            return Ok(None);
        }
        let block = self.block(at)?;
        match block.find(key) {
            None => Ok(None),
            Some(at) => Ok(Some(growth::copied(block.value(at))?)),
        }
    }

    /// Calls `visit` with each key and its value, in the order of the keys.
    ///
    /// # Errors
    /// A block is damaged; the first error of `visit`.
    pub fn scan(
        &mut self,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), BundleError>,
    ) -> Result<(), BundleError> {
        for at in 0..self.index.len() {
            let block = self.block(at)?;
            (0..block.len()).try_for_each(|at| visit(block.key(at), block.value(at)))?;
        }
        Ok(())
    }
}

/// The last keys and the places that an index block has. Blocks follow each other, so that none is read twice.
fn places(
    source: &Source,
    block: &Block,
    own: Handle,
    footer: u64,
) -> Result<Vec<(Vec<u8>, Handle)>, BundleError> {
    let mut index = growth::with_room(block.len())?;
    let mut free = 0;
    for at in 0..block.len() {
        let mut value = block.value(at);
        let handle = Handle::take(&mut value).filter(|_| value.is_empty());
        let handle = handle.filter(|handle| handle.offset >= free);
        match handle.and_then(|handle| Some((handle, handle.end()?))) {
            Some((handle, end)) if end <= footer => {
                free = end;
                index.push((growth::copied(block.key(at))?, handle));
            }
            _ => return Err(source.damaged(own.offset, "the index of a table has a wrong place")),
        }
    }
    Ok(index)
}

/// A table that is written, with ascending keys.
pub(crate) struct TableWriter<'a> {
    file: Temporary<'a>,
    data: BlockBuilder,
    index: BlockBuilder,
    last: Vec<u8>,
    /// The place of the last block, until the next key is known.
    pending: Option<Handle>,
}

impl<'a> TableWriter<'a> {
    pub fn new(file: Temporary<'a>) -> TableWriter<'a> {
        TableWriter {
            file,
            data: BlockBuilder::new(INTERVAL),
            index: BlockBuilder::new(1),
            last: Vec::new(),
            pending: None,
        }
    }

    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), BundleError> {
        if let Some(handle) = self.pending.take() {
            self.place(handle, &separator(&self.last, key))?;
        }
        self.data.add(key, value)?;
        self.last.clear();
        growth::append(&mut self.last, key)?;
        if self.data.size() >= BLOCK { self.flush() } else { Ok(()) }
    }

    fn place(&mut self, handle: Handle, key: &[u8]) -> Result<(), BundleError> {
        let mut value = Vec::new();
        handle.put(&mut value);
        self.index.add(key, &value)
    }

    fn flush(&mut self) -> Result<(), BundleError> {
        if !self.data.is_empty() {
            self.pending = Some(write(&mut self.file, &mut self.data)?);
        }
        Ok(())
    }

    /// Writes the index and the footer.
    pub fn finish(mut self) -> Result<Temporary<'a>, BundleError> {
        self.flush()?;
        let meta = write(&mut self.file, &mut BlockBuilder::new(INTERVAL))?;
        if let Some(handle) = self.pending.take() {
            self.place(handle, &successor(&self.last))?;
        }
        let index = write(&mut self.file, &mut self.index)?;
        let mut footer = Vec::with_capacity(FOOTER);
        meta.put(&mut footer);
        index.put(&mut footer);
        footer.resize(FOOTER - 8, 0);
        footer.extend_from_slice(&MAGIC.to_le_bytes());
        self.file.write(&footer)?;
        Ok(self.file)
    }
}

fn write(file: &mut Temporary<'_>, block: &mut BlockBuilder) -> Result<Handle, BundleError> {
    let bytes = block.finish();
    let handle = Handle { offset: file.written(), size: bytes.len() as u64 - block::TRAILER };
    file.write(&bytes)?;
    Ok(handle)
}

/// The bytes of a table with one block, whose contents are given and whose checksum is right, for tests of what checksums
/// do not find.
#[doc(hidden)]
pub fn around(contents: &[u8], kind: u8) -> Vec<u8> {
    let mut table = block::sealed(contents.to_vec(), kind);
    let mut put = |builder: &mut BlockBuilder| {
        let bytes = builder.finish();
        let offset = table.len() as u64;
        table.extend_from_slice(&bytes);
        Handle { offset, size: bytes.len() as u64 - block::TRAILER }
    };
    let meta = put(&mut BlockBuilder::new(INTERVAL));
    let mut place = Vec::new();
    Handle { offset: 0, size: contents.len() as u64 }.put(&mut place);
    let mut index = BlockBuilder::new(1);
    // No key is above this one.
    let added = index.add(&[0xff; 64], &place);
    let index = put(&mut index);
    debug_assert!(added.is_ok(), "a block of one entry has room");
    let mut footer = Vec::with_capacity(FOOTER);
    meta.put(&mut footer);
    index.put(&mut footer);
    footer.resize(FOOTER - 8, 0);
    table.extend_from_slice(&footer);
    table.extend_from_slice(&MAGIC.to_le_bytes());
    table
}

/// A short key that is at least `last` and less than `next`.
fn separator(last: &[u8], next: &[u8]) -> Vec<u8> {
    let same = last.iter().zip(next).take_while(|(a, b)| a == b).count();
    match (last.get(same), next.get(same)) {
        (Some(&low), Some(&high)) if low < 0xff && low + 1 < high => {
            let mut key = last[..=same].to_vec();
            key[same] += 1;
            key
        }
        _ => last.to_vec(),
    }
}

/// A short key that is at least `last`.
fn successor(last: &[u8]) -> Vec<u8> {
    match last.iter().position(|&byte| byte != 0xff) {
        Some(at) => {
            let mut key = last[..=at].to_vec();
            key[at] += 1;
            key
        }
        None => last.to_vec(),
    }
}
