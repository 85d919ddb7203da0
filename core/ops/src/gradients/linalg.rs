//! Gradients of products, diagonals and bands of matrices.

use super::{Made, Outcome};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::{DType, abi::GraphValue};

/// A matrix, and whether its adjoint is taken.
type Side = (GraphValue, bool);

/// The product of matrices, or of their adjoints.
pub(super) fn product(c: &GradientContext<'_>, (x, adjoint_x): Side, (y, adjoint_y): Side) -> Made {
    let node = c.op("BatchMatMulV2").input(x).input(y);
    node.attr("adj_x", adjoint_x).attr("adj_y", adjoint_y).done()
}

/// The conjugated transpose of matrices.
pub(super) fn adjoint(c: &GradientContext<'_>, x: GraphValue) -> Made {
    c.conj(c.op("Einsum").input(x).attr("equation", "...ij->...ji").done()?)
}

/// Diagonal matrices of diagonals.
pub(super) fn diagonal(c: &GradientContext<'_>, x: GraphValue) -> Made {
    c.unary("MatrixDiag", x)
}

/// What is on the diagonals of matrices.
pub(super) fn diagonal_of(c: &GradientContext<'_>, x: GraphValue) -> Made {
    c.unary("MatrixDiagPart", x)
}

/// The elements of matrices on and below the diagonal.
pub(super) fn lower(c: &GradientContext<'_>, x: GraphValue) -> Made {
    band(c, x, [-1, 0])
}

/// The elements of matrices in a band of so many lower and upper diagonals; -1 means all of them.
pub(super) fn band(c: &GradientContext<'_>, x: GraphValue, [below, above]: [i32; 2]) -> Made {
    c.op("MatrixBandPart").input(x).input(c.int(below)?).input(c.int(above)?).done()
}

// Products. The four forms of `x y`, by whether `x` and `y` are transposed.
register_gradient!("MatMul", |c| {
    let flags = [c.attr("transpose_a")?, c.attr("transpose_b")?];
    // A transpose of conjugates: the product of real matrices has no adjoints.
    let (x, y) = (c.conj(c.input(0))?, c.conj(c.input(1))?);
    let made = |(x, transpose_x): Side, (y, transpose_y): Side| {
        let node = c.op("MatMul").input(x).input(y);
        node.attr("transpose_a", transpose_x).attr("transpose_b", transpose_y).done()
    };
    factors(c, [x, y], flags, made, |_, value| Ok(value))
});
register_gradient!("BatchMatMul", |c| {
    let made = |(x, adjoint_x): Side, (y, adjoint_y): Side| {
        let node = c.op("BatchMatMul").input(x).input(y);
        node.attr("adj_x", adjoint_x).attr("adj_y", adjoint_y).done()
    };
    let flags = [c.attr("adj_x")?, c.attr("adj_y")?];
    factors(c, [c.input(0), c.input(1)], flags, made, |_, value| Ok(value))
});
register_gradient!("BatchMatMulV2", batch_product);
register_gradient!("BatchMatMulV3", batch_product);

fn batch_product(c: &GradientContext<'_>) -> Outcome {
    let flags = [c.attr("adj_x")?, c.attr("adj_y")?];
    let (x, y) = (c.input(0), c.input(1));
    // The inputs of version 3 may differ in type, from each other and from the result.
    let made = |(x, adjoint_x): Side, (y, adjoint_y): Side| {
        let dtype = c.dtype(c.output(0));
        product(c, (c.cast(x, dtype)?, adjoint_x), (c.cast(y, dtype)?, adjoint_y))
    };
    factors(c, [x, y], flags, made, |index, value| {
        c.cast(to_batch(c, value, index)?, c.dtype(c.input(index)))
    })
}

/// Sets the gradients of both factors; `finish` gets the number of a factor and its product.
fn factors(
    c: &GradientContext<'_>,
    [x, y]: [GraphValue; 2],
    [turned_x, turned_y]: [bool; 2],
    made: impl Fn(Side, Side) -> Made,
    finish: impl Fn(usize, GraphValue) -> Made,
) -> Outcome {
    let g = c.gradient(0)?;
    if c.wants(0) {
        let by_x = match turned_x {
            false => made((g, false), (y, !turned_y))?,
            true => made((y, turned_y), (g, true))?,
        };
        c.set(0, finish(0, by_x)?)?;
    }
    if c.wants(1) {
        let by_y = match turned_y {
            false => made((x, !turned_x), (g, false))?,
            true => made((g, true), (x, turned_x))?,
        };
        c.set(1, finish(1, by_y)?)?;
    }
    Ok(())
}

