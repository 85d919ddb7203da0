//! Calls from the cases that a check of the op generates.

use super::Call;
use crate::error::BenchError;
use std::sync::Arc;
use tenon_framework::{attr::AttrMap, op::OpDef, registry::KernelDef};
use tenon_testkit::check::{Budget, CheckCase, Subject, Tag, generate};

/// Most cases of an op.
const CASES: usize = 3;

/// The largest cases, and a small one.
///
/// # Errors
/// No case is known.
pub fn calls(
    op: &Arc<OpDef>,
    kernels: &[Arc<KernelDef>],
    types: &AttrMap,
    seed: u64,
) -> Result<Vec<Call>, BenchError> {
    let Some(kernel) = kernels.first() else {
        return Err(BenchError::wish(&op.name, "has no kernel: load a plugin that brings one"));
    };
    let subject = Subject { op: Arc::clone(op), kernel: Arc::clone(kernel), types: types.clone() };
    let budget = Budget { seed, ..Budget::default() };
    let generated = generate(&subject, &budget);
    let cases = chosen(generated.cases);
    if cases.is_empty() {
        let reason =
            generated.uncovered.unwrap_or_else(|| "no generated case has elements".to_owned());
        let problem = format!("{reason}; or give shapes by --shape NAME=SHAPE,...");
        return Err(BenchError::wish(&op.name, problem));
    }
    let call = |case| Call { op: Arc::clone(op), case, at: None, node: None, calls: 1 };
    Ok(cases.into_iter().map(call).collect())
}

fn elements(case: &CheckCase) -> i64 {
    case.inputs.iter().map(|input| input.dims.iter().product::<i64>()).sum()
}

fn chosen(mut cases: Vec<CheckCase>) -> Vec<CheckCase> {
    cases.retain(|case| !case.is(Tag::Special) && !case.is(Tag::Empty) && elements(case) > 0);
    // One per set of shapes; of several the first has its attributes nearest to the defaults.
    let mut seen = Vec::new();
    cases.retain(|case| {
        let dims: Vec<Vec<i64>> = case.inputs.iter().map(|input| input.dims.clone()).collect();
        let new = !seen.contains(&dims);
        seen.push(dims);
        new
    });
    let telling =
        |case: &CheckCase| case.is(Tag::Large) || case.is(Tag::Prime) || case.is(Tag::Declared);
    if cases.iter().any(telling) {
        cases.retain(telling);
    }
    cases.sort_by_key(elements);
    if cases.len() > CASES {
        let large = cases.split_off(cases.len() - (CASES - 1));
        cases.truncate(1);
        cases.extend(large);
    }
    cases
}
