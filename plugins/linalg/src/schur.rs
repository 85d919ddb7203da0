//! The Schur decomposition, which every square matrix has, and functions of its triangle.
//!
//! Sources: Golub and Van Loan, "Matrix Computations" (2013), chapter 7; Björck and Hammarling, "A Schur method for the
//! square root of a matrix" (1983); Higham, "Functions of Matrices" (2008), chapter 11.

use crate::{
    complex::{product as product_of_reflections, reduce_column},
    scalar::{Field, Triangle, adjoint, identity, product},
};
use faer::Mat;
use num_complex::Complex;

type C = Complex<f64>;

/// Most sweeps for each eigenvalue, on average.
const SWEEPS: usize = 40;
/// Sweeps without an eigenvalue after which a shift is chosen otherwise.
const PATIENCE: usize = 10;

/// A matrix as `Q T Q^H`: T is an upper triangle, with the eigenvalues on its diagonal, and the
/// columns of Q are orthonormal.
pub struct Schur {
    /// T.
    pub triangle: Mat<C>,
    /// Q.
    pub vectors: Mat<C>,
}

impl Schur {
    /// Decomposes a finite matrix; `None` where the iteration does not converge.
    pub fn new(a: &Mat<C>) -> Option<Schur> {
        let mut schur = Schur::hessenberg(a);
        let (mut last, mut tries) = (a.nrows().saturating_sub(1), 0);
        let mut left = a.nrows().saturating_mul(SWEEPS);
        while last > 0 {
            let first = schur.deflated(last);
            if first == last {
                (last, tries) = (last - 1, 0);
                continue;
            }
            left = left.checked_sub(1)?;
            tries += 1;
            let shift = schur.shift(last, tries);
            schur.sweep(first, last, shift);
        }
        Some(schur)
    }

    /// The same for a matrix with one diagonal below the triangle.
    fn hessenberg(a: &Mat<C>) -> Schur {
        let (mut triangle, size) = (a.clone(), a.nrows());
        let mut reflections = Vec::new();
        for k in 0..size.saturating_sub(2) {
            let reflection = reduce_column(&mut triangle, k + 1, k);
            reflection.follow(&mut triangle, 0..size);
            reflections.push(reflection);
        }
        Schur { triangle, vectors: product_of_reflections(&reflections, size, size) }
    }

    /// The first row of the block that ends at `last`: what is left of the diagonal there is so
    /// small that it counts as zero.
    fn deflated(&mut self, last: usize) -> usize {
        let t = &mut self.triangle;
        for row in (1..=last).rev() {
            let around = t[(row - 1, row - 1)].l1_norm() + t[(row, row)].l1_norm();
            let size = if around > 0.0 { around } else { t[(row - 1, row)].l1_norm() };
            if t[(row, row - 1)].l1_norm() <= f64::EPSILON * size {
                t[(row, row - 1)] = C::ZERO;
                return row;
            }
        }
        0
    }

    /// The eigenvalue of the last two rows that is closer to the last element of the diagonal.
    fn shift(&self, last: usize, tries: usize) -> C {
        let t = &self.triangle;
        let (corner, left) = (t[(last, last)], t[(last, last - 1)]);
        if tries.is_multiple_of(PATIENCE) {
            return corner + left.l1_norm() * 0.75;
        }
        let half = (t[(last - 1, last - 1)] - corner) * 0.5;
        let outer = t[(last - 1, last)] * left;
        let root = (half * half + outer).sqrt();
        let (sum, difference) = (half + root, half - root);
        let larger = if sum.norm() >= difference.norm() { sum } else { difference };
        if larger == C::ZERO { corner } else { corner - outer.over(larger) }
    }

    /// One step of the QR iteration on a block.
    fn sweep(&mut self, first: usize, last: usize, shift: C) {
        let size = self.triangle.nrows();
        for k in first..last {
            let t = &mut self.triangle;
            let from = if k > first { k - 1 } else { k };
            let (mut x, y) = (t[(k, from)], t[(k + 1, from)]);
            if k == first {
                x -= shift;
            }
            let norm = x.norm().hypot(y.norm());
            if norm == 0.0 {
                continue;
            }
            let (c, s) = (x / norm, y / norm);
            for j in from..size {
                let (x, y) = (t[(k, j)], t[(k + 1, j)]);
                t[(k, j)] = c.conj() * x + s.conj() * y;
                t[(k + 1, j)] = c * y - s * x;
            }
            if k > first {
                t[(k + 1, from)] = C::ZERO;
            }
            turn_columns(t, k, (k + 2).min(last) + 1, [c, s]);
            turn_columns(&mut self.vectors, k, size, [c, s]);
        }
    }

    /// `Q F Q^H` for another triangle F.
    pub fn with(&self, triangle: &Mat<C>) -> Mat<C> {
        product(&product(&self.vectors, triangle), &adjoint(&self.vectors))
    }

