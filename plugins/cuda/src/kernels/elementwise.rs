//! Elementwise ops: one functor each in `cu/op_unary.cuh` and `cu/op_binary.cuh`, under the op's name, which is all that
//! a registration here says beside types and bounds.
//!
//! Kernels are compiled at the first call that needs them, for the op, its types, the layout of its operands, and
//! [`access`]: how wide accesses and indices are. Complex numbers are the host's.
//!
//! | module | ops |
//! |---|---|
//! | [`unary`] | of one element; casts |
//! | [`binary`] | of two, with broadcasting; gradients; `BiasAdd` in [`bias`] |
//! | [`ternary`] | `Select`, `ClipByValue` |
//! | [`add_n`] | `AddN` |
//! | [`chain`] | programs of elementwise ops as one kernel |

mod access;
mod add_n;
mod bias;
mod binary;
mod chain;
mod ternary;
mod types;
mod unary;

use crate::compile::Variant;

/// What the modules may compile, of types and widths that differ only in those by examples.
pub(super) fn variants() -> Vec<Variant> {
    [
        unary::variants(),
        binary::variants(),
        ternary::variants(),
        add_n::variants(),
        chain::variants(),
    ]
    .concat()
}
