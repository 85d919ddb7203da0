//! The audit log: a line of JSON for each session, step and refusal: who, what, when, and the outcome. No values of tensors
//! are in it.
//!
//! A file that has reached its size is renamed to `FILE.1`, an earlier `FILE.1` to `FILE.2`, and so on; the oldest is removed.

use crate::error::ClusterError;
use serde_json::{Map, Value, json};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};
use tenon_framework::{
    Code,
    sync::{Mutex, rank},
    text::cut,
};

/// The audit log of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditOptions {
    /// The file.
    pub file: PathBuf,
    /// The bytes from which on a new file is begun.
    pub bytes: u64,
    /// How many former files are kept.
    pub kept: u32,
}

impl AuditOptions {
    /// A log in this file: 64 MiB, and four former ones.
    pub fn in_file(file: PathBuf) -> AuditOptions {
        AuditOptions { file, bytes: 64 << 20, kept: 4 }
    }
}

/// An event.
#[derive(Debug)]
pub(crate) struct Event<'e> {
    /// The name of the token, the certificate, or the address.
    pub who: &'e str,
    /// The address.
    pub from: &'e str,
    /// The method, or what else happened.
    pub what: &'e str,
    pub code: Code,
    /// Why, if it was refused.
    pub why: &'e str,
    /// Further facts, such as the session.
    pub more: &'e [(&'static str, Value)],
}

/// A log that is written to.
pub(crate) struct Audit {
    options: AuditOptions,
    state: Mutex<Open>,
}

struct Open {
    file: File,
    bytes: u64,
    /// Whether the last line could not be written.
    failed: bool,
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut how = OpenOptions::new();
    how.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut how, 0o600);
    let file = how.open(path)?;
    let bytes = file.metadata()?.len();
    Ok((file, bytes))
}

impl Audit {
    /// Opens the file, and appends to it.
    pub fn open(options: &AuditOptions) -> Result<Audit, ClusterError> {
        let opened = open(&options.file);
        let (file, bytes) =
            opened.map_err(|source| ClusterError::Audit { file: options.file.clone(), source })?;
        let state = Mutex::ranked(rank::LEAF, Open { file, bytes, failed: false });
        Ok(Audit { options: options.clone(), state })
    }

    /// Writes an event. If it cannot be written, the log of the process says so once, until a line is written again.
    pub fn write(&self, event: &Event<'_>) {
        let line = line(event, SystemTime::now());
        let mut open = self.state.lock();
        let written = self.append(&mut open, line.as_bytes());
        if let (Err(error), false) = (&written, open.failed) {
            let file = self.options.file.display();
            tracing::error!("audit log {file}: an event cannot be written: {error}");
        }
        open.failed = written.is_err();
    }

    fn append(&self, open: &mut Open, line: &[u8]) -> io::Result<()> {
        if open.bytes > 0 && open.bytes.saturating_add(line.len() as u64) > self.options.bytes {
            self.rotate(open)?;
        }
        open.file.write_all(line)?;
        open.bytes += line.len() as u64;
        Ok(())
    }

    fn rotate(&self, state: &mut Open) -> io::Result<()> {
        let file = &self.options.file;
        for number in (1..self.options.kept).rev() {
            let from = former(file, number);
            if from.exists() {
                fs::rename(from, former(file, number + 1))?;
            }
        }
        match self.options.kept {
            0 => fs::remove_file(file)?,
            _ => fs::rename(file, former(file, 1))?,
        }
        (state.file, state.bytes) = open(file)?;
        Ok(())
    }
}

/// The name of a former file.
fn former(file: &Path, number: u32) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

fn line(event: &Event<'_>, now: SystemTime) -> String {
    let mut all = Map::new();
    let mut put = |name: &str, value: Value| all.insert(name.to_owned(), value);
    put("time", json!(utc(now)));
    put("who", json!(cut(event.who).to_string()));
    put("from", json!(event.from));
    put("what", json!(cut(event.what).to_string()));
    put("outcome", json!(event.code.name()));
    if !event.why.is_empty() {
        put("why", json!(cut(event.why).to_string()));
    }
    for (name, value) in event.more {
        put(name, value.clone());
    }
    format!("{}\n", Value::Object(all))
}

/// A time as `2026-11-27T22:15:14.123Z`, by Howard Hinnant's `civil_from_days`
/// (<https://howardhinnant.github.io/date_algorithms.html>).
fn utc(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, milliseconds) = (since.as_secs(), since.subsec_millis());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_those_of_the_calendar() {
        let at = |seconds: u64| utc(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 7));
        // By `date -u -d @SECONDS`.
        assert_eq!(at(0), "1970-01-01T00:00:00.007Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(951_868_800), "2000-03-01T00:00:00.007Z");
        assert_eq!(at(1_795_817_714), "2026-11-27T22:15:14.007Z");
        assert_eq!(at(4_107_542_399), "2100-02-28T23:59:59.007Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.007Z");
    }

    fn event<'e>(who: &'e str, more: &'e [(&'static str, Value)]) -> Event<'e> {
        Event { who, from: "127.0.0.1:9", what: "RunStep", code: Code::OK, why: "", more }
    }

    #[test]
    fn a_full_file_becomes_a_former_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit");
        let options = AuditOptions { file: file.clone(), bytes: 400, kept: 2 };
        let audit = Audit::open(&options).unwrap();
        for number in 0..20 {
            audit.write(&event("ada", &[("number", json!(number))]));
        }
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        let (now, one, two) = (read(&file), read(&former(&file, 1)), read(&former(&file, 2)));
        assert!(!former(&file, 3).exists());
        let mut numbers = Vec::new();
        for line in [two, one, now].concat().lines() {
            assert!(line.len() < 400);
            let value: Value = serde_json::from_str(line).unwrap();
            numbers.push(value["number"].as_u64().unwrap());
        }
        let first = numbers[0];
        assert_eq!(numbers, (first..20).collect::<Vec<_>>(), "no event between is lost");
        assert!(first > 0 && numbers.len() > 4, "{numbers:?}");
    }

    #[test]
    fn a_name_cannot_make_a_line_of_its_own() {
        let text = line(&event("ada\n{\"who\":\"bob\"}", &[]), UNIX_EPOCH);
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
