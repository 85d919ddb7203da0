//! Fourier transforms over the last one to three dimensions.

use crate::shape::{dims_of, input_of_rank, input_of_rank_at_least};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_geometry::{FftDirection, GeometryError, real_fft_dims};

const COMPLEX: &str = "Tcomplex: {complex64, complex128} = DT_COMPLEX64";
const REAL: &str = "Treal: {float, double} = DT_FLOAT";

macro_rules! complex_transforms {
    ($($op:literal, $shape:expr, $summary:literal;)*) => {$(
        register_op!(
            $op,
            inputs = &["input: Tcomplex"],
            outputs = &["output: Tcomplex"],
            attrs = &[COMPLEX],
            shape = $shape,
            summary = $summary,
        );
    )*};
}

complex_transforms! {
    "FFT", unchanged::<1>, "The discrete Fourier transform over the last dimension.";
    "IFFT", unchanged::<1>, "The inverse discrete Fourier transform over the last dimension.";
    "FFT2D", unchanged::<2>, "The discrete Fourier transform over the last two dimensions.";
    "IFFT2D", unchanged::<2>, "The inverse discrete Fourier transform over the last two dimensions.";
    "FFT3D", unchanged::<3>, "The discrete Fourier transform over the last three dimensions.";
    "IFFT3D", unchanged::<3>, "The inverse discrete Fourier transform over the last three dimensions.";
}

macro_rules! real_transforms {
    ($($op:literal, $input:literal, $output:literal, $shape:expr, $summary:literal;)*) => {$(
        register_op!(
            $op,
            inputs = &[$input, "fft_length: int32"],
            outputs = &[$output],
            attrs = &[REAL, COMPLEX],
            shape = $shape,
            summary = $summary,
        );
    )*};
}

real_transforms! {
    "RFFT", "input: Treal", "output: Tcomplex", forward::<1>,
        "The spectrum of real numbers along the last dimension, without the half that is conjugate.";
    "IRFFT", "input: Tcomplex", "output: Treal", inverse::<1>,
        "The real numbers along the last dimension whose spectrum, without its conjugate half, is given.";
    "RFFT2D", "input: Treal", "output: Tcomplex", forward::<2>,
        "The spectrum of real images in the last two dimensions, without the half that is conjugate.";
    "IRFFT2D", "input: Tcomplex", "output: Treal", inverse::<2>,
        "The real images in the last two dimensions whose spectrum, without its conjugate half, is given.";
    "RFFT3D", "input: Treal", "output: Tcomplex", forward::<3>,
        "The spectrum of real volumes in the last three dimensions, without the half that is conjugate.";
    "IRFFT3D", "input: Tcomplex", "output: Treal", inverse::<3>,
        "The real volumes in the last three dimensions whose spectrum, without its conjugate half, is given.";
}

fn unchanged<const RANK: usize>(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, input_of_rank_at_least(c, 0, "input", RANK)?)
}

fn forward<const RANK: usize>(c: &ShapeContext<'_>) -> ShapeResult {
    real(c, RANK, FftDirection::Forward)
}

fn inverse<const RANK: usize>(c: &ShapeContext<'_>) -> ShapeResult {
    real(c, RANK, FftDirection::Inverse)
}

fn real(c: &ShapeContext<'_>, rank: usize, direction: FftDirection) -> ShapeResult {
    let input = input_of_rank_at_least(c, 0, "input", rank)?;
    let length = input_of_rank(c, 1, "fft_length", 1)?;
    if let Some(found) = c.value(c.dim(length, 0)).filter(|&found| found != rank as i64) {
        let found = found as usize;
        return Err(GeometryError::Length { what: "fft_length", expected: rank, found }.into());
    }
    let Some(sizes) = c.dims(input) else { return c.set_output(0, c.unknown()) };
    let lengths = match c.constant_integers(1) {
        // A length of -1 would be taken for an unknown one.
        Some(lengths) => match lengths.iter().find(|&&length| length < 0) {
            Some(&found) => {
                return Err(GeometryError::TooSmall { what: "fft_length", least: 0, found }.into());
            }
            None => lengths,
        },
        None => vec![-1; rank],
    };
    let output = real_fft_dims(&sizes, &lengths, direction)?;
    let outer = sizes.len() - rank;
    let mut dims = dims_of(c, input);
    dims.truncate(outer);
    dims.extend(output[outer..].iter().map(|&size| c.make_dim((size >= 0).then_some(size))));
    c.set_output(0, c.make_shape(&dims))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn complex_transforms_keep_the_shape() {
        check("FFT", &[], &[(&["[n,8]"], "[n,8]"), (&["?"], "?")]);
        check("IFFT2D", &[], &[(&["[n]"], "! input must have at least 2 dimensions, got 1")]);
    }

    #[test]
    fn real_transforms_take_their_lengths_from_a_constant() {
        check(
            "RFFT",
            &[],
            &[
                (&["[n,8]", "= [6]"], "[n,4]"),
                (&["[n,8]", "[1]"], "[n,?]"),
                (&["?", "?"], "?"),
                (&["[8]", "= [0]"], "[0]"),
                (&["[8]", "= [-1]"], "! fft_length must be at least 0, got -1"),
                (&["[8]", "[2]"], "! fft_length must hold 1 values, got 2"),
                (&["[8]", "[]"], "! fft_length must have 1 dimensions, got 0"),
            ],
        );
        check("IRFFT2D", &[], &[(&["[n,5,?]", "= [5,7]"], "[n,5,7]")]);
        check("RFFT3D", &[], &[(&["[n,4,5,6]", "= [4,5,6]"], "[n,4,5,4]")]);
        check("RFFT2D", &[], &[(&["[5]", "?"], "! input must have at least 2 dimensions, got 1")]);
    }
}
