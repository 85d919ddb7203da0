//! Properties of decompositions beyond the values in TensorFlow's results: vectors are orthonormal,
//! and factors multiply to the matrix. The vectors are not unique, so they cannot be compared with
//! another implementation's.

use crate::{
    scalar::{Field, Svd, adjoint, identity},
    schur::{self, Schur},
};
use faer::Mat;
use num_complex::Complex;

const SIZES: [(usize, usize); 9] =
    [(1, 1), (2, 2), (5, 3), (3, 5), (17, 17), (40, 7), (7, 40), (33, 32), (40, 40)];

fn product<F: Field>(a: &Mat<F>, b: &Mat<F>) -> Mat<F> {
    let element = |i, j| {
        let terms = (0..a.ncols()).map(|k| a[(i, k)].to_complex() * b[(k, j)].to_complex());
        F::from_complex(terms.sum())
    };
    Mat::from_fn(a.nrows(), b.ncols(), element)
}

/// Reproducible numbers between -1 and 1.
fn random<F: Field>(rows: usize, cols: usize) -> Mat<F> {
    let mut state = 1 + 0x9e37_79b9_7f4a_7c15u64.wrapping_mul((rows * 1000 + cols) as u64);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    Mat::from_fn(rows, cols, |_, _| F::from_complex(Complex::new(next(), next())))
}

/// A matrix of rank 2, or less.
fn thin<F: Field>(rows: usize, cols: usize) -> Mat<F> {
    product(&random(rows, 2), &random(2, cols))
}

#[track_caller]
fn assert_same<F: Field>(found: &Mat<F>, expected: &Mat<F>, tolerance: f64, what: &str) {
    assert_eq!((found.nrows(), found.ncols()), (expected.nrows(), expected.ncols()));
    for i in 0..found.nrows() {
        for j in 0..found.ncols() {
            let off = (found[(i, j)].to_complex() - expected[(i, j)].to_complex()).norm();
            let size = (found.nrows(), found.ncols());
            assert!(off <= tolerance, "{what} of {size:?}: {off:e} at {i}, {j}");
        }
    }
}

fn assert_orthonormal<F: Field>(q: &Mat<F>, tolerance: f64, what: &str) {
    assert_same(&product(&adjoint(q), q), &identity(q.ncols(), q.ncols()), tolerance, what);
}

/// The first columns, as many as there are values, each multiplied by its value.
fn scaled<F: Field>(a: &Mat<F>, values: &[f64]) -> Mat<F> {
    Mat::from_fn(a.nrows(), values.len(), |i, j| {
        F::from_complex(a[(i, j)].to_complex() * values[j])
    })
}

fn check_qr<F: Field>(a: &Mat<F>, tolerance: f64) {
    let least = a.nrows().min(a.ncols());
    for inner in [least, a.nrows()] {
        let (q, r) = F::qr(a, inner);
        assert_orthonormal(&q, tolerance, "Q");
        assert_same(&product(&q, &r), a, tolerance * a.nrows() as f64, "Q R");
        for i in 0..inner {
            (0..i.min(a.ncols())).for_each(|j| assert_eq!(r[(i, j)].to_complex(), Complex::ZERO));
        }
    }
}

fn check_svd<F: Field>(a: &Mat<F>, tolerance: f64) {
    let least = a.nrows().min(a.ncols());
    for full in [false, true] {
        let Svd { values, left, right } = F::svd(a, full).expect("it converges");
        assert_orthonormal(&left, tolerance, "U");
        assert_orthonormal(&right, tolerance, "V");
        let expected = if full { (a.nrows(), a.ncols()) } else { (least, least) };
        assert_eq!((left.ncols(), right.ncols()), expected);
        assert!(values.windows(2).all(|pair| pair[0] >= pair[1]) && values[least - 1] >= 0.0);
        let right = Mat::from_fn(a.ncols(), least, |i, j| right[(i, j)]);
        let found = product(&scaled(&left, &values), &adjoint(&right));
        assert_same(&found, a, tolerance * a.nrows().max(a.ncols()) as f64, "U S V^H");
    }
}

