//! Writing of bundles.

use crate::{
    BundleError,
    entry::{Entry, element_count, stored_size},
    files::{Files, Publishing, Temporary},
    ordered::slice_key,
    reader::{VERSION, data_file, header, index_file},
    slice::Part,
    strings,
    table::{Table, TableWriter},
};
use prost::Message;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};
use tenon_proto::checksum::{extend, mask};
use tenon_proto::{BundleHeaderProto, VersionDef};
use tenon_sdk::{DType, growth};

/// A tensor is written in pieces of this size, so that its checksum is taken from bytes that are then in the cache.
const PIECE: usize = 1 << 18;

/// The elements of a tensor that is written.
#[derive(Debug, Clone, Copy)]
pub enum Content<'c> {
    /// Elements of fixed size, little-endian.
    Bytes(&'c [u8]),
    /// Strings, or variants in their serialised form.
    Strings(&'c [&'c [u8]]),
}

/// A bundle that is written. Nothing can be seen of it until [`BundleWriter::finish`].
pub struct BundleWriter<'a> {
    files: Files<'a>,
    prefix: PathBuf,
    data: Temporary<'a>,
    entries: BTreeMap<Vec<u8>, Entry>,
}

impl<'a> BundleWriter<'a> {
    /// Begins a bundle: creates missing folders and a temporary data file.
    ///
    /// # Errors
    /// The system's error; the files must not be written.
    pub fn create(files: Files<'a>, prefix: &Path) -> Result<BundleWriter<'a>, BundleError> {
        let data = Temporary::create(files, &data_file(prefix, 0, 1))?;
        Ok(BundleWriter { files, prefix: prefix.to_owned(), data, entries: BTreeMap::new() })
    }

    /// Appends a tensor.
    ///
    /// # Errors
    /// The name is empty or there already; content of another size; the system's error.
    pub fn add(
        &mut self,
        name: &[u8],
        dtype: DType,
        dims: &[i64],
        content: Content<'_>,
    ) -> Result<(), BundleError> {
        check_name(name)?;
        self.append(growth::copied(name)?, name, dtype, dims, content)
    }

    /// Appends a part of a tensor.
    ///
    /// # Errors
    /// As [`BundleWriter::add`]; another type or shape than the other parts of the tensor have.
    pub fn add_part(
        &mut self,
        name: &[u8],
        part: &Part,
        dtype: DType,
        content: Content<'_>,
    ) -> Result<(), BundleError> {
        check_name(name)?;
        if part.slice.covers(&part.dims) {
            return self.add(name, dtype, &part.dims, content);
        }
        let whole = self.entries.get(name);
        if let Some(whole) = whole {
            let shown = String::from_utf8_lossy(name);
            if whole.slices.is_empty() {
                return Err(BundleError::Argument(format!("Adding duplicate key: {shown}")));
            }
            if whole.dtype != dtype || whole.dims != part.dims {
                return Err(BundleError::Argument(format!(
                    "tensor '{shown}': expected a slice of type {} of shape {:?}, as those before, found type {} of \
                     shape {:?}",
                    whole.dtype.name(),
                    whole.dims,
                    dtype.name(),
                    part.dims
                )));
            }
        }
        let key = slice_key(name, &part.slice.0);
        self.append(key, name, dtype, &part.part, content)?;
        let whole = self.entries.entry(growth::copied(name)?).or_insert_with(|| Entry {
            dtype,
            dims: part.dims.clone(),
            shard: 0,
            offset: 0,
            size: 0,
            checksum: 0,
            slices: Vec::new(),
        });
        growth::push(&mut whole.slices, part.slice.clone())?;
        Ok(())
    }

    fn append(
        &mut self,
        key: Vec<u8>,
        name: &[u8],
        dtype: DType,
        dims: &[i64],
        content: Content<'_>,
    ) -> Result<(), BundleError> {
        let shown = String::from_utf8_lossy(name);
        if self.entries.contains_key(&key) {
            return Err(BundleError::Argument(format!("Adding duplicate key: {shown}")));
        }
        let expected = element_count(dims).and_then(|count| match content {
            Content::Bytes(_) => count.checked_mul(stored_size(dtype)? as u64),
            Content::Strings(_) => stored_size(dtype).is_none().then_some(count),
        });
        let found = match content {
            Content::Bytes(bytes) => bytes.len(),
            Content::Strings(elements) => elements.len(),
        };
        if expected != Some(found as u64) || dtype == DType::RESOURCE {
            return Err(BundleError::Argument(format!(
                "tensor '{shown}': a tensor of type {} and shape {dims:?} cannot be saved from {found} bytes or elements",
                dtype.name()
            )));
        }
        let offset = self.data.written();
        let checksum = self.write(dtype, content)?;
        let size = self.data.written() - offset;
        let dims = growth::copied(dims)?;
        let entry = Entry { dtype, dims, shard: 0, offset, size, checksum, slices: Vec::new() };
        self.entries.insert(key, entry);
        Ok(())
    }

    fn write(&mut self, dtype: DType, content: Content<'_>) -> Result<u32, BundleError> {
        let data = &mut self.data;
        match content {
            Content::Strings(elements) => {
                strings::write_all(dtype, elements.iter().copied(), |bytes| data.write(bytes))
            }
            Content::Bytes(bytes) => {
                let mut crc = 0;
                for piece in bytes.chunks(PIECE) {
                    crc = extend(crc, piece);
                    data.write(piece)?;
                }
                Ok(mask(crc))
            }
        }
    }

    /// Publishes the bundle: its data file and then its index get their names. A bundle that had the same prefix is
    /// replaced by the last of these steps, so that there is a complete one at every moment.
    ///
    /// # Errors
    /// The system's error; another writer does not leave the folder.
    pub fn finish(mut self) -> Result<(), BundleError> {
        self.data.sync()?;
        let publishing = self.files.lock(&index_file(&self.prefix))?;
        let old = shards_of(self.files, &self.prefix);
        let shards = other_count(1, old);
        let index = Index::create(self.files, &self.prefix, shards, &self.entries)?;
        self.data.publish(&data_file(&self.prefix, 0, shards))?;
        index.publish(&publishing)?;
        discard_data(self.files, &self.prefix, old, shards);
        Ok(())
    }
}

impl std::fmt::Debug for BundleWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BundleWriter({}, {} entries)", self.prefix.display(), self.entries.len())
    }
}

