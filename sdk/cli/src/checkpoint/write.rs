//! A checkpoint written in another form.

use super::{
    CheckpointError,
    args::ConvertArgs,
    open::{Checkpoint, Info, Kind, Value, prefix_of},
};
use crate::error::CliError;
use std::{collections::HashSet, fs::File, path::Path};
use tenon_bundle::{BundleWriter, Content, Files, SafeTensor, SafeWriter, Strings};
use tenon_runtime::framework::{DType, Tensor};
use tenon_testkit::npz::NpzWriter;

/// What was written.
pub struct Written {
    pub kind: Kind,
    pub written: usize,
    pub bytes: u64,
    pub skipped: Vec<String>,
}

/// Whether a form has a place for a type.
fn has_place(kind: Kind, dtype: DType) -> bool {
    match kind {
        Kind::Bundle | Kind::Old => dtype != DType::RESOURCE,
        // A file of one array is read only.
        Kind::Npy => false,
        Kind::Safe => SafeTensor::has_type(dtype),
        Kind::Npz => {
            dtype == DType::STRING || !dtype.needs_drop() && NpzWriter::<File>::has_type(dtype)
        }
    }
}

/// A tensor that is written: its position in the old checkpoint, and its new name.
struct Chosen {
    at: usize,
    name: String,
}

/// Writes what `from` has.
///
/// # Errors
/// A tensor has no place; a name is wrong; a file cannot be read or written.
pub fn write(
    files: Files<'_>,
    from: &mut Checkpoint<'_>,
    args: &ConvertArgs,
) -> Result<Written, CliError> {
    let kind = Kind::of(&args.to);
    if kind == Kind::Npy {
        return Err(CheckpointError::ReadOnly(args.to.clone()).into());
    }
    let infos = from.infos().to_vec();
    if let Some((old, _)) =
        args.renames.iter().find(|(old, _)| infos.iter().all(|i| i.name != *old))
    {
        let (file, name) = (from.file().to_owned(), old.clone());
        return Err(CheckpointError::NoTensor { file, name }.into());
    }
    let (mut chosen, mut skipped, mut names) = (Vec::new(), Vec::new(), HashSet::new());
    for (at, info) in infos.iter().enumerate() {
        if !has_place(kind, info.dtype) {
            if args.skip {
                skipped.push(info.name.clone());
                continue;
            }
            let (name, dtype, kind) = (info.name.clone(), info.dtype.name(), kind.name());
            return Err(CheckpointError::NoPlace { name, dtype, kind }.into());
        }
        let renamed = args.renames.iter().find(|(old, _)| *old == info.name);
        let name = renamed.map_or(&info.name, |(_, new)| new).clone();
        if !names.insert(name.clone()) {
            return Err(CheckpointError::Twice(name).into());
        }
        chosen.push(Chosen { at, name });
    }
    let bytes = match kind {
        Kind::Safe => safe(files, from, &infos, &chosen, &args.to)?,
        Kind::Npz => npz(from, &infos, &chosen, &args.to)?,
        Kind::Bundle | Kind::Old | Kind::Npy => bundle(files, from, &infos, &chosen, &args.to)?,
    };
    Ok(Written { kind, written: chosen.len(), bytes, skipped })
}

/// Calls `use_it` with the elements as they are written; their bytes.
fn with_content<R>(value: &Value, use_it: impl FnOnce(Content<'_>) -> R) -> (R, u64) {
    match value {
        Value::Bytes(bytes) => (use_it(Content::Bytes(bytes)), bytes.len() as u64),
        Value::Strings(strings) => {
            let texts: Vec<&[u8]> = strings.iter().collect();
            let bytes = texts.iter().map(|text| text.len() as u64).sum();
            (use_it(Content::Strings(&texts)), bytes)
        }
    }
}

fn bundle(
    files: Files<'_>,
    from: &mut Checkpoint<'_>,
    infos: &[Info],
    chosen: &[Chosen],
    to: &Path,
) -> Result<u64, CheckpointError> {
    let mut writer = BundleWriter::create(files, &prefix_of(to))?;
    let mut sum = 0;
    for one in chosen {
        let (value, info) = (from.read(one.at)?, &infos[one.at]);
        let (done, bytes) = with_content(&value, |content| {
            writer.add(one.name.as_bytes(), info.dtype, &info.dims, content)
        });
        done?;
        sum += bytes;
    }
    writer.finish()?;
    Ok(sum)
}

fn safe(
    files: Files<'_>,
    from: &mut Checkpoint<'_>,
    infos: &[Info],
    chosen: &[Chosen],
    to: &Path,
) -> Result<u64, CheckpointError> {
    let described = |one: &Chosen| SafeTensor {
        name: one.name.clone(),
        dtype: infos[one.at].dtype,
        dims: infos[one.at].dims.clone(),
    };
    let mut tensors: Vec<SafeTensor> = chosen.iter().map(described).collect();
    SafeWriter::sort(&mut tensors);
    let mut writer = SafeWriter::create(files, to, &tensors)?;
    let mut sum = 0;
    for tensor in &tensors {
        let Some(one) = chosen.iter().find(|one| one.name == tensor.name) else { continue };
        if let Value::Bytes(bytes) = from.read(one.at)? {
            writer.add(&bytes)?;
            sum += bytes.len() as u64;
        }
    }
    writer.finish(files, to)?;
    Ok(sum)
}

/// The archive is written beside its place and renamed.
fn npz(
    from: &mut Checkpoint<'_>,
    infos: &[Info],
    chosen: &[Chosen],
    to: &Path,
) -> Result<u64, CliError> {
    let failed = |source| CliError::File { file: to.to_owned(), done: "written", source };
    let folder = match to.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    // As every new file: readable for others, unless the umask takes that away.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut temporary = builder.tempfile_in(folder).map_err(failed)?;
    let mut writer = NpzWriter::new(temporary.as_file_mut(), &to.display().to_string());
    let mut sum = 0;
    for one in chosen {
        let (value, info) = (from.read(one.at)?, &infos[one.at]);
        let tensor = match &value {
            Value::Bytes(bytes) => {
                sum += bytes.len() as u64;
                Tensor::from_bytes(info.dtype, &info.dims, bytes)
            }
            Value::Strings(strings) => texts(&info.dims, strings),
        };
        writer.add(&one.name, &tensor.map_err(CheckpointError::from)?)?;
    }
    writer.finish()?;
    temporary.as_file().sync_all().map_err(failed)?;
    temporary.persist(to).map_err(|error| failed(error.error))?;
    Ok(sum)
}

fn texts(
    dims: &[i64],
    strings: &Strings,
) -> Result<Tensor, tenon_runtime::framework::tensor::TensorError> {
    let texts: Vec<&[u8]> = strings.iter().collect();
    Tensor::from_strings(dims, &texts)
}
