//! Output files that are written whole or not at all.
//!
//! [`write_whole`] writes to a temporary file in the same folder, and renames it: a reader sees the
//! former file or the new one, and a full disk leaves the former one unchanged. For files that
//! persist between processes see [`crate::cache`].

use std::{
    fs::{self, File, Metadata, OpenOptions, Permissions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// Writes a file whole or not at all.
///
/// An existing file is replaced once `write` has succeeded, and its permissions are kept; a link to
/// a file stays a link, and its target is replaced. If the path is not a regular file (a pipe, a
/// terminal, `/dev/stdout`), it is written directly.
///
/// # Errors
/// Errors of `write` and of the file system; a former file is then unchanged.
pub fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let former = match fs::metadata(path) {
        Ok(former) if !former.is_file() || is_stream(path) => {
            return fill(
                &OpenOptions::new().write(true).truncate(former.is_file()).open(path)?,
                write,
            );
        }
        Ok(former) => Some(former),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let target = target_of(path)?;
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut aside = tempfile::Builder::new();
    aside.prefix(".tenon-").suffix(".part");
    // The process's umask applies as for any new file.
    #[cfg(unix)]
    aside.permissions(<Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    let aside = aside.tempfile_in(folder.unwrap_or(Path::new(".")))?;
    fill(aside.as_file(), write)?;
    if let Some(former) = former {
        keep_permissions(aside.as_file(), &former)?;
    }
    aside.persist(target).map(drop).map_err(|refused| refused.error)
}

/// Writes bytes whole or not at all.
///
/// # Errors
/// As [`write_whole`].
pub fn write_bytes(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    write_whole(path, |out| out.write_all(bytes.as_ref()))
}

fn fill(
    file: &File,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.flush()
}

/// Whether a path is the system's name for an open file, which a rename would replace.
fn is_stream(path: &Path) -> bool {
    ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder))
}

/// The path to replace: the target of a link, even one that does not exist yet.
fn target_of(path: &Path) -> io::Result<PathBuf> {
    match fs::read_link(path) {
        Ok(link) => match fs::canonicalize(path) {
            Ok(target) => Ok(target),
            Err(_) => Ok(path.parent().unwrap_or(Path::new("")).join(link)),
        },
        Err(_) => Ok(path.to_owned()),
    }
}

/// Copies the mode of the former file, so that a rewritten file stays as private as it was.
fn keep_permissions(file: &File, former: &Metadata) -> io::Result<()> {
    file.set_permissions(former.permissions())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_that_fails_leaves_the_former_file_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("y.npy");
        write_bytes(&path, "former").unwrap();
        let failed = write_whole(&path, |out| {
            out.write_all(b"a part")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"former");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        write_bytes(&path, "new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [file, link, dangling, new] =
            ["file", "link", "dangling", "new"].map(|name| folder.path().join(name));
        write_bytes(&file, "1").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        symlink("file", &link).unwrap();
        symlink("new", &dangling).unwrap();
        write_bytes(&link, "2").unwrap();
        write_bytes(&dangling, "3").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"2");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read(&new).unwrap(), b"3");
        // A new file has the permissions of the umask, instead of those of a temporary file.
        fs::File::create(folder.path().join("usual")).unwrap();
        let mode =
            |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode("new"), mode("usual"));
    }

    #[test]
    fn a_device_is_written_to_and_stays_one() {
        write_bytes(Path::new("/dev/null"), "gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let folder = tempfile::tempdir().unwrap();
        assert!(write_bytes(folder.path(), "a folder").is_err());
        assert!(write_bytes(&folder.path().join("no/such/folder"), "x").is_err());
    }
}
