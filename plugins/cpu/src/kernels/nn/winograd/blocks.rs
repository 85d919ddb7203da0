//! The convolution over blocks of tiles.
//!
//! A block's transformed inputs `[point, tile, channel]` and products `[point, tile, output]` stay
//! in the second-level cache where they fit: of 64 channels and F(4x4) it holds 84 tiles, whose
//! inputs and products are each read and written once, 8 bytes for 64 multiplications. Each factor
//! is read once per block, so that a block has some tiles even where they do not fit. Where there
//! are many blocks, threads share them; else they share the three stages of each block. Blocks are
//! the same in both cases, so that results do not depend on the threads.

use super::{
    factors::Factors,
    tiles::{OUTSIDE, Outputs, Pixels, Vectors, read_tile, write_tile},
    transforms::{MOST_POINTS, Transform},
};
use crate::{
    kernels::{
        linalg::product::{Operand, Target, cost_ns, dense_product},
        nn::{conv::After, im2col::im2col},
    },
    panels::{Panels, uninitialised},
    split::{Parts, for_units},
};
use std::{marker::PhantomData, ops::Range};
use tenon_sdk::{KernelError, author::ComputeContext, geometry::Conv2dGeometry, growth};

/// The number of elements of a block's matrices: most of a second-level cache of 1 MiB.
const BLOCK: usize = 192 << 10;
/// The least number of tiles in a block; with fewer, the factors would be read too often.
const LEAST_TILES: usize = 48;
/// The most tiles in a block; more would not make products faster.
const MOST_TILES: usize = 1 << 12;
/// The number of blocks from which threads share them.
const MANY_BLOCKS: usize = 4;
/// The number of elements of a cache line.
const LINE: usize = 16;
/// The two kinds of vectors in a block's memory: transformed inputs and products.
const INPUTS: usize = 0;
const PRODUCTS: usize = 1;
/// Approximate nanoseconds of a channel at a point, in one of the two transformations.
pub const POINT_NS: f64 = 0.25;

/// How the outputs of a convolution are cut into tiles and blocks.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// The number of tiles of a row, of an image, and of all images.
    pub columns: usize,
    pub image: usize,
    pub all: usize,
    /// The number of tiles of a block.
    pub block: usize,
}

impl Cut {
    /// Returns the cut into tiles of the transformation's outputs.
    pub fn new<T: Transform>(g: &Conv2dGeometry) -> Cut {
        let columns = (g.width.output as usize).div_ceil(T::OUTPUTS);
        let image = (g.height.output as usize).div_ceil(T::OUTPUTS) * columns;
        let all = image * g.batch as usize;
        let tile = T::POINTS * T::POINTS * g.in_channels.max(g.out_channels) as usize;
        let most = (BLOCK / tile.max(1)).clamp(LEAST_TILES, MOST_TILES).min(all.max(1));
        Cut { columns, image, all, block: all.div_ceil(all.div_ceil(most).max(1)) }
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.all.div_ceil(self.block.max(1))
    }

    /// The tiles of a block.
    pub fn tiles(&self, block: usize) -> Range<usize> {
        block * self.block..((block + 1) * self.block).min(self.all)
    }

    /// The first output row and column of a tile.
    pub fn place<T: Transform>(&self, tile: usize) -> [usize; 2] {
        let tile = tile % self.image;
        [tile / self.columns, tile % self.columns].map(|at| at * T::OUTPUTS)
    }
}

/// The positions in their image of the inputs of a tile with this first output row and column.
pub fn inputs<T: Transform>(g: &Conv2dGeometry, [row, column]: [usize; 2]) -> Pixels {
    let inside = |at: usize, pad: i64, len: i64| {
        let at = at as i64 - pad;
        (at >= 0 && at < len).then_some(at as usize)
    };
    let mut pixels = [OUTSIDE; MOST_POINTS * MOST_POINTS];
    for i in 0..T::POINTS {
        let Some(y) = inside(row + i, g.height.pad_before, g.height.input) else { continue };
        for j in 0..T::POINTS {
            if let Some(x) = inside(column + j, g.width.pad_before, g.width.input) {
                pixels[i * T::POINTS + j] =
                    (y * g.width.input as usize + x) * g.in_channels as usize;
            }
        }
    }
    pixels
}

