//! Checkpoints of every form, read tensor by tensor.

use super::CheckpointError;
use std::path::{Path, PathBuf};
use tenon_bundle::{
    Bundle, BundleError, Entry, Files, SafeFile, SliceFiles, Strings, data_file, element_count,
    stored_size,
};
use tenon_runtime::framework::{DType, Tensor};
use tenon_testkit::{npy, npz::Npz};

/// The form of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bundle,
    Old,
    Safe,
    Npz,
    Npy,
}

impl Kind {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bundle => "bundle",
            Kind::Old => "V1 file",
            Kind::Safe => "safetensors",
            Kind::Npz => "npz",
            Kind::Npy => "npy",
        }
    }

    /// The form that the end of a name says; a bundle for any other.
    pub fn of(path: &Path) -> Kind {
        match path.extension().and_then(|end| end.to_str()) {
            Some("safetensors") => Kind::Safe,
            Some("npz") => Kind::Npz,
            Some("npy") => Kind::Npy,
            _ => Kind::Bundle,
        }
    }
}

/// The prefix of a bundle that a path names, which may be that of its index.
pub fn prefix_of(path: &Path) -> PathBuf {
    match path.extension().is_some_and(|end| end == "index") {
        true => path.with_extension(""),
        false => path.to_owned(),
    }
}

/// What a checkpoint says of a tensor.
#[derive(Debug, Clone)]
pub struct Info {
    pub name: String,
    pub dtype: DType,
    pub dims: Vec<i64>,
    /// Size in the file, where the form says it.
    pub bytes: Option<u64>,
    /// Masked CRC-32C, where the form has one for each tensor.
    pub checksum: Option<u32>,
    /// The data file, where there are several.
    pub file: String,
    /// Number of slices that it is stored in; 0 for a whole tensor.
    pub slices: usize,
}

/// The elements of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Bytes(Vec<u8>),
    Strings(Strings),
}

enum Source<'a> {
    Bundle(Bundle<'a>, Vec<(Vec<u8>, Entry)>),
    Old(SliceFiles, Vec<Vec<u8>>),
    Safe(SafeFile),
    /// The arrays of an archive, or the only one of a file.
    Arrays(Vec<Tensor>, Kind),
}

/// An open checkpoint.
pub struct Checkpoint<'a> {
    file: PathBuf,
    source: Source<'a>,
    infos: Vec<Info>,
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

impl<'a> Checkpoint<'a> {
    /// Opens a checkpoint of any form.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub fn open(files: Files<'a>, path: &Path) -> Result<Checkpoint<'a>, CheckpointError> {
        let (source, infos) = match Kind::of(path) {
            Kind::Safe => safe(SafeFile::open(files, path)?),
            Kind::Npz => npz(Npz::open(path)?)?,
            Kind::Npy => {
                let name =
                    path.file_stem().map_or_else(String::new, |stem| stem.display().to_string());
                let tensor = npy::read(path, None)?;
                let info = described(name, &tensor);
                (Source::Arrays(vec![tensor], Kind::Npy), vec![info])
            }
            _ if Bundle::exists(files, &prefix_of(path))? => {
                bundle(Bundle::open(files, &prefix_of(path))?, &prefix_of(path))?
            }
            _ => old(SliceFiles::open(files, path.as_os_str().as_encoded_bytes())?),
        };
        Ok(Checkpoint { file: path.to_owned(), source, infos })
    }

    /// Its form.
    pub fn kind(&self) -> Kind {
        match &self.source {
            Source::Bundle(..) => Kind::Bundle,
            Source::Old(..) => Kind::Old,
            Source::Safe(_) => Kind::Safe,
            Source::Arrays(_, kind) => *kind,
        }
    }

    /// The path that it was opened by.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The tensors, in the order of the file.
    pub fn infos(&self) -> &[Info] {
        &self.infos
    }

    /// The elements of a tensor.
    ///
    /// # Errors
    /// They cannot be read, or are damaged.
    pub fn read(&mut self, at: usize) -> Result<Value, CheckpointError> {
        let info = &self.infos[at];
        let is_text = stored_size(info.dtype).is_none();
        Ok(match &mut self.source {
            Source::Bundle(bundle, entries) => {
                let (name, entry) = &entries[at];
                match is_text {
                    true => Value::Strings(bundle.read_strings(name, entry, None)?),
                    false => {
                        bundle.check(name, entry, None)?;
                        let mut bytes = room(info)?;
                        bundle.read(name, entry, None, &mut bytes)?;
                        Value::Bytes(bytes)
                    }
                }
            }
            Source::Old(files, names) => match is_text {
                true => Value::Strings(files.read_strings(&names[at], None)?),
                false => {
                    files.check(&names[at], None)?;
                    let mut bytes = room(info)?;
                    files.read(&names[at], None, &mut bytes)?;
                    Value::Bytes(bytes)
                }
            },
            Source::Safe(file) => Value::Bytes(file.read(at)?),
            Source::Arrays(tensors, _) => match is_text {
                true => {
                    let mut strings = Strings::default();
                    for text in tensors[at].as_strings()? {
                        strings.push(text.as_ref()).map_err(BundleError::from)?;
                    }
                    Value::Strings(strings)
                }
                false => Value::Bytes(tensors[at].as_bytes()?.to_vec()),
            },
        })
    }
}

