//! What broadcasting does to a shape, as far as it is certain before a step.

use super::Draft;
use crate::Output;
use tenon_framework::infer::Dimension;

/// Whether `operand`, broadcast with `of`, leaves the shape of `of` as it is, whatever is fed. It does where it is
/// a scalar, where it has the same shape, and where its rank is not greater and each of its dimensions is 1 or the
/// one that it meets. Of a value of unknown rank only a scalar and the value itself are known to leave the shape.
pub(super) fn leaves_shape(draft: &Draft<'_>, operand: Output, of: Output) -> bool {
    let fits = |own: Dimension, of: Dimension| own == of || own.value() == 1;
    operand == of
        || match (dims(draft, operand), dims(draft, of)) {
            (Some([]), _) => true,
            (Some(own), Some(of)) => own.len() <= of.len() && aligned(own, of, fits),
            _ => false,
        }
}

/// Whether two values broadcast to each other, whatever is fed.
pub(super) fn surely_broadcast(draft: &Draft<'_>, a: Output, b: Output) -> bool {
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

/// Whether all dimensions that meet satisfy `fits`: the last ones meet.
fn aligned(a: &[Dimension], b: &[Dimension], fits: impl Fn(Dimension, Dimension) -> bool) -> bool {
    a.iter().rev().zip(b.iter().rev()).all(|(&a, &b)| fits(a, b))
}
