//! `SparseTensorDenseMatMul`: a sparse matrix times a dense one.

use super::places::{Places, rank, size};
use crate::{scatter::Product, update::Sum};
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{geometry::byte_size, growth, prelude::*};

/// An element of a product.
trait Factor: Product {
    /// In what products are added up: single precision for short floats, otherwise the type itself.
    type Wide: Product;
    /// As a term of a sum.
    fn wide(self) -> Self::Wide;
    /// Rounds a sum.
    fn narrow(sum: Self::Wide) -> Self;
    /// The complex conjugate.
    fn conjugate(self) -> Self;
}

macro_rules! factors {
    ($($ty:ty),*) => {$(
        impl Factor for $ty {
            type Wide = $ty;
            fn wide(self) -> $ty {
                self
            }
            fn narrow(sum: $ty) -> $ty {
                sum
            }
            fn conjugate(self) -> $ty {
                self
            }
        }
    )*};
}

factors!(i32, f32, f64);

macro_rules! short_factors {
    ($($ty:ty),*) => {$(
        impl Factor for $ty {
            type Wide = f32;
            fn wide(self) -> f32 {
                self.to_f32()
            }
            fn narrow(sum: f32) -> $ty {
                <$ty>::from_f32(sum)
            }
            fn conjugate(self) -> $ty {
                self
            }
        }
    )*};
}

short_factors!(f16, bf16);

macro_rules! complex_factors {
    ($($ty:ty),*) => {$(
        impl Factor for Complex<$ty> {
            type Wide = Complex<$ty>;
            fn wide(self) -> Complex<$ty> {
                self
            }
            fn narrow(sum: Complex<$ty>) -> Complex<$ty> {
                sum
            }
            fn conjugate(self) -> Complex<$ty> {
                self.conj()
            }
        }
    )*};
}

complex_factors!(f32, f64);

struct MatMul<T> {
    /// Whether each matrix is conjugated and transposed.
    turned: [bool; 2],
    of: PhantomData<fn() -> T>,
}

impl<T: Factor> Kernel for MatMul<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let turned = [c.attr("adjoint_a")?, c.attr("adjoint_b")?];
        Ok(MatMul { turned, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let places = Places::inside(c, [0, 1, 2])?;
        rank(c, 3, "b", 2)?;
        size("the number of a_shape", 2, places.shape.len() as i64)?;
        let turned = |pair: [i64; 2], is_turned: bool| match is_turned {
            true => [pair[1], pair[0]],
            false => pair,
        };
        let [rows, inner] = turned([places.shape[0], places.shape[1]], self.turned[0]);
        let (values, b) = (c.input::<T>(1)?, c.input::<T>(3)?);
        let [found, columns] = turned([b.dims[0], b.dims[1]], self.turned[1]);
        size("the inner dimension of b", inner, found)?;
        byte_size(&[rows, columns], 16)?;
        let y = c.output::<T>(0, &[rows, columns])?.data;
        if y.is_empty() {
            return Ok(());
        }
        let by_row = ByRow::new(&places, self.turned[0], rows as usize)?;
        let (width, columns) = (b.dims[1] as usize, columns as usize);
        let work = 4.0 * values.data.len() as f64 / rows as f64 + 1.0;
        let rows = y.chunks_exact_mut(columns);
        c.parallel_items(rows, work * columns as f64, |row, y| {
            let mut sums = growth::filled(columns, T::Wide::default())?;
            for &(value, inner) in by_row.of(row) {
                let x = values.data[value];
                let x = if self.turned[0] { x.conjugate() } else { x }.wide();
                for (column, sum) in sums.iter_mut().enumerate() {
                    let other = match self.turned[1] {
                        true => b.data[column * width + inner].conjugate(),
                        false => b.data[inner * width + column],
                    };
                    *sum = sum.plus(x.times(other.wide()));
                }
            }
            y.iter_mut().zip(sums).for_each(|(y, sum)| *y = T::narrow(sum));
            Ok(())
        })
    }
}

/// The values of each row of the result, in their order, with the place of their factor.
struct ByRow {
    starts: Vec<usize>,
    entries: Vec<(usize, usize)>,
}

impl ByRow {
    fn new(places: &Places, is_turned: bool, rows: usize) -> Result<ByRow, KernelError> {
        // All places are inside of the shape.
        let place = |value: usize| {
            let at = places.at(value);
            let pair = if is_turned { (at[1], at[0]) } else { (at[0], at[1]) };
            (pair.0 as usize, pair.1 as usize)
        };
        let mut starts = growth::filled(rows + 1, 0usize)?;
        (0..places.count).for_each(|value| starts[place(value).0 + 1] += 1);
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut next = growth::copied(&starts)?;
        let mut entries = growth::filled(places.count, (0, 0))?;
        for value in 0..places.count {
            let (row, inner) = place(value);
            entries[next[row]] = (value, inner);
            next[row] += 1;
        }
        Ok(ByRow { starts, entries })
    }

    fn of(&self, row: usize) -> &[(usize, usize)] {
        &self.entries[self.starts[row]..self.starts[row + 1]]
    }
}

register_kernel!("SparseTensorDenseMatMul" on "CPU":
    MatMul<T> for "T" in [i32, f16, bf16, f32, f64, Complex<f32>, Complex<f64>],
    host_memory = &["a_shape"], numerics = tenon_sdk::reg::Numerics::relative(1e-30, 1e-6));
