//! Compares a matrix of ordinary magnitude with the same matrix near the limits of its type: the
//! results are equal except for the power of two. (tests/goldens/linalg has TensorFlow's values.)

use super::*;
use crate::scalar::identity;

/// Reproducible numbers, at most about 1, and largest on the diagonal.
fn regular<F: Field>(rows: usize, cols: usize) -> Mat<F> {
    let mut state = 1 + 0x9e37_79b9_7f4a_7c15u64.wrapping_mul((rows * 1000 + cols) as u64);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let size = 3.0 + cols as f64 / 2.0;
    Mat::from_fn(rows, cols, |i, j| {
        let diagonal = if i == j { 1.0 } else { 0.0 };
        F::from_complex(Complex::new(next(), next()) / size + diagonal)
    })
}

fn definite<F: Field>(size: usize) -> Mat<F> {
    let a = regular::<F>(size, size);
    let element = |i: usize, j: usize| {
        let terms = (0..size).map(|k| a[(i, k)].to_complex() * a[(j, k)].to_complex().conj());
        F::from_complex(terms.sum())
    };
    Mat::from_fn(size, size, element)
}

/// Whether matrices agree, relative to the largest element of the second.
#[track_caller]
fn assert_near<F: Field>(found: &Mat<F>, expected: &Mat<F>, what: &str) {
    assert_eq!((found.nrows(), found.ncols()), (expected.nrows(), expected.ncols()), "{what}");
    let elements = || expected.col_iter().flat_map(|column| column.iter().copied());
    let largest = elements().map(|x| x.to_complex().norm()).fold(0.0, f64::max);
    let tolerance = if F::LIMITS.most < 1000 { 1e-5 } else { 1e-13 } * largest;
    for i in 0..found.nrows() {
        for j in 0..found.ncols() {
            let (found, expected) = (found[(i, j)].to_complex(), expected[(i, j)].to_complex());
            let off = (found - expected).norm();
            assert!(off <= tolerance, "{what} at {i}, {j}: {found:e}, expected {expected:e}");
        }
    }
}

#[track_caller]
fn assert_values(found: &[f64], ordinary: &[f64], power: i32, what: &str) {
    let expected: Vec<f64> = ordinary.iter().map(|value| value.shifted(power)).collect();
    assert_eq!(found, expected, "{what} times 2^{power}");
}

/// Exponents of two that leave no element zero or infinite.
fn powers<F: Field>() -> [i32; 6] {
    let (high, most) = (F::LIMITS.high[0], F::LIMITS.most);
    [most, high - 10, F::LIMITS.squares + 8, -F::LIMITS.squares - 8, 30 - high, 24 - most]
}

fn check_values<F: Field>(size: usize) {
    let (a, b) = (regular::<F>(size + 2, size), definite::<F>(size));
    let (ordinary, plain) = (svd(&a, false).unwrap(), singular_values(&a).unwrap());
    let ((e, v), e_plain) = (eigen(&b).unwrap(), eigenvalues(&b).unwrap());
    for power in powers::<F>() {
        let (a, b) = (shifted(&a, |_, _| power), shifted(&b, |_, _| power));
        let found = svd(&a, false).unwrap();
        assert_values(&found.values, &ordinary.values, power, "singular values");
        assert_near(&found.left, &ordinary.left, "left vectors");
        assert_near(&found.right, &ordinary.right, "right vectors");
        assert_values(&singular_values(&a).unwrap(), &plain, power, "singular values alone");
        let (values, vectors) = eigen(&b).unwrap();
        assert_values(&values, &e, power, "eigenvalues");
        assert_near(&vectors, &v, "eigenvectors");
        assert_values(&eigenvalues(&b).unwrap(), &e_plain, power, "eigenvalues alone");
    }
}

/// Checks a matrix whose columns are multiplied by these powers.
fn check_columns<F: Field>(by: &[i32]) {
    let size = by.len();
    let (a, b, rhs) = (regular::<F>(size, size), definite::<F>(size), regular::<F>(size, 2));
    let scaled = shifted(&a, |_, j| by[j]);
    let ((q, r), (found_q, found_r)) = (qr(&a, size), qr(&scaled, size));
    assert_near(&found_q, &q, "Q");
    assert_near(&shifted(&found_r, |_, j| -by[j]), &r, "R");
    let x = Factors::new(&a).solve(&rhs);
    let found = Factors::new(&scaled).solve(&rhs);
    assert_near(&shifted(&found, |i, _| by[i]), &x, "solution");
    for triangle in [Triangle::Lower, Triangle::Upper] {
        let (mut ordinary, mut found) = (rhs.clone(), rhs.clone());
        solve_triangle(&a, triangle, &mut ordinary);
        solve_triangle(&scaled, triangle, &mut found);
        assert_near(&shifted(&found, |i, _| by[i]), &ordinary, "solution with a triangle");
    }
    // An element of the matrix is multiplied by two half powers.
    let half = |i: usize| by[i].div_euclid(2);
    let (factor, found) =
        (cholesky(&b).unwrap(), cholesky(&shifted(&b, |i, j| half(i) + half(j))).unwrap());
    assert_near(&shifted(&found, |i, _| -half(i)), &factor, "cholesky's factor");
}

