//! The patches of an image that a convolution multiplies with the filter, as a matrix.
//!
//! A patch has `K = rows * columns * channels` elements of one group's channels, in the order of
//! the filter's memory. With channels last the matrix is `[pixels, K]`, with channels first `[K,
//! pixels]`: so both are written in the order in which the image is read. Padding gives zeros.

use crate::lane::Compute;
use std::ops::Range;
use tenon_sdk::geometry::{Conv2dGeometry, DataFormat};

/// Elements of a patch.
pub fn patch_len(g: &Conv2dGeometry) -> usize {
    (g.height.kernel * g.width.kernel * g.filter_channels) as usize
}

/// Writes the patches of output pixels `pixels` of one image, for one group. `output` holds
/// `pixels.len() * patch_len(g)` elements.
pub fn im2col<T: Compute>(
    g: &Conv2dGeometry,
    group: usize,
    pixels: Range<usize>,
    image: &[T],
    output: &mut [T::Wide],
) {
    match g.format {
        DataFormat::Nhwc => channels_last(g, group, pixels, image, output),
        DataFormat::Nchw => channels_first(g, group, pixels, image, output),
    }
}

fn widen<T: Compute>(x: &[T], y: &mut [T::Wide]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = x.up();
    }
}

fn channels_last<T: Compute>(
    g: &Conv2dGeometry,
    group: usize,
    pixels: Range<usize>,
    image: &[T],
    output: &mut [T::Wide],
) {
    let (width, all) = (g.width.input as usize, g.in_channels as usize);
    let (channels, kernel) = (g.filter_channels as usize, g.width.kernel as usize);
    let columns = g.width.output as usize;
    // A row of taps over all channels is one piece of the image.
    let dense = channels == all && g.width.dilation == 1;
    for (pixel, patch) in pixels.zip(output.chunks_exact_mut(patch_len(g))) {
        let (y, x) = (pixel / columns, pixel % columns);
        let taps = g.width.taps(x);
        for (ky, row) in patch.chunks_exact_mut(kernel * channels).enumerate() {
            let Some(iy) = g.height.input_at(y, ky).filter(|_| !taps.is_empty()) else {
                row.fill(T::Wide::default());
                continue;
            };
            row[..taps.start * channels].fill(T::Wide::default());
            row[taps.end * channels..].fill(T::Wide::default());
            let first = (g.width.start(x) + taps.start as i64 * g.width.dilation) as usize;
            let at = (iy * width + first) * all + group * channels;
            let row = &mut row[taps.start * channels..taps.end * channels];
            if dense {
                widen(&image[at..at + row.len()], row);
                continue;
            }
            let step = g.width.dilation as usize * all;
            for (k, row) in row.chunks_exact_mut(channels).enumerate() {
                widen(&image[at + k * step..][..channels], row);
            }
        }
    }
}

fn channels_first<T: Compute>(
    g: &Conv2dGeometry,
    group: usize,
    pixels: Range<usize>,
    image: &[T],
    output: &mut [T::Wide],
) {
    let (height, width) = (g.height.input as usize, g.width.input as usize);
    let (channels, kernel) = (g.filter_channels as usize, g.width.kernel as usize);
    for (k, row) in output.chunks_exact_mut(pixels.len()).enumerate() {
        let (tap, channel) = (k / channels, group * channels + k % channels);
        let plane = &image[channel * height * width..][..height * width];
        taps_of_plane(g, [tap / kernel, tap % kernel], pixels.clone(), plane, row);
    }
}

/// Writes the values that tap (ky, kx) reads from one plane for each output pixel.
fn taps_of_plane<T: Compute>(
    g: &Conv2dGeometry,
    [ky, kx]: [usize; 2],
    pixels: Range<usize>,
    plane: &[T],
    output: &mut [T::Wide],
) {
    let (width, columns) = (g.width.input as usize, g.width.output as usize);
    let mut pixel = pixels.start;
    let mut rest = output;
    while pixel < pixels.end {
        let (y, x) = (pixel / columns, pixel % columns);
        let count = (columns - x).min(pixels.end - pixel);
        let (row, behind) = rest.split_at_mut(count);
        match g.height.input_at(y, ky) {
            None => row.fill(T::Wide::default()),
            Some(iy) => {
                for (i, value) in row.iter_mut().enumerate() {
                    *value = match g.width.input_at(x + i, kx) {
                        Some(ix) => plane[iy * width + ix].up(),
                        None => T::Wide::default(),
                    };
                }
            }
        }
        pixel += count;
        rest = behind;
    }
}
