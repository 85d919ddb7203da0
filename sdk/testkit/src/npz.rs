//! `.npz` archives of NumPy: a ZIP file of [`.npy`](crate::npy) files, stored or deflated.
//!
//! What an archive says of itself is not relied upon: an array is read as far as there are bytes, and an archive whose arrays
//! are much larger than its file ([`most_bytes`]) is refused when it is opened.

#[doc(hidden)]
pub mod fuzzing;

use crate::npy::{self, NpyError};
use std::{
    borrow::Cow,
    fs::File,
    io::{self, BufReader, Read, Seek, Write},
    path::Path,
};
use tenon_framework::{DType, Tensor};
use zip::{CompressionMethod, ZipArchive, ZipWriter, result::ZipError, write::SimpleFileOptions};

/// An archive of this many bytes may always expand to this many.
const ALWAYS: u64 = 1 << 30;
/// A larger one to this many times its own size.
const TIMES: u64 = 16;

/// The most bytes that the arrays of an archive of `size` bytes may have together: 1 GiB, or 16 times its size where that is
/// more. Numbers are seldom deflated to less than a fourth; zeros are, to a thousandth.
pub fn most_bytes(size: u64) -> u64 {
    ALWAYS.max(size.saturating_mul(TIMES))
}

/// An open archive.
pub struct Npz {
    file: String,
    zip: ZipArchive<BufReader<File>>,
}

impl Npz {
    /// Opens an archive.
    ///
    /// # Errors
    /// The file cannot be read, is not an archive, or expands to more than [`most_bytes`].
    pub fn open(path: impl AsRef<Path>) -> Result<Npz, NpyError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let opened = File::open(path).and_then(|open| Ok((open.metadata()?.len(), open)));
        let (size, open) = opened.map_err(|error| unreadable(&file, &error))?;
        let zip = ZipArchive::new(BufReader::new(open)).map_err(|error| wrong(&file, error))?;
        let mut npz = Npz { file, zip };
        let (bytes, most) = (npz.expanded()?, most_bytes(size));
        match bytes > u128::from(most) {
            true => Err(NpyError::Expands { file: npz.file, bytes, most }),
            false => Ok(npz),
        }
    }

    /// What the archive says that its entries have together.
    fn expanded(&mut self) -> Result<u128, NpyError> {
        if let Some(known) = self.zip.decompressed_size() {
            return Ok(known);
        }
        let mut sum = 0;
        for at in 0..self.zip.len() {
            let entry = self.zip.by_index_raw(at).map_err(|error| wrong(&self.file, error))?;
            sum += u128::from(entry.size());
        }
        Ok(sum)
    }

    /// The names of its arrays, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = self.zip.file_names().flatten();
        let array = |entry: Cow<'_, str>| entry.strip_suffix(".npy").map(str::to_owned);
        let mut names: Vec<String> = entries.filter_map(array).collect();
        names.sort();
        names
    }

    /// Whether there is an array of this name.
    pub fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(&format!("{name}.npy")).is_some()
    }

    /// The array of this name, of any shape. It is of type `preferred` where the array can hold that, else of the array's
    /// own.
    ///
    /// # Errors
    /// The array is missing, damaged, or of a type that no tensor has.
    pub fn tensor(&mut self, name: &str, preferred: Option<DType>) -> Result<Tensor, NpyError> {
        let bytes = self.bytes(name)?;
        let array = format!("{}: array '{name}'", self.file);
        match npy::parse(&bytes, &array, preferred) {
            Err(NpyError::Type { .. }) => npy::parse(&bytes, &array, None),
            read => read,
        }
    }

    fn bytes(&mut self, name: &str) -> Result<Vec<u8>, NpyError> {
        let file = &self.file;
        let entry = match self.zip.by_name(&format!("{name}.npy")) {
            Err(ZipError::FileNotFound) => {
                return Err(NpyError::NoArray { file: file.clone(), array: name.to_owned() });
            }
            found => found.map_err(|error| wrong(file, error))?,
        };
        let damaged = |why: String| NpyError::Archive {
            file: file.clone(),
            detail: format!("array '{name}', {why}"),
        };
        let promised = entry.size();
        let mut bytes = Vec::new();
        // No more is reserved than comes.
        let read = entry.take(promised.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| damaged(format!("which cannot be read: {error}")))?;
        match bytes.len() as u64 == promised {
            true => Ok(bytes),
            false => Err(damaged(format!("which has not the {promised} bytes that it says"))),
        }
    }
}

/// An archive that is written, array by array; nothing is compressed, as by `numpy.savez`.
pub struct NpzWriter<W: Write + Seek> {
    file: String,
    zip: ZipWriter<W>,
}

impl<W: Write + Seek> NpzWriter<W> {
    /// Begins an archive; `file` is its name for errors.
    pub fn new(to: W, file: &str) -> NpzWriter<W> {
        NpzWriter { file: file.to_owned(), zip: ZipWriter::new(to) }
    }

    /// Whether arrays have a place for numbers of a type.
    pub fn has_type(dtype: DType) -> bool {
        npy::has_type(dtype)
    }

    fn failed(&self, error: impl std::fmt::Display) -> NpyError {
        NpyError::Write { file: self.file.clone(), detail: error.to_string() }
    }

    /// Appends an array.
    ///
    /// # Errors
    /// A tensor that an array cannot keep; a name that is there already; the system's error.
    pub fn add(&mut self, name: &str, tensor: &Tensor) -> Result<(), NpyError> {
        let bytes = npy::encode(tensor, &format!("{}: array '{name}'", self.file))?;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(bytes.len() as u64 >= u64::from(u32::MAX));
        self.zip.start_file(format!("{name}.npy"), options).map_err(|error| self.failed(error))?;
        self.zip.write_all(&bytes).map_err(|error| self.failed(error))
    }

    /// Writes the directory of the archive.
    ///
    /// # Errors
    /// The system's error.
    pub fn finish(self) -> Result<(), NpyError> {
        let NpzWriter { file, zip } = self;
        let failed = |error: ZipError| NpyError::Write { file, detail: error.to_string() };
        zip.finish().map(drop).map_err(failed)
    }
}

impl<W: Write + Seek> std::fmt::Debug for NpzWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NpzWriter({})", self.file)
    }
}

impl std::fmt::Debug for Npz {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Npz({})", self.file)
    }
}

fn unreadable(file: &str, error: &io::Error) -> NpyError {
    NpyError::Read { file: file.to_owned(), kind: error.kind(), detail: error.to_string() }
}

fn wrong(file: &str, error: ZipError) -> NpyError {
    match error {
        // A file that ends too early is one that is wrong.
        ZipError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            unreadable(file, &error)
        }
        other => NpyError::Archive {
            file: file.to_owned(),
            detail: format!("a file that is none: {}", other.to_string().to_lowercase()),
        },
    }
}

#[cfg(test)]
#[path = "npz_tests.rs"]
mod tests;
