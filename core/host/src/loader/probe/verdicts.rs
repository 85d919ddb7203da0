//! Stored verdicts, by digest: in this process, and in the cache folder for later ones.
//!
//! A file contains one record as JSON, preceded by a checksum of the record and its digest. A
//! record that is damaged, of a later version, or of another machine or system (with a different
//! processor or libraries) is ignored: the library is tried again.

use super::Verdict;
use crate::{
    cache,
    digest::{cache_folder, short_digest},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::LazyLock,
};
use tenon_framework::sync::Mutex;

/// Version of a record.
const VERSION: u32 = 1;
/// Most bytes of a record.
const MAX_BYTES: u64 = 8 << 10;

static KEPT: LazyLock<Mutex<HashMap<String, Verdict>>> = LazyLock::new(Mutex::default);

#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
    machine: String,
    /// How the library ends the process that opens it; `None` if it opens.
    refused: Option<String>,
}

fn folder() -> Option<PathBuf> {
    Some(cache_folder()?.join("verdicts"))
}

/// The stored verdict on a digest, if any.
pub fn recall(digest: &str) -> Option<Verdict> {
    if let Some(verdict) = KEPT.lock().get(digest) {
        return Some(verdict.clone());
    }
    let verdict = read(&folder()?, digest, &machine())?;
    KEPT.lock().insert(digest.to_owned(), verdict.clone());
    Some(verdict)
}

/// Stores a verdict. If the cache folder cannot be written, the next process tries the library
/// again.
pub fn keep(digest: &str, verdict: &Verdict) {
    KEPT.lock().insert(digest.to_owned(), verdict.clone());
    if let Some(folder) = folder()
        && let Err(error) = write(&folder, digest, &machine(), verdict)
    {
        tracing::debug!(folder = %folder.display(), "a verdict is not kept: {error}");
    }
}

/// The identity of the machine and its system.
fn machine() -> String {
    let fact = |name: &str| {
        let bytes = cache::read(&Path::new("/proc/sys/kernel").join(name), 256).unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    };
    format!("{} {}", fact("hostname"), fact("osrelease"))
}

fn checksum(digest: &str, json: &str) -> String {
    short_digest(format!("{digest} {json}").as_bytes())
}

fn read(folder: &Path, digest: &str, machine: &str) -> Option<Verdict> {
    let text = String::from_utf8(cache::read(&folder.join(digest), MAX_BYTES).ok()?).ok()?;
    let (sum, json) = text.trim_end().split_once(' ')?;
    if sum != checksum(digest, json) {
        return None;
    }
    let record: Record = serde_json::from_str(json).ok()?;
    let fits = record.version == VERSION && record.machine == machine;
    fits.then(|| record.refused.map_or(Verdict::Opens, Verdict::Refused))
}

fn write(folder: &Path, digest: &str, machine: &str, verdict: &Verdict) -> io::Result<()> {
    let refused = match verdict {
        Verdict::Opens => None,
        Verdict::Refused(how) => Some(how.clone()),
    };
    let record = Record { version: VERSION, machine: machine.to_owned(), refused };
    let json = serde_json::to_string(&record)?;
    let line = format!("{} {json}\n", checksum(digest, &json));
    cache::store(&folder.join(digest), line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn refused() -> Verdict {
        Verdict::Refused("was ended by signal 11 (SIGSEGV)".to_owned())
    }

    #[test]
    fn a_verdict_is_of_one_digest_and_one_machine() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        write(at, "aa", "m", &refused()).unwrap();
        write(at, "bb", "m", &Verdict::Opens).unwrap();
        assert_eq!(read(at, "aa", "m"), Some(refused()));
        assert_eq!(read(at, "bb", "m"), Some(Verdict::Opens));
        assert_eq!((read(at, "aa", "another"), read(at, "cc", "m")), (None, None));
        fs::copy(at.join("bb"), at.join("cc")).unwrap();
        assert_eq!(read(at, "cc", "m"), None, "kept for another digest");
    }

    #[test]
    fn damaged_verdicts_are_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let (at, file) = (folder.path(), folder.path().join("aa"));
        write(at, "aa", "m", &refused()).unwrap();
        let whole = fs::read(&file).unwrap();
        for place in 0..whole.len() - 1 {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            fs::write(&file, &changed).unwrap();
            assert_eq!(read(at, "aa", "m"), None, "byte {place}");
            fs::write(&file, &whole[..place]).unwrap();
            assert_eq!(read(at, "aa", "m"), None, "cut to {place}");
        }
        fs::write(&file, [b'x'; 10_000]).unwrap();
        assert_eq!(read(at, "aa", "m"), None);
        write(at, "aa", "m", &refused()).unwrap();
        assert_eq!(read(at, "aa", "m"), Some(refused()), "it is written anew");
    }

    #[test]
    fn writers_at_the_same_time_leave_a_verdict() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for at in 0..4 {
                let folder = folder.path();
                let verdict = if at % 2 == 0 { refused() } else { Verdict::Opens };
                scope.spawn(move || {
                    for _ in 0..50 {
                        write(folder, "aa", "m", &verdict).unwrap();
                        assert!(read(folder, "aa", "m").is_some(), "readers see a whole one");
                    }
                });
            }
        });
    }
}
