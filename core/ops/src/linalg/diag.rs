//! Diagonals and bands of matrices, and the cross product.

use crate::shape::{
    constant_integer, dims_of, input_of_rank, input_of_rank_at_least, scalar_or_vector,
};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{Code, KernelError};
use tenon_geometry::{DiagBand, DiagGeometry, GeometryError};

const T: &str = "T: type";
const ALIGN: &str =
    "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'";
const DIAG_T: &str = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}";

register_op!(
    "Diag",
    inputs = &["diagonal: T"],
    outputs = &["output: T"],
    attrs = &[DIAG_T],
    shape = diag,
    summary = "A tensor with the input's dimensions twice: the input where both halves of an index are equal, otherwise 0.",
);

register_op!(
    "DiagPart",
    inputs = &["input: T"],
    outputs = &["diagonal: T"],
    attrs = &[DIAG_T],
    shape = diag_part,
    summary = "The elements of a tensor at which both halves of the index are equal.",
);

register_op!(
    "MatrixDiag",
    inputs = &["diagonal: T"],
    outputs = &["output: T"],
    attrs = &[T],
    shape = matrix_diag,
    summary = "Square matrices with these diagonals and zeros elsewhere.",
);

register_op!(
    "MatrixDiagV2",
    inputs = &["diagonal: T", "k: int32", "num_rows: int32", "num_cols: int32", "padding_value: T"],
    outputs = &["output: T"],
    attrs = &[T],
    shape = matrix_diag_v3,
    summary = "`MatrixDiagV3` of diagonals that are aligned left.",
);

register_op!(
    "MatrixDiagV3",
    inputs = &["diagonal: T", "k: int32", "num_rows: int32", "num_cols: int32", "padding_value: T"],
    outputs = &["output: T"],
    attrs = &[T, ALIGN],
    shape = matrix_diag_v3,
    summary =
        "Matrices with these diagonals, one or several neighbouring ones, else the padding value.",
);

register_op!(
    "MatrixDiagPart",
    inputs = &["input: T"],
    outputs = &["diagonal: T"],
    attrs = &[T],
    shape = matrix_diag_part,
    summary = "The main diagonals of matrices.",
);

register_op!(
    "MatrixDiagPartV2",
    inputs = &["input: T", "k: int32", "padding_value: T"],
    outputs = &["diagonal: T"],
    attrs = &[T],
    shape = matrix_diag_part_v3,
    summary = "`MatrixDiagPartV3` with diagonals that are aligned left.",
);

register_op!(
    "MatrixDiagPartV3",
    inputs = &["input: T", "k: int32", "padding_value: T"],
    outputs = &["diagonal: T"],
    attrs = &[T, ALIGN],
    shape = matrix_diag_part_v3,
    summary =
        "Diagonals of matrices, one or several neighbouring ones as rows, padded to the longest.",
);

register_op!(
    "MatrixSetDiag",
    inputs = &["input: T", "diagonal: T"],
    outputs = &["output: T"],
    attrs = &[T],
    shape = matrix_set_diag,
    summary = "Matrices with their main diagonals replaced.",
);

register_op!(
    "MatrixSetDiagV2",
    inputs = &["input: T", "diagonal: T", "k: int32"],
    outputs = &["output: T"],
    attrs = &[T],
    shape = matrix_set_diag_v3,
    summary = "`MatrixSetDiagV3` with diagonals that are aligned left.",
);

register_op!(
    "MatrixSetDiagV3",
    inputs = &["input: T", "diagonal: T", "k: int32"],
    outputs = &["output: T"],
    attrs = &[T, ALIGN],
    shape = matrix_set_diag_v3,
    summary = "Matrices with some of their diagonals replaced.",
);

register_op!(
    "MatrixBandPart",
    inputs = &["input: T", "num_lower: Tindex", "num_upper: Tindex"],
    outputs = &["band: T"],
    attrs = &[T, "Tindex: {int32, int64} = DT_INT64"],
    shape = band_part,
    summary = "Matrices with zeros beyond the given numbers of diagonals below and above the main one; a negative number keeps all.",
);

register_op!(
    "Cross",
    inputs = &["a: T", "b: T"],
    outputs = &["product: T"],
    attrs = &[
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
    ],
    shape = cross,
    summary = "The cross product of vectors of three elements in the last dimension.",
);

