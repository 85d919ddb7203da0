//! A value that is read from files, and read again when they change.

use crate::error::ClusterError;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};
use tenon_framework::sync::{Mutex, rank};

/// How often a use of the value looks at the files, at most.
const LOOK: Duration = Duration::from_secs(1);

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    changed: Option<SystemTime>,
    bytes: u64,
}

impl Stamp {
    fn of(file: &Path) -> Option<Stamp> {
        let found = fs::metadata(file).ok()?;
        Some(Stamp { changed: found.modified().ok(), bytes: found.len() })
    }
}

type Read<T> = Box<dyn Fn() -> Result<T, ClusterError> + Send + Sync>;

/// A value that is read from files. If they change to something that cannot be read, the former value stays in use, and the
/// log says so.
pub(crate) struct Watched<T> {
    files: Vec<PathBuf>,
    read: Read<T>,
    state: Mutex<State<T>>,
}

struct State<T> {
    value: Arc<T>,
    stamps: Vec<Option<Stamp>>,
    looked: Instant,
}

impl<T> Watched<T> {
    /// Reads the value for the first time.
    pub fn new(
        files: Vec<PathBuf>,
        read: impl Fn() -> Result<T, ClusterError> + Send + Sync + 'static,
    ) -> Result<Watched<T>, ClusterError> {
        let stamps = stamps(&files);
        let value = Arc::new(read()?);
        let state = State { value, stamps, looked: Instant::now() };
        Ok(Watched { files, read: Box::new(read), state: Mutex::ranked(rank::LEAF, state) })
    }

    /// The value of the files as they were at most a second ago.
    pub fn current(&self) -> Arc<T> {
        let mut state = self.state.lock();
        if state.looked.elapsed() >= LOOK {
            self.look(&mut state);
        }
        Arc::clone(&state.value)
    }

    /// Looks at the files now.
    pub fn reload(&self) {
        self.look(&mut self.state.lock());
    }

    fn look(&self, state: &mut State<T>) {
        state.looked = Instant::now();
        let found = stamps(&self.files);
        if found == state.stamps {
            return;
        }
        let names = || {
            let names: Vec<String> = self.files.iter().map(|it| it.display().to_string()).collect();
            names.join(", ")
        };
        state.stamps = found;
        match (self.read)() {
            Ok(value) => {
                state.value = Arc::new(value);
                tracing::info!("read again, since it changed: {}", names());
            }
            Err(error) => tracing::error!("{}: the former content stays in use: {error}", names()),
        }
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    files.iter().map(|file| Stamp::of(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_read_again_and_a_wrong_one_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("number");
        fs::write(&file, "1").unwrap();
        let path = file.clone();
        let read = move || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            text.parse::<u32>().map_err(|error| ClusterError::Spec { found: error.to_string() })
        };
        let number = Watched::new(vec![file.clone()], read).unwrap();
        assert_eq!(*number.current(), 1);
        fs::write(&file, "23").unwrap();
        number.reload();
        assert_eq!(*number.current(), 23);
        fs::write(&file, "wrong").unwrap();
        number.reload();
        assert_eq!(*number.current(), 23, "what cannot be read has no effect");
        fs::remove_file(&file).unwrap();
        number.reload();
        assert_eq!(*number.current(), 23);
    }
}
