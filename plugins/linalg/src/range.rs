//! Decompositions of matrices whose elements are near the limits of their type.
//!
//! The algorithms use squares and reciprocals, which overflow or are flushed to zero long before
//! the result would. So a matrix is first multiplied by powers of two, which rounds nothing, and
//! the result by their inverses:
//!
//! - For singular values and eigenvalues, which are accurate relative to the largest one, the whole
//!   matrix is multiplied by one power, as in LAPACK's `gesvd` and `syevd`.
//! - For Q and R, for triangles and for solutions, each column has its own power; for Cholesky's
//!   factor, each row and the column of the same index share one. A matrix may contain both the
//!   largest and the smallest numbers, and its small columns must not vanish. `faer` computes
//!   ratios of columns, so such matrices are decomposed by the plain loops of [`C`], in doubles,
//!   and scaled only where doubles would not suffice.
//!
//! Matrices of ordinary magnitude are unchanged. Infinite and NaN elements are not scaled.

use crate::{
    scalar::{Field, Lu, Svd, Triangle},
    schur::Schur,
};
use faer::Mat;
use num_complex::Complex;

type C = Complex<f64>;

/// Limits of the binary exponents of a type's numbers.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Largest exponent (and negated, smallest) of numbers whose squares and ratios are correct.
    pub squares: i32,
    /// Exponents above the first are reduced to the second: reciprocals and sums are then finite,
    /// and not flushed.
    pub high: [i32; 2],
    /// Exponents below the first are raised to the second: products with factors of elimination are
    /// then not flushed.
    pub low: [i32; 2],
    /// The exponent of the largest power of two that one step multiplies or divides by.
    pub most: i32,
}

/// The binary exponent of the largest of some numbers; `None` if that is zero or not finite.
fn exponent<F: Field>(elements: impl Iterator<Item = F>) -> Option<i32> {
    let larger = |largest: f64, x: F| {
        let Complex { re, im } = x.to_complex();
        largest.max(re.abs()).max(im.abs())
    };
    let largest = elements.fold(0.0, larger);
    let exponent = (largest.to_bits() >> 52) as i32 - 1023;
    (largest > 0.0 && largest.is_finite()).then_some(exponent)
}

/// The exponent of two to divide a whole matrix by, so that its squares are correct; 0 if they are
/// already.
fn whole<F: Field>(a: &Mat<F>) -> i32 {
    let exponent = exponent(a.col_iter().flat_map(|column| column.iter().copied()));
    let wrong = exponent.filter(|e| e.abs() > F::LIMITS.squares).unwrap_or(0);
    wrong.clamp(-F::LIMITS.most, F::LIMITS.most)
}

/// The exponent of two to divide some numbers by, so that their sums, reciprocals and products are
/// correct; 0 if they are already.
fn part<F: Field>(elements: impl Iterator<Item = F>) -> i32 {
    let Limits { high, low, .. } = F::LIMITS;
    match exponent(elements) {
        Some(exponent) if exponent > high[0] => exponent - high[1],
        Some(exponent) if exponent < low[0] => exponent - low[1],
        _ => 0,
    }
}

fn column_powers<F: Field>(a: &Mat<F>) -> Vec<i32> {
    a.col_iter().map(|column| part(column.iter().copied())).collect()
}

/// The matrix with element `i, j` multiplied by two to the power of `power(i, j)`.
fn shifted<F: Field>(a: &Mat<F>, power: impl Fn(usize, usize) -> i32) -> Mat<F> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)].shifted(power(i, j)))
}

/// The result of `find` for the matrix scaled by one power of two, and that power.
fn found_of<F: Field, R>(a: &Mat<F>, find: impl Fn(&Mat<F>) -> Option<R>) -> Option<(R, i32)> {
    match whole(a) {
        0 => Some((find(a)?, 0)),
        power => Some((find(&shifted(a, |_, _| -power))?, power)),
    }
}

fn values_shifted(mut values: Vec<f64>, power: i32) -> Vec<f64> {
    values.iter_mut().for_each(|value| *value = value.shifted(power));
    values
}

/// Like [`Field::svd`].
pub fn svd<F: Field>(a: &Mat<F>, full: bool) -> Option<Svd<F>> {
    let (found, power) = found_of(a, |a| F::svd(a, full))?;
    Some(Svd { values: values_shifted(found.values, power), ..found })
}

