//! Reading of V1 files.

use super::{VERSION, values};
use crate::{
    BundleError,
    boxes::{Gather, GatherStrings, Twice, overlap, volume},
    entry::{dims_of, element_count, stored_size},
    files::Files,
    messages::{SavedSliceMeta, SavedTensorSlices},
    ordered::slice_key,
    slice::{Part, Region, TensorSlice},
    strings::Strings,
    table::Table,
};
use prost::Message;
use std::collections::BTreeMap;
use tenon_files::path_of;
use tenon_proto::TensorProto;
use tenon_sdk::{DType, growth};

/// The most elements for each byte of the files: one of an element takes a byte, and compression less than this.
const MOST_ELEMENTS: u64 = 32;

/// The most files of one pattern.
const MOST_FILES: usize = 512;

/// A stored slice: what it covers, its form, and the number of its file.
type Stored = (Region, TensorSlice, usize);

/// What V1 files say of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedTensor {
    /// The type of its elements.
    pub dtype: DType,
    /// Its whole shape.
    pub dims: Vec<i64>,
    /// Its slices, each with the number of its file.
    pub slices: Vec<(TensorSlice, usize)>,
}

impl SavedTensor {
    /// Number of elements.
    pub fn elements(&self) -> u64 {
        element_count(&self.dims).unwrap_or(0)
    }
}

/// The V1 files of a pattern, which together are a checkpoint.
#[derive(Debug)]
pub struct SliceFiles {
    pattern: String,
    tables: Vec<Table>,
    tensors: BTreeMap<Vec<u8>, SavedTensor>,
}

impl SliceFiles {
    /// Opens all files of a pattern, such as `model-?????-of-00002`, or one file.
    ///
    /// # Errors
    /// `NOT_FOUND` if there is none; one is damaged, or says another type or shape of a tensor than those before.
    pub fn open(files: Files<'_>, pattern: &[u8]) -> Result<SliceFiles, BundleError> {
        let mut names = files.matching(pattern)?;
        names.sort();
        let pattern = String::from_utf8_lossy(pattern).into_owned();
        if names.is_empty() {
            return Err(BundleError::NoCheckpoint(pattern));
        }
        if names.len() > MOST_FILES {
            return Err(BundleError::Argument(format!(
                "'{pattern}': expected at most {MOST_FILES} files, found {}",
                names.len()
            )));
        }
        let (tables, tensors) = (Vec::new(), BTreeMap::new());
        let mut opened = SliceFiles { pattern, tables, tensors };
        for name in names {
            opened.add(Table::open(files, &path_of(&name))?)?;
        }
        Ok(opened)
    }

    fn add(&mut self, mut table: Table) -> Result<(), BundleError> {
        let wrong = |table: &Table, what: &str| table.damaged(format!("a V1 file: {what}"));
        let message = match table.get(b"")? {
            Some(bytes) => SavedTensorSlices::decode(&bytes[..])
                .map_err(|error| wrong(&table, &error.to_string()))?,
            None => return Err(wrong(&table, "expected its contents under the empty key")),
        };
        // An index of a bundle has another message there, without these fields.
        let meta = message.meta.unwrap_or_default();
        let versions = meta.versions.clone().unwrap_or_default();
        if versions.min_consumer > VERSION || versions.bad_consumers.contains(&VERSION) {
            return Err(BundleError::Unsupported(format!(
                "file '{}': it needs a reader of version {}, and this one has version {VERSION}",
                table.name(),
                versions.min_consumer
            )));
        }
        let number = self.tables.len();
        for tensor in &meta.tensor {
            self.register(tensor, number).map_err(|what| wrong(&table, &what))?;
        }
        self.tables.push(table);
        Ok(())
    }

