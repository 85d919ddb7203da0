//! Restoring a model's variables and running its initial op, by steps of any session.

use crate::{ImportError, MetaGraph, folder, ops};
use std::{fmt, path::Path, time::Duration};
use tenon_bundle::index_file;
use tenon_framework::{Tensor, tensor::TensorError};
use tenon_proto::{CollectionDefKind, MetaGraphDef, TensorInfoEncoding};
use tenon_runtime::{AnySession, SessionError};

/// The signature, and its result, that name the initial op.
pub(crate) const INIT_SIGNATURE: &str = "__saved_model_init_op";
/// The signature that names the step of training.
pub(crate) const TRAIN_SIGNATURE: &str = "__saved_model_train_op";
/// The collections that name it in older models, the newer one first.
const INIT_COLLECTIONS: [&str; 2] = ["saved_model_main_op", "legacy_init_op"];

/// A stage of loading a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The graph is given to the session.
    Import,
    /// The variables are restored.
    Restore,
    /// The initial op runs: tables are filled from assets, local variables get their values.
    Initialize,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Import => "importing the model's graph",
            Stage::Restore => "restoring the model's variables",
            Stage::Initialize => "running the model's initial op",
        })
    }
}

/// The steps that start a model.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    /// Feeds of both steps.
    assets: Vec<(String, Tensor)>,
    /// The tensor that gets the prefix of the checkpoint, the prefix, and the node that restores.
    restore: Option<(String, Tensor, String)>,
    init: Option<String>,
}

impl Start {
    /// Finds out what a model needs, and whether its files are there.
    pub(crate) fn new(model: MetaGraph<'_>) -> Result<Start, ImportError> {
        let mut assets = Vec::new();
        for asset in model.assets()? {
            if !asset.file.is_file() {
                return Err(ImportError::NoAsset(asset.file));
            }
            assets.push((asset.tensor, path(&asset.file)?));
        }
        Ok(Start {
            assets,
            restore: restore(model.folder, model.def)?,
            init: init_op(model.folder, model.def)?,
        })
    }

    /// The nodes that the steps need.
    pub(crate) fn targets(&self) -> Vec<&str> {
        let restore = self.restore.iter().map(|(_, _, target)| target.as_str());
        restore.chain(self.init.as_deref()).collect()
    }

    /// Runs the steps.
    pub(crate) fn run(
        &self,
        session: &dyn AnySession,
        deadline: Option<Duration>,
        progress: &dyn Fn(Stage),
    ) -> Result<(), ImportError> {
        let assets: Vec<(&str, Tensor)> =
            self.assets.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let step = |stage, feeds: &[(&str, Tensor)], target: &str| {
            let failed = |source: SessionError| ImportError::Stage { stage, source };
            session.run_step(feeds, &[], &[target], deadline).map(drop).map_err(failed)
        };
        if let Some((filename, prefix, target)) = &self.restore {
            progress(Stage::Restore);
            let mut feeds = assets.clone();
            feeds.push((filename, prefix.clone()));
            step(Stage::Restore, &feeds, target)?;
        }
        if let Some(target) = &self.init {
            progress(Stage::Initialize);
            step(Stage::Initialize, &assets, target)?;
        }
        Ok(())
    }
}

/// A path as the value of a tensor.
fn path(path: &Path) -> Result<Tensor, TensorError> {
    Tensor::from_strings(&[], &[path.as_os_str().as_encoded_bytes()])
}

fn restore(
    model: &Path,
    def: &MetaGraphDef,
) -> Result<Option<(String, Tensor, String)>, ImportError> {
    let Some(saver) = def.saver_def.as_ref().filter(|saver| !saver.restore_op_name.is_empty())
    else {
        return Ok(None);
    };
    let prefix = folder::variables(model);
    let index = index_file(&prefix);
    if !index.is_file() {
        // A model without variables may come without the folder.
        return match def.graph_def.as_ref().map_or(0, ops::count_variables) {
            0 => Ok(None),
            variables => Err(ImportError::NoValues { index, variables }),
        };
    }
    if saver.filename_tensor_name.is_empty() {
        return Err(ImportError::Malformed {
            folder: model.to_owned(),
            what: "saver: expected the tensor that gets the file's name, found none".to_owned(),
        });
    }
    let target = ops::node_of(&saver.restore_op_name).to_owned();
    Ok(Some((saver.filename_tensor_name.clone(), path(&prefix)?, target)))
}

/// The node to run once the variables are restored.
fn init_op(model: &Path, def: &MetaGraphDef) -> Result<Option<String>, ImportError> {
    let malformed = |what: String| ImportError::Malformed { folder: model.to_owned(), what };
    if let Some(signature) = def.signature_def.get(INIT_SIGNATURE) {
        let named = signature.outputs.get(INIT_SIGNATURE).and_then(|info| info.encoding.as_ref());
        return match named {
            Some(TensorInfoEncoding::Name(name)) => Ok(Some(ops::node_of(name).to_owned())),
            _ => Err(malformed(format!(
                "signature {INIT_SIGNATURE}: expected a result of the same name that is a tensor, found none"
            ))),
        };
    }
    let found =
        INIT_COLLECTIONS.iter().find_map(|&name| Some((name, def.collection_def.get(name)?)));
    let Some((name, collection)) = found else { return Ok(None) };
    match &collection.kind {
        Some(CollectionDefKind::NodeList(list)) => match list.value.as_slice() {
            [node] => Ok(Some(ops::node_of(node).to_owned())),
            nodes => Err(malformed(format!(
                "collection {name}: expected the name of one node, found {}",
                nodes.len()
            ))),
        },
        _ => Err(malformed(format!("collection {name}: expected the name of a node"))),
    }
}
