//! Simplification of nested casts.

use super::{
    Simpler,
    facts::{first_input, flag, source_of_op},
};
use crate::{Draft, NewNode};
use tenon_framework::DType;
use tenon_graph::NodeId;

/// Replaces `cast(cast(x))` by one cast, or by `x`, if the inner cast loses nothing.
pub(super) fn casts(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    if draft.node(id).op.name != "Cast" || flag(draft, id, "Truncate") {
        return None;
    }
    let inner =
        source_of_op(draft, id, 0, "Cast").filter(|inner| !flag(draft, *inner, "Truncate"))?;
    let x = first_input(draft, inner);
    let (from, through, to) = (draft.dtype(x), draft.dtype(inner.into()), draft.dtype(id.into()));
    if !is_exact(from, through) {
        return None;
    }
    if from == to {
        return Some(Simpler::Other(x));
    }
    // Integers wrap in casts to narrower types; floating-point numbers out of range do not.
    let wraps = is_integral(through) || !is_integral(to) || is_exact(from, to);
    let same = is_exact(through, to) || (is_integral(from) && wraps);
    same.then(|| Simpler::Node(NewNode::new("Cast").input(x).attr("DstT", to)))
}

/// The number of bits up to which a type holds all integers, and whether it is signed.
fn integers_held(dtype: DType) -> Option<(u32, bool)> {
    Some(match dtype {
        DType::BOOL => (1, false),
        DType::UINT8 => (8, false),
        DType::UINT16 => (16, false),
        DType::UINT32 => (32, false),
        DType::UINT64 => (64, false),
        DType::INT8 => (7, true),
        DType::INT16 => (15, true),
        DType::INT32 => (31, true),
        DType::INT64 => (63, true),
        DType::BFLOAT16 => (8, true),
        DType::HALF => (11, true),
        DType::FLOAT => (24, true),
        DType::DOUBLE => (53, true),
        _ => return None,
    })
}

fn is_integral(dtype: DType) -> bool {
    dtype == DType::BOOL || dtype.is_integer()
}

/// Whether `to` has every value of `from`, so that a cast loses nothing.
fn is_exact(from: DType, to: DType) -> bool {
    let wider = matches!(
        (from, to),
        (DType::HALF | DType::BFLOAT16, DType::FLOAT | DType::DOUBLE)
            | (DType::FLOAT, DType::DOUBLE)
    );
    let held = || match (integers_held(from), integers_held(to)) {
        // Only a cast from bool to bool is exact.
        (Some((bits, signed)), Some((most, takes_sign))) => {
            to != DType::BOOL && bits <= most && (takes_sign || !signed)
        }
        _ => false,
    };
    from == to || wider || (is_integral(from) && held())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cast_is_exact_where_no_value_is_lost() {
        let exact = [
            (DType::INT8, DType::INT16),
            (DType::UINT8, DType::INT16),
            (DType::UINT8, DType::BFLOAT16),
            (DType::INT16, DType::FLOAT),
            (DType::INT32, DType::DOUBLE),
            (DType::BOOL, DType::INT8),
            (DType::HALF, DType::FLOAT),
        ];
        for (from, to) in exact {
            assert!(is_exact(from, to), "{from} {to}");
        }
        let lossy = [
            (DType::INT8, DType::UINT16),
            (DType::UINT8, DType::INT8),
            (DType::INT32, DType::FLOAT),
            (DType::INT64, DType::DOUBLE),
            (DType::FLOAT, DType::INT64),
            (DType::HALF, DType::BFLOAT16),
            (DType::UINT8, DType::BOOL),
            (DType::COMPLEX64, DType::COMPLEX128),
        ];
        for (from, to) in lossy {
            assert!(!is_exact(from, to), "{from} {to}");
        }
    }
}
