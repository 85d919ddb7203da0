//! The generator Philox-4x32-10: a counter, encrypted with a key.
//!
//! Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
//! The derivation of key and counter from seeds, and the division of the stream, are TensorFlow's,
//! so that the same seeds give the same numbers.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    sync::{Mutex, PoisonError},
};

/// The number of words that one step of the generator makes.
pub const WORDS: usize = 4;
/// The rounds of the cipher.
const ROUNDS: usize = 10;
/// The increments of the halves of the key at each round: the golden ratio and the square root of
/// three.
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
/// The factors of the counter's even words.
const FACTORS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
/// The key with which the seeds of stateless ops are mixed.
const SCRAMBLE: [u32; 2] = [0x3ec8_f720, 0x0246_1e29];

/// A position in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Philox {
    key: [u32; 2],
    counter: u128,
}

#[inline]
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

impl Philox {
    /// The stream of two seeds; a random one where both are 0.
    pub fn seeded(seed: i64, seed2: i64) -> Philox {
        let (seed, seed2) = if (seed, seed2) == (0, 0) {
            (entropy(), entropy())
        } else {
            (seed as u64, seed2 as u64)
        };
        Philox { key: halves(seed), counter: u128::from(seed2) << 64 }
    }

    /// The stream of a key and a counter, low word first.
    pub fn keyed(key: u64, counter: [u64; 2]) -> Philox {
        let [low, high] = counter.map(u128::from);
        Philox { key: halves(key), counter: high << 64 | low }
    }

    /// The stream of the seeds of a stateless op, which need not be good ones.
    pub fn mixed(seeds: [i64; 2]) -> Philox {
        let [low, high] = seeds.map(|seed| u128::from(seed as u64));
        let [a, b, c, d] = Philox { key: SCRAMBLE, counter: high << 64 | low }.step();
        Philox { key: [a, b], counter: (u128::from(d) << 32 | u128::from(c)) << 64 }
    }

    /// Key and counter, as [`Philox::keyed`] takes them.
    pub fn parts(&self) -> (u64, [u64; 2]) {
        let key = u64::from(self.key[1]) << 32 | u64::from(self.key[0]);
        (key, [self.counter as u64, (self.counter >> 64) as u64])
    }

    /// Advances by `steps` steps.
    #[inline]
    pub fn skip(&mut self, steps: u64) {
        self.counter = self.counter.wrapping_add(steps.into());
    }

    /// The stream `steps` steps further on.
    #[inline]
    pub fn at(&self, steps: u64) -> Philox {
        let mut later = *self;
        later.skip(steps);
        later
    }

    /// The next words.
    #[inline]
    pub fn step(&mut self) -> [u32; WORDS] {
        let wide = |factor: u32, word: u32| halves(u64::from(factor) * u64::from(word));
        let (low, high) = (halves(self.counter as u64), halves((self.counter >> 64) as u64));
        let (mut words, mut key) = ([low[0], low[1], high[0], high[1]], self.key);
        for _ in 0..ROUNDS {
            let [low0, high0] = wide(FACTORS[0], words[0]);
            let [low1, high1] = wide(FACTORS[1], words[2]);
            words = [high1 ^ words[1] ^ key[0], low1, high0 ^ words[3] ^ key[1], low0];
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        self.skip(1);
        words
    }
}

/// Unpredictable bits.
fn entropy() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Uniform in `[0, 1)`, with 23 random bits.
#[inline]
pub fn uniform_f32(word: u32) -> f32 {
    f32::from_bits(127 << 23 | word & 0x7f_ffff) - 1.0
}

/// Uniform in `[0, 1)`, with 52 random bits.
#[inline]
pub fn uniform_f64(low: u32, high: u32) -> f64 {
    let mantissa = u64::from(low & 0xf_ffff) << 32 | u64::from(high);
    f64::from_bits(1023 << 52 | mantissa) - 1.0
}

/// The words of a stream, one after the other.
#[derive(Debug)]
pub struct Words {
    generator: Philox,
    words: [u32; WORDS],
    used: usize,
}

impl Words {
    /// Returns the words from a position on.
    #[inline]
    pub fn new(generator: Philox) -> Words {
        Words { generator, words: [0; WORDS], used: WORDS }
    }

