//! `TridiagonalSolve` and `TridiagonalMatMul`.
//!
//! Sources: elimination with exchanges of rows as LAPACK's `gtsv`, and as its `lagtf` and `lagts` where a singular matrix is
//! perturbed; without exchanges it is Thomas' algorithm.

use crate::{
    batch::{Matrices, parts, same_batch, same_size},
    cholesky::{DOUBLE, FLOAT},
    scalar::{Field, Scalar},
};
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    growth, register_kernel,
};

/// How a matrix is eliminated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pivoting {
    /// Rows stay where they are.
    None,
    /// The larger of two elements becomes the pivot.
    Partial,
    /// The larger one in relation to its row does, and small pivots are made larger.
    Perturbed,
}

/// The solution `X` of `A X = B`. As in TensorFlow, it is NaN where a pivot is 0.
struct TridiagonalSolve<T> {
    pivoting: Pivoting,
    element: PhantomData<T>,
}

impl<T: Scalar> Kernel for TridiagonalSolve<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let pivoting = match (c.attr("partial_pivoting")?, c.attr("perturb_singular")?) {
            (true, true) => Pivoting::Perturbed,
            (true, false) => Pivoting::Partial,
            (false, false) => Pivoting::None,
            (false, true) => {
                return Err(KernelError::invalid_argument(
                    "perturb_singular needs partial_pivoting: expected both or neither, found partial_pivoting = false",
                ));
            }
        };
        Ok(TridiagonalSolve { pivoting, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let diagonals = Matrices::new(c.input::<T>(0)?, "diagonals")?;
        let rhs = Matrices::new(c.input::<T>(1)?, "rhs")?;
        same_size("the number of diagonals", 3, diagonals.rows)?;
        same_size("the number of rows of rhs", diagonals.cols, rhs.rows)?;
        same_batch(&diagonals, &rhs, "diagonals and rhs")?;
        let y = c.output::<T>(0, c.dims(1))?.data;
        if y.is_empty() {
            return Ok(());
        }
        let size = rhs.rows * rhs.cols;
        let items = parts(y, crate::batch::count(rhs.batch));
        c.parallel_items(items, 20.0 + 8.0 * size as f64, |number, y| {
            let x = growth::collected(rhs.rows_of(number).iter().map(|x| x.up()))?;
            let limits = [T::EPSILON, T::LEAST];
            let mut system = System::new(diagonals.rows_of(number), x, rhs.cols)?;
            let is_solved = match self.pivoting {
                Pivoting::None => system.solve_in_place(),
                Pivoting::Partial => system.solve_pivoted(),
                Pivoting::Perturbed => system.solve_perturbed(limits),
            };
            let nan = T::down(Field::from_complex(Complex::new(f64::NAN, f64::NAN)));
            for (y, x) in y.iter_mut().zip(system.x) {
                *y = if is_solved { T::down(x) } else { nan };
            }
            Ok(())
        })
    }
}

/// A matrix as it is eliminated: its diagonal and the two above it, what is below the diagonal, and
/// the right side, in rows of `cols` elements.
struct System<F> {
    on: Vec<F>,
    first: Vec<F>,
    second: Vec<F>,
    below: Vec<F>,
    x: Vec<F>,
    cols: usize,
}

impl<F: Field> System<F> {
    /// The system of at least one equation.
    fn new<T: Scalar<Wide = F>>(
        diagonals: &[T],
        x: Vec<F>,
        cols: usize,
    ) -> Result<System<F>, KernelError> {
        let size = diagonals.len() / 3;
        let row = |from: usize| {
            growth::collected(diagonals[from * size..][..size].iter().map(|x| x.up()))
        };
        let (mut first, on, mut below) = (row(0)?, row(1)?, row(2)?);
        // These two are outside of the matrix.
        first[size - 1] = F::default();
        below[0] = F::default();
        Ok(System { second: growth::filled(size, F::default())?, on, first, below, x, cols })
    }

