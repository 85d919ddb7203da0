//! `QuantizedMaxPool` and `QuantizedAvgPool`: the code of the greatest number, and the mean code, cut off towards 0.

use super::range::{Ends, Range};
use std::{marker::PhantomData, ops::Range as Span};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{QInt8, QUInt8, Quantised},
    geometry::{DataFormat, Padding, Pool2dGeometry, Pool2dParams},
    reg::Numerics,
    register_kernel,
};

const ENDS: Ends = ["min_input", "max_input"];

/// What a window becomes: codes are folded into 64 bits one by one.
trait Fold: 'static {
    const START: i64;
    fn geometry(
        params: &Pool2dParams<'_>,
    ) -> Result<Pool2dGeometry, tenon_sdk::geometry::GeometryError>;
    fn take(state: i64, code: i64) -> i64;
    fn finish(state: i64, count: usize) -> i64;
}

struct Greatest;

impl Fold for Greatest {
    const START: i64 = i64::MIN;
    fn geometry(
        params: &Pool2dParams<'_>,
    ) -> Result<Pool2dGeometry, tenon_sdk::geometry::GeometryError> {
        Pool2dGeometry::max(params)
    }
    fn take(state: i64, code: i64) -> i64 {
        state.max(code)
    }
    fn finish(state: i64, _count: usize) -> i64 {
        state
    }
}

struct Mean;

impl Fold for Mean {
    const START: i64 = 0;
    fn geometry(
        params: &Pool2dParams<'_>,
    ) -> Result<Pool2dGeometry, tenon_sdk::geometry::GeometryError> {
        Pool2dGeometry::average(params)
    }
    fn take(state: i64, code: i64) -> i64 {
        state + code
    }
    fn finish(state: i64, count: usize) -> i64 {
        state.checked_div(count as i64).unwrap_or(0)
    }
}

struct Pool<F, T> {
    ksize: Vec<i64>,
    strides: Vec<i64>,
    padding: Padding,
    of: PhantomData<fn() -> (F, T)>,
}

impl<F: Fold, T: Quantised> Kernel for Pool<F, T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let padding = Padding::parse(c.attr("padding")?)?;
        Ok(Pool { ksize: c.attr("ksize")?, strides: c.attr("strides")?, padding, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let range = Range::of(c, 1, ENDS)?;
        let geometry = F::geometry(&Pool2dParams {
            input: c.dims(0),
            ksize: &self.ksize,
            strides: &self.strides,
            padding: self.padding,
            explicit_paddings: &[],
            format: DataFormat::Nhwc,
        })?;
        let (x, y) = (c.input::<T>(0)?.data, c.output::<T>(0, &geometry.output_dims())?.data);
        if !y.is_empty() {
            let row = (geometry.width.output * geometry.out_channels) as usize;
            let rows: Vec<&mut [T]> = y.chunks_exact_mut(row).collect();
            let taps = (geometry.height.kernel.saturating_mul(geometry.width.kernel)) as f64;
            c.parallel_items(rows, 0.5 * row as f64 * taps, |number, y| {
                pool_row::<F, T>(&geometry, x, number, y);
                Ok(())
            })?;
        }
        range.write(c, 1)
    }
}

/// Inputs that a window reads along one dimension.
fn inputs(window: &tenon_sdk::geometry::WindowDim, output: usize) -> Span<usize> {
    let first = window.start(output).max(0) as usize;
    first..first + window.taps(output).len()
}

/// Row `number` of the output, of all images counted on.
fn pool_row<F: Fold, T: Quantised>(g: &Pool2dGeometry, x: &[T], number: usize, y: &mut [T]) {
    let (height, width) = (g.height.input as usize, g.width.input as usize);
    let (channels, depth) = (g.in_channels as usize, g.depth_window as usize);
    let (image, row) = (number / g.height.output as usize, number % g.height.output as usize);
    let rows = inputs(&g.height, row);
    let mut states = vec![F::START; g.out_channels as usize];
    for (column, y) in y.chunks_exact_mut(states.len()).enumerate() {
        let columns = inputs(&g.width, column);
        states.fill(F::START);
        for row in rows.clone() {
            for column in columns.clone() {
                let pixel = &x[((image * height + row) * width + column) * channels..][..channels];
                for (state, codes) in states.iter_mut().zip(pixel.chunks_exact(depth)) {
                    *state = codes.iter().fold(*state, |s, x| F::take(s, x.code().into()));
                }
            }
        }
        let count = rows.len() * columns.len();
        let finished = states.iter().map(|&state| T::saturated(F::finish(state, count)));
        y.iter_mut().zip(finished).for_each(|(y, code)| *y = code);
    }
}

type MaxPool<T> = Pool<Greatest, T>;
type AvgPool<T> = Pool<Mean, T>;

register_kernel!("QuantizedMaxPool" on "CPU": MaxPool<T> for "T" in [QUInt8, QInt8],
    host_memory = &["min_input", "max_input"], numerics = Numerics::EXACT);
register_kernel!("QuantizedAvgPool" on "CPU": AvgPool<T> for "T" in [QUInt8, QInt8],
    host_memory = &["min_input", "max_input"], numerics = Numerics::EXACT);
