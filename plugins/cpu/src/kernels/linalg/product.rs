//! One matrix product on one thread, and split over several.
//!
//! Small products and products of integers are computed by `super::tile`, others of floats by
//! `super::gemm`, and those of complex numbers by the crates `gemm-c32` and `gemm-c64`.

use super::{
    gemm::{
        ending::Ending,
        isa::{Isa, Tiled, fastest},
        matrices,
        scratch::{self, Side},
        spread,
    },
    tile::{dot, tiles},
};
use crate::{kernels::array::Word, lane::Compute, panels::as_itself, split::for_units};
use gemm_common::Parallelism;
use num_complex::Complex;
use tenon_sdk::{KernelError, author::ComputeContext, element::Element};

/// A matrix that is read.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a, T> {
    /// The elements.
    pub data: &'a [T],
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub cols: usize,
    /// Elements from a row to the next, and from a column to the next.
    pub strides: [usize; 2],
}

/// A matrix that is written: memory that nothing else uses, as the caller of [`Target::new`]
/// guarantees.
#[derive(Debug)]
pub struct Target<T> {
    pub(in crate::kernels) data: *mut T,
    pub(in crate::kernels) rows: usize,
    pub(in crate::kernels) cols: usize,
    /// Elements from a row to the next, and from a column to the next.
    pub(in crate::kernels) strides: [usize; 2],
}

// SAFETY: threads share a target only to make targets of disjoint rows from it.
unsafe impl<T: Send> Sync for Target<T> {}

impl<'a, T> Operand<'a, T> {
    /// Returns a dense matrix with rows in order.
    pub fn dense(data: &'a [T], rows: usize, cols: usize) -> Operand<'a, T> {
        Operand { data, rows, cols, strides: [cols, 1] }
    }

    /// Returns the transposed matrix.
    pub fn transposed(self) -> Operand<'a, T> {
        let [row, col] = self.strides;
        Operand { data: self.data, rows: self.cols, cols: self.rows, strides: [col, row] }
    }

    /// Panics unless sizes agree and both operands lie in their memory.
    #[inline(always)]
    pub(super) fn assert_product(&self, b: &Operand<'_, T>, c: &Target<T>) {
        assert!(self.rows == c.rows && b.cols == c.cols && self.cols == b.rows, "sizes agree");
        assert!(self.fits() && b.fits(), "operands lie in their memory");
    }

    /// Whether every element is inside its memory.
    pub(super) fn fits(&self) -> bool {
        let last = |n: usize, stride: usize| (n - 1).checked_mul(stride);
        self.rows == 0
            || self.cols == 0
            || last(self.rows, self.strides[0])
                .zip(last(self.cols, self.strides[1]))
                .and_then(|(a, b)| a.checked_add(b))
                .is_some_and(|last| last < self.data.len())
    }

    /// The `count` rows from `first` on.
    pub(super) fn rows_from(self, first: usize, count: usize) -> Operand<'a, T> {
        let skipped = (first * self.strides[0]).min(self.data.len());
        Operand { data: &self.data[skipped..], rows: count, ..self }
    }

    /// The columns from `first` on.
    pub(in crate::kernels) fn columns_from(self, first: usize, count: usize) -> Operand<'a, T> {
        self.transposed().rows_from(first, count).transposed()
    }
}

impl<'a, T: Compute> Operand<'a, T> {
    /// The same matrix in its type of computation, where its type computes in itself.
    pub(super) fn itself(&self) -> Option<Operand<'a, T::Wide>> {
        let Operand { rows, cols, strides, .. } = *self;
        Some(Operand { data: as_itself(self.data)?, rows, cols, strides })
    }
}

impl<T> Target<T> {
    /// Returns a matrix with these sizes and strides, which begins at `data`.
    ///
    /// # Safety
    /// - Every element may be written for as long as the target is used.
    /// - Nothing else uses the elements in that time.
    pub unsafe fn new(data: *mut T, rows: usize, cols: usize, strides: [usize; 2]) -> Target<T> {
        Target { data, rows, cols, strides }
    }

    /// Returns the transposed matrix.
    pub fn transposed(self) -> Target<T> {
        let [row, col] = self.strides;
        Target { data: self.data, rows: self.cols, cols: self.rows, strides: [col, row] }
    }

    /// Returns the `count` rows from `first` on.
    ///
    /// # Safety
    /// - The rows exist.
    /// - No other target of any of these rows is in use.
    unsafe fn rows_from(&self, first: usize, count: usize) -> Target<T> {
        let data = self.data.wrapping_add(first * self.strides[0]);
        Target { data, rows: count, cols: self.cols, strides: self.strides }
    }

