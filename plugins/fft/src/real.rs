//! `RFFT` and `IRFFT` over one, two and three dimensions.

use crate::{
    columns::{Images, copy_row, transform_axis, transform_columns},
    complex::{DOUBLE, FLOAT},
    plans::{
        Complex, ComplexPlan, Plans, Real, complex_plan, cost_ns, for_rows, forward_plan,
        inverse_plan, scale,
    },
};
use realfft::{ComplexToReal, RealToComplex};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Element,
    geometry::{Dims, FftDirection, GeometryError, check_fft_input, real_fft_dims},
    growth, register_kernel,
};

/// Sizes of a transform.
struct Sizes {
    output: Dims,
    /// Last dimensions of the input: images and rows (1 without them), and columns.
    input: [usize; 3],
    /// Lengths of the transform, which are 1 for dimensions that are not transformed.
    lengths: [usize; 3],
}

impl Sizes {
    fn new(
        c: &ComputeContext<'_>,
        rank: usize,
        direction: FftDirection,
    ) -> Result<Sizes, KernelError> {
        let (dims, lengths) = (c.dims(0), c.integers(1)?);
        if c.dims(1) != [rank as i64] {
            return Err(KernelError::invalid_argument(format!(
                "fft_length must have shape [{rank}], found {:?}",
                c.dims(1)
            )));
        }
        if let Some(&found) = lengths.iter().find(|&&length| length < 0) {
            return Err(GeometryError::TooSmall { what: "fft_length", least: 0, found }.into());
        }
        let output = real_fft_dims(dims, &lengths, direction)?;
        check_fft_input(dims, &lengths, direction)?;
        let last = |list: &[i64]| {
            let mut sizes = [1; 3];
            let own = &list[list.len() - rank..];
            sizes[3 - rank..].iter_mut().zip(own).for_each(|(size, own)| *size = *own as usize);
            sizes
        };
        Ok(Sizes { output, input: last(dims), lengths: last(&lengths) })
    }

    /// The number of the row of the input that a row of the transform is.
    fn row(&self, number: usize) -> usize {
        let ([images, height, _], [used, rows, _]) = (self.input, self.lengths);
        let (outer, image, row) = (number / rows / used, number / rows % used, number % rows);
        (outer * images + image) * height + row
    }
}

/// Transform from real numbers, over the last `RANK` dimensions.
struct Forward<T: Real, const RANK: usize> {
    rows: Plans<dyn RealToComplex<T>>,
    columns: Plans<ComplexPlan<T>>,
}

impl<T: Real, const RANK: usize> Kernel for Forward<T, RANK>
where
    Complex<T>: Element,
{
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Forward { rows: Plans::new(), columns: Plans::new() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?.data;
        let sizes = Sizes::new(c, RANK, FftDirection::Forward)?;
        let y = c.output::<Complex<T>>(0, &sizes.output)?.data;
        if x.is_empty() || y.is_empty() {
            y.fill(Complex::default());
            return Ok(());
        }
        self.rows(c, &sizes, x, y)?;
        if RANK == 1 {
            return Ok(());
        }
        let [images, rows, length] = sizes.lengths;
        let cols = length / 2 + 1;
        let spare = c.scratch_slice::<Complex<T>>(y.len())?;
        for (length, cols) in [(rows, cols), (images, rows * cols)].into_iter().take(RANK - 1) {
            let plan = self.columns.get(length, || complex_plan(length, FftDirection::Forward))?;
            transform_axis(c, &*plan, [length, cols], (y, spare), None)?;
        }
        Ok(())
    }
}

impl<T: Real, const RANK: usize> Forward<T, RANK> {
    /// Transforms each used row of the input.
    fn rows(
        &self,
        c: &ComputeContext<'_>,
        sizes: &Sizes,
        x: &[T],
        y: &mut [Complex<T>],
    ) -> Result<(), KernelError> {
        let (width, length) = (sizes.input[2], sizes.lengths[2]);
        let plan = self.rows.get(length, || forward_plan(length))?;
        let (cols, watch) = (length / 2 + 1, c.watch());
        for_rows(c, y, cols, cost_ns(length), |first, block| {
            let mut row = growth::filled(length, T::zero())?;
            let mut scratch = growth::filled(plan.get_scratch_len(), Complex::default())?;
            for (at, y) in block.chunks_exact_mut(cols).enumerate() {
                watch.check()?;
                row.copy_from_slice(&x[sizes.row(first + at) * width..][..length]);
                plan.process_with_scratch(&mut row, y, &mut scratch).map_err(refused)?;
            }
            Ok(())
        })
    }
}

/// Transform to real numbers, over the last `RANK` dimensions.
struct Inverse<T: Real, const RANK: usize> {
    rows: Plans<dyn ComplexToReal<T>>,
    columns: Plans<ComplexPlan<T>>,
}

