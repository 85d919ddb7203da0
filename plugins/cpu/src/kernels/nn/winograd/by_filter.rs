//! `Conv2DBackpropFilter` by Winograd's algorithm.
//!
//! A tap's gradient is the sum, over all pixels, of the input that the tap reads times the gradient of the
//! output. In a tile of 4x4 outputs that is a convolution of the 6x6 inputs with the 4x4 gradients, which
//! has 3x3 results: F(3x3, 4x4), whose points are those of F(4x4, 3x3). So the inputs are transformed
//! as those of the convolution are, and gradients take the place of the filter; F(5x5, 2x2) has as many points:
//!
//! ```text
//! for each block of tiles
//!     transform inputs and gradients                      B^T d B, G g G^T
//!     for each point: sums[point] += inputs^T gradients   the depth is tiles
//! transform the sums                                      A^T s A, once
//! ```
//! There are 36 multiplications for a tile in place of 144, or of 100 for 5x5 taps, and each sum is transformed once, whatever the
//! number of tiles. Sums are kept in order of the blocks, so that results do not depend on the number
//! of threads.
//!
//! An infinity or NaN reaches all sums of its channel, also where the definition has infinities of one sign.
//! Gradients that are not all finite are therefore computed again by the ordinary kernel.

use super::{
    blocks::{Cut, POINT_NS, inputs, odd_lines},
    contract::{fits_by_filter, supports_by_filter},
    kernel::numerics,
    tiles::{OUTSIDE, Pixels, Vectors, read_tile},
    transforms::{Backward, Evaluate, Four, Gradients, MOST_POINTS, MOST_TAPS, TwoOfFive},
};
use crate::{
    arch::vectorised,
    kernels::{
        linalg::{
            gemm::{
                blocks::Product,
                ending::Ending,
                isa::{Isa, chosen},
            },
            product::{Operand, Target, cost_ns},
        },
        nn::{
            conv_grad::{Backprop, ByFilter, by_filter},
            volume::planar,
        },
    },
    panels::uninitialised,
    split::{Parts, for_units},
};
use std::{marker::PhantomData, ops::Range};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel, Supported, Supports},
    geometry::Conv2dGeometry,
    register_kernel,
};

/// Points of a tile.
const POINTS: usize = MOST_POINTS * MOST_POINTS;
/// The number of sums that are transformed at once.
const LANES: usize = 16;

/// The sums at the points.
struct Sums<'a, T> {
    g: &'a Conv2dGeometry,
    isa: &'static Isa<f32>,
    cut: Cut,
    x: &'a [f32],
    dy: &'a [f32],
    transform: PhantomData<T>,
}

/// Transformed tiles: at each point a matrix `[tile, channel]`.
struct Side<'a> {
    all: Parts<'a, f32>,
    channels: usize,
    /// Elements from a tile to the next, and from a point to the next.
    steps: [usize; 2],
}

impl<'a> Side<'a> {
    fn new(c: &ComputeContext<'a>, tiles: usize, channels: usize) -> Result<Side<'a>, KernelError> {
        let row = odd_lines(channels);
        let steps = [row, odd_lines(tiles * row)];
        let all = Parts::new(uninitialised(c, POINTS * steps[1])?);
        Ok(Side { all, channels, steps })
    }

    /// Transforms a tile of an image.
    ///
    /// # Safety
    /// - The tile is one of those for which there is memory, and nothing else uses its vectors.
    unsafe fn read<E: Evaluate>(&self, tile: usize, image: &[f32], pixels: &Pixels) {
        let first = self.all.as_mut_ptr().wrapping_add(tile * self.steps[0]);
        // SAFETY: the caller guarantees that the tile's vectors are there, and that nothing else uses
        // them.
        let to = unsafe { Vectors::new(first, self.steps[1], self.channels) };
        read_tile::<E>(image, pixels, to);
    }

    /// The matrix of a point.
    ///
    /// # Safety
    /// - Nothing writes to it for as long as it is used.
    unsafe fn matrix(&self, point: usize, tiles: usize) -> Operand<'_, f32> {
        let [row, place] = self.steps;
        // SAFETY: the caller guarantees that nothing writes to the point's matrix.
        let data = unsafe { self.all.part(point * place..point * place + tiles * row) };
        Operand { data, rows: tiles, cols: self.channels, strides: [row, 1] }
    }
}

