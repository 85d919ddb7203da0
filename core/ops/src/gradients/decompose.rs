//! Gradients of decompositions of matrices.
//!
//! Sources: I. Murray, "Differentiation of the Cholesky decomposition" (2016); M. Giles, "Collected matrix derivative
//! results for forward and reverse mode algorithmic differentiation" (2008); S. Walter and L. Lehmann, "Algorithmic
//! differentiation of linear algebra functions" (2010). Where values repeat, TensorFlow's quotients are used, which give
//! 0 for 1 / 0.

use super::{
    Made, Outcome,
    linalg::{adjoint, diagonal, diagonal_of, lower, product, real_part},
};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::{KernelError, abi::GraphValue};

register_gradient!("Cholesky", |c| {
    let (l, g) = (c.output(0), c.gradient(0)?);
    let eye = diagonal(c, c.unary("OnesLike", diagonal_of(c, l)?)?)?;
    let inverse = c.op("MatrixTriangularSolve").input(l).input(eye).done()?;
    let middle = lower(c, half_diagonal(c, product(c, (l, true), (g, false))?)?)?;
    let inner = product(c, (inverse, true), (middle, false))?;
    let gradient = product(c, (inner, false), (inverse, false))?;
    c.set(0, c.scale(c.add(gradient, adjoint(c, gradient)?)?, 0.5)?)
});

/// Matrices with half of their diagonals.
fn half_diagonal(c: &GradientContext<'_>, x: GraphValue) -> Made {
    c.binary("MatrixSetDiag", x, c.scale(diagonal_of(c, x)?, 0.5)?)
}

/// `1 / x`, and 0 for 0.
fn inverse(c: &GradientContext<'_>, x: GraphValue) -> Made {
    let square = c.add(c.mul(x, x)?, c.scalar(x, 1e-20)?)?;
    c.mul(x, c.unary("Reciprocal", square)?)
}

/// The matrices of `1 / (v[j] - v[i])`, with 0 on the diagonal.
pub(super) fn inverse_differences(c: &GradientContext<'_>, v: GraphValue) -> Made {
    let rows = c.binary("ExpandDims", v, c.int(-2)?)?;
    let columns = c.binary("ExpandDims", v, c.int(-1)?)?;
    let inverses = inverse(c, c.sub(rows, columns)?)?;
    c.binary("MatrixSetDiag", inverses, c.zeros_like(v)?)
}

register_gradient!("SelfAdjointEigV2", |c| {
    let g = c.gradient(0)?;
    let (vectors, middle) = if c.attr::<bool>("compute_v")? {
        let (values, vectors) = (c.output(0), c.output(1));
        let turned = product(c, (vectors, true), (c.gradient(1)?, false))?;
        let part = c.mul(inverse_differences(c, values)?, turned)?;
        (vectors, c.add(diagonal(c, g)?, part)?)
    } else {
        let node = c.op("SelfAdjointEigV2").input(c.input(0)).attr("compute_v", true);
        (node.outputs()?[1], diagonal(c, g)?)
    };
    let inner = product(c, (middle, false), (vectors, true))?;
    let gradient = product(c, (vectors, false), (inner, false))?;
    // Only the lower half of the input is read.
    let gradient = lower(c, c.add(gradient, adjoint(c, gradient)?)?)?;
    c.set(0, half_diagonal(c, gradient)?)
});

/// A matrix's rows and columns where both are known.
pub(super) fn sides(c: &GradientContext<'_>, x: GraphValue) -> Option<[i64; 2]> {
    let dims = c.dims(x)?;
    let [.., rows, columns] = dims[..] else { return None };
    (rows >= 0 && columns >= 0).then_some([rows, columns])
}

pub(super) fn needs_sides(c: &GradientContext<'_>) -> KernelError {
    KernelError::unimplemented(format!(
        "the gradient of {} needs the number of rows and of columns before the step: give its input a shape",
        c.node_op()
    ))
}

/// Columns `from..to` of matrices.
fn columns(c: &GradientContext<'_>, x: GraphValue, [from, to]: [i64; 2]) -> Made {
    let node = c.op("StridedSlice").input(x).input(c.ints(&[0, from])?).input(c.ints(&[0, to])?);
    let node = node.input(c.ints(&[1, 1])?).attr("ellipsis_mask", 1i64);
    node.done()
}

register_gradient!("Qr", |c| {
    let (q, r) = (c.output(0), c.output(1));
    let (dq, dr) = (c.gradient(0)?, c.gradient(1)?);
    let [rows, _] = sides(c, q).ok_or_else(|| needs_sides(c))?;
    let [height, width] = sides(c, r).ok_or_else(|| needs_sides(c))?;
    if rows > width && rows == sides(c, q).map_or(0, |[_, columns]| columns) && height != width {
        return Err(KernelError::unimplemented(
            "the gradient of Qr with full_matrices is defined for inputs with at most as many rows as columns",
        ));
    }
    if rows >= width {
        return c.set(0, deep(c, [q, r], [dq, dr])?);
    }
    let (first, rest) = ([0, rows], [rows, width]);
    let (y, dv) = (columns(c, c.input(0), rest)?, columns(c, dr, rest)?);
    let dq = c.add(dq, product(c, (y, false), (dv, true))?)?;
    let left = deep(c, [q, columns(c, r, first)?], [dq, columns(c, dr, first)?])?;
    let right = product(c, (q, false), (dv, false))?;
    c.set(0, c.op("ConcatV2").input(left).input(right).input(c.int(-1)?).done()?)
});

/// `x` times the inverse of the adjoint of the triangular matrices `r`.
fn over(c: &GradientContext<'_>, x: GraphValue, r: GraphValue) -> Made {
    let node = c.op("MatrixTriangularSolve").input(r).input(adjoint(c, x)?);
    adjoint(c, node.attr("lower", false).attr("adjoint", false).done()?)
}

