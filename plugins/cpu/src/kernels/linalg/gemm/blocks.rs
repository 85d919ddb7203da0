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
//! chunk must be large.

use super::{
    super::product::{Factor, Operand, Target},
    accumulate::Strip,
    ending::{After, Ending},
    isa::Isa,
    left::Left,
    lines::{Layout, Lines, lines_of},
    pieces::Pieces,
    right::{self, Right, packed_len, tail_of},
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
/// Rows whose distance is a multiple of this share few sets of the first-level cache, and evict
/// each other.
const RESONANCE: usize = 2048;
/// Number of panels of columns from which on optional packing of rows is worthwhile.
const WORTH_PACKING: usize = 4;
/// Bytes between packed rows, so that they do not begin in the same set.
const GAP_BYTES: usize = 64;
/// Bytes of the right factor that a product without threads packs at a time.
const SLICE_BYTES: usize = 2 << 20;
/// Most bytes of a right factor that is read in place regardless of the number of rows.
const SMALL_BYTES: usize = 32 << 10;

/// Number of strips below which a product waits for memory more than it computes.
const FEW_STRIPS: usize = 2;
/// Number of rows of a matrix in memory that a processor prefetches at the same time.
const STREAMS: usize = 16;
/// Number of results that are finished together: a part of the first-level cache.
const TOGETHER: usize = 4096;

/// How tiles read the rows' factors.
enum Reads<'a, S> {
    /// In place.
    InPlace,
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
    right: Right<'a, S>,
    to: &'a Target<S>,
    placement: Option<Placement>,
    ending: Ending<'a, S>,
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
            (None, None) => (Reads::Packed(row_step), row_step * isa.rows),
        };
        let chunk = (CHUNK_BYTES / (chunk * size).max(1)).clamp(1, strips.max(1));
        Product { left, right, to, placement, ending, strips, line, depth, reads, chunk, panels }
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
            Reads::InPlace => 0,
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
                unsafe { self.panels_of_chunk(strips.clone(), &depths, &few, left) };
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

    /// # Safety
    /// - The caller upholds what [`Product::run`] requires.
    /// - `left` has the rows' factors.
    unsafe fn panels_of_chunk(
        &self,
        strips: Range<usize>,
        depths: &Range<usize>,
        panels: &Range<usize>,
        Factors { first: left, row_step, pieces }: Factors<S>,
    ) {
        let (first, to_step) = (self.rows_of(strips.clone()).start, self.to.strides[0]);
        let isa = self.right.isa();
        let is_last = depths.end == self.left.depth();
        let finish = Some(self.ending.finish).filter(|finish| is_last && !finish.is_none());
        let after = self.ending.rest.filter(|_| is_last);
        let together = (TOGETHER / (isa.rows * panels.len() * isa.columns)).max(1);
        // The first strips prefetch the panels that come next, so that the first strip to read them
        // does not wait.
        let next = match self.right.is_in_place() {
            true => 0..0,
            false => panels.end..(panels.end + panels.len()).min(self.panels()),
        };
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
                        right: self.right,
                        depths: depths.clone(),
                        panels: panels.clone(),
                        to: self.to.data.wrapping_add(self.place(rows.start)),
                        to_step,
                        adds: depths.start > 0,
                        next: next.clone(),
                        before: (strip - strips.start) * panels.len(),
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

/// Computes a product on the caller's thread, without memory of a call; a right factor that is
/// packed is processed part by part.
///
/// Panics if sizes do not match, or the results are not contiguous.
pub fn alone<S: Factor>(
    isa: &'static Isa<S>,
    a: &Operand<'_, S>,
    b: &Operand<'_, S>,
    c: &Target<S>,
) {
    let run = |product: &Product<'_, S>| {
        // SAFETY: only this call uses the target.
        unsafe { product.run(0..product.strips(), 0..product.panels()) }
    };
    if reads_in_place(isa, a.rows, b) {
        return with_tail(isa, b, |right| run(&Product::new(a, right, c, Ending::NONE)));
    }
    let panels = SLICE_BYTES / (b.rows * isa.columns * size_of::<S>()).max(1);
    let slice = panels.max(1) * isa.columns;
    for first in (0..b.cols).step_by(slice) {
        let b = b.columns_from(first, slice.min(b.cols - first));
        let size = [b.rows, b.cols];
        // SAFETY: columns of the target, which only this call uses.
        let c = unsafe { c.columns_from(first, b.cols) };
        let len = packed_len(isa, size).expect("packed factors fit the address space");
        scratch::with(Side::Right, len, |packed| {
            let packed = &mut packed[..len];
            right::pack(isa, &b, 0..b.cols.div_ceil(isa.columns), packed);
            run(&Product::new(a, Right::packed(isa, size, packed), &c, Ending::NONE));
        });
    }
}

/// Whether a right factor is read in place.
pub fn reads_in_place<S: Factor>(isa: &Isa<S>, rows: usize, b: &Operand<'_, S>) -> bool {
    let few = rows <= FEW_STRIPS * isa.rows || b.rows * b.cols * size_of::<S>() <= SMALL_BYTES;
    few && (b.strides[1] == 1 || b.cols <= 1)
}

/// Calls `body` with a right factor that is read in place, except for its last panel.
pub fn with_tail<S: Factor, R>(
    isa: &'static Isa<S>,
    b: &Operand<'_, S>,
    body: impl FnOnce(Right<'_, S>) -> R,
) -> R {
    if tail_of(isa, b.cols) == 0 {
        return body(Right::in_place(isa, b, &[]));
    }
    let len = b.rows * isa.columns;
    scratch::with(Side::Right, len, |tail| {
        let (tail, last) = (&mut tail[..len], b.cols / isa.columns);
        right::pack(isa, b, last..last + 1, tail);
        body(Right::in_place(isa, b, tail))
    })
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
