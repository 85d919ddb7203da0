//! The loops around a tile, on one thread.
//!
//! ```text
//! for each chunk of rows                          its packed rows: half of L2
//!     for each block of the depth                 the fewer the better: each reads and writes the chunk's results
//!         pack the chunk's rows, where they are not read in place; as lines, once for all blocks
//!         for each few panels of columns          a fifth of L2
//!             for each strip of rows              in L1
//!                 for each of the panels: a tile
//! ```
//! The right factor is read once for each chunk, from the third-level cache or from memory, so the
//! chunk must be large. If all rows are in one chunk, a matrix is packed here, a few panels at a
//! time: its packed form stays in L2, and the tiles before prefetch its columns.

use super::{
    super::product::{Factor, Operand, Target},
    accumulate::{Ahead, Strip},
    ending::{After, Ending},
    isa::Isa,
    left::Left,
    lines::{Layout, Lines, lines_of},
    pieces::Pieces,
    right::{self, Right},
    scratch::{self, Side},
};
use std::ops::Range;
use tenon_sdk::pages::LINE;

/// Bytes of a row in a block of the depth.
const DEPTH_BYTES: usize = 2560;
/// Bytes of the rows of a chunk.
pub(super) const CHUNK_BYTES: usize = 512 << 10;
/// Bytes of the panels by which a chunk is multiplied at a time.
const PANELS_BYTES: usize = 200 << 10;
/// The same of panels that are packed here: long pieces of memory are read for many columns.
const FRESH_BYTES: usize = 400 << 10;
/// Rows whose distance is a multiple of this share few sets of the first-level cache, and evict
/// each other.
const RESONANCE: usize = 2048;
/// Number of panels of columns from which on optional packing of rows is worthwhile.
const WORTH_PACKING: usize = 4;
/// Bytes between packed rows, so that they do not begin in the same set.
const GAP_BYTES: usize = 64;

/// Number of strips below which a product waits for memory more than it computes.
pub(super) const FEW_STRIPS: usize = 2;
/// Number of rows of a matrix in memory that a processor prefetches at the same time.
const STREAMS: usize = 16;
/// Number of results that are finished together: a part of the first-level cache.
const TOGETHER: usize = 4096;

/// How tiles read the rows' factors.
enum Reads<'a, S> {
    /// In place.
    InPlace,
    /// In place, by columns that begin this far apart.
    Columns(usize),
    /// Packed, with this many numbers from a row to the next.
    Packed(usize),
    /// Packed as lines.
    Lines(&'a dyn Lines<S>, Layout),
}

/// The factors of a chunk's rows along a block of the depth: the first one, the distance between
/// rows (of a line, if there are lines), and the layout of a row's factors.
#[derive(Clone, Copy)]
struct Factors<S> {
    first: *const S,
    row_step: usize,
    pieces: Pieces,
}

/// Where the rows of results are, if not at equal distances: in lines whose rows are, as pixels of
/// images of which only some rows and columns are written.
#[derive(Debug, Clone, Copy)]
pub struct Placement {
    /// Number of rows in a line.
    pub rows: usize,
    /// Number of lines in an image.
    pub lines: usize,
    /// Distance between lines of an image, in numbers.
    pub line_step: usize,
    /// Distance between images.
    pub image_step: usize,
}

/// A product whose results are contiguous in each row.
pub struct Product<'a, S: Factor> {
    left: &'a dyn Left<S>,
    /// The right factor; if `source` is set, its sizes alone.
    right: Right<'a, S>,
    /// The matrix of the right factor, if that is packed a few panels at a time.
    source: Option<&'a Operand<'a, S>>,
    to: &'a Target<S>,
    placement: Option<Placement>,
    ending: Ending<'a, S>,
    /// Whether results are added to the target's numbers.
    adds: bool,
    /// Number of strips of rows, whose rows are balanced so that no strip has few.
    strips: usize,
    /// Rows of a line, or all rows without lines, and its number of strips.
    line: [usize; 2],
    /// Number of factors in a block of the depth.
    depth: usize,
    reads: Reads<'a, S>,
    /// Number of strips in a chunk.
    chunk: usize,
    /// Number of panels of columns by which a chunk is multiplied at a time.
    panels: usize,
}

