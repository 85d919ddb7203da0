//! Visiting a strided box of elements in row-major order.
//!
//! The element at index (i0, i1, ...) has offset `base + i0*stride0 + i1*stride1 + ...`; the last index runs
//! fastest.

use crate::size::Dims;

/// Iterator over the element offsets of a strided box.
///
/// The caller must ensure that every offset is inside its buffer, as plans do; strides may be
/// negative.
#[derive(Debug, Clone)]
pub struct Offsets {
    extents: Dims,
    strides: Dims,
    index: Dims,
    offset: i64,
    remaining: usize,
}

impl Offsets {
    /// The offsets of a box with these extents and strides (of equal length), starting at `base`.
    pub fn new(extents: &Dims, strides: &Dims, base: i64) -> Offsets {
        debug_assert_eq!(extents.len(), strides.len());
        let empty = extents.iter().any(|&extent| extent <= 0);
        let remaining = if empty { 0 } else { extents.iter().product::<i64>() as usize };
        let mut index = *extents;
        index.fill(0);
        Offsets { extents: *extents, strides: *strides, index, offset: base, remaining }
    }
}

impl Iterator for Offsets {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.remaining == 0 {
            return None;
        }
        self.remaining -= 1;
        let result = self.offset as usize;
        for d in (0..self.extents.len()).rev() {
            self.index[d] += 1;
            self.offset = self.offset.wrapping_add(self.strides[d]);
            if self.index[d] < self.extents[d] {
                break;
            }
            let back = self.strides[d].wrapping_mul(self.extents[d]);
            self.offset = self.offset.wrapping_sub(back);
            self.index[d] = 0;
        }
        Some(result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for Offsets {}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(extents: &[i64], strides: &[i64], base: i64) -> Vec<usize> {
        let dims = |values| Dims::from_slice(values).unwrap();
        Offsets::new(&dims(extents), &dims(strides), base).collect()
    }

    #[test]
    fn visits_in_row_major_order() {
        assert_eq!(offsets(&[2, 3], &[1, 2], 0), [0, 2, 4, 1, 3, 5]);
        assert_eq!(offsets(&[2, 2], &[0, -1], 3), [3, 2, 3, 2]);
        assert_eq!(offsets(&[], &[], 7), [7]);
        assert_eq!(offsets(&[3, 0], &[1, 1], 0), [0usize; 0]);
    }
}
