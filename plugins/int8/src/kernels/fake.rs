//! The ops `FakeQuant...`: the nearest level of a range that is shifted so that 0 is a level, and
//! the gradients.

use super::{
    channels::{check_ends, map, map_channels},
    range::{Ends, Range, clamp},
    rounding::floor,
};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{AxisSplit, GeometryError},
    growth,
    reg::Numerics,
    register_kernel,
};

const ENDS: Ends = ["min", "max"];

/// The least and the greatest code, as floats.
#[derive(Clone, Copy)]
struct Codes {
    lowest: f32,
    highest: f32,
}

impl Codes {
    fn new(c: &CreateContext<'_>) -> Result<Codes, KernelError> {
        let (bits, narrow): (i64, bool) = (c.attr("num_bits")?, c.attr("narrow_range")?);
        if !(2..=16).contains(&bits) {
            return Err(KernelError::invalid_argument(format!(
                "num_bits must be from 2 to 16, found {bits}"
            )));
        }
        Ok(Codes { lowest: f32::from(u8::from(narrow)), highest: ((1u32 << bits) - 1) as f32 })
    }
}

/// A range shifted by less than a level.
#[derive(Clone, Copy)]
struct Nudged {
    min: f32,
    max: f32,
    scale: f32,
    inverse: f32,
    zero: f32,
}

impl Nudged {
    fn new(range: Range, Codes { lowest, highest }: Codes) -> Nudged {
        let steps = highest - lowest;
        let (scale, inverse) = (range.width() / steps, steps / range.width());
        let zero = (lowest - range.min / scale).round().clamp(lowest, highest);
        let (min, max) = ((lowest - zero) * scale, (highest - zero) * scale);
        Nudged { min, max, scale, inverse, zero: (-min * inverse + 0.5).floor() }
    }

    /// The nearest level. Whether levels are counted by a product or by a quotient matters at ties,
    /// and TensorFlow's ops differ in that.
    #[inline(always)]
    fn level(&self, x: f32, count: Count) -> f32 {
        let shifted = clamp(x, self.min, self.max) - self.min;
        let steps = match count {
            Count::Product => shifted * self.inverse,
            Count::Quotient => shifted / self.scale,
        };
        floor(steps - self.zero + 0.5) * self.scale
    }

    /// 1 within the range, 0 outside.
    #[inline(always)]
    fn within(&self, x: f32) -> f32 {
        if x >= self.min && x <= self.max { 1.0 } else { 0.0 }
    }

    /// The gradient where the number is below the range, and where it is above, else 0.
    #[inline(always)]
    fn beyond(&self, gradient: f32, x: f32) -> [f64; 2] {
        // By multiplication, so that a NaN or infinite gradient is preserved.
        let part = |outside: bool| f64::from(gradient * if outside { 1.0 } else { 0.0 });
        [part(x < self.min), part(x > self.max)]
    }
}

/// How to count the levels from the lower end to a number: by multiplying with the inverse of a
/// level, or by dividing.
#[derive(Clone, Copy)]
enum Count {
    Product,
    Quotient,
}

/// A range given by attributes or inputs; `None` if both ends are 0, where every number counts as
/// 0.
fn nudged(min: f32, max: f32, codes: Codes) -> Result<Option<Nudged>, KernelError> {
    let range = Range::new(min, max, ENDS)?;
    if min == 0.0 && max == 0.0 {
        return Ok(None);
    }
    if min == max {
        return Err(KernelError::invalid_argument(format!(
            "max must be larger than min, or both be 0, found {min} for both"
        )));
    }
    let level = (max - min) / (codes.highest - codes.lowest);
    if level < f32::MIN_POSITIVE {
        return Err(KernelError::invalid_argument(format!(
            "min and max must be so far apart that a level is a normal number, at least {:e}, found {min:e} and {max:e}",
            f32::MIN_POSITIVE
        )));
    }
    Ok(Some(Nudged::new(range, codes)))
}

/// The range in the attributes.
fn of_attributes(c: &CreateContext<'_>) -> Result<Nudged, KernelError> {
    nudged(c.attr("min")?, c.attr("max")?, Codes::new(c)?)?.ok_or_else(|| {
        KernelError::invalid_argument("max must be larger than min, found 0 for both")
    })
}