    /// Returns the next word.
    #[inline]
    pub fn next_word(&mut self) -> u32 {
        if self.used == WORDS {
            self.words = self.generator.step();
            self.used = 0;
        }
        self.used += 1;
        self.words[self.used - 1]
    }

    /// Returns a number in `[0, 1)`, of one word.
    pub fn next_f32(&mut self) -> f32 {
        uniform_f32(self.next_word())
    }

    /// Returns a number in `[0, 1)`, of two words.
    pub fn next_f64(&mut self) -> f64 {
        let (low, high) = (self.next_word(), self.next_word());
        uniform_f64(low, high)
    }

    /// Returns a number below `bound`, all of which are equally likely; 0 for a bound of 0. It takes one word, and another
    /// one for each that is refused.
    pub fn below(&mut self, bound: u32) -> u32 {
        // Words below the remainder are refused, so that each number has as many words.
        let refused = if bound.is_power_of_two() { 0 } else { (u32::MAX % bound.max(1)) + 1 };
        loop {
            let word = self.next_word();
            if bound == 0 || word >= refused {
                return word.checked_rem(bound).unwrap_or(0);
            }
        }
    }

    /// As [`Words::below`], of two words each, the low one first.
    pub fn below_u64(&mut self, bound: u64) -> u64 {
        let refused = if bound.is_power_of_two() { 0 } else { (u64::MAX % bound.max(1)) + 1 };
        loop {
            let (low, high) = (self.next_word(), self.next_word());
            let word = u64::from(high) << 32 | u64::from(low);
            if bound == 0 || word >= refused {
                return word.checked_rem(bound).unwrap_or(0);
            }
        }
    }
}

/// The stream of a stateful node, from which each call takes a section.
#[derive(Debug)]
pub struct Stream(Mutex<Philox>);

impl Stream {
    /// The stream of a node with these seeds.
    pub fn new(seed: i64, seed2: i64) -> Stream {
        Stream(Mutex::new(Philox::seeded(seed, seed2)))
    }

    /// Takes the next steps.
    pub fn take(&self, steps: u64) -> Philox {
        let mut generator = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = *generator;
        generator.skip(steps);
        taken
    }
}

/// The number of steps that TensorFlow reserves for `outputs` outputs, most of which are not used.
pub fn reserved(outputs: usize) -> u64 {
    (outputs as u64).wrapping_mul(RESERVED_PER_OUTPUT)
}

/// The number of steps reserved for an output.
pub const RESERVED_PER_OUTPUT: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors that the authors publish with their library (kat_vectors of Random123).
    #[test]
    fn known_answers() {
        let answer = |counter: [u64; 2], key| Philox::keyed(key, counter).step();
        assert_eq!(answer([0, 0], 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let ones = u64::MAX;
        assert_eq!(
            answer([ones, ones], ones),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            answer([0x85a3_08d3_243f_6a88, 0x0370_7344_1319_8a2e], 0x299f_31d0_a409_3822),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn skipping_is_stepping() {
        let mut stepped = Philox::keyed(7, [u64::MAX, 3]);
        let (first, start) = (stepped.at(2).step(), stepped);
        stepped.step();
        stepped.step();
        assert_eq!(stepped, start.at(2));
        assert_eq!(stepped.step(), first);
        assert_eq!(stepped.parts(), (7, [2, 4]));
    }

    #[test]
    fn seeds_of_zero_are_random() {
        assert_ne!(Philox::seeded(0, 0), Philox::seeded(0, 0));
        assert_eq!(Philox::seeded(0, 1), Philox::seeded(0, 1));
    }
}
