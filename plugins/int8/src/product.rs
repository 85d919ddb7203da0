//! A product of two matrices of bytes, from packing to output, on one thread: the loops around a
//! tile.
//!
//! ```text
//! for each chunk of rows                      its packed rows: a part of L2
//!     pack its panels, with the sums of rows
//!     for each block of right panels          half of L2 at most
//!         for each panel of rows              in L1
//!             for each right panel: begin the sums, accumulate, write
//! ```

use crate::{
    accumulate::{self, Compiled, MOST_ROWS, Strip},
    isa::Isa,
    output::{Part, Stage, Terms},
    pack::{FLIP, GROUP, Left, Source, groups, left_bytes},
    vector::{MOST_LANES, VECTORS},
};
use std::ops::Range;
use tenon_sdk::{
    DType, growth,
    pages::{Line, Lines},
};

/// Most bytes of packed left values in a chunk of rows with more than one panel.
const CHUNK_BYTES: usize = 128 << 10;
/// Most panels of a chunk.
const CHUNK_PANELS: usize = 8;
/// Approximate bytes per nanosecond from the second-level cache.
const L2_BYTES_PER_NS: f64 = 32.0;
/// Most bytes of packed right values in a block with more than one panel.
const BLOCK_BYTES: usize = 512 << 10;

/// A right matrix, packed for one instruction set.
#[derive(Debug, Clone, Copy)]
pub struct Right<'a> {
    isa: &'static Isa,
    depth: usize,
    columns: usize,
    panels: &'a [Line],
    sums: &'a [i32],
}

/// A packed right matrix with its memory.
#[derive(Debug)]
pub struct PackedRight {
    isa: &'static Isa,
    depth: usize,
    columns: usize,
    panels: Lines,
    sums: Vec<i32>,
}

/// The XOR mask that converts values of a type to those of a left (`left`) or right matrix of an
/// instruction set; all zero points shift accordingly.
pub fn flip(isa: &Isa, dtype: DType, left: bool) -> u8 {
    let wants_signed = if left { isa.left_signed } else { true };
    if (dtype == DType::QINT8) == wants_signed { 0 } else { FLIP }
}

/// A zero point after [`flip`], modulo 2^32.
pub fn flipped_zero(zero: i32, dtype: DType, flip: u8) -> i32 {
    match (flip, dtype) {
        (0, _) => zero,
        (_, DType::QINT8) => zero.wrapping_add(128),
        _ => zero.wrapping_sub(128),
    }
}

impl PackedRight {
    /// Packs the columns of a matrix; `None` when out of memory.
    pub fn pack(isa: &'static Isa, source: &Source<'_>) -> Option<PackedRight> {
        let (depth, columns) = (source.depth(), source.lines());
        let sizes = RightSizes::new(isa, depth, columns);
        let mut panels = Lines::zeroed(sizes.panels * sizes.panel_lines)?;
        let mut sums = growth::filled(sizes.panels * isa.columns, 0).ok()?;
        sizes.each(&mut panels, &mut sums, |first, panel, sums| {
            isa.pack_right(source, first, panel, sums);
        });
        Some(PackedRight { isa, depth, columns, panels, sums })
    }

    /// The matrix.
    pub fn view(&self) -> Right<'_> {
        let PackedRight { isa, depth, columns, .. } = *self;
        Right { isa, depth, columns, panels: &self.panels, sums: &self.sums }
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.panels) + size_of_val(&*self.sums)
    }
}

/// Sizes of a packed right matrix.
#[derive(Debug, Clone, Copy)]
pub struct RightSizes {
    /// Number of panels.
    pub panels: usize,
    /// Lines of a panel.
    pub panel_lines: usize,
    /// Columns of a panel.
    pub panel_columns: usize,
}

impl RightSizes {
    /// The sizes for a matrix.
    pub fn new(isa: &Isa, depth: usize, columns: usize) -> RightSizes {
        RightSizes {
            panels: columns.div_ceil(isa.columns),
            panel_lines: panel_bytes(isa, depth) / size_of::<Line>(),
            panel_columns: isa.columns,
        }
    }

    /// The first column, the memory and the sums of each panel. With a depth of 0 there is nothing
    /// to pack.
    pub fn each(
        self,
        panels: &mut [Line],
        sums: &mut [i32],
        mut pack: impl FnMut(usize, &mut [u8], &mut [i32]),
    ) {
        let panels = panels.chunks_exact_mut(self.panel_lines.max(1));
        let sums = sums.chunks_exact_mut(self.panel_columns);
        for (at, (panel, sums)) in panels.zip(sums).enumerate() {
            pack(at * self.panel_columns, Line::numbers_mut(panel), sums);
        }
    }
}

