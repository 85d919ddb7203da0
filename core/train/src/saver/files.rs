//! The files of checkpoints, as the client sees them.

use crate::TrainError;
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// The last 8 bytes of an index.
const MAGIC: [u8; 8] = 0xdb47_7524_8b80_fb57_u64.to_le_bytes();

/// Seconds since 1970.
pub(super) fn number_of_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// The file with the name of a checkpoint and this end.
pub(super) fn beside(prefix: &str, end: &str) -> PathBuf {
    PathBuf::from(format!("{prefix}{end}"))
}

/// The folder of a checkpoint.
pub(super) fn folder_of(prefix: &str) -> PathBuf {
    match Path::new(prefix).parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Puts a file in its place: written under a temporary name, made durable, renamed; then the folder is made durable. A
/// reader sees the former file or the new one.
pub(super) fn write(path: &Path, bytes: &[u8], what: &'static str) -> Result<(), TrainError> {
    let replaced = || -> io::Result<()> {
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut file = tempfile::Builder::new().prefix(".tenon-").tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        readable_by_all(file.as_file())?;
        file.persist(path).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    };
    replaced().map_err(|source| TrainError::file(what, path, source))
}

/// A temporary file is its owner's alone; a checkpoint is as any other file.
#[cfg(unix)]
fn readable_by_all(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable_by_all(_: &File) -> io::Result<()> {
    Ok(())
}

/// Whether all files of a checkpoint are there: of a bundle the whole index and data files, of V1 the file.
pub(super) fn is_complete(prefix: &Path) -> bool {
    let Some(text) = prefix.to_str() else { return false };
    let index = beside(text, ".index");
    if !index.exists() {
        return prefix.is_file();
    }
    has_magic(&index) && !data_files(text).is_empty()
}

fn has_magic(index: &Path) -> bool {
    fs::read(index).is_ok_and(|bytes| bytes.ends_with(&MAGIC))
}

/// The data files of a bundle: `PREFIX.data-00000-of-00001` and so on.
fn data_files(prefix: &str) -> Vec<PathBuf> {
    let Some(name) = Path::new(prefix).file_name().and_then(|name| name.to_str()) else {
        return Vec::new();
    };
    let start = format!("{name}.data-");
    let is_data = |file: &str| {
        let numbers = file.strip_prefix(&start).and_then(|rest| rest.split_once("-of-"));
        let is_number = |text: &str| text.len() >= 5 && text.bytes().all(|b| b.is_ascii_digit());
        numbers.is_some_and(|(shard, shards)| is_number(shard) && is_number(shards))
    };
    let entries = fs::read_dir(folder_of(prefix)).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_data));
    files.map(|entry| entry.path()).collect()
}

/// Deletes a checkpoint: the index first, since without it nothing takes the rest for a checkpoint.
pub(super) fn delete(prefix: &str) {
    let mut files = vec![beside(prefix, ".index")];
    files.extend(data_files(prefix));
    files.push(beside(prefix, ".meta"));
    for file in files {
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(
                    "an old checkpoint's file cannot be removed: {}: {error}",
                    file.display()
                );
                return;
            }
            _ => {}
        }
    }
}
