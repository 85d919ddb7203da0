//! Matrices of few elements, on the stack: for them the memory of a [`faer::Mat`] takes longer than
//! the work. The loops are those of [`crate::plain`], with the same results.

use crate::scalar::{Field, Scalar, Triangle};
use num_complex::Complex;

/// The most elements of such a matrix.
const ROOM: usize = 64;
/// The most rows of a square one.
const ROWS: usize = 8;

/// A matrix whose elements are zero or of ordinary magnitude, so that nothing needs to be scaled
/// (see [`crate::range`]).
#[derive(Debug, Clone, Copy)]
pub struct Few<F> {
    rows: usize,
    cols: usize,
    /// In row order.
    data: [F; ROOM],
}

/// Whether the squares and ratios of such numbers are correct.
fn is_ordinary<F: Field>(x: F) -> bool {
    let least = f64::from_bits(((1023 - F::LIMITS.squares) as u64) << 52);
    let Complex { re, im } = x.to_complex();
    [re.abs(), im.abs()].iter().all(|part| *part == 0.0 || (least..=1.0 / least).contains(part))
}

impl<F: Field> Few<F> {
    /// A matrix from its elements in row order; `None` if they are too many, or one is not ordinary.
    pub fn new<T: Scalar<Wide = F>>(elements: &[T], rows: usize, cols: usize) -> Option<Few<F>> {
        Few::of_part(elements, rows, cols, |_, _| true)
    }

    /// The triangle of a square matrix; the other elements are zero, and may be anything before.
    pub fn triangle<T: Scalar<Wide = F>>(
        elements: &[T],
        rows: usize,
        triangle: Triangle,
    ) -> Option<Few<F>> {
        let upper = triangle == Triangle::Upper;
        Few::of_part(elements, rows, rows, |i, j| if upper { i <= j } else { i >= j })
    }

    fn of_part<T: Scalar<Wide = F>>(
        elements: &[T],
        rows: usize,
        cols: usize,
        counts: impl Fn(usize, usize) -> bool,
    ) -> Option<Few<F>> {
        if elements.len() > ROOM {
            return None;
        }
        let mut found = Few { rows, cols, data: [F::default(); ROOM] };
        for i in 0..rows {
            for j in (0..cols).filter(|&j| counts(i, j)) {
                let x = elements[i * cols + j].up();
                if !is_ordinary(x) {
                    return None;
                }
                *found.at_mut(i, j) = x;
            }
        }
        Some(found)
    }

    /// A square matrix with 1 on its diagonal.
    pub fn identity(rows: usize) -> Few<F> {
        let mut found = Few { rows, cols: rows, data: [F::default(); ROOM] };
        (0..rows).for_each(|i| *found.at_mut(i, i) = F::from_complex(Complex::ONE));
        found
    }

    fn at(&self, i: usize, j: usize) -> F {
        self.data[i * self.cols + j]
    }

    fn at_mut(&mut self, i: usize, j: usize) -> &mut F {
        &mut self.data[i * self.cols + j]
    }

    /// The conjugate transpose.
    pub fn adjoint(&self) -> Few<F> {
        let mut found = Few { rows: self.cols, cols: self.rows, data: [F::default(); ROOM] };
        for i in 0..self.rows {
            (0..self.cols).for_each(|j| *found.at_mut(j, i) = self.at(i, j).conjugate());
        }
        found
    }

    /// Writes the elements in row order.
    pub fn store<T: Scalar<Wide = F>>(&self, y: &mut [T]) {
        y.iter_mut().zip(&self.data).for_each(|(y, &x)| *y = T::down(x));
    }

    /// As [`Field::cholesky`].
    pub fn cholesky(&self) -> Option<Few<F>> {
        let mut l = Few { data: [F::default(); ROOM], ..*self };
        for j in 0..self.rows {
            let own = sum((0..j).map(|k| l.at(j, k) * l.at(j, k).conjugate()));
            let rest = (self.at(j, j) - own).to_complex().re;
            if rest.is_nan() || rest <= 0.0 {
                return None;
            }
            let root = F::from_complex(rest.sqrt().into());
            *l.at_mut(j, j) = root;
            for i in j + 1..self.rows {
                let known = sum((0..j).map(|k| l.at(i, k) * l.at(j, k).conjugate()));
                *l.at_mut(i, j) = (self.at(i, j) - known).over(root);
            }
        }
        Some(l)
    }

    /// As [`Field::solve_triangle`].
    pub fn solve(&self, triangle: Triangle, mut x: Few<F>) -> Few<F> {
        let size = self.rows;
        for col in 0..x.cols {
            for step in 0..size {
                let (i, known) = match triangle {
                    Triangle::Upper => (size - 1 - step, size - step..size),
                    _ => (step, 0..step),
                };
                let rest = x.at(i, col) - sum(known.map(|j| self.at(i, j) * x.at(j, col)));
                let unit = triangle == Triangle::UnitLower;
                *x.at_mut(i, col) = if unit { rest } else { rest.over(self.at(i, i)) };
            }
        }
        x
    }
}

fn sum<F: Field>(terms: impl Iterator<Item = F>) -> F {
    terms.fold(F::default(), |sum, term| sum + term)
}

/// The LU decomposition of a square matrix, as [`Field::lu`].
pub struct FewFactors<F> {
    /// The lower triangle below the diagonal, and the upper one.
    pub packed: Few<F>,
    rows: [usize; ROWS],
    /// 1 for an even number of exchanges of rows, -1 for an odd one.
    pub parity: f64,
}

