//! `QuantizedConv2D` and `QuantizedDepthwiseConv2D`.
//!
//! Positions outside of the image count as 0. A range need not contain 0: if 0 has no code and
//! windows reach outside of the image, sums are computed tap by tap; else by the loops of other
//! quantised ops.
//!
//! A filter of `qint8` is symmetric, as in oneDNN: its code 0 represents 0, and its range the codes
//! from -127 to 127.

use super::{
    products::{SUMS, Side, accumulate, check_terms, write_sums},
    range::{Range, product_range},
};
use crate::{
    constant::{RIGHT, RightFactor},
    convolution,
    depthwise::{self, Images, KeptWeights},
    isa::{Isa, chosen},
    product::flip,
};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Kernel, Packed, Prepack},
    element::{QInt8, QInt32, QUInt8, Quantised},
    geometry::Conv2dGeometry,
    reg::Numerics,
    register_kernel,
};

/// The meaning of a filter's codes, from its range.
trait Filter: Quantised {
    /// The code of 0.
    fn side(range: Range) -> Result<Side, KernelError>;
    /// The difference between the numbers of adjacent codes.
    fn level(range: Range) -> f32;
}

impl Filter for QUInt8 {
    fn side(range: Range) -> Result<Side, KernelError> {
        Side::of::<QUInt8>(range)
    }
    fn level(range: Range) -> f32 {
        range.level::<QUInt8>()
    }
}

impl Filter for QInt8 {
    fn side(_: Range) -> Result<Side, KernelError> {
        Ok(Side::with_zero::<QInt8>(0))
    }
    fn level(range: Range) -> f32 {
        range.width() / 254.0
    }
}

/// A call of either op: sizes, codes, and the codes of 0.
struct Call<'a, W> {
    geometry: Conv2dGeometry,
    input: (&'a [QUInt8], i32),
    filter: (&'a [W], i32),
}

impl<'a, W: Filter> Call<'a, W> {
    /// Checks the ranges; also returns that of the sums.
    fn new(
        c: &ComputeContext<'a>,
        geometry: Conv2dGeometry,
    ) -> Result<(Call<'a, W>, Range), KernelError> {
        let input = Range::wide(c, 2, ["min_input", "max_input"])?;
        let filter = Range::wide(c, 4, ["min_filter", "max_filter"])?;
        let (left, right) = (Side::of::<QUInt8>(input)?, W::side(filter)?);
        let taps = geometry.height.kernel.saturating_mul(geometry.width.kernel);
        check_terms(taps.saturating_mul(geometry.filter_channels), left, right)?;
        let sums = product_range(input.level::<QUInt8>(), W::level(filter))?;
        let (x, w) = (c.input::<QUInt8>(0)?.data, c.input::<W>(1)?.data);
        Ok((Call { geometry, input: (x, left.zero), filter: (w, right.zero) }, sums))
    }

    /// Whether a window includes positions without a code: outside of an image, where 0 has no
    /// code.
    fn has_no_code_outside(&self) -> bool {
        convolution::is_padded(&self.geometry) && u8::try_from(self.input.1).is_err()
    }

    fn types() -> [DType; 2] {
        [DType::QUINT8, W::DTYPE]
    }

    fn zeros(&self) -> [i32; 2] {
        [self.input.1, self.filter.1]
    }

    /// Computes each pixel of the output from the pixels of the image under the taps of the filter:
    /// `f` receives their channels, and the tap's part of the filter.
    fn pixels(
        &self,
        c: &ComputeContext<'_>,
        y: &mut [QInt32],
        tap: impl Fn(&[QUInt8], &[W], &mut [QInt32]) + Sync,
    ) -> Result<(), KernelError> {
        let g = &self.geometry;
        let channels = g.out_channels as usize;
        let rows = y.chunks_exact_mut(g.width.output as usize * channels);
        let terms = g.height.kernel * g.width.kernel * g.filter_channels;
        let cost = 0.2 * (g.width.output * g.out_channels).saturating_mul(terms) as f64;
        c.parallel_items(rows, cost, |number, y| {
            for (column, sums) in y.chunks_exact_mut(channels).enumerate() {
                sums.fill(QInt32(0));
                self.taps(number, column, |pixel, part| tap(pixel, part, sums));
            }
            Ok(())
        })
    }

    /// The pixels of the input on which an output pixel depends, each with its part of the filter.
    fn taps(&self, number: usize, column: usize, mut each: impl FnMut(&[QUInt8], &[W])) {
        let g = &self.geometry;
        let (image, row) = (number / g.height.output as usize, number % g.height.output as usize);
        let channels = g.in_channels as usize;
        let part = g.filter_channels as usize * g.out_channels as usize;
        for ky in g.height.taps(row) {
            let Some(y) = g.height.input_at(row, ky) else { continue };
            for kx in g.width.taps(column) {
                let Some(x) = g.width.input_at(column, kx) else { continue };
                let pixel = (image * g.height.input as usize + y) * g.width.input as usize + x;
                let tap = ky * g.width.kernel as usize + kx;
                each(
                    &self.input.0[pixel * channels..][..channels],
                    &self.filter.0[tap * part..][..part],
                );
            }
        }
    }
}

struct Conv2D<W> {
    windows: convolution::Attributes,
    left_flip: u8,
    filter: RightFactor,
    of: PhantomData<W>,
}

impl<W: Filter> Kernel for Conv2D<W> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (isa, [input, filter]) = (chosen(c.knobs())?, Call::<W>::types());
        let filter = RightFactor::new(isa, flip(isa, filter, false), false);
        let windows = convolution::Attributes::new(c)?;
        Ok(Conv2D { windows, left_flip: flip(isa, input, true), filter, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = self.windows.geometry(c)?;
        let (call, sums) = Call::<W>::new(c, g)?;
        if g.output_dims().contains(&0) {
            c.output_bytes(0, &g.output_dims())?;
        } else if call.has_no_code_outside() {
            call.pixels(c, c.output(0, &g.output_dims())?.data, |pixel, part, sums| {
                accumulate((pixel, call.input.1), (part, call.filter.1), sums);
            })?;
        } else {
            let left = convolution::left(c, &g, call.input.1 as u8, self.left_flip)?;
            let sizes = [convolution::depth(&g), g.out_channels as usize];
            let right = self.filter.get(c, sizes)?;
            let y = c.output_bytes(0, &g.output_dims())?;
            write_sums(c, left, right, Call::<W>::types(), call.zeros(), y)?;
        }
        sums.write(c, 1)
    }
}

impl<W: Filter> Prepack for Conv2D<W> {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        Ok(self.filter.prepack_filter(input, view))
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.filter.attach(input, packed);
    }
}

