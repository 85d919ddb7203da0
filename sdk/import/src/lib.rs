//! Models in the forms of other programs, loaded into sessions.
//!
//! What it is: TensorFlow's SavedModel, the folder that `tf.saved_model.save`, Keras's `model.export` and TensorFlow 1's
//! builders write. [`SavedModel`] reads and describes it; [`SavedModel::load`] gives a [`LoadedModel`], a session whose
//! variables are restored and whose tables are filled; a [`Signature`] runs one of its functions by the names of its
//! arguments.
//!
//! What it is not: a mode of the runtime. A model is a graph with functions that restores itself by `RestoreV2` and starts by
//! one of its nodes; everything here is done by steps of an ordinary session. The objects of TensorFlow 2
//! (`SavedObjectGraph`) are not read: signatures are what is called.
//!
//! # Invariants
//! - A folder from a stranger is safe to open: a file is no larger than a message may be, a damaged message is an error, and the
//!   name of an asset cannot lead out of the folder. Links of the file system in the folder are followed. What the ops of a
//!   graph may read and write is decided by the plugins' knobs (`files`).
//! - [`SavedModel::open`] and the descriptions run no step and need no plugin.
//! - A [`LoadedModel`] exists only when its variables are restored and its initial op has run.
//!
//! ```no_run
//! use tenon_import::{LoadOptions, SavedModel};
//! use tenon_runtime::{Runtime, RuntimeOptions, framework::Tensor};
//!
//! let (runtime, _) = Runtime::new(RuntimeOptions::default())?;
//! let model = SavedModel::open("resnet50")?.load(&runtime, &["serve"], &LoadOptions::default())?;
//! let images = Tensor::from_slice(&[1, 224, 224, 3], &vec![0f32; 224 * 224 * 3])?;
//! let results = model.signature("serving_default")?.run(&[("image", images)])?;
//! println!("{:?}", results["scores"].shape());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod folder;
mod loaded;
mod ops;
mod saved_model;
mod signature;
mod start;
mod variables;

#[cfg(test)]
mod tests;

pub use error::ImportError;
pub use folder::Asset;
pub use loaded::{LoadOptions, LoadedModel, Signature};
pub use ops::OpUse;
pub use saved_model::{MetaGraph, SERVE, SavedModel};
pub use signature::{Argument, SignatureInfo};
pub use start::Stage;
pub use variables::Variable;