/// The ranges in inputs `at` and `at + 1`, one per channel.
fn of_inputs(
    c: &ComputeContext<'_>,
    at: usize,
    codes: Codes,
) -> Result<Vec<Option<Nudged>>, KernelError> {
    let (min, max) = (c.input::<f32>(at)?.data, c.input::<f32>(at + 1)?.data);
    growth::try_collected(min.iter().zip(max).map(|(&min, &max)| nudged(min, max, codes)))
}

struct Args(Nudged);

impl Kernel for Args {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Args(of_attributes(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<f32>(0)?;
        map(c, (x.data, c.output::<f32>(0, x.dims)?.data), 1.5, |x| self.0.level(x, Count::Product))
    }
}

/// The gradients and the inputs, which must have the same shape.
fn gradients<'a>(c: &ComputeContext<'a>) -> Result<[&'a [f32]; 2], KernelError> {
    let (gradients, inputs) = (c.input::<f32>(0)?, c.input::<f32>(1)?);
    if gradients.dims != inputs.dims {
        return Err(KernelError::invalid_argument(format!(
            "gradients and inputs must have one shape, found {:?} and {:?}",
            gradients.dims, inputs.dims
        )));
    }
    Ok([gradients.data, inputs.data])
}

/// Passes gradients within the range on.
fn pass_on(
    c: &ComputeContext<'_>,
    [gradients, inputs]: [&[f32]; 2],
    range: &Nudged,
) -> Result<(), KernelError> {
    let y = c.output::<f32>(0, c.dims(1))?.data;
    const BLOCK: usize = 1 << 14;
    let blocks = y.chunks_mut(BLOCK).zip(gradients.chunks(BLOCK)).zip(inputs.chunks(BLOCK));
    c.parallel_items(blocks, 0.5 * BLOCK as f64, |_, ((y, gradients), inputs)| {
        for ((y, gradient), &x) in y.iter_mut().zip(gradients).zip(inputs) {
            *y = gradient * range.within(x);
        }
        Ok(())
    })
}

struct ArgsGradient(Nudged);

impl Kernel for ArgsGradient {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ArgsGradient(of_attributes(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        pass_on(c, gradients(c)?, &self.0)
    }
}

struct Vars(Codes);

impl Kernel for Vars {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Vars(Codes::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        check_ends("min", c.dims(1), None, 1)?;
        check_ends("max", c.dims(2), None, 1)?;
        levels(c, &of_inputs(c, 1, self.0)?, Count::Quotient)
    }
}

/// Computes the nearest levels, with the channels as the last dimension.
fn levels(
    c: &ComputeContext<'_>,
    ranges: &[Option<Nudged>],
    count: Count,
) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let data = (x.data, c.output::<f32>(0, x.dims)?.data);
    map_channels(c, 1, ranges, data, 1.5, |range, x| {
        range.map_or(0.0, |range| range.level(x, count))
    })
}

struct PerChannel(Codes);

