//! The numbers that matrices hold, and those that they are computed in.

use crate::range::Limits;
use faer::Mat;
use half::f16;
use num_complex::Complex;
use tenon_sdk::element::Element;

/// A matrix as the product of a lower triangle with units on its diagonal and an upper one, after an exchange of
/// rows: row `i` of the product is row `rows[i]` of the matrix.
pub struct Lu<F> {
    /// The lower triangle.
    pub lower: Mat<F>,
    /// The upper triangle.
    pub upper: Mat<F>,
    /// Where rows come from.
    pub rows: Vec<usize>,
}

/// Which triangle of a matrix is solved with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Triangle {
    /// The lower one.
    Lower,
    /// The lower one, with units on its diagonal.
    UnitLower,
    /// The upper one.
    Upper,
}

/// Singular values, and the vectors to their left and right.
pub struct Svd<F> {
    /// Values from the largest on.
    pub values: Vec<f64>,
    /// Vectors on the left, as columns.
    pub left: Mat<F>,
    /// Vectors on the right, as columns.
    pub right: Mat<F>,
}

/// A type that decompositions are computed in. Matrices have at least one row and one column; those for [`Field::svd`]
/// and [`Field::eigen`] are finite. The functions of [`crate::range`] take elements of any size.
pub trait Field: Element {
    /// Where the algorithms are right.
    const LIMITS: Limits;
    /// Times two to `power`, which is at most twice [`Limits::most`] either way.
    fn shifted(self, power: i32) -> Self;
    /// As a complex number of doubles.
    fn to_complex(self) -> Complex<f64>;
    /// From one, rounded; a real type takes the real part.
    fn from_complex(value: Complex<f64>) -> Self;
    /// The conjugate.
    fn conjugate(self) -> Self;
    /// The lower triangle of a positive definite matrix.
    fn cholesky(a: &Mat<Self>) -> Option<Mat<Self>>;
    /// With the largest pivot of each column.
    fn lu(a: &Mat<Self>) -> Lu<Self>;
    /// Overwrites `x` with the solution `X` of `A X = x`.
    fn solve_triangle(a: &Mat<Self>, triangle: Triangle, x: &mut Mat<Self>);
    /// Q with `inner` columns, and R with as many rows.
    fn qr(a: &Mat<Self>, inner: usize) -> (Mat<Self>, Mat<Self>);
    /// With as many vectors as the matrix has rows (columns) where they are to be `full`, else as it has values.
    fn svd(a: &Mat<Self>, full: bool) -> Option<Svd<Self>>;
    /// The singular values alone.
    fn singular_values(a: &Mat<Self>) -> Option<Vec<f64>>;
    /// Eigenvalues of a self-adjoint matrix from the smallest on, and the vectors as columns.
    fn eigen(a: &Mat<Self>) -> Option<(Vec<f64>, Mat<Self>)>;
    /// The eigenvalues alone.
    fn eigenvalues(a: &Mat<Self>) -> Option<Vec<f64>>;
}

/// The conjugate transpose.
pub fn adjoint<F: Field>(a: &Mat<F>) -> Mat<F> {
    Mat::from_fn(a.ncols(), a.nrows(), |i, j| a[(j, i)].conjugate())
}

/// 1 on the diagonal.
pub fn identity<F: Field>(rows: usize, cols: usize) -> Mat<F> {
    let one = F::from_complex(Complex::ONE);
    Mat::from_fn(rows, cols, |i, j| if i == j { one } else { F::default() })
}

/// A type of elements.
pub trait Scalar: Element {
    /// What it is computed in.
    type Wide: Field;
    /// Converts without loss.
    fn up(self) -> Self::Wide;
    /// Rounds.
    fn down(value: Self::Wide) -> Self;
}

macro_rules! itself {
    ($($ty:ty),*) => {$(
        impl Scalar for $ty {
            type Wide = $ty;
            fn up(self) -> $ty {
                self
            }
            fn down(value: $ty) -> $ty {
                value
            }
        }
    )*};
}

itself!(f32, f64, Complex<f64>);

impl Scalar for Complex<f32> {
    type Wide = Complex<f64>;
    fn up(self) -> Complex<f64> {
        Complex::new(f64::from(self.re), f64::from(self.im))
    }
    fn down(value: Complex<f64>) -> Complex<f32> {
        Complex::new(value.re as f32, value.im as f32)
    }
}

impl Scalar for f16 {
    type Wide = f32;
    fn up(self) -> f32 {
        self.to_f32()
    }
    fn down(value: f32) -> f16 {
        f16::from_f32(value)
    }
}