/// Bytes of a right panel.
fn panel_bytes(isa: &Isa, depth: usize) -> usize {
    groups(depth, isa.words) * isa.columns * GROUP
}

impl<'a> Right<'a> {
    /// A matrix of these sizes that [`RightSizes::each`] packed into this memory.
    ///
    /// Panics if the memory has another size.
    pub fn new(
        isa: &'static Isa,
        [depth, columns]: [usize; 2],
        panels: &'a [Line],
        sums: &'a [i32],
    ) -> Right<'a> {
        let sizes = RightSizes::new(isa, depth, columns);
        assert_eq!(panels.len(), sizes.panels * sizes.panel_lines, "memory for the panels");
        assert_eq!(sums.len(), sizes.panels * sizes.panel_columns, "memory for the sums");
        Right { isa, depth, columns, panels, sums }
    }

    /// Number of factors of a column.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of columns including those that fill the last panel.
    pub fn padded_columns(&self) -> usize {
        self.sums.len()
    }

    /// The sums of the columns' factors, including those that fill the last panel.
    pub fn sums(&self) -> &'a [i32] {
        self.sums
    }

    /// The instruction set that it is packed for.
    pub fn isa(&self) -> &'static Isa {
        self.isa
    }

    fn panels(&self) -> usize {
        self.sums.len() / self.isa.columns
    }
}

/// A matrix of results that several threads write, each in its own rows and columns.
#[derive(Debug)]
pub struct Target<'a> {
    first: *mut u8,
    row_bytes: usize,
    life: std::marker::PhantomData<&'a mut [u8]>,
}

// SAFETY: `Product::run` writes through it, whose callers guarantee disjoint parts.
unsafe impl Sync for Target<'_> {}

impl<'a> Target<'a> {
    /// A target with rows of `row_bytes` bytes.
    pub fn new(to: &'a mut [u8], row_bytes: usize) -> Target<'a> {
        Target { first: to.as_mut_ptr(), row_bytes, life: std::marker::PhantomData }
    }

    /// `bytes` bytes of each row from row `first` on, beginning at byte `offset` of a row.
    ///
    /// # Safety
    /// - The rows that are written are in the target.
    /// - Nothing else reads or writes these bytes.
    #[inline(always)]
    pub unsafe fn part(&self, first: usize, offset: usize, bytes: usize) -> Part<'_> {
        // SAFETY: the caller guarantees that the rows that are written are in the target, and that
        // nothing else uses them.
        unsafe { Part::new(self.first.add(first * self.row_bytes + offset), bytes, self.row_bytes) }
    }
}

/// A product.
#[derive(Debug)]
pub struct Product<'a> {
    left: Left<'a>,
    right: Right<'a>,
    terms: Terms<'a>,
    stage: Stage<'a>,
    to: Target<'a>,
    /// Number of panels of rows, and of rows in each but the last: balanced, so that no panel has
    /// few rows.
    row_panels: usize,
    panel_rows: usize,
    /// Panels of rows in a chunk, and panels of columns in a block.
    chunk_panels: usize,
    block_panels: usize,
}

impl<'a> Product<'a> {
    /// The instruction set that the right matrix is packed for.
    pub fn isa(&self) -> &'static Isa {
        self.right.isa
    }

    /// A product; `to` receives the results in row order.
    ///
    /// Panics if sizes do not match.
    pub fn new(
        left: impl Into<Left<'a>>,
        right: Right<'a>,
        terms: Terms<'a>,
        stage: Stage<'a>,
        to: &'a mut [u8],
    ) -> Product<'a> {
        let left = left.into();
        let row_bytes = right.columns * stage.value_bytes();
        assert_eq!(left.depth(), right.depth, "as many left factors as right ones");
        assert_eq!(to.len(), left.lines() * row_bytes, "as many results as rows and columns");
        assert!(terms.covers(right.padded_columns()) && stage.covers(right.padded_columns()));
        let to = Target::new(to, row_bytes);
        let row_panels = left.lines().div_ceil(right.isa.rows);
        let panel_rows = left.lines().div_ceil(row_panels.max(1));
        let words = right.isa.words;
        let left_panel = panel_rows * left_bytes(left.depth(), words);
        let chunk_panels = (CHUNK_BYTES / left_panel.max(1)).clamp(1, CHUNK_PANELS);
        let right_panel = panel_bytes(right.isa, right.depth);
        let block_panels = (BLOCK_BYTES / right_panel.max(1)).max(1);
        Product {
            left,
            right,
            terms,
            stage,
            to,
            row_panels,
            panel_rows,
            chunk_panels,
            block_panels,
        }
    }

    /// Number of panels of rows.
    pub fn row_panels(&self) -> usize {
        self.row_panels
    }

    /// The rows of a panel; the last one may have fewer.
    fn rows_of(&self, panel: usize) -> Range<usize> {
        let (rows, all) = (self.panel_rows, self.left.lines());
        (panel * rows).min(all)..((panel + 1) * rows).min(all)
    }

    /// Number of panels of columns.
    pub fn column_panels(&self) -> usize {
        self.right.panels()
    }

    /// Approximate duration of a panel of rows times a panel of columns, in nanoseconds.
    pub fn tile_ns(&self) -> f64 {
        let isa = self.right.isa;
        let rows = self.panel_rows;
        // Writing a value costs about as much as 32 products.
        let products = (rows * isa.columns) as f64 * (self.left.depth() as f64 + 32.0) / isa.rate;
        // With few rows, loading the right panel takes the time.
        products.max(panel_bytes(isa, self.right.depth) as f64 / L2_BYTES_PER_NS)
    }

    /// Bytes of scratch memory that [`Product::run`] needs.
    pub fn scratch_bytes(&self) -> usize {
        self.chunk_panels * self.panel_rows * self.left_bytes()
    }

    fn left_bytes(&self) -> usize {
        left_bytes(self.left.depth(), self.right.isa.words)
    }

    /// Computes some panels of rows times some panels of columns.
    ///
    /// # Safety
    /// - Nothing else computes any of these panels at the same time.
    pub unsafe fn run(&self, rows: Range<usize>, columns: Range<usize>, scratch: &mut [u8]) {
        assert!(rows.end <= self.row_panels && columns.end <= self.column_panels());
        assert!(scratch.len() >= self.scratch_bytes(), "room for the packed rows of a chunk");
        // SAFETY: the sizes are checked; the caller guarantees that nothing else computes these
        // panels.
        unsafe { self.right.isa.run(self, rows, columns, scratch) }
    }
}

