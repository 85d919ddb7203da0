//! `QuantizedRelu`, `QuantizedRelu6`, `QuantizedBiasAdd` and `QuantizedReshape`.

use super::{
    channels::{map, map_channels},
    range::{Ends, Range, ToCodes, ToReals},
};
use tenon_sdk::{
    DType, KernelError,
    author::ComputeContext,
    element::{Element, QInt8, QInt32, QUInt8, Quantised},
    geometry::{ChannelSplit, DataFormat, reshape_dims},
    growth,
    reg::Numerics,
    register_kernel,
};

const FEATURES: Ends = ["min_features", "max_features"];

fn activate<T: Quantised>(c: &ComputeContext<'_>, most: Option<f32>) -> Result<(), KernelError> {
    let range = Range::of(c, 1, FEATURES)?;
    let least = range.code::<T>(0.0);
    let most = most.map_or(T::saturated(i64::MAX), |most| range.code::<T>(most));
    let x = c.input::<T>(0)?;
    // If the whole range is above the limit, so are all codes.
    map(c, (x.data, c.output::<T>(0, x.dims)?.data), 0.3, |x| x.max(least).min(most))?;
    range.write(c, 1)
}

fn relu<T: Quantised>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    activate::<T>(c, None)
}

fn relu6<T: Quantised>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    activate::<T>(c, Some(6.0))
}

macro_rules! activations {
    ($($type:ty),*) => {$(
        activations!(@one "QuantizedRelu", relu, $type);
        activations!(@one "QuantizedRelu6", relu6, $type);
    )*};
    (@one $op:literal, $function:ident, $type:ty) => {
        register_kernel!($op on "CPU": fn $function<T> for "Tinput" in [$type],
            types = ("out_type", &[<$type as Element>::DTYPE]),
            host_memory = &["min_features", "max_features"], numerics = Numerics::EXACT);
    };
}

activations!(QUInt8, QInt32);

/// The range of a sum: symmetric, and so wide that a summand fits in 15 bits and the sum cannot
/// exceed 32.
fn range_of_sums(x: Range, bias: Range) -> Result<Range, KernelError> {
    let end = x.max.max(-x.min).max(bias.max).max(-bias.min);
    Range::symmetric(end * (1u32 << 17) as f32)
}

/// Converts each summand to the range of the sums, with rounding, then adds them.
fn bias_add<T: Quantised>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let split = ChannelSplit::with_vector(c.dims(0), DataFormat::Nhwc, "bias", c.dims(1))?;
    let range = Range::of(c, 2, ["min_input", "max_input"])?;
    let bias_range = Range::of(c, 4, ["min_bias", "max_bias"])?;
    let sums = range_of_sums(range, bias_range)?;
    let (zero, codes) = (sums.code::<QInt32>(0.0), ToCodes::<QInt32>::new(sums));
    let (x, bias) = (c.input::<T>(0)?, c.input::<T>(1)?.data);
    let (reals, bias_reals) = (ToReals::<T>::new(range), ToReals::<T>::new(bias_range));
    let summand = |&bias: &T| codes.code(bias_reals.real(bias)).0.saturating_add(zero.0);
    let bias: Vec<i32> = growth::collected(bias.iter().map(summand))?;
    debug_assert_eq!(bias.len(), split.channels);
    let data = (x.data, c.output::<QInt32>(0, x.dims)?.data);
    map_channels(c, 1, &bias, data, 2.0, |bias, x| {
        QInt32(codes.code(reals.real(x)).0.saturating_add(*bias))
    })?;
    sums.write(c, 1)
}

macro_rules! bias_adds {
    ($($type:ty),*) => {$(
        register_kernel!("QuantizedBiasAdd" on "CPU": fn bias_add<T> for "T1" in [$type],
            types = ("T2", &[<$type as Element>::DTYPE]), types = ("out_type", &[DType::QINT32]),
            host_memory = &["min_input", "max_input", "min_bias", "max_bias"], numerics = Numerics::EXACT);
    )*};
}

bias_adds!(QUInt8, QInt8);

fn reshape(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let range = Range::of(c, 2, ["input_min", "input_max"])?;
    let [_] = c.dims(1) else {
        return Err(KernelError::invalid_argument(format!(
            "shape must be a vector, found shape {:?}",
            c.dims(1)
        )));
    };
    c.share(0, 0, &reshape_dims(c.dims(0), &c.integers(1)?)?)?;
    range.write(c, 1)
}

register_kernel!("QuantizedReshape" on "CPU": fn reshape,
    types = ("T", &[DType::QUINT8, DType::QINT32]),
    host_memory = &["shape", "input_min", "input_max"], numerics = Numerics::EXACT);
