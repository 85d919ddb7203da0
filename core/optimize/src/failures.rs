//! Rules by which nodes of certain ops cannot fail, although their shapes are only partly known. They
//! know ops by name and go beyond what the ops declare.

use crate::{
    Draft,
    spread::{has_axes, sums_single},
};
use tenon_framework::{
    attr::{AttrList, AttrValue},
    infer::Item,
};
use tenon_graph::{Node, NodeId, Output};

/// Whether a node of one of these ops never fails; `false` for other ops.
pub(crate) fn never_fails(draft: &Draft<'_>, id: NodeId) -> bool {
    let node = draft.node(id);
    let rank = |at: usize| node.inputs.get(at).and_then(|&input| draft.shape(input).rank());
    let alike =
        |&input: &Output| input == node.inputs[0] || draft.same_shape(node.inputs[0], input);
    match node.op.name.as_str() {
        "BroadcastGradientArgs" => has_axes(draft, id),
        "Pack" => rank(0).is_some() && node.inputs.iter().all(alike),
        "ConcatV2" => joins(draft, node).unwrap_or(false),
        "GatherV2" => gathers(draft, node).unwrap_or(false),
        "LogSoftmax" | "Softmax" => rank(0).is_some_and(|rank| rank > 0),
        "MatMul" => multiplies(draft, node).unwrap_or(false),
        "Reshape" => reshapes(draft, id).unwrap_or(false),
        "Select" => chooses(draft, node),
        "Squeeze" => squeezes(draft, node),
        "Sum" => rank(0).is_some() && sums_nothing(draft, node),
        "Transpose" => permutes(draft, node.inputs[0], node.inputs[1]),
        _ => false,
    }
}

/// Whether a reduction is one over no dimension, or over dimensions of size 1 of a gradient.
fn sums_nothing(draft: &Draft<'_>, node: &Node) -> bool {
    let &[x, axes] = &node.inputs[..] else { return false };
    let is_empty = draft.shape(axes).full().is_some_and(|axes| axes.elements() == 0);
    is_empty || sums_single(draft, x, axes)
}

/// Whether the condition of `Select` is a scalar, has the shape of both choices, or is a vector
/// along their first dimension.
fn chooses(draft: &Draft<'_>, node: &Node) -> bool {
    let &[condition, yes, no] = &node.inputs[..] else { return false };
    let dims = |output| draft.value(output).and_then(|value| value.shape.dims());
    let fits = match (dims(condition), dims(yes)) {
        (Some([]), _) => true,
        (Some(&[rows]), Some(&[first, ..])) => rows == first,
        _ => draft.same_shape(condition, yes),
    };
    fits && (yes == no || draft.same_shape(yes, no))
}

fn squeezes(draft: &Draft<'_>, node: &Node) -> bool {
    let Some(dims) = draft.value(node.inputs[0]).and_then(|value| value.shape.dims()) else {
        return false;
    };
    match node.attrs.get("squeeze_dims") {
        Some(AttrValue::List(AttrList::Int(axes))) => axes.iter().all(|&axis| {
            let at = if axis < 0 { axis + dims.len() as i64 } else { axis };
            let dim = usize::try_from(at).ok().and_then(|at| dims.get(at));
            dim.is_some_and(|dim| dim.value() == 1)
        }),
        _ => true,
    }
}

/// Whether the indices are constants within the dimension that they index.
fn gathers(draft: &Draft<'_>, node: &Node) -> Option<bool> {
    let &[params, indices, axis] = &node.inputs[..] else { return None };
    let plain = matches!(node.attrs.get("batch_dims"), Some(AttrValue::Int(0)));
    let dims = draft.value(params)?.shape.dims()?;
    let axis = *draft.integers(axis)?.first()?;
    let axis = usize::try_from(if axis < 0 { axis + dims.len() as i64 } else { axis }).ok()?;
    let end = dims.get(axis)?.value();
    Some(plain && draft.integers(indices)?.iter().all(|index| (0..end).contains(index)))
}

fn joins(draft: &Draft<'_>, node: &Node) -> Option<bool> {
    let (axis, values) = node.inputs.split_last()?;
    let axis = *draft.integers(*axis)?.first()?;
    let mut all = values.iter().map(|&value| draft.value(value)?.shape.dims());
    let first = all.next()??;
    let rank = first.len() as i64;
    let axis = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?;
    let fits = |other: &[_]| {
        other.len() == first.len()
            && (0..first.len()).all(|at| at == axis || other[at] == first[at])
    };
    Some(axis < first.len() && all.all(|dims| dims.is_some_and(fits)))
}

fn multiplies(draft: &Draft<'_>, node: &Node) -> Option<bool> {
    let &[a, b] = &node.inputs[..] else { return None };
    let flag = |name| matches!(node.attrs.get(name), Some(AttrValue::Bool(true)));
    let dims = |output| match draft.value(output)?.shape.dims()? {
        &[rows, columns] => Some([rows, columns]),
        _ => None,
    };
    let (a, b) = (dims(a)?, dims(b)?);
    Some(a[usize::from(!flag("transpose_a"))] == b[usize::from(flag("transpose_b"))])
}

/// Whether a reshape succeeds for every input value. With an open size (-1), the other sizes must
/// be known and not 0. A vector derived from the shape of the input always fits.
fn reshapes(draft: &Draft<'_>, id: NodeId) -> Option<bool> {
    let &[x, wanted] = &draft.node(id).inputs[..] else { return None };
    let only_open = draft.integers(wanted).is_some_and(|sizes| sizes == [-1]);
    let made = Output::new(id, 0);
    let full = |output| draft.shape(output).full().is_some();
    let as_many = draft.same_shape(x, made) || (full(x) && full(made));
    Some(only_open || (as_many && fits_open(draft, id)))
}

/// Whether `perm` is a permutation of the dimensions of `x`.
pub(crate) fn permutes(draft: &Draft<'_>, x: Output, perm: Output) -> bool {
    let rank = draft.shape(x).rank();
    draft.integers(perm).is_some_and(|perm| Some(perm.len()) == rank && is_permutation(&perm))
}

/// Whether each number below the length occurs exactly once.
pub(crate) fn is_permutation(perm: &[i64]) -> bool {
    let mut sorted = perm.to_vec();
    sorted.sort_unstable();
    sorted.iter().enumerate().all(|(at, &dim)| dim == at as i64)
}

/// Whether the open size (-1) of a reshape always follows from the number of elements, because the
/// other sizes are known and not 0, or whether there is no open size.
pub(crate) fn fits_open(draft: &Draft<'_>, id: NodeId) -> bool {
    let wanted = draft.node(id).inputs.get(1).and_then(|&wanted| draft.value(wanted));
    let Some(wanted) = wanted.and_then(|value| value.symbolic_value()) else { return false };
    let count = |fits: fn(&Item) -> bool| wanted.items().iter().filter(|item| fits(item)).count();
    let open = count(|item| matches!(item, Item::Known(-1)));
    let sized = count(|item| matches!(item, Item::Known(1..)));
    let unknown = count(|item| matches!(item, Item::Unknown));
    unknown == 0 && (open == 0 || (open == 1 && sized + 1 == wanted.items().len()))
}