    /// Returns the `count` columns from `first` on.
    ///
    /// # Safety
    /// - The columns exist.
    /// - No other target of any of these columns is in use.
    pub(super) unsafe fn columns_from(&self, first: usize, count: usize) -> Target<T> {
        let data = self.data.wrapping_add(first * self.strides[1]);
        Target { data, rows: self.rows, cols: count, strides: self.strides }
    }
}

/// A type in which products are summed.
pub trait Factor: Compute<Wide = Self> + Word {
    /// Approximate multiplications per nanosecond.
    const RATE: f64;
    /// The count of multiplications up to which `super::tile` is faster than `super::gemm`.
    const SMALL: usize;
    /// The tiles of `super::gemm`; empty for integers.
    const TILES: &'static [&'static Isa<Self>];
}

macro_rules! factors {
    ($($ty:ident, $rate:expr, $small:expr, $tiles:expr;)*) => {$(
        impl Factor for $ty {
            const RATE: f64 = $rate;
            const SMALL: usize = $small;
            const TILES: &'static [&'static Isa<$ty>] = $tiles;
        }
    )*};
}

factors! {
    f32, 40.0, 16 * 1024, Self::ALL;
    f64, 20.0, 16 * 1024, Self::ALL;
    i16, 8.0, usize::MAX, &[];
    i32, 8.0, usize::MAX, &[];
    i64, 2.0, usize::MAX, &[];
}

/// `C = A B`, overwriting `C`; where there are no terms, `C` is 0. Panics when sizes do not agree.
pub fn product<T: Factor>(a: Operand<'_, T>, b: Operand<'_, T>, c: Target<T>) {
    a.assert_product(&b, &c);
    match fastest::<T>().filter(|_| !is_small::<T>(c.rows, c.cols, a.cols)) {
        Some(isa) if c.strides[1] == 1 => matrices::alone(isa, &a, &b, &c),
        Some(isa) if c.strides[0] == 1 => {
            matrices::alone(isa, &b.transposed(), &a.transposed(), &c.transposed());
        }
        _ => small(a, b, c),
    }
}

/// Whether a product of these rows, columns and terms is small; a product without terms is small.
pub fn is_small<T: Factor>(rows: usize, columns: usize, terms: usize) -> bool {
    rows == 1 && columns == 1 || rows.saturating_mul(columns).saturating_mul(terms) <= T::SMALL
}

/// Computes the product into a dense target, row by row. Panics when sizes do not agree.
pub fn dense_product<T: Factor>(a: Operand<'_, T>, b: Operand<'_, T>, y: &mut [T]) {
    assert_eq!(y.len(), a.rows * b.cols, "the whole product");
    // SAFETY: the target is the whole of `y`.
    product(a, b, unsafe { Target::new(y.as_mut_ptr(), a.rows, b.cols, [b.cols, 1]) });
}

/// Whether the product is a single sum whose factors are neighbours in memory.
fn is_inner<T>(a: &Operand<'_, T>, b: &Operand<'_, T>, c: &Target<T>) -> bool {
    c.rows == 1 && c.cols == 1 && a.strides[1] == 1 && b.strides[0] == 1
}

/// Computes the product by tiles, whatever the layout.
pub fn small<T: Factor>(a: Operand<'_, T>, b: Operand<'_, T>, c: Target<T>) {
    if is_inner(&a, &b, &c) {
        // SAFETY: this is the target's only element.
        return unsafe { c.data.write(dot(&a.data[..a.cols], &b.data[..a.cols])) };
    }
    // Tiles run along rows: a single column whose elements and factors are neighbours is a row.
    let is_row_on_end = c.cols == 1 && c.rows > 1 && a.strides[0] == 1;
    let is_dense_by_columns = c.cols > 1 && c.strides[1] != 1;
    if c.strides[0] == 1 && (is_row_on_end || is_dense_by_columns) {
        return small(b.transposed(), a.transposed(), c.transposed());
    }
    if c.strides[1] != 1 && c.cols > 1 {
        return element_by_element(a, b, c);
    }
    if b.strides[1] == 1 || b.cols <= 1 {
        return tiles(a, b, c);
    }
    scratch::with(Side::Right, b.rows * b.cols, |packed| {
        let packed = &mut packed[..b.rows * b.cols];
        for (p, row) in packed.chunks_exact_mut(b.cols).enumerate() {
            for (j, y) in row.iter_mut().enumerate() {
                *y = b.data[p * b.strides[0] + j * b.strides[1]];
            }
        }
        tiles(a, Operand::dense(packed, b.rows, b.cols), c);
    });
}

