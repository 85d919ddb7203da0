//! Reading of bundles.

use crate::{
    BundleError,
    boxes::{Gather, GatherStrings, Twice, overlap, volume},
    entry::{Entry, stored_size},
    files::{Files, Source, with_end},
    ordered::slice_key,
    slice::{Part, Region, TensorSlice},
    strings::{self, Strings, Wrong},
    table::Table,
};
use prost::Message;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};
use tenon_proto::BundleHeaderProto;
use tenon_proto::checksum::extend;
use tenon_sdk::{DType, growth};

/// The version of the format that this crate reads and writes.
pub(crate) const VERSION: i32 = 1;
/// The most data files of one bundle that are open at once.
const MOST_OPEN: usize = 64;
/// How often a bundle is opened that is replaced again and again.
const MOST_TRIES: usize = 16;
/// A tensor is read in pieces of this size, so that its checksum is taken from bytes that are still in the cache.
const PIECE: usize = 1 << 18;

/// The index file of a prefix.
pub fn index_file(prefix: &Path) -> PathBuf {
    with_end(prefix, ".index")
}

/// A data file of a prefix.
pub fn data_file(prefix: &Path, shard: u32, shards: u32) -> PathBuf {
    with_end(prefix, &format!(".data-{shard:05}-of-{shards:05}"))
}

/// A bundle: TensorFlow's checkpoint in an index file and data files (V2).
pub struct Bundle<'a> {
    files: Files<'a>,
    prefix: PathBuf,
    table: Table,
    shards: u32,
    is_big: bool,
    open: Vec<(u32, Source)>,
}

/// The number of data files, and whether their numbers have their high bytes first.
pub(crate) fn header(table: &mut Table) -> Result<(u32, bool), BundleError> {
    let Some(bytes) = table.get(b"")? else {
        return Err(table.damaged("expected a bundle's header under the empty key, found none"));
    };
    let wrong = |what: String| table.damaged(format!("the header of the bundle: {what}"));
    let header = BundleHeaderProto::decode(&bytes[..]).map_err(|error| wrong(error.to_string()))?;
    let version = header.version.unwrap_or_default();
    if version.min_consumer > VERSION || version.bad_consumers.contains(&VERSION) {
        return Err(BundleError::Unsupported(format!(
            "file '{}': it needs a reader of version {}, and this one has version {VERSION}",
            table.name(),
            version.min_consumer
        )));
    }
    let is_big = match header.endianness {
        0 => false,
        1 => true,
        other => return Err(wrong(format!("expected endianness 0 or 1, found {other}"))),
    };
    match u32::try_from(header.num_shards) {
        Ok(shards) => Ok((shards, is_big)),
        Err(_) => Err(wrong(format!("it has {} data files", header.num_shards))),
    }
}

impl<'a> Bundle<'a> {
    /// Whether a prefix has an index.
    ///
    /// # Errors
    /// The file must not be looked for.
    pub fn exists(files: Files<'_>, prefix: &Path) -> Result<bool, BundleError> {
        files.exists(&index_file(prefix))
    }