    fn register(&mut self, tensor: &SavedSliceMeta, number: usize) -> Result<(), String> {
        let shown = String::from_utf8_lossy(&tensor.name).into_owned();
        let dims = dims_of(tensor.shape.as_ref())
            .ok_or_else(|| format!("the shape of tensor '{shown}' is not complete"))?;
        let dtype = DType(tensor.r#type as u32);
        if !dtype.is_valid() || dtype.is_ref() {
            return Err(format!("tensor '{shown}' has the unknown type {}", tensor.r#type));
        }
        let slices = Vec::new();
        let known = self.tensors.entry(tensor.name.clone());
        let known = known.or_insert(SavedTensor { dtype, dims: dims.clone(), slices });
        if known.dtype != dtype || known.dims != dims {
            return Err(format!("tensor '{shown}' has another type or shape than in files before"));
        }
        for slice in &tensor.slice {
            let slice = slice.to_slice();
            if slice.region(&dims).is_none() {
                return Err(format!("slice {slice} of tensor '{shown}' is not within {dims:?}"));
            }
            known.slices.push((slice, number));
        }
        Ok(())
    }

    /// The pattern, for messages.
    pub fn name(&self) -> &str {
        &self.pattern
    }

    /// The tensors, in the order of their names.
    pub fn tensors(&self) -> impl Iterator<Item = (&[u8], &SavedTensor)> {
        self.tensors.iter().map(|(name, tensor)| (&name[..], tensor))
    }

    /// A tensor; `None` if there is none of this name.
    pub fn find(&self, name: &[u8]) -> Option<&SavedTensor> {
        self.tensors.get(name)
    }

    /// The shape of what `part` names in a tensor, or of the tensor.
    ///
    /// # Errors
    /// There is no such tensor; the part is one of a tensor of another shape.
    pub fn dims(&self, name: &[u8], part: Option<&Part>) -> Result<Vec<i64>, BundleError> {
        let tensor = self.tensor(name)?;
        match part {
            None => Ok(tensor.dims.clone()),
            Some(part) if part.dims == tensor.dims => Ok(part.part.clone()),
            Some(part) => Err(BundleError::Part {
                checkpoint: self.pattern.clone(),
                name: String::from_utf8_lossy(name).into_owned(),
                what: format!(
                    "Shape in shape_and_slice spec does not match the shape in the save file: {:?}, save file shape: {:?}",
                    part.dims, tensor.dims
                ),
            }),
        }
    }

    fn tensor(&self, name: &[u8]) -> Result<&SavedTensor, BundleError> {
        self.tensors.get(name).ok_or_else(|| BundleError::Missing {
            checkpoint: self.pattern.clone(),
            names: vec![String::from_utf8_lossy(name).into_owned()],
        })
    }

    /// The region that is wanted, and the slices that have elements of it. Together they have no more elements than the
    /// tensor, so that a file that lists one slice many times takes no memory for each.
    fn wanted(
        &self,
        name: &[u8],
        part: Option<&Part>,
    ) -> Result<(Region, Vec<Stored>), BundleError> {
        self.dims(name, part)?;
        let tensor = self.tensor(name)?;
        let whole = || tensor.dims.iter().map(|&dim| (0, dim as u64)).collect();
        let wanted: Region =
            part.and_then(|part| part.slice.region(&tensor.dims)).unwrap_or_else(whole);
        let (mut found, mut common, mut all) = (Vec::new(), 0u64, 0u64);
        for (slice, number) in &tensor.slices {
            let Some(region) = slice.region(&tensor.dims) else { continue };
            let Some(both) = overlap(&region, &wanted) else { continue };
            common = common.saturating_add(volume(&both));
            all = all.saturating_add(volume(&region));
            if common > volume(&wanted) || all > tensor.elements() {
                return Err(self.overlapping(name));
            }
            growth::push(&mut found, (region, slice.clone(), *number))?;
        }
        Ok((wanted, found))
    }

    /// The message with the elements of a slice, and its file.
    fn message(
        &mut self,
        name: &[u8],
        slice: &TensorSlice,
        number: usize,
    ) -> Result<(TensorProto, &Table), BundleError> {
        let table = &mut self.tables[number];
        let shown = || format!("slice {slice} of tensor '{}'", String::from_utf8_lossy(name));
        let Some(bytes) = table.get(&slice_key(name, &slice.0))? else {
            return Err(table.damaged(format!("{} is missing", shown())));
        };
        let message = SavedTensorSlices::decode(&bytes[..])
            .map_err(|error| table.damaged(format!("{}: {error}", shown())))?;
        match message.data.and_then(|data| data.data) {
            Some(proto) => Ok((proto, table)),
            None => Err(table.damaged(format!("{} has no data", shown()))),
        }
    }

    fn insufficient(&self, name: &[u8]) -> BundleError {
        BundleError::Argument(format!(
            "Does not have sufficient slices for tensor {} in '{}'",
            String::from_utf8_lossy(name),
            self.pattern
        ))
    }

    fn overlapping(&self, name: &[u8]) -> BundleError {
        BundleError::Argument(format!(
            "Overlapping slices of tensor {} in '{}'",
            String::from_utf8_lossy(name),
            self.pattern
        ))
    }

    /// Fails unless the files are long enough for what is wanted of a tensor. It comes before memory is taken for the
    /// elements: a file may say any shape.
    ///
    /// # Errors
    /// There is no such tensor; the files cannot have all elements.
    pub fn check(&self, name: &[u8], part: Option<&Part>) -> Result<(), BundleError> {
        let count = element_count(&self.dims(name, part)?);
        let bytes = self.tables.iter().map(Table::size).fold(0, u64::saturating_add);
        match count {
            Some(count) if count <= bytes.saturating_mul(MOST_ELEMENTS) => Ok(()),
            _ => Err(self.insufficient(name)),
        }
    }

    /// Reads elements of fixed size, of which `out` has the size of those of [`SliceFiles::dims`].
    ///
    /// # Errors
    /// A file is damaged; the slices do not have all elements; `INTERNAL` for another size.
    pub fn read(
        &mut self,
        name: &[u8],
        part: Option<&Part>,
        out: &mut [u8],
    ) -> Result<(), BundleError> {
        let dtype = self.tensor(name)?.dtype;
        let (wanted, slices) = self.wanted(name, part)?;
        let each = stored_size(dtype)
            .ok_or_else(|| BundleError::Internal("expected elements of a fixed size".to_owned()))?;
        if volume(&wanted).checked_mul(each as u64) != Some(out.len() as u64) {
            let what = format!("room for {} bytes does not fit the shape", out.len());
            return Err(BundleError::Internal(what));
        }
        let mut gather = Gather::new(out, each, &wanted)?;
        for (region, slice, number) in slices {
            let (proto, table) = self.message(name, &slice, number)?;
            let bytes = values::bytes_of(&proto, dtype).map_err(|wrong| located(table, wrong))?;
            let expected = volume(&region).checked_mul(each as u64);
            if expected != Some(bytes.len() as u64) {
                return Err(wrong_count(table, name, &slice));
            }
            gather.add(&region, &bytes).map_err(|Twice| self.overlapping(name))?;
        }
        if gather.is_complete() { Ok(()) } else { Err(self.insufficient(name)) }
    }

    /// Reads strings.
    ///
    /// # Errors
    /// As [`SliceFiles::read`].
    pub fn read_strings(
        &mut self,
        name: &[u8],
        part: Option<&Part>,
    ) -> Result<Strings, BundleError> {
        let (wanted, slices) = self.wanted(name, part)?;
        let mut parts = growth::with_room(slices.len())?;
        for (region, slice, number) in slices {
            let (proto, table) = self.message(name, &slice, number)?;
            let strings = values::strings_of(&proto).map_err(|wrong| located(table, wrong))?;
            if volume(&region) != strings.len() as u64 {
                return Err(wrong_count(table, name, &slice));
            }
            parts.push((region, strings));
        }
        // What was found bounds the memory for what is wanted.
        let found: usize = parts.iter().map(|(_, strings)| strings.len()).sum();
        let count = usize::try_from(volume(&wanted)).ok().filter(|&count| count <= found);
        let count = count.ok_or_else(|| self.insufficient(name))?;
        let mut gather = GatherStrings::new(count, &wanted)?;
        for (region, strings) in parts {
            gather.add(&region, strings).map_err(|Twice| self.overlapping(name))?;
        }
        gather.finish()?.ok_or_else(|| self.insufficient(name))
    }
}

fn wrong_count(table: &Table, name: &[u8], slice: &TensorSlice) -> BundleError {
    let name = String::from_utf8_lossy(name);
    table.damaged(format!("slice {slice} of tensor '{name}' has another number of elements"))
}

fn located(table: &Table, wrong: values::Wrong) -> BundleError {
    match wrong {
        values::Wrong::Damaged(what) => table.damaged(what),
        values::Wrong::Memory(error) => error.into(),
    }
}
