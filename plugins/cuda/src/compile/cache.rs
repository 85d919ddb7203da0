//! Compiled kernels on disk.
//!
//! A file's name is the digest of everything that its contents depend on. The file begins with a
//! digest of that name and of the contents, so a file that is truncated, corrupt or stored under
//! another's name is not used. Files are written elsewhere and renamed, so that each appears whole,
//! even when several processes write the same one. A folder that cannot be written costs compile
//! time and nothing else.

use sha2::{Digest, Sha256};
use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

const DIGEST_BYTES: usize = 32;

/// SHA-256 of the parts, each preceded by its length, as hexadecimal digits.
pub fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A folder of compiled kernels.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: Option<PathBuf>,
}

impl Cache {
    /// The cache that the knob `kernel_cache` describes.
    pub fn new(setting: &str) -> Cache {
        let folder = match setting {
            "none" => None,
            "" => default_folder(),
            folder => Some(PathBuf::from(folder)),
        };
        Cache { folder }
    }

    fn file(&self, key: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(key))
    }

    /// The contents stored under a key.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let file = self.file(key)?;
        // Reading a pipe would block, and a link leads elsewhere.
        if !fs::symlink_metadata(&file).ok()?.is_file() {
            return None;
        }
        let mut kept = fs::read(file).ok()?;
        if kept.len() < DIGEST_BYTES {
            return None;
        }
        let contents = kept.split_off(DIGEST_BYTES);
        (seal(key, &contents).as_slice() == kept).then_some(contents)
    }

    /// Stores contents under a key, if possible.
    pub fn put(&self, key: &str, contents: &[u8]) {
        let Some(file) = self.file(key) else { return };
        // A full disk or another user's folder only means that the kernel is compiled again next
        // time.
        let _ = write_whole(&file, &seal(key, contents), contents);
    }
}

/// The seal at the beginning of a file with this key and these contents.
fn seal(key: &str, contents: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut hash = Sha256::new();
    hash.update((key.len() as u64).to_le_bytes());
    hash.update(key);
    hash.update(contents);
    hash.finalize().into()
}

fn write_whole(file: &Path, seal: &[u8], contents: &[u8]) -> std::io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    if let Some(folder) = file.parent() {
        make_folder(folder)?;
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let part = file.with_extension(format!("{}-{number}.part", process::id()));
    let written = fs::File::create_new(&part).and_then(|mut open| {
        open.write_all(seal)?;
        open.write_all(contents)
    });
    written.and_then(|()| fs::rename(&part, file)).inspect_err(|_| {
        let _ = fs::remove_file(&part);
    })
}

/// Creates a folder and its missing parents, accessible to this user alone.
fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// `$XDG_CACHE_HOME/tenon/cuda`, or `$HOME/.cache/tenon/cuda`; `None` without a home.
fn default_folder() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("tenon").join("cuda"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart() {
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
        assert_eq!(digest(&[b"ab", b"c"]), digest(&[b"ab", b"c"]));
    }

    #[test]
    fn what_is_kept_comes_back_and_what_is_spoilt_does_not() {
        let folder = env::temp_dir().join(format!("tenon-cuda-cache-{}", process::id()));
        let cache = Cache::new(folder.to_str().unwrap());
        assert_eq!(cache.get("key"), None);
        cache.put("key", b"contents");
        assert_eq!(cache.get("key").as_deref(), Some(&b"contents"[..]));
        let mut bytes = fs::read(folder.join("key")).unwrap();
        bytes.pop();
        fs::write(folder.join("key"), bytes).unwrap();
        assert_eq!(cache.get("key"), None);
        fs::write(folder.join("key"), b"x").unwrap();
        assert_eq!(cache.get("key"), None);
        cache.put("key", b"contents");
        fs::copy(folder.join("key"), folder.join("other")).unwrap();
        assert_eq!(cache.get("other"), None, "kept under another key");
        assert_eq!(cache.get("key").as_deref(), Some(&b"contents"[..]));
        let made = process::Command::new("mkfifo").arg(folder.join("pipe")).status();
        assert!(made.unwrap().success());
        assert_eq!(cache.get("pipe"), None, "nothing is waited for");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_or_a_link_in_the_place_of_a_kernel_is_neither_waited_for_nor_written_to() {
        let folder = env::temp_dir().join(format!("tenon-cuda-pipe-{}", process::id()));
        let cache = Cache::new(folder.to_str().unwrap());
        make_folder(&folder).unwrap();
        let made = process::Command::new("mkfifo").arg(folder.join("key")).status().unwrap();
        assert!(made.success());
        assert_eq!(cache.get("key"), None);
        fs::write(folder.join("other"), "kept").unwrap();
        std::os::unix::fs::symlink(folder.join("other"), folder.join("link")).unwrap();
        assert_eq!(cache.get("link"), None);
        for key in ["key", "link"] {
            cache.put(key, b"contents");
            assert_eq!(cache.get(key).as_deref(), Some(&b"contents"[..]));
        }
        assert_eq!(fs::read(folder.join("other")).unwrap(), b"kept");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn none_keeps_nothing() {
        let cache = Cache::new("none");
        cache.put("key", b"contents");
        assert_eq!(cache.get("key"), None);
    }
}
