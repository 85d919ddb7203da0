//! The gradient of a convolution by its filter, as products over positions: for each output pixel,
//! every input that its window reads times every gradient of that pixel.
//!
//! ```text
//! for each part of the rows of output pixels              a few, however many threads there are
//!     for each block of rows                              the inputs that it reads, and its gradients: in L2
//!         copy the inputs into their frame (`frame`); pack the gradients in panels
//!         for each few panels of gradients
//!             for each row of taps                        its inputs are neighbours
//!                 for each strip of these inputs: tiles, summed over all pixels of the block
//! add the parts, in order
//! ```
//! A tile reads the inputs in the frame: from a pixel to the next they are a stride further. No
//! matrix of patches is made. Sums are those of blocks and parts whose sizes depend on the
//! convolution and the instruction set alone, so that results are the same for any number of
//! threads.

use crate::{
    kernels::{
        linalg::{
            gemm::{
                accumulate::{Ahead, Strip},
                isa::Isa,
                lines::Lines,
                pieces::Pieces,
                right::{self, Right, packed_len},
                scratch::{self, Side},
            },
            product::{Factor, Operand},
        },
        nn::windows::Windows,
    },
    panels::uninitialised,
    split::{Parts, for_units},
};
use std::ops::Range;
use tenon_sdk::{
    KernelError,
    author::ComputeContext,
    geometry::{Conv2dGeometry, WindowDim},
};

/// Bytes of the inputs of a block, and of its gradients.
const BLOCK_BYTES: usize = 256 << 10;
/// The most output pixels of a block of more than one row.
const BLOCK_PIXELS: usize = 512;
/// Bytes of the panels by which inputs are multiplied at a time.
const PANELS_BYTES: usize = 200 << 10;
/// The least number of output pixels of a part, and the most parts: adding a part takes as long as
/// the products of some tens of pixels.
const PART_PIXELS: usize = 1024;
const MOST_PARTS: usize = 16;
/// The most numbers of all parts.
const PARTS_LEN: usize = 8 << 20;
/// The largest stride, dilation and padding; positions in a frame do not overflow.
const FAR: i64 = 1 << 20;
/// The most bytes of the inputs of one row of output pixels.
const LINE_BYTES: usize = 8 << 20;

/// The blocks of rows of output pixels: whole images, or parts of an image.
#[derive(Debug, Clone, Copy)]
struct Blocks {
    batch: usize,
    /// Rows of an image.
    lines: usize,
    /// Images of a block, and blocks of an image; at least one of them is 1.
    images: usize,
    cuts: usize,
}

impl Blocks {
    /// Blocks of at most `most` rows, but at least one.
    fn new(batch: usize, lines: usize, most: usize) -> Blocks {
        let images = (most / lines.max(1)).clamp(1, batch.max(1));
        let cuts = if most < lines { lines.div_ceil(most.max(1)) } else { 1 };
        Blocks { batch, lines, images, cuts }
    }

    fn count(&self) -> usize {
        if self.cuts > 1 { self.batch * self.cuts } else { self.batch.div_ceil(self.images) }
    }

    /// The most rows of a block.
    fn most(&self) -> usize {
        if self.cuts > 1 { self.lines.div_ceil(self.cuts) } else { self.images * self.lines }
    }

    /// The rows of a block, counted over all images.
    fn lines(&self, block: usize) -> Range<usize> {
        let Blocks { batch, lines, images, cuts } = *self;
        if cuts > 1 {
            let (first, cut) = (block / cuts * lines, block % cuts);
            return first + cut * lines / cuts..first + (cut + 1) * lines / cuts;
        }
        block * images * lines..((block + 1) * images).min(batch) * lines
    }
}

/// The products of one group of channels.
struct Sums<'a, W: Factor> {
    isa: &'static Isa<W>,
    windows: Windows<'a, W>,
    dy: &'a [W],
    blocks: Blocks,
    /// Number of output channels of the group, and of all.
    columns: usize,
    outputs: usize,
}

