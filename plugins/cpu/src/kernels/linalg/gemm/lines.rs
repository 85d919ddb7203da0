//! Rows of the left factor that overlap in memory, like the windows of an image: tiles read them
//! there, so that shared parts are not written twice.
//!
//! Rows are grouped in lines of equal numbers. Rows of a line are at equal distances, and so are
//! the pieces of a row along the depth: with windows of `kh` by `kw` taps, a line is a row of
//! output pixels, the next row is `stride` pixels further, and a row of taps is a piece of `kw *
//! channels` factors.
//!
//! ```text
//! image   a b c d e f g       rows of 2 by 3 taps with stride 2:   abc hij
//!         h i j k l m n                                              cde jkl
//!                                                                      efg lmn
//! ```
//! Packed as rows, these are 18 numbers; as a line, the 14 of the image. A strip of a tile's rows
//! is within a line.

use super::{blocks::CHUNK_BYTES, isa::Isa, left::Left, pieces::Pieces};
use std::ops::Range;

/// The layout of lines in memory.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Number of rows in a line.
    pub rows: usize,
    /// Distance between rows of a line, in numbers.
    pub row_step: usize,
    /// Number of contiguous factors of a row.
    pub piece: usize,
    /// Distance between the beginnings of pieces, in numbers.
    pub piece_step: usize,
}

impl Layout {
    /// The distance of a factor from its row's first one, and the pieces from there on.
    #[inline(always)]
    pub fn from(&self, depth: usize) -> (usize, Pieces) {
        let (piece, within) = (depth / self.piece.max(1), depth % self.piece.max(1));
        let gap = self.piece_step - self.piece;
        let pieces = Pieces { first: self.piece - within, len: self.piece, gap, ..Pieces::ONE };
        (piece * self.piece_step + within, pieces)
    }
}

/// Rows that overlap in memory.
pub trait Lines<S>: Sync {
    /// The layout of the lines.
    fn layout(&self) -> Layout;
    /// Number of numbers that hold `lines` adjacent lines, wherever they begin.
    fn len_of(&self, lines: usize) -> usize;
    /// Writes some lines.
    fn pack_lines(&self, lines: Range<usize>, to: &mut [S]);
    /// Index of the first row of a line, among lines that are packed from `first` on.
    fn line_at(&self, first: usize, line: usize) -> usize;
}

/// The lines of a left factor, if tiles read them as fast as packed rows.
pub fn lines_of<'a, S: 'static>(
    left: &'a dyn Left<S>,
    isa: &Isa<S>,
) -> Option<(&'a dyn Lines<S>, Layout)> {
    let lines = left.lines()?;
    let layout = lines.layout();
    // A tile with few rows waits for the right factor.
    let fills_tiles = 2 * layout.rows >= isa.rows;
    let fits = lines.len_of(2).saturating_mul(size_of::<S>()) <= CHUNK_BYTES;
    (fills_tiles && fits).then_some((lines, layout))
}
