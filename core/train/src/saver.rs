//! Checkpoints of a run: which are written, which are kept, and which one is the latest.
//!
//! What it is: nodes of a graph that save and restore variables, under the names that TensorFlow's `Saver` gives them; and
//! the files beside the tensors, which the client writes: the *state file* `checkpoint`, which lists the checkpoints of a
//! folder, and the graph of each checkpoint (`.meta`).
//!
//! What it is not: the files of the tensors, which the ops of `plugins/checkpoint` read and write where the session is.
//!
//! # Invariants
//! - The state file is replaced as a whole, after the checkpoint that it names is complete. Old checkpoints are deleted
//!   after that, and the newest one never is.
//! - A checkpoint is deleted from its index on, so that what remains of it is never taken for a checkpoint.
//! - At most one save of a saver is under way in the background.

mod background;
mod files;
mod ledger;
mod meta;
mod nodes;
mod state;

pub use meta::{add_collection, meta_graph};
pub use state::CheckpointState;

use crate::{TrainError, Variable};
use background::UnderWay;
use files::is_complete;
use ledger::Ledger;
use nodes::CopyNames;
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};
use tenon_framework::Tensor;
use tenon_graph::GraphBuilder;
use tenon_proto::{MetaGraphDef, SaverDef, encode};
use tenon_runtime::AnySession;

/// The name of the state file.
pub const STATE_FILE: &str = "checkpoint";

/// `SaverDef.version` of bundles.
const V2: i32 = 2;

/// What a caller may choose for a [`Saver`].
#[derive(Debug, Clone)]
pub struct SaverOptions {
    /// How many of the newest checkpoints are kept; 0 keeps all. 5 by default.
    pub max_to_keep: usize,
    /// A checkpoint that is to be deleted is kept for good if it was written this long after the last one that was.
    /// Never by default.
    pub keep_checkpoint_every_n_hours: Option<f64>,
    /// Whether the variables of each device go to a file of their own.
    pub sharded: bool,
    /// The name of the state file.
    pub state_file: String,
    /// The prefix of the names of nodes.
    pub scope: String,
    /// Whether the graph gets the nodes of [`Saver::save_in_background`]. `false` by default: the nodes are then those of
    /// TensorFlow's saver alone.
    pub background: bool,
}

impl Default for SaverOptions {
    fn default() -> SaverOptions {
        SaverOptions {
            max_to_keep: 5,
            keep_checkpoint_every_n_hours: None,
            sharded: false,
            state_file: STATE_FILE.to_owned(),
            scope: "save".to_owned(),
            background: false,
        }
    }
}

/// Saves variables and restores them. Its methods may be called from several threads.
///
/// ```no_run
/// # use tenon_training::{Saver, SaverOptions, Variables};
/// # use tenon_graph::GraphBuilder;
/// # use tenon_runtime::AnySession;
/// # fn example(b: &mut GraphBuilder<'_>, variables: &Variables, session: &dyn AnySession)
/// #     -> Result<(), tenon_training::TrainError> {
/// let saver = Saver::build(b, variables.all(), SaverOptions::default())?;
/// // After the session has the graph:
/// let path = saver.save(session, "run/model", Some(10))?; // run/model-10
/// saver.restore(session, &path)?;
/// # Ok(())
/// # }
/// ```
pub struct Saver {
    def: SaverDef,
    ledger: Ledger,
    /// The nodes of saves in the background, if the graph has them.
    copies: Option<CopyNames>,
    under_way: UnderWay,
}

impl fmt::Debug for Saver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saver")
            .field("def", &self.def)
            .field("options", self.ledger.options())
            .finish_non_exhaustive()
    }
}

impl Saver {
    /// Adds the nodes. Each variable has its own name in checkpoints, or the name of the whole that it is a part of.
    ///
    /// # Errors
    /// There are no variables, two have the same name, or the graph refuses a node.
    pub fn build(
        b: &mut GraphBuilder<'_>,
        variables: &[Variable],
        options: SaverOptions,
    ) -> Result<Saver, TrainError> {
        let named: Vec<(String, Variable)> = variables
            .iter()
            .map(|variable| {
                let whole = variable.slice.as_ref().map(|slice| slice.full_name.clone());
                (whole.unwrap_or_else(|| variable.name.clone()), variable.clone())
            })
            .collect();
        Saver::build_named(b, &named, options)
    }

