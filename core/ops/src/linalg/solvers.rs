//! Functions of matrices, LU factors, eigenvalues of any matrix, and solvers of bands and of least squares.

use super::decompose::{Matrices, ROWS, eigen, square};
use crate::shape::{broadcast_dims, dims_of, input_of_rank, same_size};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

const T: &str = "T: {double, float, half, complex64, complex128}";
const BAND_T: &str = "T: {double, float, complex64, complex128}";

register_op!(
    "MatrixSquareRoot",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &[T],
    shape = square,
    summary =
        "The principal square root of a matrix; NaN for real matrices with negative eigenvalues.",
);

register_op!(
    "MatrixLogarithm",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &["T: {complex64, complex128}"],
    shape = square,
    summary = "The principal logarithm of an invertible matrix.",
);

register_op!(
    "Lu",
    inputs = &["input: T"],
    outputs = &["lu: T", "p: output_idx_type"],
    attrs = &[T, "output_idx_type: {int32, int64} = DT_INT32"],
    shape = lu,
    summary = "A matrix, with its rows in the order p, as the product of a unit lower triangle and an upper triangle, both in one matrix.",
);

register_op!(
    "Eig",
    inputs = &["input: T"],
    outputs = &["e: Tout", "v: Tout"],
    attrs = &[
        "compute_v: bool = true",
        "T: {float, double, complex64, complex128}",
        "Tout: {complex64, complex128}"
    ],
    cases = &[
        "single; T in {float, complex64}; Tout = complex64; input: [b, 3, 3]",
        "double; T in {double, complex128}; Tout = complex128; input: [b, 3, 3]",
    ],
    shape = eigen,
    summary = "Eigenvalues in the order of their moduli, and eigenvectors of length 1, of any square matrix. A scalar in place of vectors that are not requested.",
);

register_op!(
    "CholeskyGrad",
    inputs = &["l: T", "grad: T"],
    outputs = &["output: T"],
    attrs = &["T: {half, float, double}"],
    cases = &["triangles; n in 1..9; l: [b, n, n] uniform(1, 2); grad: [b, n, n]"],
    shape = cholesky_grad,
    summary = "The gradient of Cholesky by its input, as a symmetric matrix; only lower triangles are read.",
);

register_op!(
    "MatrixSolveLs",
    inputs = &["matrix: T", "rhs: T", "l2_regularizer: double"],
    outputs = &["output: T"],
    attrs = &[T, "fast: bool = true"],
    cases = &[
        "deep; matrix: [b, 5, 3]; rhs: [b, 5, k]; l2_regularizer: [] values(0.5)",
        "wide; matrix: [b, 3, 5]; rhs: [b, 3, k]; l2_regularizer: [] values(0.5)",
        "any; fast = false; matrix: [b, 3, 5]; rhs: [b, 3, k]; l2_regularizer: [] values(0)",
    ],
    shape = least_squares,
    summary = "The X that makes A X closest to B, or the smallest X with A X = B. By normal equations if `fast`; otherwise for any rank, without l2_regularizer.",
);

register_op!(
    "TridiagonalSolve",
    inputs = &["diagonals: T", "rhs: T"],
    outputs = &["output: T"],
    attrs = &["partial_pivoting: bool = true", "perturb_singular: bool = false", BAND_T],
    cases = &[
        "bands; partial_pivoting in {true, false}; diagonals: [b, 3, n] uniform(1, 2); rhs: [b, n, k]",
        "singular; perturb_singular = true; diagonals: [b, 3, n]; rhs: [b, n, k]",
    ],
    shape = tridiagonal_solve,
    summary = "The solution X of A X = B, where the rows of diagonals are those above, on and below the diagonal of A. NaN where A is singular, unless it is to be perturbed.",
);

register_op!(
    "TridiagonalMatMul",
    inputs = &["superdiag: T", "maindiag: T", "subdiag: T", "rhs: T"],
    outputs = &["output: T"],
    attrs = &[BAND_T],
    cases =
        &["bands; superdiag: [b, 1, n]; maindiag: [b, 1, n]; subdiag: [b, 1, n]; rhs: [b, n, k]",],
    shape = tridiagonal_product,
    summary = "The product of a matrix of three diagonals and another matrix.",
);

