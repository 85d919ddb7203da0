//! Elementwise ops: one functor each in `cu/op_unary.cuh` and `cu/op_binary.cuh`, under the op's
//! name. Beside it, a registration here names only types and bounds.
//!
//! A kernel is compiled at the first call that needs it, for the op, its types, the layout of its
//! operands, and [`access`]: the width of accesses and of indices. Kernels for complex numbers run
//! on the host only.
//!
//! | module | ops |
//! |---|---|
//! | [`unary`] | functions of one element; casts |
//! | [`binary`] | functions of two, with broadcasting; gradients; `BiasAdd` in [`bias`] |
//! | [`ternary`] | `Select`, `ClipByValue` |
//! | [`add_n`] | `AddN` |
//! | [`assign`], [`train`] | sums and differences in place; updates of variables by optimisers |
//! | [`chain`] | programs of elementwise ops as one kernel |

mod access;
mod add_n;
mod assign;
mod bias;
mod binary;
mod chain;
mod ternary;
mod train;
mod types;
mod unary;

use crate::compile::Variant;

/// The variants that these modules may compile; examples represent types and widths that differ in
/// nothing else.
pub(super) fn variants() -> Vec<Variant> {
    [
        unary::variants(),
        binary::variants(),
        ternary::variants(),
        add_n::variants(),
        chain::variants(),
        train::variants(),
    ]
    .concat()
}