    /// Subtracts a row times a number from another one.
    fn subtract(&mut self, factor: F, row: usize, from: usize) {
        for col in 0..self.cols {
            let (at, of) = (from * self.cols + col, row * self.cols + col);
            self.x[at] = self.x[at] - factor * self.x[of];
        }
    }

    /// Thomas' algorithm; whether no pivot is 0.
    fn solve_in_place(&mut self) -> bool {
        let size = self.on.len();
        for i in 0..size {
            let mut pivot = self.on[i];
            if i > 0 {
                pivot = pivot - self.below[i] * self.first[i - 1];
                self.subtract(self.below[i], i - 1, i);
            }
            if pivot.to_complex() == Complex::ZERO {
                return false;
            }
            self.first[i] = self.first[i].over(pivot);
            self.divide(i, pivot);
        }
        for i in (0..size - 1).rev() {
            self.subtract(self.first[i], i + 1, i);
        }
        true
    }

    fn divide(&mut self, row: usize, by: F) {
        let row = &mut self.x[row * self.cols..][..self.cols];
        row.iter_mut().for_each(|x| *x = x.over(by));
    }

    /// Makes an upper triangle. `exchanges` is told a row, and says whether the next one is better.
    fn eliminate(&mut self, mut exchanges: impl FnMut(&System<F>, usize) -> bool) {
        for i in 0..self.on.len() - 1 {
            let is_better = exchanges(self, i);
            let below = self.below[i + 1];
            if below.to_complex() == Complex::ZERO {
                continue;
            }
            let factor;
            if is_better {
                factor = self.on[i].over(below);
                let next = (self.on[i + 1], self.first[i + 1]);
                self.on[i + 1] = self.first[i] - factor * next.0;
                self.first[i + 1] = -factor * next.1;
                (self.on[i], self.first[i], self.second[i]) = (below, next.0, next.1);
                for col in 0..self.cols {
                    self.x.swap(i * self.cols + col, (i + 1) * self.cols + col);
                }
            } else {
                factor = below.over(self.on[i]);
                self.on[i + 1] = self.on[i + 1] - factor * self.first[i];
            }
            self.subtract(factor, i, i + 1);
        }
    }

    /// Solves with the triangle for the last rows of which the solution is known.
    fn substitute(&mut self, row: usize) {
        let size = self.on.len();
        if row + 1 < size {
            self.subtract(self.first[row], row + 1, row);
        }
        if row + 2 < size {
            self.subtract(self.second[row], row + 2, row);
        }
    }

    /// Elimination with the larger pivot; whether none is 0.
    fn solve_pivoted(&mut self) -> bool {
        self.eliminate(|system, i| system.on[i].modulus() < system.below[i + 1].modulus());
        if self.on.iter().any(|pivot| pivot.to_complex() == Complex::ZERO) {
            return false;
        }
        for i in (0..self.on.len()).rev() {
            self.substitute(i);
            self.divide(i, self.on[i]);
        }
        true
    }

    /// Elimination that makes small pivots larger, to about the rounding errors of the triangle.
    fn solve_perturbed(&mut self, [epsilon, least]: [f64; 2]) -> bool {
        let size = self.on.len();
        let mut largest = self.on[0].modulus().max(self.first[0].modulus());
        let mut scale = self.on[0].modulus() + self.first[0].modulus();
        self.eliminate(|system, i| {
            let below = system.below[i + 1].modulus();
            let next = below + system.on[i + 1].modulus() + system.first[i + 1].modulus();
            let own = system.on[i].modulus();
            let own = if own == 0.0 { 0.0 } else { own / scale };
            let is_better = below != 0.0 && below / next > own;
            if !is_better {
                scale = next;
            }
            is_better
        });
        for i in 0..size.saturating_sub(2) {
            for x in [self.on[i], self.first[i], self.second[i]] {
                largest = largest.max(x.modulus());
            }
        }
        largest = largest.max(self.on[size - 1].modulus());
        for i in (0..size).rev() {
            self.substitute(i);
            let pivot = self.perturbed(i, epsilon * largest, least);
            let inverse = F::from_complex(Complex::ONE).over(pivot);
            let row = &mut self.x[i * self.cols..][..self.cols];
            row.iter_mut().for_each(|x| *x = *x * inverse);
        }
        true
    }