    /// Opens a bundle. Its data files are opened when a tensor in them is read.
    ///
    /// # Errors
    /// The index cannot be read, is damaged, or needs a later version.
    pub fn open(files: Files<'a>, prefix: &Path) -> Result<Bundle<'a>, BundleError> {
        let mut table = Table::open(files, &index_file(prefix))?;
        let (shards, is_big) = header(&mut table)?;
        Ok(Bundle { files, prefix: prefix.to_owned(), table, shards, is_big, open: Vec::new() })
    }

    /// Opens a bundle and calls `prepare`, which finds entries and opens their data files by [`Bundle::check`]. If a save
    /// gives the prefix another bundle meanwhile, the data files may be those of that one, or removed: then both steps are
    /// repeated.
    ///
    /// # Errors
    /// As [`Bundle::open`]; the error of `prepare`.
    pub fn open_with<T>(
        files: Files<'a>,
        prefix: &Path,
        mut prepare: impl FnMut(&mut Bundle<'a>) -> Result<T, BundleError>,
    ) -> Result<(Bundle<'a>, T), BundleError> {
        let mut tries = 1;
        loop {
            let mut bundle = Bundle::open(files, prefix)?;
            let prepared = prepare(&mut bundle);
            if tries == MOST_TRIES || bundle.table.is_at(files, &index_file(prefix)) {
                return prepared.map(|prepared| (bundle, prepared));
            }
            tries += 1;
        }
    }

    /// The prefix, for messages.
    pub fn name(&self) -> String {
        self.prefix.display().to_string()
    }

    /// Number of data files.
    pub fn shards(&self) -> u32 {
        self.shards
    }

    /// Whether numbers have their high bytes first, as a machine of that kind wrote them.
    pub fn is_big_endian(&self) -> bool {
        self.is_big
    }

    /// The entry of a tensor; `None` if there is none of this name.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn find(&mut self, name: &[u8]) -> Result<Option<Entry>, BundleError> {
        if name.is_empty() {
            return Ok(None);
        }
        match self.table.get(name)? {
            None => Ok(None),
            Some(bytes) => self.entry(name, &bytes).map(Some),
        }
    }

    fn entry(&self, name: &[u8], bytes: &[u8]) -> Result<Entry, BundleError> {
        Entry::parse(bytes, self.shards).map_err(|what| {
            let name = String::from_utf8_lossy(name);
            self.table.damaged(format!("the entry of tensor '{name}': {what}"))
        })
    }

    /// The names and entries of all tensors, in the order of the names.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn entries(&mut self) -> Result<Vec<(Vec<u8>, Entry)>, BundleError> {
        let (mut found, mut raw) = (Vec::new(), Vec::new());
        self.table.scan(|key, value| {
            // Those of slices begin with 0.
            if !key.is_empty() && key[0] != 0 {
                growth::push(&mut raw, (growth::copied(key)?, growth::copied(value)?))?;
            }
            Ok(())
        })?;
        for (name, value) in raw {
            let entry = self.entry(&name, &value)?;
            growth::push(&mut found, (name, entry))?;
        }
        Ok(found)
    }

    /// The entry of a stored slice of a tensor.
    ///
    /// # Errors
    /// The index is damaged: the slice is missing, or has another type or shape than the tensor's entry says.
    pub(crate) fn piece(
        &mut self,
        name: &[u8],
        entry: &Entry,
        slice: &TensorSlice,
    ) -> Result<Entry, BundleError> {
        let shown = String::from_utf8_lossy(name);
        let Some(bytes) = self.table.get(&slice_key(name, &slice.0))? else {
            return Err(self
                .table
                .damaged(format!("slice {slice} of tensor '{shown}' is missing")));
        };
        let piece = self.entry(name, &bytes)?;
        let is_right = piece.slices.is_empty()
            && piece.dtype == entry.dtype
            && slice.dims(&entry.dims).as_deref() == Some(&piece.dims);
        match is_right {
            true => Ok(piece),
            false => Err(self
                .table
                .damaged(format!("slice {slice} of tensor '{shown}' has another type or shape"))),
        }
    }

    /// Opens each data file, to see that it is present.
    pub(crate) fn open_all(&mut self) -> Result<(), BundleError> {
        (0..self.shards).try_for_each(|shard| self.source(shard).map(|_| ()))
    }

    fn source(&mut self, shard: u32) -> Result<&Source, BundleError> {
        let at = match self.open.iter().position(|(open, _)| *open == shard) {
            Some(at) => at,
            None => {
                let path = data_file(&self.prefix, shard, self.shards);
                let source = Source::open(self.files, &path)?;
                if self.open.len() == MOST_OPEN {
                    self.open.remove(0);
                }
                self.open.push((shard, source));
                self.open.len() - 1
            }
        };
        Ok(&self.open[at].1)
    }