fn diag(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank_at_least(c, 0, "diagonal", 1)?;
    if c.rank(input).is_none() {
        return Ok(());
    }
    let dims = dims_of(c, input);
    c.set_output(0, c.make_shape(&[&dims[..], &dims].concat()))
}

fn diag_part(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank_at_least(c, 0, "input", 1)?;
    let Some(rank) = c.rank(input) else { return Ok(()) };
    if rank % 2 != 0 {
        let (what, divisor_name) = ("the number of dimensions of input", "two");
        let value = rank as i64;
        return Err(GeometryError::NotDivisible { what, value, divisor_name, divisor: 2 }.into());
    }
    let dims = dims_of(c, input);
    let (first, second) = dims.split_at(rank / 2);
    let pairs = first.iter().zip(second);
    let dims: Result<Vec<Dim>, _> = pairs.map(|(&a, &b)| c.merge_dim(a, b)).collect();
    c.set_output(0, c.make_shape(&dims?))
}

/// A shape of known rank whose last dimensions are replaced by others.
fn with_last(c: &ShapeContext<'_>, shape: ShapeHandle, taken: usize, last: &[Dim]) -> ShapeHandle {
    let mut dims = dims_of(c, shape);
    dims.truncate(dims.len() - taken);
    dims.extend(last);
    c.make_shape(&dims)
}

/// This number of unknown dimensions.
fn unknown(c: &ShapeContext<'_>, count: usize) -> Vec<Dim> {
    (0..count).map(|_| c.make_dim(None)).collect()
}

/// The band in a constant input.
fn band(c: &ShapeContext<'_>, input: usize) -> Result<Option<DiagBand>, KernelError> {
    scalar_or_vector(c, input, "k")?;
    Ok(c.constant_integers(input).map(|k| DiagBand::new(&k)).transpose()?)
}

/// The sizes of an input of known rank, if the last `count` are known.
fn known(c: &ShapeContext<'_>, shape: ShapeHandle, count: usize) -> Option<Vec<i64>> {
    let sizes = c.dims(shape)?;
    let last = sizes.len().checked_sub(count)?;
    (!sizes[last..].contains(&-1)).then(|| sizes[last..].to_vec())
}

fn matrix_diag(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank_at_least(c, 0, "diagonal", 1)?;
    let Some(rank) = c.rank(input) else { return Ok(()) };
    let last = c.dim(input, rank - 1);
    c.set_output(0, with_last(c, input, 1, &[last, last]))
}

fn matrix_diag_v3(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank_at_least(c, 0, "diagonal", 1)?;
    let band = band(c, 1)?;
    for (at, what) in [(2, "num_rows"), (3, "num_cols"), (4, "padding_value")] {
        input_of_rank(c, at, what, 0)?;
    }
    let (Some(rank), Some(band)) = (c.rank(input), band) else { return Ok(()) };
    let taken = if band.lower < band.upper { 2 } else { 1 };
    if rank < taken {
        let what = "diagonal";
        return Err(GeometryError::RankTooSmall { what, expected: taken, found: rank }.into());
    }
    let rows = constant_integer(c, 2, "num_rows")?;
    let cols = constant_integer(c, 3, "num_cols")?;
    let sizes = match (known(c, input, taken), rows, cols) {
        (Some(sizes), Some(rows), Some(cols)) => {
            let g = DiagGeometry::of_packed(&sizes, band, [rows, cols])?;
            [g.rows, g.cols].map(|size| c.make_dim(Some(size as i64))).to_vec()
        }
        _ => unknown(c, 2),
    };
    c.set_output(0, with_last(c, input, taken, &sizes))
}

fn matrix_diag_part(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank_at_least(c, 0, "input", 2)?;
    part(c, input, Some(DiagBand::MAIN))
}

fn matrix_diag_part_v3(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank_at_least(c, 0, "input", 2)?;
    let band = band(c, 1)?;
    input_of_rank(c, 2, "padding_value", 0)?;
    part(c, input, band)
}

fn part(c: &ShapeContext<'_>, input: ShapeHandle, band: Option<DiagBand>) -> ShapeResult {
    let (Some(_), Some(band)) = (c.rank(input), band) else { return Ok(()) };
    let longest = match known(c, input, 2) {
        Some(sizes) => {
            let g = DiagGeometry::of_matrices("input", &sizes, band)?;
            g.packed.last().copied()
        }
        None => None,
    };
    let mut last = vec![c.make_dim(longest)];
    if band.lower < band.upper {
        last.insert(0, c.make_dim(Some(band.count())));
    }
    c.set_output(0, with_last(c, input, 2, &last))
}

