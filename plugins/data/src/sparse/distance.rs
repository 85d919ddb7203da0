//! `EditDistance`: the distances of Levenshtein between the rows of two sparse tensors.

use super::{moved::MOVED, places::Places};
use std::cmp::Ordering;
use tenon_sdk::{
    author::StepWatch,
    geometry::{GeometryError, byte_size},
    growth,
    prelude::*,
};

/// How elements are compared that are equal where their bytes differ, or differ where these are equal.
#[derive(Clone, Copy)]
struct FloatBits {
    /// The bytes of a part of an element.
    part: usize,
    /// The bits of infinity: those of greater magnitude are NaN.
    infinity: u64,
}

impl FloatBits {
    fn of(dtype: DType) -> Option<FloatBits> {
        match dtype {
            DType::HALF => Some(FloatBits { part: 2, infinity: 0x7c00 }),
            DType::BFLOAT16 => Some(FloatBits { part: 2, infinity: 0x7f80 }),
            DType::FLOAT | DType::COMPLEX64 => Some(FloatBits { part: 4, infinity: 0x7f80_0000 }),
            DType::DOUBLE | DType::COMPLEX128 => {
                Some(FloatBits { part: 8, infinity: 0x7ff0_0000_0000_0000 })
            }
            _ => None,
        }
    }

    /// Whether two parts are equal as numbers.
    fn are_equal(self, a: &[u8], b: &[u8]) -> bool {
        let bits =
            |bytes: &[u8]| bytes.iter().rev().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
        let magnitude = |bits: u64| bits & !(1 << (8 * self.part - 1));
        let (a, b) = (bits(a), bits(b));
        let is_zero = magnitude(a) == 0 && magnitude(b) == 0;
        is_zero || a == b && magnitude(a) <= self.infinity
    }
}

/// The values of both tensors.
enum Compared<'c> {
    Texts([Vec<&'c [u8]>; 2]),
    Bytes { data: [&'c [u8]; 2], size: usize, floats: Option<FloatBits> },
}

impl<'c> Compared<'c> {
    fn new(
        c: &ComputeContext<'c>,
        [first, second]: [usize; 2],
    ) -> Result<Compared<'c>, KernelError> {
        let dtype = c.slot(first)?.dtype;
        if dtype == DType::STRING {
            return Ok(Compared::Texts([c.strings(first)?, c.strings(second)?]));
        }
        let size = dtype.size().filter(|&size| size > 0).ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "hypothesis_values: expected a type of plain elements, found {dtype}"
            ))
        })?;
        let data = [c.input_bytes(first)?, c.input_bytes(second)?];
        Ok(Compared::Bytes { data, size, floats: FloatBits::of(dtype) })
    }

    /// Whether a hypothesis is a truth.
    fn are_equal(&self, hypothesis: usize, truth: usize) -> bool {
        match self {
            Compared::Texts([a, b]) => a[hypothesis] == b[truth],
            Compared::Bytes { data: [a, b], size, floats } => {
                let (a, b) = (&a[hypothesis * size..][..*size], &b[truth * size..][..*size]);
                match floats {
                    None => a == b,
                    Some(floats) => {
                        let mut parts =
                            a.chunks_exact(floats.part).zip(b.chunks_exact(floats.part));
                        parts.all(|(a, b)| floats.are_equal(a, b))
                    }
                }
            }
        }
    }

    /// The distance of two rows.
    fn distance(
        &self,
        watch: &StepWatch<'_>,
        hypothesis: &[usize],
        truth: &[usize],
    ) -> Result<usize, KernelError> {
        // The distances of what comes before in one row from each beginning of the other.
        let mut distances = growth::collected(0..=truth.len())?;
        for (at, &own) in hypothesis.iter().enumerate() {
            watch.check()?;
            let mut diagonal = at;
            distances[0] = at + 1;
            for (column, &other) in truth.iter().enumerate() {
                let replaced = diagonal + usize::from(!self.are_equal(own, other));
                diagonal = distances[column + 1];
                distances[column + 1] = replaced.min(diagonal + 1).min(distances[column] + 1);
            }
        }
        Ok(distances[truth.len()])
    }
}

