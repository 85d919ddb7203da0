//! Files in the form of safetensors: a header of JSON, and the bytes of all tensors.

use crate::{
    BundleError,
    entry::{element_count, stored_size},
    files::{Files, Source, Temporary},
};
use safetensors::{
    Dtype,
    tensor::{Metadata, TensorInfo},
};
use std::path::Path;
use tenon_sdk::{DType, growth};

/// The most bytes of a header, as in the crate `safetensors`.
const MOST_HEADER: u64 = 100_000_000;

/// The types that both have.
const TYPES: [(DType, Dtype); 17] = [
    (DType::FLOAT, Dtype::F32),
    (DType::DOUBLE, Dtype::F64),
    (DType::HALF, Dtype::F16),
    (DType::BFLOAT16, Dtype::BF16),
    (DType::INT8, Dtype::I8),
    (DType::INT16, Dtype::I16),
    (DType::INT32, Dtype::I32),
    (DType::INT64, Dtype::I64),
    (DType::UINT8, Dtype::U8),
    (DType::UINT16, Dtype::U16),
    (DType::UINT32, Dtype::U32),
    (DType::UINT64, Dtype::U64),
    (DType::BOOL, Dtype::BOOL),
    (DType::COMPLEX64, Dtype::C64),
    (DType::FLOAT8_E5M2, Dtype::F8_E5M2),
    (DType::FLOAT8_E4M3FN, Dtype::F8_E4M3),
    (DType::FLOAT8_E4M3FNUZ, Dtype::F8_E4M3FNUZ),
];

/// A tensor of such a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeTensor {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its shape.
    pub dims: Vec<i64>,
}

impl SafeTensor {
    /// Whether such files have a place for a type.
    pub fn has_type(dtype: DType) -> bool {
        TYPES.iter().any(|(known, _)| *known == dtype)
    }

    /// Its size in bytes; 0 for a shape or type without one.
    pub fn bytes(&self) -> u64 {
        self.size().unwrap_or(0)
    }

    /// Its size in bytes; `None` for a shape or type without one.
    fn size(&self) -> Option<u64> {
        element_count(&self.dims)?.checked_mul(stored_size(self.dtype)? as u64)
    }
}

/// A file that is read.
#[derive(Debug)]
pub struct SafeFile {
    source: Source,
    tensors: Vec<(SafeTensor, u64)>,
}

impl SafeFile {
    /// Opens a file and checks its header.
    ///
    /// # Errors
    /// The file cannot be read; its header is damaged; its tensors do not fill the file one after the other.
    pub fn open(files: Files<'_>, path: &Path) -> Result<SafeFile, BundleError> {
        let source = Source::open(files, path)?;
        let mut size = [0; 8];
        if source.len() < 8 {
            return Err(source.damaged(0, "expected the length of a header, found the end"));
        }
        source.read(0, &mut size)?;
        let size = u64::from_le_bytes(size);
        if size > MOST_HEADER || size > source.len() - 8 {
            let what = format!("expected a header within the file, found one of {size} bytes");
            return Err(source.damaged(0, what));
        }
        let mut header = growth::filled(size as usize, 0)?;
        source.read(8, &mut header)?;
        let metadata: Metadata = serde_json::from_slice(&header)
            .map_err(|error| source.damaged(8, format!("the header: {error}")))?;
        let mut found: Vec<(String, TensorInfo)> =
            metadata.tensors().into_iter().map(|(name, info)| (name, info.clone())).collect();
        found.sort_by(|a, b| (a.1.data_offsets, &a.0).cmp(&(b.1.data_offsets, &b.0)));
        let (mut tensors, mut at) = (Vec::new(), 0u64);
        for (name, info) in found {
            let wrong = |what: &str| source.damaged(8, format!("tensor '{name}': {what}"));
            let kind = TYPES.iter().find(|(_, safe)| *safe == info.dtype);
            let dtype = kind.map(|(dtype, _)| *dtype).ok_or_else(|| {
                BundleError::Unsupported(format!(
                    "file '{}': tensor '{name}' has type {:?}, which TensorFlow has not",
                    source.name(),
                    info.dtype
                ))
            })?;
            let dim = |&dim: &usize| i64::try_from(dim);
            let dims = info.shape.iter().map(dim).collect::<Result<Vec<_>, _>>();
            let dims = dims.map_err(|_| wrong("a dimension is too large"))?;
            let tensor = SafeTensor { name: name.clone(), dtype, dims };
            let (begin, end) = (info.data_offsets.0 as u64, info.data_offsets.1 as u64);
            if begin != at || tensor.size() != end.checked_sub(begin) {
                return Err(wrong("its place does not fit its type, its shape and the one before"));
            }
            tensors.push((tensor, 8 + size + begin));
            at = end;
        }
        match source.len() - 8 - size == at {
            true => Ok(SafeFile { source, tensors }),
            false => Err(source.damaged(8 + size, format!("expected {at} bytes of tensors"))),
        }
    }

