//! Files in the form of safetensors.

use crate::{blocking::guarded, fail::Fail, tensor::PyTensor};
use pyo3::prelude::*;
use std::path::PathBuf;
use tenon_bundle::{Files, SafeFile, SafeTensor, SafeWriter};
use tenon_files::Access;
use tenon_framework::{Code, Tensor};

/// What messages call the argument.
const WHAT: &str = "path";

/// The tensors of a file, or those of these names, in the order of the file.
#[pyfunction]
#[pyo3(signature = (path, names=None))]
pub(crate) fn read_safetensors(
    py: Python<'_>,
    path: PathBuf,
    names: Option<Vec<String>>,
) -> Result<Vec<(String, PyTensor)>, Fail> {
    let read = py.detach(|| {
        guarded(|| {
            let access = Access::to_any();
            let file = SafeFile::open(Files::new(&access, WHAT), &path)?;
            let all: Vec<SafeTensor> = file.tensors().cloned().collect();
            if let Some(missing) =
                names.iter().flatten().find(|name| all.iter().all(|tensor| tensor.name != **name))
            {
                return Err(Fail::new(
                    Code::NOT_FOUND,
                    format!("file '{}' has no tensor '{missing}'", path.display()),
                ));
            }
            let is_asked = |name: &String| names.as_ref().is_none_or(|names| names.contains(name));
            let asked = all.into_iter().enumerate().filter(|(_, tensor)| is_asked(&tensor.name));
            let read = asked.map(|(at, tensor)| {
                let value = Tensor::from_bytes(tensor.dtype, &tensor.dims, &file.read(at)?)?;
                Ok((tensor.name, value))
            });
            read.collect::<Result<Vec<_>, Fail>>()
        })
    })?;
    Ok(read.into_iter().map(|(name, tensor)| (name, PyTensor::of_step(tensor, true))).collect())
}

/// Writes a file; one of that name is replaced once the new one is complete.
#[pyfunction]
pub(crate) fn write_safetensors(
    py: Python<'_>,
    path: PathBuf,
    tensors: Vec<(String, Bound<'_, PyTensor>)>,
) -> Result<(), Fail> {
    let mut values: Vec<(SafeTensor, Tensor)> = Vec::with_capacity(tensors.len());
    for (name, tensor) in tensors {
        let value = tensor.get().tensor.clone();
        let (dtype, dims) = (value.dtype(), value.shape().dims().to_vec());
        values.push((SafeTensor { name, dtype, dims }, value));
    }
    py.detach(|| {
        guarded(|| {
            let access = Access::to_any();
            let files = Files::new(&access, WHAT);
            let mut order: Vec<SafeTensor> = values.iter().map(|(info, _)| info.clone()).collect();
            SafeWriter::sort(&mut order);
            let mut writer = SafeWriter::create(files, &path, &order)?;
            for info in &order {
                if let Some((_, value)) = values.iter().find(|(own, _)| own.name == info.name) {
                    writer.add(value.as_bytes()?)?;
                }
            }
            Ok(writer.finish(files, &path)?)
        })
    })
}