/// Sums a gradient of an input, whose batch dimensions broadcast with those of the other input, to
/// the shape of that input.
pub(super) fn to_batch(c: &GradientContext<'_>, gradient: GraphValue, index: usize) -> Made {
    let (x, other) = (c.input(index), c.input(1 - index));
    let batch = |value| {
        let mut dims = c.known_dims(value)?;
        dims.truncate(dims.len().checked_sub(2)?);
        Some(dims)
    };
    match (batch(x), batch(other)) {
        (Some(own), Some(others)) if own == others => return Ok(gradient),
        _ => {}
    }
    let shape = c.shape_of(x)?;
    let own = super::part_of_shape(c, shape, None, Some(-2))?;
    let others = super::part_of_shape(c, c.shape_of(other)?, None, Some(-2))?;
    let axes = c.op("BroadcastGradientArgs").input(own).input(others).done()?;
    c.reshape(c.sum(gradient, axes, false)?, shape)
}

register_gradient!("Cross", |c| {
    let (g, x, y) = (c.gradient(0)?, c.input(0), c.input(1));
    c.set(0, c.binary("Cross", y, g)?)?;
    c.set(1, c.binary("Cross", g, x)?)
});

// Diagonals.
register_gradient!("Diag", |c| c.set(0, c.unary("DiagPart", c.gradient(0)?)?));
register_gradient!("DiagPart", |c| c.set(0, c.unary("Diag", c.gradient(0)?)?));
register_gradient!("MatrixDiag", |c| c.set(0, diagonal_of(c, c.gradient(0)?)?));
register_gradient!("MatrixDiagPart", |c| {
    let (g, zeros) = (c.gradient(0)?, c.zeros_like(c.input(0))?);
    c.set(0, c.binary("MatrixSetDiag", zeros, g)?)
});
register_gradient!("MatrixSetDiag", |c| {
    let g = c.gradient(0)?;
    c.set(0, c.binary("MatrixSetDiag", g, c.zeros_like(c.input(1))?)?)?;
    c.set(1, diagonal_of(c, g)?)
});
register_gradient!("MatrixDiagV2", made);
register_gradient!("MatrixDiagV3", made);
register_gradient!("MatrixDiagPartV2", taken);
register_gradient!("MatrixDiagPartV3", taken);
register_gradient!("MatrixSetDiagV2", set);
register_gradient!("MatrixSetDiagV3", set);

fn made(c: &GradientContext<'_>) -> Outcome {
    c.set(0, part(c, c.input(1))?)
}

fn taken(c: &GradientContext<'_>) -> Outcome {
    let zeros = c.zeros_like(c.input(0))?;
    c.set(0, replaced(c, zeros, c.gradient(0)?, c.input(1))?)
}

fn set(c: &GradientContext<'_>) -> Outcome {
    let (g, zeros) = (c.gradient(0)?, c.zeros_like(c.input(1))?);
    c.set(0, replaced(c, g, zeros, c.input(2))?)?;
    c.set(1, part(c, c.input(2))?)
}

register_gradient!("MatrixBandPart", |c| {
    let node = c.op("MatrixBandPart").input(c.gradient(0)?).input(c.input(1)).input(c.input(2));
    c.set(0, node.done()?)
});

/// The diagonals `k` of the gradient.
fn part(c: &GradientContext<'_>, k: GraphValue) -> Made {
    let g = c.gradient(0)?;
    let node = c.op("MatrixDiagPartV3").input(g).input(k).input(c.scalar(g, 0.0)?);
    node.attr("align", align(c)).done()
}

/// How diagonals are aligned: left, where the op has no attribute for it.
fn align<'a>(c: &GradientContext<'a>) -> &'a str {
    c.attr("align").unwrap_or("LEFT_LEFT")
}

