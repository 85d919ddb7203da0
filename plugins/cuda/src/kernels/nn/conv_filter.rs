//! Filters in cuDNN's order, with outputs outermost.
//!
//! A constant filter is reordered once, when the kernel is created; any other in every call.

use crate::{
    compile::{Entry, Source, Variant},
    cudnn::Order,
    device::{Constant, Constants},
    kernels::dtype::word_of,
    launch::{Grid, Launch, Operand, device_for},
    source,
};
use tenon_sdk::{
    DType, KernelError,
    abi::Slot,
    author::{CreateContext, Packed},
    geometry::Conv2dGeometry,
};

static SOURCE: Source = source!("conv_filter.cu");

pub(super) fn variants() -> Vec<Variant> {
    ["u16", "u32", "u64"].iter().map(|word| variant(word)).collect()
}

fn variant(word: &str) -> Variant {
    Variant::new(&SOURCE).define("T", word)
}

/// Index of a convolution's filter among its inputs.
pub(super) const FILTER: usize = 1;

type Moves = Entry<(u64, u64, u32, u32, u32, u32)>;

/// Reorders the filters of a node for cuDNN.
pub(super) struct Filters {
    order: Order,
    dtype: DType,
    size: usize,
    transpose: Moves,
    restore: Moves,
    constants: Constants,
    constant: Option<Packed>,
}

/// A constant filter, in cuDNN's order.
struct Form {
    block: Constant,
    dims: [i64; 4],
}

/// Dimensions of a filter `[rows, columns, channels, outputs]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Places {
    depth: usize,
    outputs: usize,
    channels: usize,
    taps: usize,
}

impl Places {
    /// With channels last, the elements of an output keep their order; with channels first, those
    /// of a channel become contiguous.
    fn new([rows, columns, channels, outputs]: [usize; 4], order: Order) -> Places {
        let (taps, depth) = (rows * columns, rows * columns * channels);
        match order {
            Order::ChannelsFirst => Places { depth, outputs, channels, taps },
            Order::ChannelsLast => Places { depth, outputs, channels: depth, taps: 1 },
        }
    }
}

impl Filters {
    /// Compiles the kernels that reorder filters.
    ///
    /// # Errors
    /// `UNAVAILABLE` without a compiler; the compiler's error.
    pub fn new(c: &CreateContext<'_>, dtype: DType, order: Order) -> Result<Filters, KernelError> {
        let device = device_for(c)?;
        let (word, size) = word_of(dtype)?;
        let module = device.modules().get(&variant(word))?;
        // SAFETY: both entries take two addresses and four numbers.
        let entry = |name| unsafe { module.entry(name) };
        Ok(Filters {
            order,
            dtype,
            size,
            transpose: entry("transpose_filter")?,
            restore: entry("restore_filter")?,
            constants: device.constants(),
            constant: None,
        })
    }

