//! Gradients of functions of matrices, of eigenvalues of any matrix, and of solvers of bands and of least squares.
//!
//! Adjoints stand where TensorFlow's gradients of MatrixSquareRoot, TridiagonalSolve and MatrixSolveLs have transposes, which
//! are the same for real matrices only.
//!
//! Sources: of eigenvectors, C. Boeddeker et al., "On the computation of complex-valued gradients with application to
//! statistically optimum beamforming" (2017), equation 4.77; of the others, the differential of the defining equation.

use super::{
    Made, Outcome,
    decompose::{inverse_differences, needs_sides, sides},
    linalg::{adjoint, by_matrix, diagonal, diagonal_of, product, real_part, to_batch},
    part_of_shape,
};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::{KernelError, abi::GraphValue};

// With R the root and G its gradient, that by the matrix is the X with R^H X + X R^H = G, whose elements are the
// unknowns of one system of equations.
register_gradient!("MatrixSquareRoot", |c| {
    let (r, g) = (c.output(0), c.gradient(0)?);
    let eye = diagonal(c, c.unary("OnesLike", diagonal_of(c, r)?)?)?;
    let outer = |x, y| {
        let node = c.op("Einsum").input(x).input(y);
        node.attr("equation", "...ik,...jl->...ijkl").done()
    };
    let factors = c.add(outer(adjoint(c, r)?, eye)?, outer(eye, c.conj(r)?)?)?;
    let shape = c.shape_of(r)?;
    let side = part_of_shape(c, shape, Some(-1), None)?;
    let (batch, all) = (part_of_shape(c, shape, None, Some(-2))?, c.mul(side, side)?);
    let sized = |x, cols| {
        let node = c.op("ConcatV2").input(batch).input(all).input(cols);
        c.reshape(x, node.input(c.int(0)?).done()?)
    };
    let solution = c.binary("MatrixSolve", sized(factors, all)?, sized(g, c.ints(&[1])?)?)?;
    c.set(0, c.reshape(solution, shape)?)
});

register_gradient!("Eig", |c| {
    let (x, g) = (c.input(0), c.gradient(0)?);
    let (vectors, middle) = if c.attr::<bool>("compute_v")? {
        let (values, vectors) = (c.output(0), c.output(1));
        let turned = product(c, (vectors, true), (c.gradient(1)?, false))?;
        let own = diagonal(c, diagonal_of(c, real_part(c, turned)?)?)?;
        let among =
            product(c, (product(c, (vectors, true), (vectors, false))?, false), (own, false))?;
        let factors = c.conj(inverse_differences(c, values)?)?;
        let part = c.mul(factors, c.sub(turned, among)?)?;
        (vectors, c.add(diagonal(c, g)?, part)?)
    } else {
        let node = c.op("Eig").input(x).attr("compute_v", true).copy(&["Tout"]);
        (node.outputs()?[1], diagonal(c, g)?)
    };
    let right = product(c, (middle, false), (vectors, true))?;
    let gradient = c.binary("MatrixSolve", adjoint(c, vectors)?, right)?;
    c.set(0, c.cast(gradient, c.dtype(x))?)
});

/// Rows `from..to` of matrices; without an end, all from there on.
fn rows(c: &GradientContext<'_>, x: GraphValue, from: i64, to: Option<i64>) -> Made {
    // Bit 0 is the dimensions before the last two, bit 2 the columns.
    let masks = [4, if to.is_some() { 4 } else { 6 }];
    let node = c.op("StridedSlice").input(x).input(c.ints(&[0, from, 0])?);
    let node = node.input(c.ints(&[0, to.unwrap_or(0), 0])?).input(c.ints(&[1, 1, 1])?);
    let node = node.attr("begin_mask", masks[0]).attr("end_mask", masks[1]);
    node.attr("ellipsis_mask", 1i64).done()
}

/// One matrix below the other.
fn stacked(c: &GradientContext<'_>, parts: &[GraphValue]) -> Made {
    let node = c.op("ConcatV2").inputs(parts.iter().copied());
    node.input(c.int(-2)?).done()
}

/// Matrices whose rows are the next ones, the last one zero.
fn next(c: &GradientContext<'_>, x: GraphValue) -> Made {
    let zero = c.zeros_like(rows(c, x, 0, Some(1))?)?;
    stacked(c, &[rows(c, x, 1, None)?, zero])
}

/// Matrices whose rows are the ones before, the first one zero.
fn before(c: &GradientContext<'_>, x: GraphValue) -> Made {
    let zero = c.zeros_like(rows(c, x, 0, Some(1))?)?;
    stacked(c, &[zero, rows(c, x, 0, Some(-1))?])
}

/// The sums of the rows of the product of two matrices' elements, as matrices of one row.
fn row_sums(c: &GradientContext<'_>, x: GraphValue, y: GraphValue) -> Made {
    let sums = c.sum(c.mul(x, y)?, c.int(-1)?, false)?;
    c.binary("ExpandDims", sums, c.int(-2)?)
}

/// The diagonals of `x y^H` above, on and below the main one.
fn three_diagonals(
    c: &GradientContext<'_>,
    x: GraphValue,
    y: GraphValue,
) -> Result<[GraphValue; 3], KernelError> {
    let y = c.conj(y)?;
    Ok([row_sums(c, x, next(c, y)?)?, row_sums(c, x, y)?, row_sums(c, x, before(c, y)?)?])
}

