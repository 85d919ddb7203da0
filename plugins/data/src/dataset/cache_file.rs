//! Datasets of the elements of another that are made once, and kept in files: a bundle as TensorFlow writes it, which
//! either reads.
//!
//! A walk reads the files if their index is there, and writes them otherwise. A tensor is stored under the number of its
//! element and its own number in the element, padded with spaces. Elements are written in parts of some size, each a
//! bundle of its own, which are merged at the end.
//!
//! # States of a walk that writes
//! *new* → *locked*, with a lock file beside the files → *done*, when the input is at its end and the parts are merged.
//! A walk that is dropped before removes its parts and its lock file.

use super::{
    Cardinality, Context, Dataset, Element, Elements, Input, Next, Shared, Spec, element::whole,
};
use crate::{
    files::{Access, path_of},
    queue::Component,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tenon_bundle::{Bundle, BundleWriter, Content, Entry, Files, data_file, index_file, merge};
use tenon_sdk::{growth, prelude::*};

/// How the argument is named in messages.
const ARGUMENT: &str = "filename";
/// Bytes of elements that are written, or read, at a time.
const PART_BYTES: usize = 16 << 20;
/// Elements of a part: small ones are kept in memory as well.
const PART_ELEMENTS: usize = 10_000;
/// Elements of a cache, which is TensorFlow's limit: their numbers have seven digits.
const MOST_ELEMENTS: usize = 10_000_000;

/// A cache in files.
#[derive(Clone)]
pub struct FileCache {
    input: Shared,
    spec: Arc<Spec>,
    prefix: Vec<u8>,
    access: Access,
}

impl FileCache {
    /// The cache of the elements of `input`, which are as `spec` says, under a prefix.
    pub fn new(input: &Shared, spec: &Arc<Spec>, prefix: Vec<u8>, access: &Access) -> FileCache {
        let (input, spec) = (Arc::clone(input), Arc::clone(spec));
        FileCache { input, spec, prefix, access: access.clone() }
    }

    fn files(&self) -> Files<'_> {
        Files::new(&self.access, ARGUMENT)
    }

    fn path(&self) -> PathBuf {
        path_of(&self.prefix)
    }

    fn with_suffix(&self, suffix: &str) -> Result<PathBuf, KernelError> {
        let mut name = growth::copied(&self.prefix)?;
        growth::append(&mut name, suffix.as_bytes())?;
        Ok(path_of(&name))
    }

    fn lock_file(&self) -> Result<PathBuf, KernelError> {
        self.with_suffix("_0.lockfile")
    }

    fn part(&self, part: usize) -> Result<PathBuf, KernelError> {
        self.with_suffix(&format!("_{part}"))
    }

    /// The name of a tensor.
    fn key(&self, element: usize, component: usize) -> String {
        let digits = self.spec.types.len().saturating_sub(1).to_string().len();
        format!("{element:>7}_{component:>digits$}")
    }
}

impl Dataset for FileCache {
    fn elements(&self) -> Box<dyn Elements> {
        Box::new(Walk { cache: self.clone(), stage: Stage::New })
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn batch_size(&self) -> Option<usize> {
        self.input.batch_size()
    }
}

enum Stage {
    New,
    Writing(Writer),
    Reading(Reader),
    AtEnd,
}

struct Walk {
    cache: FileCache,
    stage: Stage,
}

impl Elements for Walk {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            let cache = &self.cache;
            if let Stage::New = self.stage {
                self.stage = match Bundle::exists(cache.files(), &cache.path())? {
                    true => Stage::Reading(Reader::new(cache)?),
                    false => Stage::Writing(Writer::new(cache)?),
                };
            }
            let found = match &mut self.stage {
                Stage::Reading(reader) => reader.next(cache)?,
                Stage::Writing(writer) => {
                    let found = writer.input.next(context).await?;
                    writer.take(cache, found.as_deref())?;
                    found
                }
                Stage::New | Stage::AtEnd => None,
            };
            if found.is_none() {
                self.stage = Stage::AtEnd;
            }
            Ok(found)
        })
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        if let Stage::Writing(writer) = &self.stage {
            writer.discard(&self.cache);
        }
    }
}

struct Writer {
    input: Input,
    /// Elements that no part has yet, and their bytes.
    waiting: Vec<Element>,
    bytes: usize,
    /// How many elements the parts have.
    written: usize,
    parts: usize,
}

impl Writer {
    /// Takes the lock file.
    fn new(cache: &FileCache) -> Result<Writer, KernelError> {
        let lock = cache.lock_file()?;
        let exists = |path: &Path, why: &str| {
            let message = format!("{ARGUMENT}: file '{}' exists: {why}", path.display());
            KernelError::new(Code::ALREADY_EXISTS, message)
        };
        let first = index_file(&cache.part(0)?);
        if cache.access.exists(&first) {
            return Err(exists(
                &first,
                "remove what is left of an earlier walk, with its data files",
            ));
        }
        if cache.access.exists(&lock) {
            return Err(exists(
                &lock,
                "another walk writes this cache; if there is none, remove the file and make the iterator anew",
            ));
        }
        cache.access.write(ARGUMENT, &lock, b"written by a walk over a cached dataset\n")?;
        let input = Input::of(&cache.input);
        Ok(Writer { input, waiting: Vec::new(), bytes: 0, written: 0, parts: 0 })
    }

