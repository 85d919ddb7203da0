//! Shapes that are operands of `BroadcastGradientArgs`: what is certain of the dimensions over which the
//! gradients of broadcast operands are summed.

use crate::Draft;
use tenon_framework::infer::{Item, SymbolicValue};
use tenon_graph::{NodeId, Output};

/// The op whose outputs are the dimensions to sum over.
const AXES: &str = "BroadcastGradientArgs";

/// The sizes of both operands.
fn sizes(draft: &Draft<'_>, id: NodeId) -> Option<[SymbolicValue; 2]> {
    let &[a, b] = &draft.node(id).inputs[..] else { return None };
    Some([draft.value(a)?.symbolic_value()?, draft.value(b)?.symbolic_value()?])
}

/// The sizes of the operand over whose repetitions a gradient is summed along `axes`, and of the other
/// operand.
pub(crate) fn operands(draft: &Draft<'_>, axes: Output) -> Option<[SymbolicValue; 2]> {
    let source = draft.source(axes).filter(|id| draft.node(*id).op.name == AXES)?;
    let mut sizes = sizes(draft, source)?;
    if axes.output == 1 {
        sizes.reverse();
    }
    Some(sizes)
}

/// Whether broadcasting with `other` is certain to keep the sizes `own`.
fn keeps(own: &SymbolicValue, other: &SymbolicValue) -> bool {
    let (own, other) = (own.items(), other.items());
    let fits = |(own, other): (&Item, &Item)| {
        *other == Item::Known(1) || (own == other && *own != Item::Unknown)
    };
    other.len() <= own.len() && own.iter().rev().zip(other.iter().rev()).all(fits)
}

/// Whether a node that computes such dimensions cannot fail, because one operand has the shape of the
/// result.
pub(crate) fn has_axes(draft: &Draft<'_>, id: NodeId) -> bool {
    sizes(draft, id).is_some_and(|[a, b]| keeps(&a, &b) || keeps(&b, &a))
}

/// Whether a sum over `axes` is one over dimensions of size 1, or over none: they are those of an operand
/// that has the shape of the result, and `x` has that shape too.
pub(crate) fn sums_single(draft: &Draft<'_>, x: Output, axes: Output) -> bool {
    let Some([own, other]) = operands(draft, axes) else { return false };
    let Some(dims) = draft.value(x).and_then(|value| value.shape.dims()) else { return false };
    keeps(&own, &other) && dims.iter().map(|&dim| Item::from(dim)).eq(own.items().iter().copied())
}
