//! The positions of the factors of a strip's rows along the depth.

use super::accumulate::Strip;

/// The layout of a row's factors along the depth: in pieces of equal distances, which are in groups
/// of pieces of equal distances.
#[derive(Debug, Clone, Copy)]
pub struct Pieces {
    /// Number of factors in the first piece; this piece, or any other, may have more than are
    /// summed.
    pub first: usize,
    /// Number of factors in every other piece.
    pub len: usize,
    /// Distance between consecutive factors of a piece, in numbers.
    pub step: usize,
    /// What is added to the position between consecutive pieces; it may wrap around, like all
    /// positions here.
    pub gap: usize,
    /// Number of pieces in a group.
    pub group: usize,
    /// What is added to the position between consecutive groups, besides `gap`.
    pub jump: usize,
}

impl Pieces {
    /// All of a row's factors are contiguous.
    pub const ONE: Pieces =
        Pieces { first: usize::MAX, len: usize::MAX, step: 1, gap: 0, group: usize::MAX, jump: 0 };
}

/// The position of the rows' factors. Rows are at equal distances: an address is then a register
/// plus 1, 2 or 4 times another, which fits one x86 instruction.
pub struct Rows<S> {
    first: *const S,
    step: usize,
}

impl<S> Rows<S> {
    #[inline(always)]
    fn new(first: *const S, step: usize) -> Rows<S> {
        Rows { first, step: step * size_of::<S>() }
    }

    /// The factor of a row.
    #[inline(always)]
    pub fn at(&self, row: usize) -> *const S {
        self.first.wrapping_byte_add(row * self.step)
    }

    /// Advances along the depth.
    #[inline(always)]
    pub fn skip(&mut self, count: usize) {
        self.first = self.first.wrapping_add(count);
    }
}

/// A walk along the depth of a strip, piece by piece.
pub struct Walk {
    pieces: Pieces,
    /// Number of factors that are left, in this piece, and of all.
    piece: usize,
    rest: usize,
    /// Number of pieces that are left in the group, with this one.
    group: usize,
}

impl Walk {
    /// The first factors of a strip's rows, and the walk from there.
    #[inline(always)]
    pub fn new<S>(strip: &Strip<'_, S>) -> (Rows<S>, Walk) {
        let (pieces, rest) = (strip.pieces, strip.depths.len());
        let walk = Walk { pieces, piece: pieces.first, rest, group: pieces.group };
        (Rows::new(strip.left, strip.row_step), walk)
    }

    /// The number of factors of this piece; `None` at the end.
    #[inline(always)]
    pub fn piece(&self) -> Option<usize> {
        (self.rest > 0).then_some(self.piece.min(self.rest))
    }

    /// Moves from the end of this piece to the next one.
    #[inline(always)]
    pub fn next<S>(&mut self, left: &mut Rows<S>) {
        left.skip(self.pieces.gap);
        self.rest -= self.piece.min(self.rest);
        self.piece = self.pieces.len;
        self.group -= 1;
        if self.group == 0 {
            left.skip(self.pieces.jump);
            self.group = self.pieces.group;
        }
    }
}
