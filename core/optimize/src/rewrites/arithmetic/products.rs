//! Matrix products, which can transpose their operands without cost.

use super::{
    Simpler,
    facts::{first_input, flag, source_of_op},
    shapes::{is_identity, permutation},
};
use crate::{Draft, NewNode, failures::permutes};
use tenon_graph::NodeId;

/// The attributes that transpose the operands of a product.
fn flags(draft: &Draft<'_>, id: NodeId) -> Option<[&'static str; 2]> {
    let names = match draft.node(id).op.name.as_str() {
        "MatMul" => ["transpose_a", "transpose_b"],
        "BatchMatMul" | "BatchMatMulV2" => ["adj_x", "adj_y"],
        _ => return None,
    };
    // For complex types, these attributes also conjugate.
    let dtype = draft.dtype(id.into());
    (dtype.is_floating() || dtype.is_integer()).then_some(names)
}

/// The permutation that gives `perm` once the last two dimensions are swapped.
fn swapped(perm: &[i64]) -> Option<Vec<i64>> {
    let (&[.., a, b], mut swapped) = (perm, perm.to_vec()) else { return None };
    let end = swapped.len() - 2;
    (swapped[end], swapped[end + 1]) = (b, a);
    Some(swapped)
}

/// Replaces an operand that is transposed in the last two dimensions by the product's own
/// transposition. Other permuted dimensions keep a `Transpose`.
pub(super) fn operand(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    let names = flags(draft, id)?;
    (0..2).find_map(|at| {
        let inner = source_of_op(draft, id, at, "Transpose")?;
        let perm_input = draft.node(inner).inputs[1];
        // The transposition fails for another rank, which the product may accept.
        if !permutes(draft, first_input(draft, inner), perm_input) {
            return None;
        }
        let perm = draft.integers(perm_input)?;
        let ends_backwards = matches!(perm[..], [.., a, b] if a > b);
        let perm = swapped(&perm).filter(|_| ends_backwards)?;
        let mut new = NewNode::new(&draft.node(id).op.name).inputs(draft.node(id).inputs.clone());
        new.attrs.clone_from(draft.attrs(id));
        let mut new = new.attr(names[at], !flag(draft, id, names[at]));
        if is_identity(&perm) {
            new.inputs[at] = first_input(draft, inner);
            return Some(Simpler::Node(new));
        }
        // If another node reads the transposition, both would be computed.
        if draft.users(inner).len() > 1 || draft.is_kept(inner) {
            return None;
        }
        let value = permutation(&perm, draft.dtype(perm_input))?;
        let inner = NewNode::new("Transpose").input(first_input(draft, inner));
        Some(Simpler::Inner { new, at, inner, value, like: perm_input })
    })
}

/// Replaces `transpose(a b)` by `transpose(b) transpose(a)`.
pub(super) fn product(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    let node = draft.node(id);
    if node.op.name != "Transpose" {
        return None;
    }
    let perm = draft.integers(node.inputs[1])?;
    let inner = draft.source_of(id, 0)?;
    let [first, second] = flags(draft, inner)?;
    let only = draft.users(inner).len() == 1 && !draft.is_kept(inner);
    let fits = permutes(draft, node.inputs[0], node.inputs[1]);
    if !only || !fits || !draft.is_rewritable(inner) || !is_identity(&swapped(&perm)?) {
        return None;
    }
    let &[a, b] = &draft.node(inner).inputs[..] else { return None };
    let mut new = NewNode::new(&draft.node(inner).op.name).input(b).input(a);
    new.attrs.clone_from(draft.attrs(inner));
    let (x, y) = (flag(draft, inner, first), flag(draft, inner, second));
    Some(Simpler::Node(new.attr(first, !y).attr(second, !x)))
}
