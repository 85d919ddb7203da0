//! Stores the times of kernels on disk.
//!
//! There is one file for each machine, thread count and device. Each line has a checksum and a
//! record as JSON. A record is appended by one write under the file's lock, so that processes may
//! do so at once; nothing is changed in place. Unreadable lines are skipped: truncated ones, ones
//! with a wrong checksum, and ones of a later version. Of several records for one call and kernel,
//! the last one counts. A file larger than [`COMPACT_BYTES`] is rewritten without outdated records,
//! and replaced by renaming.

use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};
use tenon_framework::registry::Timed;
use tenon_host::{cache, digest::short_digest};

/// The version of a record.
const VERSION: u32 = 1;
/// The size above which a file is rewritten.
const COMPACT_BYTES: u64 = 8 << 20;
/// The size above which a file is not read, since it cannot be one of ours.
const MAX_BYTES: u64 = 64 << 20;

/// The time of a kernel for one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    version: u32,
    /// The call: op, types, shapes, attributes.
    pub call: String,
    /// The kernel, with its plugin's digest.
    pub kernel: String,
    /// The time in nanoseconds; `None` if the kernel failed.
    pub ns: Option<f64>,
    /// The reason why it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed: String,
}

impl Record {
    pub fn new(call: &str, kernel: &str, timed: &Timed) -> Record {
        let (call, kernel) = (call.to_owned(), kernel.to_owned());
        let (ns, failed) = match timed {
            Timed::Ns(ns) => (Some(*ns), String::new()),
            Timed::Failed(reason) => (None, reason.clone()),
        };
        Record { version: VERSION, call, kernel, ns, failed }
    }

    fn timed(&self) -> Option<Timed> {
        match self.ns {
            Some(ns) if ns.is_finite() && ns > 0.0 => Some(Timed::Ns(ns)),
            Some(_) => None,
            None => Some(Timed::Failed(self.failed.clone())),
        }
    }

    fn line(&self) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        format!("{} {json}\n", short_digest(json.as_bytes()))
    }

    fn parse(line: &[u8]) -> Option<Record> {
        let text = std::str::from_utf8(line).ok()?;
        let (sum, json) = text.split_once(' ')?;
        if sum != short_digest(json.as_bytes()) {
            return None;
        }
        serde_json::from_str(json).ok().filter(|record: &Record| record.version == VERSION)
    }
}

/// The times by call and kernel.
type Times = HashMap<(String, String), Timed>;

/// The times of one machine and device: a file, and its content together with the times measured
/// here.
pub(crate) struct Store {
    /// The file; `None` keeps the times in memory only.
    path: Option<PathBuf>,
    times: Times,
    /// The length that was read so far; `file` identifies the file.
    read: u64,
    file: u64,
    /// The number of unreadable lines.
    pub passed_over: u64,
}

impl Store {
    /// Creates a store over a file, which need not exist; `None` keeps everything in memory.
    pub fn new(path: Option<PathBuf>) -> Store {
        let mut store = Store { path, times: Times::new(), read: 0, file: 0, passed_over: 0 };
        store.refresh();
        store
    }

    /// The time of a kernel for a call.
    pub fn get(&self, call: &str, kernel: &str) -> Option<&Timed> {
        self.times.get(&(call.to_owned(), kernel.to_owned()))
    }

    /// Reads the times that other processes have added.
    pub fn refresh(&mut self) {
        let Some(path) = self.path.clone() else { return };
        match self.read_new(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(path = %path.display(), "times are not read: {error}"),
        }
    }

    fn read_new(&mut self, path: &Path) -> io::Result<()> {
        let mut file = cache::open_regular(path, OpenOptions::new().read(true))?;
        file.lock_shared()?;
        let meta = file.metadata()?;
        if meta.len() > MAX_BYTES {
            let message = format!("{} bytes, expected at most {MAX_BYTES}: remove it", meta.len());
            return Err(io::Error::other(message));
        }
        if identity(&meta) != self.file || meta.len() < self.read {
            (self.file, self.read) = (identity(&meta), 0);
        }
        file.seek(SeekFrom::Start(self.read))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        // A line without an end is being written, or was truncated; it is read once it has one.
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        self.read += whole as u64;
        for line in bytes[..whole].split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            match Record::parse(line).and_then(|record| Some((record.timed()?, record))) {
                Some((timed, Record { call, kernel, .. })) => {
                    self.times.insert((call, kernel), timed);
                }
                None => self.passed_over += 1,
            }
        }
        Ok(())
    }

    /// Adds times to the store and to the file.
    ///
    /// # Errors
    /// The file cannot be written; the times are kept in memory.
    pub fn add(&mut self, records: &[Record]) -> io::Result<()> {
        for record in records {
            if let Some(timed) = record.timed() {
                self.times.insert((record.call.clone(), record.kernel.clone()), timed);
            }
        }
        let Some(path) = self.path.clone() else { return Ok(()) };
        let lines: String = records.iter().map(Record::line).collect();
        let length = append(&path, &lines)?;
        if length > COMPACT_BYTES {
            self.refresh();
            self.compact(&path)?;
        }
        Ok(())
    }

    /// Rewrites the file with the current records only.
    fn compact(&self, path: &Path) -> io::Result<()> {
        let file = open_locked(path)?;
        let lines: String = self
            .times
            .iter()
            .map(|((call, kernel), timed)| Record::new(call, kernel, timed).line())
            .collect();
        let written = cache::write(path, lines.as_bytes());
        drop(file);
        written
    }
}

#[cfg(unix)]
fn identity(meta: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}

/// Without inodes, a replaced file is detected by its length.
#[cfg(not(unix))]
fn identity(_meta: &fs::Metadata) -> u64 {
    1
}