/// What one thread computes of a part: some blocks, for some runs of inputs and some columns.
struct Share {
    blocks: Range<usize>,
    runs: Range<usize>,
    columns: Range<usize>,
}

/// Destination of sums: that of the first input and column, and the distance between inputs.
struct To<W> {
    first: *mut W,
    step: usize,
}

/// Whether a row of output pixels reads few enough inputs.
pub fn is_possible<W: Factor>(g: &Conv2dGeometry, x: &[W]) -> bool {
    let is_near = |w: &WindowDim| w.stride.max(w.dilation).max(w.pad_before) <= FAR;
    if ![&g.height, &g.width].into_iter().all(is_near) {
        return false;
    }
    Windows::new(x, g, 0).len_of(1).saturating_mul(size_of::<W>()) <= LINE_BYTES
}

/// Computes the gradient by the filter from inputs and gradients of outputs, channels last, none
/// empty.
///
/// # Errors
/// Out of memory; the call was cancelled.
pub fn by_lines<W: Factor>(
    c: &ComputeContext<'_>,
    isa: &'static Isa<W>,
    g: &Conv2dGeometry,
    [x, dy]: [&[W]; 2],
    filter: &mut [W],
) -> Result<(), KernelError> {
    for group in 0..g.groups as usize {
        let sums = Sums::new(isa, g, [x, dy], group);
        sums.compute(c, &mut filter[group * sums.columns..])?;
    }
    Ok(())
}

impl<'a, W: Factor> Sums<'a, W> {
    fn new(
        isa: &'static Isa<W>,
        g: &'a Conv2dGeometry,
        [x, dy]: [&'a [W]; 2],
        group: usize,
    ) -> Sums<'a, W> {
        let (outputs, columns) = (g.out_channels as usize, g.group_outputs() as usize);
        let windows = Windows::new(x, g, group);
        let dy = &dy[group * columns..];
        let most = BLOCK_BYTES / size_of::<W>();
        let (one, two) = (windows.len_of(1), windows.len_of(2));
        let pixels = g.width.output as usize;
        let by_inputs = most.saturating_sub(one) / two.saturating_sub(one).max(1) + 1;
        let by_gradients = most / (pixels * columns.next_multiple_of(isa.columns));
        let most = by_inputs.min(by_gradients).min(BLOCK_PIXELS / pixels);
        let blocks = Blocks::new(g.batch as usize, g.height.output as usize, most);
        Sums { isa, windows, dy, blocks, columns, outputs }
    }

