//! The command line of `tenon saved-model`.

use crate::run::RunArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

pub const ABOUT: &str = "\
Show and run models that TensorFlow or Keras saved.

A SavedModel is a folder with saved_model.pb, the values of its variables and its assets, as tf.saved_model.save, Keras's
model.export and TensorFlow 1's builders write it. Its signatures are the functions that it offers: named inputs and
results. `run` restores the variables, fills the tables, and runs one of them, as `tenon run DIR` does.";

pub const EXAMPLE: &str = "\
Example:
  tenon saved-model show classifier
  tenon saved-model run classifier --signature serving_default --feed x=rows.npy --fetch product";

#[derive(Debug, Args)]
pub struct SavedModelArgs {
    #[command(subcommand)]
    pub command: SavedModelCommand,
}

/// What to do with a model.
#[derive(Debug, Subcommand)]
pub enum SavedModelCommand {
    /// Show the signatures, the variables, the assets, and the ops that are missing here
    #[command(
        after_long_help = "Example:\n  tenon saved-model show classifier --tags serve --json"
    )]
    Show(ShowArgs),
    /// Run a signature
    #[command(
        after_long_help = "Example:\n  tenon saved-model run classifier --feed x=rows.npy --out results"
    )]
    Run(Box<RunArgs>),
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The folder of the model
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Only the graph with exactly these tags
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub tags: Vec<String>,
}
