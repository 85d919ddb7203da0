//! Small files that persist between processes: digests, verdicts, times.
//!
//! A cache is a convenience: what cannot be read is computed again, and what cannot be written is
//! not kept.
//!
//! # Invariants
//! - Only regular files are read: opening never blocks on a pipe, and a symbolic link is not
//!   followed.
//! - A file is written under a temporary name that nothing else uses, and renamed: readers see the
//!   old or the new one, even where several processes write it; an existing file is never modified
//!   in place.
//! - Folders are accessible to their user alone.
//! - A folder that [`store`] fills keeps its newest files, at most [`MOST`].

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read, Write},
    path::Path,
    time::SystemTime,
};

/// Number of files in a folder from which on the older half is removed.
pub const MOST: usize = 4096;

/// Creates a folder and its missing parents, accessible to this user alone.
///
/// # Errors
/// The folder cannot be created.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Opens a regular file with these options. Opening does not block, and does not follow a link in
/// the last component.
///
/// # Errors
/// The file cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).mode(0o600);
    }
    let found = |what: &str| {
        let message = format!("expected a regular file, found {what}: remove it");
        io::Error::new(io::ErrorKind::InvalidInput, message)
    };
    let file = options.open(path).map_err(|error| {
        let named = fs::symlink_metadata(path);
        named.as_ref().ok().and_then(kind).map_or(error, found)
    })?;
    match kind(&file.metadata()?) {
        Some(what) => Err(found(what)),
        None => Ok(file),
    }
}

/// What a path refers to, if it is not a regular file.
fn kind(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return None;
    }
    Some(match kind {
        kind if kind.is_dir() => "a folder",
        kind if kind.is_symlink() => "a symbolic link",
        _ => "a pipe, a socket or a device",
    })
}

/// The contents of a regular file of at most `most` bytes.
///
/// # Errors
/// The file cannot be read, is not a regular file, or is longer.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path, OpenOptions::new().read(true))?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("expected at most {most} bytes")));
    }
    Ok(bytes)
}

/// Writes a file under a temporary name and renames it; creates its folder if necessary.
///
/// # Errors
/// The file cannot be written; a former file then stays.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    make_folder(folder)?;
    // A temporary file is accessible to its user alone, and is removed if the rename fails.
    let mut aside = tempfile::Builder::new().suffix(".part").tempfile_in(folder)?;
    aside.write_all(bytes)?;
    aside.persist(path).map(drop).map_err(|refused| refused.error)
}

/// Like [`write()`], in a folder whose number of files is limited.
///
/// # Errors
/// As [`write()`].
pub fn store(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes)?;
    match path.parent() {
        Some(folder) => prune(folder, MOST),
        None => Ok(()),
    }
}

/// Removes the older half of the files if there are more than `most`.
fn prune(folder: &Path, most: usize) -> io::Result<()> {
    let entries: Vec<fs::DirEntry> = fs::read_dir(folder)?.flatten().collect();
    if entries.len() <= most {
        return Ok(());
    }
    let changed = |entry: &fs::DirEntry| {
        entry.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let mut files: Vec<_> = entries.iter().map(|entry| (changed(entry), entry.path())).collect();
    files.sort();
    for (_, path) in files.iter().take(entries.len() - most / 2) {
        // Another process may have removed it.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_a_longer_file_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/file");
        write(&path, b"abc").unwrap();
        assert_eq!(read(&path, 3).unwrap(), b"abc");
        assert!(read(&path, 2).unwrap_err().to_string().contains("at most 2 bytes"));
        write(&path, b"de").unwrap();
        assert_eq!(read(&path, 3).unwrap(), b"de");
        assert_eq!(fs::read_dir(folder.path().join("a/b")).unwrap().count(), 1, "nothing is left");
    }

    #[test]
    fn writers_at_the_same_time_leave_one_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache/file");
        let texts: Vec<String> = (0..8).map(|at| at.to_string().repeat(5000)).collect();
        std::thread::scope(|scope| {
            for text in &texts {
                let path = &path;
                scope.spawn(move || (0..20).for_each(|_| store(path, text.as_bytes()).unwrap()));
            }
        });
        let found = String::from_utf8(read(&path, 10_000).unwrap()).unwrap();
        assert!(texts.contains(&found));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn the_oldest_files_go() {
        let folder = tempfile::tempdir().unwrap();
        for at in 0..10u64 {
            let path = folder.path().join(format!("{at}"));
            fs::write(&path, "x").unwrap();
            let age = std::time::Duration::from_secs(100 - at);
            File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_modified(SystemTime::now() - age)
                .unwrap();
        }
        prune(folder.path(), 10).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 10);
        prune(folder.path(), 8).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["6", "7", "8", "9"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_not_waited_for_and_a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(made.success());
        fs::write(at("other"), "kept").unwrap();
        std::os::unix::fs::symlink(at("other"), at("link")).unwrap();
        for name in ["pipe", "link"] {
            let error = read(&at(name), 100).unwrap_err().to_string();
            assert!(error.contains("expected a regular file, found a "), "{name}: {error}");
            write(&at(name), b"new").unwrap();
            assert_eq!(read(&at(name), 100).unwrap(), b"new", "{name} is replaced by a file");
        }
        assert_eq!(fs::read(at("other")).unwrap(), b"kept");
    }

    #[cfg(unix)]
    #[test]
    fn folders_and_files_are_for_their_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b/file");
        write(&path, b"x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&root.path().join("a")), 0o700);
        assert_eq!((mode(&root.path().join("a/b")), mode(&path)), (0o700, 0o600));
    }
}
