//! Properties that passes must not change.

use super::{Case, Ending, pool::shown};
use half::{bf16, f16};
use std::{collections::BTreeMap, fmt};
use tenon_framework::{DType, Tensor, element::Number};
use tenon_runtime::{RunOptions, Runtime, Session, SessionOptions, optimize::BUILT_IN};

/// What the passes changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

pub(super) fn judge(case: &Case, runtime: &Runtime) -> Result<Ending, Fault> {
    let off = BTreeMap::from([("graph.optimize".to_owned(), "false".to_owned())]);
    let others = BUILT_IN.iter().filter(|name| case.pass.is_some_and(|pass| pass != **name));
    let on = others.map(|name| (format!("graph.{name}"), "false".to_owned())).collect();
    let written = run(case, runtime, off);
    let optimized = run(case, runtime, on);
    match (written, optimized) {
        (Err(_), Err(_)) => Ok(Ending::Failed),
        (Ok(_), Err(error)) => Err(Fault(format!("fails after the passes only: {error}"))),
        (Err(error), Ok(_)) => Err(Fault(format!("does not fail after the passes: {error}"))),
        (Ok(written), Ok(optimized)) => {
            for ((name, a), b) in case.fetches.iter().zip(&written).zip(&optimized) {
                if a.dtype() != b.dtype() || a.shape() != b.shape() || !is_near(a, b) {
                    let (a, b) = (shown(a), shown(b));
                    return Err(Fault(format!("'{name}' is {b} after the passes, was {a}")));
                }
            }
            Ok(Ending::Computed)
        }
    }
}

fn run(
    case: &Case,
    runtime: &Runtime,
    knobs: BTreeMap<String, String>,
) -> Result<Vec<Tensor>, String> {
    let options = SessionOptions { knobs, ..SessionOptions::default() };
    let session = Session::new(runtime, options).map_err(|error| error.to_string())?;
    session.extend(&case.def).map_err(|error| error.to_string())?;
    let feeds: Vec<(&str, Tensor)> =
        case.feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let fetches: Vec<&str> = case.fetches.iter().map(String::as_str).collect();
    let ran = session.run(&feeds, &fetches, &[], &RunOptions::default());
    ran.map(|(values, _)| values).map_err(|error| error.to_string())
}

/// Whether floats are near, by what a chain of ops may lose that rounds otherwise, and other elements equal.
fn is_near(a: &Tensor, b: &Tensor) -> bool {
    match a.dtype() {
        // It may be cast from a float.
        DType::DOUBLE => near::<f64>(a, b, 1e-3),
        DType::FLOAT => near::<f32>(a, b, 1e-3),
        DType::HALF => near::<f16>(a, b, 0.1),
        DType::BFLOAT16 => near::<bf16>(a, b, 0.5),
        _ => matches!((a.as_bytes(), b.as_bytes()), (Ok(a), Ok(b)) if a == b),
    }
}

fn near<T: Number>(a: &Tensor, b: &Tensor, rounding: f64) -> bool {
    let (Ok(a), Ok(b)) = (a.as_slice::<T>(), b.as_slice::<T>()) else { return false };
    let finite = a.iter().map(|a| a.to_f64().abs()).filter(|a| a.is_finite());
    let most = finite.fold(1.0, f64::max) * rounding;
    let is_near =
        |(a, b): (f64, f64)| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= most;
    a.iter().zip(b).all(|(a, b)| is_near((a.to_f64(), b.to_f64())))
}
