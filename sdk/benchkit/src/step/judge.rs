//! Whether a step gives what it should.

use super::Step;
use crate::{error::BenchError, record::ProblemKind};
use tenon_framework::{DType, Tensor};
use tenon_runtime::{RunOptions, Runtime, SessionOptions};
use tenon_testkit::compare::{Rule, compare, largest};

/// The result of judging.
pub enum Verdict {
    /// It is right: by what.
    Right(String),
    /// Nothing says whether it is right: why.
    Open(String),
    /// It is not, or does not run.
    Wrong(ProblemKind, String),
}

/// How far values may be from the right ones, as a share of the largest of them. Passes may reorder sums within the
/// numerics contracts of kernels; over the layers of a model this adds up.
fn share(dtype: DType) -> f64 {
    match dtype {
        DType::DOUBLE => 1e-10,
        DType::HALF => 1e-2,
        DType::BFLOAT16 => 5e-2,
        _ => 1e-4,
    }
}

/// Compares the optimised step with the step as it is written, and with what the user expects.
///
/// # Errors
/// A graph that cannot be compiled.
pub fn judge(runtime: &Runtime, step: &Step) -> Result<Verdict, BenchError> {
    let found = match run(runtime, step, SessionOptions::default())? {
        Ok(found) => found,
        Err(message) => return Ok(Verdict::Wrong(ProblemKind::Failed, message)),
    };
    for (place, expected) in &step.expected {
        if let Err(wrong) = near(&found[*place], expected) {
            let name = &step.options.fetches[*place];
            let message = format!("{name} is not what the file expects: {wrong}");
            return Ok(Verdict::Wrong(ProblemKind::Wrong, message));
        }
    }
    if let Some(node) = &step.random {
        return Ok(Verdict::Open(format!("node '{node}' has state: no two steps are alike")));
    }
    let plain = match run(runtime, step, SessionOptions::as_written())? {
        Ok(plain) => plain,
        Err(message) => {
            let message = format!("the graph as it is written does not run: {message}");
            return Ok(Verdict::Wrong(ProblemKind::Failed, message));
        }
    };
    for ((name, found), plain) in step.options.fetches.iter().zip(&found).zip(&plain) {
        if let Err(wrong) = near(found, plain) {
            let message = format!("{name} is not what the graph as it is written gives: {wrong}");
            return Ok(Verdict::Wrong(ProblemKind::Wrong, message));
        }
    }
    let given = if step.expected.is_empty() { "" } else { "values given, " };
    Ok(Verdict::Right(format!("{given}the graph as it is written")))
}

/// One step; what it fetched, or why it failed.
fn run(
    runtime: &Runtime,
    step: &Step,
    options: SessionOptions,
) -> Result<Result<Vec<Tensor>, String>, BenchError> {
    let session = step.session(runtime, options)?;
    let callable = session.callable(step.options.clone())?;
    let mut fetched = Vec::new();
    let ran = callable.run_with(&step.feeds, &mut fetched, &RunOptions::default());
    Ok(ran.map(|()| fetched).map_err(|error| error.to_string()))
}

fn near(found: &Tensor, expected: &Tensor) -> Result<(), String> {
    let rule = match largest(expected) {
        Some(largest) if largest.is_finite() => {
            Rule::Close { absolute: share(expected.dtype()) * largest, relative: 0.0 }
        }
        Some(_) => Rule::Close { absolute: 0.0, relative: share(expected.dtype()) },
        None => Rule::Exact,
    };
    compare(found, expected, &rule).map_err(|wrong| wrong.to_string())
}