/// Like [`Field::singular_values`].
pub fn singular_values<F: Field>(a: &Mat<F>) -> Option<Vec<f64>> {
    let (values, power) = found_of(a, F::singular_values)?;
    Some(values_shifted(values, power))
}

/// Like [`Field::eigen`].
pub fn eigen<F: Field>(a: &Mat<F>) -> Option<(Vec<f64>, Mat<F>)> {
    let ((values, vectors), power) = found_of(a, F::eigen)?;
    Some((values_shifted(values, power), vectors))
}

/// Like [`Field::eigenvalues`].
pub fn eigenvalues<F: Field>(a: &Mat<F>) -> Option<Vec<f64>> {
    let (values, power) = found_of(a, F::eigenvalues)?;
    Some(values_shifted(values, power))
}

/// The Schur decomposition of a matrix that was divided by two to the power of the second number, which is even.
pub fn schur<F: Field>(a: &Mat<F>) -> Option<(Schur, i32)> {
    let a = widened(a);
    let power = whole(&a) & !1;
    Some((Schur::new(&shifted(&a, |_, _| -power))?, power))
}

/// The elements of a matrix times two to a power, narrowed.
pub fn finished<F: Field>(a: &Mat<C>, power: i32) -> Mat<F> {
    narrowed(&shifted(a, |_, _| power))
}

/// Whether the elements of a column are so large or small that its ratio to others may overflow.
fn is_far<F: Field>(column: impl Iterator<Item = F>) -> bool {
    exponent(column).is_some_and(|exponent| exponent.abs() > F::LIMITS.squares)
}

fn is_extreme<F: Field>(a: &Mat<F>) -> bool {
    a.col_iter().any(|column| is_far(column.iter().copied()))
}

fn widened<F: Field>(a: &Mat<F>) -> Mat<C> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)].to_complex())
}

fn narrowed<F: Field>(a: &Mat<C>) -> Mat<F> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| F::from_complex(a[(i, j)]))
}

/// Like [`Field::qr`].
pub fn qr<F: Field>(a: &Mat<F>, inner: usize) -> (Mat<F>, Mat<F>) {
    if !is_extreme(a) {
        return F::qr(a, inner);
    }
    let a = widened(a);
    let powers = column_powers(&a);
    let (q, r) = C::qr(&shifted(&a, |_, j| -powers[j]), inner);
    (narrowed(&q), narrowed(&shifted(&r, |_, j| powers[j])))
}

/// Like [`Field::cholesky`].
pub fn cholesky<F: Field>(a: &Mat<F>) -> Option<Mat<F>> {
    let diagonal = Mat::from_fn(1, a.nrows(), |_, i| a[(i, i)]);
    if !is_extreme(&diagonal) {
        return F::cholesky(a);
    }
    // Halves of the diagonal's exponents: a row and a column are multiplied by each.
    let powers = column_powers(&widened(&diagonal));
    let half = |i: usize| powers[i].div_euclid(2);
    let factor = C::cholesky(&shifted(&widened(a), |i, j| -half(i) - half(j)))?;
    Some(narrowed(&shifted(&factor, |i, _| half(i))))
}

/// The LU decomposition of a matrix.
pub enum Factors<F> {
    /// Computed in the type itself.
    Plain(Lu<F>),
    /// Of a matrix whose column `j` was divided by two to the power of the `j`th number.
    Scaled(Lu<C>, Vec<i32>),
}

impl<F: Field> Factors<F> {
    /// Decomposes a square matrix.
    pub fn new(a: &Mat<F>) -> Factors<F> {
        if !is_extreme(a) {
            return Factors::Plain(F::lu(a));
        }
        let a = widened(a);
        let powers = column_powers(&a);
        Factors::Scaled(C::lu(&shifted(&a, |_, j| -powers[j])), powers)
    }

    /// The source of each row.
    pub fn rows(&self) -> &[usize] {
        match self {
            Factors::Plain(lu) => &lu.rows,
            Factors::Scaled(lu, _) => &lu.rows,
        }
    }

    /// The lower triangle below the diagonal, and the upper one, in one matrix.
    pub fn packed(&self) -> Mat<F> {
        fn both<F: Field>(lu: &Lu<F>) -> Mat<F> {
            let element = |i, j| if i > j { lu.lower[(i, j)] } else { lu.upper[(i, j)] };
            Mat::from_fn(lu.rows.len(), lu.rows.len(), element)
        }
        match self {
            Factors::Plain(lu) => both(lu),
            Factors::Scaled(lu, powers) => {
                narrowed(&shifted(&both(lu), |i, j| if i > j { 0 } else { powers[j] }))
            }
        }
    }

