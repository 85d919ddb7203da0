//! The element types of matrices, and the types in which they are computed.

use crate::range::Limits;
use faer::Mat;
use half::f16;
use num_complex::Complex;
use std::ops::{Add, Div, Mul, Neg, Sub};
use tenon_sdk::element::Element;

/// A matrix as the product of a unit lower triangle and an upper one, after a permutation of rows:
/// row `i` of the product is row `rows[i]` of the matrix.
pub struct Lu<F> {
    /// The lower triangle.
    pub lower: Mat<F>,
    /// The upper triangle.
    pub upper: Mat<F>,
    /// The source of each row.
    pub rows: Vec<usize>,
}

/// The triangle of a matrix with which to solve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Triangle {
    /// The lower one.
    Lower,
    /// The lower one, with ones on its diagonal.
    UnitLower,
    /// The upper one.
    Upper,
}

/// Singular values, with left and right singular vectors.
pub struct Svd<F> {
    /// Values in descending order.
    pub values: Vec<f64>,
    /// Left vectors, as columns.
    pub left: Mat<F>,
    /// Right vectors, as columns.
    pub right: Mat<F>,
}

/// A type in which decompositions are computed. Matrices have at least one row and one column;
/// those for [`Field::svd`] and [`Field::eigen`] are finite. The functions of [`crate::range`]
/// accept elements of any magnitude.
pub trait Field:
    Element
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// The range in which the algorithms are correct.
    const LIMITS: Limits;
    /// The number times two to the power of `power`, whose magnitude is at most twice
    /// [`Limits::most`].
    fn shifted(self, power: i32) -> Self;
    /// Converts to a complex number of doubles.
    fn to_complex(self) -> Complex<f64>;
    /// Converts from a complex number of doubles, with rounding; a real type takes the real part.
    fn from_complex(value: Complex<f64>) -> Self;
    /// The conjugate.
    fn conjugate(self) -> Self;
    /// The quotient by a number whose square may overflow.
    fn over(self, by: Self) -> Self;
    /// The modulus.
    fn modulus(self) -> f64 {
        self.to_complex().norm()
    }
    /// The lower Cholesky factor of a positive definite matrix.
    fn cholesky(a: &Mat<Self>) -> Option<Mat<Self>>;
    /// The LU decomposition with the largest pivot of each column.
    fn lu(a: &Mat<Self>) -> Lu<Self>;
    /// Overwrites `x` with the solution `X` of `A X = x`.
    fn solve_triangle(a: &Mat<Self>, triangle: Triangle, x: &mut Mat<Self>);
    /// Q with `inner` columns, and R with as many rows.
    fn qr(a: &Mat<Self>, inner: usize) -> (Mat<Self>, Mat<Self>);
    /// The SVD, with as many vectors as the matrix has rows (columns) if `full`, otherwise as it
    /// has values.
    fn svd(a: &Mat<Self>, full: bool) -> Option<Svd<Self>>;
    /// The singular values alone.
    fn singular_values(a: &Mat<Self>) -> Option<Vec<f64>>;
    /// Eigenvalues of a self-adjoint matrix in ascending order, and the eigenvectors as columns.
    fn eigen(a: &Mat<Self>) -> Option<(Vec<f64>, Mat<Self>)>;
    /// The eigenvalues alone.
    fn eigenvalues(a: &Mat<Self>) -> Option<Vec<f64>>;
}

/// The conjugate transpose.
pub fn adjoint<F: Field>(a: &Mat<F>) -> Mat<F> {
    Mat::from_fn(a.ncols(), a.nrows(), |i, j| a[(j, i)].conjugate())
}

/// The product of two matrices.
pub fn product<F: Field>(a: &Mat<F>, b: &Mat<F>) -> Mat<F> {
    let mut y = Mat::from_fn(a.nrows(), b.ncols(), |_, _| F::default());
    for j in 0..b.ncols() {
        for k in 0..a.ncols() {
            let factor = b[(k, j)];
            for i in 0..a.nrows() {
                y[(i, j)] = y[(i, j)] + a[(i, k)] * factor;
            }
        }
    }
    y
}

/// Whether all elements are finite.
pub fn is_finite<F: Field>(a: &Mat<F>) -> bool {
    a.col_iter().all(|column| column.iter().all(|x| x.to_complex().is_finite()))
}

/// A matrix of NaN.
pub fn nan<F: Field>(rows: usize, cols: usize) -> Mat<F> {
    let nan = F::from_complex(Complex::new(f64::NAN, f64::NAN));
    Mat::from_fn(rows, cols, |_, _| nan)
}

/// A matrix with 1 on the diagonal.
pub fn identity<F: Field>(rows: usize, cols: usize) -> Mat<F> {
    let one = F::from_complex(Complex::ONE);
    Mat::from_fn(rows, cols, |i, j| if i == j { one } else { F::default() })
}

/// An element type of matrices.
pub trait Scalar: Element {
    /// The type in which it is computed.
    type Wide: Field;
    /// The distance from 1 to the next larger number.
    const EPSILON: f64;
    /// The least normal number.
    const LEAST: f64;
    /// Converts without loss.
    fn up(self) -> Self::Wide;
    /// Converts with rounding.
    fn down(value: Self::Wide) -> Self;
}

macro_rules! itself {
    ($($ty:ty as $real:ident),*) => {$(
        impl Scalar for $ty {
            type Wide = $ty;
            const EPSILON: f64 = $real::EPSILON as f64;
            const LEAST: f64 = $real::MIN_POSITIVE as f64;
            fn up(self) -> $ty {
                self
            }
            fn down(value: $ty) -> $ty {
                value
            }
        }
    )*};
}

itself!(f32 as f32, f64 as f64, Complex<f64> as f64);

impl Scalar for Complex<f32> {
    type Wide = Complex<f64>;
    const EPSILON: f64 = f32::EPSILON as f64;
    const LEAST: f64 = f32::MIN_POSITIVE as f64;
    fn up(self) -> Complex<f64> {
        Complex::new(f64::from(self.re), f64::from(self.im))
    }
    fn down(value: Complex<f64>) -> Complex<f32> {
        Complex::new(value.re as f32, value.im as f32)
    }
}

impl Scalar for f16 {
    type Wide = f32;
    const EPSILON: f64 = f16::EPSILON.to_f64_const();
    const LEAST: f64 = f16::MIN_POSITIVE.to_f64_const();
    fn up(self) -> f32 {
        self.to_f32()
    }
    fn down(value: f32) -> f16 {
        f16::from_f32(value)
    }
}