struct Depthwise<W> {
    isa: &'static Isa,
    windows: convolution::Attributes,
    of: PhantomData<W>,
}

impl<W: Filter> Kernel for Depthwise<W> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let windows = convolution::Attributes::new(c)?;
        Ok(Depthwise { isa: chosen(c.knobs())?, windows, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = self.windows.depthwise(c)?;
        let (call, sums) = Call::<W>::new(c, g)?;
        if g.output_dims().contains(&0) {
            c.output_bytes(0, &g.output_dims())?;
        } else if call.has_no_code_outside() {
            let multiplier = g.group_outputs() as usize;
            call.pixels(c, c.output(0, &g.output_dims())?.data, |pixel, part, sums| {
                let channels = pixel.chunks_exact(1).zip(part.chunks_exact(multiplier));
                for ((x, part), sums) in channels.zip(sums.chunks_exact_mut(multiplier)) {
                    accumulate((x, call.input.1), (part, call.filter.1), sums);
                }
            })?;
        } else {
            let [dtype, of_filter] = Call::<W>::types();
            let images = Images { data: c.input_bytes(0)?, dtype, zero: call.input.1 };
            let filter = depthwise::Filter {
                data: c.input_bytes(RIGHT)?,
                dtype: of_filter,
                zeros: &[call.filter.1],
                left_zero: call.input.1,
                bias: &[],
            };
            let weights = KeptWeights::new(c, self.isa, g.out_channels as usize, &filter)?;
            let y = c.output_bytes(0, &g.output_dims())?;
            depthwise::compute(c, self.isa, &g, images, weights.view(), SUMS, y)?;
        }
        sums.write(c, 1)
    }
}

const HOST: &[&str] = &["min_input", "max_input", "min_filter", "max_filter"];

register_kernel!("QuantizedConv2D" on "CPU": Conv2D<T> for "Tfilter" in [QUInt8, QInt8],
    types = ("Tinput", &[DType::QUINT8]), types = ("out_type", &[DType::QINT32]),
    host_memory = HOST, numerics = Numerics::EXACT);
register_kernel!("QuantizedDepthwiseConv2D" on "CPU": Depthwise<T> for "Tfilter" in [QInt8],
    types = ("Tinput", &[DType::QUINT8]), types = ("out_type", &[DType::QINT32]),
    host_memory = HOST, numerics = Numerics::EXACT);