/// Fails for a name that the index has no place for: the empty key is that of its header, and keys that begin with a zero
/// byte are those of slices.
fn check_name(name: &[u8]) -> Result<(), BundleError> {
    match name.first() {
        Some(&first) if first != 0 => Ok(()),
        _ => Err(BundleError::Argument(
            "tensor_names: expected names that are not empty and do not begin with a zero byte"
                .to_owned(),
        )),
    }
}

/// The number of data files of the bundle that a prefix has now; `None` if it has none that could be read.
pub(crate) fn shards_of(files: Files<'_>, prefix: &Path) -> Option<u32> {
    let mut table = Table::open(files, &index_file(prefix)).ok()?;
    header(&mut table).ok().map(|(shards, _)| shards)
}

/// A number of data files for a bundle that needs `count`: another one than the bundle with the same prefix has, so that
/// no file of that one is replaced before its index is.
pub(crate) fn other_count(count: u32, old: Option<u32>) -> u32 {
    if old == Some(count) { count + 1 } else { count }
}

/// The most data files that are looked for when a bundle was replaced.
const MOST_DISCARDED: u32 = 1024;

/// Removes the data files of a bundle that was replaced.
pub(crate) fn discard_data(files: Files<'_>, prefix: &Path, old: Option<u32>, new: u32) {
    let old = old.filter(|&old| old != new && old <= MOST_DISCARDED).unwrap_or(0);
    for shard in 0..old {
        let path = data_file(prefix, shard, old);
        if files.exists(&path).unwrap_or(false) {
            files.discard(&path);
        }
    }
}

/// An index under a temporary name. It is written before the data files get their names, so that a disk that is full for it
/// leaves them as they were.
pub(crate) struct Index<'a> {
    file: Temporary<'a>,
    path: PathBuf,
}

impl<'a> Index<'a> {
    /// Writes an index and makes it durable.
    pub fn create(
        files: Files<'a>,
        prefix: &Path,
        shards: u32,
        entries: &BTreeMap<Vec<u8>, Entry>,
    ) -> Result<Index<'a>, BundleError> {
        let path = index_file(prefix);
        let mut table = TableWriter::new(Temporary::create(files, &path)?);
        let header = BundleHeaderProto {
            num_shards: shards as i32,
            endianness: 0,
            version: Some(VersionDef { producer: VERSION, ..VersionDef::default() }),
        };
        table.add(b"", &header.encode_to_vec())?;
        for (key, entry) in entries {
            table.add(key, &entry.to_proto()?.encode_to_vec())?;
        }
        let mut file = table.finish()?;
        file.sync()?;
        Ok(Index { file, path })
    }

    /// Gives the index its name, after the data files have theirs.
    pub fn publish(self, publishing: &Publishing<'_>) -> Result<(), BundleError> {
        publishing.sync()?;
        self.file.publish(&self.path)?;
        publishing.sync()
    }
}