/// Matrices whose diagonals `k` are replaced by others.
fn replaced(
    c: &GradientContext<'_>,
    matrices: GraphValue,
    diagonals: GraphValue,
    k: GraphValue,
) -> Made {
    let node = c.op("MatrixSetDiagV3").input(matrices).input(diagonals).input(k);
    node.attr("align", align(c)).done()
}

// Products of sparse matrices, whose factors may have two types.
register_gradient!("SparseMatMul", |c| {
    let (g, a, b) = (c.gradient(0)?, c.input(0), c.input(1));
    let of = |x, y, turned: [bool; 2], like| {
        let node = c.op("SparseMatMul").input(x).input(y);
        let node = node.attr("transpose_a", turned[0]).attr("transpose_b", turned[1]);
        c.cast(node.done()?, c.dtype(like))
    };
    let turned: [bool; 2] = [c.attr("transpose_a")?, c.attr("transpose_b")?];
    c.set(
        0,
        if turned[0] { of(b, g, [turned[1], true], a)? } else { of(g, b, [false, !turned[1]], a)? },
    )?;
    c.set(
        1,
        if turned[1] { of(g, a, [true, turned[0]], b)? } else { of(a, g, [!turned[0], false], b)? },
    )
});

// Inverses and determinants.
register_gradient!("MatrixInverse", |c| {
    let (y, turned) = (c.output(0), c.attr::<bool>("adjoint")?);
    let inner = product(c, (c.gradient(0)?, turned), (y, !turned))?;
    c.set(0, c.neg(product(c, (y, !turned), (inner, false))?)?)
});
register_gradient!("MatrixDeterminant", |c| {
    let factor = c.mul(c.gradient(0)?, c.output(0))?;
    c.set(0, times_adjoint_inverse(c, factor)?)
});
register_gradient!("LogMatrixDeterminant", |c| {
    c.set(0, times_adjoint_inverse(c, c.gradient(1)?)?)
});

/// The inverse of the input's adjoint, times a number for each matrix.
fn times_adjoint_inverse(c: &GradientContext<'_>, factor: GraphValue) -> Made {
    let inverse = c.op("MatrixInverse").input(c.input(0)).attr("adjoint", true).done()?;
    let last = c.int(-1)?;
    let wide = c.binary("ExpandDims", c.binary("ExpandDims", factor, last)?, last)?;
    c.mul(wide, inverse)
}

// Solutions of equations.
register_gradient!("MatrixSolve", |c| {
    let turned: bool = c.attr("adjoint")?;
    let node = c.op("MatrixSolve").input(c.input(0)).input(c.gradient(0)?);
    let by_right = node.attr("adjoint", !turned).done()?;
    c.set(0, by_matrix(c, by_right, turned)?)?;
    c.set(1, by_right)
});
register_gradient!("MatrixTriangularSolve", |c| {
    let (turned, is_lower): (bool, bool) = (c.attr("adjoint")?, c.attr("lower")?);
    let node = c.op("MatrixTriangularSolve").input(c.input(0)).input(c.gradient(0)?);
    let by_right = node.attr("adjoint", !turned).attr("lower", is_lower).done()?;
    let by_left = by_matrix(c, by_right, turned)?;
    let by_left = band(c, by_left, if is_lower { [-1, 0] } else { [0, -1] })?;
    c.set(0, to_batch(c, by_left, 0)?)?;
    c.set(1, to_batch(c, by_right, 1)?)
});

/// The gradient by the matrix of an equation from that by its right side.
pub(super) fn by_matrix(c: &GradientContext<'_>, by_right: GraphValue, turned: bool) -> Made {
    let y = c.output(0);
    let outer = match turned {
        true => product(c, (y, false), (by_right, true))?,
        false => product(c, (by_right, false), (y, true))?,
    };
    c.neg(outer)
}

/// A complex value with the real part of another one; a real value as it is.
pub(super) fn real_part(c: &GradientContext<'_>, x: GraphValue) -> Made {
    let dtype = c.dtype(x);
    if !dtype.is_complex() {
        return Ok(x);
    }
    let real = if dtype == DType::COMPLEX64 { DType::FLOAT } else { DType::DOUBLE };
    c.cast(c.op("Real").input(x).attr("Tout", real).done()?, dtype)
}
