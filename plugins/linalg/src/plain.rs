//! Triangles by plain loops: of complex matrices, and of real ones up to [`SMALL`], for which the
//! preparations of `faer` take longer than the work.

use crate::scalar::{Field, Lu, Triangle, identity};
use faer::Mat;

/// The most rows of a real matrix for which these loops are used, and the most columns of what is
/// solved with it.
pub const SMALL: usize = 16;

/// As [`Field::cholesky`].
pub fn cholesky<F: Field>(a: &Mat<F>) -> Option<Mat<F>> {
    let size = a.nrows();
    let mut l: Mat<F> = Mat::from_fn(size, size, |_, _| F::default());
    for j in 0..size {
        let own = |k: usize| l[(j, k)] * l[(j, k)].conjugate();
        let rest = (a[(j, j)] - sum((0..j).map(own))).to_complex().re;
        if rest.is_nan() || rest <= 0.0 {
            return None;
        }
        let root = F::from_complex(rest.sqrt().into());
        l[(j, j)] = root;
        for i in j + 1..size {
            let known = sum((0..j).map(|k| l[(i, k)] * l[(j, k)].conjugate()));
            l[(i, j)] = (a[(i, j)] - known).over(root);
        }
    }
    Some(l)
}

/// As [`Field::lu`].
pub fn lu<F: Field>(a: &Mat<F>) -> Lu<F> {
    let size = a.nrows();
    let (mut upper, mut lower) = (a.clone(), identity::<F>(size, size));
    let mut rows: Vec<usize> = (0..size).collect();
    for k in 0..size {
        let better = |best: usize, i: usize| {
            if upper[(i, k)].modulus() > upper[(best, k)].modulus() { i } else { best }
        };
        let pivot = (k + 1..size).fold(k, better);
        if pivot != k {
            rows.swap(k, pivot);
            (k..size).for_each(|j| swap(&mut upper, (k, j), (pivot, j)));
            (0..k).for_each(|j| swap(&mut lower, (k, j), (pivot, j)));
        }
        for i in k + 1..size {
            let factor = upper[(i, k)].over(upper[(k, k)]);
            lower[(i, k)] = factor;
            upper[(i, k)] = F::default();
            for j in k + 1..size {
                upper[(i, j)] = upper[(i, j)] - factor * upper[(k, j)];
            }
        }
    }
    Lu { lower, upper, rows }
}

/// As [`Field::solve_triangle`].
pub fn solve_triangle<F: Field>(a: &Mat<F>, triangle: Triangle, x: &mut Mat<F>) {
    let size = a.nrows();
    for col in 0..x.ncols() {
        for step in 0..size {
            let (i, known) = match triangle {
                Triangle::Upper => (size - 1 - step, size - step..size),
                _ => (step, 0..step),
            };
            let rest = x[(i, col)] - sum(known.map(|j| a[(i, j)] * x[(j, col)]));
            let unit = triangle == Triangle::UnitLower;
            x[(i, col)] = if unit { rest } else { rest.over(a[(i, i)]) };
        }
    }
}

fn sum<F: Field>(terms: impl Iterator<Item = F>) -> F {
    terms.fold(F::default(), |sum, term| sum + term)
}

fn swap<F: Field>(a: &mut Mat<F>, x: (usize, usize), y: (usize, usize)) {
    (a[x], a[y]) = (a[y], a[x]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::product;
    use num_complex::Complex;

    /// A positive definite matrix.
    fn matrix(size: usize) -> Mat<f64> {
        let element = |i: usize, j: usize| ((i * 7 + j * 3) % 11) as f64 / 11.0;
        let root = Mat::from_fn(size, size, |i, j| element(i, j) + if i == j { 2.0 } else { 0.0 });
        product(&root, &Mat::from_fn(size, size, |i, j| root[(j, i)]))
    }

    fn assert_near(found: &Mat<f64>, expected: &Mat<f64>) {
        for (i, j) in (0..found.nrows()).flat_map(|i| (0..found.ncols()).map(move |j| (i, j))) {
            let (found, expected) = (found[(i, j)], expected[(i, j)]);
            assert!((found - expected).abs() < 1e-12, "[{i}, {j}]: {found} {expected}");
        }
    }

    #[test]
    fn small_matrices_have_the_factors_that_the_library_finds() {
        for size in 1..=SMALL {
            let a = matrix(size);
            let theirs = a.llt(faer::Side::Lower).unwrap();
            assert_near(&cholesky(&a).unwrap(), &theirs.L().to_owned());
            let (ours, theirs) = (lu(&a), a.partial_piv_lu());
            assert_eq!(ours.rows, theirs.P().arrays().0);
            assert_near(&ours.lower, &theirs.L().to_owned());
            assert_near(&ours.upper, &theirs.U().to_owned());
            for triangle in [Triangle::Lower, Triangle::UnitLower, Triangle::Upper] {
                let (mut ours, mut theirs) = (matrix(size), matrix(size));
                solve_triangle(&a, triangle, &mut ours);
                match triangle {
                    Triangle::Lower => a.solve_lower_triangular_in_place(theirs.as_mut()),
                    Triangle::UnitLower => a.solve_unit_lower_triangular_in_place(theirs.as_mut()),
                    Triangle::Upper => a.solve_upper_triangular_in_place(theirs.as_mut()),
                }
                let largest = theirs.norm_max();
                let scaled = |x: &Mat<f64>| Mat::from_fn(size, size, |i, j| x[(i, j)] / largest);
                assert_near(&scaled(&ours), &scaled(&theirs));
            }
        }
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_has_no_cholesky_factor() {
        for diagonal in [0.0, -1.0, f64::NAN] {
            let a = Mat::from_fn(3, 3, |i, j| if i == j && i < 2 { 1.0 } else { 0.0 });
            let a = Mat::from_fn(3, 3, |i, j| if i == 2 && j == 2 { diagonal } else { a[(i, j)] });
            assert!(cholesky(&a).is_none());
            assert!(cholesky(&Mat::from_fn(3, 3, |i, j| Complex::from(a[(i, j)]))).is_none());
        }
    }
}
