//! Compares sums of depthwise convolutions with their definition, on every instruction set of this
//! CPU.

use super::*;
use crate::{
    isa::{ALL, TWINS},
    kept::Heap,
};
use tenon_sdk::{
    DType,
    geometry::{Conv2dParams, DataFormat, Padding},
};

/// Images of 2 x 5 x 6 pixels and a filter of 3 x 3 taps, padded to as many outputs.
const IMAGES: [usize; 3] = [2, 5, 6];
const TAPS: usize = 9;
const LEFT_ZERO: i32 = 7;

fn geometry(channels: usize) -> Conv2dGeometry {
    let [images, rows, columns] = IMAGES.map(|size| size as i64);
    let params = Conv2dParams {
        input: &[images, rows, columns, channels as i64],
        filter: &[3, 3, channels as i64, 1],
        strides: &[1; 4],
        dilations: &[1; 4],
        padding: Padding::Same,
        explicit_paddings: &[],
        format: DataFormat::Nhwc,
    };
    Conv2dGeometry::depthwise(&params).expect("sizes that fit")
}

fn value(byte: u8, dtype: DType) -> i32 {
    if dtype == DType::QINT8 { byte.cast_signed().into() } else { byte.into() }
}

/// The sum of an output, by definition.
fn sum(number: usize, channels: usize, images: Images<'_>, filter: &Filter<'_>) -> i32 {
    let [_, rows, columns] = IMAGES;
    let (pixel, channel) = (number / channels, number % channels);
    let (image, y, x) = (pixel / columns / rows, pixel / columns % rows, pixel % columns);
    let terms = (0..TAPS).map(|tap| {
        let (y, x) = ((y + tap / 3).checked_sub(1), (x + tap % 3).checked_sub(1));
        let (Some(y), Some(x)) = (y.filter(|&y| y < rows), x.filter(|&x| x < columns)) else {
            return 0;
        };
        let at = ((image * rows + y) * columns + x) * channels + channel;
        let weight =
            value(filter.data[tap * channels + channel], filter.dtype) - filter.zeros[channel];
        (value(images.data[at], images.dtype) - images.zero) * weight
    });
    terms.sum::<i32>() + filter.bias[channel]
}

fn sums(isa: &'static Isa, channels: usize, images: Images<'_>, filter: &Filter<'_>) -> Vec<i32> {
    let weights = KeptWeights::new(&Heap, isa, channels, filter).expect("memory");
    let (padded, count) = (channels.next_multiple_of(isa.columns), images.data.len());
    let last = &images.data[count - count.min(padded)..];
    let mut to = vec![0; 4 * count];
    let d = Depthwise {
        isa,
        geometry: geometry(channels),
        channels,
        padded,
        signed: images.dtype == DType::QINT8,
        pixels: Pixels {
            images: images.data,
            end: &[last, &vec![0; padded]].concat(),
            padding: &vec![images.zero as u8; padded],
        },
        weights: weights.view(),
        stage: Stage::Sums([i32::MIN, i32::MAX]),
        to: Target::new(&mut to, 4 * channels),
    };
    // SAFETY: nothing else computes any of these parts.
    unsafe { isa.depthwise(&d, 0..d.units()) };
    to.as_chunks().0.iter().map(|&bytes| i32::from_le_bytes(bytes)).collect()
}

#[test]
fn sums_are_those_of_the_definition() {
    for (channels, seed) in [(1, 3), (7, 5), (16, 11), (33, 13), (70, 17)] {
        for types in [[DType::QUINT8, DType::QINT8], [DType::QINT8, DType::QUINT8]] {
            let bytes = |count: usize| -> Vec<u8> {
                (0..count).map(|at| (at * at * seed + at / 7) as u8).collect()
            };
            let count = IMAGES.iter().product::<usize>() * channels;
            let (image, taps) = (bytes(count), bytes(TAPS * channels));
            let zeros: Vec<i32> = (0..channels as i32).map(|at| at % 5 * 20).collect();
            let bias: Vec<i32> = (0..channels as i32).map(|at| at * 1000 - 9).collect();
            let images = Images { data: &image, dtype: types[0], zero: LEFT_ZERO };
            let filter = Filter {
                data: &taps,
                dtype: types[1],
                zeros: &zeros,
                left_zero: LEFT_ZERO,
                bias: &bias,
            };
            let expected: Vec<i32> =
                (0..count).map(|at| sum(at, channels, images, &filter)).collect();
            for isa in ALL.iter().chain(TWINS).copied().filter(|isa| isa.is_supported()) {
                let found = sums(isa, channels, images, &filter);
                assert_eq!(found, expected, "{} {channels} {types:?}", isa.name);
            }
        }
    }
}
