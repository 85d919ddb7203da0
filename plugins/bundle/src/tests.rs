//! Tests against files of TensorFlow, of damaged files, and of saves that are cut short.

mod bounds;
mod damage;
mod goldens;
mod interrupted;
mod parts;
mod refused;
mod replaced;
mod seeded;

use crate::{Bundle, BundleError, Content, Files, SliceFiles, Strings, stored_size};
use std::path::{Path, PathBuf};
use tenon_files::Access;
use tenon_sdk::DType;

/// The elements of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elements {
    Bytes(Vec<u8>),
    Strings(Strings),
}

/// A tensor of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub name: Vec<u8>,
    pub dtype: DType,
    pub dims: Vec<i64>,
    pub elements: Elements,
}

pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens/checkpoints").join(name)
}

pub fn any() -> Access {
    Access::to_any()
}

/// All tensors of a bundle.
pub fn read_bundle(prefix: &Path) -> Result<Vec<Named>, BundleError> {
    let access = any();
    let mut bundle = Bundle::open(Files::new(&access, "prefix"), prefix)?;
    let mut found = Vec::new();
    for (name, entry) in bundle.entries()? {
        let elements = match stored_size(entry.dtype) {
            None => Elements::Strings(bundle.read_strings(&name, &entry, None)?),
            Some(each) => {
                let mut bytes = vec![0; entry.elements() as usize * each];
                bundle.read(&name, &entry, None, &mut bytes)?;
                Elements::Bytes(bytes)
            }
        };
        found.push(Named { name, dtype: entry.dtype, dims: entry.dims, elements });
    }
    Ok(found)
}

/// All tensors of V1 files.
pub fn read_old(pattern: &Path) -> Result<Vec<Named>, BundleError> {
    let access = any();
    let pattern = pattern.as_os_str().as_encoded_bytes();
    let mut files = SliceFiles::open(Files::new(&access, "file_pattern"), pattern)?;
    let tensors: Vec<_> = files.tensors().map(|(n, t)| (n.to_vec(), t.clone())).collect();
    let mut found = Vec::new();
    for (name, tensor) in tensors {
        let elements = match stored_size(tensor.dtype) {
            None => Elements::Strings(files.read_strings(&name, None)?),
            Some(each) => {
                let mut bytes = vec![0; tensor.elements() as usize * each];
                files.read(&name, None, &mut bytes)?;
                Elements::Bytes(bytes)
            }
        };
        found.push(Named { name, dtype: tensor.dtype, dims: tensor.dims, elements });
    }
    Ok(found)
}

/// Calls `use_it` with the elements of a tensor as they are written.
pub fn with_content<R>(elements: &Elements, use_it: impl FnOnce(Content<'_>) -> R) -> R {
    match elements {
        Elements::Bytes(bytes) => use_it(Content::Bytes(bytes)),
        Elements::Strings(strings) => {
            let texts: Vec<&[u8]> = strings.iter().collect();
            use_it(Content::Strings(&texts))
        }
    }
}
