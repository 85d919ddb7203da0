//! Decompositions, inverses, determinants and solvers, for each matrix in the last two dimensions.

use crate::shape::{broadcast_dims, dims_of, input_of_rank_at_least, same_size};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::square_size;

const T: &str = "T: {double, float, half, complex64, complex128}";
const DETERMINANT_T: &str = "T: {half, float, double, complex64, complex128}";
const ADJOINT: &str = "adjoint: bool = false";

register_op!(
    "Cholesky",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &[T],
    shape = square,
    summary = "The lower triangle L of a positive definite matrix L L^H; only its lower triangle is read. NaN for other matrices.",
);

register_op!(
    "MatrixInverse",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &[ADJOINT, T],
    shape = square,
    summary = "The inverse of a matrix, or of its adjoint.",
);

register_op!(
    "MatrixDeterminant",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &[DETERMINANT_T],
    shape = per_matrix,
    summary = "The determinant of a matrix.",
);

register_op!(
    "LogMatrixDeterminant",
    inputs = &["input: T"],
    outputs = &["sign: T", "log_abs_determinant: T"],
    attrs = &[DETERMINANT_T],
    shape = per_matrix,
    summary = "The sign of the determinant of a matrix, and the logarithm of its modulus.",
);

register_op!(
    "MatrixSolve",
    inputs = &["matrix: T", "rhs: T"],
    outputs = &["output: T"],
    attrs = &[ADJOINT, T],
    shape = solve,
    summary = "The solution X of A X = B, or of A^H X = B.",
);

register_op!(
    "MatrixTriangularSolve",
    inputs = &["matrix: T", "rhs: T"],
    outputs = &["output: T"],
    attrs = &[
        "lower: bool = true",
        ADJOINT,
        "T: {bfloat16, double, float, half, complex64, complex128}",
    ],
    shape = triangular_solve,
    summary = "The solution X of A X = B, or of A^H X = B, for triangular A; batches broadcast.",
);

register_op!(
    "Qr",
    inputs = &["input: T"],
    outputs = &["q: T", "r: T"],
    attrs = &["full_matrices: bool = false", T],
    shape = qr,
    summary = "A matrix as the product of one with orthonormal columns and an upper triangle.",
);

register_op!(
    "Svd",
    inputs = &["input: T"],
    outputs = &["s: T", "u: T", "v: T"],
    attrs = &["compute_uv: bool = true", "full_matrices: bool = false", T],
    shape = svd,
    summary = "Singular values in descending order, with left and right singular vectors; scalars in place of vectors that are not requested.",
);

register_op!(
    "SelfAdjointEigV2",
    inputs = &["input: T"],
    outputs = &["e: T", "v: T"],
    attrs = &["compute_v: bool = true", T],
    shape = eigen,
    summary = "Eigenvalues in ascending order, and eigenvectors, of a matrix; only its lower triangle is read. A scalar in place of vectors that are not requested.",
);

/// The known dimensions of an input's matrices.
pub(super) struct Matrices {
    pub batch: Vec<Dim>,
    pub rows: Dim,
    pub cols: Dim,
}

impl Matrices {
    /// The matrices of an input; `None` if the rank is not known.
    pub fn of(
        c: &ShapeContext<'_>,
        input: usize,
        what: &'static str,
    ) -> Result<Option<Matrices>, KernelError> {
        let shape = input_of_rank_at_least(c, input, what, 2)?;
        let mut batch = dims_of(c, shape);
        Ok(batch.pop().zip(batch.pop()).map(|(cols, rows)| Matrices { batch, rows, cols }))
    }

    /// The matrices of an input that must be square: rows and columns are merged to one dimension.
    pub fn square(
        c: &ShapeContext<'_>,
        input: usize,
        what: &'static str,
    ) -> Result<Option<Matrices>, KernelError> {
        let Some(mut found) = Matrices::of(c, input, what)? else { return Ok(None) };
        square_size(what, &c.dims(c.input(input)).unwrap_or_default())?;
        found.rows = c.merge_dim(found.rows, found.cols)?;
        found.cols = found.rows;
        Ok(Some(found))
    }

    pub fn with(&self, c: &ShapeContext<'_>, last: &[Dim]) -> ShapeHandle {
        c.make_shape(&[&self.batch[..], last].concat())
    }
}

pub(super) fn square(c: &ShapeContext<'_>) -> ShapeResult {
    let Some(x) = Matrices::square(c, 0, "input")? else { return Ok(()) };
    c.set_output(0, x.with(c, &[x.rows, x.cols]))
}

fn per_matrix(c: &ShapeContext<'_>) -> ShapeResult {
    let Some(x) = Matrices::square(c, 0, "input")? else { return Ok(()) };
    (0..c.output_count()).try_for_each(|at| c.set_output(at, x.with(c, &[])))
}

/// The name of a size that must equal the number of rows of `matrix`.
pub(super) const ROWS: &str = "the number of rows of rhs";

fn solve(c: &ShapeContext<'_>) -> ShapeResult {
    let a = Matrices::square(c, 0, "matrix")?;
    let b = Matrices::of(c, 1, "rhs")?;
    let (Some(a), Some(b)) = (a, b) else { return Ok(()) };
    let batch = c.merge(c.make_shape(&a.batch), c.make_shape(&b.batch))?;
    let rows = same_size(c, ROWS, a.rows, b.rows)?;
    c.set_output(0, c.make_shape(&[dims_of(c, batch), vec![rows, b.cols]].concat()))
}