fn check_eigen<F: Field>(a: &Mat<F>, tolerance: f64) {
    let (values, vectors) = F::eigen(a).expect("it converges");
    assert_orthonormal(&vectors, tolerance, "the eigenvectors");
    assert!(values.windows(2).all(|pair| pair[0] <= pair[1]));
    let tolerance = tolerance * a.nrows() as f64;
    assert_same(&product(a, &vectors), &scaled(&vectors, &values), tolerance, "A V");
}

fn check<F: Field>(tolerance: f64) {
    for (rows, cols) in SIZES {
        for a in [random::<F>(rows, cols), thin(rows, cols), identity(rows, cols)] {
            check_qr(&a, tolerance);
            check_svd(&a, tolerance);
        }
    }
    for size in [1, 2, 3, 17, 40] {
        for a in [random::<F>(size, size), thin(size, size), identity(size, size)] {
            let (a, b) = (product(&adjoint(&a), &a), adjoint(&a));
            check_eigen(&a, tolerance);
            // Not positive definite: the sum of a matrix and its adjoint.
            let sum =
                |i, j| F::from_complex(b[(i, j)].to_complex() + b[(j, i)].to_complex().conj());
            check_eigen(&Mat::from_fn(size, size, sum), tolerance);
        }
    }
}

#[test]
fn factors_are_orthonormal_and_multiply_to_the_matrix() {
    check::<f32>(3e-5);
    check::<f64>(1e-13);
    check::<Complex<f64>>(1e-13);
}

/// Both parts at most 1 and a modulus above 1: numbers of which `faer` computes the inverse
/// wrongly.
#[test]
fn pivots_near_one_are_divided_by() {
    let pivot = Complex::new(0.8, 0.7);
    let a = Mat::from_fn(2, 2, |i, j| if i == j { pivot } else { Complex::ZERO });
    let mut x = identity::<Complex<f64>>(2, 2);
    Field::solve_triangle(&a, crate::scalar::Triangle::Upper, &mut x);
    assert_same(&product(&a, &x), &identity(2, 2), 1e-15, "A X");
}

fn check_schur(a: &Mat<Complex<f64>>, tolerance: f64) {
    let schur = Schur::new(a).expect("it converges");
    let (size, tolerance) = (a.nrows(), tolerance * a.nrows() as f64);
    assert_orthonormal(&schur.vectors, tolerance, "Q");
    assert_same(&schur.with(&schur.triangle), a, tolerance, "Q T Q^H");
    for i in 0..size {
        (0..i).for_each(|j| assert_eq!(schur.triangle[(i, j)], Complex::ZERO));
    }
    let vectors = schur.eigenvectors();
    let scaled = Mat::from_fn(size, size, |i, j| vectors[(i, j)] * schur.triangle[(j, j)]);
    assert_same(&product(a, &vectors), &scaled, tolerance, "A V");
}

#[test]
fn every_matrix_is_similar_to_a_triangle_of_its_eigenvalues() {
    for size in [1, 2, 3, 5, 17, 40] {
        let real = random::<f64>(size, size);
        let real = Mat::from_fn(size, size, |i, j| Complex::from(real[(i, j)]));
        for a in [real, random(size, size), identity(size, size)] {
            check_schur(&a, 1e-13);
        }
    }
    // A turn of the columns, whose eigenvalues have one modulus: no shift is nearer to one of them.
    let one = Complex::from(1.0);
    let turn = |i, j| if (i + 1) % 4 == j { one } else { Complex::ZERO };
    check_schur(&Mat::from_fn(4, 4, turn), 1e-13);
}

#[test]
fn roots_and_logarithms_of_triangles() {
    let triangle = |i: usize, j: usize| match i.cmp(&j) {
        std::cmp::Ordering::Less => Complex::new(0.5, -0.25),
        std::cmp::Ordering::Equal => Complex::new(1.0 + i as f64, 0.5),
        std::cmp::Ordering::Greater => Complex::ZERO,
    };
    let a = Mat::from_fn(6, 6, triangle);
    let root = schur::root(&a);
    assert_same(&product(&root, &root), &a, 1e-13, "the square of the root");
    // The logarithm of a square is twice that of the matrix.
    let (once, twice) = (schur::logarithm(&root).unwrap(), schur::logarithm(&a).unwrap());
    assert_same(&Mat::from_fn(6, 6, |i, j| once[(i, j)] * 2.0), &twice, 1e-12, "the logarithm");
    assert!(schur::logarithm(&Mat::zeros(2, 2)).is_none());
}