    fn geometry(&self) -> &'a Conv2dGeometry {
        self.windows.geometry
    }

    /// Inputs that are neighbours in the frame: those of a row of taps, or of a tap if the taps of
    /// a row are apart. Their number, and that of runs in a row of taps.
    fn run(&self) -> [usize; 2] {
        let g = self.geometry();
        let (taps, channels) = (g.width.kernel as usize, g.filter_channels as usize);
        if g.width.dilation == 1 { [taps * channels, 1] } else { [channels, taps] }
    }

    /// Number of inputs of a window, and of output pixels.
    fn size(&self) -> [usize; 2] {
        let g = self.geometry();
        let taps = (g.height.kernel * g.width.kernel * g.filter_channels) as usize;
        [taps, (g.batch * g.height.output * g.width.output) as usize]
    }

    /// Computes the sums into rows that begin `outputs` apart.
    fn compute(&self, c: &ComputeContext<'_>, to: &mut [W]) -> Result<(), KernelError> {
        let [inputs, pixels] = self.size();
        let len = inputs * self.columns;
        let parts = (pixels / PART_PIXELS).min(PARTS_LEN / len.max(1));
        let parts = parts.clamp(1, MOST_PARTS.min(self.blocks.count()));
        let others = uninitialised::<W>(c, (parts - 1) * len)?;
        self.compute_parts(c, parts, to, others)?;
        if parts == 1 {
            return Ok(());
        }
        let (columns, outputs, others) = (self.columns, self.outputs, &*others);
        let end = (inputs - 1) * outputs + columns;
        let cost = columns as f64 * parts as f64 * 0.1;
        let to = Parts::new(&mut to[..end]);
        for_units(c, inputs, cost, |rows| {
            for row in rows {
                // SAFETY: rows do not overlap, and each belongs to one range.
                let sums = unsafe { to.part(row * outputs..row * outputs + columns) };
                for other in others.chunks_exact(len) {
                    let other = &other[row * columns..][..columns];
                    sums.iter_mut().zip(other).for_each(|(sum, &more)| *sum = sum.add(more));
                }
            }
        })
    }

    /// Computes each part: the first one into `to`, the others into `others`.
    fn compute_parts(
        &self,
        c: &ComputeContext<'_>,
        parts: usize,
        to: &mut [W],
        others: &mut [W],
    ) -> Result<(), KernelError> {
        let [inputs, pixels] = self.size();
        let runs = inputs / self.run()[0];
        // As many shares as keep all threads busy; each packs what it reads.
        let threads = c.parallelism();
        let wanted = if threads > 1 { (4 * threads).div_ceil(parts) } else { 1 };
        let by_runs = wanted.min(runs);
        let panels = self.columns.div_ceil(self.isa.columns);
        let by_panels = wanted.div_ceil(by_runs).min(panels);
        let units = parts * by_runs * by_panels;
        let products = inputs as f64 * self.columns as f64 * pixels as f64;
        let (to, others) = (Parts::new(to), Parts::new(others));
        let cut = |at: usize, cuts: usize, all: usize| at * all / cuts..(at + 1) * all / cuts;
        for_units(c, units, products / self.isa.rate / units as f64, |range| {
            for unit in range {
                let (part, rest) = (unit / (by_runs * by_panels), unit % (by_runs * by_panels));
                let panels = cut(rest % by_panels, by_panels, panels);
                let width = self.isa.columns;
                let share = Share {
                    blocks: cut(part, parts, self.blocks.count()),
                    runs: cut(rest / by_panels, by_runs, runs),
                    columns: panels.start * width..(panels.end * width).min(self.columns),
                };
                let to = match part {
                    0 => To { first: to.as_mut_ptr(), step: self.outputs },
                    _ => To {
                        first: others.as_mut_ptr().wrapping_add((part - 1) * inputs * self.columns),
                        step: self.columns,
                    },
                };
                // SAFETY: shares have parts, runs and columns of their own; the memory has room for
                // the sums of all of them.
                unsafe { self.share(&share, &to) };
            }
        })
    }

    /// # Safety
    /// - `to` is valid for writes of the sums of the share's runs and columns, and nothing else
    ///   uses them.
    unsafe fn share(&self, share: &Share, to: &To<W>) {
        let columns = share.columns.len();
        let pixels = self.geometry().width.output as usize;
        let most = self.blocks.most();
        let len = |lines: usize| {
            packed_len(self.isa, [lines * pixels, columns]).expect("a block fits the address space")
        };
        scratch::with(Side::Left, self.windows.len_of(most), |left| {
            scratch::with(Side::Right, len(most), |packed| {
                for block in share.blocks.clone() {
                    let lines = self.blocks.lines(block);
                    self.windows.pack_lines(lines.clone(), left);
                    let packed = &mut packed[..len(lines.len())];
                    let right = self.gradients(lines.clone(), share.columns.clone(), packed);
                    let adds = block > share.blocks.start;
                    // SAFETY: the caller guarantees that the sums may be written; `left` has the
                    // inputs of these rows.
                    unsafe { self.block(share, lines.start, left, right, (to, adds)) };
                }
            });
        });
    }

    /// The gradients of some rows of output pixels, packed.
    fn gradients<'p>(
        &self,
        lines: Range<usize>,
        columns: Range<usize>,
        packed: &'p mut [W],
    ) -> Right<'p, W> {
        let pixels = self.geometry().width.output as usize;
        let data = &self.dy[lines.start * pixels * self.outputs + columns.start..];
        let (rows, cols) = (lines.len() * pixels, columns.len());
        let matrix = Operand { data, rows, cols, strides: [self.outputs, 1] };
        right::pack(self.isa, &matrix, 0..cols.div_ceil(self.isa.columns), packed);
        Right::packed(self.isa, [rows, cols], packed)
    }

    /// The layout of the factors of an input along output pixels: rows of pixels, in images.
    fn pieces(&self, first: usize) -> Pieces {
        let (pixels, group) = (self.geometry().width.output as usize, self.blocks.lines);
        let step = self.windows.layout().row_step;
        let line = if group > 1 { self.windows.line_at(first, first + 1) } else { 0 };
        let image = self.windows.line_at(first, first + group);
        let gap = line.wrapping_sub(pixels * step);
        let jump = image.wrapping_sub(group * line);
        Pieces { first: pixels, len: pixels, step, gap, group, jump }
    }

    /// Computes the sums of a block whose first row of output pixels is `first`, or adds to them.
    ///
    /// # Safety
    /// - The caller upholds what [`Sums::share`] requires.
    /// - `left` has the inputs of the block's rows.
    unsafe fn block(
        &self,
        share: &Share,
        first: usize,
        left: &[W],
        right: Right<'_, W>,
        (to, adds): (&To<W>, bool),
    ) {
        let ([run, in_row], g) = (self.run(), self.geometry());
        let (row, tap) = (self.windows.layout().piece_step, g.width.dilation as usize);
        let strips = run.div_ceil(self.isa.rows);
        let panel = right.depth() * self.isa.columns * size_of::<W>();
        let at_once = (PANELS_BYTES / panel.max(1)).max(1);
        let pieces = self.pieces(first);
        for panels in (0..right.panels()).step_by(at_once) {
            let panels = panels..(panels + at_once).min(right.panels());
            for (at, strip) in share.runs.clone().flat_map(|at| (0..strips).map(move |s| (at, s))) {
                let rows = strip * run / strips..(strip + 1) * run / strips;
                let from = at / in_row * row + at % in_row * tap * run + rows.start;
                let sums = (at * run + rows.start) * to.step + share.columns.start;
                // SAFETY: the frame has these inputs for every output pixel of the block, and
                // `right` the gradients; the caller guarantees that the sums may be written; the
                // set of instructions has been chosen for this CPU.
                unsafe {
                    self.isa.run(&Strip {
                        rows: rows.len(),
                        left: left.as_ptr().wrapping_add(from),
                        row_step: 1,
                        pieces,
                        right,
                        depths: 0..right.depth(),
                        panels: panels.clone(),
                        to: to.first.wrapping_add(sums),
                        to_step: to.step,
                        adds,
                        ahead: Ahead::NONE,
                        finish: None,
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_all_rows_once() {
        for (batch, lines, most) in
            [(5, 3, 7), (5, 3, 2), (1, 1, 9), (2, 7, 3), (3, 4, 0), (4, 5, 5)]
        {
            let blocks = Blocks::new(batch, lines, most);
            let mut next = 0;
            for block in 0..blocks.count() {
                let found = blocks.lines(block);
                assert_eq!(found.start, next, "{blocks:?}");
                assert!((1..=blocks.most()).contains(&found.len()), "{blocks:?}");
                let images = found.start / lines..(found.end - 1) / lines + 1;
                assert!(images.len() == 1 || found.start.is_multiple_of(lines), "{blocks:?}");
                next = found.end;
            }
            assert_eq!(next, batch * lines, "{blocks:?}");
        }
    }
}