    /// The eigenvectors of the matrix as columns of length 1, in the order of the diagonal.
    pub fn eigenvectors(&self) -> Mat<C> {
        let (t, size) = (&self.triangle, self.triangle.nrows());
        let norm = (0..size).flat_map(|j| (0..=j).map(move |i| (i, j)));
        let largest = norm.fold(0.0, |largest: f64, at| largest.max(t[at].norm()));
        let mut x = identity::<C>(size, size);
        for k in 0..size {
            for i in (0..k).rev() {
                let sum: C = (i + 1..=k).map(|j| t[(i, j)] * x[(j, k)]).sum();
                let apart = t[(k, k)] - t[(i, i)];
                // Equal eigenvalues are taken for two that are as close as rounding makes them.
                let least = f64::EPSILON * largest;
                x[(i, k)] = if sum == C::ZERO {
                    C::ZERO
                } else {
                    sum.over(if apart == C::ZERO { least.into() } else { apart })
                };
            }
        }
        let mut vectors = product(&self.vectors, &x);
        for k in 0..size {
            let largest = (0..size).map(|i| vectors[(i, k)].norm()).fold(0.0, f64::max);
            let sum = (0..size).map(|i| (vectors[(i, k)] / largest).norm_sqr()).sum::<f64>();
            (0..size).for_each(|i| vectors[(i, k)] /= largest * sum.sqrt());
        }
        vectors
    }
}

/// Multiplies columns `k` and `k + 1` of the first rows by a rotation.
fn turn_columns(a: &mut Mat<C>, k: usize, rows: usize, [c, s]: [C; 2]) {
    for i in 0..rows {
        let (x, y) = (a[(i, k)], a[(i, k + 1)]);
        a[(i, k)] = x * c + y * s;
        a[(i, k + 1)] = y * c.conj() - x * s.conj();
    }
}

/// The principal square root of an upper triangle.
pub fn root(t: &Mat<C>) -> Mat<C> {
    let size = t.nrows();
    let mut root: Mat<C> = Mat::zeros(size, size);
    for j in 0..size {
        root[(j, j)] = t[(j, j)].sqrt();
        for i in (0..j).rev() {
            let sum: C = (i + 1..j).map(|k| root[(i, k)] * root[(k, j)]).sum();
            let rest = t[(i, j)] - sum;
            if rest != C::ZERO {
                root[(i, j)] = rest.over(root[(i, i)] + root[(j, j)]);
            }
        }
    }
    root
}

/// The places and weights of Gauss and Legendre's quadrature of seven points between 0 and 1, by
/// which the integral of `X (I + x X)^-1` is the Padé approximant of degree 7 of `ln(I + X)`.
const QUADRATURE: [[f64; 2]; 7] = [
    [0.025_446_043_828_620_736, 0.064_742_483_084_434_85],
    [0.129_234_407_200_302_78, 0.139_852_695_744_638_34],
    [0.297_077_424_311_301_4, 0.190_915_025_252_559_47],
    [0.5, 0.208_979_591_836_734_7],
    [0.702_922_575_688_698_6, 0.190_915_025_252_559_47],
    [0.870_765_592_799_697_2, 0.139_852_695_744_638_34],
    [0.974_553_956_171_379_3, 0.064_742_483_084_434_85],
];
/// The norm up to which that approximant is exact to double precision.
const CLOSE: f64 = 0.25;
/// Most square roots until a triangle is close to the identity.
const ROOTS: i32 = 64;

/// The principal logarithm of an upper triangle; `None` if it is singular.
pub fn logarithm(t: &Mat<C>) -> Option<Mat<C>> {
    let size = t.nrows();
    let (mut near, mut roots) = (t.clone(), 0);
    // A root is taken until the matrix is close to the identity; the logarithm is halved by each.
    while distance(&near) > CLOSE {
        if roots == ROOTS {
            return None;
        }
        near = root(&near);
        roots += 1;
    }
    if !distance(&near).is_finite() {
        return None;
    }
    let off =
        Mat::from_fn(size, size, |i, j| if i == j { near[(i, j)] - 1.0 } else { near[(i, j)] });
    let mut sum: Mat<C> = Mat::zeros(size, size);
    for [place, weight] in QUADRATURE {
        let element = |i, j| off[(i, j)] * place + if i == j { 1.0 } else { 0.0 };
        let mut term = off.clone();
        C::solve_triangle(&Mat::from_fn(size, size, element), Triangle::Upper, &mut term);
        sum = Mat::from_fn(size, size, |i, j| sum[(i, j)] + term[(i, j)] * weight);
    }
    let factor = 2f64.powi(roots);
    let element = |i, j| if i == j { t[(i, i)].ln() } else { sum[(i, j)] * factor };
    Some(Mat::from_fn(size, size, element))
}

/// The greatest sum of moduli of a column of the difference from the identity; NaN counts.
fn distance(a: &Mat<C>) -> f64 {
    let column = |j: usize| {
        (0..=j).map(|i| (a[(i, j)] - if i == j { 1.0 } else { 0.0 }).norm()).sum::<f64>()
    };
    (0..a.ncols()).map(column).fold(0.0, |a, b| if b > a || b.is_nan() { b } else { a })
}