/// Sums of a tile.
#[repr(align(64))]
struct Spare([i32; MOST_ROWS * VECTORS * MOST_LANES]);

/// The loops of a product.
///
/// # Safety
/// - The caller upholds what [`Product::run`] requires, and has checked the sizes as that does.
/// - The CPU has the instructions of `D`.
#[inline(always)]
pub unsafe fn run<D: Compiled>(
    p: &Product<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
    scratch: &mut [u8],
) {
    let (mut first, panel_rows) = (rows.start, p.panel_rows);
    let (groups, left_bytes) = (groups(p.right.depth, D::WORDS), p.left_bytes());
    let mut spare = Spare([0; _]);
    while first < rows.end {
        let chunk = first..(first + p.chunk_panels).min(rows.end);
        let mut terms = [0i32; CHUNK_PANELS * MOST_ROWS];
        // SAFETY: the caller guarantees that the CPU has the instructions of `D`.
        unsafe { pack_chunk::<D>(p, chunk.clone(), scratch, &mut terms) };
        let mut block = columns.start..columns.start;
        while block.end < columns.end {
            block = block.end..(block.end + p.block_panels).min(columns.end);
            for panel in chunk.clone() {
                let at = (panel - chunk.start) * panel_rows;
                let rows = p.rows_of(panel);
                // SAFETY: these rows and columns are in the target, and nothing else writes them;
                // `left` is a packed panel with a row for each of its terms; the caller guarantees
                // that the CPU has the instructions.
                unsafe {
                    accumulate::run::<D>(&Strip {
                        groups,
                        left: scratch[at * left_bytes..][..rows.len() * left_bytes].as_ptr(),
                        right: p.right.panels.as_ptr().cast(),
                        columns: p.right.columns,
                        panels: block.clone(),
                        terms: &p.terms,
                        row_terms: &terms[at..][..rows.len()],
                        stage: &p.stage,
                        to: p.to.first.add(rows.start * p.to.row_bytes),
                        row_bytes: p.to.row_bytes,
                        spare: spare.0.as_mut_ptr(),
                    });
                }
            }
        }
        first = chunk.end;
    }
}

/// Packs the rows of a chunk.
///
/// # Safety
/// - The CPU has the instructions of `D`.
#[inline(always)]
unsafe fn pack_chunk<D: Compiled>(
    p: &Product<'_>,
    panels: Range<usize>,
    scratch: &mut [u8],
    terms: &mut [i32],
) {
    let (bytes, panel_rows) = (p.left_bytes(), p.panel_rows);
    for (at, panel) in panels.enumerate() {
        let rows = p.rows_of(panel);
        let packed = &mut scratch[at * panel_rows * bytes..][..rows.len() * bytes];
        let terms = &mut terms[at * panel_rows..][..rows.len()];
        // SAFETY: the caller guarantees that the CPU has the instructions of `D`.
        unsafe { D::pack_left(&p.left, rows.start, packed, terms) };
        terms.iter_mut().for_each(|term| *term = p.terms.of_row(*term));
    }
}
