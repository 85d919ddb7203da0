//! Arrays of a golden archive as tensors.
//!
//! An `.npz` file is a ZIP of `.npy` entries; here they are little endian and row-major. How each element
//! type is stored stands in tests/goldens/README.md.

use crate::error::TestkitError;
use npyz::npz::NpzArchive;
use std::{
    fs::File,
    io::{BufReader, Read},
    path::{Path, PathBuf},
};
use tenon_framework::{DType, Tensor};

/// An open archive.
pub struct Archive {
    path: PathBuf,
    zip: NpzArchive<BufReader<File>>,
}

/// An array as it lies in the archive.
struct Raw {
    /// NumPy's type string without its byte order, such as `f4`, `V2` or `S5`.
    kind: String,
    dims: Vec<i64>,
    bytes: Vec<u8>,
}

/// NumPy's type string of an element type, without byte order; `None` for strings, whose length varies. Types
/// that are stored alike have the same.
pub fn kind_of(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::BOOL => "b1",
        DType::INT8 | DType::QINT8 => "i1",
        DType::UINT8 | DType::QUINT8 => "u1",
        DType::INT16 | DType::QINT16 => "i2",
        DType::UINT16 | DType::QUINT16 => "u2",
        DType::INT32 | DType::QINT32 => "i4",
        DType::UINT32 => "u4",
        DType::INT64 => "i8",
        DType::UINT64 => "u8",
        DType::HALF => "f2",
        DType::BFLOAT16 => "V2",
        DType::FLOAT => "f4",
        DType::DOUBLE => "f8",
        DType::COMPLEX64 => "c8",
        DType::COMPLEX128 => "c16",
        _ => return None,
    })
}

impl Archive {
    /// Opens an archive.
    ///
    /// # Errors
    /// The file is missing or no ZIP.
    pub fn open(path: &Path) -> Result<Archive, TestkitError> {
        let zip = NpzArchive::open(path).map_err(|error| TestkitError::File {
            path: path.to_owned(),
            detail: error.to_string(),
        })?;
        Ok(Archive { path: path.to_owned(), zip })
    }

    /// The names of its arrays, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.zip.array_names().map(str::to_owned).collect();
        names.sort();
        names
    }

    /// Whether there is an array of this name.
    pub fn has(&self, name: &str) -> bool {
        self.zip.array_names().any(|known| known == name)
    }

    /// The array of this name as a host tensor, which its index says has this type and shape.
    ///
    /// # Errors
    /// The array is missing, or of another type or shape; bytes that are no values of the type.
    pub fn tensor(
        &mut self,
        name: &str,
        dtype: DType,
        dims: &[i64],
    ) -> Result<Tensor, TestkitError> {
        let raw = self.raw(name)?;
        if raw.dims != dims {
            return Err(self.wrong(name, format!("shape {dims:?}"), format!("{:?}", raw.dims)));
        }
        if dtype == DType::STRING {
            return self.strings(name, &raw);
        }
        let expected = kind_of(dtype)
            .ok_or_else(|| self.wrong(name, "a type that archives hold", dtype.to_string()))?;
        if raw.kind != expected {
            return Err(self.wrong(name, expected, raw.kind));
        }
        Tensor::from_bytes(dtype, dims, &raw.bytes)
            .map_err(|error| self.wrong(name, format!("values of {dtype}"), error.to_string()))
    }

    /// The array of this name, of any shape. It is of type `preferred` where the array can hold that, else of
    /// the array's own.
    ///
    /// # Errors
    /// The array is missing or of no type that archives hold.
    pub fn tensor_of_any_shape(
        &mut self,
        name: &str,
        preferred: Option<DType>,
    ) -> Result<Tensor, TestkitError> {
        let raw = self.raw(name)?;
        if raw.kind.starts_with('S') {
            return self.strings(name, &raw);
        }
        let fits = |dtype: &DType| kind_of(*dtype) == Some(raw.kind.as_str());
        // Among types that are stored alike, the plain one has the smaller number.
        let dtype = preferred.filter(fits).or_else(|| DType::ALL.iter().copied().find(fits));
        let dtype = dtype.ok_or_else(|| self.wrong(name, "a known type", raw.kind.clone()))?;
        Tensor::from_bytes(dtype, &raw.dims, &raw.bytes)
            .map_err(|error| self.wrong(name, format!("values of {dtype}"), error.to_string()))
    }

    /// The array of this name, of doubles and any shape, flat.
    ///
    /// # Errors
    /// The array is missing or of another type.
    pub fn doubles(&mut self, name: &str) -> Result<Vec<f64>, TestkitError> {
        let raw = self.raw(name)?;
        if raw.kind != "f8" {
            return Err(self.wrong(name, "f8", raw.kind));
        }
        let (words, _) = raw.bytes.as_chunks::<8>();
        Ok(words.iter().map(|&word| f64::from_le_bytes(word)).collect())
    }

    fn strings(&self, name: &str, raw: &Raw) -> Result<Tensor, TestkitError> {
        let width = raw.kind.strip_prefix('S').and_then(|width| width.parse::<usize>().ok());
        let width = width
            .filter(|&width| width > 0)
            .ok_or_else(|| self.wrong(name, "strings S<n>", raw.kind.clone()))?;
        // Zero bytes at the end are padding.
        let trimmed = |word: &[u8]| {
            let len = word.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            word[..len].to_vec()
        };
        let words: Vec<Vec<u8>> = raw.bytes.chunks_exact(width).map(trimmed).collect();
        Tensor::from_strings(&raw.dims, &words)
            .map_err(|error| self.wrong(name, "strings", error.to_string()))
    }

    fn raw(&mut self, name: &str) -> Result<Raw, TestkitError> {
        match read(&mut self.zip, name) {
            Ok(Some(raw)) => Ok(raw),
            Ok(None) => Err(self.wrong(name, "an array of this name", "none".to_owned())),
            Err(error) => Err(self.wrong(name, "a readable array", error)),
        }
    }

    fn wrong(&self, array: &str, expected: impl Into<String>, found: String) -> TestkitError {
        TestkitError::Array {
            path: self.path.clone(),
            array: array.to_owned(),
            expected: expected.into(),
            found,
        }
    }
}

/// `None` when there is no such array.
fn read(zip: &mut NpzArchive<BufReader<File>>, name: &str) -> Result<Option<Raw>, String> {
    let Some(file) = zip.by_name(name).map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let header = file.header();
    let descr = match header.dtype() {
        npyz::DType::Plain(plain) => plain.to_string(),
        other => return Err(format!("a structured type {}", other.descr())),
    };
    // The order is written as `<`, `|` or `>`; a big-endian file would be read wrongly.
    let kind = match descr.split_at_checked(1) {
        Some(("<" | "|", kind)) => kind.to_owned(),
        _ => return Err(format!("type {descr}, which is not little endian")),
    };
    let dims: Vec<i64> = header.shape().iter().map(|&dim| dim as i64).collect();
    if header.order() != npyz::Order::C && dims.len() > 1 {
        return Err("column-major order".to_owned());
    }
    let mut bytes = Vec::new();
    file.into_inner().read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(Some(Raw { kind, dims, bytes }))
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Archive({})", self.path.display())
    }
}
