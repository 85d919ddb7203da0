//! The effect of broadcasting on shapes, as far as it is certain before a step.

use crate::Draft;
use tenon_framework::infer::Dimension;
use tenon_graph::Output;

/// Whether broadcasting `of` with `operand` is certain to keep the shape of `of`. That holds if
/// `operand` is a scalar, if it has the same shape, or if its rank is not greater and each of its
/// dimensions is 1 or equal to the dimension it is aligned with. For an `of` of unknown rank it
/// holds only for a scalar and for `of` itself.
pub(crate) fn leaves_shape(draft: &Draft<'_>, operand: Output, of: Output) -> bool {
    let fits = |own: Dimension, of: Dimension| own == of || own.value() == 1;
    operand == of
        || match (dims(draft, operand), dims(draft, of)) {
            (Some([]), _) => true,
            (Some(own), Some(of)) => own.len() <= of.len() && aligned(own, of, fits),
            _ => false,
        }
}

/// Whether two values are certain to broadcast with each other.
pub(crate) fn surely_broadcast(draft: &Draft<'_>, a: Output, b: Output) -> bool {
    let fits = |a: Dimension, b: Dimension| a == b || a.value() == 1 || b.value() == 1;
    a == b
        || match (dims(draft, a), dims(draft, b)) {
            (Some([]), _) | (_, Some([])) => true,
            (Some(a), Some(b)) => aligned(a, b, fits),
            _ => false,
        }
}

fn dims<'d>(draft: &'d Draft<'_>, output: Output) -> Option<&'d [Dimension]> {
    draft.value(output)?.shape.dims()
}

/// Whether all aligned dimensions satisfy `fits`; dimensions are aligned from the last one.
fn aligned(a: &[Dimension], b: &[Dimension], fits: impl Fn(Dimension, Dimension) -> bool) -> bool {
    a.iter().rev().zip(b.iter().rev()).all(|(&a, &b)| fits(a, b))
}