    /// The diagonal of the upper triangle: each number is to be multiplied by two to its exponent.
    pub fn pivots(&self) -> impl Iterator<Item = (C, i32)> + '_ {
        (0..self.rows().len()).map(|i| match self {
            Factors::Plain(lu) => (lu.upper[(i, i)].to_complex(), 0),
            Factors::Scaled(lu, powers) => (lu.upper[(i, i)], powers[i]),
        })
    }

    /// The solution `X` of `A X = B`.
    pub fn solve(&self, b: &Mat<F>) -> Mat<F> {
        match self {
            Factors::Plain(lu) => solve_with(lu, &[], b),
            Factors::Scaled(lu, powers) => narrowed(&solve_with(lu, powers, &widened(b))),
        }
    }
}

fn solve_with<F: Field>(lu: &Lu<F>, powers: &[i32], b: &Mat<F>) -> Mat<F> {
    let mut x = Mat::from_fn(b.nrows(), b.ncols(), |i, j| b[(lu.rows[i], j)]);
    solve_scaled(powers, &mut x, |x| {
        F::solve_triangle(&lu.lower, Triangle::UnitLower, x);
        F::solve_triangle(&lu.upper, Triangle::Upper, x);
    });
    x
}

/// Like [`Field::solve_triangle`]. Only the triangle is used.
pub fn solve_triangle<F: Field>(a: &Mat<F>, triangle: Triangle, x: &mut Mat<F>) {
    let counts = |i, j| if triangle == Triangle::Upper { i <= j } else { i >= j };
    let column = |j| (0..a.nrows()).filter(move |&i| counts(i, j)).map(move |i| a[(i, j)]);
    if !(0..a.ncols()).any(|j| is_far(column(j))) {
        return solve_scaled(&[], x, |x| F::solve_triangle(a, triangle, x));
    }
    let element = |i, j| if counts(i, j) { a[(i, j)].to_complex() } else { C::ZERO };
    let part = Mat::from_fn(a.nrows(), a.ncols(), element);
    let powers = column_powers(&part);
    let (part, mut solution) = (shifted(&part, |_, j| -powers[j]), widened(x));
    solve_scaled(&powers, &mut solution, |x| C::solve_triangle(&part, triangle, x));
    *x = narrowed(&solution);
}

/// Solves with a matrix whose columns were divided by these powers of two; an empty list means
/// undivided. Very small columns of `x` are scaled up meanwhile; large ones are not scaled down,
/// because they may have small elements too.
fn solve_scaled<F: Field>(powers: &[i32], x: &mut Mat<F>, solve: impl FnOnce(&mut Mat<F>)) {
    let small: Vec<i32> = column_powers(x).into_iter().map(|power| power.min(0)).collect();
    if small.iter().chain(powers).all(|power| *power == 0) {
        return solve(x);
    }
    *x = shifted(x, |_, j| -small[j]);
    solve(x);
    *x = shifted(x, |i, j| small[j] - powers.get(i).unwrap_or(&0));
}

/// A number whose larger part is near 1, and the exponent of two to multiply it by. Zero and
/// numbers that are not finite are unchanged.
pub fn near_one(value: C) -> (C, i32) {
    let limit = f64::LIMITS.most;
    let power = exponent(std::iter::once(value)).unwrap_or(0).clamp(-limit, limit);
    (value.shifted(-power), power)
}

/// A product of many numbers whose intermediate values are finite whenever the result is.
pub struct Product {
    product: C,
    power: i64,
}

impl Product {
    /// A product of one number.
    pub fn new(first: f64) -> Product {
        Product { product: first.into(), power: 0 }
    }

    /// Multiplies by another number, times two to the power of `power`.
    pub fn times(&mut self, factor: C, power: i32) {
        let ((factor, own), (product, so_far)) = (near_one(factor), near_one(self.product));
        self.power += [power, own, so_far].map(i64::from).iter().sum::<i64>();
        self.product = if product.im == 0.0 && factor.im == 0.0 {
            // An infinite real number has no imaginary part, which would be zero times it.
            (product.re * factor.re).into()
        } else {
            product * factor
        };
    }

    /// The product.
    pub fn value(self) -> C {
        // Beyond these exponents it is infinite or zero.
        self.product.shifted(self.power.clamp(-1200, 1200) as i32)
    }
}

#[cfg(test)]
#[path = "range_tests.rs"]
mod tests;