register_gradient!("TridiagonalSolve", |c| {
    let diagonals = c.conj(c.input(0))?;
    let moved = |row: i64, by: i32| {
        let diagonal = rows(c, diagonals, row, Some(row + 1))?;
        c.op("Roll").input(diagonal).input(c.int(by)?).input(c.int(-1)?).done()
    };
    // What comes around is outside of the matrix.
    let turned = stacked(c, &[moved(2, -1)?, moved(1, 0)?, moved(0, 1)?])?;
    let node = c.op("TridiagonalSolve").input(turned).input(c.gradient(0)?);
    let by_right = node.copy(&["partial_pivoting", "perturb_singular"]).done()?;
    let by_diagonals = stacked(c, &three_diagonals(c, by_right, c.output(0))?)?;
    c.set(0, c.neg(by_diagonals)?)?;
    c.set(1, by_right)
});

register_gradient!("TridiagonalMatMul", |c| {
    let g = c.gradient(0)?;
    let by_diagonals = three_diagonals(c, g, c.input(3))?;
    for (input, gradient) in by_diagonals.into_iter().enumerate() {
        c.set(input, gradient)?;
    }
    let scaled = |input: usize| c.mul(adjoint(c, c.input(input))?, g);
    let sum = c.add(before(c, scaled(0)?)?, scaled(1)?)?;
    c.set(3, c.add(sum, next(c, scaled(2)?)?)?)
});

register_gradient!("BandedTriangularSolve", |c| {
    let (turned, is_lower): (bool, bool) = (c.attr("adjoint")?, c.attr("lower")?);
    let a = c.input(0);
    let node = c.op("BandedTriangularSolve").input(a).input(c.gradient(0)?);
    let by_right = node.attr("adjoint", !turned).attr("lower", is_lower).done()?;
    let by_left = by_matrix(c, by_right, turned)?;
    let shape = c.shape_of(a)?;
    let others = c.sub(part_of_shape(c, shape, Some(-2), Some(-1))?, c.ints(&[1])?)?;
    let none = c.ints(&[0])?;
    let ends = if is_lower { [c.neg(others)?, none] } else { [none, others] };
    let ends = c.op("ConcatV2").inputs(ends).input(c.int(0)?).done()?;
    let node = c.op("MatrixDiagPartV3").input(by_left).input(ends).input(c.scalar(a, 0.0)?);
    let by_bands = to_batch(c, node.attr("align", "LEFT_RIGHT").done()?, 0)?;
    // One diagonal comes without a dimension for the diagonals.
    c.set(0, c.reshape(by_bands, shape)?)?;
    c.set(1, to_batch(c, by_right, 1)?)
});

register_gradient!("MatrixSolveLs", |c| {
    if !c.attr::<bool>("fast")? {
        return Err(KernelError::unimplemented(
            "the gradient of MatrixSolveLs is defined for `fast` only: set it to true",
        ));
    }
    let [height, width] = sides(c, c.input(0)).ok_or_else(|| needs_sides(c))?;
    if height >= width { deep_solution(c) } else { wide_solution(c) }
});

/// The solution of `(F + r I) X = B` with the regularizer r for a product F of matrices and their adjoints, as a function of B.
fn regularized<'c, 'a>(
    c: &'c GradientContext<'a>,
    square: GraphValue,
) -> Result<impl Fn(GraphValue) -> Made + use<'c, 'a>, KernelError> {
    let regularizer = c.cast(c.input(2), c.dtype(square))?;
    let on_diagonal = c.add(diagonal_of(c, square)?, regularizer)?;
    let factor = c.unary("Cholesky", c.binary("MatrixSetDiag", square, on_diagonal)?)?;
    Ok(move |b| {
        let inner = c.op("MatrixTriangularSolve").input(factor).input(b).done()?;
        c.op("MatrixTriangularSolve").input(factor).input(inner).attr("adjoint", true).done()
    })
}

/// The gradient of `(A^H A + r I)^-1 A^H B`.
fn deep_solution(c: &GradientContext<'_>) -> Outcome {
    let (a, b, x) = (c.input(0), c.input(1), c.output(0));
    let solve = regularized(c, product(c, (a, true), (a, false))?)?;
    let z = solve(c.gradient(0)?)?;
    let xz = product(c, (x, false), (z, true))?;
    let both = c.add(xz, adjoint(c, xz)?)?;
    let of_product = product(c, (a, false), (both, false))?;
    c.set(0, c.sub(product(c, (b, false), (z, true))?, of_product)?)?;
    c.set(1, product(c, (a, false), (z, false))?)
}

/// The gradient of `A^H (A A^H + r I)^-1 B`.
fn wide_solution(c: &GradientContext<'_>) -> Outcome {
    let (a, b, g) = (c.input(0), c.input(1), c.gradient(0)?);
    let solve = regularized(c, product(c, (a, false), (a, true))?)?;
    let by_right = solve(product(c, (a, false), (g, false))?)?;
    let middle = solve(b)?;
    let first = product(c, (by_right, false), (product(c, (middle, true), (a, false))?, false))?;
    let rest = c.sub(g, product(c, (a, true), (by_right, false))?)?;
    c.set(0, c.sub(product(c, (middle, false), (rest, true))?, first)?)?;
    c.set(1, by_right)
}
