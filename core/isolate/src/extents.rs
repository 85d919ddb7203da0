//! Free ranges of an arena: a first-fit list; adjacent ranges merge.

use std::collections::BTreeMap;

/// Every range begins and ends at a multiple of this: a tensor's alignment.
pub(super) const GRAIN: u64 = 64;

/// Free ranges by their beginning; none are adjacent.
#[derive(Debug, Default)]
pub(super) struct Extents {
    free: BTreeMap<u64, u64>,
}

impl Extents {
    /// An arena of this size, all free.
    pub fn new(bytes: u64) -> Extents {
        Extents { free: BTreeMap::from([(0, bytes / GRAIN * GRAIN)]) }
    }

    /// Allocates a range that begins at a multiple of `align`, itself a multiple of [`GRAIN`].
    pub fn take(&mut self, bytes: u64, align: u64) -> Option<u64> {
        let bytes = bytes.max(1).checked_next_multiple_of(GRAIN)?;
        let fits = |(&begin, &length): (&u64, &u64)| {
            let at = begin.checked_next_multiple_of(align)?;
            (at.checked_add(bytes)? <= begin + length).then_some((begin, length, at))
        };
        let (begin, length, at) = self.free.iter().find_map(fits)?;
        self.free.remove(&begin);
        if at > begin {
            self.free.insert(begin, at - begin);
        }
        let (end, last) = (at + bytes, begin + length);
        if last > end {
            self.free.insert(end, last - end);
        }
        Some(at)
    }

    /// The free ranges: the beginning and the length of each.
    pub fn free(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.free.iter().map(|(&begin, &length)| (begin, length))
    }

    /// Frees an allocated range.
    pub fn give(&mut self, at: u64, bytes: u64) {
        let mut length = bytes.max(1).next_multiple_of(GRAIN);
        let mut begin = at;
        if let Some(next) = self.free.remove(&(at + length)) {
            length += next;
        }
        if let Some((&before, &bytes)) = self.free.range(..at).next_back()
            && before + bytes == at
        {
            begin = before;
            length += bytes;
        }
        self.free.insert(begin, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn ranges_are_apart_aligned_and_join_again() {
        let mut extents = Extents::new(1 << 20);
        let mut taken: BTreeMap<u64, u64> = BTreeMap::new();
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for _ in 0..4000 {
            if random(3) > 0 {
                let (bytes, align) = (random(9000) + 1, [64, 4096][random(2) as usize]);
                let Some(at) = extents.take(bytes, align) else { continue };
                assert!(at % align == 0 && at + bytes <= 1 << 20);
                let before = taken.range(..=at).next_back();
                assert!(before.is_none_or(|(&begin, &length)| begin + length <= at));
                assert!(taken.range(at..).next().is_none_or(|(&begin, _)| at + bytes <= begin));
                taken.insert(at, bytes);
            } else if let Some((&at, &bytes)) = taken.range(random(1 << 20)..).next() {
                taken.remove(&at);
                extents.give(at, bytes);
            }
        }
        for (at, bytes) in taken {
            extents.give(at, bytes);
        }
        assert_eq!(extents.free, BTreeMap::from([(0, 1 << 20)]));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut extents = Extents::new(128);
        assert_eq!(extents.take(129, 64), None);
        assert_eq!(extents.take(u64::MAX, 64), None);
        assert_eq!(extents.take(0, 64), Some(0));
        assert_eq!(extents.take(64, 64), Some(64));
        assert_eq!(extents.take(1, 64), None);
    }
}