    /// A constant filter in cuDNN's order, in device memory; `None` for an input other than the
    /// filter.
    ///
    /// # Errors
    /// Out of memory; the driver's error.
    pub fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        if input != FILTER || !view.memory.is_host_address() || view.dtype != self.dtype {
            return Ok(None);
        }
        // SAFETY: the host passes a filled slot for this call, with valid dimensions, and host
        // memory of `bytes` bytes.
        let (dims, bytes) = unsafe {
            let data = view.data.cast_const().cast::<u8>();
            (view.shape(), std::slice::from_raw_parts(data, view.bytes as usize))
        };
        let Ok(dims) = <[i64; 4]>::try_from(dims) else { return Ok(None) };
        if bytes.is_empty() || dims.iter().any(|dim| *dim >= 1 << 31) {
            return Ok(None);
        }
        let places = Places::new(dims.map(|dim| dim as usize), self.order);
        let moved = match self.size {
            2 => transposed::<2>(bytes, places),
            4 => transposed::<4>(bytes, places),
            _ => transposed::<8>(bytes, places),
        };
        let block = self.constants.hold(&moved)?;
        Ok(Some(Packed::new(Form { block, dims }, moved.len() as u64)))
    }

    /// Receives the packed form of an input.
    pub fn attach(&mut self, input: usize, packed: &Packed) {
        if input == FILTER {
            self.constant = Some(packed.clone());
        }
    }

    fn form(&self, g: &Conv2dGeometry) -> Option<&Form> {
        let form = self.constant.as_ref()?.get::<Form>()?;
        let dims = [g.height.kernel, g.width.kernel, g.filter_channels, g.out_channels];
        (form.dims == dims).then_some(form)
    }

    /// The address of the filter in cuDNN's order: that of the constant, or of scratch memory.
    /// Sizes are below 2^31, as cuDNN requires.
    ///
    /// # Errors
    /// Out of memory; the driver's error.
    pub fn of_cudnn(
        &self,
        launch: &Launch<'_>,
        g: &Conv2dGeometry,
        filter: &Operand,
    ) -> Result<u64, KernelError> {
        match self.form(g) {
            Some(form) => Ok(form.block.address()),
            None => self.moved(launch, &self.transpose, g, filter.address, filter.elements),
        }
    }

    /// The filter in the op's order: the input itself, or a copy in scratch memory where only the
    /// constant in cuDNN's order exists.
    ///
    /// # Errors
    /// As [`Filters::of_cudnn`].
    pub fn of_op(
        &self,
        launch: &Launch<'_>,
        g: &Conv2dGeometry,
        filter: &Operand,
    ) -> Result<u64, KernelError> {
        match self.form(g) {
            Some(form) if filter.address == 0 => {
                self.moved(launch, &self.restore, g, form.block.address(), filter.elements)
            }
            _ => Ok(filter.address),
        }
    }

    fn moved(
        &self,
        launch: &Launch<'_>,
        moves: &Moves,
        g: &Conv2dGeometry,
        from: u64,
        elements: u64,
    ) -> Result<u64, KernelError> {
        let dims = [g.height.kernel, g.width.kernel, g.filter_channels, g.out_channels];
        let places = Places::new(dims.map(|dim| dim as usize), self.order);
        let [depth, outputs, channels, taps] =
            [places.depth, places.outputs, places.channels, places.taps].map(|size| size as u32);
        let to = launch.scratch(elements as usize * self.size)?;
        let blocks = u64::from(depth.div_ceil(32)) * u64::from(outputs.div_ceil(32));
        let arguments = (to, from, depth, outputs, channels, taps);
        // SAFETY: the entry reads and writes as many elements as the filter has, each once.
        unsafe { launch.run(moves, Grid::block_each(blocks, 256)?, arguments)? };
        Ok(to)
    }
}

/// `transpose_filter` in `conv_filter.cu`, on the host: in tiles, so that neither side is traversed
/// in long strides.
fn transposed<const SIZE: usize>(x: &[u8], places: Places) -> Vec<u8> {
    const TILE: usize = 32;
    let Places { depth, outputs, channels, taps } = places;
    let mut y = vec![0; x.len()];
    for first in (0..depth).step_by(TILE) {
        for output in (0..outputs).step_by(TILE) {
            for to in output..outputs.min(output + TILE) {
                for at in first..depth.min(first + TILE) {
                    let from = ((at % taps * channels + at / taps) * outputs + to) * SIZE;
                    let into = (to * depth + at) * SIZE;
                    y[into..into + SIZE].copy_from_slice(&x[from..from + SIZE]);
                }
            }
        }
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test value of the element at a row, a column, a channel and an output.
    fn mark([row, column, channel, output]: [usize; 4]) -> u16 {
        (row * 10_000 + column * 1000 + channel * 40 + output) as u16
    }

    fn filter([rows, columns, channels, outputs]: [usize; 4]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for row in 0..rows {
            for column in 0..columns {
                for channel in 0..channels {
                    for output in 0..outputs {
                        bytes.extend(mark([row, column, channel, output]).to_ne_bytes());
                    }
                }
            }
        }
        bytes
    }

    #[test]
    fn outputs_are_outermost_in_either_order() {
        let dims = [2, 3, 5, 37];
        let [rows, columns, channels, _] = dims;
        for order in [Order::ChannelsLast, Order::ChannelsFirst] {
            let moved = transposed::<2>(&filter(dims), Places::new(dims, order));
            let element = |at: usize| u16::from_ne_bytes([moved[2 * at], moved[2 * at + 1]]);
            for at in [[0, 0, 0, 0], [1, 2, 4, 36], [0, 1, 3, 33], [1, 0, 2, 17]] {
                let [row, column, channel, output] = at;
                let (tap, depth) = (row * columns + column, rows * columns * channels);
                let place = match order {
                    Order::ChannelsLast => tap * channels + channel,
                    Order::ChannelsFirst => channel * rows * columns + tap,
                };
                assert_eq!(element(output * depth + place), mark(at), "{order:?} {at:?}");
            }
        }
    }
}