    /// As [`Saver::build`], for variables whose names in checkpoints are others: pairs of the name in the checkpoint and
    /// the variable.
    ///
    /// # Errors
    /// As [`Saver::build`].
    pub fn build_named(
        b: &mut GraphBuilder<'_>,
        named: &[(String, Variable)],
        options: SaverOptions,
    ) -> Result<Saver, TrainError> {
        let names = nodes::build(b, named, &options.scope, options.sharded)?;
        let copies = match options.background {
            true => Some(nodes::build_copies(b, named, &options.scope, options.sharded)?),
            false => None,
        };
        let def = SaverDef {
            filename_tensor_name: names.filename,
            save_tensor_name: names.save,
            restore_op_name: names.restore,
            max_to_keep: i32::try_from(options.max_to_keep).unwrap_or(i32::MAX),
            sharded: options.sharded,
            keep_checkpoint_every_n_hours: options
                .keep_checkpoint_every_n_hours
                .map_or(10_000.0, |hours| hours as f32),
            version: V2,
        };
        Ok(Saver { copies, ..Saver::over(def, options) })
    }

    /// A saver over nodes that a graph has already, such as one that TensorFlow wrote.
    ///
    /// # Errors
    /// The message names no tensor for the file, none for saving or no op for restoring, or it is of files of V1.
    pub fn from_def(def: SaverDef) -> Result<Saver, TrainError> {
        let names = [&def.filename_tensor_name, &def.save_tensor_name, &def.restore_op_name];
        if names.iter().any(|name| name.is_empty()) || def.version != V2 {
            let expected = "the names of its tensors and version 2 (bundles)";
            let found = format!("version {} and the names {names:?}", def.version);
            return Err(TrainError::argument("a SaverDef", expected, found));
        }
        let hours = f64::from(def.keep_checkpoint_every_n_hours);
        let options = SaverOptions {
            max_to_keep: usize::try_from(def.max_to_keep).unwrap_or(0),
            keep_checkpoint_every_n_hours: (hours > 0.0).then_some(hours),
            sharded: def.sharded,
            ..SaverOptions::default()
        };
        Ok(Saver::over(def, options))
    }

    fn over(def: SaverDef, options: SaverOptions) -> Saver {
        let ledger = Ledger::new(options);
        Saver { def, ledger, copies: None, under_way: UnderWay::default() }
    }

    /// Writes this message beside each checkpoint, as `PREFIX.meta`.
    ///
    /// # Errors
    /// The message is too large.
    pub fn with_meta_graph(mut self, meta: &MetaGraphDef) -> Result<Saver, TrainError> {
        self.ledger.set_meta(encode(meta)?);
        Ok(self)
    }

    /// The message that names the nodes.
    pub fn def(&self) -> &SaverDef {
        &self.def
    }

    /// Writes a checkpoint, `PREFIX` or `PREFIX-STEP`, and notes it in the state file of its folder. Returns the prefix of
    /// the checkpoint. Older checkpoints than those to keep are deleted; one that cannot be deleted is a warning. A save
    /// that is under way in the background ends first.
    ///
    /// # Errors
    /// The session cannot save, or the client cannot write the state file or the graph. In the second case the checkpoint
    /// is complete, and the state file is as it was. If the save in the background failed, this is its error, and nothing
    /// else was done.
    pub fn save(
        &self,
        session: &dyn AnySession,
        prefix: impl AsRef<Path>,
        global_step: Option<i64>,
    ) -> Result<PathBuf, TrainError> {
        let prefix = prefix_of(prefix.as_ref(), global_step)?;
        self.wait()?;
        write(session, &self.def.filename_tensor_name, &self.def.save_tensor_name, &prefix)?;
        self.ledger.add(&prefix)?;
        Ok(PathBuf::from(prefix))
    }

    /// As [`Saver::save`], on a thread of its own: when this returns, the values of the variables are held, and steps may
    /// change the variables. An update copies a variable that is held before it changes it, so that until the checkpoint is
    /// written the session may take twice the memory of the variables. The state file names the checkpoint once it is
    /// complete.
    ///
    /// One save is under way at a time: another one, of either kind, waits for it. [`Saver::wait`] waits for the last one. A
    /// saver that is dropped waits as well, and logs the error.
    ///
    /// # Errors
    /// The error of the former save in the background, if that failed: then nothing else was done. The session cannot hold
    /// the values; `INVALID_ARGUMENT` if the graph has no nodes for this ([`SaverOptions::background`]).
    pub fn save_in_background(
        &self,
        session: Arc<dyn AnySession>,
        prefix: impl AsRef<Path>,
        global_step: Option<i64>,
    ) -> Result<PathBuf, TrainError> {
        let prefix = prefix_of(prefix.as_ref(), global_step)?;
        let Some(names) = &self.copies else {
            let expected = "a saver that was built with SaverOptions::background";
            return Err(TrainError::argument("a save in the background", expected, "one without"));
        };
        self.under_way.begin(session, names, &self.ledger, &prefix)?;
        Ok(PathBuf::from(prefix))
    }