/// Whether the size of a block's memory does not overflow.
pub fn are_countable<T: Transform>(g: &Conv2dGeometry) -> bool {
    let places = 2 * (T::POINTS * T::POINTS) as i64;
    let channels = g.in_channels.max(g.out_channels).checked_mul(places);
    channels.and_then(|all| all.checked_mul(4 * MOST_TILES as i64)).is_some()
}

/// The work of a call.
pub struct Work<'a, T> {
    g: &'a Conv2dGeometry,
    cut: Cut,
    x: &'a [f32],
    /// The filter as given, for tiles whose results are not all finite.
    filter: &'a [f32],
    factors: Factors<'a>,
    y: Parts<'a, f32>,
    after: Option<&'a After<'a, f32>>,
    transform: PhantomData<T>,
}

/// The memory of a block: a place for each point, which contains a matrix `[tile, channel]`.
struct Memory<'a> {
    all: Parts<'a, f32>,
    /// The number of elements of a place.
    place: usize,
    /// Elements from a tile's transformed inputs to those of the next tile, and from its products.
    rows: [usize; 2],
    /// The place of the first point's transformed inputs; the first point's products are in place
    /// 0.
    inputs: usize,
}

impl Memory<'_> {
    /// The position at which the transformed inputs of a point begin.
    fn input(&self, point: usize) -> usize {
        (self.inputs + point) * self.place
    }

    /// The position at which the products of a point begin.
    fn product(&self, point: usize) -> usize {
        point * self.place
    }

    /// The vectors of one tile: of its transformed inputs (side 0) or of its products (side 1).
    ///
    /// # Safety
    /// - The tile is in the block.
    /// - Nothing else uses its vectors.
    unsafe fn vectors(&self, side: usize, tile: usize, channels: usize) -> Vectors {
        let begin = if side == INPUTS { self.input(0) } else { self.product(0) };
        let first = self.all.as_mut_ptr().wrapping_add(begin + tile * self.rows[side]);
        // SAFETY: the caller guarantees that the tile is of the block, and that nobody else uses
        // its vectors; each point has a place.
        unsafe { Vectors::new(first, self.place, channels) }
    }
}

/// At least `len` elements, rounded up to an odd number of cache lines: data at such distances do
/// not compete for the same few sets of the first-level cache.
pub fn odd_lines(len: usize) -> usize {
    (len.div_ceil(LINE) | 1) * LINE
}

impl<'a, T: Transform> Work<'a, T> {
    const POINTS: usize = T::POINTS * T::POINTS;

    /// Returns the work for these inputs and this output.
    pub fn new(
        g: &'a Conv2dGeometry,
        [x, filter]: [&'a [f32]; 2],
        factors: Factors<'a>,
        y: &'a mut [f32],
        after: Option<&'a After<'a, f32>>,
    ) -> Work<'a, T> {
        let (cut, y) = (Cut::new::<T>(g), Parts::new(y));
        Work { g, cut, x, filter, factors, y, after, transform: PhantomData }
    }

    fn channels(&self) -> [usize; 2] {
        [self.g.in_channels as usize, self.g.out_channels as usize]
    }

    /// The number of elements of a place, for the rows of either side.
    fn place_len(&self) -> usize {
        odd_lines(self.cut.block * odd_lines(self.channels()[0].max(self.channels()[1])))
    }