/// Memory for the elements of a tensor, whose file was found to be long enough for them.
fn room(info: &Info) -> Result<Vec<u8>, CheckpointError> {
    let count = element_count(&info.dims).zip(stored_size(info.dtype));
    let size = count.and_then(|(count, each)| count.checked_mul(each as u64));
    let size = size.and_then(|size| usize::try_from(size).ok());
    let mut bytes = Vec::new();
    match size.filter(|&size| bytes.try_reserve_exact(size).is_ok()) {
        Some(size) => {
            bytes.extend(std::iter::repeat_n(0, size));
            Ok(bytes)
        }
        None => Err(BundleError::Argument(format!(
            "tensor '{}': there is no memory for type {} and shape {:?}",
            info.name,
            info.dtype.name(),
            info.dims
        ))
        .into()),
    }
}

type Opened<'a> = (Source<'a>, Vec<Info>);

fn bundle<'a>(mut bundle: Bundle<'a>, prefix: &Path) -> Result<Opened<'a>, CheckpointError> {
    let entries = bundle.entries()?;
    let file = |shard| match bundle.shards() {
        1 => String::new(),
        shards => {
            let path = data_file(prefix, shard, shards);
            path.file_name().map_or_else(String::new, |name| name.display().to_string())
        }
    };
    let info = |(name, entry): &(Vec<u8>, Entry)| Info {
        name: shown(name),
        dtype: entry.dtype,
        dims: entry.dims.clone(),
        bytes: entry.slices.is_empty().then_some(entry.size),
        checksum: entry.slices.is_empty().then_some(entry.checksum),
        file: if entry.slices.is_empty() { file(entry.shard) } else { String::new() },
        slices: entry.slices.len(),
    };
    let infos = entries.iter().map(info).collect();
    Ok((Source::Bundle(bundle, entries), infos))
}

fn old<'a>(files: SliceFiles) -> Opened<'a> {
    let (mut names, mut infos) = (Vec::new(), Vec::new());
    for (name, tensor) in files.tensors() {
        names.push(name.to_vec());
        let is_whole = matches!(&tensor.slices[..], [(slice, _)] if slice.covers(&tensor.dims));
        infos.push(Info {
            name: shown(name),
            dtype: tensor.dtype,
            dims: tensor.dims.clone(),
            bytes: None,
            checksum: None,
            file: String::new(),
            slices: if is_whole { 0 } else { tensor.slices.len() },
        });
    }
    (Source::Old(files, names), infos)
}

fn safe<'a>(file: SafeFile) -> Opened<'a> {
    let info = |tensor: &tenon_bundle::SafeTensor| Info {
        name: tensor.name.clone(),
        dtype: tensor.dtype,
        dims: tensor.dims.clone(),
        bytes: Some(tensor.bytes()),
        checksum: None,
        file: String::new(),
        slices: 0,
    };
    let infos = file.tensors().map(info).collect();
    (Source::Safe(file), infos)
}

/// An archive says the type of an array only as it is read, so that all arrays are read.
fn npz<'a>(mut archive: Npz) -> Result<Opened<'a>, CheckpointError> {
    let (mut tensors, mut infos) = (Vec::new(), Vec::new());
    for name in archive.names() {
        let tensor = archive.tensor(&name, None)?;
        infos.push(described(name, &tensor));
        tensors.push(tensor);
    }
    Ok((Source::Arrays(tensors, Kind::Npz), infos))
}

fn described(name: String, tensor: &Tensor) -> Info {
    Info {
        name,
        dtype: tensor.dtype(),
        dims: tensor.shape().dims().to_vec(),
        bytes: stored_size(tensor.dtype()).map(|each| (tensor.elements() * each) as u64),
        checksum: None,
        file: String::new(),
        slices: 0,
    }
}
