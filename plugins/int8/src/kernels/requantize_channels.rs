//! `RequantizePerChannel` and `RequantizationRangePerChannel`: 32-bit codes whose channels, the
//! last dimension, have a range each. All ranges are treated as symmetric: with an end of `m`, a
//! code `q` represents `m q / 2^31`.

use super::{
    channels::{check_ends, map_channels},
    range::{Ends, Range},
    rounding::round_to_even,
};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{QInt8, QInt32, QUInt8, Quantised},
    geometry::{AxisSplit, GeometryError},
    growth,
    reg::Numerics,
    register_kernel,
};

const INPUT: Ends = ["input_min", "input_max"];
const REQUESTED: Ends = ["requested_output_min", "requested_output_max"];
/// Half the number of 32-bit codes.
const HALF: f32 = 2_147_483_648.0;

/// The magnitude of the greater end of each channel's range.
fn ends(c: &ComputeContext<'_>) -> Result<Vec<f32>, KernelError> {
    if c.dims(0).is_empty() {
        return Err(GeometryError::RankTooSmall { what: "input", expected: 1, found: 0 }.into());
    }
    let channels = AxisSplit::new("the channels", c.dims(0), -1)?.len;
    check_ends(INPUT[0], c.dims(1), Some(-1), channels)?;
    check_ends(INPUT[1], c.dims(2), Some(-1), channels)?;
    let (min, max) = (c.input::<f32>(1)?.data, c.input::<f32>(2)?.data);
    let end = |(&min, &max): (&f32, &f32)| Ok(greater(Range::new(min, max, INPUT)?));
    growth::try_collected(min.iter().zip(max).map(end))
}

fn greater(range: Range) -> f32 {
    range.min.abs().max(range.max.abs())
}

fn requantize<T: Quantised>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (ends, to) = (ends(c)?, Range::wide(c, 3, REQUESTED)?);
    if T::SIGNED && to.min >= 0.0 {
        return Err(KernelError::invalid_argument(format!(
            "requested_output_min must be below 0 for {}, found {}",
            T::DTYPE,
            to.min
        )));
    }
    // Signed codes are symmetric, from -127 on.
    let scale = |end: f32| T::HIGHEST as f32 * (end / greater(to) / HALF);
    let scales = growth::collected(ends.into_iter().map(scale))?;
    let x = c.input::<QInt32>(0)?;
    let data = (x.data, c.output::<T>(0, x.dims)?.data);
    map_channels(c, 1, &scales, data, 1.5, |scale, code: QInt32| {
        T::saturated((round_to_even(code.0 as f32 * scale) as i32).into())
    })?;
    to.write(c, 1)
}

struct RangeOfChannels {
    most: f32,
}

impl Kernel for RangeOfChannels {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let most = c.attr::<f32>("clip_value_max")?;
        if most > 0.0 {
            return Ok(RangeOfChannels { most });
        }
        Err(KernelError::invalid_argument(format!("clip_value_max must be above 0, found {most}")))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (ends, x) = (ends(c)?, c.input::<QInt32>(0)?.data);
        if x.is_empty() {
            return Err(KernelError::invalid_argument(format!(
                "input must have elements, found shape {:?}",
                c.dims(0)
            )));
        }
        let mut greatest = growth::filled(ends.len(), 0u32)?;
        for row in x.chunks_exact(ends.len()) {
            for (greatest, code) in greatest.iter_mut().zip(row) {
                *greatest = (*greatest).max(code.0.unsigned_abs());
            }
        }
        let numbers = greatest.iter().zip(&ends).map(|(&code, end)| end * (code as f32 / HALF));
        let max = numbers.fold(f32::MIN_POSITIVE, f32::max).min(self.most);
        let min = if x.iter().any(|code| code.0 < 0) { -max } else { 0.0 };
        Range { min, max }.write(c, 0)
    }
}

const HOST: &[&str] = &["input_min", "input_max", "requested_output_min", "requested_output_max"];

register_kernel!("RequantizePerChannel" on "CPU": fn requantize<T> for "out_type" in [QUInt8, QInt8],
    types = ("T", &[DType::QINT32]), host_memory = HOST, numerics = Numerics::EXACT);
register_kernel!("RequantizationRangePerChannel" on "CPU": RangeOfChannels,
    types = ("T", &[DType::QINT32]), host_memory = &["input_min", "input_max"],
    numerics = Numerics::EXACT);
