//! Calls from the cases that a check of the op generates.

use super::{Call, Wish, sized};
use crate::error::BenchError;
use std::sync::Arc;
use tenon_framework::{attr::AttrMap, op::OpDef, registry::KernelDef};
use tenon_testkit::check::{Budget, CheckCase, Generated, Subject, Tag, generate};

/// Most cases of an op.
const CASES: usize = 3;

/// Calls like those that a check makes, large enough that arithmetic or memory is what counts; where the shape function
/// accepts no larger one, the largest of the check's.
///
/// # Errors
/// No case is known.
pub fn large(
    op: &Arc<OpDef>,
    kernels: &[Arc<KernelDef>],
    types: &AttrMap,
    wish: &Wish,
) -> Result<Vec<Call>, BenchError> {
    let own = sized::from_cases(op, types, wish);
    if !own.is_empty() {
        return Ok(own);
    }
    if let Some(kernel) = kernels.first() {
        let cases = cases(op, kernel, types, wish.seed).cases;
        if let Some(calls) = sized::from_generated(op, &cases, wish) {
            return Ok(calls);
        }
    }
    if !wish.attrs.is_empty() {
        let problem =
            "no shapes are known for these attributes: give them by --shape NAME=SHAPE,...";
        return Err(BenchError::wish(&op.name, problem));
    }
    calls(op, kernels, types, wish.seed)
}

fn cases(op: &Arc<OpDef>, kernel: &Arc<KernelDef>, types: &AttrMap, seed: u64) -> Generated {
    let subject = Subject { op: Arc::clone(op), kernel: Arc::clone(kernel), types: types.clone() };
    generate(&subject, &Budget { seed, ..Budget::default() })
}

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
    let generated = cases(op, kernel, types, seed);
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