/// The positions in their image of the gradients of a tile with this first output row and column.
fn gradients<T: Backward>(g: &Conv2dGeometry, [row, column]: [usize; 2]) -> Pixels {
    let [height, width] = [&g.height, &g.width].map(|side| side.output as usize);
    let mut pixels = [OUTSIDE; POINTS];
    for i in 0..T::OUTPUTS.min(height - row) {
        for j in 0..T::OUTPUTS.min(width - column) {
            pixels[i * MOST_POINTS + j] =
                ((row + i) * width + column + j) * g.out_channels as usize;
        }
    }
    pixels
}

impl<T: Backward> Sums<'_, T> {
    fn size(&self) -> [usize; 2] {
        [self.g.in_channels as usize, self.g.out_channels as usize]
    }

    /// Computes the sums `[point, channel, output]`.
    fn compute(&self, c: &ComputeContext<'_>, sums: &mut [f32]) -> Result<(), KernelError> {
        let [channels, outputs] = self.size();
        let x = Side::new(c, self.cut.block, channels)?;
        let dy = Side::new(c, self.cut.block, outputs)?;
        let sums = Parts::new(sums);
        for block in 0..self.cut.blocks() {
            let tiles = self.cut.tiles(block);
            let cost = POINT_NS * (POINTS * (channels + outputs)) as f64;
            for_units(c, tiles.len(), cost, |part| self.read(&tiles, part, [&x, &dy]))?;
            let cost = cost_ns::<f32>(channels, outputs, tiles.len());
            for_units(c, POINTS, cost, |points| {
                self.multiply(points, tiles.len(), [&x, &dy], (&sums, block > 0));
            })?;
        }
        Ok(())
    }

    /// Transforms the inputs and gradients of some of a block's tiles.
    fn read(&self, tiles: &Range<usize>, part: Range<usize>, [x, dy]: [&Side<'_>; 2]) {
        let [channels, outputs] = self.size();
        let (height, width) = (&self.g.height, &self.g.width);
        let image = (height.input * width.input) as usize * channels;
        let image_dy = (height.output * width.output) as usize * outputs;
        for at in part {
            let tile = tiles.start + at;
            let (number, place) = (tile / self.cut.image, self.cut.place::<T>(tile));
            let from = &self.x[number * image..][..image];
            let from_dy = &self.dy[number * image_dy..][..image_dy];
            // SAFETY: the tile is in the block; in this stage each tile has vectors of its own.
            unsafe {
                x.read::<T>(at, from, &inputs::<T>(self.g, place));
                dy.read::<Gradients<T>>(at, from_dy, &gradients::<T>(self.g, place));
            }
        }
    }

    /// Computes the sums of a block at some points, or adds them.
    fn multiply(
        &self,
        points: Range<usize>,
        tiles: usize,
        [x, dy]: [&Side<'_>; 2],
        (sums, adds): (&Parts<'_, f32>, bool),
    ) {
        let [channels, outputs] = self.size();
        let plane = channels * outputs;
        for point in points {
            // SAFETY: in this stage both sides are only read, and each point has sums of its own.
            unsafe {
                let left = x.matrix(point, tiles).transposed();
                let right = dy.matrix(point, tiles);
                let to = sums.part(point * plane..(point + 1) * plane).as_mut_ptr();
                let to = Target::new(to, channels, outputs, [outputs, 1]);
                let product = Product::fresh(self.isa, &left, &right, &to, Ending::NONE);
                let product = if adds { product.adding() } else { product };
                product.run(0..product.strips(), 0..product.panels());
            }
        }
    }
}

vectorised! {
    /// Transforms the sums into the gradients of the taps: `A^T s A` of each channel and output. Returns
    /// whether all of them are finite.
    fn finish[T: Backward](sums: &[f32], filter: &mut [f32]) -> bool {
        let plane = filter.len() / (T::TAPS * T::TAPS);
        let mut is_finite = true;
        for first in (0..plane).step_by(LANES) {
            is_finite &= finish_lanes::<T>(sums, filter, plane, first..plane.min(first + LANES));
        }
        is_finite
    }
}

#[inline(always)]
fn finish_lanes<T: Backward>(
    sums: &[f32],
    filter: &mut [f32],
    plane: usize,
    some: Range<usize>,
) -> bool {
    let mut rows = [[[0f64; LANES]; MOST_TAPS]; MOST_POINTS];
    for (i, row) in rows.iter_mut().enumerate() {
        for j in 0..MOST_POINTS {
            let sums = &sums[(i * MOST_POINTS + j) * plane..][some.clone()];
            for (taps, factors) in row.iter_mut().zip(&T::RESULTS).take(T::TAPS) {
                for (tap, &sum) in taps.iter_mut().zip(sums) {
                    *tap += factors[j] * f64::from(sum);
                }
            }
        }
    }
    let mut is_finite = true;
    for (k, factors) in T::RESULTS.iter().enumerate().take(T::TAPS) {
        for l in 0..T::TAPS {
            let mut lanes = [0f64; LANES];
            for (row, factor) in rows.iter().zip(factors) {
                for (lane, tap) in lanes.iter_mut().zip(&row[l]) {
                    *lane += factor * tap;
                }
            }
            let to = &mut filter[(k * T::TAPS + l) * plane..][some.clone()];
            for (to, lane) in to.iter_mut().zip(lanes) {
                *to = lane as f32;
                is_finite &= to.is_finite();
            }
        }
    }
    is_finite
}

struct Gradient<T> {
    backprop: Backprop,
    isa: &'static Isa<f32>,
    /// The ordinary kernel, for shapes that the transformation does not support.
    direct: ByFilter<f32>,
    transform: PhantomData<T>,
}

impl<T: Backward> Kernel for Gradient<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let isa = chosen(c.knobs())?.expect("there are tiles of floats");
        Ok(Gradient {
            backprop: Backprop::new(c)?,
            isa,
            direct: ByFilter::new(c)?,
            transform: PhantomData,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = self.backprop.filter_dims(c)?;
        let g = self.backprop.geometry(c, c.dims(0), &dims).ok().and_then(|g| planar(&g));
        let (x, dy) = (c.input::<f32>(0)?.data, c.input::<f32>(2)?.data);
        let is_fit = |g: &Conv2dGeometry| fits_by_filter::<T>(g) && by_filter::is_possible(g, x);
        // Where sizes are wrong, the ordinary kernel says so.
        let Some(g) = g.filter(is_fit) else { return self.direct.compute(c) };
        let filter = c.output::<f32>(0, &dims)?.data;
        let sums = uninitialised(c, POINTS * (g.in_channels * g.out_channels) as usize)?;
        let (isa, cut, transform) = (self.isa, Cut::new::<T>(&g), PhantomData::<T>);
        Sums { g: &g, isa, cut, x, dy, transform }.compute(c, sums)?;
        if !finish::<T>(sums, filter) {
            by_filter::by_lines(c, self.isa, &g, [x, dy], filter)?;
        }
        Ok(())
    }
}

impl<T: Backward> Supports for Gradient<T> {
    fn supports(c: &CreateContext<'_>) -> Supported {
        let sizes = c.constant(1).filter(|slot| slot.memory.is_host_address()).and_then(|slot| {
            let len = slot.bytes as usize / size_of::<i32>();
            if slot.dtype != DType::INT32 || len != 4 {
                return None;
            }
            // SAFETY: the host passes a filled slot, which is valid during this call, with host memory of
            // this size.
            let sizes =
                unsafe { std::slice::from_raw_parts(slot.data.cast_const().cast::<i32>(), len) };
            Some(std::array::from_fn::<i64, 4, _>(|at| i64::from(sizes[at])))
        });
        let answer = supports_by_filter::<T>(c, sizes.as_ref().map(|sizes| &sizes[..]));
        answer.unwrap_or_else(|error| Supported::No(error.message))
    }
}

register_kernel!("Conv2DBackpropFilter" on "CPU": Gradient<Four>, types = ("T", &[DType::FLOAT]),
    label = "winograd4", priority = 2, host_memory = &["filter_sizes"], numerics = numerics::<Four>());
register_kernel!("Conv2DBackpropFilter" on "CPU": Gradient<TwoOfFive>, types = ("T", &[DType::FLOAT]),
    label = "winograd5", priority = 3, host_memory = &["filter_sizes"], numerics = numerics::<TwoOfFive>());
