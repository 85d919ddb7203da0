//! `QuantizedMaxPool` and `QuantizedAvgPool`: the code of the greatest number, and the mean code,
//! truncated.

use super::range::{Ends, Range};
use std::{marker::PhantomData, ops::Range as Span};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{QInt8, QUInt8, Quantised},
    geometry::{DataFormat, GeometryError, Padding, Pool2dGeometry, Pool2dParams},
    growth,
    reg::Numerics,
    register_kernel,
};

const ENDS: Ends = ["min_input", "max_input"];

/// The reduction of a window, code by code.
trait Fold<T>: 'static {
    /// The result for the codes so far.
    type State: Copy;
    fn geometry(params: &Pool2dParams<'_>) -> Result<Pool2dGeometry, GeometryError>;
    fn start() -> Self::State;
    fn take(state: Self::State, code: T) -> Self::State;
    fn finish(state: Self::State, count: usize) -> T;
}

struct Greatest;

impl<T: Quantised> Fold<T> for Greatest {
    type State = T;
    fn geometry(params: &Pool2dParams<'_>) -> Result<Pool2dGeometry, GeometryError> {
        Pool2dGeometry::max(params)
    }
    fn start() -> T {
        T::saturated(i64::MIN)
    }
    #[inline(always)]
    fn take(state: T, code: T) -> T {
        if code > state { code } else { state }
    }
    fn finish(state: T, _count: usize) -> T {
        state
    }
}

struct Mean;

impl<T: Quantised> Fold<T> for Mean {
    type State = i64;
    fn geometry(params: &Pool2dParams<'_>) -> Result<Pool2dGeometry, GeometryError> {
        Pool2dGeometry::average(params)
    }
    fn start() -> i64 {
        0
    }
    #[inline(always)]
    fn take(state: i64, code: T) -> i64 {
        state + i64::from(code.code())
    }
    fn finish(state: i64, count: usize) -> T {
        T::saturated(state.checked_div(count as i64).unwrap_or(0))
    }
}

struct Pool<F, T> {
    ksize: Vec<i64>,
    strides: Vec<i64>,
    padding: Padding,
    of: PhantomData<fn() -> (F, T)>,
}

impl<F: Fold<T>, T: Quantised> Kernel for Pool<F, T> {
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
            let rows = y.chunks_exact_mut(row);
            let taps = (geometry.height.kernel.saturating_mul(geometry.width.kernel)) as f64;
            c.parallel_items(rows, 0.5 * row as f64 * taps, |number, y| {
                pool_row::<F, T>(&geometry, x, number, y)
            })?;
        }
        range.write(c, 1)
    }
}

/// Inputs that a window reads along one dimension.
pub fn inputs(window: &tenon_sdk::geometry::WindowDim, output: usize) -> Span<usize> {
    let first = window.start(output).max(0) as usize;
    first..first + window.taps(output).len()
}

/// Computes row `number` of the output, counted over all images.
fn pool_row<F: Fold<T>, T: Quantised>(
    g: &Pool2dGeometry,
    x: &[T],
    number: usize,
    y: &mut [T],
) -> Result<(), KernelError> {
    let (height, width) = (g.height.input as usize, g.width.input as usize);
    let (channels, depth) = (g.in_channels as usize, g.depth_window as usize);
    let (image, row) = (number / g.height.output as usize, number % g.height.output as usize);
    let rows = inputs(&g.height, row);
    let mut states = growth::filled(g.out_channels as usize, F::start())?;
    for (column, y) in y.chunks_exact_mut(states.len()).enumerate() {
        let columns = inputs(&g.width, column);
        states.fill(F::start());
        for row in rows.clone() {
            for column in columns.clone() {
                let pixel = &x[((image * height + row) * width + column) * channels..][..channels];
                if depth == 1 {
                    states
                        .iter_mut()
                        .zip(pixel)
                        .for_each(|(state, &x)| *state = F::take(*state, x));
                    continue;
                }
                for (state, codes) in states.iter_mut().zip(pixel.chunks_exact(depth)) {
                    *state = codes.iter().fold(*state, |s, &x| F::take(s, x));
                }
            }
        }
        let count = rows.len() * columns.len();
        let finished = states.iter().map(|&state| F::finish(state, count));
        y.iter_mut().zip(finished).for_each(|(y, code)| *y = code);
    }
    Ok(())
}

type MaxPool<T> = Pool<Greatest, T>;
type AvgPool<T> = Pool<Mean, T>;

register_kernel!("QuantizedMaxPool" on "CPU": MaxPool<T> for "T" in [QUInt8, QInt8],
    host_memory = &["min_input", "max_input"], numerics = Numerics::EXACT);
register_kernel!("QuantizedAvgPool" on "CPU": AvgPool<T> for "T" in [QUInt8, QInt8],
    host_memory = &["min_input", "max_input"], numerics = Numerics::EXACT);
