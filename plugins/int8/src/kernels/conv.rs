//! `QuantizedConv2D` and `QuantizedDepthwiseConv2D`.
//!
//! What lies outside of the image counts as 0. A filter of `qint8` is symmetric, as oneDNN takes it: its code 0
//! stands for 0, its range for codes from -127 to 127.

use super::{
    products::{Side, accumulate, check_terms},
    range::{Range, product_range},
};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{QInt8, QInt32, QUInt8, Quantised},
    geometry::{Conv2dGeometry, Conv2dParams, DataFormat, GeometryError, Padding},
    reg::Numerics,
    register_kernel,
};

/// What a filter's range says of its codes.
trait Filter: Quantised {
    /// The code of 0.
    fn side(range: Range) -> Result<Side, KernelError>;
    /// The distance between the numbers of neighbouring codes.
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

/// Attributes of a convolution.
struct Windows {
    strides: Vec<i64>,
    dilations: Vec<i64>,
    padding: Padding,
}

impl Windows {
    fn new(c: &CreateContext<'_>) -> Result<Windows, KernelError> {
        let padding = Padding::parse(c.attr("padding")?)?;
        Ok(Windows { strides: c.attr("strides")?, dilations: c.attr("dilations")?, padding })
    }

    fn params<'a>(&'a self, c: &ComputeContext<'a>) -> Conv2dParams<'a> {
        Conv2dParams {
            input: c.dims(0),
            filter: c.dims(1),
            strides: &self.strides,
            dilations: &self.dilations,
            padding: self.padding,
            explicit_paddings: &[],
            format: DataFormat::Nhwc,
        }
    }
}

/// A call of either op: sizes, codes, and the codes of 0.
struct Call<'a, W> {
    geometry: Conv2dGeometry,
    input: (&'a [QUInt8], i32),
    filter: (&'a [W], i32),
}

impl<'a, W: Filter> Call<'a, W> {
    /// Checks the ranges; gives that of the sums too.
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

    /// Computes each pixel of the output from the pixels under each tap of the filter: its channels, and the tap's
    /// part of the filter.
    fn pixels(
        &self,
        c: &ComputeContext<'_>,
        tap: impl Fn(&Call<'a, W>, &[QUInt8], &[W], &mut [QInt32]) + Sync,
    ) -> Result<(), KernelError> {
        let g = &self.geometry;
        let y = c.output::<QInt32>(0, &g.output_dims())?.data;
        if y.is_empty() {
            return Ok(());
        }
        let channels = g.out_channels as usize;
        let rows: Vec<_> = y.chunks_exact_mut(g.width.output as usize * channels).collect();
        let terms = g.height.kernel * g.width.kernel * g.filter_channels;
        let cost = 0.2 * (g.width.output * g.out_channels).saturating_mul(terms) as f64;
        c.parallel_items(rows, cost, |number, y| {
            for (column, sums) in y.chunks_exact_mut(channels).enumerate() {
                sums.fill(QInt32(0));
                self.taps(number, column, |pixel, part| tap(self, pixel, part, sums));
            }
            Ok(())
        })
    }

    /// The pixels of the input that one of the output is made of, each with its part of the filter.
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

struct Conv2D<W>(Windows, PhantomData<W>);

impl<W: Filter> Kernel for Conv2D<W> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Conv2D(Windows::new(c)?, PhantomData))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let geometry = Conv2dGeometry::new(&self.0.params(c))?;
        if geometry.groups > 1 {
            let (expected, found) = (geometry.in_channels, geometry.filter_channels);
            let what = "the input depth of the filter";
            return Err(GeometryError::SizeMismatch { what, expected, found }.into());
        }
        let (call, sums) = Call::<W>::new(c, geometry)?;
        call.pixels(c, |call, pixel, part, sums| {
            accumulate((pixel, call.input.1), (part, call.filter.1), sums);
        })?;
        sums.write(c, 1)
    }
}

struct Depthwise<W>(Windows, PhantomData<W>);

impl<W: Filter> Kernel for Depthwise<W> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Depthwise(Windows::new(c)?, PhantomData))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (call, sums) = Call::<W>::new(c, Conv2dGeometry::depthwise(&self.0.params(c))?)?;
        let multiplier = call.geometry.group_outputs() as usize;
        call.pixels(c, |call, pixel, part, sums| {
            let channels = pixel.chunks_exact(1).zip(part.chunks_exact(multiplier));
            for ((x, part), sums) in channels.zip(sums.chunks_exact_mut(multiplier)) {
                accumulate((x, call.input.1), (part, call.filter.1), sums);
            }
        })?;
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