fn check<F: Field>() {
    for size in [1, 3, 9, 24] {
        check_values::<F>(size);
        for power in powers::<F>() {
            check_columns::<F>(&vec![power; size]);
        }
        let both = powers::<F>();
        let mixed: Vec<i32> = (0..size).map(|i| both[i % both.len()]).collect();
        check_columns::<F>(&mixed);
    }
}

#[test]
fn results_do_not_depend_on_the_size_of_the_elements() {
    check::<f32>();
    check::<f64>();
    check::<Complex<f64>>();
}

/// A matrix that contains the largest and the smallest numbers preserves both.
fn check_diagonal<F: Field>(by: [i32; 4]) {
    let diagonal = |power: &dyn Fn(usize) -> i32| {
        shifted(&identity::<F>(4, 4), |i, j| if i == j { power(i) } else { 0 })
    };
    let (a, one) = (diagonal(&|i| by[i]), identity::<F>(4, 4));
    let exactly = |found: &Mat<F>, power: &dyn Fn(usize) -> i32, what: &str| {
        let expected = diagonal(power);
        for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
            assert_eq!(found[(i, j)].to_complex(), expected[(i, j)].to_complex(), "{what}");
        }
    };
    exactly(&Factors::new(&a).solve(&one), &|i| -by[i], "the inverse");
    for triangle in [Triangle::Lower, Triangle::Upper] {
        let mut x = one.clone();
        solve_triangle(&a, triangle, &mut x);
        exactly(&x, &|i| -by[i], "the inverse of a triangle");
    }
    exactly(&Factors::new(&one).solve(&a), &|i| by[i], "a right side");
    let signs = F::qr(&one, 4).1;
    let r = shifted(&qr(&a, 4).1, |_, j| -by[j]);
    assert_near(&r, &signs, "R");
    exactly(&cholesky(&a).unwrap(), &|i| by[i] / 2, "cholesky's factor");
}

#[test]
fn small_columns_beside_large_ones_are_kept() {
    check_diagonal::<f32>([120, -120, 2, -100]);
    check_diagonal::<f64>([1000, -1000, 2, -900]);
    check_diagonal::<Complex<f64>>([1000, -1000, 2, -900]);
}

#[test]
fn what_is_not_finite_ends() {
    fn all<F: Field>() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for size in [1, 3, 40] {
                for at in [(0, 0), (size - 1, 0), (size - 1, size - 1)] {
                    let mut a = definite::<F>(size);
                    a[at] = F::from_complex(bad.into());
                    let mut x = identity::<F>(size, size);
                    solve_triangle(&a, Triangle::Lower, &mut x);
                    let r = qr(&a, size).1;
                    let finite = (0..size).all(|i| r[(i, at.1)].to_complex().is_finite());
                    assert!(!finite, "R of a matrix with {bad} at {at:?}");
                    let _ = cholesky(&a);
                    let _ = Factors::new(&a).solve(&x);
                }
            }
        }
    }
    all::<f32>();
    all::<f64>();
    all::<Complex<f64>>();
}

#[test]
fn a_product_is_finite_when_its_value_is() {
    let mut product = Product::new(-1.0);
    for factor in [1e300, 1e300, 1e-300, 4e-300] {
        product.times(Complex::from(factor), 0);
    }
    assert!((product.value().re + 4.0).abs() < 1e-13);
    let mut product = Product::new(1.0);
    product.times(Complex::new(3.0, 4.0), 1000);
    product.times(Complex::new(3.0, -4.0), -1000);
    assert_eq!(product.value(), Complex::new(25.0, 0.0));
    for (factor, expected) in [(1e200, f64::INFINITY), (1e-200, 0.0)] {
        let mut product = Product::new(1.0);
        (0..8).for_each(|_| product.times(Complex::from(factor), 0));
        assert_eq!(product.value().re, expected);
    }
}
