//! The command line of `tenon quantize`.

use crate::args::threads;
use clap::{Args, ValueEnum};
use std::{num::NonZeroUsize, path::PathBuf};

pub const ABOUT: &str = "\
Make a graph of 8 bits of a frozen graph of floats.

Convolutions and matrix products with constant weights are computed on 8 bits, with the batch norm, bias and activation
that follow them, and so is what stands between them: pools, residual additions, means, concatenations, paddings,
reshapes and functions of one number. Weights get a scale for each output channel; other tensors one scale each, from
the values that they take on the calibration data. What is fetched has the name and the type that it had.

Calibration data is an .npz file with an array for each input, called after it, whose first dimension counts samples; or
a folder of such files, or, for a graph of one input, of .npy files. Some hundred samples like those that the graph will
see are enough. With --dynamic none is needed: each tensor is quantised as the graph runs, by the range that it has
then, which costs more time.

Printed is what each layer loses against the float one on the calibration data: the ratio of signal to noise in decibels,
and the error relative to the tensor's own size. Where a layer loses much, or the outputs do, try another --method, or
keep the layer in float:

    tenon quantize net.pb --calibration samples.npz --out net_int8.pb --keep first/conv";

pub const EXAMPLE: &str = "\
Example:
  tenon quantize net.pb --calibration samples.npz --out net_int8.pb";

#[derive(Debug, Args)]
pub struct QuantizeArgs {
    /// The graph: a binary GraphDef whose weights are constants
    #[arg(value_name = "GRAPH.pb")]
    pub graph: PathBuf,
    /// Calibration data
    #[arg(long, value_name = "FILE.npz|DIR", required_unless_present = "dynamic")]
    pub calibration: Option<PathBuf>,
    /// Where the quantised graph is written to
    #[arg(long, value_name = "Q.pb")]
    pub out: PathBuf,
    /// Quantise activations as the graph runs; calibration data is then only compared on
    #[arg(long)]
    pub dynamic: bool,
    /// How a range follows from the values that are seen
    #[arg(long, value_enum, default_value = "minmax")]
    pub method: MethodName,
    /// Percent of the values that --method percentile keeps
    #[arg(long, value_name = "P", default_value = "99.99")]
    pub percentile: f64,
    /// Leave this node in float; may be repeated
    #[arg(long = "keep", value_name = "NODE")]
    pub keep: Vec<String>,
    /// What the quantised graph gives; without it, what no node uses
    #[arg(long = "fetch", value_name = "NAME", num_args = 1..)]
    pub fetches: Vec<String>,
    /// Samples that are run at once, where the graph takes any number
    #[arg(long, value_name = "N", default_value = "8")]
    pub batch: NonZeroUsize,
    /// Threads that compute, the caller's included; one per core without this option
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<NonZeroUsize>,
}

/// How ranges are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MethodName {
    /// From the least to the greatest value
    Minmax,
    /// All but a few of the least and of the greatest values
    Percentile,
    /// Where cutting and rounding together lose least, by relative entropy
    Entropy,
}