    /// The tensors, in the order of the file.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &SafeTensor> {
        self.tensors.iter().map(|(tensor, _)| tensor)
    }

    /// The bytes of a tensor.
    ///
    /// # Errors
    /// The file cannot be read; there is no memory.
    pub fn read(&self, at: usize) -> Result<Vec<u8>, BundleError> {
        let (tensor, offset) = &self.tensors[at];
        let size = tensor.size().and_then(|size| usize::try_from(size).ok());
        let size = size.ok_or_else(|| self.source.damaged(*offset, "a tensor is too large"))?;
        let mut bytes = growth::filled(size, 0)?;
        self.source.read(*offset, &mut bytes)?;
        Ok(bytes)
    }
}

/// A file that is written, tensor by tensor.
pub struct SafeWriter<'a> {
    file: Temporary<'a>,
    left: Vec<SafeTensor>,
}

impl<'a> SafeWriter<'a> {
    /// Sorts tensors in the order in which they are written: those of large elements first, then by their names, as the
    /// crate `safetensors` does.
    pub fn sort(tensors: &mut [SafeTensor]) {
        let size = |tensor: &SafeTensor| stored_size(tensor.dtype).unwrap_or(0);
        tensors.sort_by(|a, b| size(b).cmp(&size(a)).then_with(|| a.name.cmp(&b.name)));
    }

    /// Begins a file with all of its header.
    ///
    /// # Errors
    /// A type that safetensors do not have; two tensors of one name; the system's error.
    pub fn create(
        files: Files<'a>,
        path: &Path,
        tensors: &[SafeTensor],
    ) -> Result<SafeWriter<'a>, BundleError> {
        let (mut infos, mut at) = (Vec::new(), 0usize);
        for tensor in tensors {
            let (name, kind) = (&tensor.name, tensor.dtype.name());
            let no_place = || {
                BundleError::Unsupported(format!(
                    "tensor '{name}': safetensors have no place for type {kind} and shape {:?}: leave it out, or \
                     write a bundle",
                    tensor.dims
                ))
            };
            let known = TYPES.iter().find(|(dtype, _)| *dtype == tensor.dtype);
            let (_, dtype) = known.ok_or_else(no_place)?;
            let size = tensor.size().and_then(|size| usize::try_from(size).ok());
            let end = size.and_then(|size| at.checked_add(size)).ok_or_else(no_place)?;
            let shape = tensor.dims.iter().map(|&dim| dim as usize).collect();
            infos
                .push((name.clone(), TensorInfo { dtype: *dtype, shape, data_offsets: (at, end) }));
            at = end;
        }
        let wrong = |what: String| BundleError::Argument(format!("safetensors: {what}"));
        let metadata = Metadata::new(None, infos).map_err(|error| wrong(error.to_string()))?;
        if metadata.tensors().len() != tensors.len() {
            return Err(wrong("expected different names, found one twice".to_owned()));
        }
        let mut header = serde_json::to_vec(&metadata).map_err(|error| wrong(error.to_string()))?;
        header.resize(header.len().next_multiple_of(8), b' ');
        let mut file = Temporary::create(files, path)?;
        file.write(&(header.len() as u64).to_le_bytes())?;
        file.write(&header)?;
        let left = tensors.iter().rev().cloned().collect();
        Ok(SafeWriter { file, left })
    }

    /// Appends the next tensor.
    ///
    /// # Errors
    /// Another size than the header says; the system's error.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), BundleError> {
        match self.left.pop() {
            Some(tensor) if tensor.size() == Some(bytes.len() as u64) => self.file.write(bytes),
            _ => Err(BundleError::Internal("another tensor than the header says".to_owned())),
        }
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// A tensor of the header is missing; the system's error.
    pub fn finish(mut self, files: Files<'a>, path: &Path) -> Result<(), BundleError> {
        if !self.left.is_empty() {
            return Err(BundleError::Internal("fewer tensors than the header says".to_owned()));
        }
        self.file.sync()?;
        let publishing = files.lock(path)?;
        self.file.publish(path)?;
        publishing.sync()
    }
}

impl std::fmt::Debug for SafeWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SafeWriter({} tensors left)", self.left.len())
    }
}