impl<T: Real, const RANK: usize> Kernel for Inverse<T, RANK>
where
    Complex<T>: Element,
{
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Inverse { rows: Plans::new(), columns: Plans::new() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<Complex<T>>(0)?.data;
        let sizes = Sizes::new(c, RANK, FftDirection::Inverse)?;
        let y = c.output::<T>(0, &sizes.output)?.data;
        if x.is_empty() || y.is_empty() {
            y.fill(T::zero());
            return Ok(());
        }
        let [_, height, width] = sizes.input;
        if RANK == 1 {
            return self.rows(c, &sizes, y, |number, row| {
                row.copy_from_slice(&x[number * width..][..row.len()]);
            });
        }
        if RANK == 3 {
            return self.volumes(c, &sizes, x, y);
        }
        let [_, rows, length] = sizes.lengths;
        let cols = length / 2 + 1;
        let images = Images { height, width, rows, cols };
        // For each image, as many columns as an output image has frequencies.
        let columns = c.scratch_slice::<Complex<T>>(y.len() / length * cols)?;
        let plan = self.columns.get(rows, || complex_plan(rows, FftDirection::Inverse))?;
        transform_columns(c, &*plan, images, x, columns)?;
        let columns = &*columns;
        self.rows(c, &sizes, y, |number, row| copy_row([rows, cols], number, columns, row))
    }
}

impl<T: Real, const RANK: usize> Inverse<T, RANK>
where
    Complex<T>: Element,
{
    /// Transforms volumes: first over images and rows, of a copy of the used part of the input.
    fn volumes(
        &self,
        c: &ComputeContext<'_>,
        sizes: &Sizes,
        x: &[Complex<T>],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        let ([images, rows, length], width) = (sizes.lengths, sizes.input[2]);
        let cols = length / 2 + 1;
        let len = y.len() / length * cols;
        let (used, spare) = c.scratch_slice::<Complex<T>>(2 * len)?.split_at_mut(len);
        for (number, row) in used.chunks_exact_mut(cols).enumerate() {
            row.copy_from_slice(&x[sizes.row(number) * width..][..cols]);
        }
        for (length, cols) in [(images, rows * cols), (rows, cols)] {
            let plan = self.columns.get(length, || complex_plan(length, FftDirection::Inverse))?;
            transform_axis(c, &*plan, [length, cols], (used, spare), None)?;
        }
        let used = &*used;
        self.rows(c, sizes, y, |number, row| {
            row.copy_from_slice(&used[number * cols..][..row.len()]);
        })
    }

    /// Computes the rows of the output, each from the spectrum that `fill` writes.
    fn rows(
        &self,
        c: &ComputeContext<'_>,
        sizes: &Sizes,
        y: &mut [T],
        fill: impl Fn(usize, &mut [Complex<T>]) + Sync,
    ) -> Result<(), KernelError> {
        let length = sizes.lengths[2];
        let plan = self.rows.get(length, || inverse_plan(length))?;
        let scale = scale::<T>(sizes.lengths.iter().product(), FftDirection::Inverse);
        let watch = c.watch();
        for_rows(c, y, length, cost_ns(length), |first, block| {
            let mut row = growth::filled(plan.complex_len(), Complex::default())?;
            let mut scratch = growth::filled(plan.get_scratch_len(), Complex::default())?;
            for (at, y) in block.chunks_exact_mut(length).enumerate() {
                watch.check()?;
                fill(first + at, &mut row);
                make_real(&mut row, length);
                plan.process_with_scratch(&mut row, y, &mut scratch).map_err(refused)?;
                if let Some(scale) = scale {
                    y.iter_mut().for_each(|y| *y = *y * scale);
                }
            }
            Ok(())
        })
    }
}

/// Clears the imaginary parts that a real signal's spectrum cannot have: at frequency zero and, for
/// an even length, at the highest one. Other values there are ignored.
fn make_real<T: Real>(row: &mut [Complex<T>], length: usize) {
    row[0].im = T::zero();
    if let Some(last) = row.last_mut().filter(|_| length.is_multiple_of(2)) {
        last.im = T::zero();
    }
}

fn refused(error: realfft::FftError) -> KernelError {
    KernelError::internal(format!("the transform of a row was refused: {error}"))
}

macro_rules! transforms {
    ($($op:literal, $kernel:ident, $rank:literal;)*) => {$(
        register_kernel!($op on "CPU": $kernel<f32, $rank>,
            types = ("Treal", &[DType::FLOAT]), types = ("Tcomplex", &[DType::COMPLEX64]),
            host_memory = &["fft_length"], numerics = FLOAT);
        register_kernel!($op on "CPU": $kernel<f64, $rank>,
            types = ("Treal", &[DType::DOUBLE]), types = ("Tcomplex", &[DType::COMPLEX128]),
            host_memory = &["fft_length"], numerics = DOUBLE);
    )*};
}

transforms! {
    "RFFT", Forward, 1;
    "IRFFT", Inverse, 1;
    "RFFT2D", Forward, 2;
    "IRFFT2D", Inverse, 2;
    "RFFT3D", Forward, 3;
    "IRFFT3D", Inverse, 3;
}
