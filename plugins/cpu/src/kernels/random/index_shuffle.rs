//! `RandomIndexShuffle`.
//!
//! Sources: Beaulieu and others, "The Simon and Speck families of lightweight block ciphers" (2013), with words of any
//! size and as many rounds as are asked for; Black and Rogaway, "Ciphers with arbitrary finite domains" (2002), by which a
//! value beyond the last index is encrypted again. The keys and sizes are TensorFlow's, so that equal seeds give equal
//! indices.

use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError, View,
    author::{ComputeContext, CreateContext, Kernel},
    element::Element,
    growth,
    reg::Numerics,
    register_kernel,
};

/// The bits of a block, at least.
const LEAST_BITS: u32 = 16;
/// The constants of the key schedule.
const ROUND: u64 = 0xffff_fffc;
const SEQUENCE: u64 = 0x7369_f885_192c_0ef5;
/// Most rounds: the keys of all are kept.
const MOST_ROUNDS: i64 = 1 << 16;

/// A permutation of the numbers of twice so many bits.
struct Cipher {
    bits: u32,
    keys: Vec<u64>,
}

impl Cipher {
    /// The cipher of blocks that hold `last`, or twice as many numbers.
    fn new(seed: [u32; 3], last: u64, rounds: usize) -> Result<Cipher, KernelError> {
        let needed = (last as f64).log2().ceil() as u32;
        let bits = needed.next_multiple_of(2).clamp(LEAST_BITS, 64) / 2;
        let mut cipher = Cipher { bits, keys: growth::with_room(rounds)? };
        let mut sequence = cipher.word(SEQUENCE);
        for round in 0..rounds {
            let key = if let Some(&key) = seed.get(round) {
                cipher.word(key.into())
            } else {
                let (before, first) = (cipher.keys[round - 1], cipher.keys[round - 3]);
                let turned = cipher.left(before, bits - 3) ^ cipher.left(before, bits - 4);
                let key = cipher.word(ROUND) ^ (sequence & 1) ^ first ^ turned;
                sequence >>= 1;
                key
            };
            cipher.keys.push(key);
        }
        Ok(cipher)
    }

    /// The low bits of a number.
    fn word(&self, number: u64) -> u64 {
        number & ((1u64 << self.bits) - 1)
    }

    fn left(&self, word: u64, by: u32) -> u64 {
        self.word(word << by | word >> (self.bits - by))
    }

    /// The function of a round. Words have at least 8 bits, of which a turn by 8 is none.
    fn mix(&self, word: u64) -> u64 {
        self.left(word, 1) & self.left(word, 8 % self.bits) ^ self.left(word, 2)
    }

    fn encrypt(&self, number: u64) -> u64 {
        let (mut left, mut right) = (self.word(number >> self.bits), self.word(number));
        for keys in self.keys.chunks_exact(2) {
            left ^= self.mix(right) ^ keys[0];
            right ^= self.mix(left) ^ keys[1];
        }
        left << self.bits | right
    }

    /// The index in the place of another one, both at most `last`.
    fn shuffled(&self, index: u64, last: u64) -> u64 {
        let mut index = self.encrypt(index);
        // A permutation comes back to where it began, which is at most `last`.
        while index > last {
            index = self.encrypt(index);
        }
        index
    }
}

/// An integer type of indices and seeds.
trait Whole: Element {
    /// The number; `None` if it is negative.
    fn number(self) -> Option<u64>;
    /// The low bits.
    fn low(self) -> u32;
    /// The number as one of this type, which holds it.
    fn of(number: u64) -> Self;
}

macro_rules! whole {
    ($($ty:ty),*) => {$(
        impl Whole for $ty {
            fn number(self) -> Option<u64> {
                u64::try_from(self).ok()
            }
            fn low(self) -> u32 {
                self as u32
            }
            fn of(number: u64) -> $ty {
                number as $ty
            }
        }
    )*};
}

whole!(i32, i64, u32, u64);

/// An element of a scalar, or of a vector.
fn element<T: Copy>(view: &View<'_, T>, at: usize) -> T {
    view.data[if view.dims.is_empty() { 0 } else { at }]
}