fn triangular_solve(c: &ShapeContext<'_>) -> ShapeResult {
    let a = Matrices::square(c, 0, "matrix")?;
    let b = Matrices::of(c, 1, "rhs")?;
    let (Some(a), Some(b)) = (a, b) else { return Ok(()) };
    let rows = same_size(c, ROWS, a.rows, b.rows)?;
    let batch = dims_of(c, broadcast_dims(c, &a.batch, &b.batch)?);
    c.set_output(0, c.make_shape(&[batch, vec![rows, b.cols]].concat()))
}

/// The smaller of two dimensions.
fn least(c: &ShapeContext<'_>, a: Dim, b: Dim) -> Dim {
    match (c.value(a), c.value(b)) {
        (Some(x), Some(y)) => {
            if x <= y {
                a
            } else {
                b
            }
        }
        (Some(0), _) => a,
        (_, Some(0)) => b,
        _ if a == b => a,
        _ => c.make_dim(None),
    }
}

fn qr(c: &ShapeContext<'_>) -> ShapeResult {
    let Some(x) = Matrices::of(c, 0, "input")? else { return Ok(()) };
    let inner = if c.attr("full_matrices")? { x.rows } else { least(c, x.rows, x.cols) };
    c.set_output(0, x.with(c, &[x.rows, inner]))?;
    c.set_output(1, x.with(c, &[inner, x.cols]))
}

fn svd(c: &ShapeContext<'_>) -> ShapeResult {
    let vectors: bool = c.attr("compute_uv")?;
    if !vectors {
        c.set_output(1, c.scalar())?;
        c.set_output(2, c.scalar())?;
    }
    let Some(x) = Matrices::of(c, 0, "input")? else { return Ok(()) };
    let inner = least(c, x.rows, x.cols);
    c.set_output(0, x.with(c, &[inner]))?;
    if vectors {
        let full: bool = c.attr("full_matrices")?;
        let (left, right) = if full { (x.rows, x.cols) } else { (inner, inner) };
        c.set_output(1, x.with(c, &[x.rows, left]))?;
        c.set_output(2, x.with(c, &[x.cols, right]))?;
    }
    Ok(())
}

pub(super) fn eigen(c: &ShapeContext<'_>) -> ShapeResult {
    let vectors: bool = c.attr("compute_v")?;
    if !vectors {
        c.set_output(1, c.scalar())?;
    }
    let Some(x) = Matrices::square(c, 0, "input")? else { return Ok(()) };
    c.set_output(0, x.with(c, &[x.rows]))?;
    if vectors { c.set_output(1, x.with(c, &[x.rows, x.cols])) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn square_matrices() {
        let cases: &[(&[&str], &str)] = &[
            (&["[n,3,3]"], "[n,3,3]"),
            (&["[n,3,?]"], "[n,3,3]"),
            (&["?"], "?"),
            (&["[3]"], "! input must have at least 2 dimensions, got 1"),
            (&["[3,4]"], "! input must hold square matrices, got matrices of 3 rows and 4 columns"),
        ];
        check("Cholesky", &[], cases);
        check("MatrixInverse", &[], cases);
        check("MatrixDeterminant", &[], &[(&["[n,3,3]"], "[n]"), (&["?"], "?")]);
        check("LogMatrixDeterminant", &[], &[(&["[3,?]"], "[]; []")]);
        check("SelfAdjointEigV2", &[], &[(&["[n,3,?]"], "[n,3]; [n,3,3]")]);
        check("SelfAdjointEigV2", &[("compute_v", false.into())], &[(&["[n,3,3]"], "[n,3]; []")]);
    }

    #[test]
    fn solvers() {
        check(
            "MatrixSolve",
            &[],
            &[
                (&["[n,3,3]", "[2,?,k]"], "[2,3,k]"),
                (&["?", "[3,2]"], "?"),
                (&["[3,3]", "[3]"], "! rhs must have at least 2 dimensions, got 1"),
            ],
        );
        check(
            "MatrixTriangularSolve",
            &[],
            &[
                (&["[2,1,3,3]", "[n,?,k]"], "[2,n,3,k]"),
                (&["[3,3]", "[4,2]"], "! the number of rows of rhs must be 3, got 4"),
            ],
        );
    }

    #[test]
    fn rectangles() {
        check("Qr", &[], &[(&["[n,5,3]"], "[n,5,3]; [n,3,3]"), (&["[m,m]"], "[m,m]; [m,m]")]);
        check("Qr", &[("full_matrices", true.into())], &[(&["[5,3]"], "[5,5]; [5,3]")]);
        check(
            "Svd",
            &[],
            &[(&["[n,5,3]"], "[n,3]; [n,5,3]; [n,3,3]"), (&["[5,?]"], "[?]; [5,?]; [?,?]")],
        );
        check("Svd", &[("full_matrices", true.into())], &[(&["[5,3]"], "[3]; [5,5]; [3,3]")]);
        check("Svd", &[("compute_uv", false.into())], &[(&["[5,3]"], "[3]; []; []")]);
    }
}
