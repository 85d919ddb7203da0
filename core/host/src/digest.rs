//! Digests of files: SHA-256, in hexadecimal.
//!
//! A digest is remembered, in this process and in the cache folder, by the file's identity, times
//! and size, since hashing a large library costs more than loading it. A remembered digest is never
//! used where trust depends on it.

use crate::cache;
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    env,
    fs::{File, Metadata},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::LazyLock,
};
use tenon_framework::sync::Mutex;

/// Identity of a file: equal for all its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Device number.
    pub device: u64,
    /// Inode.
    pub inode: u64,
}

/// Properties of a file that change when its content does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Stamp {
    id: FileId,
    modified_ns: i128,
    changed_ns: i128,
    size: u64,
}

impl FileId {
    /// Identity of the file that `meta` describes.
    #[cfg(unix)]
    pub fn of(meta: &Metadata) -> FileId {
        use std::os::unix::fs::MetadataExt;
        FileId { device: meta.dev(), inode: meta.ino() }
    }

    /// Without inodes, time and size are the identity; the digest decides in any case.
    #[cfg(not(unix))]
    pub fn of(meta: &Metadata) -> FileId {
        let stamp = Stamp::times(meta);
        FileId { device: stamp as u64, inode: meta.len() }
    }
}

impl Stamp {
    #[cfg(unix)]
    fn of(meta: &Metadata) -> Stamp {
        use std::os::unix::fs::MetadataExt;
        let ns = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Stamp {
            id: FileId::of(meta),
            modified_ns: ns(meta.mtime(), meta.mtime_nsec()),
            changed_ns: ns(meta.ctime(), meta.ctime_nsec()),
            size: meta.len(),
        }
    }

    #[cfg(not(unix))]
    fn of(meta: &Metadata) -> Stamp {
        let modified_ns = Stamp::times(meta);
        Stamp { id: FileId::of(meta), modified_ns, changed_ns: 0, size: meta.len() }
    }

    #[cfg(not(unix))]
    fn times(meta: &Metadata) -> i128 {
        let since = meta.modified().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
        since.map_or(0, |since| since.as_nanos() as i128)
    }

    fn key(&self) -> String {
        let FileId { device, inode } = self.id;
        format!("{device:x}-{inode:x}")
    }

    fn line(&self, digest: &str) -> String {
        format!("{} {} {} {digest}\n", self.modified_ns, self.changed_ns, self.size)
    }
}

/// Most bytes of a line: three numbers and a digest.
const LONGEST: u64 = 256;

static REMEMBERED: LazyLock<Mutex<HashMap<Stamp, String>>> = LazyLock::new(Mutex::default);

/// Tenon's cache folder: `$XDG_CACHE_HOME/tenon`, or `$HOME/.cache/tenon`; `None` without a home
/// directory.
pub fn cache_folder() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("tenon"))
}

/// SHA-256 of everything that a reader yields, which is also copied to `copy`.
///
/// # Errors
/// Reading or writing fails.
pub fn digest_copy(mut from: impl Read, mut copy: impl Write) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut block = vec![0; 128 << 10];
    loop {
        let count = match from.read(&mut block) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&block[..count]);
        copy.write_all(&block[..count])?;
    }
    Ok(hex(&hash.finalize()))
}

/// The first sixteen digits of the SHA-256 of bytes in memory: a file name, or a checksum against
/// damage.
pub fn short_digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)[..8])
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// SHA-256 of an open file, always computed.
///
/// # Errors
/// Reading fails.
pub fn digest_of(file: &File) -> io::Result<String> {
    let mut reader = file;
    reader.seek(SeekFrom::Start(0))?;
    digest_copy(reader, io::sink())
}

/// SHA-256 of an open file; the remembered one if identity, times and size are unchanged.
///
/// # Errors
/// Reading fails.
pub fn remembered_digest(file: &File) -> io::Result<String> {
    remembered_in(file, cache_folder().map(|folder| folder.join("digests")).as_deref())
}

