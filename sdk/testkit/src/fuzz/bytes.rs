//! Choices by bytes, which a fuzzing engine changes or a seed generates.

use crate::check::{Random, seed_of};

/// Bytes that are used up by choices. When none are left, each choice is its first, the plainest one.
pub(super) struct Bytes<'a> {
    left: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub fn new(left: &'a [u8]) -> Bytes<'a> {
        Bytes { left }
    }

    fn byte(&mut self) -> usize {
        match self.left {
            [first, rest @ ..] => {
                self.left = rest;
                usize::from(*first)
            }
            [] => 0,
        }
    }

    /// Of [0, count), which is not empty.
    pub fn below(&mut self, count: usize) -> usize {
        let number = if count <= 256 { self.byte() } else { self.byte() << 8 | self.byte() };
        number % count.max(1)
    }

    /// Whether one of this many times comes; never without bytes.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// One of these, which are not none.
    pub fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// This many bytes of a word, the same ones everywhere.
pub fn bytes_of(word: &str, count: usize) -> Vec<u8> {
    let mut random = Random::new(seed_of(0, [word]));
    (0..count.div_ceil(8)).flat_map(|_| random.word().to_le_bytes()).take(count).collect()
}
