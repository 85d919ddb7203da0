//! Rows of the left factor that overlap in memory, as the windows of an image do: tiles read them there, and what two
//! rows share is not written twice.
//!
//! Rows come in lines of as many each. Rows of a line are the same distance from each other, and so are the pieces of a
//! row along the depth: with windows of `kh` by `kw` taps, a line is a row of output pixels, the next row is `stride`
//! pixels further, and a row of taps is a piece of `kw * channels` factors.
//!
//! ```text
//! image   a b c d e f g       rows of 2 by 3 taps with stride 2:   abc hij
//!         h i j k l m n                                              cde jkl
//!                                                                      efg lmn
//! ```
//! Packed, these are 18 numbers; as a line, the 14 of the image. A strip of a tile's rows lies within a line.

use super::{accumulate::Pieces, blocks::CHUNK_BYTES, isa::Isa, left::Left};
use std::ops::Range;

/// How lines lie in memory.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Rows of a line.
    pub rows: usize,
    /// Numbers from a row to the next of its line.
    pub row_step: usize,
    /// Neighbouring factors of a row.
    pub piece: usize,
    /// Numbers from where a piece begins to where the next does.
    pub piece_step: usize,
}

impl Layout {
    /// How far a factor is from its row's first, and the pieces from there on.
    #[inline(always)]
    pub fn from(&self, depth: usize) -> (usize, Pieces) {
        let (piece, within) = (depth / self.piece.max(1), depth % self.piece.max(1));
        let gap = self.piece_step - self.piece;
        let pieces = Pieces { first: self.piece - within, len: self.piece, gap };
        (piece * self.piece_step + within, pieces)
    }
}

/// Rows that overlap.
pub trait Lines<S>: Sync {
    /// How they lie.
    fn layout(&self) -> Layout;
    /// Numbers that hold so many neighbouring lines, wherever they begin.
    fn len_of(&self, lines: usize) -> usize;
    /// Writes some lines.
    fn pack_lines(&self, lines: Range<usize>, to: &mut [S]);
    /// Where the first row of a line is, of lines that are packed from `first` on.
    fn line_at(&self, first: usize, line: usize) -> usize;
}

/// The lines of a left factor, where tiles read them as fast as packed rows.
pub fn lines_of<'a, S: 'static>(
    left: &'a dyn Left<S>,
    isa: &Isa<S>,
) -> Option<(&'a dyn Lines<S>, Layout)> {
    let lines = left.lines()?;
    let layout = lines.layout();
    // A tile of few rows waits for the right factor.
    let fills_tiles = 2 * layout.rows >= isa.rows;
    let fits = lines.len_of(2).saturating_mul(size_of::<S>()) <= CHUNK_BYTES;
    (fills_tiles && fits).then_some((lines, layout))
}