impl Kernel for PerChannel {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(PerChannel(Codes::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if c.dims(0).is_empty() {
            let what = "inputs";
            return Err(GeometryError::RankTooSmall { what, expected: 1, found: 0 }.into());
        }
        let channels = AxisSplit::new("the channels", c.dims(0), -1)?.len;
        check_ends("min", c.dims(1), Some(-1), channels)?;
        check_ends("max", c.dims(2), Some(-1), channels)?;
        levels(c, &of_inputs(c, 1, self.0)?, Count::Product)
    }
}

struct PerChannelGradient(Codes);

impl Kernel for PerChannelGradient {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(PerChannelGradient(Codes::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let inputs = gradients(c)?;
        if c.dims(1).is_empty() {
            let what = "inputs";
            return Err(GeometryError::RankTooSmall { what, expected: 1, found: 0 }.into());
        }
        let channels = AxisSplit::new("the channels", c.dims(1), -1)?.len;
        check_ends("min", c.dims(2), Some(-1), channels)?;
        check_ends("max", c.dims(3), Some(-1), channels)?;
        let ranges = of_inputs(c, 2, self.0)?;
        let y = c.output::<f32>(0, c.dims(1))?.data;
        let sums = by_channel(c, &ranges, inputs, y)?;
        for output in 0..2 {
            let ends = c.output::<f32>(output + 1, &[channels as i64])?.data;
            ends.iter_mut().zip(&sums).for_each(|(end, sums)| *end = sums[output] as f32);
        }
        Ok(())
    }
}

/// Passes gradients within the range of their channel on, and returns for each channel the sums of
/// those of inputs below and above the range.
fn by_channel(
    c: &ComputeContext<'_>,
    ranges: &[Option<Nudged>],
    [gradients, inputs]: [&[f32]; 2],
    y: &mut [f32],
) -> Result<Vec<[f64; 2]>, KernelError> {
    let channels = ranges.len();
    let mut sums = growth::filled(channels, [0f64; 2])?;
    if y.is_empty() {
        return Ok(sums);
    }
    // The blocks depend on the sizes only, so that the sums do not depend on threads.
    let block = (1usize << 14).div_ceil(channels) * channels;
    let blocks = y.len().div_ceil(block);
    let mut parts = growth::filled(blocks * channels, [0f64; 2])?;
    let ys = y.chunks_mut(block).zip(parts.chunks_mut(channels));
    let ys = ys.zip(gradients.chunks(block).zip(inputs.chunks(block)));
    c.parallel_items(ys, 2.0 * block as f64, |_, ((y, sums), (gradients, inputs))| {
        let rows = gradients.chunks_exact(channels).zip(inputs.chunks_exact(channels));
        for (y, (gradients, inputs)) in y.chunks_exact_mut(channels).zip(rows) {
            let elements = y.iter_mut().zip(gradients).zip(inputs);
            for (((y, &gradient), &x), (range, sums)) in elements.zip(ranges.iter().zip(&mut *sums))
            {
                let Some(range) = range else {
                    *y = gradient;
                    continue;
                };
                *y = gradient * range.within(x);
                let [below, above] = range.beyond(gradient, x);
                *sums = [sums[0] + below, sums[1] + above];
            }
        }
        Ok(())
    })?;
    for part in parts.chunks_exact(channels) {
        for (sums, part) in sums.iter_mut().zip(part) {
            *sums = [sums[0] + part[0], sums[1] + part[1]];
        }
    }
    Ok(sums)
}

struct VarsGradient(Codes);

impl Kernel for VarsGradient {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(VarsGradient(Codes::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let [gradients, inputs] = gradients(c)?;
        check_ends("min", c.dims(2), None, 1)?;
        check_ends("max", c.dims(3), None, 1)?;
        let mut sums = [0f32; 2];
        match of_inputs(c, 2, self.0)?.first() {
            Some(Some(range)) => {
                pass_on(c, [gradients, inputs], range)?;
                sums = beyond(gradients, inputs, range);
            }
            _ => c.output::<f32>(0, c.dims(1))?.data.copy_from_slice(gradients),
        }
        c.output::<f32>(1, &[])?.data.fill(sums[0]);
        c.output::<f32>(2, &[])?.data.fill(sums[1]);
        Ok(())
    }
}

/// Sums of the gradients of inputs below and above the range.
fn beyond(gradients: &[f32], inputs: &[f32], range: &Nudged) -> [f32; 2] {
    let [mut below, mut above] = [0f64; 2];
    for (&gradient, &x) in gradients.iter().zip(inputs) {
        let parts = range.beyond(gradient, x);
        (below, above) = (below + parts[0], above + parts[1]);
    }
    [below as f32, above as f32]
}

register_kernel!("FakeQuantWithMinMaxArgs" on "CPU": Args, numerics = Numerics::EXACT);
register_kernel!("FakeQuantWithMinMaxArgsGradient" on "CPU": ArgsGradient, numerics = Numerics::EXACT);
register_kernel!("FakeQuantWithMinMaxVars" on "CPU": Vars,
    host_memory = &["min", "max"], numerics = Numerics::EXACT);
register_kernel!("FakeQuantWithMinMaxVarsPerChannel" on "CPU": PerChannel,
    host_memory = &["min", "max"], numerics = Numerics::EXACT);
register_kernel!("FakeQuantWithMinMaxVarsGradient" on "CPU": VarsGradient,
    host_memory = &["min", "max"],
    numerics = Numerics::relative(1e-30, 2e-6).accumulation(DType::DOUBLE));
register_kernel!("FakeQuantWithMinMaxVarsPerChannelGradient" on "CPU": PerChannelGradient,
    host_memory = &["min", "max"],
    numerics = Numerics::relative(1e-30, 2e-6).accumulation(DType::DOUBLE));
