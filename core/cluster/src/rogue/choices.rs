//! Bytes as a sequence of choices.

/// Bytes that are used up by choices. When none are left, each choice is its first, the plainest one.
pub(super) struct Choices<'b>(&'b [u8]);

impl<'b> Choices<'b> {
    pub fn new(bytes: &'b [u8]) -> Choices<'b> {
        Choices(bytes)
    }

    /// Whether no byte is left.
    pub fn are_over(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Of [0, end), which is not empty and has at most 256 numbers.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    /// Whether one of this many times comes; never without bytes.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// One of these, which are not none.
    pub fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// Up to `most` items of a pool.
    pub fn some(&mut self, most: usize, pool: &[&str]) -> Vec<String> {
        (0..self.below(most + 1)).map(|_| self.of(pool).to_owned()).collect()
    }

    pub fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// A number of a typical size: a small one, an edge case, or any.
    pub fn number(&mut self) -> i64 {
        match self.byte() % 8 {
            0 => 0,
            1 => -1,
            2 => i64::MAX,
            3 => i64::MIN,
            4 => 1 << (self.byte() % 63),
            5 => self.word() as i64,
            _ => i64::from(self.byte()),
        }
    }

    pub fn bytes(&mut self) -> Vec<u8> {
        (0..self.byte() % 64).map(|_| self.byte()).collect()
    }
}
