//! A smaller case that fails in the same way.
//!
//! Sizes go first, all occurrences of one size together (inputs that must agree go on agreeing), then axis by axis;
//! then axes of size one; then fills. A recipe gives other elements for another size: where the one that matters is
//! lost so, the elements that are there are cut along every axis, in the middle, at both ends, row by row. Where few
//! elements are left, each is replaced by one. What a candidate must still do is the caller's to say; so is how long
//! it may take.
//!
//! What golden data says of a case is true of that case alone. Smaller ones are judged by the reference, as far as
//! there is one that finds the same failure; else a golden case stays as it is.
//!
//! # Invariants
//! - What comes out fails as the caller says, or is what went in.
//! - Constants (shapes, axes) stay as they are.

mod cut;

use super::{Argument, CheckCase, Fill, Tag};
use cut::{Window, cut_out, window};
use std::collections::BTreeSet;
use tenon_framework::{DType, Tensor};

/// What decides about candidates.
pub trait Judge {
    /// Whether it fails in the same way.
    fn fails(&mut self, case: &CheckCase) -> bool;

    /// Whether there is time for another one.
    fn goes_on(&self) -> bool;
}

/// Elements of all inputs together up to which they are looked at one by one.
const FEW: usize = 32;

/// The smallest case found. `case` is known to fail.
pub fn shrink(case: CheckCase, judge: &mut dyn Judge) -> CheckCase {
    let mut best = case.clone();
    best.tags.retain(|tag| *tag != Tag::Golden);
    if case.is(Tag::Golden) && !(judge.goes_on() && judge.fails(&best)) {
        return case;
    }
    let best = descend(best, judge, candidates);
    elements(cut_out(best, judge), judge)
}

/// The last of a row of cases, each a candidate of the one before.
fn descend(
    mut best: CheckCase,
    judge: &mut dyn Judge,
    candidates: fn(&CheckCase) -> Vec<CheckCase>,
) -> CheckCase {
    while judge.goes_on() {
        let better = candidates(&best).into_iter().find(|candidate| {
            // What is found last is right where time runs out: nothing is.
            judge.goes_on() && judge.fails(candidate)
        });
        match better {
            Some(better) => best = better,
            None => break,
        }
    }
    best
}

/// Smaller cases, the smallest first.
fn candidates(case: &CheckCase) -> Vec<CheckCase> {
    let mut all = Vec::new();
    for size in sizes(case) {
        for smaller in smaller_sizes(size) {
            all.extend(resized(case, |_, _, dim| if dim == size { smaller } else { dim }));
        }
    }
    for (at, input) in case.inputs.iter().enumerate().filter(|(_, input)| !input.constant) {
        for (axis, &size) in input.dims.iter().enumerate() {
            for smaller in smaller_sizes(size) {
                let one = |a, x, dim| if (a, x) == (at, axis) { smaller } else { dim };
                all.extend(resized(case, one));
            }
        }
    }
    all.extend(without_first_axis(case));
    all.extend(simpler_fills(case));
    all
}

/// Sizes above one, the largest first.
fn sizes(case: &CheckCase) -> Vec<i64> {
    let inputs = case.inputs.iter().filter(|input| !input.constant);
    let sizes: BTreeSet<i64> =
        inputs.flat_map(|input| &input.dims).copied().filter(|&dim| dim > 1).collect();
    sizes.into_iter().rev().collect()
}

fn smaller_sizes(size: i64) -> impl Iterator<Item = i64> {
    let mut all = if size > 1 { vec![1, 2, 3, size / 4, size / 2, size - 1] } else { Vec::new() };
    all.retain(|&smaller| smaller >= 1 && smaller < size);
    all.sort_unstable();
    all.dedup();
    all.into_iter()
}

/// The case with other sizes of its inputs; `None` where an input cannot be made smaller.
fn resized(case: &CheckCase, size: impl Fn(usize, usize, i64) -> i64) -> Option<CheckCase> {
    let mut smaller = case.clone();
    for (at, input) in smaller.inputs.iter_mut().enumerate().filter(|(_, input)| !input.constant) {
        let dims = input.dims.iter().enumerate().map(|(axis, &dim)| size(at, axis, dim));
        set_dims(input, dims.collect())?;
    }
    Some(smaller)
}

fn set_dims(input: &mut Argument, dims: Vec<i64>) -> Option<()> {
    if let Fill::Explicit(value) = &input.fill {
        input.fill = Fill::Explicit(part(value, &dims)?);
    }
    input.dims = dims;
    Some(())
}

/// The case without the first axis of all inputs that have one, which is of size one in all of them.
fn without_first_axis(case: &CheckCase) -> Option<CheckCase> {
    let mut smaller = case.clone();
    let mut inputs = smaller.inputs.iter_mut().filter(|i| !i.constant && !i.dims.is_empty());
    let mut any = false;
    inputs.try_for_each(|input| {
        any = true;
        if input.dims[0] != 1 {
            return None;
        }
        if let Fill::Explicit(value) = &input.fill {
            input.fill = Fill::Explicit(value.reshaped(&input.dims[1..]).ok()?);
        }
        input.dims.remove(0);
        Some(())
    })?;
    any.then_some(smaller)
}

