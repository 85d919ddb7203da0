//! Which checkpoints a saver has written and keeps.

use super::{
    SaverOptions,
    files::{self, beside, is_complete, number_of_seconds},
    state::CheckpointState,
    within,
};
use crate::TrainError;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tenon_framework::sync::Mutex;

/// A checkpoint that was written.
#[derive(Debug, Clone, PartialEq)]
struct Written {
    prefix: String,
    /// Seconds since 1970.
    at: f64,
}

/// The checkpoints that the saver keeps, the newest last.
#[derive(Debug, Clone)]
struct Kept {
    written: Vec<Written>,
    /// When the last checkpoint was written that is kept for good.
    preserved_at: f64,
}

/// The list of checkpoints with what is written beside them. Clones have the same list.
#[derive(Clone)]
pub(super) struct Ledger {
    options: SaverOptions,
    /// The message that is written beside each checkpoint.
    meta: Option<Arc<[u8]>>,
    kept: Arc<Mutex<Kept>>,
}

impl Ledger {
    /// A list without checkpoints.
    pub fn new(options: SaverOptions) -> Ledger {
        let kept = Kept { written: Vec::new(), preserved_at: number_of_seconds() };
        Ledger { options, meta: None, kept: Arc::new(Mutex::new(kept)) }
    }

    pub fn options(&self) -> &SaverOptions {
        &self.options
    }

    pub fn set_meta(&mut self, meta: Vec<u8>) {
        self.meta = Some(meta.into());
    }

    /// Adds a checkpoint whose tensors are complete: writes the graph beside it and the state file, and deletes the
    /// checkpoints that are too many.
    pub fn add(&self, prefix: &str) -> Result<(), TrainError> {
        if let Some(meta) = &self.meta {
            files::write(&beside(prefix, ".meta"), meta, "the graph of a checkpoint")?;
        }
        self.note(prefix)
    }

    /// The checkpoints that the saver keeps, the newest last.
    pub fn checkpoints(&self) -> Vec<PathBuf> {
        self.kept.lock().written.iter().map(|written| PathBuf::from(&written.prefix)).collect()
    }

    /// Takes over the complete checkpoints that the state file of a folder lists.
    pub fn recover(&self, folder: &Path) -> Result<(), TrainError> {
        let Some(state) = CheckpointState::read(folder, &self.options.state_file)? else {
            return Ok(());
        };
        let mut kept = self.kept.lock();
        kept.written = state
            .all_model_checkpoint_paths
            .iter()
            .enumerate()
            .map(|(at, path)| (state.all_model_checkpoint_timestamps.get(at), within(folder, path)))
            .filter(|(_, path)| is_complete(path))
            .filter_map(|(at, path)| Some((at.copied().unwrap_or(0.0), path.to_str()?.to_owned())))
            .map(|(at, prefix)| Written { prefix, at })
            .collect();
        if let Some(at) = state.last_preserved_timestamp {
            kept.preserved_at = at;
        }
        Ok(())
    }

    /// Notes a checkpoint that was written, and deletes those that are too many.
    fn note(&self, prefix: &str) -> Result<(), TrainError> {
        let mut kept = self.kept.lock();
        let mut next = kept.clone();
        next.written.retain(|written| written.prefix != prefix);
        next.written.push(Written { prefix: prefix.to_owned(), at: number_of_seconds() });
        let most = self.options.max_to_keep;
        let surplus = if most == 0 { 0 } else { next.written.len().saturating_sub(most) };
        let former: Vec<Written> = next.written.drain(..surplus).collect();
        let (preserved_at, deleted) = self.to_delete(next.preserved_at, former);
        next.preserved_at = preserved_at;
        let folder = files::folder_of(prefix);
        let state = next.state(prefix, &folder);
        state.write(&folder, &self.options.state_file)?;
        *kept = next;
        for written in deleted {
            files::delete(&written.prefix);
        }
        Ok(())
    }

    /// Which of the former checkpoints are deleted, and when the last one was written that is kept for good.
    fn to_delete(&self, mut preserved_at: f64, former: Vec<Written>) -> (f64, Vec<Written>) {
        let Some(hours) = self.options.keep_checkpoint_every_n_hours else {
            return (preserved_at, former);
        };
        let mut deleted = Vec::new();
        for written in former {
            if written.at - preserved_at >= hours * 3600.0 {
                preserved_at = written.at;
            } else {
                deleted.push(written);
            }
        }
        (preserved_at, deleted)
    }
}

impl Kept {
    /// The message of the state file, with paths relative to its folder where they are within it: the folder may be moved.
    fn state(&self, newest: &str, folder: &Path) -> CheckpointState {
        let relative = |path: &str| {
            let within = Path::new(path).strip_prefix(folder).ok().and_then(Path::to_str);
            within.unwrap_or(path).to_owned()
        };
        CheckpointState {
            model_checkpoint_path: relative(newest),
            all_model_checkpoint_paths: self
                .written
                .iter()
                .map(|written| relative(&written.prefix))
                .collect(),
            all_model_checkpoint_timestamps: self
                .written
                .iter()
                .map(|written| written.at)
                .collect(),
            last_preserved_timestamp: Some(self.preserved_at),
        }
    }
}
