//! Transpositions, reshapes, and ops that keep shapes unchanged.

use super::{
    Simpler,
    facts::{first_input, flag, integers_attr, source_of_op},
};
use crate::{
    Draft, NewNode,
    failures::{fits_open, is_permutation, permutes},
    fallible::may_fail,
    spread::sums_single,
};
use tenon_framework::{DType, Tensor};
use tenon_graph::{NodeId, Output};

/// Ops that output their input with another shape.
const RESHAPES: &[&str] = &["Reshape", "Squeeze", "ExpandDims"];

/// Replaces `transpose(transpose(x, p), q)` by one transposition, and the identity permutation by
/// its input.
pub(super) fn transposed(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    let node = draft.node(id);
    if node.op.name != "Transpose" {
        return None;
    }
    let outer = draft.integers(node.inputs[1])?;
    if is_identity(&outer) {
        return permutes(draft, node.inputs[0], node.inputs[1]).then_some(Simpler::Input(0));
    }
    let inner = source_of_op(draft, id, 0, "Transpose")?;
    let first = draft.integers(draft.node(inner).inputs[1])?;
    // An invalid permutation, or one of another rank, fails at run time.
    if outer.len() != first.len() || !is_permutation(&outer) || !is_permutation(&first) {
        return None;
    }
    let perm: Vec<i64> = outer.iter().map(|&at| first[at as usize]).collect();
    if is_identity(&perm) {
        let x = first_input(draft, inner);
        let fits = draft.shape(x).rank() == Some(perm.len());
        return fits.then_some(Simpler::Other(x));
    }
    // The two permutations are composed. If another node reads the inner transposition, both would
    // be computed.
    if draft.users(inner).len() > 1 {
        return None;
    }
    let value = permutation(&perm, draft.dtype(node.inputs[1]))?;
    let new = NewNode::new("Transpose").input(first_input(draft, inner));
    Some(Simpler::With { new, value, like: node.inputs[1] })
}

pub(super) fn permutation(perm: &[i64], dtype: DType) -> Option<Tensor> {
    let dims = [perm.len() as i64];
    match dtype {
        DType::INT32 => {
            let narrow: Vec<i32> = perm.iter().map(|&dim| dim as i32).collect();
            Tensor::from_slice(&dims, &narrow).ok()
        }
        DType::INT64 => Tensor::from_slice(&dims, perm).ok(),
        _ => None,
    }
}

pub(super) fn is_identity(perm: &[i64]) -> bool {
    perm.iter().enumerate().all(|(at, &dim)| dim == at as i64)
}

/// Of two consecutive reshapes, only the last one matters; so do sums over dimensions of size 1 before it.
pub(super) fn reshaped(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    let node = draft.node(id);
    let op = node.op.name.as_str();
    if !RESHAPES.contains(&op) {
        return None;
    }
    if draft.same_shape(node.inputs[0], id.into()) {
        return (!may_fail(draft, id)).then_some(Simpler::Input(0));
    }
    if let Some(x) = single_sum(draft, id) {
        let mut new = NewNode::new("Reshape").input(x).input(node.inputs[1]);
        new.attrs.clone_from(draft.attrs(id));
        return (op == "Reshape").then_some(Simpler::Node(new));
    }
    let inner = RESHAPES.iter().find_map(|op| source_of_op(draft, id, 0, op))?;
    let x = first_input(draft, inner);
    if draft.same_shape(x, id.into()) {
        // The inner node outputs as many elements as `x` has, or it fails itself.
        let fits = if op == "Reshape" { fits_open(draft, id) } else { !may_fail(draft, id) };
        return fits.then_some(Simpler::Other(x));
    }
    // A reshape that may fail stays: its shape is checked against the number of elements at run
    // time.
    let sound = op == "Reshape"
        && !may_fail(draft, inner)
        && draft.shape(inner.into()).full().is_some()
        && draft.shape(x).full().is_some();
    sound.then(|| {
        let mut new = NewNode::new("Reshape").input(x).input(node.inputs[1]);
        new.attrs.clone_from(draft.attrs(id));
        Simpler::Node(new)
    })
}

/// What the input of a node sums over dimensions of size 1: a gradient, for an operand that was not
/// broadcast. A negative zero, which the sum turns into a positive
/// one, stays.
fn single_sum(draft: &Draft<'_>, id: NodeId) -> Option<Output> {
    let sum = source_of_op(draft, id, 0, "Sum")?;
    let &[x, axes] = &draft.node(sum).inputs[..] else { return None };
    sums_single(draft, x, axes).then_some(x)
}

/// `Tile` by ones, `Pad` by zeros, reductions over no axis and the like.
pub(super) fn unchanged(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    let node = draft.node(id);
    let all = |index: usize, value: i64| {
        let input = *node.inputs.get(index)?;
        Some(draft.integers(input)?.iter().all(|found| *found == value))
    };
    let rank = node.inputs.first().and_then(|&input| draft.shape(input).rank());
    let same = match node.op.name.as_str() {
        "Tile" => all(1, 1)? && rows(draft, node.inputs[1]) == rank?,
        "Pad" | "PadV2" => zeros(draft, node.inputs[1]) && rows(draft, node.inputs[1]) == rank?,
        "MirrorPad" => zeros(draft, node.inputs[1]) && !may_fail(draft, id),
        "BroadcastTo" => draft.same_shape(node.inputs[0], id.into()),
        "Slice" => all(1, 0)? && draft.same_shape(node.inputs[0], id.into()),
        "StridedSlice" => {
            let masks = ["new_axis_mask", "shrink_axis_mask", "ellipsis_mask"];
            let plain =
                masks.iter().all(|mask| draft.attr(id, mask).and_then(|v| v.as_int()) == Some(0));
            plain && all(3, 1)? && draft.same_shape(node.inputs[0], id.into())
        }
        "Sum" | "Prod" | "Max" | "Min" | "All" | "Any" | "ReverseV2" => {
            draft.shape(node.inputs[1]).full().is_some_and(|axes| axes.elements() == 0)
        }
        "Cast" => {
            draft.dtype(node.inputs[0]) == draft.dtype(id.into()) && !flag(draft, id, "Truncate")
        }
        "Squeeze" => {
            integers_attr(draft, id, "squeeze_dims").is_some()
                && draft.same_shape(node.inputs[0], id.into())
        }
        _ => false,
    };
    same.then_some(Simpler::Input(0))
}

/// The length of a value's first dimension; 0 for a scalar, or if it is unknown.
fn rows(draft: &Draft<'_>, input: Output) -> usize {
    let shape = draft.shape(input);
    shape.dims().and_then(|dims| usize::try_from(*dims.first()?).ok()).unwrap_or(0)
}

/// Whether a constant of integers is all 0; paddings have two dimensions.
fn zeros(draft: &Draft<'_>, input: Output) -> bool {
    let integer = |tensor: &Tensor| matches!(tensor.dtype(), DType::INT32 | DType::INT64);
    draft.constant(input).is_some_and(|tensor| {
        integer(tensor) && tensor.as_bytes().is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0))
    })
}