    /// Keeps an element; at the end, merges all.
    fn take(&mut self, cache: &FileCache, found: Option<&[Component]>) -> Result<(), KernelError> {
        let Some(element) = found else { return self.finish(cache) };
        if self.written + self.waiting.len() == MOST_ELEMENTS {
            return Err(KernelError::invalid_argument(format!(
                "{ARGUMENT}: expected a dataset of at most {MOST_ELEMENTS} elements, found more"
            )));
        }
        if element.len() != cache.spec.types.len() {
            return Err(KernelError::internal(
                "an element has other components than its dataset says",
            ));
        }
        for component in element {
            self.bytes = self.bytes.saturating_add(component.bytes());
        }
        growth::push(&mut self.waiting, growth::copied(element)?)?;
        match self.bytes >= PART_BYTES || self.waiting.len() >= PART_ELEMENTS {
            true => self.write(cache),
            false => Ok(()),
        }
    }

    /// Writes a part.
    fn write(&mut self, cache: &FileCache) -> Result<(), KernelError> {
        let mut writer = BundleWriter::create(cache.files(), &cache.part(self.parts)?)?;
        for (at, element) in self.waiting.iter().enumerate() {
            for (number, component) in element.iter().enumerate() {
                let key = cache.key(self.written + at, number);
                add(&mut writer, key.as_bytes(), &*component.kept()?)?;
            }
        }
        writer.finish()?;
        self.parts += 1;
        self.written += self.waiting.len();
        self.waiting.clear();
        self.bytes = 0;
        Ok(())
    }

    fn finish(&mut self, cache: &FileCache) -> Result<(), KernelError> {
        if !self.waiting.is_empty() || self.parts == 0 {
            self.write(cache)?;
        }
        let parts = growth::try_collected((0..self.parts).map(|part| cache.part(part)))?;
        merge(cache.files(), &parts, &cache.path(), false, false)?;
        cache.access.remove(ARGUMENT, &cache.lock_file()?)
    }

    /// Removes what was written. There is nobody to hear of an error.
    fn discard(&self, cache: &FileCache) {
        let remove = |path: &Path| drop(cache.access.remove(ARGUMENT, path));
        for part in (0..self.parts).filter_map(|part| cache.part(part).ok()) {
            remove(&index_file(&part));
            remove(&data_file(&part, 0, 1));
        }
        if let Ok(lock) = cache.lock_file() {
            remove(&lock);
        }
    }
}

/// Adds a tensor to a bundle.
fn add(writer: &mut BundleWriter<'_>, key: &[u8], tensor: &Kept) -> Result<(), KernelError> {
    let (dtype, dims) = (tensor.dtype(), tensor.dims());
    match dtype {
        DType::STRING => writer.add(key, dtype, dims, Content::Strings(&tensor.strings()?))?,
        DType::VARIANT | DType::RESOURCE => {
            return Err(KernelError::unimplemented(format!(
                "{ARGUMENT}: expected components with values, found a {dtype}, which files do not hold: cache it in memory"
            )));
        }
        _ => writer.add(key, dtype, dims, Content::Bytes(tensor.bytes()?))?,
    }
    Ok(())
}

struct Reader {
    /// All tensors, in the order of elements and components.
    entries: Vec<(Vec<u8>, Entry)>,
    next: usize,
    /// Elements that are read already, the first one at the end.
    ahead: Vec<Element>,
}

impl Reader {
    fn new(cache: &FileCache) -> Result<Reader, KernelError> {
        let entries = Bundle::open(cache.files(), &cache.path())?.entries()?;
        let components = cache.spec.types.len();
        let is_right = entries
            .iter()
            .enumerate()
            .all(|(at, (key, _))| *key == cache.key(at / components, at % components).into_bytes());
        if !is_right || !entries.len().is_multiple_of(components) {
            return Err(KernelError::new(
                Code::DATA_LOSS,
                format!(
                    "{ARGUMENT}: expected elements of {components} components in '{}', found other tensors: remove the \
                     files, and they are made anew",
                    cache.path().display()
                ),
            ));
        }
        Ok(Reader { entries, next: 0, ahead: Vec::new() })
    }

    fn next(&mut self, cache: &FileCache) -> Result<Option<Element>, KernelError> {
        if self.ahead.is_empty() {
            self.read(cache)?;
        }
        Ok(self.ahead.pop())
    }

    /// Reads some elements.
    fn read(&mut self, cache: &FileCache) -> Result<(), KernelError> {
        let components = cache.spec.types.len();
        let mut bundle = Bundle::open(cache.files(), &cache.path())?;
        let mut bytes = 0u64;
        while self.next < self.entries.len()
            && bytes < PART_BYTES as u64
            && self.ahead.len() < PART_ELEMENTS
        {
            let entries = &self.entries[self.next..][..components];
            bytes = entries.iter().fold(bytes, |sum, (_, entry)| sum.saturating_add(entry.size));
            let tensors = entries.iter().map(|(key, entry)| read(&mut bundle, key, entry));
            let element = whole(growth::try_collected(tensors)?)?;
            cache.spec.check_element(&element)?;
            growth::push(&mut self.ahead, element)?;
            self.next += components;
        }
        self.ahead.reverse();
        Ok(())
    }
}

/// Reads a tensor of a bundle.
fn read(bundle: &mut Bundle<'_>, key: &[u8], entry: &Entry) -> Result<Kept, KernelError> {
    if entry.dtype == DType::STRING {
        let strings = bundle.read_strings(key, entry, None)?;
        return Kept::from_strings(&entry.dims, &growth::collected(strings.iter())?);
    }
    bundle.check(key, entry, None)?;
    let size = usize::try_from(entry.size).unwrap_or(usize::MAX);
    let mut bytes = growth::filled(size, 0)?;
    bundle.read(key, entry, None, &mut bytes)?;
    Kept::from_bytes(entry.dtype, &entry.dims, &bytes)
}
