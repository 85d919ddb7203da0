//! Arrays of an archive as tensors that an index describes. How each element type is stored is described in
//! tests/goldens/README.md; archives are read by [`crate::npz`].

use crate::{error::TestkitError, npz::Npz};
use std::path::{Path, PathBuf};
use tenon_framework::{DType, Tensor};

/// An open archive.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    npz: Npz,
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
    /// The file is missing or no archive.
    pub fn open(path: &Path) -> Result<Archive, TestkitError> {
        Ok(Archive { path: path.to_owned(), npz: Npz::open(path)? })
    }

    /// The names of its arrays, sorted.
    pub fn names(&self) -> Vec<String> {
        self.npz.names()
    }

    /// Whether there is an array of this name.
    pub fn has(&self, name: &str) -> bool {
        self.npz.has(name)
    }

    /// The array of this name as a host tensor, which its index says has this type and shape.
    ///
    /// # Errors
    /// The array is missing, or of another type or shape; bytes that are not values of the type.
    pub fn tensor(
        &mut self,
        name: &str,
        dtype: DType,
        dims: &[i64],
    ) -> Result<Tensor, TestkitError> {
        let tensor = self.npz.tensor(name, Some(dtype))?;
        if tensor.dtype() != dtype {
            return Err(self.wrong(name, dtype.to_string(), tensor.dtype().to_string()));
        }
        if tensor.shape().dims() != dims {
            return Err(self.wrong(name, format!("shape {dims:?}"), tensor.shape().to_string()));
        }
        Ok(tensor)
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
        Ok(self.npz.tensor(name, preferred)?)
    }

    /// The array of this name, of doubles and any shape, flat.
    ///
    /// # Errors
    /// The array is missing or of another type.
    pub fn doubles(&mut self, name: &str) -> Result<Vec<f64>, TestkitError> {
        let tensor = self.npz.tensor(name, Some(DType::DOUBLE))?;
        let found = tensor.dtype().to_string();
        let values = tensor.as_slice::<f64>().map(<[f64]>::to_vec);
        values.map_err(|_| self.wrong(name, "double".to_owned(), found))
    }

    fn wrong(&self, array: &str, expected: String, found: String) -> TestkitError {
        let (path, array) = (self.path.clone(), array.to_owned());
        TestkitError::Array { path, array, expected, found }
    }
}
