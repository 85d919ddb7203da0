//! The generator Philox-4x32-10, whose words choose elements of shuffled queues.
//!
//! Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Key and
//! counter come from the seeds as TensorFlow has them, so that a queue with seeds gives its order.

use std::hash::{BuildHasher, Hasher, RandomState};

const ROUNDS: usize = 10;
/// The increments of the key's halves at each round: the golden ratio and the square root of three.
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
/// The factors of the counter's even words.
const FACTORS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];

/// The words of a stream, one after the other.
#[derive(Debug)]
pub struct Words {
    key: [u32; 2],
    counter: u128,
    words: [u32; 4],
    used: usize,
}

fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

impl Words {
    /// The stream of two seeds; a random one where both are 0.
    pub fn seeded(seed: i64, seed2: i64) -> Words {
        let entropy = || RandomState::new().build_hasher().finish();
        let (seed, seed2) = match (seed, seed2) {
            (0, 0) => (entropy(), entropy()),
            _ => (seed as u64, seed2 as u64),
        };
        Words { key: halves(seed), counter: u128::from(seed2) << 64, words: [0; 4], used: 4 }
    }

    /// The next word.
    pub fn next(&mut self) -> u32 {
        if self.used == self.words.len() {
            (self.words, self.used) = (self.step(), 0);
        }
        self.used += 1;
        self.words[self.used - 1]
    }

    fn step(&mut self) -> [u32; 4] {
        let wide = |factor: u32, word: u32| halves(u64::from(factor) * u64::from(word));
        let (low, high) = (halves(self.counter as u64), halves((self.counter >> 64) as u64));
        let (mut words, mut key) = ([low[0], low[1], high[0], high[1]], self.key);
        for _ in 0..ROUNDS {
            let [low0, high0] = wide(FACTORS[0], words[0]);
            let [low1, high1] = wide(FACTORS[1], words[2]);
            words = [high1 ^ words[1] ^ key[0], low1, high0 ^ words[3] ^ key[1], low0];
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        self.counter = self.counter.wrapping_add(1);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::Words;

    /// The known answers of the authors' Random123: counter and key of zeros, and the digits of pi.
    #[test]
    fn the_known_answers() {
        let mut zeros = Words { key: [0; 2], counter: 0, words: [0; 4], used: 4 };
        let first: Vec<u32> = (0..4).map(|_| zeros.next()).collect();
        assert_eq!(first, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let counter = 0x0370_7344_1319_8a2e_85a3_08d3_243f_6a88;
        let mut pi = Words { key: [0xa409_3822, 0x299f_31d0], counter, words: [0; 4], used: 4 };
        let first: Vec<u32> = (0..4).map(|_| pi.next()).collect();
        assert_eq!(first, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }
}
