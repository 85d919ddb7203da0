//! The command line of `tenon checkpoint`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

pub const ABOUT: &str = "\
List, show, convert and compare checkpoints.

A checkpoint is named by the prefix of a bundle of TensorFlow (model.ckpt for model.ckpt.index and its data files), by the
bundle's index, by a V1 file or a pattern of several ('model-?????-of-?????'), by a .safetensors file, by an .npz
archive or by an .npy file, which has one tensor. Checksums are verified whenever what they are of is read. No plugin is loaded.";

pub const EXAMPLE: &str = "\
Example:
  tenon checkpoint list samples.npz
  tenon checkpoint convert samples.npz model.ckpt
  tenon checkpoint list model.ckpt
  tenon checkpoint diff samples.npz model.ckpt";

#[derive(Debug, Args)]
pub struct CheckpointArgs {
    #[command(subcommand)]
    pub command: CheckpointCommand,
}

/// What to do with checkpoints.
#[derive(Debug, Subcommand)]
pub enum CheckpointCommand {
    /// List tensors with their types, shapes, sizes and checksums
    #[command(after_long_help = "Example:\n  tenon checkpoint list model.ckpt --json")]
    List(ListArgs),
    /// Print values of tensors
    #[command(
        after_long_help = "Example:\n  tenon checkpoint show model.ckpt dense/kernel --max 10"
    )]
    Show(ShowArgs),
    /// Write the tensors of a checkpoint in another form
    #[command(
        long_about = CONVERT,
        after_long_help = "Example:\n  tenon checkpoint convert model.ckpt model.safetensors --skip"
    )]
    Convert(ConvertArgs),
    /// Compare the tensors of two checkpoints
    #[command(long_about = DIFF, after_long_help = "Example:\n  tenon checkpoint diff old.ckpt new.ckpt")]
    Diff(DiffArgs),
}

const CONVERT: &str = "\
Write the tensors of a checkpoint in another form.

The name of the new checkpoint says its form: .safetensors, .npz, or a bundle of TensorFlow with this prefix. A bundle has a
place for every tensor; safetensors have none for strings, complex128 and quantised types, npz none for variants. Such a
tensor is an error, or is left out with --skip. The new checkpoint appears as a whole or not at all.";

const DIFF: &str = "\
Compare the tensors of two checkpoints, of the same form or of different ones.

A tensor differs if only one of them has its name, if its type or shape is another, or if an element has other bits; then
the number of such elements is printed, and the largest difference where they are numbers. The exit code is 0 if nothing
differs, else 1.";

#[derive(Debug, Args)]
pub struct ListArgs {
    /// The checkpoint: a prefix, a file, or a pattern of V1 files
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The checkpoint: a prefix, a file, or a pattern of V1 files
    pub file: PathBuf,
    /// The tensors; * stands for any text
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    /// Print this many elements of each
    #[arg(long, value_name = "N", default_value = "20")]
    pub max: usize,
}

#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// The checkpoint to read
    #[arg(value_name = "FROM")]
    pub from: PathBuf,
    /// The checkpoint to write; its end says the form
    #[arg(value_name = "TO")]
    pub to: PathBuf,
    /// Leave out tensors that the new form has no place for
    #[arg(long)]
    pub skip: bool,
    /// Give a tensor another name; may be repeated
    #[arg(long = "rename", value_name = "OLD=NEW", value_parser = renamed)]
    pub renames: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The first checkpoint
    #[arg(value_name = "FIRST")]
    pub a: PathBuf,
    /// The second one
    #[arg(value_name = "SECOND")]
    pub b: PathBuf,
}

fn renamed(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => {
            Ok((old.to_owned(), new.to_owned()))
        }
        _ => Err("expected OLD=NEW".to_owned()),
    }
}
