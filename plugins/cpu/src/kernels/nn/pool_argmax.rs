//! `MaxPoolWithArgmax`: the largest element of each window, and its position.

use crate::split::{Parts, for_units};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{Element, Number},
    geometry::{Pool2dGeometry, PoolAttributes},
    reg::Numerics,
    register_kernel,
};

/// The position in its image of the largest of a window's elements, of equal ones the first. A NaN
/// stays if it is the first of all elements, and is skipped otherwise. `None` for an empty window.
fn strongest<T: Number>(
    g: &Pool2dGeometry,
    [row, column, channel]: [usize; 3],
    image: &[T],
) -> Option<usize> {
    let (height, width) = (g.height.input as usize, g.width.input as usize);
    let [_, by_row, by_column, by_channel] =
        g.format.strides(height, width, g.in_channels as usize);
    let (top, left) = (g.height.start(row).max(0) as usize, g.width.start(column).max(0) as usize);
    let (rows, columns) = (g.height.taps(row).len(), g.width.taps(column).len());
    let mut best: Option<usize> = None;
    for y in top..top + rows {
        for x in left..left + columns {
            let at = y * by_row + x * by_column + channel * by_channel;
            if best.is_none_or(|best| image[best] < image[at]) {
                best = Some(at);
            }
        }
    }
    best
}

/// A type of indices.
pub trait Index: Element {
    /// The position as an index, if the type can hold it.
    fn from_place(place: usize) -> Option<Self>;
}

impl Index for i32 {
    fn from_place(place: usize) -> Option<i32> {
        i32::try_from(place).ok()
    }
}

impl Index for i64 {
    fn from_place(place: usize) -> Option<i64> {
        i64::try_from(place).ok()
    }
}

struct MaxPoolWithArgmax<T, I> {
    attributes: PoolAttributes,
    include_batch: bool,
    element: PhantomData<(T, I)>,
}

impl<T: Number, I: Index> Kernel for MaxPoolWithArgmax<T, I> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MaxPoolWithArgmax {
            attributes: PoolAttributes::new(c)?,
            include_batch: c.attr("include_batch_in_index")?,
            element: PhantomData,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let g = Pool2dGeometry::average(&self.attributes.params(x.dims))?;
        if x.data.is_empty() {
            return Err(KernelError::invalid_argument(format!(
                "input must not be empty, found shape {:?}",
                x.dims
            )));
        }
        if I::from_place(x.data.len()).is_none() {
            return Err(KernelError::invalid_argument(format!(
                "an input of shape {:?} has more elements than indices of {} tell apart: use int64",
                x.dims,
                I::DTYPE
            )));
        }
        let y = c.output::<T>(0, &g.output_dims())?.data;
        let places = c.output::<I>(1, &g.output_dims())?.data;
        if y.is_empty() {
            return Ok(());
        }
        let (columns, channels) = (g.width.output as usize, g.in_channels as usize);
        let rows = g.height.output as usize;
        let image_len = x.data.len() / g.batch as usize;
        let (y, places) = (Parts::new(y), Parts::new(places));
        let row_len = columns * channels;
        let cost = row_len as f64 * (g.height.kernel * g.width.kernel) as f64;
        for_units(c, g.batch as usize * rows, cost, |range| {
            for unit in range {
                let (n, row) = (unit / rows, unit % rows);
                let image = &x.data[n * image_len..][..image_len];
                let skipped = if self.include_batch { n * image_len } else { 0 };
                let part = unit * row_len..(unit + 1) * row_len;
                // SAFETY: each unit has a row of its own.
                let (y, places) = unsafe { (y.part(part.clone()), places.part(part)) };
                for (i, (y, place)) in y.iter_mut().zip(places).enumerate() {
                    let at = strongest(&g, [row, i / channels, i % channels], image);
                    // No window of the allowed paddings is empty.
                    let at = at.unwrap_or_default();
                    *y = image[at];
                    *place = I::from_place(skipped + at).unwrap_or_default();
                }
            }
        })
    }
}

type Narrow<T> = MaxPoolWithArgmax<T, i32>;
type Wide<T> = MaxPoolWithArgmax<T, i64>;

register_kernel!("MaxPoolWithArgmax" on "CPU": Narrow<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    types = ("Targmax", &[DType::INT32]), numerics = Numerics::EXACT);
register_kernel!("MaxPoolWithArgmax" on "CPU": Wide<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    types = ("Targmax", &[DType::INT64]), numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::geometry::{DataFormat, Padding, Pool2dParams};

    #[test]
    fn the_first_of_equal_ones_wins_and_nan_only_in_front() {
        let g = Pool2dGeometry::max(&Pool2dParams {
            input: &[1, 1, 2, 2],
            ksize: &[1, 1, 2, 2],
            strides: &[1, 1, 2, 2],
            padding: Padding::Valid,
            explicit_paddings: &[],
            format: DataFormat::Nchw,
        })
        .unwrap();
        let at = |image: [f32; 4]| strongest(&g, [0, 0, 0], &image);
        assert_eq!(at([1.0, 3.0, 3.0, 2.0]), Some(1));
        assert_eq!(at([f32::NAN, 3.0, 3.0, 2.0]), Some(0));
        assert_eq!(at([1.0, f32::NAN, 0.5, 2.0]), Some(3));
        assert_eq!(at([f32::NEG_INFINITY; 4]), Some(0));
    }
}