/// Computes a product whose target is dense in neither dimension.
fn element_by_element<T: Factor>(a: Operand<'_, T>, b: Operand<'_, T>, c: Target<T>) {
    for i in 0..c.rows {
        for j in 0..c.cols {
            let sum = (0..a.cols).fold(T::ZERO, |sum, p| {
                let x = a.data[i * a.strides[0] + p * a.strides[1]];
                let y = b.data[p * b.strides[0] + j * b.strides[1]];
                sum.add(x.mul(y))
            });
            // SAFETY: the element is inside the target.
            unsafe { c.data.add(i * c.strides[0] + j * c.strides[1]).write(sum) };
        }
    }
}

/// Approximate nanoseconds of a product.
pub fn cost_ns<T: Factor>(m: usize, n: usize, k: usize) -> f64 {
    m as f64 * n as f64 * (k as f64 + 1.0) / T::RATE
}

/// A type of elements in which products are computed, complex ones included.
pub trait Multiply: Element {
    /// The sum.
    fn plus(self, other: Self) -> Self;

    /// Approximate nanoseconds of a product.
    fn cost_ns(m: usize, n: usize, k: usize) -> f64;

    /// `C = A B`, overwriting `C`, with the conjugates of the operands for which `conjugated` is
    /// set. A real number is its own conjugate. Panics when sizes do not agree.
    fn multiply(a: Operand<'_, Self>, b: Operand<'_, Self>, c: Target<Self>, conjugated: [bool; 2]);

    /// As [`Multiply::multiply`], split over the host's threads.
    ///
    /// # Errors
    /// No memory; or the call was cancelled.
    fn parallel(
        c: &ComputeContext<'_>,
        a: Operand<'_, Self>,
        b: Operand<'_, Self>,
        target: Target<Self>,
        conjugated: [bool; 2],
    ) -> Result<(), KernelError> {
        by_rows(c, a, b, target, conjugated)
    }
}

impl<T: Factor> Multiply for T {
    #[inline(always)]
    fn plus(self, other: T) -> T {
        self.add(other)
    }

    fn cost_ns(m: usize, n: usize, k: usize) -> f64 {
        cost_ns::<T>(m, n, k)
    }

    fn multiply(a: Operand<'_, T>, b: Operand<'_, T>, c: Target<T>, _: [bool; 2]) {
        product(a, b, c)
    }

    fn parallel(
        c: &ComputeContext<'_>,
        a: Operand<'_, T>,
        b: Operand<'_, T>,
        target: Target<T>,
        conjugated: [bool; 2],
    ) -> Result<(), KernelError> {
        a.assert_product(&b, &target);
        match fastest::<T>().filter(|_| !is_small::<T>(target.rows, target.cols, a.cols)) {
            Some(isa) if target.strides[1] == 1 => {
                spread::multiply::<T>(c, isa, &a, &b, &target, Ending::NONE)
            }
            Some(isa) if target.strides[0] == 1 => {
                let (a, b, target) = (b.transposed(), a.transposed(), target.transposed());
                spread::multiply::<T>(c, isa, &a, &b, &target, Ending::NONE)
            }
            _ => by_rows(c, a, b, target, conjugated),
        }
    }
}

macro_rules! complex_products {
    ($($real:ident by $library:ident),*) => {$(
        impl Multiply for Complex<$real> {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn cost_ns(m: usize, n: usize, k: usize) -> f64 {
                4.0 * cost_ns::<$real>(m, n, k)
            }

            fn multiply(
                a: Operand<'_, Self>,
                b: Operand<'_, Self>,
                c: Target<Self>,
                [conj_a, conj_b]: [bool; 2],
            ) {
                a.assert_product(&b, &c);
                // The library's tiles are written column by column.
                if c.strides[1] < c.strides[0] {
                    let (a, b, c) = (b.transposed(), a.transposed(), c.transposed());
                    return Self::multiply(a, b, c, [conj_b, conj_a]);
                }
                let strides = |strides: [usize; 2]| strides.map(|stride| stride as isize);
                let ([a_row, a_col], [b_row, b_col]) = (strides(a.strides), strides(b.strides));
                let [c_row, c_col] = strides(c.strides);
                if a.cols == 0 {
                    for (i, j) in (0..c.rows).flat_map(|i| (0..c.cols).map(move |j| (i, j))) {
                        // SAFETY: the element is inside the target.
                        unsafe { c.data.add(i * c.strides[0] + j * c.strides[1]).write(Complex::ZERO) };
                    }
                    return;
                }
                // SAFETY: the operands are inside their slices, and the target is inside its
                // memory.
                unsafe {
                    $library::gemm::$real::get_gemm_fn()(
                        c.rows, c.cols, a.cols, c.data, c_col, c_row, false,
                        a.data.as_ptr(), a_col, a_row, b.data.as_ptr(), b_col, b_row,
                        Complex::ZERO, Complex::ONE, false, conj_a, conj_b, Parallelism::None,
                    );
                }
            }
        }
    )*};
}

