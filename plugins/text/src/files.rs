//! `ReadFile`, `WriteFile`, `MatchingFiles`, `ShardedFilename` and `ShardedFilespec`.

use crate::{glob, text};
use std::{
    ffi::OsString,
    io::ErrorKind,
    path::{Path, PathBuf},
};
use tenon_sdk::{
    Code, KernelError,
    author::{ComputeContext, CreateContext, Kernel, Mode},
    reg::Numerics,
    register_kernel,
};

/// What went wrong with a file that an argument names, with the code that TensorFlow gives the system's error.
pub fn failed(what: &str, path: impl AsRef<Path>, error: &std::io::Error) -> KernelError {
    let code = match error.kind() {
        ErrorKind::NotFound => Code::NOT_FOUND,
        ErrorKind::PermissionDenied => Code::PERMISSION_DENIED,
        ErrorKind::AlreadyExists => Code::ALREADY_EXISTS,
        ErrorKind::IsADirectory | ErrorKind::NotADirectory => Code::FAILED_PRECONDITION,
        ErrorKind::InvalidInput => Code::INVALID_ARGUMENT,
        ErrorKind::StorageFull | ErrorKind::OutOfMemory => Code::RESOURCE_EXHAUSTED,
        _ => Code::UNKNOWN,
    };
    KernelError::new(code, format!("{what}: file '{}': {error}", path.as_ref().display()))
}

#[cfg(unix)]
fn path_of(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(OsString::from_vec(name.to_vec()))
}

#[cfg(not(unix))]
fn path_of(name: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from(crate::shown(name)))
}

/// Declares a kernel without state that may wait for a disk.
macro_rules! on_disk {
    ($($op:literal, $kernel:ident, $compute:ident;)*) => {$(
        struct $kernel;

        impl Kernel for $kernel {
            const MODE: Mode = Mode::Blocking;

            fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
                Ok($kernel)
            }

            fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
                $compute(c)
            }
        }

        register_kernel!($op on "CPU": $kernel, numerics = Numerics::EXACT);
    )*};
}

on_disk! {
    "ReadFile", ReadFile, read_file;
    "WriteFile", WriteFile, write_file;
    "MatchingFiles", MatchingFiles, matching_files;
}

fn read_file(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let path = path_of(text(c, 0, "filename")?);
    let contents = std::fs::read(&path).map_err(|error| failed("filename", &path, &error))?;
    c.set_strings(0, &[], [contents].into_iter())
}

fn write_file(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let path = path_of(text(c, 0, "filename")?);
    let contents = text(c, 1, "contents")?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| failed("filename", folder, &error))?;
    }
    std::fs::write(&path, contents).map_err(|error| failed("filename", &path, &error))
}

fn matching_files(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    if c.dims(0).len() > 1 {
        return Err(KernelError::invalid_argument(format!(
            "pattern must be a scalar or a vector, found shape {:?}",
            c.dims(0)
        )));
    }
    let mut names = Vec::new();
    for pattern in c.strings(0)? {
        names.extend(matching(pattern));
    }
    names.sort();
    c.set_strings(0, &[names.len() as i64], names.into_iter())
}

/// The files that match a pattern, each part of which may have special characters; they match no slash. Names of
/// files in the current folder begin with `./`, as TensorFlow gives them. What cannot be read matches nothing.
fn matching(pattern: &[u8]) -> Vec<Vec<u8>> {
    if pattern.is_empty() {
        return Vec::new();
    }
    if glob::is_plain(pattern) {
        return if path_of(pattern).exists() { vec![pattern.to_vec()] } else { Vec::new() };
    }
    let special = pattern.iter().position(|c| b"*?[\\".contains(c)).unwrap_or(0);
    let fixed = pattern[..special].iter().rposition(|c| *c == b'/').map_or(0, |at| at + 1);
    let first = if fixed == 0 { b"./".to_vec() } else { pattern[..fixed].to_vec() };
    let parts: Vec<&[u8]> =
        pattern[fixed..].split(|c| *c == b'/').filter(|p| !p.is_empty()).collect();
    let mut found = vec![first];
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        found = found.iter().flat_map(|folder| inside(folder, part, last)).collect();
    }
    found
}

/// What matches in a folder, whose name ends in a slash; folders again end in one unless they are the last part.
fn inside(folder: &[u8], part: &[u8], last: bool) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(path_of(folder)) else { return Vec::new() };
    let names = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_encoded_bytes();
        let wanted = glob::matches(part, &name) && (last || entry.path().is_dir());
        wanted.then(|| [folder, &name, if last { b"" } else { &b"/"[..] }].concat())
    });
    names.collect()
}

/// A number with at least five digits, of which a minus is one.
fn padded(number: i64) -> String {
    format!("{number:05}")
}

fn sharded_filename(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let base = text(c, 0, "basename")?;
    let shard = padded(c.integer(1, "shard")?);
    let count = padded(c.integer(2, "num_shards")?);
    let name = [base, format!("-{shard}-of-{count}").as_bytes()].concat();
    c.set_strings(0, &[], [name].into_iter())
}

fn sharded_filespec(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let base = text(c, 0, "basename")?;
    let count = padded(c.integer(1, "num_shards")?);
    let name = [base, format!("-?????-of-{count}").as_bytes()].concat();
    c.set_strings(0, &[], [name].into_iter())
}

register_kernel!("ShardedFilename" on "CPU": fn sharded_filename,
    host_memory = &["shard", "num_shards"], numerics = Numerics::EXACT);
register_kernel!("ShardedFilespec" on "CPU": fn sharded_filespec,
    host_memory = &["num_shards"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::{matching, padded};

    #[test]
    fn parts_of_a_path_match_apart() {
        let folder = std::env::temp_dir().join(format!("tenon-text-{}", std::process::id()));
        for name in ["a.txt", "b.txt", "s1/c.txt", "s2/d.txt", "s2/.e"] {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"x").unwrap();
        }
        let found = |pattern: &str| {
            let whole = format!("{}/{pattern}", folder.display());
            let mut names = matching(whole.as_bytes());
            names.sort();
            let start = folder.as_os_str().len() + 1;
            names.iter().map(|name| crate::shown(&name[start..])).collect::<Vec<_>>()
        };
        assert_eq!(found("*.txt"), ["a.txt", "b.txt"]);
        assert_eq!(found("s?/*.txt"), ["s1/c.txt", "s2/d.txt"]);
        assert_eq!(found("*/d.txt"), ["s2/d.txt"]);
        assert_eq!(found("s2/*"), ["s2/.e", "s2/d.txt"]);
        assert_eq!(found("s*/"), ["s1", "s2"]);
        assert_eq!(found("a.txt"), ["a.txt"]);
        assert_eq!(found("none/*"), [""; 0]);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(padded(-3), "-0003");
    }
}
