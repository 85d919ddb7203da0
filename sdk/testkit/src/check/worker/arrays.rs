//! A case as files that NumPy reads: `input0.npy`, `expected0.npy`, `got0.npy`, each with its number.

use crate::{
    check::{CheckCase, Examiner, Expect, Expectation, Subject},
    npy,
};
use std::{fs, path::Path};
use tenon_framework::Tensor;

/// Writes the inputs, the oracle's results and the kernel's results; a missing tensor has no file.
///
/// # Errors
/// Inputs that cannot be made, a folder or a file that cannot be written.
pub(super) fn write(
    examiner: &Examiner,
    subject: &Subject,
    case: &CheckCase,
    oracle: &Expect<'_>,
    folder: &Path,
) -> Result<(), String> {
    let inputs = case.tensors().map_err(|error| error.to_string())?;
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    each(folder, "input", &inputs)?;
    if let Expectation::Outputs(outputs) = oracle(&inputs) {
        let expected: Vec<Tensor> = outputs.into_iter().map(|(tensor, _)| tensor).collect();
        each(folder, "expected", &expected)?;
    }
    match examiner.outputs(subject, case, &inputs) {
        Ok(outputs) => each(folder, "got", &outputs),
        Err(_) => Ok(()),
    }
}

fn each(folder: &Path, name: &str, tensors: &[Tensor]) -> Result<(), String> {
    tensors.iter().enumerate().try_for_each(|(at, tensor)| {
        let file = folder.join(format!("{name}{at}.npy"));
        npy::write(&file, tensor).map_err(|error| error.to_string())
    })
}
