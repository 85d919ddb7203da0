//! `Dequantize`: the inverses of the modes of `QuantizeV2`.

use super::{
    channels::{axis, check_ends, map_channels, split},
    quantize::Mode,
    range::{Ends, Range, ToReals},
};
use half::bf16;
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{Element, Number, QInt8, QInt16, QInt32, QUInt8, QUInt16, Quantised},
    growth,
    reg::Numerics,
    register_kernel,
};

const ENDS: Ends = ["min_range", "max_range"];

struct Dequantize<T, F> {
    mode: Mode,
    narrow: bool,
    axis: Option<i64>,
    of: PhantomData<(T, F)>,
}

impl<T: Quantised, F: Number<Accumulator = f32>> Kernel for Dequantize<T, F> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let mode = Mode::new(c)?;
        if mode != Mode::MinCombined && F::DTYPE != f32::DTYPE {
            return Err(KernelError::invalid_argument(format!(
                "dtype {} wants mode MIN_COMBINED, found another: set dtype to float",
                F::DTYPE
            )));
        }
        Ok(Dequantize { mode, narrow: c.attr("narrow_range")?, axis: axis(c)?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let split = split(c.dims(0), self.axis)?;
        check_ends(ENDS[0], c.dims(1), self.axis, split.len)?;
        check_ends(ENDS[1], c.dims(2), self.axis, split.len)?;
        self.mode.check_channels(split.len)?;
        let (min, max) = (c.input::<f32>(1)?.data, c.input::<f32>(2)?.data);
        let ranges = min.iter().zip(max).map(|(&min, &max)| Range::new(min, max, ENDS));
        let ranges = growth::try_collected(ranges)?;
        let x = c.input::<T>(0)?;
        let data = (x.data, c.output::<F>(0, x.dims)?.data);
        if self.mode == Mode::MinFirst {
            let channels = growth::collected(ranges.iter().map(|range| ToReals::<T>::new(*range)))?;
            return map_channels(c, split.inner, &channels, data, 0.5, |reals, x| {
                F::narrow(reals.real(x))
            });
        }
        if self.mode == Mode::Scaled {
            let channels = growth::collected(ranges.iter().map(|range| self.factor(*range)))?;
            return map_channels(c, split.inner, &channels, data, 0.5, |factor, x| {
                F::narrow(x.code() as f32 * factor)
            });
        }
        let lowest = T::LOWEST as f32;
        let level = |range: &Range| range.width() / (T::HIGHEST as f32 - lowest);
        let channels = growth::collected(ranges.iter().map(|range| (level(range), range.min)))?;
        map_channels(c, split.inner, &channels, data, 0.5, |(level, min), x| {
            F::narrow((x.code() as f32 - lowest) * level + min)
        })
    }
}

impl<T: Quantised, F> Dequantize<T, F> {
    /// The factor of a code in mode `SCALED`.
    fn factor(&self, range: Range) -> f32 {
        let from_max = range.max / T::HIGHEST as f32;
        let lowest = (i64::from(T::LOWEST) + i64::from(self.narrow)) as f32;
        let from_min = range.min / lowest;
        // Of two zeros, TensorFlow uses that of the lower end.
        if !T::SIGNED || from_min < from_max { from_max } else { from_min }
    }
}

macro_rules! dequantize {
    ($($from:ty),*) => {$(
        dequantize!(@to $from, f32);
        dequantize!(@to $from, bf16);
    )*};
    (@to $from:ty, $to:ty) => {
        register_kernel!("Dequantize" on "CPU": Dequantize<$from, $to>,
            types = ("T", &[<$from as Element>::DTYPE]), types = ("dtype", &[<$to as Element>::DTYPE]),
            host_memory = &["min_range", "max_range"], numerics = Numerics::EXACT);
    };
}

dequantize!(QInt8, QUInt8, QInt16, QUInt16, QInt32);