register_op!(
    "BandedTriangularSolve",
    inputs = &["matrix: T", "rhs: T"],
    outputs = &["output: T"],
    attrs = &["lower: bool = true", "adjoint: bool = false", T],
    cases = &[
        "bands; lower in {true, false}; adjoint in {true, false}; \
         n in 2..9; matrix: [b, 2, n] uniform(1, 2); rhs: [b, n, k]",
        "shared; n in 3..9; matrix: [3, n] uniform(1, 2); rhs: [b, n, k]",
    ],
    shape = banded_solve,
    summary = "The solution X of A X = B, or of A^H X = B, for triangular A given by its diagonals, from the main one to the lowest, or from the highest to the main one; batches broadcast.",
);

fn lu(c: &ShapeContext<'_>) -> ShapeResult {
    let Some(x) = Matrices::square(c, 0, "input")? else { return Ok(()) };
    c.set_output(0, x.with(c, &[x.rows, x.cols]))?;
    c.set_output(1, x.with(c, &[x.rows]))
}

fn cholesky_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let l = Matrices::square(c, 0, "l")?.map(|l| l.with(c, &[l.rows, l.cols]));
    let grad = Matrices::square(c, 1, "grad")?.map(|grad| grad.with(c, &[grad.rows, grad.cols]));
    match (l, grad) {
        (Some(l), Some(grad)) => c.set_output(0, c.merge(l, grad)?),
        (known, other) => known.or(other).map_or(Ok(()), |shape| c.set_output(0, shape)),
    }
}

/// The dimensions before the last two, which must be those of all inputs.
fn batch_of(c: &ShapeContext<'_>, matrices: &[&Matrices]) -> Result<Vec<Dim>, KernelError> {
    let mut batch: Option<ShapeHandle> = None;
    for one in matrices {
        let own = c.make_shape(&one.batch);
        batch = Some(batch.map_or(Ok(own), |batch| c.merge(batch, own))?);
    }
    Ok(batch.map(|batch| dims_of(c, batch)).unwrap_or_default())
}

fn least_squares(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 2, "l2_regularizer", 0)?;
    if let Some(found) = c.constant_float(2).filter(|&by| by < 0.0) {
        return Err(negative_regularizer(found));
    }
    let (a, b) = (Matrices::of(c, 0, "matrix")?, Matrices::of(c, 1, "rhs")?);
    let (Some(a), Some(b)) = (a, b) else { return Ok(()) };
    let batch = batch_of(c, &[&a, &b])?;
    same_size(c, ROWS, a.rows, b.rows)?;
    c.set_output(0, c.make_shape(&[batch, vec![a.cols, b.cols]].concat()))
}

fn negative_regularizer(found: f64) -> KernelError {
    KernelError::invalid_argument(format!("l2_regularizer must be at least 0, got {found}"))
}

fn tridiagonal_solve(c: &ShapeContext<'_>) -> ShapeResult {
    if c.attr("perturb_singular")? && !c.attr::<bool>("partial_pivoting")? {
        return Err(KernelError::invalid_argument(
            "perturb_singular needs partial_pivoting: expected both or neither, found partial_pivoting = false",
        ));
    }
    let (a, b) = (Matrices::of(c, 0, "diagonals")?, Matrices::of(c, 1, "rhs")?);
    let (Some(a), Some(b)) = (a, b) else { return Ok(()) };
    same_size(c, "the number of diagonals", c.make_dim(Some(3)), a.rows)?;
    let batch = batch_of(c, &[&a, &b])?;
    let rows = same_size(c, ROWS, a.cols, b.rows)?;
    c.set_output(0, c.make_shape(&[batch, vec![rows, b.cols]].concat()))
}

/// The names of three diagonals, and of their numbers of rows and columns.
const DIAGONALS: [[&str; 3]; 3] = [
    ["superdiag", "the number of rows of superdiag", "the length of superdiag"],
    ["maindiag", "the number of rows of maindiag", "the length of maindiag"],
    ["subdiag", "the number of rows of subdiag", "the length of subdiag"],
];

fn tridiagonal_product(c: &ShapeContext<'_>) -> ShapeResult {
    let rhs = Matrices::of(c, 3, "rhs")?;
    let mut known: Vec<Matrices> = Vec::new();
    for (input, [what, rows, _]) in DIAGONALS.into_iter().enumerate() {
        let Some(diagonal) = Matrices::of(c, input, what)? else { continue };
        same_size(c, rows, c.make_dim(Some(1)), diagonal.rows)?;
        known.push(diagonal);
    }
    let Some(rhs) = rhs.filter(|_| known.len() == 3) else { return Ok(()) };
    let mut size = rhs.rows;
    for (diagonal, [_, _, length]) in known.iter().zip(DIAGONALS) {
        size = same_size(c, length, size, diagonal.cols)?;
    }
    let batch = batch_of(c, &[&known[0], &known[1], &known[2], &rhs])?;
    c.set_output(0, c.make_shape(&[batch, vec![size, rhs.cols]].concat()))
}