/// The case with ones, then with small numbers, in place of an input's elements.
fn simpler_fills(case: &CheckCase) -> Vec<CheckCase> {
    let ones = Fill::Uniform { low: 1.0, high: 1.0 + f64::EPSILON, seed: 0 };
    let plain = Fill::Uniform { low: 1.0, high: 9.0, seed: 0 };
    let mut all = Vec::new();
    for (at, input) in case.inputs.iter().enumerate().filter(|(_, input)| !input.constant) {
        if matches!(input.dtype, DType::BOOL | DType::STRING | DType::RESOURCE | DType::VARIANT) {
            continue;
        }
        for fill in [&ones, &plain] {
            if complexity(fill) < complexity(&input.fill) {
                let mut simpler = case.clone();
                simpler.inputs[at].fill = fill.clone();
                all.push(simpler);
            }
        }
    }
    all
}

/// An order of fills: only a simpler one replaces another, so that shrinking ends.
fn complexity(fill: &Fill) -> u8 {
    match fill {
        Fill::Uniform { low, high, .. } if *low == 1.0 && *high <= 1.0 + f64::EPSILON => 0,
        Fill::Uniform { low, high, seed: 0 } if *low == 1.0 && *high == 9.0 => 1,
        _ => 2,
    }
}

/// Looks at elements one by one: which of them have to be what they are.
fn elements(case: CheckCase, judge: &mut dyn Judge) -> CheckCase {
    let few = |case: &CheckCase| {
        let dims = case.inputs.iter().map(|input| input.dims.iter().product::<i64>());
        dims.sum::<i64>() <= FEW as i64
    };
    let Some(mut best) = few(&case).then(|| explicit(&case)).flatten() else { return case };
    if !judge.goes_on() || !judge.fails(&best) {
        return case;
    }
    for at in 0..best.inputs.len() {
        if best.inputs[at].constant {
            continue;
        }
        for element in 0.. {
            let Fill::Explicit(value) = &best.inputs[at].fill else { break };
            if element >= value.elements() {
                break;
            }
            let Some(plain) = with_one(value, element) else { continue };
            let mut candidate = best.clone();
            candidate.inputs[at].fill = Fill::Explicit(plain);
            if judge.goes_on() && judge.fails(&candidate) {
                best = candidate;
            }
        }
    }
    best
}

/// The case with all elements written out.
fn explicit(case: &CheckCase) -> Option<CheckCase> {
    let tensors = case.tensors().ok()?;
    let mut explicit = case.clone();
    for (input, tensor) in explicit.inputs.iter_mut().zip(tensors) {
        input.fill = Fill::Explicit(tensor);
    }
    Some(explicit)
}

/// The tensor with a 1 in the place of an element; `None` if it is 1, or if the type has no 1.
fn with_one(tensor: &Tensor, element: usize) -> Option<Tensor> {
    let one = one(tensor.dtype())?;
    let mut bytes = tensor.as_bytes().ok()?.to_vec();
    let place = bytes.get_mut(element * one.len()..(element + 1) * one.len())?;
    if place == one {
        return None;
    }
    place.copy_from_slice(&one);
    Tensor::from_bytes(tensor.dtype(), tensor.shape().dims(), &bytes).ok()
}

fn one(dtype: DType) -> Option<Vec<u8>> {
    use half::{bf16, f16};
    Some(match dtype {
        DType::FLOAT => 1.0f32.to_ne_bytes().to_vec(),
        DType::DOUBLE => 1.0f64.to_ne_bytes().to_vec(),
        DType::HALF => f16::ONE.to_ne_bytes().to_vec(),
        DType::BFLOAT16 => bf16::ONE.to_ne_bytes().to_vec(),
        DType::INT8 | DType::UINT8 => vec![1],
        DType::INT16 | DType::UINT16 => 1u16.to_ne_bytes().to_vec(),
        DType::INT32 | DType::UINT32 => 1u32.to_ne_bytes().to_vec(),
        DType::INT64 | DType::UINT64 => 1u64.to_ne_bytes().to_vec(),
        _ => return None,
    })
}

/// The first elements along each axis; `None` where the elements have no fixed size.
fn part(tensor: &Tensor, dims: &[i64]) -> Option<Tensor> {
    let whole = tensor.shape().dims();
    if whole == dims {
        return Some(tensor.clone());
    }
    let fits =
        whole.len() == dims.len() && whole.iter().zip(dims).all(|(whole, part)| part <= whole);
    let windows: Vec<Window> = dims.iter().map(|&size| (0, size)).collect();
    fits.then(|| window(tensor, &windows)).flatten()
}

#[cfg(test)]
#[path = "shrink_tests.rs"]
mod tests;
