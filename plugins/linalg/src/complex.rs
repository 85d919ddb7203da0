//! Complex matrices: triangles by plain loops, and reflections that reduce a matrix to a real one,
//! whose values and vectors `faer` computes.
//!
//! `faer` alone does not suffice: its reciprocal of a complex number (0.24) is 0 where the square
//! of the modulus, times the greatest number, overflows (both parts at most 1, the modulus above
//! 1), and where the inverse of that is denormal and denormals are flushed, as they are in kernels.
//! Such numbers are common as pivots and in reflections.

use crate::{
    plain,
    range::Limits,
    scalar::{Field, Lu, Svd, Triangle, identity},
};
use faer::Mat;
use num_complex::Complex;

type C = Complex<f64>;

/// `x / y`, even where the square of `y` overflows or underflows.
fn divide(x: C, y: C) -> C {
    if y.im == 0.0 { x / y.re } else { x.fdiv(y) }
}

impl Field for C {
    const LIMITS: Limits = f64::LIMITS;

    fn shifted(self, power: i32) -> C {
        Complex::new(self.re.shifted(power), self.im.shifted(power))
    }

    fn to_complex(self) -> C {
        self
    }

    fn from_complex(value: C) -> C {
        value
    }

    fn conjugate(self) -> C {
        self.conj()
    }

    fn over(self, by: C) -> C {
        divide(self, by)
    }

    fn cholesky(a: &Mat<C>) -> Option<Mat<C>> {
        plain::cholesky(a)
    }

    fn lu(a: &Mat<C>) -> Lu<C> {
        plain::lu(a)
    }

    fn solve_triangle(a: &Mat<C>, triangle: Triangle, x: &mut Mat<C>) {
        plain::solve_triangle(a, triangle, x);
    }

    fn qr(a: &Mat<C>, inner: usize) -> (Mat<C>, Mat<C>) {
        let mut r = a.clone();
        let steps = a.nrows().min(a.ncols());
        let reflections: Vec<Reflection> =
            (0..steps).map(|k| reduce_column(&mut r, k, k)).collect();
        let q = product(&reflections, a.nrows(), inner);
        (q, Mat::from_fn(inner, a.ncols(), |i, j| if i <= j { r[(i, j)] } else { C::ZERO }))
    }

    fn svd(a: &Mat<C>, full: bool) -> Option<Svd<C>> {
        if a.nrows() < a.ncols() {
            let Svd { values, left, right } = Self::svd(&crate::scalar::adjoint(a), full)?;
            return Some(Svd { values, left: right, right: left });
        }
        let (rows, cols) = (a.nrows(), a.ncols());
        let (band, left, right) = bidiagonal(a);
        let found = f64::svd(&band, false)?;
        let mut u = product(&left, rows, if full { rows } else { cols });
        multiply(&mut u, &found.left);
        let mut v = product(&right, cols, cols);
        multiply(&mut v, &found.right);
        Some(Svd { values: found.values, left: u, right: v })
    }

    fn singular_values(a: &Mat<C>) -> Option<Vec<f64>> {
        if a.nrows() < a.ncols() {
            return Self::singular_values(&crate::scalar::adjoint(a));
        }
        f64::singular_values(&bidiagonal(a).0)
    }

    fn eigen(a: &Mat<C>) -> Option<(Vec<f64>, Mat<C>)> {
        let (band, reflections) = tridiagonal(a);
        let (values, vectors) = f64::eigen(&band)?;
        let mut q = product(&reflections, a.nrows(), a.nrows());
        multiply(&mut q, &vectors);
        Some((values, q))
    }

    fn eigenvalues(a: &Mat<C>) -> Option<Vec<f64>> {
        f64::eigenvalues(&tridiagonal(a).0)
    }
}

/// `H = I - tau v v^H`, where `v` is zero before `first`.
pub struct Reflection {
    first: usize,
    vector: Vec<C>,
    tau: C,
}

impl Reflection {
    /// LAPACK's reflection: its adjoint maps `x`, which begins at `first`, to a real number
    /// followed by zeros. Also returns that number.
    fn new(first: usize, mut x: Vec<C>) -> (Reflection, f64) {
        let largest = x.iter().fold(0.0, |largest: f64, x| largest.max(x.norm()));
        let tail = x[1..].iter().any(|&x| x != C::ZERO);
        let head = x[0];
        if !tail && head.im == 0.0 {
            x[0] = C::ONE;
            return (Reflection { first, vector: x, tau: C::ZERO }, head.re);
        }
        let norm = x.iter().map(|x| (x / largest).norm_sqr()).sum::<f64>().sqrt() * largest;
        let beta = if head.re >= 0.0 { -norm } else { norm };
        let tau = (C::from(beta) - head) / beta;
        x[1..].iter_mut().for_each(|x| *x = divide(*x, head - beta));
        x[0] = C::ONE;
        (Reflection { first, vector: x, tau }, beta)
    }