    /// The shape of what `part` names in a tensor, or of the tensor.
    ///
    /// # Errors
    /// The part is one of a tensor of another shape.
    pub fn dims<'e>(
        &self,
        name: &[u8],
        entry: &'e Entry,
        part: Option<&'e Part>,
    ) -> Result<&'e [i64], BundleError> {
        match part {
            None => Ok(&entry.dims),
            Some(part) if part.dims == entry.dims => Ok(&part.part),
            Some(part) => Err(self.wrong_part(
                name,
                format!(
                    "shape in shape_and_slice spec {:?} does not match the shape stored in checkpoint: {:?}",
                    part.dims, entry.dims
                ),
            )),
        }
    }

    fn wrong_part(&self, name: &[u8], what: String) -> BundleError {
        let name = String::from_utf8_lossy(name).into_owned();
        BundleError::Part { checkpoint: self.name(), name, what }
    }

    fn wanted(entry: &Entry, part: Option<&Part>) -> Region {
        let part = part.and_then(|part| part.slice.region(&entry.dims));
        part.unwrap_or_else(|| entry.dims.iter().map(|&dim| (0, dim as u64)).collect())
    }

    /// The stored pieces that have elements of a wanted region.
    fn pieces(
        &mut self,
        name: &[u8],
        entry: &Entry,
        wanted: &Region,
    ) -> Result<Vec<(Region, Entry)>, BundleError> {
        if entry.slices.is_empty() {
            return Ok(vec![(Self::wanted(entry, None), entry.clone())]);
        }
        let mut pieces = Vec::new();
        for slice in &entry.slices {
            let Some(region) = slice.region(&entry.dims) else { continue };
            if overlap(&region, wanted).is_none() {
                continue;
            }
            let piece = self.piece(name, entry, slice)?;
            growth::push(&mut pieces, (region, piece))?;
        }
        Ok(pieces)
    }

    fn insufficient(&self, name: &[u8], part: Option<&Part>) -> BundleError {
        let spec = part.map_or_else(|| "-".to_owned(), |part| part.slice.to_string());
        let name = String::from_utf8_lossy(name);
        BundleError::Argument(format!(
            "Does not have sufficient slices for partitioned tensor {name} to restore in slice_spec: {spec}"
        ))
    }

    /// Fails unless the data files are long enough for what is wanted of a tensor. It comes before memory is taken for the
    /// elements: an index may say any shape, and may name the same bytes for many slices. The data files stay open, up to
    /// 64 of them, so that a save that replaces the bundle afterwards does not change what is read.
    ///
    /// # Errors
    /// A file is missing or too short; the stored slices cannot have all elements, or are larger than the files.
    pub fn check(
        &mut self,
        name: &[u8],
        entry: &Entry,
        part: Option<&Part>,
    ) -> Result<(), BundleError> {
        let wanted = Self::wanted(entry, part);
        let (mut stored, mut lengths) = (0u64, BTreeMap::new());
        for (_, piece) in self.pieces(name, entry, &wanted)? {
            let source = self.source(piece.shard)?;
            source.check(piece.offset, piece.size)?;
            lengths.insert(piece.shard, source.len());
            stored = stored.saturating_add(piece.size);
        }
        let most = lengths.values().fold(0u64, |sum, &length| sum.saturating_add(length));
        if stored > most {
            let name = String::from_utf8_lossy(name);
            return Err(self.table.damaged(format!(
                "expected the slices of tensor '{name}' to have at most the {most} bytes of their data files, found \
                 {stored} bytes: some slices are the same bytes"
            )));
        }
        let least = stored_size(entry.dtype).unwrap_or(1) as u64;
        match volume(&wanted).checked_mul(least) {
            Some(size) if size <= stored => Ok(()),
            _ => Err(self.insufficient(name, part)),
        }
    }

    /// Reads elements of fixed size, of which `out` has the size of those of [`Bundle::dims`].
    ///
    /// # Errors
    /// A file is missing, too short or damaged; the stored slices do not have all elements; `INTERNAL` for another size.
    pub fn read(
        &mut self,
        name: &[u8],
        entry: &Entry,
        part: Option<&Part>,
        out: &mut [u8],
    ) -> Result<(), BundleError> {
        self.dims(name, entry, part)?;
        let wanted = Self::wanted(entry, part);
        let Some(each) = stored_size(entry.dtype) else {
            return Err(BundleError::Internal("expected elements of a fixed size".to_owned()));
        };
        let expected = volume(&wanted).checked_mul(each as u64);
        if expected != Some(out.len() as u64) {
            let what = format!("expected room for {expected:?} bytes, found {}", out.len());
            return Err(BundleError::Internal(what));
        }
        if out.is_empty() {
            return Ok(());
        }
        let pieces = self.pieces(name, entry, &wanted)?;
        if let [(region, piece)] = &pieces[..]
            && *region == wanted
        {
            return self.read_whole(piece, out);
        }
        let mut gather = Gather::new(out, each, &wanted)?;
        let mut buffer = Vec::new();
        for (region, piece) in &pieces {
            let len = usize::try_from(piece.size).map_err(|_| self.insufficient(name, part))?;
            // The file has this many bytes, so that no more memory is taken than that.
            self.source(piece.shard)?.check(piece.offset, piece.size)?;
            buffer.clear();
            growth::reserve(&mut buffer, len)?;
            buffer.resize(len, 0);
            self.read_whole(piece, &mut buffer)?;
            gather.add(region, &buffer).map_err(|Twice| self.overlapping(name))?;
        }
        if gather.is_complete() { Ok(()) } else { Err(self.insufficient(name, part)) }
    }

    fn overlapping(&self, name: &[u8]) -> BundleError {
        let name = String::from_utf8_lossy(name);
        BundleError::Argument(format!("Overlapping slices of tensor {name} in '{}'", self.name()))
    }

    /// Reads all bytes of a stored tensor, and compares their checksum.
    fn read_whole(&mut self, entry: &Entry, out: &mut [u8]) -> Result<(), BundleError> {
        let is_big = self.is_big;
        let source = self.source(entry.shard)?;
        source.check(entry.offset, entry.size)?;
        let (mut crc, mut at) = (0, entry.offset);
        for piece in out.chunks_mut(PIECE) {
            source.read(at, piece)?;
            crc = extend(crc, piece);
            at += piece.len() as u64;
        }
        strings::check(crc, entry.checksum).map_err(|wrong| located(source, entry, wrong))?;
        if is_big {
            swap(entry.dtype, out);
        }
        Ok(())
    }

    /// Reads strings, or variants in their serialised form.
    ///
    /// # Errors
    /// As [`Bundle::read`].
    pub fn read_strings(
        &mut self,
        name: &[u8],
        entry: &Entry,
        part: Option<&Part>,
    ) -> Result<Strings, BundleError> {
        self.dims(name, entry, part)?;
        // The files have a byte for each wanted string, so that no more memory is taken than they make necessary.
        self.check(name, entry, part)?;
        let wanted = Self::wanted(entry, part);
        let pieces = self.pieces(name, entry, &wanted)?;
        if let [(region, piece)] = &pieces[..]
            && *region == wanted
        {
            return self.read_all_strings(piece);
        }
        let count = usize::try_from(volume(&wanted)).map_err(|_| self.insufficient(name, part))?;
        let mut gather = GatherStrings::new(count, &wanted)?;
        for (region, piece) in &pieces {
            let strings = self.read_all_strings(piece)?;
            gather.add(region, strings).map_err(|Twice| self.overlapping(name))?;
        }
        gather.finish()?.ok_or_else(|| self.insufficient(name, part))
    }

    fn read_all_strings(&mut self, entry: &Entry) -> Result<Strings, BundleError> {
        let is_big = self.is_big;
        let source = self.source(entry.shard)?;
        source.check(entry.offset, entry.size)?;
        let len = usize::try_from(entry.size).map_err(|_| {
            source.damaged(entry.offset, "a tensor is larger than the address space")
        })?;
        let mut bytes = growth::filled(len, 0)?;
        source.read(entry.offset, &mut bytes)?;
        strings::parse(entry.dtype, bytes, entry.elements(), entry.checksum, is_big)
            .map_err(|wrong| located(source, entry, wrong))
    }
}

impl std::fmt::Debug for Bundle<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bundle({}, {} data files)", self.prefix.display(), self.shards)
    }
}

fn located(source: &Source, entry: &Entry, wrong: Wrong) -> BundleError {
    match wrong {
        Wrong::Damaged(at, what) => source.damaged(entry.offset.saturating_add(at as u64), what),
        Wrong::Memory(error) => error.into(),
    }
}

/// Reverses the bytes of each number.
fn swap(dtype: DType, bytes: &mut [u8]) {
    let parts = if dtype.is_complex() { 2 } else { 1 };
    let each = stored_size(dtype).unwrap_or(1) / parts;
    if each > 1 {
        bytes.chunks_exact_mut(each).for_each(<[u8]>::reverse);
    }
}