fn matrix_set_diag(c: &ShapeContext<'_>) -> ShapeResult {
    set(c, Some(DiagBand::MAIN))
}

fn matrix_set_diag_v3(c: &ShapeContext<'_>) -> ShapeResult {
    let band = band(c, 2)?;
    set(c, band)
}

fn set(c: &ShapeContext<'_>, band: Option<DiagBand>) -> ShapeResult {
    let input = input_of_rank_at_least(c, 0, "input", 2)?;
    let diagonal = input_of_rank_at_least(c, 1, "diagonal", 1)?;
    let (Some(band), Some(sizes)) = (band, known(c, input, 2)) else {
        return c.set_output(0, input);
    };
    let g = DiagGeometry::of_matrices("input", &sizes, band)?;
    let last: Vec<Dim> = g.packed.iter().map(|&size| c.make_dim(Some(size))).collect();
    c.merge(diagonal, with_last(c, input, 2, &last))?;
    c.set_output(0, input)
}

fn band_part(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "num_lower", 0)?;
    input_of_rank(c, 2, "num_upper", 0)?;
    c.set_output(0, input_of_rank_at_least(c, 0, "input", 2)?)
}

fn cross(c: &ShapeContext<'_>) -> ShapeResult {
    let a = input_of_rank_at_least(c, 0, "a", 1)?;
    let b = input_of_rank_at_least(c, 1, "b", 1)?;
    let both = c.merge(a, b)?;
    if let Some(rank) = c.rank(both) {
        let last = c.dim(both, rank - 1);
        if let Some(found) = c.value(last).filter(|&found| found != 3) {
            // With the code of TensorFlow's kernel.
            let message = format!("the last dimension of a and b must be 3, got {found}");
            return Err(KernelError::new(Code::FAILED_PRECONDITION, message));
        }
    }
    c.set_output(0, both)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn tensors() {
        check("Diag", &[], &[(&["[2,n]"], "[2,n,2,n]"), (&["?"], "?")]);
        check(
            "DiagPart",
            &[],
            &[
                (&["[2,?,?,3]"], "[2,3]"),
                (
                    &["[2,3,2]"],
                    "! the number of dimensions of input (3) must be a multiple of two (2)",
                ),
            ],
        );
        let three = "! the last dimension of a and b must be 3, got 2";
        check("Cross", &[], &[(&["[n,3]", "[?,?]"], "[n,3]"), (&["[2]", "[2]"], three)]);
    }

    #[test]
    fn matrices() {
        check("MatrixDiag", &[], &[(&["[n,3]"], "[n,3,3]")]);
        check("MatrixDiagPart", &[], &[(&["[n,3,5]"], "[n,3]"), (&["[n,3,?]"], "[n,?]")]);
        check("MatrixSetDiag", &[], &[(&["[n,3,5]", "[n,3]"], "[n,3,5]")]);
        check("MatrixBandPart", &[], &[(&["[n,3,5]", "[]", "[]"], "[n,3,5]")]);
        check(
            "MatrixDiagV3",
            &[],
            &[
                (&["[n,3]", "= 1", "= -1", "= -1", "[]"], "[n,4,4]"),
                (&["[n,2,3]", "= [-1,0]", "= -1", "= 4", "[]"], "[n,3,4]"),
                (&["[n,3]", "[1]", "= -1", "= -1", "[]"], "?"),
                (&["[n,3]", "= 0", "= 2", "= -1", "[]"], "! num_rows must be at least 3, got 2"),
            ],
        );
        check(
            "MatrixDiagPartV3",
            &[],
            &[
                (&["[n,3,4]", "= [-1,1]", "[]"], "[n,3,3]"),
                (&["[n,3,?]", "= [-1,1]", "[]"], "[n,3,?]"),
                (&["[3,4]", "= 4", "[]"], "! k must lie in [-2, 4), got 4"),
            ],
        );
        for op in ["MatrixSetDiagV2", "MatrixSetDiagV3"] {
            check(op, &[], &[(&["[n,3,4]", "[n,3,3]", "= [-1,1]"], "[n,3,4]")]);
        }
    }
}