impl<'a, S: Factor> Product<'a, S> {
    /// A product.
    ///
    /// Panics if sizes do not match, or results are not contiguous.
    pub fn new(
        left: &'a dyn Left<S>,
        right: Right<'a, S>,
        to: &'a Target<S>,
        ending: Ending<'a, S>,
    ) -> Product<'a, S> {
        Self::placed(left, right, to, None, ending)
    }

    /// A product whose right factor is packed a few panels at a time, for every chunk of rows.
    ///
    /// Panics as [`Product::new`].
    pub fn fresh(
        isa: &'static Isa<S>,
        left: &'a dyn Left<S>,
        source: &'a Operand<'a, S>,
        to: &'a Target<S>,
        ending: Ending<'a, S>,
    ) -> Product<'a, S> {
        assert!(source.fits(), "the matrix lies in its memory");
        let right = Right::block(isa, [source.rows, source.cols], &(0..0), &(0..0), &[]);
        let made = Self::placed(left, right, to, None, ending);
        let panel = isa.columns * made.depth * size_of::<S>();
        let panels = (FRESH_BYTES / panel.max(1)).max(1);
        Product { source: Some(source), panels, ..made }
    }

    /// A product whose rows of results are placed in lines; `to` has the distance between rows of a
    /// line, and nothing is done to the results.
    ///
    /// Panics as [`Product::new`].
    pub fn in_lines(
        left: &'a dyn Left<S>,
        right: Right<'a, S>,
        to: &'a Target<S>,
        placement: Placement,
    ) -> Product<'a, S> {
        Self::placed(left, right, to, Some(placement), Ending::NONE)
    }

    fn placed(
        left: &'a dyn Left<S>,
        right: Right<'a, S>,
        to: &'a Target<S>,
        placement: Option<Placement>,
        ending: Ending<'a, S>,
    ) -> Product<'a, S> {
        assert!(left.rows() == to.rows && right.columns() == to.cols, "results agree");
        assert_eq!(left.depth(), right.depth(), "as many left factors as right ones");
        assert!(to.strides[1] == 1 || to.cols <= 1, "results next to each other");
        let end = to.rows.saturating_sub(1) * to.strides[0] + to.cols;
        assert!(ending.finish.covers(to.cols, end), "something to finish each result with");
        let (isa, size) = (right.isa(), size_of::<S>());
        let lines = lines_of(left, isa);
        let line = lines.map_or(to.rows, |(_, layout)| layout.rows);
        let line = placement.map_or(line, |placement| placement.rows);
        let line = [line, line.div_ceil(isa.rows)];
        assert!(to.rows.is_multiple_of(line[0].max(1)), "whole lines");
        let strips = to.rows / line[0].max(1) * line[1];
        let depth = depth_of_blocks(&right, strips);
        let panels = (PANELS_BYTES / (isa.columns * depth * size).max(1)).max(1);
        let row_step = depth.next_multiple_of(LINE / size) + GAP_BYTES / size;
        let in_place = left.in_place().filter(|(_, step)| {
            let resonates = (step * size).is_multiple_of(RESONANCE);
            !resonates || right.panels() < WORTH_PACKING || to.rows <= 1
        });
        let (reads, chunk) = match (in_place, lines) {
            (Some(_), _) => (Reads::InPlace, row_step * isa.rows),
            (None, Some((lines, layout))) => {
                // The results of a line are read again for each block of the depth.
                let results = if depth < left.depth() { line[0] * to.cols } else { 0 };
                (
                    Reads::Lines(lines, layout),
                    (lines.len_of(2) - lines.len_of(1) + results) / line[1],
                )
            }
            (None, None) => {
                let columns = left.by_columns().filter(|_| right.panels() < WORTH_PACKING);
                let packed = Reads::Packed(row_step);
                (columns.map_or(packed, |(_, step)| Reads::Columns(step)), row_step * isa.rows)
            }
        };
        let chunk = (CHUNK_BYTES / (chunk * size).max(1)).clamp(1, strips.max(1));
        Product {
            left,
            right,
            source: None,
            to,
            placement,
            ending,
            adds: false,
            strips,
            line,
            depth,
            reads,
            chunk,
            panels,
        }
    }

    /// The product, whose results are added to the target's numbers.
    pub fn adding(self) -> Self {
        Product { adds: true, ..self }
    }

    /// Number of strips of rows.
    pub fn strips(&self) -> usize {
        self.strips
    }

    /// Number of strips in a chunk.
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// Number of panels of columns.
    pub fn panels(&self) -> usize {
        self.right.panels()
    }

    fn rows_of(&self, strips: Range<usize>) -> Range<usize> {
        let [rows, count] = self.line;
        let row = |strip: usize| {
            let (line, within) = (strip / count.max(1), strip % count.max(1));
            line * rows + within * rows / count.max(1)
        };
        row(strips.start)..row(strips.end)
    }

    /// Computes some strips of rows times some panels of columns.
    ///
    /// # Safety
    /// - Nothing else computes any of these results at the same time.
    pub unsafe fn run(&self, strips: Range<usize>, panels: Range<usize>) {
        assert!(strips.end <= self.strips && panels.end <= self.panels());
        assert!(self.right.isa().is_supported(), "the CPU has {}", self.right.isa().name);
        let packed = match self.reads {
            Reads::InPlace | Reads::Columns(_) => 0,
            Reads::Packed(row_step) => self.chunk * self.right.isa().rows * row_step,
            // The chunk may begin and end within lines.
            Reads::Lines(lines, _) => lines.len_of(self.chunk.div_ceil(self.line[1]) + 1),
        };
        scratch::with(Side::Left, packed, |packed| {
            let mut chunk = strips.start..strips.start;
            while chunk.end < strips.end {
                chunk = chunk.end..(chunk.end + self.chunk).min(strips.end);
                // SAFETY: the caller guarantees that nothing else computes any of these results;
                // strips, panels and the CPU's level have been checked.
                unsafe { self.chunk_of_rows(chunk.clone(), panels.clone(), packed) };
            }
        });
    }

    /// # Safety
    /// - The caller upholds what [`Product::run`] requires.
    unsafe fn chunk_of_rows(&self, strips: Range<usize>, panels: Range<usize>, packed: &mut [S]) {
        let rows = self.rows_of(strips.clone());
        if let Reads::Lines(lines, layout) = self.reads {
            lines.pack_lines(rows.start / layout.rows..rows.end.div_ceil(layout.rows), packed);
        }
        let mut depths = 0..0;
        loop {
            depths = depths.end..(depths.end + self.depth).min(self.left.depth());
            let left = self.factors(rows.clone(), &depths, packed);
            let mut few = panels.start..panels.start;
            while few.end < panels.end {
                few = few.end..(few.end + self.panels).min(panels.end);
                // SAFETY: the caller guarantees that nothing else computes any of these results;
                // `left` has the factors of these rows.
                unsafe { self.panels_of_chunk(strips.clone(), &depths, (&few, &panels), left) };
            }
            if depths.end == self.left.depth() {
                return;
            }
        }
    }

    /// The factors of a chunk's rows; packs them here, except for lines, which are packed already.
    fn factors(&self, rows: Range<usize>, depths: &Range<usize>, packed: &mut [S]) -> Factors<S> {
        let pieces = Pieces::ONE;
        match self.reads {
            Reads::InPlace => {
                let (first, row_step) = self.left.in_place().expect("its rows are in place");
                let first = first.wrapping_add(rows.start * row_step + depths.start);
                Factors { first, row_step, pieces }
            }
            Reads::Columns(step) => {
                let (first, _) = self.left.by_columns().expect("its columns are in place");
                let first = first.wrapping_add(rows.start + depths.start * step);
                Factors { first, row_step: 1, pieces: Pieces { step, ..Pieces::ONE } }
            }
            Reads::Packed(row_step) => {
                self.left.pack(rows, depths.clone(), packed, row_step);
                Factors { first: packed.as_ptr(), row_step, pieces }
            }
            Reads::Lines(_, layout) => {
                let (from, pieces) = layout.from(depths.start);
                let first = packed.as_ptr().wrapping_add(from);
                Factors { first, row_step: layout.row_step, pieces }
            }
        }
    }

    /// Distance of a row's results from those of the first row.
    #[inline(always)]
    fn place(&self, row: usize) -> usize {
        let step = self.to.strides[0];
        self.placement.map_or(row * step, |Placement { rows, lines, line_step, image_step }| {
            let line = row / rows;
            line / lines * image_step + line % lines * line_step + row % rows * step
        })
    }

    /// Distance of a row's factors from the first ones of a chunk, whose first row is `first`.
    #[inline(always)]
    fn distance(&self, first: usize, row: usize, row_step: usize) -> usize {
        match self.reads {
            Reads::Lines(lines, Layout { rows, .. }) => {
                lines.line_at(first / rows, row / rows) + row % rows * row_step
            }
            _ => (row - first) * row_step,
        }
    }

    /// What the tiles of these panels prefetch: the panels that come next, so that the first strip
    /// to read or to pack them does not wait.
    fn ahead(&self, depths: &Range<usize>, panels: &Range<usize>, all: &Range<usize>) -> Ahead<S> {
        let isa = self.right.isa();
        let next = panels.end..(panels.end + panels.len()).min(all.end);
        if let Some(source) = self.source {
            // After the last panels come the first ones of the next block of the depth.
            let (depth, next) = match next.is_empty() {
                true => (depths.end, all.start..(all.start + panels.len()).min(all.end)),
                false => (depths.start, next),
            };
            let [row, column] = source.strides;
            return Ahead {
                first: source
                    .data
                    .as_ptr()
                    .wrapping_add(depth * row + next.start * isa.columns * column),
                panel_step: isa.columns * column,
                part_step: isa.lanes * column,
                step: row,
                panels: if depth < source.rows { next.len() } else { 0 },
                before: 0,
            };
        }
        if self.right.is_in_place() || next.is_empty() {
            return Ahead::NONE;
        }
        Ahead {
            first: self.right.panel(next.start, depths.start).0,
            panel_step: self.right.panel_step(),
            part_step: depths.len() * isa.lanes,
            step: isa.lanes,
            panels: next.len(),
            before: 0,
        }
    }

    /// Computes some panels of a chunk for a block of the depth; packs these panels if they are
    /// not packed.
    ///
    /// # Safety
    /// - The caller upholds what [`Product::run`] requires.
    /// - `left` has the rows' factors.
    unsafe fn panels_of_chunk(
        &self,
        strips: Range<usize>,
        depths: &Range<usize>,
        (panels, all): (&Range<usize>, &Range<usize>),
        left: Factors<S>,
    ) {
        let ahead = self.ahead(depths, panels, all);
        let Some(source) = self.source else {
            // SAFETY: the caller upholds the same conditions.
            return unsafe { self.tiles(strips, depths, panels, left, (self.right, ahead)) };
        };
        let isa = self.right.isa();
        let len = panels.len() * depths.len() * isa.columns;
        scratch::with(Side::Right, len, |packed| {
            let packed = &mut packed[..len];
            let rows = source.rows_from(depths.start, depths.len());
            right::pack(isa, &rows, panels.clone(), packed);
            let size = [self.right.depth(), self.right.columns()];
            let right = Right::block(isa, size, panels, depths, packed);
            // SAFETY: the caller upholds the same conditions.
            unsafe { self.tiles(strips, depths, panels, left, (right, ahead)) }
        });
    }

    /// # Safety
    /// - The caller upholds what [`Product::run`] requires.
    /// - `left` has the rows' factors, and `right` those of these panels, along these depths.
    unsafe fn tiles(
        &self,
        strips: Range<usize>,
        depths: &Range<usize>,
        panels: &Range<usize>,
        Factors { first: left, row_step, pieces }: Factors<S>,
        (right, ahead): (Right<'_, S>, Ahead<S>),
    ) {
        let (first, to_step) = (self.rows_of(strips.clone()).start, self.to.strides[0]);
        let isa = self.right.isa();
        let is_last = depths.end == self.left.depth();
        let finish = Some(self.ending.finish).filter(|finish| is_last && !finish.is_none());
        let after = self.ending.rest.filter(|_| is_last);
        let together = (TOGETHER / (isa.rows * panels.len() * isa.columns)).max(1);
        for some in strips.clone().step_by(together).map(|at| at..(at + together).min(strips.end)) {
            for strip in some.clone() {
                let rows = self.rows_of(strip..strip + 1);
                // SAFETY: sizes match; the rows are in the target, and nothing else uses these
                // results; the CPU has the instructions.
                unsafe {
                    isa.run(&Strip {
                        rows: rows.len(),
                        left: left.wrapping_add(self.distance(first, rows.start, row_step)),
                        row_step,
                        pieces,
                        right,
                        depths: depths.clone(),
                        panels: panels.clone(),
                        to: self.to.data.wrapping_add(self.place(rows.start)),
                        to_step,
                        adds: self.adds || depths.start > 0,
                        ahead: Ahead { before: (strip - strips.start) * panels.len(), ..ahead },
                        finish: finish.map(|finish| finish.from(0, rows.start * to_step)),
                    });
                }
            }
            if let Some(after) = after {
                // SAFETY: the rows are in the target, and nothing else uses these results.
                unsafe { self.follow(after, self.rows_of(some), panels) };
            }
        }
    }

    /// # Safety
    /// - The caller upholds what [`Product::run`] requires.
    /// - These results have been computed.
    unsafe fn follow(&self, after: &After<'_, S>, rows: Range<usize>, panels: &Range<usize>) {
        let (width, step) = (self.right.isa().columns, self.to.strides[0]);
        let columns = panels.start * width..(panels.end * width).min(self.to.cols);
        // SAFETY: the caller guarantees that these results have been computed, and that nothing
        // else uses them.
        let part = |first: usize, len: usize| unsafe {
            std::slice::from_raw_parts_mut(self.to.data.wrapping_add(first), len)
        };
        if columns.len() == step {
            return after(rows.start * step, part(rows.start * step, rows.len() * step));
        }
        for row in rows {
            let first = row * step + columns.start;
            after(first, part(first, columns.len()));
        }
    }
}

