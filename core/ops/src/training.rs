//! Updates of variables by gradients: the rules of optimisers.
//!
//! Each rule has up to four ops: `Apply...` updates all of a variable behind a reference,
//! `ResourceApply...` of one behind a handle, `SparseApply...` and `ResourceSparseApply...` update the
//! rows that indices name. The first inputs are the variables (the one that is trained, then the slots
//! of the rule), in the same order for all ops of a rule. The formulas are those of the module's
//! `update_ops!`; all operations are element by element.
//!
//! The kernels are plugins/train.
//!
//! # Invariants
//! - Variables and gradient have one shape; a gradient of rows has as many rows as there are indices.
//!   All other inputs are scalars.
//! - An op of references passes the reference to the trained variable on.

mod adaptive;
mod descent;
mod misc;
mod proximal;
mod sampling;
mod sign;

use crate::shape::{input_of_rank, input_of_rank_at_least, same_size};
use tenon_author::{ShapeContext, ShapeHandle, ShapeResult};
use tenon_framework::KernelError;

const NUMBERS: &str = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}";
const INDICES: &str = "Tindices: {int32, int64}";
const LOCKING: &str = "use_locking: bool = false";

/// Which inputs of an op are what.
#[derive(Clone, Copy)]
struct Update {
    /// Number of variables; they come first.
    variables: usize,
    /// Position of the gradient; those of rows have their indices after it.
    gradient: usize,
    is_sparse: bool,
    by_handle: bool,
}

impl Update {
    fn variable(self, c: &ShapeContext<'_>, at: usize) -> ShapeHandle {
        if !self.by_handle {
            return c.input(at);
        }
        let parts = c.input_handle(at);
        parts.first().map_or_else(|| c.unknown(), |&(_, shape)| shape)
    }

    /// Checks the inputs; the output, if there is one, is the reference to the first variable.
    fn infer(self, c: &ShapeContext<'_>) -> ShapeResult {
        let mut variable = self.variable(c, 0);
        for at in 1..self.variables {
            variable = c.merge(variable, self.variable(c, at))?;
        }
        let first = self.variables;
        let beside = [self.gradient, self.gradient + usize::from(self.is_sparse)];
        for at in (first..c.input_count()).filter(|at| !beside.contains(at)) {
            input_of_rank(c, at, "a scalar input", 0)?;
        }
        variable = match self.is_sparse {
            true => self.rows(c, variable)?,
            false => c.merge(variable, c.input(self.gradient))?,
        };
        if c.output_count() > 0 { c.set_output(0, variable) } else { Ok(()) }
    }

    /// The shape of the variable, with what the rows of the gradient tell about it.
    fn rows(self, c: &ShapeContext<'_>, variable: ShapeHandle) -> Result<ShapeHandle, KernelError> {
        let indices = input_of_rank(c, self.gradient + 1, "indices", 1)?;
        let gradient = input_of_rank_at_least(c, self.gradient, "grad", 1)?;
        let Some(rank) = c.rank(gradient) else { return Ok(variable) };
        same_size(c, "rows of grad", c.dim(indices, 0), c.dim(gradient, 0))?;
        let sizes = (1..rank).map(|at| c.dim(gradient, at));
        let row: Vec<_> = std::iter::once(c.make_dim(None)).chain(sizes).collect();
        c.merge(variable, c.make_shape(&row))
    }
}

/// Registers ops of one rule that have the same inputs beside their variables. Each op has its name,
/// `handle` or `reference`, and what it updates.
macro_rules! update_ops {
    (variables $variables:tt, inputs $inputs:tt, gradient $gradient:literal, attrs $attrs:tt,
        $kind:ident {$($by:ident $name:literal),* $(,)?}, $summary:literal) => {$(
        update_ops!(@$by $name, $variables, $inputs, $gradient, $attrs, $kind, $summary);
    )*};
    (@reference $name:literal, [$($variable:literal),*], [$($input:literal),*], $gradient:literal,
        [$($attr:expr),*], $kind:ident, $summary:literal) => {
        tenon_author::register_op!(
            $name,
            inputs = &[$(concat!($variable, ": Ref(T)"),)* $($input),*],
            outputs = &["out: Ref(T)"],
            attrs = &[$($attr),*],
            shape = |c: &tenon_author::ShapeContext<'_>| super::Update {
                variables: [$($variable),*].len(),
                gradient: $gradient,
                is_sparse: update_ops!(@is_sparse $kind),
                by_handle: false,
            }.infer(c),
            summary = $summary,
        );
    };
    (@handle $name:literal, [$($variable:literal),*], [$($input:literal),*], $gradient:literal,
        [$($attr:expr),*], $kind:ident, $summary:literal) => {
        tenon_author::register_op!(
            $name,
            inputs = &[$(concat!($variable, ": resource"),)* $($input),*],
            attrs = &[$($attr),*],
            stateful = true,
            shape = |c: &tenon_author::ShapeContext<'_>| super::Update {
                variables: [$($variable),*].len(),
                gradient: $gradient,
                is_sparse: update_ops!(@is_sparse $kind),
                by_handle: true,
            }.infer(c),
            summary = $summary,
        );
    };
    (@is_sparse dense) => { false };
    (@is_sparse sparse) => { true };
}

use update_ops;

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn variables_and_gradient_have_one_shape() {
        check(
            "ApplyMomentum",
            &[],
            &[
                (&["[2,?]", "[2,3]", "[]", "?", "[]"], "[2,3]"),
                (&["?", "[2,3]", "?", "[2,3]", "?"], "[2,3]"),
                (
                    &["[2]", "[3]", "[]", "[2]", "[]"],
                    "! shapes [2] and [3] must be equal: dimension 0: expected 2, found 3: var is [2], accum is [3], lr is [], grad is [2], momentum is []",
                ),
                (
                    &["[2]", "[2]", "[]", "[3]", "[]"],
                    "! shapes [2] and [3] must be equal: dimension 0: expected 2, found 3: var is [2], accum is [2], lr is [], grad is [3], momentum is []",
                ),
                (
                    &["[2]", "[2]", "[1]", "[2]", "[]"],
                    "! a scalar input must have 0 dimensions, got 1: var is [2], accum is [2], lr is [1], grad is [2], momentum is []",
                ),
            ],
        );
        check("ResourceApplyGradientDescent", &[], &[(&["[]", "[]", "[4]"], "")]);
    }

    #[test]
    fn a_gradient_of_rows_has_a_row_for_each_index() {
        check(
            "SparseApplyAdagrad",
            &[],
            &[
                (&["[9,?]", "[9,?]", "[]", "[n,3]", "[n]"], "[9,3]"),
                (&["[9,2]", "[9,2]", "[]", "?", "[4]"], "[9,2]"),
                (&["[9,2]", "[9,2]", "[]", "[4,2]", "[3]"], "! rows of grad must be 3, got 4"),
                (
                    &["[9,2]", "[9,2]", "[]", "[4,2]", "[4,1]"],
                    "! indices must have 1 dimensions, got 2",
                ),
                (
                    &["[9,2]", "[9,2]", "[]", "[4,3]", "[4]"],
                    "! shapes [9,2] and [?,3] must be equal: dimension 1: expected 2, found 3: var is [9,2], accum is [9,2], lr is [], grad is [4,3], indices is [4]",
                ),
            ],
        );
    }
}
