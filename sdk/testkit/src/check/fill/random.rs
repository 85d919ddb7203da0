//! The generator: SplitMix64, from Steele, Lea and Flood, "Fast splittable pseudorandom number generators"
//! (OOPSLA 2014), with the constants of Vigna's `splitmix64.c`. Ten lines, one word of state, and every seed
//! is a good one.

/// A sequence of numbers that its seed determines.
pub(crate) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Of [0, 1): the upper 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Of [low, high), or `low` when there is none. The bias of the remainder is below 2^-40 for the ranges
    /// that cases have.
    pub fn integer(&mut self, low: i64, high: i64) -> i64 {
        let span = u64::try_from(high.saturating_sub(low)).unwrap_or(0).max(1);
        low + (self.word() % span) as i64
    }
}

/// A seed from words: FNV-1a over their bytes, so that it depends on nothing but them.
pub(crate) fn seed_of<'a>(seed: u64, words: impl IntoIterator<Item = &'a str>) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let mut hash = seed.to_le_bytes().into_iter().fold(0xcbf2_9ce4_8422_2325, step);
    for word in words {
        hash = word.bytes().chain([0xff]).fold(hash, step);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_vigna_s() {
        // The first values of `splitmix64.c` from state 1234567.
        let mut random = Random::new(1_234_567);
        let words: Vec<u64> = (0..3).map(|_| random.word()).collect();
        assert_eq!(
            words,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn numbers_stay_in_their_ranges() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            assert!((0.0..1.0).contains(&random.unit()));
            assert!((-3..4).contains(&random.integer(-3, 4)));
        }
        assert_eq!(random.integer(5, 5), 5);
    }

    #[test]
    fn seeds_depend_on_every_word_and_where_it_ends() {
        let seeds = [
            seed_of(0, ["a", "b"]),
            seed_of(1, ["a", "b"]),
            seed_of(0, ["ab"]),
            seed_of(0, ["b", "a"]),
            seed_of(0, []),
        ];
        for (at, seed) in seeds.iter().enumerate() {
            assert!(!seeds[..at].contains(seed), "{seeds:?}");
        }
    }
}