/// The gradient of `a = q r` for matrices with at least as many rows as columns.
fn deep(c: &GradientContext<'_>, [q, r]: [GraphValue; 2], [dq, dr]: [GraphValue; 2]) -> Made {
    let qdq = product(c, (q, true), (dq, false))?;
    let rdr = product(c, (r, false), (dr, true))?;
    let skew = |x| c.sub(x, adjoint(c, x)?);
    let inner = lower(c, c.add(skew(qdq)?, skew(rdr)?)?)?;
    let first = product(c, (q, false), (c.add(dr, over(c, inner, r)?)?, false))?;
    let second = over(c, c.sub(dq, product(c, (q, false), (qdq, false))?)?, r)?;
    let gradient = c.add(first, second)?;
    if !c.dtype(q).is_complex() {
        return Ok(gradient);
    }
    let rest = diagonal(c, diagonal_of(c, c.sub(rdr, adjoint(c, qdq)?)?)?)?;
    let rest = c.sub(rest, real_part(c, rest)?)?;
    c.add(gradient, over(c, product(c, (q, false), (rest, true))?, r)?)
}

register_gradient!("Svd", |c| {
    let x = c.input(0);
    let ds = c.cast(c.gradient(0)?, c.dtype(x))?;
    if !c.attr::<bool>("compute_uv")? {
        let node = c.op("Svd").input(x).attr("compute_uv", true).attr("full_matrices", false);
        let parts = node.outputs()?;
        let inner = product(c, (diagonal(c, ds)?, false), (parts[2], true))?;
        return c.set(0, product(c, (parts[1], false), (inner, false))?);
    }
    singular(c, ds)
});

/// The factors of a decomposition with at most as many rows as columns, and their gradients.
struct Singular {
    s: GraphValue,
    u: GraphValue,
    v: GraphValue,
    du: GraphValue,
    dv: GraphValue,
    rows: i64,
    columns: i64,
}

fn singular(c: &GradientContext<'_>, ds: GraphValue) -> Outcome {
    let x = c.input(0);
    let [rows, columns] = sides(c, x).ok_or_else(|| needs_sides(c))?;
    let is_full: bool = c.attr("full_matrices")?;
    if is_full && (rows - columns).abs() > 1 {
        return Err(KernelError::unimplemented(format!(
            "the gradient of Svd with full_matrices is defined for a difference of rows and columns of at most 1, found {rows} rows and {columns} columns"
        )));
    }
    let s = c.cast(c.output(0), c.dtype(x))?;
    let (left, right) = ((c.output(1), c.gradient(1)?), (c.output(2), c.gradient(2)?));
    let ((u, du), (v, dv)) = if rows > columns { (right, left) } else { (left, right) };
    let (low, high) = (rows.min(columns), rows.max(columns));
    let parts = Singular { s, u, v, du, dv, rows: low, columns: high };
    let gradient = parts.gradient(c, ds, is_full)?;
    c.set(0, if rows > columns { adjoint(c, gradient)? } else { gradient })
}

impl Singular {
    fn gradient(&self, c: &GradientContext<'_>, ds: GraphValue, is_full: bool) -> Made {
        let Singular { s, u, du, .. } = *self;
        let s_matrix = diagonal(c, s)?;
        let first = [0, self.rows];
        let (v1, dv1) = (columns(c, self.v, first)?, columns(c, self.dv, first)?);
        let (udu, vdv) =
            (product(c, (u, true), (du, false))?, product(c, (v1, true), (dv1, false))?);
        let f = inverse_differences(c, c.unary("Square", s)?)?;
        let both = |x| {
            let part = c.mul(f, x)?;
            c.add(part, adjoint(c, part)?)
        };
        let of_u = product(c, (both(udu)?, false), (s_matrix, false))?;
        let of_v = product(c, (s_matrix, false), (both(vdv)?, false))?;
        let middle = c.add(diagonal(c, ds)?, c.add(of_u, of_v)?)?;
        let between = |middle| {
            let inner = product(c, (middle, false), (v1, true))?;
            product(c, (u, false), (inner, false))
        };
        let mut gradient = between(middle)?;
        let inverse = diagonal(c, inverse(c, s)?)?;
        if self.rows != self.columns {
            let rest = self.beyond(c, [v1, dv1], is_full)?;
            let factor = product(c, (u, false), (inverse, false))?;
            gradient = c.add(gradient, product(c, (factor, false), (rest, false))?)?;
        }
        if c.dtype(s).is_complex() {
            let l = diagonal(c, diagonal_of(c, vdv)?)?;
            let skew = c.sub(adjoint(c, l)?, l)?;
            let turned = between(product(c, (inverse, false), (skew, false))?)?;
            gradient = c.add(gradient, c.scale(turned, 0.5)?)?;
        }
        Ok(gradient)
    }

    /// The part of the gradient of the right factor outside of the space of its first columns.
    fn beyond(&self, c: &GradientContext<'_>, [v1, dv1]: [GraphValue; 2], is_full: bool) -> Made {
        let turned = adjoint(c, dv1)?;
        let inside = product(c, (product(c, (turned, false), (v1, false))?, false), (v1, true))?;
        let rest = c.sub(turned, inside)?;
        if !is_full {
            return Ok(rest);
        }
        let last = [self.rows, self.columns];
        let (v2, dv2) = (columns(c, self.v, last)?, columns(c, self.dv, last)?);
        let across = product(c, (v1, true), (dv2, false))?;
        c.sub(rest, product(c, (across, false), (v2, true))?)
    }
}