fn remembered_in(file: &File, folder: Option<&Path>) -> io::Result<String> {
    let stamp = Stamp::of(&file.metadata()?);
    if let Some(digest) = REMEMBERED.lock().get(&stamp) {
        return Ok(digest.clone());
    }
    let stored = folder.and_then(|folder| read_stored(folder, &stamp));
    let digest = match &stored {
        Some(digest) => digest.clone(),
        None => digest_of(file)?,
    };
    // If the file changed meanwhile, the digest belongs to neither version.
    if Stamp::of(&file.metadata()?) == stamp {
        REMEMBERED.lock().insert(stamp, digest.clone());
        if let (None, Some(folder)) = (&stored, folder) {
            // The cache is a convenience: without it, the digest is computed again.
            let _ = store(folder, &stamp, &digest);
        }
    }
    Ok(digest)
}

fn read_stored(folder: &Path, stamp: &Stamp) -> Option<String> {
    let bytes = cache::read(&folder.join(stamp.key()), LONGEST).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let digest = text.trim_end().rsplit(' ').next()?;
    let whole = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    (whole && text == stamp.line(digest)).then(|| digest.to_owned())
}

fn store(folder: &Path, stamp: &Stamp, digest: &str) -> io::Result<()> {
    cache::store(&folder.join(stamp.key()), stamp.line(digest).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// SHA-256 of "abc": FIPS 180-4, the example of one block.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn the_digest_is_sha_256_and_the_copy_is_whole() {
        let mut copy = Vec::new();
        assert_eq!(digest_copy(&b"abc"[..], &mut copy).unwrap(), ABC);
        assert_eq!(short_digest(b"abc"), ABC[..16]);
        assert_eq!(copy, b"abc");
    }

    #[test]
    fn a_changed_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (path, cache) = (folder.path().join("file"), folder.path().join("cache"));
        fs::write(&path, "abc").unwrap();
        let digest = |path: &Path| remembered_in(&File::open(path).unwrap(), Some(&cache)).unwrap();
        assert_eq!(digest(&path), ABC);
        let stamp = Stamp::of(&fs::metadata(&path).unwrap());
        assert_eq!(read_stored(&cache, &stamp).as_deref(), Some(ABC));
        fs::write(&path, "abcd").unwrap();
        let changed = digest(&path);
        assert_ne!(changed, ABC);
        let stamp = Stamp::of(&fs::metadata(&path).unwrap());
        assert_eq!(read_stored(&cache, &stamp), Some(changed));
    }

    #[test]
    fn a_damaged_cache_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, cache) = (folder.path().join("file"), folder.path().join("cache"));
        fs::write(&path, "abc").unwrap();
        fs::create_dir(&cache).unwrap();
        let stamp = Stamp::of(&fs::metadata(&path).unwrap());
        for text in ["", "1 2 3 zz\n", &format!("0 0 3 {ABC}\n"), &stamp.line("ba78")] {
            fs::write(cache.join(stamp.key()), text).unwrap();
            assert_eq!(read_stored(&cache, &stamp), None, "{text:?}");
        }
        assert_eq!(remembered_in(&File::open(&path).unwrap(), Some(&cache)).unwrap(), ABC);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_or_a_link_in_the_cache_holds_nobody_up_and_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (path, cache) = (folder.path().join("file"), folder.path().join("cache"));
        fs::write(&path, "abc").unwrap();
        fs::create_dir(&cache).unwrap();
        let stamp = Stamp::of(&fs::metadata(&path).unwrap());
        let made = std::process::Command::new("mkfifo").arg(cache.join(stamp.key())).status();
        assert!(made.unwrap().success());
        assert_eq!(remembered_in(&File::open(&path).unwrap(), Some(&cache)).unwrap(), ABC);
        assert_eq!(read_stored(&cache, &stamp).as_deref(), Some(ABC), "it took the pipe's place");
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, stamp.line(ABC)).unwrap();
        fs::remove_file(cache.join(stamp.key())).unwrap();
        std::os::unix::fs::symlink(&elsewhere, cache.join(stamp.key())).unwrap();
        assert_eq!(read_stored(&cache, &stamp), None);
        fs::write(&elsewhere, "kept").unwrap();
        store(&cache, &stamp, ABC).unwrap();
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "kept");
    }
}