/// Opens a file for appending and locks it. The file is the one with this name once the lock is
/// held.
fn open_locked(path: &Path) -> io::Result<File> {
    loop {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let file = cache::open_regular(path, &mut options)?;
        file.lock()?;
        let named = fs::metadata(path);
        if named
            .is_ok_and(|named| file.metadata().is_ok_and(|own| identity(&own) == identity(&named)))
        {
            return Ok(file);
        }
        // Another process has replaced the file meanwhile.
    }
}

/// Appends lines by one write; returns the file's length.
fn append(path: &Path, lines: &str) -> io::Result<u64> {
    if let Some(folder) = path.parent() {
        cache::make_folder(folder)?;
    }
    let mut file = open_locked(path)?;
    let length = file.metadata()?.len();
    // A line that an interrupted process left incomplete is ended here.
    let torn = length > 0 && {
        let mut last = [0];
        file.seek(SeekFrom::Start(length - 1))?;
        file.read_exact(&mut last)?;
        last != *b"\n"
    };
    let lines = if torn { format!("\n{lines}") } else { lines.to_owned() };
    file.write_all(lines.as_bytes())?;
    Ok(length + lines.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(count: usize) -> Vec<Record> {
        (0..count)
            .map(|at| Record::new("Add f32[64]", &format!("k{at}"), &Timed::Ns(at as f64 + 1.0)))
            .collect()
    }

    fn path() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/times.jsonl");
        (folder, path)
    }

    #[test]
    fn times_are_there_for_the_next_and_the_last_one_holds() {
        let (_folder, path) = path();
        let mut store = Store::new(Some(path.clone()));
        store.add(&records(3)).unwrap();
        let failed = Record::new("Add f32[64]", "k1", &Timed::Failed("no".to_owned()));
        store.add(&[failed]).unwrap();
        let next = Store::new(Some(path));
        assert_eq!(next.get("Add f32[64]", "k2"), Some(&Timed::Ns(3.0)));
        assert_eq!(next.get("Add f32[64]", "k1"), Some(&Timed::Failed("no".to_owned())));
        assert_eq!((next.get("Add f32[64]", "k9"), next.passed_over), (None, 0));
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_or_a_link_in_the_place_of_the_file_is_neither_waited_for_nor_written_to() {
        let (folder, path) = path();
        let other = folder.path().join("other");
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&other, "kept").unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let mut store = Store::new(Some(path.clone()));
        assert!(store.add(&records(1)).unwrap_err().to_string().contains("a regular file"));
        assert_eq!(store.get("Add f32[64]", "k0"), Some(&Timed::Ns(1.0)), "kept in memory");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(Store::new(Some(path)).add(&records(1)).is_err());
        assert_eq!(fs::read(&other).unwrap(), b"kept");
    }

    #[test]
    fn a_file_that_is_cut_short_anywhere_loses_what_was_cut_and_can_be_added_to() {
        let (_folder, path) = path();
        Store::new(Some(path.clone())).add(&records(4)).unwrap();
        let whole = fs::read(&path).unwrap();
        let line = whole.len() / 4;
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let mut store = Store::new(Some(path.clone()));
            assert_eq!(store.times.len(), length / line, "{length} bytes");
            store.add(&[Record::new("Mul", "k", &Timed::Ns(5.0))]).unwrap();
            let next = Store::new(Some(path.clone()));
            assert_eq!(next.get("Mul", "k"), Some(&Timed::Ns(5.0)), "{length} bytes");
            // If only the line end is missing, it is added.
            let torn = length % line != 0 && !(length + 1).is_multiple_of(line);
            assert_eq!(next.times.len(), (length + 1) / line + 1);
            assert_eq!(next.passed_over, u64::from(torn), "{length} bytes");
        }
    }

    #[test]
    fn a_bit_that_flips_costs_a_line_at_most_two() {
        let (_folder, path) = path();
        Store::new(Some(path.clone())).add(&records(3)).unwrap();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 4;
            fs::write(&path, changed).unwrap();
            let store = Store::new(Some(path.clone()));
            assert!((1..=2).contains(&store.times.len()), "byte {at}: {}", store.times.len());
            for ((_, kernel), timed) in &store.times {
                let number: f64 = kernel[1..].parse().unwrap();
                assert_eq!(timed, &Timed::Ns(number + 1.0), "what is read is right");
            }
        }
    }

    #[test]
    fn several_add_at_once_and_nothing_is_lost() {
        let (_folder, path) = path();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = path.clone();
                scope.spawn(move || {
                    let mut store = Store::new(Some(path));
                    for at in 0..50 {
                        let kernel = format!("{writer}-{at}");
                        store.add(&[Record::new("Add", &kernel, &Timed::Ns(1.0))]).unwrap();
                    }
                });
            }
        });
        let store = Store::new(Some(path.clone()));
        assert_eq!((store.times.len(), store.passed_over), (200, 0));
        store.compact(&path).unwrap();
        assert_eq!(Store::new(Some(path)).times.len(), 200);
    }

    #[test]
    fn what_others_add_is_read_also_after_the_file_was_written_anew() {
        let (_folder, path) = path();
        let (mut one, mut other) = (Store::new(Some(path.clone())), Store::new(Some(path.clone())));
        one.add(&records(2)).unwrap();
        other.refresh();
        assert_eq!(other.times.len(), 2);
        one.compact(&path).unwrap();
        other.add(&[Record::new("Mul", "k", &Timed::Ns(5.0))]).unwrap();
        one.refresh();
        assert_eq!(one.times.len(), 3);
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_nothing_but_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "no folder").unwrap();
        let mut store = Store::new(Some(file.join("times.jsonl")));
        assert!(store.add(&records(1)).is_err());
        assert_eq!(store.get("Add f32[64]", "k0"), Some(&Timed::Ns(1.0)));
    }
}