    /// Waits for the save that is under way in the background.
    ///
    /// # Errors
    /// The save failed. Each error is returned once, by this or by the next save.
    pub fn wait(&self) -> Result<(), TrainError> {
        self.under_way.wait()
    }

    /// Restores all variables from a checkpoint.
    ///
    /// # Errors
    /// There is no such checkpoint, or it lacks a variable (`NOT_FOUND`, with the names of all that are missing), has
    /// another type or shape (`INVALID_ARGUMENT`), or is damaged (`DATA_LOSS`).
    pub fn restore(
        &self,
        session: &dyn AnySession,
        checkpoint: impl AsRef<Path>,
    ) -> Result<(), TrainError> {
        let feed = Tensor::from_strings(&[], &[text_of(checkpoint.as_ref())?])?;
        let feeds = [(self.def.filename_tensor_name.as_str(), feed)];
        session.run_step(&feeds, &[], &[&self.def.restore_op_name], None)?;
        Ok(())
    }

    /// The newest complete checkpoint of a folder; see [`latest_checkpoint`].
    ///
    /// # Errors
    /// As [`latest_checkpoint`].
    pub fn latest(&self, folder: impl AsRef<Path>) -> Result<Option<PathBuf>, TrainError> {
        latest(folder.as_ref(), &self.ledger.options().state_file)
    }

    /// The checkpoints that the saver keeps, the newest last.
    pub fn checkpoints(&self) -> Vec<PathBuf> {
        self.ledger.checkpoints()
    }

    /// Takes over the checkpoints that the state file of a folder lists, after a restart: they are deleted in their turn.
    /// Those that are not complete are left out.
    ///
    /// # Errors
    /// As [`latest_checkpoint`].
    pub fn recover(&self, folder: impl AsRef<Path>) -> Result<(), TrainError> {
        self.ledger.recover(folder.as_ref())
    }
}

/// Runs the nodes that save to this prefix.
fn write(
    session: &dyn AnySession,
    filename: &str,
    save: &str,
    prefix: &str,
) -> Result<(), TrainError> {
    let feed = Tensor::from_strings(&[], &[prefix])?;
    session.run_step(&[(filename, feed)], &[save], &[], None)?;
    Ok(())
}

/// The prefix of a checkpoint of a step.
fn prefix_of(prefix: &Path, global_step: Option<i64>) -> Result<String, TrainError> {
    let prefix = text_of(prefix)?;
    Ok(global_step.map_or_else(|| prefix.clone(), |step| format!("{prefix}-{step}")))
}

/// A path that the state file of a folder names.
fn within(folder: &Path, path: &str) -> PathBuf {
    folder.join(path)
}

/// The path as text: names in graphs and state files are text.
fn text_of(path: &Path) -> Result<String, TrainError> {
    let text = path.to_str().filter(|text| !text.is_empty() && !text.ends_with('/'));
    text.map(str::to_owned).ok_or_else(|| {
        let expected = "the prefix of a checkpoint's files in UTF-8, such as run/model";
        TrainError::argument("a checkpoint", expected, path.display().to_string())
    })
}

/// The newest complete checkpoint of a folder, by its state file; `None` if the folder has no state file, or no complete
/// checkpoint. A state file that names a checkpoint which is not there leads to the newest one in its list that is.
///
/// # Errors
/// The state file cannot be read, or is not the text of a `CheckpointState`.
pub fn latest_checkpoint(folder: impl AsRef<Path>) -> Result<Option<PathBuf>, TrainError> {
    latest(folder.as_ref(), STATE_FILE)
}

fn latest(folder: &Path, state_file: &str) -> Result<Option<PathBuf>, TrainError> {
    let Some(state) = CheckpointState::read(folder, state_file)? else { return Ok(None) };
    let named = Some(&state.model_checkpoint_path).filter(|path| !path.is_empty());
    let listed = state.all_model_checkpoint_paths.iter().rev();
    let mut candidates = named.into_iter().chain(listed).map(|path| within(folder, path));
    let found = candidates.find(|path| is_complete(path));
    match (&found, named) {
        (Some(found), Some(named)) if *found != within(folder, named) => tracing::warn!(
            "checkpoint '{named}', which {} names, is not complete: '{}' is the newest that is",
            folder.join(state_file).display(),
            found.display()
        ),
        (None, Some(named)) => tracing::warn!(
            "no checkpoint that {} lists is complete, '{named}' included",
            folder.join(state_file).display()
        ),
        _ => {}
    }
    Ok(found)
}