    /// A pivot by which the row can be divided without an overflow; the row is scaled with it if
    /// that is enough.
    fn perturbed(&mut self, row: usize, by: f64, least: f64) -> F {
        let of_real = |x: f64| F::from_complex(x.into());
        let (mut pivot, most) = (self.on[row], 1.0 / least);
        let row = &mut self.x[row * self.cols..][..self.cols];
        let largest = row.iter().map(|x| x.modulus()).fold(0.0, f64::max);
        let mut by = by.abs().max(least).copysign(pivot.to_complex().re);
        loop {
            let size = pivot.modulus();
            let is_tiny = size < least;
            let overflows = match is_tiny {
                true => size == 0.0 || largest * least > size,
                false => largest > size * most,
            };
            // A number from 1 on divides any other one; NaN ends the loop too.
            if size >= 1.0 || size.is_nan() || !(is_tiny || overflows) {
                return pivot;
            }
            if !overflows {
                row.iter_mut().for_each(|x| *x = *x * of_real(most));
                return pivot * of_real(most);
            }
            pivot = pivot + of_real(by);
            by *= 2.0;
        }
    }
}

/// The names of three diagonals, and of their numbers of rows and lengths.
const DIAGONALS: [[&str; 3]; 3] = [
    ["superdiag", "the number of rows of superdiag", "the length of superdiag"],
    ["maindiag", "the number of rows of maindiag", "the length of maindiag"],
    ["subdiag", "the number of rows of subdiag", "the length of subdiag"],
];

fn multiply<T: Scalar>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let rhs = Matrices::new(c.input::<T>(3)?, "rhs")?;
    let diagonal = |input: usize| {
        let [what, rows, length] = DIAGONALS[input];
        let diagonal = Matrices::new(c.input::<T>(input)?, what)?;
        same_size(rows, 1, diagonal.rows)?;
        same_size(length, rhs.rows, diagonal.cols)?;
        same_batch(&diagonal, &rhs, "diagonals and rhs")?;
        Ok::<_, KernelError>(diagonal)
    };
    let [above, on, below] = [diagonal(0)?, diagonal(1)?, diagonal(2)?];
    let y = c.output::<T>(0, c.dims(3))?.data;
    if y.is_empty() {
        return Ok(());
    }
    let (rows, cols) = (rhs.rows, rhs.cols);
    let items = parts(y, crate::batch::count(rhs.batch));
    c.parallel_items(items, 20.0 + 3.0 * (rows * cols) as f64, |number, y| {
        let x = rhs.rows_of(number);
        let part = |diagonal: &Matrices<'_, T>, i: usize| diagonal.rows_of(number)[i].up();
        for (i, y) in y.chunks_mut(cols).enumerate() {
            for (col, y) in y.iter_mut().enumerate() {
                let x = |row: usize| x[row * cols + col].up();
                let mut sum = part(&on, i) * x(i);
                if i > 0 {
                    sum = sum + part(&below, i) * x(i - 1);
                }
                if i + 1 < rows {
                    sum = sum + part(&above, i) * x(i + 1);
                }
                *y = T::down(sum);
            }
        }
        Ok(())
    })
}

register_kernel!("TridiagonalSolve" on "CPU": TridiagonalSolve<T> for "T" in [f32, Complex<f32>],
    numerics = FLOAT);
register_kernel!("TridiagonalSolve" on "CPU": TridiagonalSolve<T> for "T" in [f64, Complex<f64>],
    numerics = DOUBLE);
register_kernel!("TridiagonalMatMul" on "CPU": fn multiply<T> for "T" in [f32, Complex<f32>],
    numerics = FLOAT);
register_kernel!("TridiagonalMatMul" on "CPU": fn multiply<T> for "T" in [f64, Complex<f64>],
    numerics = DOUBLE);
