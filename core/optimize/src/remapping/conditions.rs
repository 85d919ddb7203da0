//! Conditions of a match besides its ops.

use super::matcher::Found;
use crate::Draft;
use tenon_framework::fusion::Condition;
use tenon_graph::Output;

/// Whether a condition holds.
pub(super) fn holds(draft: &Draft<'_>, found: &Found, condition: &Condition) -> bool {
    let tensors: Option<Vec<Output>> =
        condition.tensors.iter().map(|name| found.tensor(name)).collect();
    let Some(tensors) = tensors else { return false };
    let rank = |output: Output| draft.shape(output).rank();
    match (condition.name.as_str(), &tensors[..], &condition.numbers[..]) {
        ("vector", &[x], []) => rank(x) == Some(1),
        ("scalar", &[x], []) => rank(x) == Some(0),
        ("constant", &[x], []) => draft.constant(x).is_some(),
        ("rank", &[x], &[expected]) => rank(x).is_some_and(|rank| rank as i64 == expected),
        ("same_shape", &[x, y], []) => draft.same_shape(x, y),
        ("same_type", &[x, y], []) => draft.dtype(x) == draft.dtype(y),
        ("channels", &[x, y], []) => is_channels(draft, x, y),
        ("last_axis", &[axes, x], []) => is_last_axis(draft, axes, x),
        ("leading", &[x, y], &[last]) => same_leading(draft, x, y, last),
        _ => false,
    }
}

fn is_channels(draft: &Draft<'_>, vector: Output, of: Output) -> bool {
    let (vector, of) = (draft.shape(vector), draft.shape(of));
    match (vector.dims(), of.dims().and_then(<[i64]>::last)) {
        (Some(&[length]), Some(&last)) => length >= 0 && length == last,
        _ => false,
    }
}

pub(super) fn is_last_axis(draft: &Draft<'_>, axes: Output, x: Output) -> bool {
    let last = draft.shape(x).rank().map(|rank| rank as i64 - 1);
    match draft.integers(axes).as_deref() {
        Some(&[axis]) => axis == -1 || Some(axis) == last,
        _ => false,
    }
}

fn same_leading(draft: &Draft<'_>, x: Output, y: Output, last: i64) -> bool {
    let dims = |output| draft.value(output).and_then(|value| value.shape.dims());
    let (Some(x), Some(y), Ok(last)) = (dims(x), dims(y), usize::try_from(last)) else {
        return false;
    };
    x.len() == y.len() && x.len() >= last && x[..x.len() - last] == y[..y.len() - last]
}