/// Number of factors in a block of the depth: blocks have about the same length. If few rows are
/// multiplied by a large matrix in place, a block has as many of its rows as are prefetched at the
/// same time.
fn depth_of_blocks<S: 'static>(right: &Right<'_, S>, strips: usize) -> usize {
    let (depth, bytes) = (right.depth(), size_of::<S>());
    if strips <= FEW_STRIPS && right.is_in_place() && depth * right.columns() * bytes > PANELS_BYTES
    {
        return STREAMS.min(depth);
    }
    let most = DEPTH_BYTES / bytes;
    depth.div_ceil(depth.div_ceil(most).max(1)).next_multiple_of(8).min(depth)
}

impl<S: Factor> Product<'_, S> {
    /// Approximate duration on one thread: that of the multiplications, or with few rows that of
    /// reading.
    pub fn cost_ns(&self) -> f64 {
        /// Approximate bytes per nanosecond from the third-level cache.
        const BYTES_PER_NS: f64 = 16.0;
        let [rows, columns, depth] =
            [self.to.rows, self.to.cols, self.right.depth()].map(|size| size as f64);
        let read = depth * columns * size_of::<S>() as f64 / BYTES_PER_NS;
        // Writing a result costs about as much as 32 products.
        (rows * columns * (depth + 32.0) / self.right.isa().rate).max(read)
    }
}