fn banded_solve(c: &ShapeContext<'_>) -> ShapeResult {
    let (a, b) = (Matrices::of(c, 0, "matrix")?, Matrices::of(c, 1, "rhs")?);
    let (Some(a), Some(b)) = (a, b) else { return Ok(()) };
    let what = "the number of diagonals";
    if let Some(found) = c.value(a.rows).filter(|&found| found < 1) {
        return Err(GeometryError::TooSmall { what, least: 1, found }.into());
    }
    let rows = same_size(c, ROWS, a.cols, b.rows)?;
    if let (Some(found), Some(most)) = (c.value(a.rows), c.value(rows))
        && found > most.max(1)
    {
        return Err(KernelError::invalid_argument(format!(
            "{what} must be at most the number of columns, which is {most}, got {found}"
        )));
    }
    let batch = dims_of(c, broadcast_dims(c, &a.batch, &b.batch)?);
    c.set_output(0, c.make_shape(&[batch, vec![rows, b.cols]].concat()))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn functions_and_factors_of_square_matrices() {
        let wide = "! input must hold square matrices, got matrices of 3 rows and 4 columns";
        for op in ["MatrixSquareRoot", "MatrixLogarithm"] {
            check(op, &[], &[(&["[n,3,?]"], "[n,3,3]"), (&["[3,4]"], wide)]);
        }
        check("Lu", &[], &[(&["[n,3,3]"], "[n,3,3]; [n,3]"), (&["[3,4]"], wide)]);
        check("Eig", &[], &[(&["[n,3,3]"], "[n,3]; [n,3,3]")]);
        check("Eig", &[("compute_v", false.into())], &[(&["[3,3]"], "[3]; []")]);
        check("CholeskyGrad", &[], &[(&["[n,3,?]", "[2,?,?]"], "[2,3,3]"), (&["?", "?"], "?")]);
    }

    #[test]
    fn least_squares_have_a_row_for_each_column() {
        let rows = "! the number of rows of rhs must be 5, got 4";
        check(
            "MatrixSolveLs",
            &[],
            &[
                (&["[n,5,3]", "[2,?,k]", "[]"], "[2,3,k]"),
                (&["[5,3]", "[4,k]", "[]"], rows),
                (&["[5,3]", "[5,k]", "[1]"], "! l2_regularizer must have 0 dimensions, got 1"),
            ],
        );
    }

    #[test]
    fn tridiagonal_matrices() {
        check(
            "TridiagonalSolve",
            &[],
            &[
                (&["[n,3,5]", "[2,?,k]"], "[2,5,k]"),
                (&["[2,5]", "[5,k]"], "! the number of diagonals must be 3, got 2"),
                (&["[3,5]", "[4,k]"], "! the number of rows of rhs must be 5, got 4"),
            ],
        );
        let both = "! perturb_singular needs partial_pivoting: expected both or neither, found partial_pivoting = false";
        let attrs = [("perturb_singular", true.into()), ("partial_pivoting", false.into())];
        check("TridiagonalSolve", &attrs, &[(&["[3,5]", "[5,2]"], both)]);
        check(
            "TridiagonalMatMul",
            &[],
            &[
                (&["[2,1,5]", "[n,1,?]", "[?,1,5]", "[2,?,k]"], "[2,5,k]"),
                (
                    &["[2,5]", "[1,5]", "[1,5]", "[5,k]"],
                    "! the number of rows of superdiag must be 1, got 2",
                ),
                (&["[1,5]", "[1,5]", "[1,4]", "[5,k]"], "! the length of subdiag must be 5, got 4"),
            ],
        );
    }

    #[test]
    fn batches_of_bands_broadcast() {
        check(
            "BandedTriangularSolve",
            &[],
            &[
                (&["[2,1,2,5]", "[n,?,k]"], "[2,n,5,k]"),
                (
                    &["[0,5]", "[5,k]"],
                    "! the number of diagonals must be at least 1, got 0: matrix is [0,5], rhs is [5,?]",
                ),
                (
                    &["[6,5]", "[5,k]"],
                    "! the number of diagonals must be at most the number of columns, which is 5, got 6: matrix is [6,5], rhs is [5,?]",
                ),
                (&["[2,5]", "[4,k]"], "! the number of rows of rhs must be 5, got 4"),
            ],
        );
    }
}
