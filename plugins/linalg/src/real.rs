//! Operations on real matrices, by `faer` but for small ones.

use crate::{
    plain::{self, SMALL},
    range::Limits,
    scalar::{Field, Lu, Svd, Triangle},
    small,
};
use faer::{Mat, Side};
use num_complex::Complex;

macro_rules! fields {
    ($($real:ident as $bits:ident, $limits:expr;)*) => {$(
        impl Field for $real {
            const LIMITS: Limits = $limits;

            fn shifted(self, power: i32) -> $real {
                if power == 0 {
                    return self;
                }
                // In two steps, since two to the whole power may not be representable.
                let two = |power: i32| {
                    let exponent = ($real::MAX_EXP - 1 + power) as $bits;
                    $real::from_bits(exponent << ($real::MANTISSA_DIGITS - 1))
                };
                self * two(power / 2) * two(power - power / 2)
            }

            fn to_complex(self) -> Complex<f64> {
                Complex::new(f64::from(self), 0.0)
            }

            fn from_complex(value: Complex<f64>) -> $real {
                value.re as $real
            }

            fn conjugate(self) -> $real {
                self
            }

            fn over(self, by: $real) -> $real {
                self / by
            }

            fn modulus(self) -> f64 {
                f64::from(self.abs())
            }

            fn cholesky(a: &Mat<$real>) -> Option<Mat<$real>> {
                if a.nrows() <= SMALL {
                    return plain::cholesky(a);
                }
                a.llt(Side::Lower).ok().map(|factor| factor.L().to_owned())
            }

            fn lu(a: &Mat<$real>) -> Lu<$real> {
                if a.nrows() <= SMALL {
                    return plain::lu(a);
                }
                let lu = a.partial_piv_lu();
                let (lower, upper) = (lu.L().to_owned(), lu.U().to_owned());
                Lu { lower, upper, rows: lu.P().arrays().0.to_vec() }
            }

            fn solve_triangle(a: &Mat<$real>, triangle: Triangle, x: &mut Mat<$real>) {
                if a.nrows().max(x.ncols()) <= SMALL {
                    return plain::solve_triangle(a, triangle, x);
                }
                match triangle {
                    Triangle::Lower => a.solve_lower_triangular_in_place(x.as_mut()),
                    Triangle::UnitLower => a.solve_unit_lower_triangular_in_place(x.as_mut()),
                    Triangle::Upper => a.solve_upper_triangular_in_place(x.as_mut()),
                }
            }

            fn qr(a: &Mat<$real>, inner: usize) -> (Mat<$real>, Mat<$real>) {
                if a.nrows().max(a.ncols()) <= SMALL {
                    return small::qr(a, inner);
                }
                let qr = a.qr();
                let least = a.nrows().min(a.ncols());
                let q = if inner > least { qr.compute_Q() } else { qr.compute_thin_Q() };
                let upper = qr.thin_R();
                let element = |i: usize, j: usize| if i < least && i <= j { upper[(i, j)] } else { 0.0 };
                (q, Mat::from_fn(inner, a.ncols(), element))
            }

            fn svd(a: &Mat<$real>, full: bool) -> Option<Svd<$real>> {
                if a.nrows().max(a.ncols()) <= small::MOST && let Some(found) = small::svd(a, full) {
                    return Some(found);
                }
                let found = if full { a.svd() } else { a.thin_svd() }.ok()?;
                let values = found.S().column_vector().iter().map(|&x| x.into()).collect();
                Some(Svd { values, left: found.U().to_owned(), right: found.V().to_owned() })
            }

            fn singular_values(a: &Mat<$real>) -> Option<Vec<f64>> {
                if a.nrows().max(a.ncols()) <= small::MOST && let Some(found) = small::svd(a, false) {
                    return Some(found.values);
                }
                Some(a.singular_values().ok()?.into_iter().map(f64::from).collect())
            }

            fn eigen(a: &Mat<$real>) -> Option<(Vec<f64>, Mat<$real>)> {
                if a.nrows() <= small::MOST && let Some(found) = small::eigen(a) {
                    return Some(found);
                }
                let found = a.self_adjoint_eigen(Side::Lower).ok()?;
                let values = found.S().column_vector().iter().map(|&x| x.into()).collect();
                Some((values, found.U().to_owned()))
            }

            fn eigenvalues(a: &Mat<$real>) -> Option<Vec<f64>> {
                if a.nrows() <= small::MOST && let Some(found) = small::eigen(a) {
                    return Some(found.0);
                }
                let values = a.self_adjoint_eigenvalues(Side::Lower).ok()?;
                Some(values.into_iter().map(f64::from).collect())
            }
        }
    )*};
}

fields! {
    f32 as u32, Limits { squares: 32, high: [116, 100], low: [-100, -64], most: 120 };
    f64 as u64, Limits { squares: 256, high: [1000, 900], low: [-900, -600], most: 1000 };
}