struct EditDistance {
    is_normalized: bool,
}

impl EditDistance {
    /// The result for a row of hypotheses and one of truths, either of which may be missing.
    fn of_rows(
        &self,
        compared: &Compared<'_>,
        watch: &StepWatch<'_>,
        hypothesis: &[usize],
        truth: &[usize],
    ) -> Result<f32, KernelError> {
        let distance = match hypothesis.is_empty() || truth.is_empty() {
            true => hypothesis.len().max(truth.len()),
            false => compared.distance(watch, hypothesis, truth)?,
        };
        // Without truths it is infinite.
        Ok(distance as f32 / if self.is_normalized { truth.len() as f32 } else { 1.0 })
    }
}

/// The dimensions of the result.
fn dims_of(a: &Places, b: &Places) -> Result<Vec<i64>, KernelError> {
    let (expected, found) = (a.shape.len(), b.shape.len());
    if expected < 2 {
        let what = "hypothesis_shape";
        return Err(GeometryError::RankTooSmall { what, expected: 2, found: expected }.into());
    }
    if expected != found {
        let (expected, found) = (expected as i64, found as i64);
        let what = "the number of truth_shape";
        return Err(GeometryError::SizeMismatch { what, expected, found }.into());
    }
    let both = a.shape.iter().zip(&b.shape).take(found - 1);
    growth::collected(both.map(|(&a, &b)| a.max(b)))
}

impl Kernel for EditDistance {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(EditDistance { is_normalized: c.attr("normalize")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (a, b) = (Places::inside(c, [0, 1, 2])?, Places::inside(c, [3, 4, 5])?);
        let dims = dims_of(&a, &b)?;
        byte_size(&dims, 4)?;
        let compared = Compared::new(c, [1, 4])?;
        let y = c.output::<f32>(0, &dims)?.data;
        y.fill(0.0);
        let (in_a, in_b, watch) = (a.sorted()?, b.sorted()?, c.watch());
        let (mut rows_of_a, mut rows_of_b) = (a.rows(&in_a).peekable(), b.rows(&in_b).peekable());
        loop {
            let key_of_a = rows_of_a.peek().map(|row| &a.at(row[0])[..dims.len()]);
            let key_of_b = rows_of_b.peek().map(|row| &b.at(row[0])[..dims.len()]);
            let order = match (key_of_a, key_of_b) {
                (None, None) => return Ok(()),
                (Some(a), Some(b)) => a.cmp(b),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
            };
            let key = if order.is_le() { key_of_a } else { key_of_b }.unwrap_or(&[]);
            let at = key.iter().zip(&dims).fold(0, |flat, (at, size)| flat * size + at);
            let hypothesis = rows_of_a.next_if(|_| order.is_le()).unwrap_or(&[]);
            let truth = rows_of_b.next_if(|_| order.is_ge()).unwrap_or(&[]);
            y[at as usize] = self.of_rows(&compared, &watch, hypothesis, truth)?;
        }
    }
}

register_kernel!("EditDistance" on "CPU": EditDistance, types = ("T", MOVED),
    host_memory = &["hypothesis_shape", "truth_shape"]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_equal_as_numbers() {
        let floats = FloatBits::of(DType::FLOAT).unwrap();
        let equal = |a: f32, b: f32| floats.are_equal(&a.to_le_bytes(), &b.to_le_bytes());
        assert!(equal(0.0, -0.0) && equal(1.5, 1.5) && equal(f32::INFINITY, f32::INFINITY));
        assert!(!equal(1.0, -1.0) && !equal(f32::NAN, f32::NAN) && !equal(0.0, 1.0));
    }
}