impl<F: Field> FewFactors<F> {
    /// Decomposes a square matrix.
    pub fn new(mut a: Few<F>) -> FewFactors<F> {
        let (size, mut rows, mut parity) = (a.rows, std::array::from_fn(|i| i), 1.0);
        for k in 0..size {
            let better = |best: usize, i: usize| {
                if a.at(i, k).modulus() > a.at(best, k).modulus() { i } else { best }
            };
            let pivot = (k + 1..size).fold(k, better);
            if pivot != k {
                rows.swap(k, pivot);
                parity = -parity;
                (0..size).for_each(|j| a.data.swap(k * size + j, pivot * size + j));
            }
            for i in k + 1..size {
                let factor = a.at(i, k).over(a.at(k, k));
                *a.at_mut(i, k) = factor;
                for j in k + 1..size {
                    *a.at_mut(i, j) = a.at(i, j) - factor * a.at(k, j);
                }
            }
        }
        FewFactors { packed: a, rows, parity }
    }

    /// The source of each row.
    pub fn rows(&self) -> &[usize] {
        &self.rows[..self.packed.rows]
    }

    /// The diagonal of the upper triangle.
    pub fn pivots(&self) -> impl Iterator<Item = Complex<f64>> + '_ {
        (0..self.packed.rows).map(|i| self.packed.at(i, i).to_complex())
    }

    /// The solution `X` of `A X = B`.
    pub fn solve(&self, b: &Few<F>) -> Few<F> {
        let mut x = *b;
        for (i, &row) in self.rows().iter().enumerate() {
            (0..b.cols).for_each(|j| *x.at_mut(i, j) = b.at(row, j));
        }
        self.packed.solve(Triangle::Upper, self.packed.solve(Triangle::UnitLower, x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain;
    use faer::Mat;

    /// A positive definite matrix.
    fn elements(size: usize) -> Vec<f64> {
        let element = |i: usize, j: usize| ((i.min(j) * 7 + i.max(j) * 3) % 11) as f64 / 11.0;
        let diagonal = |i, j| if i == j { size as f64 } else { 0.0 };
        (0..size * size)
            .map(|at| (at / size, at % size))
            .map(|(i, j)| element(i, j) + diagonal(i, j))
            .collect()
    }

    fn assert_same(few: &Few<f64>, plain: &Mat<f64>) {
        for (i, j) in (0..few.rows).flat_map(|i| (0..few.cols).map(move |j| (i, j))) {
            assert_eq!(few.at(i, j).to_bits(), plain[(i, j)].to_bits(), "[{i}, {j}]");
        }
    }

    #[test]
    fn results_are_those_of_the_plain_loops() {
        for size in 1..=ROWS {
            let mut x = elements(size);
            let few = Few::new(&x, size, size).unwrap();
            let a = Mat::from_fn(size, size, |i, j| x[i * size + j]);
            assert_same(&few.cholesky().unwrap(), &plain::cholesky(&a).unwrap());
            for triangle in [Triangle::Lower, Triangle::UnitLower, Triangle::Upper] {
                let mut solution = a.clone();
                plain::solve_triangle(&a, triangle, &mut solution);
                assert_same(&few.solve(triangle, few), &solution);
            }
            // Rows in another order, so that they are exchanged.
            x.rotate_left(size);
            let few = Few::new(&x, size, size).unwrap();
            let a = Mat::from_fn(size, size, |i, j| x[i * size + j]);
            let (factors, lu) = (FewFactors::new(few), plain::lu(&a));
            assert_eq!(factors.rows(), lu.rows);
            let both = |i, j| if i > j { lu.lower[(i, j)] } else { lu.upper[(i, j)] };
            assert_same(&factors.packed, &Mat::from_fn(size, size, both));
            // A rotation of rows takes one exchange less than there are rows.
            assert_eq!(factors.parity, if size % 2 == 1 { 1.0 } else { -1.0 });
            let unit = factors.solve(&few);
            let error = |i: usize, j: usize| unit.at(i, j) - if i == j { 1.0 } else { 0.0 };
            assert!((0..size).all(|i| (0..size).all(|j| error(i, j).abs() < 1e-12)));
        }
    }

    #[test]
    fn other_matrices_are_left_to_the_library() {
        assert!(Few::new(&[1.0f32; 65], 5, 13).is_none());
        assert!(Few::<f32>::new::<f32>(&[], 0, 0).is_some());
        for odd in [f32::NAN, f32::INFINITY, 1e30, 1e-30, f32::MIN_POSITIVE] {
            assert!(Few::new(&[1.0, odd, 0.0, 1.0], 2, 2).is_none(), "{odd}");
            assert!(Few::triangle(&[1.0, odd, 0.0, 1.0], 2, Triangle::Upper).is_none(), "{odd}");
            assert!(Few::triangle(&[1.0, odd, 0.0, 1.0], 2, Triangle::Lower).is_some(), "{odd}");
        }
        assert!(Few::new(&[Complex::new(1.0, f64::NAN)], 1, 1).is_none());
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_has_no_cholesky_factor() {
        for diagonal in [0.0, -1.0] {
            assert!(Few::new(&[1.0, 0.0, 0.0, diagonal], 2, 2).unwrap().cholesky().is_none());
        }
        let i = Complex::new(0.0, 1.0);
        let a = Few::new(&[Complex::ONE * 2.0, -i, i, Complex::ONE * 2.0], 2, 2).unwrap();
        let l = a.cholesky().unwrap();
        assert!((l.at(1, 0) - i / 2f64.sqrt()).norm() < 1e-15, "{l:?}");
        assert!((l.at(1, 1) - 1.5f64.sqrt()).norm() < 1e-15, "{l:?}");
    }
}
