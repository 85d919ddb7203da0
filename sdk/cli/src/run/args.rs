//! The command line of `tenon run`.

use crate::args::{feed, threads};
use clap::Args;
use std::{num::NonZeroUsize, path::PathBuf};

pub const ABOUT: &str = "\
Run a graph, or a signature of a SavedModel.

GRAPH.pb is a binary GraphDef; feeds and fetches are names of its tensors. DIR is the folder of a model that TensorFlow or
Keras saved: its variables are restored and its tables filled before the steps, and feeds and fetches are the inputs and the
results of its signature. Inputs that have a default may be left out. `tenon saved-model show DIR` prints the signatures.";

pub const EXAMPLE: &str = "\
Example:
  tenon run model.pb --feed x=x.npy --fetch layer/y --out results
  tenon run classifier --signature serving_default --feed x=rows.npy --fetch product";

#[derive(Debug, Args)]
pub struct RunArgs {
    /// The graph: a binary GraphDef, or the folder of a SavedModel
    #[arg(value_name = "GRAPH.pb|DIR")]
    pub graph: PathBuf,
    /// The signature of the SavedModel; serving_default without this option
    #[arg(long, value_name = "NAME")]
    pub signature: Option<String>,
    /// The tags of the SavedModel's graph; serve without this option
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub tags: Vec<String>,
    /// Feed a tensor from a file; of a SavedModel, an input of the signature
    #[arg(long = "feed", value_name = "NAME=FILE.npy", num_args = 1.., value_parser = feed)]
    pub feeds: Vec<(String, PathBuf)>,
    /// Fetch a tensor; NAME alone is NAME:0. Of a SavedModel, a result of the signature, and all of them without this option
    #[arg(long = "fetch", value_name = "NAME", num_args = 1..)]
    pub fetches: Vec<String>,
    /// Run a node without fetching anything of it
    #[arg(long = "target", value_name = "NAME", num_args = 1..)]
    pub targets: Vec<String>,
    /// Run a node once, before the steps; several run in this order, each in a step of its own
    #[arg(long = "init", value_name = "NAME", num_args = 1..)]
    pub init: Vec<String>,
    /// Write each fetched tensor to a .npy file in this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Device for nodes that name none, such as ACCEL:0
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Measure the step on each type of device first, and place nodes where it ends soonest
    #[arg(long, conflicts_with = "device")]
    pub place_by_cost: bool,
    /// Threads that compute, the caller's included; one per core without this option
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<NonZeroUsize>,
    /// Run so many steps
    #[arg(long, value_name = "N", default_value = "1")]
    pub repeat: NonZeroUsize,
    /// Write a trace of the last step, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}
