//! Rotations and reflections of small real matrices, for which the preparations of `faer` take
//! longer than the work: Jacobi's methods for eigenvalues and singular values (G. Golub and C. Van
//! Loan, *Matrix Computations*, 8.5 and 8.6), in doubles, and Householder's for QR.

use crate::{
    plain::SMALL,
    scalar::{Field, Svd, identity},
};
use faer::Mat;

/// The most rows and columns of a matrix that is rotated.
pub const MOST: usize = 4;
/// Rotations of all pairs, after which a matrix is left to the library. Five or six are usual.
const SWEEPS: usize = 30;

/// A matrix of at most [`MOST`] rows and columns.
type Square = [[f64; MOST]; MOST];

const UNIT: Square = {
    let mut unit = [[0.0; MOST]; MOST];
    let mut i = 0;
    while i < MOST {
        unit[i][i] = 1.0;
        i += 1;
    }
    unit
};

fn real<F: Field>(x: F) -> f64 {
    x.to_complex().re
}

fn from_real<F: Field>(x: f64) -> F {
    F::from_complex(x.into())
}

/// Cosine and sine of the rotation that makes `[[p, both], [both, q]]` diagonal, and its tangent.
fn rotation(p: f64, both: f64, q: f64) -> [f64; 3] {
    let theta = (q - p) / (2.0 * both);
    let t = 1f64.copysign(theta) / (theta.abs() + (theta * theta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    [c, t * c, t]
}

/// Multiplies two columns, which are rows here, by a rotation.
fn turn(vectors: &mut Square, [p, q]: [usize; 2], [c, s]: [f64; 2]) {
    let (xs, ys) = (vectors[p], vectors[q]);
    vectors[p] = std::array::from_fn(|i| c * xs[i] - s * ys[i]);
    vectors[q] = std::array::from_fn(|i| s * xs[i] + c * ys[i]);
}

/// The pairs of different numbers below `size`.
fn pairs(size: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..size).flat_map(move |p| (p + 1..size).map(move |q| [p, q]))
}

/// The numbers below `size`, in the order of their values.
fn ordered(size: usize, before: impl Fn(usize, usize) -> bool) -> [usize; MOST] {
    let mut order = std::array::from_fn(|i| i);
    for end in 1..size {
        let mut at = end;
        while at > 0 && before(order[at], order[at - 1]) {
            order.swap(at, at - 1);
            at -= 1;
        }
    }
    order
}

/// As [`Field::eigen`], of at most [`MOST`] rows; `None` where many rotations do not suffice.
pub fn eigen<F: Field>(a: &Mat<F>) -> Option<(Vec<f64>, Mat<F>)> {
    let size = a.nrows();
    let mut m = [[0.0; MOST]; MOST];
    for (i, row) in m.iter_mut().enumerate().take(size) {
        row.iter_mut().enumerate().take(size).for_each(|(j, x)| *x = real(a[(i, j)]));
    }
    let mut vectors = UNIT;
    if !(0..SWEEPS).any(|_| !sweep(&mut m, &mut vectors, size)) {
        return None;
    }
    let order = ordered(size, |i, j| m[i][i] < m[j][j]);
    let values = order[..size].iter().map(|&i| m[i][i]).collect();
    Some((values, Mat::from_fn(size, size, |i, j| from_real(vectors[order[j]][i]))))
}

/// Makes each element outside the diagonal zero once; whether there was one to be made.
fn sweep(m: &mut Square, vectors: &mut Square, size: usize) -> bool {
    let mut any = false;
    for [p, q] in pairs(size) {
        let both = m[p][q];
        if both.abs() <= 1e-17 * (m[p][p].abs() + m[q][q].abs()) {
            (m[p][q], m[q][p]) = (0.0, 0.0);
            continue;
        }
        any = true;
        let [c, s, t] = rotation(m[p][p], both, m[q][q]);
        m[p][p] -= t * both;
        m[q][q] += t * both;
        (m[p][q], m[q][p]) = (0.0, 0.0);
        for i in (0..size).filter(|&i| i != p && i != q) {
            let (x, y) = (m[p][i], m[q][i]);
            (m[p][i], m[q][i]) = (c * x - s * y, s * x + c * y);
            (m[i][p], m[i][q]) = (m[p][i], m[q][i]);
        }
        turn(vectors, [p, q], [c, s]);
    }
    any
}

fn dot(x: &[f64; MOST], y: &[f64; MOST]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// As [`Field::svd`], of at most [`MOST`] rows and columns; `None` where many rotations do not
/// suffice.
pub fn svd<F: Field>(a: &Mat<F>, full: bool) -> Option<Svd<F>> {
    if a.nrows() < a.ncols() {
        let turned = Mat::from_fn(a.ncols(), a.nrows(), |i, j| a[(j, i)]);
        let Svd { values, left, right } = svd(&turned, full)?;
        return Some(Svd { values, left: right, right: left });
    }
    let (rows, cols) = (a.nrows(), a.ncols());
    // The columns are rows here.
    let (mut columns, mut right) = ([[0.0; MOST]; MOST], UNIT);
    for (j, column) in columns.iter_mut().enumerate().take(cols) {
        column.iter_mut().enumerate().take(rows).for_each(|(i, x)| *x = real(a[(i, j)]));
    }
    if !(0..SWEEPS).any(|_| !orthogonal_sweep(&mut columns, &mut right, cols)) {
        return None;
    }
    let sizes = columns.map(|column| dot(&column, &column).sqrt());
    let order = ordered(cols, |i, j| sizes[i] > sizes[j]);
    let mut left = [[0.0; MOST]; MOST];
    let count = order[..cols].iter().take_while(|&&j| sizes[j] > 0.0).count();
    for (to, &j) in left.iter_mut().zip(&order[..count]) {
        *to = columns[j].map(|x| x / sizes[j]);
    }
    let wanted = if full { rows } else { cols };
    (count..wanted).for_each(|known| left[known] = orthogonal_to(&left, known, rows));
    Some(Svd {
        values: order[..cols].iter().map(|&j| sizes[j]).collect(),
        left: Mat::from_fn(rows, wanted, |i, j| from_real(left[j][i])),
        right: Mat::from_fn(cols, cols, |i, j| from_real(right[order[j]][i])),
    })
}

/// Makes each pair of columns orthogonal once; whether there was one that was not.
fn orthogonal_sweep(columns: &mut Square, right: &mut Square, cols: usize) -> bool {
    let mut any = false;
    for [p, q] in pairs(cols) {
        let (x, y) = (columns[p], columns[q]);
        let (xx, xy, yy) = (dot(&x, &x), dot(&x, &y), dot(&y, &y));
        if xy.abs() <= 1e-15 * xx.sqrt() * yy.sqrt() {
            continue;
        }
        any = true;
        let [c, s, _] = rotation(xx, xy, yy);
        turn(columns, [p, q], [c, s]);
        turn(right, [p, q], [c, s]);
    }
    any
}

/// A vector of length 1 that is orthogonal to the first `known` of some such vectors.
fn orthogonal_to(vectors: &Square, known: usize, rows: usize) -> [f64; MOST] {
    let rest_of = |unit: usize| {
        let mut rest = UNIT[unit];
        // Twice, since the first time rounds.
        for vector in vectors[..known].iter().chain(&vectors[..known]) {
            let along = dot(vector, &rest);
            rest.iter_mut().zip(vector).for_each(|(rest, x)| *rest -= along * x);
        }
        rest
    };
    let longer = |x: [f64; MOST], y: [f64; MOST]| if dot(&y, &y) > dot(&x, &x) { y } else { x };
    let longest = (0..rows).map(rest_of).fold([0.0; MOST], longer);
    let size = dot(&longest, &longest).sqrt();
    longest.map(|x| x / size)
}

/// As [`Field::qr`], of at most [`SMALL`] rows and columns.
pub fn qr<F: Field>(a: &Mat<F>, inner: usize) -> (Mat<F>, Mat<F>) {
    let (rows, cols) = (a.nrows(), a.ncols());
    let steps = rows.min(cols);
    let mut r = a.clone();
    let mut factors = [F::default(); SMALL];
    let mut vectors = Mat::from_fn(rows, steps, |_, _| F::default());
    for (k, factor) in factors.iter_mut().enumerate().take(steps) {
        *factor = reflection(&mut r, &mut vectors, k);
        reflect(&vectors, k, *factor, &mut r, k + 1..cols);
    }
    let mut q = identity(rows, inner);
    for (k, &factor) in factors.iter().enumerate().take(steps).rev() {
        reflect(&vectors, k, factor, &mut q, k..inner);
    }
    let upper = |i: usize, j: usize| if i <= j { r[(i, j)] } else { F::default() };
    (q, Mat::from_fn(inner, cols, upper))
}

/// LAPACK's reflection of column `k` from the diagonal on: writes the number that it leaves there
/// and the vector, and returns its factor.
fn reflection<F: Field>(r: &mut Mat<F>, vectors: &mut Mat<F>, k: usize) -> F {
    let rows = r.nrows();
    vectors[(k, k)] = from_real(1.0);
    if (k + 1..rows).all(|i| r[(i, k)].modulus() == 0.0) {
        return F::default();
    }
    let largest = (k..rows).fold(0.0, |largest: f64, i| largest.max(r[(i, k)].modulus()));
    let scaled = (k..rows).map(|i| r[(i, k)].modulus() / largest);
    let norm = scaled.map(|x| x * x).sum::<f64>().sqrt() * largest;
    let head = real(r[(k, k)]);
    let beta = if head >= 0.0 { -norm } else { norm };
    for i in k + 1..rows {
        vectors[(i, k)] = r[(i, k)].over(from_real(head - beta));
    }
    r[(k, k)] = from_real(beta);
    from_real((beta - head) / beta)
}

/// Applies reflection `k` to these columns.
fn reflect<F: Field>(
    vectors: &Mat<F>,
    k: usize,
    factor: F,
    a: &mut Mat<F>,
    cols: std::ops::Range<usize>,
) {
    for j in cols {
        let along = (k..a.nrows()).fold(F::default(), |sum, i| sum + vectors[(i, k)] * a[(i, j)]);
        let along = along * factor;
        for i in k..a.nrows() {
            a[(i, j)] = a[(i, j)] - vectors[(i, k)] * along;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::product;
    use faer::Side;

    fn values(rows: usize, cols: usize, seed: usize) -> Mat<f64> {
        let element =
            |i: usize, j: usize| ((i * 7 + j * 13 + seed * 5) * 37 % 101) as f64 / 50.0 - 1.0;
        Mat::from_fn(rows, cols, element)
    }

    fn transposed(a: &Mat<f64>) -> Mat<f64> {
        Mat::from_fn(a.ncols(), a.nrows(), |i, j| a[(j, i)])
    }

    #[track_caller]
    fn assert_near(found: &Mat<f64>, expected: &Mat<f64>) {
        assert_eq!((found.nrows(), found.ncols()), (expected.nrows(), expected.ncols()));
        let size = expected.norm_max().max(1e-300);
        for (i, j) in (0..found.nrows()).flat_map(|i| (0..found.ncols()).map(move |j| (i, j))) {
            let (found, expected) = (found[(i, j)] / size, expected[(i, j)] / size);
            assert!((found - expected).abs() < 1e-13, "[{i}, {j}]: {found} {expected}");
        }
    }

    #[track_caller]
    fn assert_orthogonal(q: &Mat<f64>) {
        assert_near(&product(&transposed(q), q), &identity(q.ncols(), q.ncols()));
    }

    fn diagonal(rows: usize, cols: usize, values: &[f64]) -> Mat<f64> {
        Mat::from_fn(rows, cols, |i, j| if i == j { values[i] } else { 0.0 })
    }

    /// Ordinary, equal, graded, singular and zero matrices.
    fn matrices(rows: usize, cols: usize) -> Vec<Mat<f64>> {
        let mut all: Vec<Mat<f64>> = (0..8).map(|seed| values(rows, cols, seed)).collect();
        all.push(Mat::from_fn(rows, cols, |_, _| 1.0));
        all.push(Mat::from_fn(rows, cols, |_, _| 0.0));
        all.push(Mat::from_fn(rows, cols, |i, j| if i == j { 2.0 } else { 0.0 }));
        all.push(Mat::from_fn(rows, cols, |i, j| if i + j == 1 { -1.0 } else { 0.0 }));
        all.push(Mat::from_fn(rows, cols, |i, j| 1e-6f64.powi((i + j) as i32)));
        all.push(Mat::from_fn(rows, cols, |i, j| values(rows, cols, 1)[(i, j)] * 1e70));
        all
    }

    #[test]
    fn small_symmetric_matrices_have_the_eigenvalues_that_the_library_finds() {
        for size in 1..=MOST {
            for a in matrices(size, size) {
                let a = Mat::from_fn(size, size, |i, j| a[(i.max(j), i.min(j))]);
                let (values, vectors) = eigen(&a).unwrap();
                assert_orthogonal(&vectors);
                let scaled = product(&vectors, &diagonal(size, size, &values));
                assert_near(&product(&scaled, &transposed(&vectors)), &a);
                let theirs = a.self_adjoint_eigenvalues(Side::Lower).unwrap();
                assert_near(&diagonal(size, size, &values), &diagonal(size, size, &theirs));
            }
        }
    }

    #[test]
    fn small_matrices_have_the_singular_values_that_the_library_finds() {
        for (rows, cols) in (1..=MOST).flat_map(|rows| (1..=MOST).map(move |cols| (rows, cols))) {
            for (a, full) in matrices(rows, cols).iter().flat_map(|a| [(a, false), (a, true)]) {
                let Svd { values, left, right } = svd(a, full).unwrap();
                let least = rows.min(cols);
                assert_eq!(left.ncols(), if full { rows } else { least });
                assert_eq!(right.ncols(), if full { cols } else { least });
                assert_orthogonal(&left);
                assert_orthogonal(&right);
                let scaled = product(&left, &diagonal(left.ncols(), right.ncols(), &values));
                assert_near(&product(&scaled, &transposed(&right)), a);
                let theirs = a.singular_values().unwrap();
                assert_near(&diagonal(least, least, &values), &diagonal(least, least, &theirs));
            }
        }
    }

    #[test]
    fn small_matrices_have_the_factors_that_the_library_finds() {
        for (rows, cols) in
            [(1, 1), (2, 2), (4, 4), (3, 5), (5, 3), (SMALL, SMALL), (16, 2), (1, 4)]
        {
            for a in matrices(rows, cols) {
                for inner in [rows.min(cols), rows] {
                    let (q, r) = qr(&a, inner);
                    assert_eq!((q.ncols(), r.nrows()), (inner, inner));
                    assert_orthogonal(&q);
                    assert_near(&product(&q, &r), &a);
                }
            }
            // Of a matrix that is far from a singular one, whose factors are not unique.
            let a = values(rows, cols, 3)
                + Mat::from_fn(rows, cols, |i, j| if i == j { 8.0 } else { 0.0 });
            let (theirs, ours) = (a.qr(), qr(&a, rows.min(cols)));
            assert_near(&ours.0, &theirs.compute_thin_Q());
            assert_near(&ours.1, &theirs.thin_R().to_owned());
        }
    }

    #[test]
    fn what_is_not_finite_is_left_to_the_caller() {
        let a = Mat::from_fn(2, 2, |i, j| if i == j { f64::NAN } else { 1.0 });
        let (q, r) = qr(&a, 2);
        assert!(q[(0, 0)].is_nan() && r[(0, 0)].is_nan());
    }
}