/// The words of the seeds.
fn seeds(c: &ComputeContext<'_>) -> Result<Vec<u32>, KernelError> {
    fn words<T: Whole>(c: &ComputeContext<'_>) -> Result<Vec<u32>, KernelError> {
        growth::collected(c.input::<T>(1)?.data.iter().map(|seed| seed.low()))
    }
    match c.slot(1)?.dtype {
        DType::INT32 => words::<i32>(c),
        DType::UINT32 => words::<u32>(c),
        DType::INT64 => words::<i64>(c),
        _ => words::<u64>(c),
    }
}

struct RandomIndexShuffle<T> {
    rounds: usize,
    element: PhantomData<fn(T)>,
}

impl<T: Whole> Kernel for RandomIndexShuffle<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let rounds: i64 = c.attr("rounds")?;
        if !(4..=MOST_ROUNDS).contains(&rounds) || rounds % 2 != 0 {
            return Err(KernelError::invalid_argument(format!(
                "rounds must be even and from 4 to {MOST_ROUNDS}, got {rounds}"
            )));
        }
        Ok(RandomIndexShuffle { rounds: rounds as usize, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (index, last, seeds) = (c.input::<T>(0)?, c.input::<T>(2)?, seeds(c)?);
        let count = index.data.len().max(last.data.len()).max(seeds.len() / 3);
        let rows = [count as i64, 3];
        check_shapes(&[index.dims, last.dims], c.dims(1), &rows)?;
        let is_scalar = index.dims.is_empty() && last.dims.is_empty() && c.dims(1).len() == 1;
        let y = c.output::<T>(0, if is_scalar { &[] } else { &rows[..1] })?.data;
        let watch = c.watch();
        for (at, y) in y.iter_mut().enumerate() {
            watch.check()?;
            let (index, last) = (element(&index, at), element(&last, at));
            let (Some(index), Some(last)) = (index.number(), last.number()) else {
                return Err(outside(index, last));
            };
            if index > last {
                return Err(outside(index, last));
            }
            let from = if c.dims(1).len() == 1 { 0 } else { 3 * at };
            let seed = [0, 1, 2].map(|part| seeds[from + part]);
            *y = T::of(match last {
                0 => 0,
                _ => Cipher::new(seed, last, self.rounds)?.shuffled(index, last),
            });
        }
        Ok(())
    }
}

fn outside(index: impl std::fmt::Debug, last: impl std::fmt::Debug) -> KernelError {
    KernelError::invalid_argument(format!(
        "index must be from 0 to max_index, got {index:?} and {last:?}"
    ))
}

/// Checks that indices are scalars or vectors of the length of the output, and seeds one or as many.
fn check_shapes(indices: &[&[i64]], seed: &[i64], rows: &[i64; 2]) -> Result<(), KernelError> {
    if indices.iter().any(|dims| !dims.is_empty() && **dims != rows[..1]) {
        return Err(KernelError::invalid_argument(format!(
            "index and max_index must be scalars or vectors of {}, found shapes {indices:?}",
            rows[0]
        )));
    }
    if seed != [3] && seed != rows {
        return Err(KernelError::invalid_argument(format!(
            "seed must have the shape [3] or {rows:?}, found {seed:?}"
        )));
    }
    Ok(())
}

register_kernel!("RandomIndexShuffle" on "CPU": RandomIndexShuffle<T> for "dtype" in
    [i32, i64, u32, u64], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_comes_once() {
        for last in [1, 2, 9, 255, 70_000] {
            let cipher = Cipher::new([1, 2, 3], last, 4).unwrap();
            let mut found: Vec<u64> = (0..=last).map(|at| cipher.shuffled(at, last)).collect();
            found.sort_unstable();
            assert!(found.into_iter().eq(0..=last), "{last}");
        }
    }

    #[test]
    fn words_of_any_size_are_encrypted() {
        for last in [65_536, u64::from(u32::MAX), 1 << 62, u64::MAX] {
            let cipher = Cipher::new([u32::MAX; 3], last, 6).unwrap();
            assert!(cipher.shuffled(last, last) <= last);
        }
    }
}