complex_products!(f32 by gemm_c32, f64 by gemm_c64);

/// [`Multiply::multiply`], split over the host's threads along its longer side.
fn by_rows<T: Multiply>(
    c: &ComputeContext<'_>,
    a: Operand<'_, T>,
    b: Operand<'_, T>,
    target: Target<T>,
    [conj_a, conj_b]: [bool; 2],
) -> Result<(), KernelError> {
    /// Rows per unit, to match the heights of the library's tiles.
    const UNIT: usize = 48;
    if target.cols > target.rows {
        let (a, b, target) = (b.transposed(), a.transposed(), target.transposed());
        return by_rows(c, a, b, target, [conj_b, conj_a]);
    }
    let rows = target.rows;
    let unit_cost = T::cost_ns(UNIT.min(rows), target.cols, a.cols);
    let target = &target;
    for_units(c, rows.div_ceil(UNIT), unit_cost, |units| {
        let first = units.start * UNIT;
        let count = (units.end * UNIT).min(rows) - first;
        // SAFETY: ranges are disjoint, and so are their rows.
        let part = unsafe { target.rows_from(first, count) };
        T::multiply(a.rows_from(first, count), b, part, [conj_a, conj_b]);
    })
}

/// [`Multiply::parallel`] into rows of a slice that begin `row_stride` elements apart. Panics when
/// the rows are not inside the slice.
pub fn product_into<T: Factor>(
    c: &ComputeContext<'_>,
    a: Operand<'_, T>,
    b: Operand<'_, T>,
    rows: &mut [T],
    row_stride: usize,
) -> Result<(), KernelError> {
    if a.rows == 0 || b.cols == 0 {
        return Ok(());
    }
    let last = (a.rows - 1).checked_mul(row_stride).and_then(|last| last.checked_add(b.cols));
    assert!(
        b.cols <= row_stride && last.is_some_and(|end| end <= rows.len()),
        "rows lie in the slice"
    );
    // SAFETY: the rows are inside the slice, which is borrowed for the call, and do not overlap.
    let target = unsafe { Target::new(rows.as_mut_ptr(), a.rows, b.cols, [row_stride, 1]) };
    T::parallel(c, a, b, target, [false; 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, values};

    fn check<T: Factor>(m: usize, n: usize, k: usize, relative: f64) {
        let (a, b) = (values::<T>(m * k, 1), values::<T>(k * n, 2));
        let mut expected = vec![T::ZERO; m * n];
        for (at, sum) in expected.iter_mut().enumerate() {
            *sum = (0..k).fold(T::ZERO, |sum, p| sum.add(a[at / n * k + p].mul(b[p * n + at % n])));
        }
        let a = Operand::dense(&a, m, k);
        let columns: Vec<T> =
            (0..n).flat_map(|j| (0..k).map(move |p| (p, j))).map(|(p, j)| b[p * n + j]).collect();
        let b = Operand::dense(&b, k, n);
        let b_columns = Operand::dense(&columns, n, k).transposed();
        for b in [b, b_columns] {
            for strides in [[n, 1], [1, m]] {
                let mut found = vec![T::ONE; m * n];
                // SAFETY: the target is the whole vector.
                let target = unsafe { Target::new(found.as_mut_ptr(), m, n, strides) };
                product(a, b, target);
                let order: Vec<T> =
                    (0..m * n).map(|at| found[at / n * strides[0] + at % n * strides[1]]).collect();
                assert_close(&order, &expected, 40.0 * relative, relative);
            }
        }
    }

    #[test]
    fn products_of_every_size_and_layout_agree_with_plain_sums() {
        for (m, n, k) in
            [(1, 64, 64), (5, 83, 7), (1, 1, 1), (3, 2, 0), (33, 40, 50), (4, 129, 3), (1, 1, 777)]
        {
            check::<f32>(m, n, k, 1e-5);
            check::<f64>(m, n, k, 1e-13);
            check::<i32>(m, n, k, 0.0);
            check::<i16>(m, n, k, 0.0);
            check::<i64>(m, n, k, 0.0);
        }
    }
}
