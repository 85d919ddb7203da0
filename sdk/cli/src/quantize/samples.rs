//! Calibration data, from files to what is fed together.

use crate::error::CliError;
use std::{
    fs,
    path::{Path, PathBuf},
};
use tenon_quantize::{Input, Sample};
use tenon_runtime::framework::Tensor;
use tenon_testkit::{npy, npz::Npz};

/// Reads a file, or all of a folder in the order of their names, and cuts it into batches.
///
/// # Errors
/// A file that cannot be read, of another type than the input, without samples, or with arrays of unequal length.
pub fn read(path: &Path, inputs: &[Input], batch: usize) -> Result<Vec<Sample>, CliError> {
    let mut samples = Vec::new();
    for file in files(path)? {
        let arrays = arrays(&file, inputs)?;
        samples.extend(batches(&file, &arrays, inputs, batch)?);
    }
    Ok(samples)
}

fn wrong(file: &Path, reason: String) -> CliError {
    CliError::Calibration { file: file.to_owned(), reason }
}

fn files(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    let unreadable = |source| CliError::File { file: path.to_owned(), done: "read", source };
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(unreadable)?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.map_err(unreadable)?.path();
        if matches!(file.extension().and_then(|end| end.to_str()), Some("npz" | "npy")) {
            files.push(file);
        }
    }
    files.sort();
    match files.is_empty() {
        true => {
            Err(wrong(path, "expected .npz or .npy files in the folder, found none".to_owned()))
        }
        false => Ok(files),
    }
}

/// The arrays of a file by the names of the inputs.
fn arrays(file: &Path, inputs: &[Input]) -> Result<Sample, CliError> {
    if file.extension().is_some_and(|end| end == "npy") {
        return match inputs {
            [only] => Ok(vec![(only.name.clone(), npy::read(file, Some(only.dtype))?)]),
            _ => Err(wrong(
                file,
                format!(
                    "a .npy file holds one array, and the graph has the inputs {}: put them in one .npz file",
                    names(inputs),
                ),
            )),
        };
    }
    let mut archive = Npz::open(file)?;
    let found = archive.names();
    let read = |name: String| {
        let input = input(inputs, &name);
        let array = archive.tensor(&name, input.map(|input| input.dtype))?;
        if let Some(input) = input.filter(|input| input.dtype != array.dtype()) {
            let (expected, found) = (input.dtype, array.dtype());
            return Err(wrong(
                file,
                format!(
                    "array '{name}': expected {expected}, found {found}: convert it with NumPy's astype"
                ),
            ));
        }
        Ok((name, array))
    };
    found.into_iter().map(read).collect()
}

fn names(inputs: &[Input]) -> String {
    let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    format!("'{}'", names.join("', '"))
}

fn input<'a>(inputs: &'a [Input], array: &str) -> Option<&'a Input> {
    let name = array.strip_suffix(":0").unwrap_or(array);
    inputs.iter().find(|input| input.name == name)
}

/// Cuts arrays along their first dimension, as the inputs take it: by `batch` where they take any number.
fn batches(
    file: &Path,
    arrays: &Sample,
    inputs: &[Input],
    batch: usize,
) -> Result<Vec<Sample>, CliError> {
    let first = |tensor: &Tensor| tensor.shape().dims().first().map_or(0, |dim| *dim as usize);
    let Some((_, leader)) = arrays.first() else {
        return Err(wrong(file, format!("expected arrays for {}, found none", names(inputs))));
    };
    let count = first(leader);
    for (name, tensor) in arrays {
        // Where an input takes another number of dimensions, the first one does not count samples.
        if let Some(expected) = input(inputs, name).and_then(|input| input.shape.rank())
            && expected != tensor.shape().rank()
        {
            let shape = tensor.shape();
            let text = format!(
                "array '{name}': expected {expected} dimensions, the first one counting samples, found shape {shape}"
            );
            return Err(wrong(file, text));
        }
        if first(tensor) != count || count == 0 {
            let found = first(tensor);
            let text = format!("array '{name}': expected {} samples, found {found}", count.max(1));
            return Err(wrong(file, text));
        }
    }
    let fixed =
        arrays.iter().filter_map(|(name, _)| input(inputs, name)?.shape.dims()?.first().copied());
    let size = fixed.filter(|dim| *dim > 0).map(|dim| dim as usize).next().unwrap_or(batch);
    let starts = (0..count).step_by(size.max(1));
    starts.map(|start| cut(file, arrays, start..(start + size).min(count))).collect()
}

fn cut(file: &Path, arrays: &Sample, samples: std::ops::Range<usize>) -> Result<Sample, CliError> {
    let part = |(name, tensor): &(String, Tensor)| {
        let dims = tensor.shape().dims();
        let unreadable = |error| wrong(file, format!("array '{name}': {error}"));
        let bytes = tensor.as_bytes().map_err(unreadable)?;
        let each = bytes.len() / dims[0] as usize;
        let dims = [&[samples.len() as i64], &dims[1..]].concat();
        let bytes = &bytes[samples.start * each..samples.end * each];
        let part = Tensor::from_bytes(tensor.dtype(), &dims, bytes).map_err(unreadable)?;
        Ok((name.clone(), part))
    };
    arrays.iter().map(part).collect()
}
