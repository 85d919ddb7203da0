//! `tenon quantize`: from a frozen graph of floats to one of 8 bits.

mod args;
mod report;
mod samples;

pub use args::{ABOUT, EXAMPLE, QuantizeArgs};

use crate::{
    args::Global,
    error::CliError,
    output::{print, print_json},
    start::{read_graph, start_whole},
};
use args::MethodName;
use report::Report;
use std::fs;
use tenon_quantize::{Method, QuantizeOptions, Sample};
use tenon_runtime::{host::files::write_bytes, proto::encode};

/// Quantises a graph and writes it.
///
/// # Errors
/// Files that cannot be read or written, data that does not fit, nothing to quantise.
pub fn quantize(global: &Global, args: &QuantizeArgs) -> Result<(), CliError> {
    let (runtime, _) = start_whole(global, args.threads.map(Into::into))?;
    let graph = read_graph(&args.graph)?;
    let inputs = tenon_quantize::inputs(&runtime, &graph)?;
    let samples = match &args.calibration {
        Some(path) => samples::read(path, &inputs, args.batch.get())?,
        None => Vec::new(),
    };
    let options = QuantizeOptions {
        fetches: args.fetches.clone(),
        keep: args.keep.clone(),
        dynamic: args.dynamic,
        method: match args.method {
            MethodName::Minmax => Method::MinMax,
            MethodName::Percentile => Method::Percentile(args.percentile),
            MethodName::Entropy => Method::Entropy,
        },
    };
    let quantized = tenon_quantize::quantize(&runtime, &graph, &samples, &options)?;
    let file = |source| CliError::File { file: args.out.clone(), done: "written", source };
    let bytes = encode(&quantized.graph)
        .map_err(|source| CliError::Graph { file: args.out.clone(), source })?;
    write_bytes(&args.out, &bytes).map_err(file)?;
    let before = fs::metadata(&args.graph).map_or(0, |metadata| metadata.len());
    let sizes = [before, bytes.len() as u64];
    let report = Report { quantized: &quantized, bytes: sizes, samples: count(&samples) };
    if global.json { print_json(&report.json()) } else { print(&report.text()) }
}

/// Samples of all batches.
fn count(samples: &[Sample]) -> usize {
    let first = |sample: &Sample| sample.first()?.1.shape().dims().first().copied();
    samples.iter().map(|sample| first(sample).unwrap_or(1) as usize).sum()
}
