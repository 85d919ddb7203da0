//! `SobolSample`: Sobol's sequence with the direction numbers of S. Joe and F. Kuo ("Constructing Sobol
//! sequences with better two-dimensional projections", 2008), in the order of Gray's code (I. Antonov
//! and V. Saleev, "An economic method of computing LP-tau sequences", 1979).

use crate::split::try_rows;
use tenon_sdk::{
    KernelError, author::ComputeContext, element::Number, growth, reg::Numerics, register_kernel,
};

/// The numbers as `sobol.py` packs them, for all dimensions but the first.
const PACKED: &[u8] = include_bytes!("sobol.bin");
const DIMENSIONS: i64 = 21_200;
/// Bits of a coordinate.
const BITS: usize = 32;
/// Approximate nanoseconds of a coordinate.
const COST_NS: f64 = 0.5;

/// Reads numbers of some bits, the lowest first.
struct Stream<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Stream<'_> {
    fn take(&mut self, count: usize) -> u32 {
        let bits = self.at..self.at + count;
        self.at = bits.end;
        let bit = |at: usize| u32::from(self.bytes[at / 8] >> (at % 8) & 1);
        bits.rev().fold(0, |number, at| number << 1 | bit(at))
    }

    /// The direction numbers of the next dimension.
    fn directions(&mut self) -> [u32; BITS] {
        let degree = self.take(5) as usize;
        let coefficients = self.take(degree - 1);
        let mut numbers = [0; BITS];
        for (i, number) in numbers.iter_mut().enumerate().take(degree) {
            *number = (self.take(i) << 1 | 1) << (BITS - 1 - i);
        }
        for i in degree..BITS {
            let far = numbers[i - degree];
            let terms = (1..degree).filter(|k| coefficients >> (degree - 1 - k) & 1 == 1);
            numbers[i] = terms.fold(far ^ far >> degree, |sum, k| sum ^ numbers[i - k]);
        }
        numbers
    }
}

/// The direction numbers of some dimensions: those of each bit, and in each bit of each dimension.
fn directions(dimensions: usize) -> Result<Vec<u32>, KernelError> {
    let mut all = growth::filled(BITS * dimensions, 0)?;
    let mut stream = Stream { bytes: PACKED, at: 0 };
    for dimension in 0..dimensions {
        let numbers = match dimension {
            0 => std::array::from_fn(|bit| 1 << (BITS - 1 - bit)),
            _ => stream.directions(),
        };
        for (bit, number) in numbers.into_iter().enumerate() {
            all[bit * dimensions + dimension] = number;
        }
    }
    Ok(all)
}

/// Point `number` of the sequence, whose point 0 has coordinates 0 alone.
fn point(directions: &[u32], number: u64, coordinates: &mut [u32]) {
    coordinates.fill(0);
    let code = number ^ number >> 1;
    for (bit, directions) in directions.chunks_exact(coordinates.len()).enumerate() {
        if code >> bit & 1 == 1 {
            coordinates.iter_mut().zip(directions).for_each(|(x, direction)| *x ^= direction);
        }
    }
}

/// A size, which is at least `least`.
fn size(
    c: &ComputeContext<'_>,
    input: usize,
    what: &'static str,
    least: i64,
) -> Result<i64, KernelError> {
    match c.integer(input, what)? {
        found if found < least => Err(KernelError::invalid_argument(format!(
            "{what} must be at least {least}, got {found}"
        ))),
        found => Ok(found),
    }
}

fn sample<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (columns, rows) = (size(c, 0, "dim", 1)?, size(c, 1, "num_results", 1)?);
    let skipped = size(c, 2, "skip", 0)?;
    if columns > DIMENSIONS {
        return Err(KernelError::invalid_argument(format!(
            "dim must be at most {DIMENSIONS}, got {columns}"
        )));
    }
    if rows + skipped >= i64::from(i32::MAX) {
        return Err(KernelError::invalid_argument(format!(
            "num_results and skip must be less than {} together, got {rows} and {skipped}",
            i32::MAX
        )));
    }
    let y = c.output::<T>(0, &[rows, columns])?.data;
    let columns = columns as usize;
    let directions = directions(columns)?;
    try_rows(c, y, columns, COST_NS * columns as f64, |first, y| {
        let mut coordinates = growth::filled(columns, 0)?;
        let mut number = skipped as u64 + first as u64;
        point(&directions, number, &mut coordinates);
        for y in y.chunks_exact_mut(columns) {
            number += 1;
            let changed = &directions[number.trailing_zeros() as usize * columns..][..columns];
            for ((y, x), direction) in y.iter_mut().zip(&mut coordinates).zip(changed) {
                *x ^= direction;
                *y = T::from_f64(f64::from(*x) / (1u64 << BITS) as f64);
            }
        }
        Ok(())
    })
}

register_kernel!("SobolSample" on "CPU": fn sample<T> for "dtype" in [f32, f64],
    host_memory = &["dim", "num_results", "skip"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_are_read_and_each_half_of_an_axis_has_half_of_the_points() {
        let all = directions(DIMENSIONS as usize).unwrap();
        let columns = DIMENSIONS as usize;
        // The first direction of each dimension halves its axis, and each one lies in its own half.
        for (bit, numbers) in all.chunks_exact(columns).enumerate() {
            let lowest = BITS - 1 - bit;
            assert!(numbers.iter().all(|number| number.trailing_zeros() as usize == lowest));
        }
        let mut stream = Stream { bytes: PACKED, at: 0 };
        for _ in 1..columns {
            stream.directions();
        }
        assert_eq!(stream.at.div_ceil(8), PACKED.len());
    }

    #[test]
    fn a_point_follows_from_its_number_or_from_the_one_before() {
        let all = directions(5).unwrap();
        let (mut found, mut expected) = ([0; 5], [0; 5]);
        for number in 1..300u64 {
            point(&all, number, &mut found);
            let changed = &all[number.trailing_zeros() as usize * 5..][..5];
            expected.iter_mut().zip(changed).for_each(|(x, direction)| *x ^= direction);
            assert_eq!(found, expected, "{number}");
        }
    }
}