    /// `A - factor v (v^H A)` on these columns: applies H from the left with tau, and its adjoint
    /// with the conjugate.
    fn left(&self, a: &mut Mat<C>, cols: std::ops::Range<usize>, factor: C) {
        for j in cols {
            let rows = self.vector.iter().enumerate();
            let sum: C = rows.map(|(i, v)| v.conj() * a[(self.first + i, j)]).sum();
            let sum = sum * factor;
            for (i, v) in self.vector.iter().enumerate() {
                a[(self.first + i, j)] -= v * sum;
            }
        }
    }

    /// Multiplies these rows by H from the right.
    pub fn follow(&self, a: &mut Mat<C>, rows: std::ops::Range<usize>) {
        self.right(a, rows, self.tau);
    }

    /// `A - factor (A v) v^H` on these rows.
    fn right(&self, a: &mut Mat<C>, rows: std::ops::Range<usize>, factor: C) {
        for i in rows {
            let cols = self.vector.iter().enumerate();
            let sum: C = cols.map(|(j, v)| a[(i, self.first + j)] * v).sum();
            let sum = sum * factor;
            for (j, v) in self.vector.iter().enumerate() {
                a[(i, self.first + j)] -= sum * v.conj();
            }
        }
    }
}

/// Makes column `col` real at row `first` and zero below, from the left.
pub fn reduce_column(a: &mut Mat<C>, first: usize, col: usize) -> Reflection {
    let (reflection, beta) =
        Reflection::new(first, (first..a.nrows()).map(|i| a[(i, col)]).collect());
    reflection.left(a, col + 1..a.ncols(), reflection.tau.conj());
    a[(first, col)] = beta.into();
    (first + 1..a.nrows()).for_each(|i| a[(i, col)] = C::ZERO);
    reflection
}

/// The first columns of the product of reflections.
pub fn product(reflections: &[Reflection], rows: usize, cols: usize) -> Mat<C> {
    let mut q = identity::<C>(rows, cols);
    for reflection in reflections.iter().rev() {
        reflection.left(&mut q, 0..cols, reflection.tau);
    }
    q
}

/// Replaces the first columns of `q`, as many as `a` has rows, by their product with `a`.
fn multiply(q: &mut Mat<C>, a: &Mat<f64>) {
    let mut row = vec![C::ZERO; a.nrows()];
    for i in 0..q.nrows() {
        row.iter_mut().enumerate().for_each(|(k, x)| *x = q[(i, k)]);
        for j in 0..a.ncols() {
            q[(i, j)] = row.iter().enumerate().map(|(k, x)| x * a[(k, j)]).sum();
        }
    }
}

/// A matrix with at least as many rows as columns as `L B R^H`, where B is real, square and
/// bidiagonal.
fn bidiagonal(a: &Mat<C>) -> (Mat<f64>, Vec<Reflection>, Vec<Reflection>) {
    let (mut a, rows, cols) = (a.clone(), a.nrows(), a.ncols());
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let mut band = Mat::zeros(cols, cols);
    for k in 0..cols {
        left.push(reduce_column(&mut a, k, k));
        band[(k, k)] = a[(k, k)].re;
        if k + 1 < cols {
            let row = (k + 1..cols).map(|j| a[(k, j)].conj()).collect();
            let (reflection, beta) = Reflection::new(k + 1, row);
            reflection.right(&mut a, k + 1..rows, reflection.tau);
            band[(k, k + 1)] = beta;
            right.push(reflection);
        }
    }
    (band, left, right)
}

/// A self-adjoint matrix as `Q T Q^H`, where T is real and tridiagonal.
fn tridiagonal(a: &Mat<C>) -> (Mat<f64>, Vec<Reflection>) {
    let (mut a, size) = (a.clone(), a.nrows());
    let mut band = Mat::zeros(size, size);
    let mut reflections = Vec::new();
    for k in 0..size {
        band[(k, k)] = a[(k, k)].re;
        if k + 1 < size {
            let reflection = reduce_column(&mut a, k + 1, k);
            reflection.right(&mut a, k + 1..size, reflection.tau);
            band[(k, k + 1)] = a[(k + 1, k)].re;
            band[(k + 1, k)] = a[(k + 1, k)].re;
            reflections.push(reflection);
        }
    }
    (band, reflections)
}