    /// Cuts memory into places, with the first point's inputs in place `inputs`.
    fn memory<'m>(&self, all: Parts<'m, f32>, inputs: usize) -> Memory<'m> {
        Memory { all, place: self.place_len(), rows: self.channels().map(odd_lines), inputs }
    }

    /// Approximate nanoseconds of a tile in the first and last stage, and of a point of `tiles`
    /// tiles in the second.
    fn costs(&self, tiles: usize) -> [f64; 3] {
        let [channels, outputs] = self.channels();
        let transformed = |channels: usize| POINT_NS * (Self::POINTS * channels) as f64;
        [transformed(channels), cost_ns::<f32>(tiles, outputs, channels), transformed(outputs)]
    }

    /// Computes the convolution.
    ///
    /// # Errors
    /// No memory; or the call was cancelled.
    pub fn run(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (blocks, place) = (self.cut.blocks(), self.place_len());
        if blocks < MANY_BLOCKS {
            let all = Parts::new(uninitialised(c, 2 * Self::POINTS * place)?);
            let memory = self.memory(all, Self::POINTS);
            return (0..blocks).try_for_each(|block| self.shared(c, block, &memory));
        }
        let panels = Panels::new(c, blocks, (Self::POINTS + 1) * place)?;
        let [read, multiply, write] = self.costs(self.cut.block);
        let cost = (read + write) * self.cut.block as f64 + multiply * Self::POINTS as f64;
        for_units(c, blocks, cost, |range| {
            let mut panel = panels.take();
            range.for_each(|block| self.alone(block, &mut panel));
        })
    }

    /// Computes a block on one thread. The products of a point replace the inputs of the previous
    /// point, so that the cache holds nearly twice as many tiles.
    fn alone(&self, block: usize, panel: &mut [f32]) {
        let memory = self.memory(Parts::new(panel), 1);
        let tiles = self.cut.tiles(block);
        self.read(&tiles, 0..tiles.len(), &memory);
        self.multiply(0..Self::POINTS, tiles.len(), &memory);
        self.write(&tiles, 0..tiles.len(), &memory);
    }

    /// Computes a block on all threads.
    fn shared(
        &self,
        c: &ComputeContext<'_>,
        block: usize,
        memory: &Memory<'_>,
    ) -> Result<(), KernelError> {
        let tiles = self.cut.tiles(block);
        let [read, multiply, write] = self.costs(tiles.len());
        for_units(c, tiles.len(), read, |part| self.read(&tiles, part, memory))?;
        let count = tiles.len();
        for_units(c, Self::POINTS, multiply, |points| self.multiply(points, count, memory))?;
        for_units(c, tiles.len(), write, |part| self.write(&tiles, part, memory))
    }

    /// Transforms the inputs of some of a block's tiles.
    fn read(&self, tiles: &Range<usize>, part: Range<usize>, memory: &Memory<'_>) {
        let [channels, _] = self.channels();
        let image = (self.g.height.input * self.g.width.input) as usize * channels;
        for at in part {
            let tile = tiles.start + at;
            let x = &self.x[tile / self.cut.image * image..][..image];
            // SAFETY: in this stage, each tile has vectors of its own.
            let to = unsafe { memory.vectors(INPUTS, at, channels) };
            read_tile::<T>(x, &inputs::<T>(self.g, self.cut.place::<T>(tile)), to);
        }
    }

    /// Computes the products of a block of tiles with the factors of some points.
    fn multiply(&self, points: Range<usize>, tiles: usize, memory: &Memory<'_>) {
        let [channels, outputs] = self.channels();
        for point in points {
            let (from, to) = (memory.input(point), memory.product(point));
            let [left, right] = memory.rows;
            // SAFETY: two separate places, which only this thread uses until this point's products
            // are complete.
            unsafe {
                let data = memory.all.part(from..from + tiles * left);
                let tiles = Operand { data, rows: tiles, cols: channels, strides: [left, 1] };
                let products = memory.all.part(to..to + tiles.rows * right).as_mut_ptr();
                let target = Target::new(products, tiles.rows, outputs, [right, 1]);
                self.factors.multiply(point, &tiles, &target);
            }
        }
    }

    /// Transforms the products of some of a block's tiles, and applies `after` to each row of
    /// tiles.
    fn write(&self, tiles: &Range<usize>, part: Range<usize>, memory: &Memory<'_>) {
        let mut at = part.start;
        while at < part.end {
            let left = self.cut.columns - (tiles.start + at) % self.cut.columns;
            let end = (at + left).min(part.end);
            for at in at..end {
                self.write_tile(tiles, at, memory);
            }
            if let Some(after) = self.after {
                self.follow(tiles.start + at, end - at, after);
            }
            at = end;
        }
    }

    /// The number of a tile's first output pixel, and the tile's rows and columns.
    fn outputs(&self, tile: usize) -> (usize, [usize; 2]) {
        let [height, width] = [&self.g.height, &self.g.width].map(|dim| dim.output as usize);
        let [row, column] = self.cut.place::<T>(tile);
        let first = (tile / self.cut.image * height + row) * width + column;
        (first, [height - row, width - column].map(|left| left.min(T::OUTPUTS)))
    }

    fn write_tile(&self, tiles: &Range<usize>, at: usize, memory: &Memory<'_>) {
        let [_, channels] = self.channels();
        // SAFETY: in this stage, each tile has vectors of its own.
        let from = unsafe { memory.vectors(PRODUCTS, at, channels) };
        let (pixel, sizes) = self.outputs(tiles.start + at);
        let first = self.y.as_mut_ptr().wrapping_add(pixel * channels);
        let strides = [self.g.width.output as usize * channels, channels];
        // SAFETY: these pixels are in the output, and belong to no other tile.
        let to = unsafe { Outputs::new(first, strides, sizes) };
        if !write_tile::<T>(from, to) {
            self.directly(tiles.start + at);
        }
    }

    /// Computes a tile by its definition, for an infinity or NaN in the inputs, which reaches all
    /// results of the transformations.
    #[cold]
    fn directly(&self, tile: usize) {
        let [channels, outputs] = self.channels();
        let (width, height) = (self.g.width.output as usize, self.g.height.output as usize);
        let patch = T::TAPS * T::TAPS * channels;
        let image = (self.g.height.input * self.g.width.input) as usize * channels;
        let number = tile / self.cut.image;
        let (pixel, [rows, columns]) = self.outputs(tile);
        let mut patches = growth::or_end(growth::filled(columns * patch, 0.0));
        for row in 0..rows {
            let first = pixel + row * width;
            let own = first - number * height * width;
            im2col(self.g, 0, own..own + columns, &self.x[number * image..][..image], &mut patches);
            // SAFETY: these are the tile's pixels of this row, which only this thread writes.
            let y = unsafe { self.y.part(first * outputs..(first + columns) * outputs) };
            let a = Operand::dense(&patches, columns, patch);
            dense_product(a, Operand::dense(self.filter, patch, outputs), y);
        }
    }

    /// Applies `after` to the pixels of neighbouring tiles.
    fn follow(&self, tile: usize, count: usize, after: &After<'_, f32>) {
        let (first, [rows, _]) = self.outputs(tile);
        let (last, [_, columns]) = self.outputs(tile + count - 1);
        let [_, outputs] = self.channels();
        for row in 0..rows {
            let skipped = row * self.g.width.output as usize;
            let range = (first + skipped) * outputs..(last + skipped + columns) * outputs;
            // SAFETY: these are the pixels of these tiles, which only this thread writes.
            after(range.start, unsafe { self.y.part(range) });
        }
    }

    /// Computes the convolution on this thread.
    #[cfg(test)]
    pub fn on_one_thread(&self) {
        let mut panel = vec![0.0; (Self::POINTS + 1) * self.place_len()];
        (0..self.cut.blocks()).for_each(|block| self.alone(block, &mut panel));
    }
}
